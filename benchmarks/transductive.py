"""Few labels and many samples without: support vector machines and scikit-learn's semi-supervised estimators.

    python -m benchmarks.transductive --data FOLDER [--sets reuters usps mnist] [--draws 5]

Ten samples of each class keep their labels, drawn at random; the others are unlabelled. What is measured is predicted
on samples that no estimator saw. The fractions of the classes are given to `TransductiveSVC` (`positive_fraction`). The
texts of reuters have two classes, of which one is rare (7 %); there the fraction is also given to `SVC`, by moving its
threshold. Of USPS and MNIST, which have ten classes, there are 2,000 images. Parameters are not tuned: C is 1 with the
linear kernel for texts and 10 with the Gaussian kernel for images, γ is 1 / (features · variance).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, f1_score
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.peers.loading import libsvm_text, read_bytes
from maxmargin import SVC, TransductiveSVC

LABELS_PER_CLASS = 10

#: Images for training and for testing.
TRAINING_IMAGES, TEST_IMAGES = 2_000, 2_000


def load(folder: Path, name: str) -> tuple[Any, Any, Any, Any]:
    """Return samples and labels for training, and those for testing; class numbers from 0."""
    if name == "reuters":
        names = ("lasvm_reuters.libsvm.bz2", "lasvm_reuters.t.libsvm.bz2")
        parts = [libsvm_text(folder, file, features=8315, dense=False) for file in names]
    elif name == "usps":
        training, test = (libsvm_text(folder, f"usps{part}.libsvm.xz", features=256) for part in ("", ".t"))
        parts = [_some(training, TRAINING_IMAGES), _some(test, TEST_IMAGES)]
    else:
        parts = [_images(folder, "train", TRAINING_IMAGES), _images(folder, "t10k", TEST_IMAGES)]
    (X, y), (X_test, y_test) = parts
    return X, np.unique(y, return_inverse=True)[1], X_test, np.unique(y_test, return_inverse=True)[1]


def _some(data: tuple[Any, Any], count: int) -> tuple[Any, Any]:
    chosen = np.random.default_rng(0).permutation(len(data[1]))[:count]
    return data[0][chosen], data[1][chosen]


def _images(folder: Path, part: str, count: int) -> tuple[Any, Any]:
    pixels = np.frombuffer(read_bytes(folder / f"mnist_{part}-images-idx3-ubyte.gz"), np.uint8, offset=16)
    labels = np.frombuffer(read_bytes(folder / f"mnist_{part}-labels-idx1-ubyte.gz"), np.uint8, offset=8)
    return pixels.reshape(-1, 784)[:count] / 255.0, labels[:count]


def estimators(text: bool, fractions: Any) -> dict[str, Any]:
    """Return the estimators by name."""
    common = {"kernel": "linear" if text else "rbf", "C": 1.0 if text else 10.0, "n_jobs": 1}
    spreading = LabelSpreading(kernel="knn", n_neighbors=7, n_jobs=1)
    return {
        "SVC": SVC(**common, multi_class="ovr"),
        "TransductiveSVC": TransductiveSVC(**common, positive_fraction=fractions),
        "TransductiveSVC, concave–convex": TransductiveSVC(
            **common, positive_fraction=fractions, method="concave_convex"
        ),
        "SelfTrainingClassifier(SVC)": SelfTrainingClassifier(SVC(**common, probability=True, random_state=0)),
        "LabelSpreading": spreading,
    }


def measure(model: Any, X_test: Any, y_test: Any, text: bool) -> dict[str, float]:
    """Return percentages: the error, or of two classes F1 and average precision of the rare one."""
    predicted = model.predict(X_test)
    if not text:
        return {"error": 100.0 * float(np.mean(predicted != y_test))}
    if isinstance(model, LabelSpreading):  # whose probabilities are NaN where no path of neighbours leads to a label
        values = np.nan_to_num(model.predict_proba(X_test)[:, 1])
    else:
        values = model.decision_function(X_test)
    precision = average_precision_score(y_test, values)
    return {"F1": 100.0 * f1_score(y_test, predicted), "average precision": 100.0 * precision}


def compare(data: tuple[Any, Any, Any, Any], draw: int, text: bool) -> dict[str, dict[str, float]]:
    """Return what each estimator reaches with the labels of one draw."""
    X, y, X_test, y_test = data
    random = np.random.default_rng(draw)
    labelled = np.concatenate([random.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, False) for c in np.unique(y)])
    partly = np.full(len(y), -1)
    partly[labelled] = y[labelled]
    shares = np.bincount(y[partly == -1]) / np.sum(partly == -1)
    fractions = float(shares[1]) if text else dict(enumerate(shares.tolist()))
    found = {}
    for name, model in estimators(text, fractions).items():
        begin = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # label spreading with its limit on iterations
            model.fit(X[labelled], y[labelled]) if name == "SVC" else model.fit(X, partly)
        seconds = process_time() - begin
        found[name] = {**measure(model, X_test, y_test, text), "seconds": seconds}
        if name == "SVC" and text:
            values = model.decision_function(X_test)
            above = values > np.quantile(model.decision_function(X), 1.0 - shares[1])
            found["SVC, with the fraction"] = {**found[name], "F1": 100.0 * f1_score(y_test, above)}
    return found


def table(draws: list[dict[str, dict[str, float]]]) -> str:
    """Return a Markdown table with the mean and the standard deviation of the draws."""
    names = list(draws[0]["SVC"])
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for estimator in draws[0]:
        values = np.array([[draw[estimator][name] for name in names] for draw in draws])
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)]
        lines.append(f"| {estimator} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the comparison and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="the folder with the data sets")
    parser.add_argument("--sets", nargs="+", choices=["reuters", "usps", "mnist"], default=["reuters", "usps", "mnist"])
    parser.add_argument("--draws", type=int, default=5, metavar="N", help="random draws of labels [5]")
    options = parser.parse_args()
    for name in options.sets:
        data = load(options.data, name)
        draws = [compare(data, draw, name == "reuters") for draw in range(options.draws)]
        print(f"\n{name}: {data[0].shape[0]:,} samples, {options.draws} draws\n\n{table(draws)}", flush=True)


if __name__ == "__main__":
    main()
