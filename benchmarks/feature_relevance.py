"""A γ for each feature by gradients against a grid search with one γ: test error, features and time.

    python -m benchmarks.feature_relevance --data FOLDER [--repetitions 5] [--sets german,splice]

Generated data have 5 informative features and 20 of noise. The other sets are files of `FOLDER`; features are scaled to
[−1, 1] as the files are, and splice is standardised. Each repetition draws training samples, stratified; the test
samples are all others. The parameters of `gradient_search` were chosen on the generated data (other seeds), heart,
diabetes and splice; the sets after them had no part in that.

The grid is `grid_search` with C from 2⁻⁵ to 2¹⁵ and γ from 2⁻¹⁵ to 2³, 11 × 10 points and 5 folds. "permuted" appends
20 columns of the data in random order, which are noise. Processor time of one thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from maxmargin import SVC, gradient_search, grid_search
from maxmargin.datasets import load_libsvm

#: Name → file, and the largest number of training samples. The first three were used to choose parameters.
FILES = {
    "heart": ("heart_scale.libsvm", 160),
    "diabetes": ("diabetes_scale.libsvm", 460),
    "splice": ("splice.libsvm", 600),
    "german": ("german.numer_scale.libsvm", 600),
    "australian": ("australian_scale.libsvm", 410),
    "ionosphere": ("ionosphere_scale.libsvm", 210),
    "sonar": ("sonar_scale.libsvm", 125),
    "breast-cancer": ("breast-cancer_scale.libsvm", 410),
}

#: Samples, informative features and noise of the generated data.
GENERATED = ("generated", 2400, 400, 5, 20)

#: Columns of noise that "permuted" appends.
PERMUTED = 20


def generated(seed: int) -> tuple[Any, Any]:
    """Return two classes that depend on five of 25 features."""
    _, samples, _, informative, noise = GENERATED
    random = np.random.default_rng(seed)
    X = random.normal(size=(samples, informative + noise))
    value = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 - 1 + 0.8 * X[:, 4]
    return X, (value + 0.3 * random.normal(size=samples) > 0).astype(int)


def load(folder: Path, name: str) -> tuple[Any, Any]:
    """Return a set of the folder as an array, and its labels."""
    X, y = load_libsvm(folder / FILES[name][0])[:2]
    X = X.toarray() if sparse.issparse(X) else X
    if name == "splice":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y


def with_permuted_columns(X: Any, seed: int) -> Any:
    """Return samples with columns of noise, which have the distribution of some of the features."""
    random = np.random.default_rng(1000 + seed)
    columns = [random.permutation(X[:, random.integers(X.shape[1])]) for _ in range(PERMUTED)]
    return np.column_stack([X, *columns])


def compare(X: Any, y: Any, training: int, seed: int) -> dict[str, float]:
    """Return test errors in percent, processor seconds, and the numbers of features kept."""
    X, others, y, labels = train_test_split(X, y, train_size=training, stratify=y, random_state=seed)
    found: dict[str, float] = {}

    def record(name: str, search: Any) -> Any:
        begin = process_time()
        result = search()
        found[f"{name} seconds"] = process_time() - begin
        found[f"{name} error"] = 100 * (1 - result.best_estimator.fit(X, y).score(others, labels))
        return result

    record("grid", lambda: grid_search(X, y, SVC(), seed=seed, n_jobs=1))
    record("common", lambda: gradient_search(X, y, gammas="common", random_state=seed, n_jobs=1))
    result = record("ard", lambda: gradient_search(X, y, random_state=seed, n_jobs=1))
    found["kept"] = len(result.relevant)
    original = X.shape[1] - PERMUTED  # generated and permuted data: the rest is noise
    found["relevance of noise"] = 100 * float(result.relevance[original:].sum())
    return found


def main() -> None:
    """Print a table, a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sets", default=",".join([GENERATED[0], *FILES]))
    options = parser.parse_args()
    columns = ["set", "features", "training", "error: grid", "one γ by gradients", "a γ each", "kept", "noise"]
    columns += ["seconds: grid", "one γ", "a γ each"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name in options.sets.split(","):
        for permuted in (False, True):
            if not (permuted and name == GENERATED[0]):
                _row(options, name, permuted)


def _row(options: argparse.Namespace, name: str, permuted: bool) -> None:
    results, features = [], 0
    training = GENERATED[2] if name == GENERATED[0] else FILES[name][1]
    for seed in range(options.repetitions):
        X, y = generated(100 + seed) if name == GENERATED[0] else load(options.data, name)
        X = with_permuted_columns(X, seed) if permuted else X
        features = X.shape[1]
        results.append(compare(X, y, training, seed))
    mean = {key: float(np.mean([result[key] for result in results])) for key in results[0]}
    errors = " | ".join(f"{mean[f'{kind} error']:.1f} %" for kind in ("grid", "common", "ard"))
    seconds = " | ".join(f"{mean[f'{kind} seconds']:.1f}" for kind in ("grid", "common", "ard"))
    has_noise = permuted or name == GENERATED[0]
    noise = f"{mean['relevance of noise']:.0f} %" if has_noise else "–"
    label = f"{name}, permuted" if permuted else name
    print(f"| {label} | {features} | {training} | {errors} | {mean['kept']:.0f} | {noise} | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
