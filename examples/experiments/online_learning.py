"""Online learning after one pass: first and second order compared with batch (Igel's slides, Glasmachers & Igel 2008).

For every order of the training data LASVM makes one pass, with first- and second-order selection. Primal and dual
values are those of all training data, by the certificate. A second part records both over epochs. Without --data only
the chessboard is used; with it also USPS with flipped labels, banana and adult.
"""

from __future__ import annotations

import io
import lzma
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from examples.experiments import common
from examples.experiments.common import Options
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from maxmargin import SVC, OnlineSVC
from maxmargin.datasets import chessboard

RULES = {"first order": "most_violating_pair", "second order": "second_order"}

#: Results in the slides: support vectors, classification rate, primal, dual.
SLIDES = {
    ("USPS, 10% flipped labels", "first order"): (3870, 99.09, 17214, 14207),
    ("USPS, 10% flipped labels", "second order"): (2501, 99.36, 15867, 14454),
    ("USPS, 10% flipped labels", "batch"): (2747, 99.51, 14635, 14633),
    ("chessboard", "first order"): (3395, 97.86, 782969, 60771),
    ("chessboard", "second order"): (944, 98.91, 143614, 83686),
    ("chessboard", "batch"): (873, 99.40, 90959, 90946),
}


class Task(NamedTuple):
    """Training and test data, parameters, and the number of orders of the training data."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    C: float
    gamma: float
    orders: int = 1
    epochs: int = 0  # number of epochs to record


class Row(NamedTuple):
    """Means over the orders."""

    task: str
    algorithm: str
    support_vectors: float
    rate: float
    primal: float
    dual: float
    seconds: float


class Way(NamedTuple):
    """Primal and dual after each epoch, and the optimum."""

    task: str
    rule: str
    primal: list[float]
    dual: list[float]
    optimum: float


class Results(NamedTuple):
    """Results of one pass, and traces over epochs."""

    rows: list[Row]
    ways: list[Way]


def measure(options: Options) -> Results:
    tasks = [board(1000 if options.quick else 5000, 3 if options.quick else 10)]
    if options.data is not None:
        tasks += [usps(options.data), banana(options.data), adult(options.data)]
    rows, ways = [], []
    for task in tasks:
        batch = timed(lambda task=task: SVC(C=task.C, gamma=task.gamma, tol=1e-3).fit(task.X, task.y))
        for name, rule in RULES.items():
            found = [one_pass(task, rule, seed) for seed in range(task.orders)]
            rows.append(Row(task.name, name, *np.mean(found, axis=0)))
        model, certificate = batch[0], batch[0].certificate_
        rate = 100 * model.score(task.X_test, task.y_test)
        values = len(model.support_), rate, certificate.primal, certificate.dual
        rows.append(Row(task.name, "batch", *values, batch[1]))
        ways += [follow(task, name, certificate.dual) for name in RULES if task.epochs]
    return Results(rows, ways)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def one_pass(task: Task, rule: str, seed: int) -> tuple[float, ...]:
    """Return support vectors, classification rate, primal, dual and seconds."""
    online = OnlineSVC(C=task.C, gamma=task.gamma, selection=rule, random_state=seed)
    model, seconds = timed(lambda: online.fit(task.X, task.y))
    proof = model.certify(task.X, task.y)
    rate = 100 * model.score(task.X_test, task.y_test)
    return model.support_vectors_.shape[0], rate, proof.primal, proof.dual, seconds


def follow(task: Task, name: str, optimum: float) -> Way:
    """Return both values after each epoch; longer fits contain the epochs of shorter ones."""
    primal, dual = [], []
    for epochs in range(1, task.epochs + 1):
        model = OnlineSVC(C=task.C, gamma=task.gamma, selection=RULES[name], epochs=epochs, random_state=0)
        proof = model.fit(task.X, task.y).certify(task.X, task.y)
        primal.append(proof.primal)
        dual.append(proof.dual)
    return Way(task.name, name, primal, dual, optimum)


def board(n: int, epochs: int) -> Task:
    """Return the chessboard; the slides do not state C and γ, and these approximate their batch solution."""
    return Task("chessboard", *chessboard(n), *chessboard(20_000, seed=1), 150.0, 0.5, epochs=epochs)


def usps(folder: Path) -> Task:
    """Return digit 0 against the rest with a tenth of the training labels flipped; pixels between 0 and 1/16."""
    parts = []
    for name in ("usps.libsvm.xz", "usps.t.libsvm.xz"):
        X, y = load_svmlight_file(io.BytesIO(lzma.decompress((folder / name).read_bytes())), n_features=256)
        parts += [(X.toarray() + 1.0) / 32.0, np.where(y == 1, 1, -1)]
    flipped = np.random.default_rng(0).random(len(parts[1])) < 0.1
    parts[1] = np.where(flipped, -parts[1], parts[1])
    return Task("USPS, 10% flipped labels", *parts, 10.0, 2.0, orders=10)


def banana(folder: Path) -> Task:
    table = np.loadtxt(folder / "banana.csv", delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    X, y = table[:, :2], table[:, 2]
    return Task("banana", X[:4000], y[:4000], X[4000:], y[4000:], 316.0, 0.5, orders=10, epochs=10)


def adult(folder: Path) -> Task:
    X, y = load_svmlight_file(str(folder / "a9a.libsvm"), n_features=123)
    X_test, y_test = load_svmlight_file(str(folder / "a9a.t.libsvm"), n_features=123)
    return Task("adult (a9a)", sparse.csr_array(X), y, sparse.csr_array(X_test), y_test, 100.0, 0.005)


def tables(results: Results) -> str:
    rows = []
    for row in results.rows:
        printed = SLIDES.get((row.task, row.algorithm))
        slides = "" if printed is None else f"{printed[0]:,}, {printed[1]:.2f}, {printed[2]:,}, {printed[3]:,}"
        values = [f"{row.support_vectors:,.0f}", f"{row.rate:.2f}", f"{row.primal:,.0f}", f"{row.dual:,.0f}"]
        rows.append([row.task, row.algorithm, *values, f"{row.seconds:.2f}", slides])
    header = "data | algorithm | support vectors | rate, % | primal | dual | seconds | slides: the same four"
    text = "One pass, means over the orders:\n\n" + common.markdown(header, rows)
    for name in dict.fromkeys(way.task for way in results.ways):
        mine = [way for way in results.ways if way.task == name]
        epochs = range(1, len(mine[0].primal) + 1)
        header = "epochs | " + " | ".join(f"{value}, {way.rule}" for way in mine for value in ("primal", "dual"))
        lines = [
            [k, *(f"{value[k - 1]:,.0f}" for way in mine for value in (way.primal, way.dual))]
            for k in epochs if k in (1, 2, 3, 5, len(epochs))
        ]  # fmt: skip
        text += f"\n\nOver epochs, {name} (optimum {mine[0].optimum:,.0f}):\n\n" + common.markdown(header, lines)
    return text


def draw(results: Results) -> Figure:
    names = list(dict.fromkeys(way.task for way in results.ways))
    picture, panels = common.figure(len(names))
    for panel, name in zip(panels, names, strict=True):
        for way in results.ways:
            if way.task != name:
                continue
            colour = common.RED if way.rule == "first order" else common.BLUE
            epochs = range(1, len(way.primal) + 1)
            panel.plot(epochs, way.primal, "o-", color=colour, label=f"primal, {way.rule}")
            panel.plot(epochs, way.dual, "s--", color=colour, label=f"dual, {way.rule}")
            panel.axhline(way.optimum, color=common.BLACK, linewidth=0.8)
        panel.set(xlabel="epochs", ylabel="objective", yscale="log", title=name)
        panel.grid(alpha=0.3)
        panel.legend()
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
