"""Trained models: the solution of one dual problem, its decision function, and its certificate of optimality.

The certificate of a kernel model costs as much as computing the kernel values of all support vectors in double
precision, often as much as the fit. Training computes it only where a duality gap decides that the fit is finished;
otherwise it is computed when `certificate` is first read. Pickling and saving never compute it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, Counters, DualProblem, Solution, Status, certify
from maxmargin.problems.certificate import extended_is_affordable, rigorous_violation
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, known_extremes, violation_of
from maxmargin.problems.products import evaluate_gradient
from maxmargin.training.problem_scale import overflow_message
from maxmargin.training.sampled_gradient import gradient_of_sample, offset_of_sample

#: Poses a dual problem when it is needed.
Pose = Callable[[], DualProblem]

NOT_COMPUTED = (
    "the certificate was not computed before the model was pickled or saved, and it needs the training data; read "
    "certificate_ before pickling or saving, or fit again"
)
NO_TRAINING_DATA = (
    "the model was pickled or saved, which leaves the training data behind: leaving samples out needs them; fit again"
)
DATA_CHANGED_SINCE = (
    "the training data were changed after fit, so no sample of them can be left out any more; fit again, on a copy"
)
DATA_CHANGED = (
    "the training data were changed after fit, so the certificate cannot be computed any more; fit on a copy, or read "
    "certificate_ before changing them"
)


class StoredModel(NamedTuple):
    """The parts of a trained model that are stored: everything but its training data.

    `certified` holds the certificate and the geometry, or None if they were not computed.
    """

    dual: Floats
    samples: Indices
    status: Status
    counters: Counters
    expansion: KernelExpansion
    certified: tuple[Certificate, Any] | None


class TrainedModel:
    """The solution of one dual problem in kernel form.

    Attributes
    ----------
    dual : float array
        The dual vector.
    samples : int array
        The training rows of the problem.
    status : Status
        How the solver ended.
    counters : Counters
        Iterations, kernel evaluations and seconds.
    """

    def __init__(
        self,
        problem: DualProblem | Pose,
        solution: Solution,
        samples: Indices,
        formulation: Formulation,
        expansion: KernelExpansion | None = None,
        checksum: int | None = None,
    ) -> None:
        self._problem: DualProblem | Pose | None = problem
        self._formulation: Formulation | None = formulation
        self.dual = solution.dual
        self.status = solution.status
        self.counters = solution.counters
        self.samples = samples
        self._gradient: Floats | None = solution.gradient
        self._value = solution.value
        self._checksum = checksum
        self._extended = False  # whether verification needed double-double arithmetic
        if expansion is not None:
            self.expansion = expansion  # not through __dict__: attributes take half the memory in place

    @classmethod
    def from_stored(cls, stored: StoredModel) -> TrainedModel:
        """Return a model that was stored; without training data it has a certificate only if one was stored."""
        model = cls.__new__(cls)
        model._problem = model._formulation = model._gradient = model._checksum = model._value = None
        model.dual, model.samples, model.status, model.counters = stored[:4]
        model._extended = False
        model.__dict__["expansion"] = stored.expansion
        if stored.certified is not None:
            model.__dict__["_certified"] = stored.certified
        return model

    def stored(self) -> StoredModel:
        """Return the parts of the model that are stored."""
        certified = self.__dict__.get("_certified")
        return StoredModel(self.dual, self.samples, self.status, self.counters, self.expansion, certified)

    def __getstate__(self) -> StoredModel:
        return self.stored()

    def __setstate__(self, state: StoredModel) -> None:
        self.__dict__.update(TrainedModel.from_stored(StoredModel(*state)).__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> TrainedModel:
        other = TrainedModel.__new__(TrainedModel)
        other.__dict__.update(self.__dict__)  # problem, dual and certificate are never modified in place
        return other

    def meets_violation(self, tolerance: float) -> bool:
        """Recompute the gradient and compare the violation, rounding errors included, with the tolerance.

        Where rounding errors of float64 decide, the gradient is computed in double-double arithmetic, if that takes
        about a second at most.
        """
        problem = self._posed()
        assert problem is not None
        self._gradient, error = evaluate_gradient(problem, self.dual)
        if not np.isfinite(self._gradient).all():
            raise ValueError(overflow_message(problem))
        violation = violation_of(gradient_extremes(problem, self.dual, self._gradient), self._gradient)
        rigorous = rigorous_violation(problem, self.dual, self._gradient, error)
        if violation <= tolerance < rigorous and extended_is_affordable(problem, self.dual):
            self._extended = True
            self._gradient, error = evaluate_gradient(problem, self.dual, extended=True)
            rigorous = rigorous_violation(problem, self.dual, self._gradient, error)
        self.release_kernel_values()
        return rigorous <= tolerance

    def release_kernel_values(self) -> None:
        """Drop kernel values that were computed for the fit, and remember a checksum of the training data.

        The certificate is computed from the data when it is read; they must not change until then.
        """
        problem = self._posed()
        assert problem is not None
        self._problem = problem.with_matrix(problem.matrix.uncached())
        self._checksum = self._problem.matrix.checksum()

    @property
    def dual_value(self) -> float:
        """The dual objective: from the certificate, or from the last gradient."""
        problem = self._posed()
        if problem is None or self.certificate_computed:
            return self.certificate.dual
        return problem.value(self.dual, self.gradient_for(problem))

    @cached_property
    def expansion(self) -> KernelExpansion:
        """The decision function, with the offset of the certificate or, before that is computed, of the gradient."""
        problem = self._posed()
        assert problem is not None
        assert self._formulation is not None
        return self._formulation.expand(problem, self.dual, self._offset(problem))

    def _offset(self, problem: DualProblem) -> Floats:
        """Return the offset of each group by the gradient of the solver or, if it had none, that of a sample."""
        gradient = self._gradient
        if gradient is None or not np.isfinite(gradient).any():
            return offset_of_sample(problem, self.dual)
        return interval_midpoint(*known_extremes(problem, self.dual, gradient).offset_bounds)

    def training_values(self, problem: DualProblem, formulation: Formulation, samples: int, parts: int = 1) -> Floats:
        """Return the decision value of a sample of the training data, for a bounded amount of work; NaN elsewhere.

        Of several variables of a training sample, the first ones of all samples come first. `parts` is the number of
        problems that share the work.
        """
        variables, gradient = gradient_of_sample(problem, self.dual, parts)
        product, known = np.zeros(problem.size), np.zeros(samples, dtype=bool)
        of_sample = variables % samples
        product[of_sample] = problem.linear[variables] - gradient - problem.ridge[variables] * self.dual[variables]
        known[of_sample] = True
        expansion = formulation.expand(problem, product, self._offset(problem))  # scales the product like the dual
        return np.where(known, (expansion.coefficients + expansion.offset)[:samples], np.nan)

    @property
    def known_violation(self) -> float | None:
        """The violation among the variables whose gradient the solver knew when it ended; None if it knew none."""
        problem, gradient = self._posed(), self._gradient
        if self.certificate_computed or problem is None:
            return self.certificate.violation
        if gradient is None or not np.isfinite(gradient).any():
            return None
        extremes = known_extremes(problem, self.dual, gradient)
        return violation_of(extremes, extremes.largest)

    def known_progress(self, tolerance: float) -> str:
        """Return a sentence about what the solver knew when it ended, without computing more."""
        if self.certificate_computed:
            return _certified_progress(self.certificate, tolerance)
        violation, value = self.known_violation, self.known_value
        if violation is None:
            return "It came before the gradient was computed: the model is a feasible point at the start of the solver."
        whole = self._gradient is not None and bool(np.isfinite(self._gradient).all())
        least, dual = "" if whole else "at least ", "" if value is None else f", dual value {value:.6g}"
        return (
            f"Violation {least}{violation:.3g} (tolerance {tolerance:g}){dual}, by the gradient of the solver; "
            "certificate_ has the duality gap, computed when it is read."
        )

    @property
    def known_value(self) -> float | None:
        """The dual value that the solver knew when it ended; None if it knew none."""
        problem, gradient = self._posed(), self._gradient
        if self.certificate_computed or problem is None:
            return self.certificate.dual
        if gradient is not None and np.isfinite(gradient).all():
            return problem.value(self.dual, gradient)
        return self._value if self._value is not None and np.isfinite(self._value) else None

    def known_squared_norm(self) -> float:
        """Return bᵀMb from the dual value or, where that is not known, an estimate from a sample of its terms."""
        problem = self._posed()
        assert problem is not None
        linear = inner(problem.linear, self.dual) - inner(problem.kink, np.abs(self.dual))
        ridge = inner(problem.ridge * self.dual, self.dual)
        if self.known_value is not None:
            return 2.0 * (linear - self.known_value) - ridge
        sample, gradient = gradient_of_sample(problem, self.dual)
        product = problem.linear[sample] - gradient - problem.ridge[sample] * self.dual[sample]
        of_sample = float(np.abs(self.dual[sample]).sum())
        share = float(np.abs(self.dual).sum()) / of_sample if of_sample > 0 else 0.0
        return share * inner(self.dual[sample], product)

    def gradient_for(self, problem: DualProblem) -> Floats:
        """Return the gradient of the solved problem at the solution, recomputed if it is not known."""
        known = self._gradient
        return known if known is not None and np.isfinite(known).all() else problem.gradient(self.dual)

    @property
    def certificate_computed(self) -> bool:
        """Whether the certificate is known already."""
        return "_certified" in self.__dict__

    @property
    def certificate(self) -> Certificate:
        """The certificate of optimality, computed when it is first read."""
        return self._certified[0]

    @property
    def geometry(self) -> Any:
        """Support vectors, slacks and margin, as the formulation defines them."""
        return self._certified[1]

    @cached_property
    def _certified(self) -> tuple[Certificate, Any]:
        problem, formulation, known = self._posed(), self._formulation, self.__dict__.get("_certified")
        if known is not None:  # another thread computed it in the meantime
            found: tuple[Certificate, Any] = known
            return found
        if problem is None or formulation is None:
            raise AttributeError(NOT_COMPUTED)
        if self._checksum is not None and self._checksum != problem.matrix.checksum():
            raise RuntimeError(DATA_CHANGED)
        certificate = certify(problem, self.dual, extended=self._extended or None)
        certified = certificate, formulation.read(problem, self.dual, certificate, self.samples)
        if "expansion" not in self.__dict__:
            self.__dict__["expansion"] = formulation.expand(problem, self.dual, certificate.offset)
        self.__dict__["_certified"] = certified
        self._gradient = None
        return certified

    def training_problem(self) -> tuple[DualProblem, Formulation]:
        """Return the problem that was solved and its formulation; raise if the training data are not there any more."""
        problem, formulation = self._posed(), self._formulation
        if problem is None or formulation is None:
            raise AttributeError(NO_TRAINING_DATA)
        if self._checksum is not None and self._checksum != problem.matrix.checksum():
            raise RuntimeError(DATA_CHANGED_SINCE)
        return problem, formulation

    def _posed(self) -> DualProblem | None:
        """Return the problem; None for a stored model, which has no training data."""
        problem = self._problem
        if problem is None or isinstance(problem, DualProblem):
            return problem
        self._problem = posed = problem()
        return posed


def _certified_progress(certificate: Certificate, tolerance: float) -> str:
    return (
        f"Violation {certificate.violation:.3g} (tolerance {tolerance:g}), "
        f"duality gap {certificate.gap:.3g} (relative gap {certificate.relative_gap:.2g})."
    )


@dataclass(frozen=True)
class TrainedLinearModel:
    """The solution of one dual problem in primal form, f(x) = weights · x + offset, with its certificate.

    Attributes
    ----------
    weights : float array of shape (features,), or (functions, features) of an all-in-one model
    offset : float, or an array with one for each function
    dual : float array
        The dual vector, from which another fit can start.
    samples : int array
        The training rows of the problem.
    certificate : Certificate
        Its primal value is that of the weights.
    status : Status
    counters : Counters
    """

    weights: Floats = field(repr=False)
    offset: float | Floats
    dual: Floats = field(repr=False)
    samples: Indices = field(repr=False)
    certificate: Certificate
    status: Status
    counters: Counters

    @property
    def known_violation(self) -> float:
        """The violation, from the certificate."""
        return self.certificate.violation

    def known_progress(self, tolerance: float) -> str:
        """Return a sentence about how far the model is from the tolerance."""
        return _certified_progress(self.certificate, tolerance)
