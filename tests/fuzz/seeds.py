"""Valid files of the binary formats, written by the present version, as seeds besides the files of the corpus."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

from maxmargin import LSSVR, SVC, SVDD, SVR, LinearOneClassSVM, LinearSVC, OneClassSVM, RankSVC
from maxmargin.interchange import save
from maxmargin.kernels import Gaussian, Linear
from maxmargin.problems import Counters, Solution, Status
from maxmargin.training.checkpoint_file import ProblemState, read_checkpoint, write_checkpoint

SEPARATOR = b"\n---\n"

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.3], [0.0, 0.5], [0.7, 0.0]])
Y = np.array([0, 1, 0, 1, 2, 2])


def model_files() -> list[bytes]:
    """Return model files of several estimators."""
    rows = sparse.csr_matrix(X)
    models = [
        SVC(kernel=0.5 * Gaussian(1.0) + Linear()).fit(X, Y % 2),
        SVC(probability=True, class_weight={"a": 1.0, "b": 2.0, "c": 1.5}).fit(rows, np.array(list("abc"))[Y]),
        SVR(kernel="precomputed", noise=True).fit(X @ X.T, Y),
        OneClassSVM(kernel="linear").fit(rows),
        SVDD().fit(X.astype(np.float32)),
        RankSVC().fit(X, Y, [1, 1, 2, 2, 2, 1]),
        LSSVR().fit(X, np.stack([Y, -Y], axis=1)),
        LinearSVC().fit(X, Y),
        LinearOneClassSVM(probability=True).fit(X),
    ]
    return _saved(models)


def pipeline_files() -> list[bytes]:
    """Return model files of pipelines for numbers, words and texts."""
    words = np.array([["a", "b"], ["b", "a"], ["c", "a"]] * 2, dtype=object)
    encoder = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist", drop="first")
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["first"]),
            ("bins", KBinsDiscretizer(2, strategy="uniform"), make_column_selector("second")),
        ],
        remainder=QuantileTransformer(n_quantiles=3),
    )
    target = TransformedTargetRegressor(make_pipeline(SplineTransformer(), SVR()), func=np.exp, inverse_func=np.log)
    models = [
        make_pipeline(encoder, SVC(probability=True)).fit(words, Y),
        make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), SVC()).fit(words, Y),
        make_pipeline(TfidfVectorizer(max_features=3), LinearSVC()).fit(["one two", "two three", "one"] * 2, Y),
        columns.fit(pd.DataFrame(X, columns=["first", "second"])),
        make_pipeline(KNNImputer(n_neighbors=2), KBinsDiscretizer(2, strategy="uniform"), SVC()).fit(X, Y),
        target.fit(X, Y),
        CalibratedClassifierCV(SVC(), method="isotonic", cv=2).fit(X, Y % 2),
    ]
    return _saved(models)


def _saved(models: list[object]) -> list[bytes]:
    files = []
    for model in models:
        file = io.BytesIO()
        save(model, file)
        files.append(file.getvalue())
    return files


#: Training data of the checkpoints.
SAMPLES = np.random.default_rng(0).normal(size=(40, 2))
LABELS = np.where(SAMPLES[:, 0] + SAMPLES[:, 1] ** 2 > 0.5, 1, -1)


def resumable(name: str) -> SVC | LinearSVC:
    """Return the estimator whose fits the checkpoints belong to."""
    if name == "LinearSVC":
        return LinearSVC(solver="dual_coordinate_ascent")
    return SVC(C=100.0, tol=1e-6, solver="pairwise")


@cache
def expected(name: str) -> np.ndarray:
    """Return the decision values of the fit without a checkpoint."""
    return resumable(name).fit(SAMPLES, LABELS).decision_function(SAMPLES)


def checkpoints() -> list[bytes]:
    """Return checkpoints of fits that were stopped, and of one whose problem is solved."""
    files = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        path = Path(folder) / "checkpoint"
        for model in (resumable("SVC").set_params(max_iter=5), resumable("LinearSVC").set_params(max_iter=1)):
            model.set_params(checkpoint=path, checkpoint_seconds=1e-6).fit(SAMPLES, LABELS)
            files.append(path.read_bytes())
            state = read_checkpoint(path)
            path.unlink()
            if isinstance(model, SVC):  # its solution as it would be written at the end
                full = resumable("SVC").fit(SAMPLES, LABELS)
                dual = np.zeros(len(SAMPLES))
                dual[full.support_] = full.dual_coef_[0]
                (key,) = state.problems
                solution = Solution(dual, None, Status.CONVERGED, Counters(), None)
                state.problems[key] = ProblemState(None, solution, Counters())
                write_checkpoint(path, state)
                files.append(path.read_bytes())
                path.unlink()
    return files


def arrays() -> list[bytes]:
    """Return .npy files."""
    kinds = (X, X.astype(np.float32), np.asfortranarray(X), X.astype(np.int64), X > 0, np.array([["1", "2"]]))
    return [_npy(array) for array in kinds]


def archives() -> list[bytes]:
    """Return unsealed .npz archives: dense, sparse, with string labels, queries and names."""
    rows = sparse.csr_matrix(X)
    found = [
        {"X": X, "y": Y},
        {"X": X, "y": np.array(list("abcabc")), "query": Y, "feature_names": np.array(["a", "b"])},
    ]
    for kind, part in (("csr", rows), ("csc", rows.tocsc())):
        shape, layout = np.array(part.shape), np.array(kind.encode())
        parts = {"data": part.data, "indices": part.indices, "indptr": part.indptr, "shape": shape, "format": layout}
        found.append({**parts, "y": Y})
    return [
        SEPARATOR.join(name.encode() + b".npy\n" + _npy(array) for name, array in members.items()) for members in found
    ]


def compressed() -> list[bytes]:
    """Return compressed text, with two members for gzip."""
    text = b"+1 1:0.5 3:2\n-1 2:1\n"
    table = b"a,b,label\n1,2,x\n3,4,y\n"
    return [
        gzip.compress(text) + gzip.compress(table[:0]),
        gzip.compress(table),
        bz2.compress(text),
        lzma.compress(text),
    ]


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()
