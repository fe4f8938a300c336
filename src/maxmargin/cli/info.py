"""`maxmargin info`: describe a file, whether a model or data.

Data are described by size, density, labels, ranges, constant features and duplicates. The advice is that of Hsu, Chang
and Lin, *A practical guide to support vector classification*: scale the features, check the balance of the classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cli import data
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets import Samples
from maxmargin.datasets.samples import are_classes
from maxmargin.datasets.scaling import Scaling

#: Ratio of feature ranges from which on scaling is recommended.
MAX_RANGE_RATIO = 20.0

#: Ratio of class sizes from which on classes are called imbalanced.
MAX_CLASS_RATIO = 10.0

#: The most constant features that are listed by name.
MAX_LISTED_FEATURES = 100_000

#: Density below which sparse data should stay sparse.
MAX_SPARSE_DENSITY = 0.3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="FILE", help=f"a model, or data: {data.DATA_HELP}")
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from maxmargin.cli.model_files import model_format

    output = Output(options)
    format = model_format(options.data) if Path(options.data).is_file() else None
    if format is None:
        facts = describe_data(data.read_data(options))
        rows = data_rows(facts)
    else:
        facts, rows = _describe_model(options.data, format)
    output.facts(rows)
    output.result({"kind": "data" if format is None else "model", **facts})
    return 0


def _describe_model(path: str, format: str) -> tuple[dict[str, Any], dict[str, str]]:
    from maxmargin.cli.model_data import parts_of, plan_of
    from maxmargin.cli.model_files import read_model
    from maxmargin.cli.model_report import describe, to_json, to_text
    from maxmargin.interchange import read_notes

    transformer, model, threshold = parts_of(read_model(path))
    facts: dict[str, Any] = {"format": format, **describe(model), "bytes": Path(path).stat().st_size}
    if threshold is not None:
        facts["threshold"] = threshold
    rows = to_text(facts)
    notes = read_notes(path) if format == "maxmargin" else {}
    plan = plan_of(notes)
    if plan is not None:
        rows["columns"] = ", ".join(f"{column.name} ({column.type})" for column in plan.features)
        rows["ignored columns"] = ", ".join(c.name for c in plan.columns if c.type == "ignored") or "none"
        rows["label"] = str(plan.label)
    elif transformer is not None:
        steps = [step for _, step in transformer.steps] if hasattr(transformer, "steps") else [transformer]
        rows["preparation"] = ", ".join(type(step).__name__ for step in steps)
    if "checksum" in notes:
        rows["trained on"] = (
            f"{notes['data']}: {notes['rows']:,} samples, {notes['columns']:,} features, in {notes['seconds']} seconds"
        )
    return {**to_json(facts), "notes": notes}, rows


def describe_data(samples: Samples) -> dict[str, Any]:
    """Return the description of samples as values that JSON can hold.

    Returns
    -------
    facts : dict
        name, samples, features, nonzeros, density, megabytes; labels ("none", "classes" or "numbers"), and with them
        classes (counts by label) or label_range; queries; categories; constant_features (the first 100,000 names) and
        constant_feature_count, minimum and maximum
        value, smallest_range and largest_range of features, duplicate_samples, conflicting_samples (equal samples
        with different labels) and advice (sentences).
    """
    X = samples.X
    scaling = Scaling.fit(X)
    with np.errstate(over="ignore"):  # a range from -1e308 to 1e308 overflows
        ranges = np.minimum(scaling.maximum - scaling.minimum, np.finfo(float).max)
    nonzeros = int(X.nnz if sparse.issparse(X) else np.count_nonzero(X))
    duplicates, conflicting = _duplicates(samples)
    facts: dict[str, Any] = {
        "name": samples.name,
        "samples": len(samples),
        "features": samples.n_features,
        "nonzeros": nonzeros,
        "density": nonzeros / max(1, len(samples) * samples.n_features),
        "megabytes": _bytes(X) / 1e6,
        **_describe_labels(samples),
        "queries": None if samples.query is None else len(np.unique(samples.query)),
        "categories": {column: len(words) for column, words in samples.categories.items()},
        "constant_features": _constant_features(samples, scaling.columns),
        "constant_feature_count": samples.n_features - len(scaling.columns),
        "minimum": float(X.min()) if min(X.shape) else None,
        "maximum": float(X.max()) if min(X.shape) else None,
        "smallest_range": float(ranges.min()) if len(ranges) else None,
        "largest_range": float(ranges.max()) if len(ranges) else None,
        "duplicate_samples": duplicates,
        "conflicting_samples": conflicting,
    }
    return facts | {"advice": _advice(facts)}


def data_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a table that describes data, from the result of `describe_data`."""
    rows = {
        "samples": f"{facts['samples']:,}",
        "features": f"{facts['features']:,}",
        "nonzeros": f"{facts['nonzeros']:,} (density {facts['density']:.3g}, {facts['megabytes']:.3g} MB)",
    }
    if facts["labels"] == "classes":
        rows["classes"] = data.listed([f"{name} ({count:,})" for name, count in facts["classes"].items()])
    elif facts["labels"] == "numbers":
        low, high = facts["label_range"]
        rows["labels"] = f"numbers from {low:g} to {high:g}"
    else:
        rows["labels"] = "none"
    if facts["queries"] is not None:
        rows["queries"] = f"{facts['queries']:,}"
    if facts["categories"]:
        categories = [f"{name} ({count})" for name, count in facts["categories"].items()]
        rows["categorical columns"] = data.listed(categories)
    if facts["minimum"] is not None:
        rows["values"] = f"from {facts['minimum']:.6g} to {facts['maximum']:.6g}"
    if facts["smallest_range"] is not None:
        rows["ranges of features"] = f"from {facts['smallest_range']:.3g} to {facts['largest_range']:.3g} wide"
    if facts["constant_features"]:
        rows["constant features"] = f"{facts['constant_feature_count']:,}: {data.listed(facts['constant_features'])}"
    rows["duplicate samples"] = f"{facts['duplicate_samples']:,}"
    if facts["conflicting_samples"]:
        rows["conflicting samples"] = f"{facts['conflicting_samples']:,} equal samples with different labels"
    for number, sentence in enumerate(facts["advice"], 1):
        rows["advice" if number == 1 else f"advice {number}"] = sentence
    return rows


def _constant_features(samples: Samples, varying: np.ndarray) -> list[str]:
    """Return the names of the constant features, of very many the first ones: data may have billions of features."""
    first = min(samples.n_features, MAX_LISTED_FEATURES + len(varying))
    constant = np.setdiff1d(np.arange(first), varying)[:MAX_LISTED_FEATURES]
    names = samples.feature_names
    return [str(column + 1) if names is None else names[column] for column in constant]


def _describe_labels(samples: Samples) -> dict[str, Any]:
    y = samples.y
    if y is None:
        return {"labels": "none"}
    if not are_classes(y):
        return {
            "labels": "numbers",
            "label_name": samples.label_name,
            "label_range": [float(y.min()), float(y.max())],
        }
    labels, counts = np.unique(y, return_counts=True)
    classes = {data.label_name(label): int(count) for label, count in zip(labels, counts, strict=True)}
    return {"labels": "classes", "label_name": samples.label_name, "classes": classes}


def _advice(facts: Mapping[str, Any]) -> list[str]:
    """Return what to do before training, in sentences."""
    advice = []
    narrow, wide = facts["smallest_range"], facts["largest_range"]
    if narrow is not None:
        within_unit = max(abs(facts["minimum"]), abs(facts["maximum"])) <= 1
        if wide > MAX_RANGE_RATIO * narrow or (not within_unit and wide > MAX_RANGE_RATIO):
            keeps_zeros = facts["density"] < MAX_SPARSE_DENSITY and facts["minimum"] >= 0
            command = "maxmargin scale --lower 0, which keeps zeros" if keeps_zeros else "maxmargin scale"
            advice.append(f"scale the features: features with wide ranges dominate the kernel ({command})")
    if facts["constant_features"]:
        advice.append("remove the constant features")
    if facts["labels"] == "classes":
        counts = list(facts["classes"].values())
        if len(counts) == 1:
            advice.append("there is only one class: use a one-class estimator")
        elif max(counts) > MAX_CLASS_RATIO * min(counts):
            advice.append("the classes are imbalanced: accuracy is misleading; consider --class-weight balanced")
        if min(counts) < 5:
            advice.append("a class has fewer than 5 samples: it cannot be in every fold of a 5-fold cross-validation")
    if facts["conflicting_samples"]:
        advice.append("some equal samples have different labels: no model can classify all of them correctly")
    return advice


def _duplicates(samples: Samples) -> tuple[int, int]:
    """Return the number of duplicates, and of samples that are equal to one with a different label."""
    hashes = _row_hashes(samples.X)
    _, group, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    duplicates = len(hashes) - len(counts)
    if samples.y is None or not duplicates or not are_classes(samples.y):
        return duplicates, 0
    labels = np.unique(samples.y, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([group, labels]), axis=0)
    conflicting = np.bincount(pairs[:, 0], minlength=len(counts)) > 1
    return duplicates, int(conflicting[group].sum())


def _row_hashes(X: Any) -> np.ndarray:
    """Return a 64-bit hash of each row."""
    if not sparse.issparse(X):
        rows = []
        keys = _mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64))
        for start in range(0, len(X), 65536):
            block = np.ascontiguousarray(X[start : start + 65536]) + 0.0  # −0 becomes 0
            hashes = _mix(block.view(np.uint64) ^ keys) * (block != 0)
            rows.append(hashes.sum(axis=1, dtype=np.uint64))
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.uint64)
    X = X.tocsr()
    keys = _mix(X.indices.astype(np.uint64) + np.uint64(1))
    values = X.data + 0.0
    hashes = _mix(values.view(np.uint64) ^ keys) * (values != 0)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    differences: np.ndarray = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    return differences


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes of numbers (the finaliser of splitmix64; Steele, Lea and Flood, 2014)."""
    z = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = z ^ (z >> np.uint64(31))
    return mixed


def _bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes)
