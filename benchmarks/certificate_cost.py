"""What a certificate costs, as a share of the fit that it belongs to.

    python -m benchmarks.certificate_cost                  # all cases, about a minute
    python -m benchmarks.certificate_cost --only SVR       # those whose names contain one of the words

Estimators with a kernel compute it when it is first read, after the fit; linear ones during the fit, whose end it
decides, and its share there is that of all verifications. Times are processor times of one thread, the least of three
runs, so that other work on the computer matters little.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.training.linear_verification import LinearVerifier

RUNS = 3


def samples(n: int, features: int) -> tuple[Any, Any, Any]:
    """Return samples, labels of classes that overlap, and noisy targets."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, features))
    labels = np.where(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + random.normal(size=n) > 0, 1, -1)
    return X, labels, np.sin(X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n)


#: Estimators, the part of `samples` that they fit, and the sizes.
CASES: list[tuple[Callable[[], Any], int | None, int, int]] = [
    (lambda: mm.SVC(n_jobs=1), 1, 200, 10),
    (lambda: mm.SVC(n_jobs=1), 1, 2_000, 10),
    (lambda: mm.SVC(n_jobs=1), 1, 20_000, 10),
    (lambda: mm.SVR(n_jobs=1), 2, 200, 10),
    (lambda: mm.SVR(n_jobs=1), 2, 5_000, 10),
    (lambda: mm.OneClassSVM(n_jobs=1, nu=0.1), None, 200, 10),
    (lambda: mm.OneClassSVM(n_jobs=1, nu=0.1), None, 20_000, 10),
    (lambda: mm.LinearSVC(n_jobs=1), 1, 2_000, 100),
    (lambda: mm.LinearSVC(n_jobs=1), 1, 20_000, 100),
    (lambda: mm.LinearSVC(n_jobs=1, loss="hinge"), 1, 20_000, 100),
]


class VerificationTime:
    """Adds up the processor time of the verifications of linear fits."""

    def __enter__(self) -> VerificationTime:
        self.seconds, self._whole = 0.0, LinearVerifier.verify

        def verify(verifier: LinearVerifier, solution: Any) -> Any:
            began = process_time()
            try:
                return self._whole(verifier, solution)
            finally:
                self.seconds += process_time() - began

        LinearVerifier.verify = verify  # type: ignore[method-assign]
        return self

    def __exit__(self, *about: object) -> None:
        LinearVerifier.verify = self._whole  # type: ignore[method-assign]


def measure(make: Callable[[], Any], data: tuple[Any, ...]) -> tuple[float, float, Any]:
    """Return the seconds of a fit and of its certificate, and the fitted model."""
    gc.collect()
    with VerificationTime() as verification:
        began = process_time()
        model = make().fit(*data)
        fitted = process_time()
        _ = model.certificate_
        read = process_time() - fitted
    return fitted - began, verification.seconds or read, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="words of which a name must contain one")
    only = parser.parse_args().only
    print("| estimator | samples | features | fit, s | certificate, s | share | relative gap |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for make, target, n, features in CASES:
        name = repr(make().set_params(n_jobs=None))
        if not any(word in name for word in only):
            continue
        parts = samples(n, features)
        data = (parts[0],) if target is None else (parts[0], parts[target])
        measure(make, data)  # imports
        found = [measure(make, data) for _ in range(RUNS)]
        fit, certificate = (min(each[k] for each in found) for k in (0, 1))
        gap = found[0][2].certificate_.relative_gap
        print(
            f"| `{name}` | {n:,} | {features} | {fit:.4f} | {certificate:.4f} | {certificate / fit:.0%} | {gap:.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
