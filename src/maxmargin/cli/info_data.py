"""What is to be known of data before training: size, sparsity, labels, what is constant or repeated, and advice.

The advice is that of Hsu, Chang and Lin, *A practical guide to support vector classification*: bring features to
comparable ranges, look at the balance of classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.cli.data import label_name
from maxmargin.datasets import Samples
from maxmargin.datasets.samples import are_classes
from maxmargin.datasets.scaling import Scaling

#: Ranges of features that differ by more than this factor are not comparable.
COMPARABLE = 20.0

#: A class that is so much smaller than the largest is a small one.
UNBALANCED = 10.0

#: Data with fewer values than this share that are not 0 are worth keeping sparse.
SPARSE = 0.3

#: So many names or classes are listed.
LISTED = 10


def describe(samples: Samples) -> dict[str, Any]:
    """Return facts about samples, for programs: numbers, lists and dictionaries.

    Returns
    -------
    facts : dict
        name, samples, features, stored_values, density, megabytes; labels ("none", "classes" or "numbers"), and with
        them classes (counts by label) or range_of_labels; queries; categories; constant_features (names), smallest
        and largest value, smallest_range and largest_range of features, repeated_samples, contradictions (samples that
        are the same but for their label) and advice (sentences).
    """
    X = samples.X
    scaling = Scaling.fit(X)
    with np.errstate(over="ignore"):  # a range from -1e308 to 1e308 is as wide as numbers go
        spans = np.minimum(scaling.maximum - scaling.minimum, np.finfo(float).max)
    stored = int(X.nnz if sparse.issparse(X) else np.count_nonzero(X))
    names = samples.column_names()
    constant = np.setdiff1d(np.arange(samples.n_features), scaling.columns)
    repeated, contradictions = _repetitions(samples)
    facts: dict[str, Any] = {
        "name": samples.name,
        "samples": len(samples),
        "features": samples.n_features,
        "stored_values": stored,
        "density": stored / max(1, len(samples) * samples.n_features),
        "megabytes": _bytes(X) / 1e6,
        **_label_facts(samples),
        "queries": None if samples.query is None else len(np.unique(samples.query)),
        "categories": {column: len(words) for column, words in samples.categories.items()},
        "constant_features": [names[column] for column in constant],
        "smallest": float(X.min()) if min(X.shape) else None,
        "largest": float(X.max()) if min(X.shape) else None,
        "smallest_range": float(spans.min()) if len(spans) else None,
        "largest_range": float(spans.max()) if len(spans) else None,
        "repeated_samples": repeated,
        "contradictions": contradictions,
    }
    return facts | {"advice": _advice(facts)}


def in_words(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts that `describe` found as a person reads them."""
    found = {
        "samples": f"{facts['samples']:,}",
        "features": f"{facts['features']:,}",
        "not zero": f"{facts['density']:.3g} of all values ({facts['stored_values']:,}, {facts['megabytes']:.3g} MB)",
    }
    if facts["labels"] == "classes":
        found["classes"] = _listed([f"{name} ({count:,})" for name, count in facts["classes"].items()])
    elif facts["labels"] == "numbers":
        low, high = facts["range_of_labels"]
        found["labels"] = f"numbers from {low:g} to {high:g}"
    else:
        found["labels"] = "none"
    if facts["queries"] is not None:
        found["queries"] = f"{facts['queries']:,}"
    if facts["categories"]:
        found["columns of words"] = _listed([f"{name} ({count})" for name, count in facts["categories"].items()])
    if facts["smallest"] is not None:
        found["values"] = f"from {facts['smallest']:.6g} to {facts['largest']:.6g}"
    if facts["smallest_range"] is not None:
        found["ranges of features"] = f"from {facts['smallest_range']:.3g} to {facts['largest_range']:.3g} wide"
    if facts["constant_features"]:
        count = len(facts["constant_features"])
        found["constant features"] = f"{count:,}: {_listed(facts['constant_features'])}"
    found["repeated samples"] = f"{facts['repeated_samples']:,}"
    if facts["contradictions"]:
        found["contradictions"] = f"{facts['contradictions']:,} samples that are the same but for their label"
    for number, sentence in enumerate(facts["advice"], 1):
        found["advice" if number == 1 else f"advice {number}"] = sentence
    return found


def _label_facts(samples: Samples) -> dict[str, Any]:
    y = samples.y
    if y is None:
        return {"labels": "none"}
    if not are_classes(y):
        return {
            "labels": "numbers",
            "label_name": samples.label_name,
            "range_of_labels": [float(y.min()), float(y.max())],
        }
    names, counts = np.unique(y, return_counts=True)
    classes = {label_name(name): int(count) for name, count in zip(names, counts, strict=True)}
    return {"labels": "classes", "label_name": samples.label_name, "classes": classes}


def _advice(facts: Mapping[str, Any]) -> list[str]:
    """Return what should be done before training."""
    found = []
    narrow, wide = facts["smallest_range"], facts["largest_range"]
    if narrow is not None:
        inside = max(abs(facts["smallest"]), abs(facts["largest"])) <= 1
        if wide > COMPARABLE * narrow or (not inside and wide > COMPARABLE):
            stays = facts["density"] < SPARSE and facts["smallest"] >= 0
            how = "maxmargin scale --lower 0, which keeps zeros" if stays else "maxmargin scale"
            found.append(f"scale the features: wide ranges drown narrow ones ({how})")
    if facts["constant_features"]:
        found.append("leave out the constant features: they tell nothing")
    if facts["labels"] == "classes":
        counts = list(facts["classes"].values())
        if len(counts) == 1:
            found.append(
                "there is one class only: nothing can be told apart (a one-class machine learns where it lies)"
            )
        elif max(counts) > UNBALANCED * min(counts):
            found.append(
                "classes are out of balance: accuracy says little; small classes need weight (--class-weight balanced)"
            )
        if min(counts) < 5:
            found.append("a class has fewer than 5 samples: cross-validation cannot show it to every fold")
    if facts["contradictions"]:
        found.append("some samples are the same but for their label: no machine gets all of them right")
    return found


def _repetitions(samples: Samples) -> tuple[int, int]:
    """Return how many samples have come before, and how many are the same as another with a different label."""
    marks = _row_marks(samples.X)
    _, at, counts = np.unique(marks, return_inverse=True, return_counts=True)
    repeated = len(marks) - len(counts)
    if samples.y is None or not repeated or not are_classes(samples.y):
        return repeated, 0
    labels = np.unique(samples.y, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([at, labels]), axis=0)
    several = np.bincount(pairs[:, 0], minlength=len(counts)) > 1
    return repeated, int(several[at].sum())


def _row_marks(X: Any) -> np.ndarray:
    """Return a number of 64 bits for each row, the same for rows with the same values, and else almost surely not."""
    table = X.tocsr() if sparse.issparse(X) else X
    if not sparse.issparse(X):
        rows = []
        keys = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64))
        for start in range(0, len(X), 65536):
            part = np.ascontiguousarray(X[start : start + 65536]) + 0.0  # −0 is 0
            hashed = _mixed(part.view(np.uint64) ^ keys) * (part != 0)
            rows.append(hashed.sum(axis=1, dtype=np.uint64))
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.uint64)
    keys = _mixed(table.indices.astype(np.uint64) + np.uint64(1))
    data = table.data + 0.0
    hashed = _mixed(data.view(np.uint64) ^ keys) * (data != 0)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashed, dtype=np.uint64)])
    differences: np.ndarray = sums[table.indptr[1:]] - sums[table.indptr[:-1]]
    return differences


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of 64 bits that look random (the last steps of splitmix64; Steele, Lea and Flood, 2014)."""
    z = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = z ^ (z >> np.uint64(31))
    return mixed


def _bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes)


def _listed(words: list[str]) -> str:
    return ", ".join(words[:LISTED]) + (f", … ({len(words)} in all)" if len(words) > LISTED else "")
