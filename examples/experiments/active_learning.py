"""Label efficiency of active learning: accuracy against the number of labels for all query strategies.

USPS is the ten-class problem (7,291 samples in the pool, 2,007 for testing), one-vs-rest. Covertype is type 2 against
the rest, with a pool of 20,000 and 10,000 for testing, resampled for each run. Without these data (``--data DIR``) the
digits of scikit-learn and a chessboard are used.

"gradient" is LASVM's strategy, which uses the labels: it is meant for too many data, not for expensive labels, and is
therefore drawn dotted. Without labels it is "margin among 50". All strategies start with the same 20 random labels and
retrain after every 10. Writes a plot and a table:

    python -m examples.experiments.active_learning [--data DIR] [--quick --output DIR]
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from examples.experiments import common
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, ActiveLearner
from maxmargin.datasets import chessboard

BEGINNING, BATCH = 20, 10

#: Title, colour (Okabe and Ito) and line of each strategy.
STYLES = {
    "random": ("random", "#000000", "--"),
    "margin": ("margin", "#0072B2", "-"),
    "margin_of_candidates": ("margin among 50", "#E69F00", "-"),
    "auto_active": ("auto-active", "#009E73", "-."),
    "gradient": ("gradient, sees the labels", "#D55E00", ":"),
}


class Split(NamedTuple):
    """A pool and a test set."""

    pool: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A data set, its estimator and the number of labels; `splits` has one element for each run."""

    name: str
    title: str
    model: SVC
    n_labels: int
    splits: Iterator[Split]


class Curves(NamedTuple):
    """Accuracies of a case by strategy, of shape (runs, counts), at common counts of labels."""

    case: Case
    counts: np.ndarray
    accuracy: dict[str, np.ndarray]


def usps(folder: Path, runs: int, n_labels: int) -> Case:
    def read(name: str) -> tuple[np.ndarray, np.ndarray]:
        with lzma.open(folder / name) as file:
            X, y = load_svmlight_file(io.BytesIO(file.read()), n_features=256)
        return X.toarray(), y.astype(int) - 1

    split = Split(read("usps.libsvm.xz"), read("usps.t.libsvm.xz"))
    model = SVC(C=10, gamma=0.01, multi_class="ovr")
    return Case("usps", "USPS, ten digits", model, n_labels, iter([split] * runs))


def covtype(folder: Path, runs: int, n_labels: int) -> Case:
    with lzma.open(folder / "covtype_binary.npy.xz") as file:
        table = np.load(io.BytesIO(file.read()))

    def splits() -> Iterator[Split]:
        for run in range(runs):
            part = table[np.random.default_rng(run).permutation(len(table))[:30_000]]
            X, y = part[:, 1:].astype(float), part[:, 0].astype(int)
            X[:, :10] = StandardScaler().fit_transform(X[:, :10])  # the others are binary
            yield Split((X[:20_000], y[:20_000]), (X[20_000:], y[20_000:]))

    return Case("covtype", "Covertype, type 2 against the rest", SVC(C=10, gamma=0.1), n_labels, splits())


def digits(runs: int, n_labels: int) -> Case:
    def splits() -> Iterator[Split]:
        X, y = load_digits(return_X_y=True)
        for run in range(runs):
            order = np.random.default_rng(run).permutation(len(y))
            pool, test = order[:1200], order[1200:]
            yield Split((X[pool] / 16, y[pool]), (X[test] / 16, y[test]))

    model = SVC(C=10, gamma=0.1, multi_class="ovr")
    return Case("digits", "small digits of scikit-learn", model, n_labels, splits())


def board(runs: int, n_labels: int) -> Case:
    def splits() -> Iterator[Split]:
        for run in range(runs):
            yield Split(chessboard(2000, seed=2 * run), chessboard(2000, seed=2 * run + 1))

    return Case("chessboard", "chessboard of 4 × 4 fields", SVC(C=1000, gamma=1.0), n_labels, splits())


def measure(case: Case) -> Curves:
    """Return the accuracy of each strategy after each batch of labels."""
    counts = np.arange(BEGINNING, case.n_labels + 1, BATCH)
    accuracy: dict[str, list[list[float]]] = {strategy: [] for strategy in STYLES}
    for run, (pool, test) in enumerate(case.splits):
        for strategy in STYLES:
            learner = ActiveLearner(case.model, strategy, n_random=BEGINNING, random_state=run)
            learner.set_pool(pool[0], pool[1] if strategy == "gradient" else None)
            learner.run(label=pool[1], n_labels=BEGINNING, batch=BEGINNING)
            scores = [learner.estimator_.score(*test)]
            for _ in counts[1:]:
                learner.run(label=pool[1], n_labels=BATCH, batch=BATCH)
                scores.append(learner.estimator_.score(*test))
            accuracy[strategy].append(scores)
        print(f"{case.name}: run {run + 1} done", flush=True)
    return Curves(case, counts, {strategy: np.array(runs) for strategy, runs in accuracy.items()})


def needed(curves: Curves, strategy: str, level: float) -> int | None:
    """Return the number of labels from which the mean accuracy stays at or above a level; None if there is none."""
    below = np.flatnonzero(curves.accuracy[strategy].mean(axis=0) < level)
    first = below[-1] + 1 if len(below) else 0
    return int(curves.counts[first]) if first < len(curves.counts) else None


def table(curves: Curves) -> str:
    """Return accuracies at some counts, and the numbers of labels that match random selection."""
    places = [np.searchsorted(curves.counts, share * curves.counts[-1]) for share in (0.1, 0.25, 0.5, 1.0)]
    levels = [float(curves.accuracy["random"].mean(axis=0)[place]) for place in places[1:]]
    heads = [f"accuracy at {curves.counts[place]} labels, %" for place in places]
    heads += [f"labels for {100 * level:.1f} %" for level in levels]
    lines = [["strategy", *heads], ["---"] + ["---:"] * len(heads)]
    for strategy, (title, *_) in STYLES.items():
        found = 100 * curves.accuracy[strategy][:, places]
        cells = [
            f"{mean:.1f} ± {spread:.1f}" for mean, spread in zip(found.mean(axis=0), found.std(axis=0), strict=True)
        ]
        counts = [needed(curves, strategy, level) for level in levels]
        lines.append([title, *cells, *("more" if count is None else str(count) for count in counts)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(found: list[Curves]) -> plt.Figure:
    """Return a plot: means as lines, bands of one standard deviation."""
    figure, panels = plt.subplots(1, len(found), figsize=(6.5 * len(found), 5), layout="constrained")
    for axes, curves in zip(np.atleast_1d(panels), found, strict=True):
        for strategy, (title, colour, line) in STYLES.items():
            mean, spread = curves.accuracy[strategy].mean(axis=0), curves.accuracy[strategy].std(axis=0)
            axes.plot(curves.counts, 100 * mean, line, color=colour, linewidth=2, label=title)
            axes.fill_between(
                curves.counts, 100 * (mean - spread), 100 * (mean + spread), color=colour, alpha=0.15, linewidth=0
            )
        count = len(curves.accuracy["random"])
        axes.set(xlabel="labels", ylabel="accuracy on test data, %", title=f"{curves.case.title}, {count} runs")
        axes.set_ylim(bottom=100 * min(float(np.median(runs[:, 2])) for runs in curves.accuracy.values()))
        axes.grid(alpha=0.3)
    np.atleast_1d(panels)[0].legend(loc="lower right")
    return figure


def main() -> None:
    options = common.parse(__doc__)
    runs, most = (2, 100) if options.quick else (10, 10_000)
    if options.data is None:
        cases = [digits(runs, min(300, most)), board(runs, min(400, most))]
    else:
        cases = [usps(options.data, runs, min(600, most)), covtype(options.data, runs, min(1000, most))]
    found = [measure(case) for case in cases]
    options.output.mkdir(parents=True, exist_ok=True)
    draw(found).savefig(options.output / "active_learning.png", dpi=120)
    parts = [f"## {curves.case.title}\n\n`{curves.case.model!r}`\n\n{table(curves)}" for curves in found]
    text = "\n\n".join(parts)
    common.write_part(options.output / "active_learning.md", "active_learning", text)
    print(text)


if __name__ == "__main__":
    main()
