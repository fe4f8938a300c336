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
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, offset_bounds, violation_of
from maxmargin.training.problem_scale import overflow_message

#: Poses a dual problem when it is needed.
Pose = Callable[[], DualProblem]

NOT_COMPUTED = (
    "the certificate was not computed before the model was pickled or saved, and it needs the training data; read "
    "certificate_ before pickling or saving, or fit again"
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
        self._checksum = checksum
        if expansion is not None:
            self.__dict__["expansion"] = expansion

    @classmethod
    def from_stored(cls, stored: StoredModel) -> TrainedModel:
        """Return a model that was stored; without training data it has a certificate only if one was stored."""
        model = cls.__new__(cls)
        model._problem = model._formulation = model._gradient = model._checksum = None
        model.dual, model.samples, model.status, model.counters = stored[:4]
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
        """Recompute the gradient in double precision and compare the violation with the tolerance."""
        problem = self._posed()
        assert problem is not None
        self._gradient = problem.gradient(self.dual)
        if not np.isfinite(self._gradient).all():
            raise ValueError(overflow_message(problem))
        extremes = gradient_extremes(problem, self.dual, self._gradient)
        self.release_kernel_values()
        return violation_of(extremes, self._gradient) <= tolerance

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
        return 0.5 * inner(self.dual, problem.linear + self.gradient_for(problem))

    @cached_property
    def expansion(self) -> KernelExpansion:
        """The decision function, with the offset of the certificate or, before that is computed, of the gradient."""
        problem = self._posed()
        assert problem is not None
        assert self._formulation is not None
        assert self._gradient is not None
        low, high = offset_bounds(problem, self.dual, self._gradient)
        return self._formulation.expand(problem, self.dual, interval_midpoint(low, high))

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
        certificate = certify(problem, self.dual)
        certified = certificate, formulation.read(problem, self.dual, certificate, self.samples)
        if "expansion" not in self.__dict__:
            self.__dict__["expansion"] = formulation.expand(problem, self.dual, certificate.offset)
        self.__dict__["_certified"] = certified  # before the data are released, for concurrent readers
        self._problem = self._formulation = self._gradient = None
        return certified

    def _posed(self) -> DualProblem | None:
        """Return the problem, until the certificate is computed."""
        problem = self._problem
        if problem is None or isinstance(problem, DualProblem):
            return problem
        self._problem = posed = problem()
        return posed


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
