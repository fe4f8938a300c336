"""Random fits of extreme scales: targets, costs, weights and features far from 1, in all estimators.

`python -m tests.extreme_scales --fits 5000` searches for fits that do not end, leak a warning of NumPy, raise something
other than one clear ValueError, or carry a certificate that is not finite or contradicts their status.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin

#: CPU seconds in which every fit must end; the fits have at most 60 samples.
MAX_CPU_SECONDS = 10.0

#: What an error message about scales must say.
CLEAR = ("overflow", "scale the", "not finite", "nu is infeasible", "kernel is indefinite", "no positive eigenvalue")

CLASSIFIERS = ("SVC", "NuSVC", "LSSVC", "LinearSVC", "KernelApproximationSVC", "OnlineSVC", "MKLSVC")
REGRESSORS = ("SVR", "NuSVR", "LSSVR", "QuantileSVR", "LinearSVR", "MKLSVR")
DETECTORS = ("OneClassSVM", "SVDD", "LinearOneClassSVM", "OnlineOneClassSVM", "MKLOneClassSVM")
ESTIMATORS = (*CLASSIFIERS, *REGRESSORS, *DETECTORS, "RankSVC")

WITHOUT_KERNEL = ("LinearSVC", "LinearSVR", "LinearOneClassSVM", "MKLSVC", "MKLSVR", "MKLOneClassSVM")
WITH_COST = ("SVC", "MKLSVC", "LSSVC", "LinearSVC", "KernelApproximationSVC", "OnlineSVC", *REGRESSORS, "RankSVC")


class EndlessFitError(Exception):
    """A fit that exceeded its CPU time."""


@dataclass
class ExtremeCase:
    """The data and parameters of one fit."""

    name: str
    X: Any
    y: Any
    sample_weight: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    about: str = ""

    def estimator(self) -> Any:
        """Return the estimator, not fitted."""
        return getattr(maxmargin, self.name)(**self.parameters)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.name}({options}) on {self.about}"


def random_case(seed: int, name: str | None = None) -> ExtremeCase:
    """Return the case of a seed: one to three of its scales are extreme. Rankings have a variable for each pair."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(ESTIMATORS)) if name is None else name
    extreme = set(rng.choice(["X", "y", "C", "weight", "columns"], size=rng.integers(1, 4)))
    n, d = int(rng.integers(6, 20 if name == "RankSVC" else 60)), int(rng.integers(1, 6))
    single = rng.random() < 0.3
    X = rng.normal(size=(n, d))
    signal_ = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    x_scale = 10.0 ** (rng.uniform(-35, 35) if single else rng.uniform(-150, 150)) if "X" in extreme else 1.0
    X = X * x_scale
    if "columns" in extreme:
        X = X * 10.0 ** (rng.uniform(-3, 3, d) if single else rng.uniform(-8, 8, d))
    with np.errstate(over="ignore"):
        X = X.astype(np.float32) if single else X
    X = np.where(np.isfinite(X), X, 0.0).astype(X.dtype)
    zeros = rng.random() < 0.3
    if zeros:
        X = sparse.csr_matrix(np.where(rng.random(X.shape) < 0.5, X, 0))
    parameters, y_scale = _parameters(rng, name, extreme), 1.0
    if name in REGRESSORS:
        y_scale = 10.0 ** rng.uniform(-200, 200) if "y" in extreme else 1.0
        y: Any = y_scale * signal_
        if "epsilon" in parameters and rng.random() < 0.7:
            parameters["epsilon"] = float(parameters["epsilon"] * y_scale)
        if rng.random() < 0.15 and name != "LinearSVR":
            y = np.column_stack([y, -y])
    elif name == "RankSVC":
        y = np.arange(n) % 4 + np.round(signal_)
    else:
        classes = 3 if rng.random() < 0.25 else 2
        y = np.digitize(signal_, np.quantile(signal_, np.arange(1, classes) / classes))
    weight = _weights(rng, n) if "weight" in extreme else None
    weights = "none" if weight is None else f"{weight.min():.1e}..{weight.max():.1e}"
    about = (
        f"n={n} d={d} {'float32' if single else 'float64'} {'sparse' if zeros else 'dense'} "
        f"X~{x_scale:.1e} y~{y_scale:.1e} weights={weights} seed={seed}"
    )
    return ExtremeCase(name, X, y, weight, parameters, about)


def _weights(rng: np.random.Generator, n: int) -> Any:
    """Return equal weights far from 1, one far from the others, or all different."""
    kind = rng.integers(3)
    if kind == 0:
        return np.full(n, 10.0 ** rng.uniform(-30, 30))
    if kind == 1:
        weights = np.ones(n)
        weights[rng.integers(n)] = 10.0 ** rng.uniform(-30, 30)
        return weights
    return 10.0 ** rng.uniform(-30, 30, n)


def _parameters(rng: np.random.Generator, name: str, extreme: set[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if name not in WITHOUT_KERNEL:
        parameters["kernel"] = str(rng.choice(["rbf", "linear", "poly", "sigmoid"], p=[0.4, 0.4, 0.15, 0.05]))
        if rng.random() < 0.2:
            parameters["gamma"] = float(10.0 ** rng.uniform(-3, 3))
        if rng.random() < 0.2 and name not in ("KernelApproximationSVC",):
            parameters["coef0"] = 1.0
    if name in WITH_COST and "C" in extreme:
        parameters["C"] = float(10.0 ** rng.uniform(-300, 300))
    if rng.random() < 0.4:
        parameters["tol"] = float(10.0 ** rng.choice([-10, -6, -1]))
    if name in ("SVR", "LinearSVR"):
        parameters["epsilon"] = float(rng.choice([0.0, 0.1]))
        if rng.random() < 0.3:
            parameters["loss"] = "squared_epsilon_insensitive"
    if name in ("SVC", "LinearSVC") and rng.random() < 0.3:
        parameters["loss"] = str(rng.choice(["hinge", "squared_hinge"]))
    if name == "LinearSVC" and rng.random() < 0.2:
        parameters |= {"penalty": "l1", "loss": "squared_hinge"}
    if name in ("SVC", "LinearSVC") and parameters.get("penalty") != "l1" and rng.random() < 0.15:
        choices = ["crammer_singer"] if name == "LinearSVC" else ["crammer_singer", "weston_watkins", "ovr"]
        parameters |= {"multi_class": str(rng.choice(choices)), "loss": "hinge"}
    if name in ("SVR", "NuSVR", "LinearSVR") and rng.random() < 0.3:
        parameters["noise"] = True
    calibrated = ("SVC", "NuSVC", "LinearSVC", "KernelApproximationSVC", "OneClassSVM", "LinearOneClassSVM")
    if name in calibrated and "multi_class" not in parameters and rng.random() < 0.25:
        parameters["probability"] = True
    if name in ("NuSVC", "NuSVR", "OneClassSVM", "SVDD", "LinearOneClassSVM", "OnlineOneClassSVM"):
        parameters["nu"] = float(rng.choice([0.1, 0.3]))
    if name in ("SVC", "SVR", "LSSVC", "LSSVR", "NuSVC", "QuantileSVR", "LinearSVC") and rng.random() < 0.2:
        parameters["fit_intercept"] = False
    if name in ("KernelApproximationSVC",):
        parameters["n_components"] = 20
    if name in ("OnlineSVC", "OnlineOneClassSVM") and rng.random() < 0.5:
        parameters["finishing"] = True
    return parameters


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise EndlessFitError after so many CPU seconds, where the platform has such a timer."""

    def stop(number: int, frame: Any) -> None:
        raise EndlessFitError(f"the fit did not end in {seconds:g} s of CPU time")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def check(case: ExtremeCase) -> str:
    """Fit a case and return how it ended; raise AssertionError with what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*probability.*", category=FutureWarning)
        with cpu_limit(MAX_CPU_SECONDS):
            try:
                model = case.estimator()
                weight = {} if case.sample_weight is None else {"sample_weight": case.sample_weight}
                if case.name in DETECTORS:
                    model.fit(case.X, **weight)
                else:
                    model.fit(case.X, case.y, **weight)
            except ValueError as error:
                message = str(error)
            else:
                return _check_fitted(case, model)
    assert any(phrase in message for phrase in CLEAR), f"unclear error: {message}"
    return f"ValueError: {message[:150]}"


def _check_fitted(case: ExtremeCase, model: Any) -> str:
    try:
        certificates = model.certificate_
    except ValueError as error:
        raise AssertionError(f"certificate_ raised: {error}") from error
    certificates = certificates if isinstance(certificates, list) else [certificates]
    statuses = [None] * len(certificates) if case.name.startswith("Online") else model.status_
    statuses = statuses if isinstance(statuses, list) else [statuses]
    ended = Counter("streamed" if status is None else status.name for status in statuses)
    for certificate, status in zip(certificates, statuses, strict=True):
        check_certificate(case, model, certificate, status)
    values = model.predict(case.X) if case.name in REGRESSORS else model.decision_function(case.X)
    assert np.isfinite(values).all(), "decision values that are not finite"
    if case.parameters.get("noise"):
        assert np.isfinite(model.predict_interval(case.X)).all(), "intervals that are not finite"
    if case.parameters.get("probability"):
        assert np.isfinite(model.predict_proba(case.X)).all(), "probabilities that are not finite"
    return "+".join(sorted(ended))


def check_certificate(case: ExtremeCase, model: Any, certificate: Any, status: Any) -> None:
    """Assert that a certificate is finite, its dual value at most its primal one, and that the status follows."""
    numbers = [certificate.primal, certificate.dual, certificate.gap, certificate.violation, certificate.squared_norm]
    assert np.isfinite(numbers).all(), f"certificate not finite: {certificate} ({status})"
    if case.parameters.get("kernel") != "sigmoid":  # which is indefinite
        assert certificate.dual <= certificate.primal, f"dual above primal: {certificate}"
        assert not certificate.indefinite, f"called indefinite: {certificate}"
    if status is not None and status.converged:
        tol = case.parameters.get("tol", model.tol)
        relative = case.name in (*WITHOUT_KERNEL, "KernelApproximationSVC")
        reached = certificate.relative_gap if relative else certificate.violation
        if case.name not in (
            "LinearOneClassSVM",
            "LinearSVR",
        ):  # whose optimum may be 0: they have an absolute one, too
            assert reached <= 1.0000001 * tol, f"CONVERGED at {reached:.3g}, tolerance {tol:g}: {certificate}"


def main() -> int:
    """Search and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--estimator", choices=ESTIMATORS, default=None)
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    ended: Counter[str] = Counter()
    failures = 0
    for seed in range(options.first, options.first + options.fits):
        case, started = random_case(seed, options.estimator), process_time()
        try:
            result = check(case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failures += 1
            where = traceback.extract_tb(error.__traceback__)
            last = [f for f in where if "maxmargin" in f.filename][-1:]
            place = f"{last[0].filename.split('maxmargin/')[-1]}:{last[0].lineno}" if last else "check"
            print(f"FAIL {type(error).__name__}: {str(error)[:160]} @ {place} | {case}", flush=True)
            if options.traceback:
                traceback.print_exc()
            result = f"FAIL {type(error).__name__} {place}"
        ended[result] += 1
        seconds = process_time() - started
        if seconds > 3.0:
            print(f"SLOW {seconds:.1f} s: {case}", flush=True)
    print(f"{options.fits} fits, {failures} failures")
    for result, count in ended.most_common():
        print(f"{count:6d}  {result}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
