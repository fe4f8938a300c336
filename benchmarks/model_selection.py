"""Cross-validated search of C and γ: paths on shared kernel matrices, independent fits, scikit-learn's GridSearchCV.

    python -m benchmarks.model_selection grid FOLDER [--rows 5000]       the whole grid, and its cost beside one fit
    python -m benchmarks.model_selection peers FOLDER [--rows 5000]      a part of it, with scikit-learn
    python -m benchmarks.model_selection mnist FOLDER [--rows 10000]     ten classes, 5 × 5 points
    python -m benchmarks.model_selection identity FOLDER                 held-out predictions on real data, both ways
    python -m benchmarks.model_selection growth FOLDER [--rows ROWS]     time and memory from 1,000 rows on
    python -m benchmarks.model_selection prune FOLDER                    the whole grid without points that cannot win
    python -m benchmarks.model_selection proofs FOLDER                   held-out signs that a gap proves

FOLDER has the public files that the names say; covtype is standardised. The grid is C = 2^-3, 2^-1, …, 2^15 and
γ = 2^-15, 2^-13, …, 2^3, five folds. Processor seconds are those of all threads; on a computer with other work wall
time says little. Tuned on covtype; usps, letter and splice were kept aside.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.peers import loading
from maxmargin import SVC, grid_search
from maxmargin.resources import default_cache_bytes
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.path_trials import PathTrials, TrialPath
from maxmargin.selection.kernel_matrices import matrix_bytes

COSTS = tuple(2.0**power for power in range(-3, 17, 2))
WIDTHS = tuple(2.0**power for power in range(-15, 5, 2))
PART = slice(3, 7)
FOLDS = 5


class Cost(NamedTuple):
    """Wall and processor seconds of this process and its children."""

    wall: float
    processor: float


def measured(run: Callable[[], Any]) -> tuple[Any, Cost]:
    """Return the result of a call and its cost."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, used = perf_counter(), process_time()
    result = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return result, Cost(perf_counter() - began, process_time() - used + others)


@contextmanager
def independent_fits() -> Iterator[None]:
    """Train every trial alone within the context."""
    original = PathTrials.__dict__["of"]
    PathTrials.of = classmethod(lambda *_: None)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        PathTrials.of = original  # type: ignore[method-assign]


def show(name: str, cost: Cost, more: str = "") -> None:
    print(f"| {name} | {cost.wall:.2f} | {cost.processor:.2f} | {more} |", flush=True)


def header() -> None:
    print("| search | wall s | processor s | |\n|---|---:|---:|---|")


def covtype(folder: Path, rows: int) -> loading.Data:
    return loading.standardised(loading.covtype(folder, rows))


def grid(folder: Path, rows: int) -> None:
    X, y = covtype(folder, rows)
    header()
    found, cost = measured(lambda: grid_search(X, y, Cs=COSTS, gammas=WIDTHS, folds=FOLDS))
    show(f"covtype {rows}, 10 × 10 × 5, paths", cost, f"best {found.best.point}: {found.best.mean:.4f}")
    with independent_fits():
        alone, cost = measured(lambda: grid_search(X, y, Cs=COSTS, gammas=WIDTHS, folds=FOLDS))
    show(f"covtype {rows}, 10 × 10 × 5, independent fits", cost, f"best {alone.best.point}: {alone.best.mean:.4f}")
    _, cost = measured(lambda: found.best_estimator.fit(X, y))
    show("one fit at the best point", cost)
    means = [{score.point: score.mean for score in result.scores} for result in (found, alone)]
    difference = max(abs(means[0][point] - means[1][point]) for point in means[0])
    print(f"\nlargest difference of the mean scores: {difference:.2g}")


def peers(folder: Path, rows: int) -> None:
    X, y = covtype(folder, rows)
    part = {"C": COSTS[PART], "gamma": WIDTHS[PART]}
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    header()
    _, cost = measured(lambda: grid_search(X, y, Cs=part["C"], gammas=part["gamma"], folds=FOLDS))
    show(f"covtype {rows}, 4 × 4 × 5, paths", cost)
    search = GridSearchCV(svm.SVC(cache_size=1000), part, cv=folds, n_jobs=2, refit=False)
    with parallel_config(backend="threading"):  # its fits release the interpreter lock; their time is counted
        _, other = measured(lambda: search.fit(X, y))
    show(
        f"covtype {rows}, 4 × 4 × 5, scikit-learn", other, f"{other.processor / cost.processor:.1f} times the processor"
    )


def mnist(folder: Path, rows: int) -> None:
    X, y = loading.mnist(folder, rows)
    Cs, gammas = [2.0**power for power in (-1, 1, 3, 5, 7)], [2.0**power for power in (-9, -8, -7, -6, -5)]
    header()
    found, cost = measured(lambda: grid_search(X, y, Cs=Cs, gammas=gammas, folds=FOLDS))
    show(f"mnist {rows}, 5 × 5 × 5, paths", cost, f"best {found.best.point}: {found.best.mean:.4f}")
    with independent_fits():
        _, alone = measured(lambda: grid_search(X, y, Cs=Cs[2:3], gammas=gammas[2:3], folds=FOLDS))
    show("one point of it, independent fits", alone, "× 25 for the grid")
    single = GridSearchCV(svm.SVC(cache_size=1000), {"C": Cs[2:3], "gamma": gammas[2:3]}, cv=FOLDS, n_jobs=2)
    with parallel_config(backend="threading"):
        _, other = measured(lambda: single.set_params(refit=False).fit(X, y))
    show("one point of it, scikit-learn", other, f"the grid: {25 * other.processor / cost.processor:.1f} times")


def prune(folder: Path) -> None:
    """Search the grid, whole and without the points that cannot win; of these data only covtype was tuned on."""
    text = partial(loading.libsvm_text, folder)
    sets = {
        "covtype": covtype(folder, 5000),
        "a9a": tuple(part[:3000] for part in text("a9a.libsvm")),
        "ijcnn1": tuple(part[:5000] for part in text("ijcnn1.libsvm.bz2")),
        "usps": tuple(part[:1200] for part in text("usps.libsvm.xz")),
    }
    print("| data | rows | best accuracy | processor s | with prune | trials | with prune | points dropped |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, (X, y) in sets.items():
        runs = [
            measured(lambda some=some: grid_search(X, y, Cs=COSTS, gammas=WIDTHS, folds=FOLDS, prune=some))  # noqa: B023
            for some in (False, True)
        ]
        (whole, cost), (part, less) = runs
        assert part.best.point == whole.best.point
        cells = f"{len(y):,}", f"{whole.best.mean:.4f}", f"{cost.processor:.2f}", f"{less.processor:.2f}"
        trials = len(whole.trials), len(part.trials), len(part.pruned or ())
        print(f"| {name} |", " | ".join([*cells, *map(str, trials)]), "|", flush=True)


def real_sets(folder: Path) -> dict[str, loading.Data]:
    text = partial(loading.libsvm_text, folder)
    letter = text("letter.scale.libsvm")
    return {
        "heart": text("heart_scale.libsvm"),
        "german": text("german.numer_scale.libsvm"),
        "covtype": covtype(folder, 1000),
        "splice": loading.standardised(text("splice.libsvm")),
        "usps": tuple(part[:1200] for part in text("usps.libsvm.xz")),
        "letter": tuple(part[:1500] for part in letter),
    }  # type: ignore[return-value]


def identity(folder: Path) -> None:
    """Held-out predictions of paths and of independent fits, and where they differ the value of an accurate fit."""
    print("| data | rows | classes | trials | equal | samples that differ | largest value of these at tol=1e-7 |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (X, y) in real_sets(folder).items():
        widths = [w / X.shape[1] * 8 for w in WIDTHS[2:9:2]]
        scorer = FoldScorer.of(SVC(decision_function_shape="ovo"), X, y, FOLDS, None, 0)
        trials = [(Point(C, w), fold) for w in widths for C in COSTS[::2] for fold in range(FOLDS)]
        found = [values for path in paths_of(scorer, trials) for values in differences(scorer, *path)]
        differ = np.concatenate(found)
        largest = f"{differ.max():.1g}" if len(differ) else ""
        cells = (name, len(y), len(np.unique(y)), len(trials), sum(len(values) == 0 for values in found), len(differ))
        print("|", " | ".join(map(str, cells)), f"| {largest} |", flush=True)


def paths_of(scorer: FoldScorer, trials: list[tuple[Point, int]]) -> Iterator[tuple[TrialPath, Iterator[Any]]]:
    """Yield the trials of each path, and its models."""
    together = PathTrials.of(scorer, trials, 1)
    assert together is not None
    for path in together.paths:
        yield path, together._engine.models(path[0][1], [point.parameters for point, _ in path])


def differences(scorer: FoldScorer, path: TrialPath, models: Iterator[Any]) -> Iterator[np.ndarray]:
    """Yield of each trial the accurate decision values of the held-out samples with another prediction.

    Of several classes it is the largest value, in absolute terms, of a pair of classes with another sign.
    """
    for (point, fold), model in zip(path, models, strict=True):
        X, _ = scorer.split_data(fold)[1]
        held, fitted = scorer.splits[fold].test[:, None], clone(scorer.estimator).set_params(**point.parameters)
        scorer.trained(fitted, fold)
        differ = np.flatnonzero(fitted.predict(X) != (fitted.predict(X) if model is None else model.predict(held)))
        if len(differ) == 0:
            yield np.empty(0)
            continue
        values = [
            one.reshape(len(X), -1)[differ] for one in (model.decision_function(held), fitted.decision_function(X))
        ]
        scorer.trained(fitted.set_params(tol=1e-7), fold)
        exact = np.abs(fitted.decision_function(X).reshape(len(X), -1)[differ])
        yield np.where(np.sign(values[0]) != np.sign(values[1]), exact, 0.0).max(axis=1)


def growth(folder: Path, only: int | None = None) -> None:
    print("| rows | points | way | wall s | processor s | one fit, processor s | peak memory MB |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    middle = {"Cs": [0.5, 2.0, 8.0, 32.0], "gammas": [2.0**-7, 2.0**-5, 2.0**-3]}
    small = {"Cs": [2.0, 8.0], "gammas": [2.0**-5]}
    for rows in (1000, 2000, 5000, 10_000, 20_000, 50_000) if only is None else (only,):
        X, y = covtype(folder, rows)
        part = middle if rows <= 20_000 else small
        found, cost = measured(lambda: grid_search(X, y, folds=FOLDS, **part))  # noqa: B023
        way = "paths" if matrix_bytes(rows) <= default_cache_bytes() else "independent fits"
        _, one = measured(lambda: found.best_estimator.fit(X, y))  # noqa: B023
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {rows} | {len(found.scores)} | {way} | {cost.wall:.1f} | {cost.processor:.1f} | {one.processor:.2f} "
            f"| {peak:.0f} |",
            flush=True,
        )


def proofs(folder: Path) -> None:
    """At the tolerance of a fit: which held-out signs its gap and the interval of its offset prove.

    The last column takes the curvature in the direction of a sample, when the free variables move as well, instead of
    k(x, x): an upper bound of what any proof by the gap can show, since bounds of the free variables are left out.
    """
    X, y = covtype(folder, 1000)
    train, test = next(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    print("| C | γ | gap | √(2 gap) | proved signs of held-out samples | at most |\n|---:|---:|---:|---:|---:|---:|")
    for C in COSTS[::3]:
        for width in WIDTHS[2:9:3]:
            for tol in (1e-3, 1e-6):
                model = SVC(C=C, gamma=width, tol=tol, solver="block").fit(X[train], y[train])
                certificate = model.certificate_
                distance = np.sqrt(2.0 * max(certificate.gap, 0.0))
                slack = distance + np.ptp(certificate.offset_interval) + certificate.violation
                proved = np.mean(np.abs(model.decision_function(X[test])) > slack)
                values, spans = np.abs(model.decision_function(X[test])), held_out_spans(model, X[test])
                most = np.mean(values > distance * spans)
                print(
                    f"| {C:g} | {width:g} | {certificate.gap:.2g} | {distance:.2g} | {proved:.0%} (tol {tol:g}) | "
                    f"{most:.0%} |"
                )


def held_out_spans(model: SVC, X: Any) -> np.ndarray:
    """Return the distance of samples from the affine span of the free support vectors."""
    free = model.support_vectors_[np.abs(model.dual_coef_[0]) < model.C]
    if not len(free):
        return np.ones(len(X))
    own = rbf_kernel(free, gamma=model.gamma) + 1e-10 * np.eye(len(free))
    border = np.ones((len(free), 1))
    equations = np.block([[own, border], [border.T, np.zeros((1, 1))]])
    columns = np.vstack([rbf_kernel(free, X, gamma=model.gamma), np.ones((1, len(X)))])
    explained = np.einsum("ij,ij->j", columns, np.linalg.solve(equations, columns))
    return np.sqrt(np.maximum(1.0 - explained, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("grid", "peers", "mnist", "identity", "growth", "proofs", "prune"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int)
    arguments = parser.parse_args()
    sized: dict[str, tuple[Callable[[Path, int], None], int]] = {
        "grid": (grid, 5000), "peers": (peers, 5000), "mnist": (mnist, 10_000)
    }  # fmt: skip
    if arguments.part in sized:
        run, rows = sized[arguments.part]
        run(arguments.folder, arguments.rows or rows)
    else:
        alone = {"identity": identity, "growth": partial(growth, only=arguments.rows), "proofs": proofs, "prune": prune}
        alone[arguments.part](arguments.folder)


if __name__ == "__main__":
    main()
