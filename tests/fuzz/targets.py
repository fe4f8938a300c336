"""What is fuzzed: every function that reads a file.

A target takes the bytes of a file. It must return, or raise the documented error class with one sentence. What was read
is used: predictions are made, and what is written must be read back unchanged. Every other exception is a finding, as
are a hang and memory out of proportion to the file.

Formats with a checksum are fuzzed without it, because almost no mutation would pass it: `seal_model` and `seal_archive`
complete the input to a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy import sparse

from maxmargin import blocks
from maxmargin.datasets import (
    DataFileError,
    Scaling,
    csv_blocks,
    csv_columns,
    csv_files,
    dump_libsvm,
    find_libsvm_problems,
    load_libsvm,
    read_columns,
    read_samples,
    write_samples,
)
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.csv_files import find_csv_problems
from maxmargin.interchange import ModelFileError, load, read_svmlight_model, save
from maxmargin.interchange.liblinear_model import linear_machine_of, read_liblinear_text, write_liblinear_text
from maxmargin.interchange.libsvm import machine_of, read_text, write_text
from maxmargin.preparation import TablePlan, column_transformer, plan_columns, read_plan, write_plan
from maxmargin.search.journal import Journal
from maxmargin.training.checkpoint_file import CheckpointError, read_checkpoint

from . import seeds
from .words import CSV_WORDS, JOURNAL_WORDS, JSON_WORDS, LIBSVM_WORDS, MODEL_WORDS, NPY_WORDS, RANGE_WORDS

CORPUS = Path(__file__).parent / "corpus"

#: Features above which a model is not used for predictions, because dense samples would not fit into memory.
MAX_FEATURES = 10_000

#: Between the header and the arrays of an unsealed model file, and between the members of an unsealed archive.
SEPARATOR = seeds.SEPARATOR

#: First bytes of model files and of checkpoints.
MODEL_MAGIC, CHECKPOINT_MAGIC = b"\x89MXMG\r\n\x1a", b"\x89MXMC\r\n\x1a"


@dataclass(frozen=True)
class Target:
    """A reader, the errors that it documents, its modules, and words of its format.

    Attributes
    ----------
    name : str
        Also the name of the corpus folder.
    read : callable
        Reads the bytes of a file and uses the result.
    errors : tuple of exception classes
        What the reader may raise.
    modules : tuple of str
        Modules of maxmargin whose coverage is reported.
    words : tuple of bytes
        A dictionary for mutations.
    seeds : callable
        Returns valid files of a binary format.
    """

    name: str
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    modules: tuple[str, ...]
    words: tuple[bytes, ...] = ()
    seeds: Callable[[], list[bytes]] = list

    def run(self, data: bytes) -> str:
        """Return "read" or "rejected"; raise whatever the reader must not raise."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # numbers of a file may overflow in predictions
            try:
                self.read(data)
            except (*self.errors, MemoryError) as error:
                check_sentence(error)
                return "rejected"
        return "read"

    def corpus(self) -> Iterator[bytes]:
        """Yield the seeds, then the files of the corpus in the order of their names."""
        yield from self.seeds()
        for path in sorted((CORPUS / self.name).iterdir()):
            yield path.read_bytes()


def check_sentence(error: Exception) -> None:
    """Raise unless the message is one line of readable text."""
    message = str(error)
    if not message.strip() or "\n" in message or not message.isprintable() or len(message) > 2000:
        raise AssertionError(f"the message of {type(error).__name__} is not one sentence: {message!r}") from error


def read_libsvm_data(data: bytes) -> None:
    try:
        X, y, query = load_libsvm(io.BytesIO(data), return_query_id=True, n_jobs=1)
    except DataFileError as error:
        if all(problem.line != error.line for problem in find_libsvm_problems(io.BytesIO(data))):
            raise AssertionError("the diagnostics do not know the line") from error
        raise
    find_libsvm_problems(io.BytesIO(data))
    assert X.shape[0] == len(y)
    text = io.BytesIO()
    zero_based = X.nnz > 0 and X.indices.min() == 0
    dump_libsvm(X, y, text, query_id=query, zero_based=zero_based)
    text.seek(0)
    again, labels, queries = load_libsvm(text, zero_based=zero_based, return_query_id=True, n_jobs=1)
    same_numbers(again.data, X.data), same_numbers(again.indices, X.indices), same_numbers(again.indptr, X.indptr)
    same_numbers(labels, y), same_numbers(queries, query if len(y) else queries)


def read_any_samples(data: bytes) -> None:
    samples = read_samples(io.BytesIO(data), n_jobs=1)
    assert len(samples) > 0
    if samples.n_features <= MAX_FEATURES:
        Scaling.fit(samples.X)


def read_table(data: bytes) -> None:
    selection = ColumnSelection(categorical="one-hot")
    problems = find_csv_problems(io.BytesIO(data), "the file", selection)
    try:
        samples = read_samples(io.BytesIO(data), format="csv", categorical="one-hot")
    except DataFileError:
        assert problems, "the diagnostics found no problem"
        raise
    assert not problems, problems
    assert samples.X.shape[0] == len(samples)
    with patch.object(csv_files, "FIRST_LINES", 2), patch.object(csv_blocks, "MIN_BYTES", 0):  # now with pyarrow
        again = read_samples(io.BytesIO(data), format="csv", categorical="one-hot")
    assert again.X.tobytes() == samples.X.tobytes()
    assert np.array_equal(again.y, samples.y)


def read_table_columns(data: bytes) -> None:
    table = read_columns(io.BytesIO(data), format="csv", n_jobs=1)
    plan = plan_columns(table)
    assert TablePlan.from_json(plan.to_json()) == plan
    with tempfile.TemporaryDirectory() as folder:
        write_plan(plan, Path(folder) / "plan.toml")
        assert read_plan(Path(folder) / "plan.toml").label == plan.label
    X = column_transformer(plan).fit_transform(plan.values(table))
    assert np.isfinite(X.data if hasattr(X, "nnz") else X).all()
    with patch.object(csv_columns, "FIRST_LINES", 2), patch.object(csv_blocks, "MIN_BYTES", 0):  # now with pyarrow
        again = read_columns(io.BytesIO(data), format="csv", n_jobs=1)
    for name, values in table.columns.items() if again.has_header == table.has_header else ():
        if values.dtype == again.columns[name].dtype:
            np.testing.assert_array_equal(values, again.columns[name])


def read_npy_array(data: bytes) -> None:
    read_samples(io.BytesIO(data), format="npy")


def read_blocks_of_npy(data: bytes) -> None:
    scratch_file().write_bytes(data)
    read_blocks("npy")


def read_blocks_of_npz(data: bytes) -> None:
    archive = data if data.startswith(b"PK") else seal_archive(data, zipfile.ZIP_STORED)
    scratch_file().write_bytes(archive)
    read_blocks("npz")


def read_blocks(format: str) -> None:
    """Read the scratch file twice by blocks."""
    table = blocks.open(scratch_file(), format=format, block_rows=2)
    for _ in range(2):
        read = list(itertools.islice(table, 100))
        assert table.n_rows > 200 or sum(block.X.shape[0] for block in read) == table.n_rows
        assert all(block.X.shape[1] == table.n_features for block in read)


def read_npz_archive(data: bytes) -> None:
    archive = io.BytesIO(data if data.startswith(b"PK") else seal_archive(data))
    samples = read_samples(archive, format="npz")
    text = io.BytesIO()
    write_samples(samples, text, "npz")
    text.seek(0)
    again = read_samples(text, format="npz")
    assert again.X.shape == samples.X.shape
    assert (again.X != samples.X).sum() == 0


def read_ranges(data: bytes) -> None:
    ranges = Scaling.read(io.BytesIO(data))
    text = io.BytesIO()
    ranges.write(text)
    text.seek(0)
    again = Scaling.read(text)
    same_numbers(again.columns, ranges.columns), same_numbers(again.minimum, ranges.minimum)
    same_numbers(again.maximum, ranges.maximum)
    assert (again.lower, again.upper, again.target) == (ranges.lower, ranges.upper, ranges.target)
    ranges.apply_to_target(np.array([0.0, 1.0]))


def read_journal(data: bytes) -> None:
    path = scratch_file()
    path.write_bytes(data)
    journal = Journal(path, {"seed": 0}, resume=True)
    journal.close()
    for trial in journal.known:
        assert isinstance(trial.fold, int)
        assert all(isinstance(score, float) for score in trial.scores.values())
    again = Journal(path, {"seed": 0}, resume=True)
    again.close()
    found, expected = (
        [score for trial in known for score in trial.scores.values()] for known in (again.known, journal.known)
    )
    same_numbers(found, expected)


def read_model_file(data: bytes) -> None:
    model = load(io.BytesIO(data if data.startswith(MODEL_MAGIC) else seal_model(data)))
    use_model(model)
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    load(file)


def read_pipeline_file(data: bytes) -> None:
    """Read a pipeline and use it: wrong attributes may be errors of scikit-learn, whatever they are."""
    model = load(io.BytesIO(data if data.startswith(MODEL_MAGIC) else seal_model(data)))
    numbers = np.abs(np.sin(np.arange(6.0))).reshape(3, 2)
    for samples in (numbers, np.array([["a", "b"], ["c", "?"]], dtype=object), ["one", "two four", ""]):
        for method in ("predict", "transform", "decision_function", "predict_proba"):
            with contextlib.suppress(Exception):
                result = getattr(model, method)(samples)
                result.toarray() if sparse.issparse(result) else np.asarray(result)
    file = io.BytesIO()
    save(model, file)
    load(io.BytesIO(file.getvalue()))


def read_checkpoint_file(data: bytes) -> None:
    """Resume a fit from a crafted checkpoint: it is refused, or the fit ends with a certificate and the same model."""
    path = scratch_file()
    path.write_bytes(data if data.startswith(CHECKPOINT_MAGIC) else seal(data, CHECKPOINT_MAGIC, 1))
    state = read_checkpoint(path)
    assert state is not None
    model = seeds.resumable(state.identity.estimator).set_params(checkpoint=path)
    model.fit(seeds.SAMPLES, seeds.LABELS)
    assert model.status_.converged, model.status_
    assert model.certificate_.relative_gap < 1e-2
    found, expected = model.decision_function(seeds.SAMPLES), seeds.expected(state.identity.estimator)
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def read_libsvm_model_text(data: bytes) -> None:
    model = read_text(io.BytesIO(data))
    text = io.BytesIO()
    write_text(model, text, digits=17)
    text.seek(0)
    again = read_text(text)
    same_numbers(again.coefficients, model.coefficients), same_numbers(again.rho, model.rho)
    same_numbers(again.support_vectors.data, model.support_vectors.data)
    use_model(machine_of(model))


def read_liblinear_model_text(data: bytes) -> None:
    model = read_liblinear_text(io.BytesIO(data))
    text = io.BytesIO()
    write_liblinear_text(model, text)
    text.seek(0)
    again = read_liblinear_text(text)
    same_numbers(again.weights, model.weights), same_numbers(again.constants, model.constants)
    use_model(linear_machine_of(model))


def read_svmlight_model_text(data: bytes) -> None:
    use_model(read_svmlight_model(io.BytesIO(data)))
    use_model(read_svmlight_model(io.BytesIO(data), task="regression"))


def use_model(model: object) -> None:
    """Predict three samples."""
    features = model.n_features_in_
    if features <= MAX_FEATURES:
        X = np.abs(np.sin(np.arange(3.0 * features))).reshape(3, features)
    else:
        X = sparse.csr_array(([1.0, 1.0], ([0, 2], [0, 1])), shape=(3, features))
        if features > 10**6:
            return  # other estimators than those of text files need memory for each feature
    try:
        assert len(model.predict(X)) == 3
    except ValueError as error:  # documented: the numbers of the model are too large for these samples
        if "exceeds the range of float64" not in str(error):
            raise


def same_numbers(found: object, expected: object) -> None:
    """Raise unless the numbers are the same, NaN included."""
    if found is None or expected is None:
        assert found is expected
        return
    assert np.array_equal(np.asarray(found, dtype=float), np.asarray(expected, dtype=float), equal_nan=True)


def seal_model(data: bytes) -> bytes:
    """Return a model file with the header and the arrays before and after the separator, sizes and checksum."""
    return seal(data, MODEL_MAGIC, 2)


def seal(data: bytes, magic: bytes, version: int) -> bytes:
    """Return a file of a JSON header and arrays."""
    header, _, arrays = data.partition(SEPARATOR)
    header += b" " * (-len(header) % 64)
    start = struct.pack("<8sIIQQ", magic, version, 0, len(header), 64 + len(header) + len(arrays))
    return start + hashlib.sha256(start + header + arrays).digest() + header + arrays


def unseal(file: bytes) -> bytes:
    """Return what `seal` completes to this file."""
    end = 64 + struct.unpack_from("<Q", file, 16)[0]
    return file[64:end].rstrip() + SEPARATOR + file[end:]


def seal_archive(data: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an .npz archive: each member is a name, a line end, and an .npy file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same name twice
        for member in data.split(SEPARATOR):
            name, _, content = member.partition(b"\n")
            archive.writestr(name.decode("latin-1").replace("\0", "") or "empty", content)
    return file.getvalue()


@cache
def scratch_file() -> Path:
    """Return the path of a file for readers that take paths; it is deleted with its folder at the end."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # much faster than a disk
    scratch_file.folder = tempfile.TemporaryDirectory(dir=memory)
    return Path(scratch_file.folder.name) / f"{os.getpid()}"


BLOCKS = "maxmargin.blocks."
DATASETS = "maxmargin.datasets."
INTERCHANGE = "maxmargin.interchange."
TEXT_MODEL = (INTERCHANGE + "model_text", INTERCHANGE + "support_vector_lines")

TARGETS = {
    target.name: target
    for target in (
        Target(
            "libsvm",
            read_libsvm_data,
            (DataFileError,),
            (DATASETS + "libsvm_reader", DATASETS + "libsvm_diagnostics", DATASETS + "text_blocks"),
            LIBSVM_WORDS,
        ),
        Target(
            "samples",
            read_any_samples,
            (DataFileError,),
            (DATASETS + "sample_files", DATASETS + "compression"),
            (
                *LIBSVM_WORDS,
                *CSV_WORDS,
                b"\x1f\x8b\x08\x00",
                b"BZh9",
                b"\xfd7zXZ\x00",
                b"PK\x03\x04",
                b"PAR1",
                b"ARROW1",
            ),
            seeds.compressed,
        ),
        Target(
            "csv",
            read_table,
            (DataFileError,),
            (
                DATASETS + "csv_files",
                DATASETS + "csv_lines",
                DATASETS + "csv_blocks",
                DATASETS + "table",
                DATASETS + "column_roles",
            ),
            CSV_WORDS,
        ),
        Target(
            "columns",
            read_table_columns,
            (DataFileError,),
            (
                *(DATASETS + name for name in ("csv_columns", "column_table")),
                *("maxmargin.preparation." + name for name in ("column_plan", "column_types", "column_values")),
            ),
            (*CSV_WORDS, b"01.02.2024", b"2024-12-31", b"1,5", b"1.234,5", b"n/a"),
        ),
        Target("npy", read_npy_array, (DataFileError,), (DATASETS + "numpy_files",), NPY_WORDS, seeds.arrays),
        Target("blocks_npy", read_blocks_of_npy, (ValueError,), (BLOCKS + "file_arrays",), NPY_WORDS, seeds.arrays),
        Target("blocks_npz", read_blocks_of_npz, (ValueError,), (BLOCKS + "npz_files",), NPY_WORDS, seeds.archives),
        Target("npz", read_npz_archive, (DataFileError,), (DATASETS + "numpy_files",), NPY_WORDS, seeds.archives),
        Target("ranges", read_ranges, (DataFileError,), (DATASETS + "scaling",), RANGE_WORDS),
        Target("journal", read_journal, (ValueError,), ("maxmargin.search.journal",), JOURNAL_WORDS),
        Target(
            "model",
            read_model_file,
            (ModelFileError,),
            (
                *("maxmargin.storage.file_format", "maxmargin.storage.array_table"),
                *(INTERCHANGE + name for name in ("model_file", "value_encoding", "fitted_schema", "attribute_checks")),
            ),
            JSON_WORDS,
            lambda: [unseal(file) for file in seeds.model_files()],
        ),
        Target(
            "pipeline",
            read_pipeline_file,
            (ModelFileError,),
            tuple(
                INTERCHANGE + name
                for name in ("estimator_encoding", "named_values", "sklearn_checks", "sklearn_classes")
            ),
            (*JSON_WORDS, b'{"function":"numpy.log1p"}', b'{"type":"float64"}', b'{"slice":[0,1,null]}', b'"SVC":'),
            lambda: [unseal(file) for file in seeds.pipeline_files()],
        ),
        Target(
            "checkpoint",
            read_checkpoint_file,
            (CheckpointError,),
            ("maxmargin.training.checkpoint_file", "maxmargin.storage.file_format", "maxmargin.storage.array_table"),
            (*JSON_WORDS, b'"start":0', b'"dual":0', b'"gradient":1', b'"weights":0', b'"seed":7'),
            lambda: [unseal(file) for file in seeds.checkpoints()],
        ),
        Target(
            "libsvm_model",
            read_libsvm_model_text,
            (ModelFileError,),
            (INTERCHANGE + "libsvm.text", *TEXT_MODEL),
            MODEL_WORDS,
        ),
        Target(
            "liblinear_model",
            read_liblinear_model_text,
            (ModelFileError,),
            (INTERCHANGE + "liblinear_model", *TEXT_MODEL),
            MODEL_WORDS,
        ),
        Target(
            "svmlight_model",
            read_svmlight_model_text,
            (ModelFileError,),
            (INTERCHANGE + "svmlight_model", *TEXT_MODEL),
            (*MODEL_WORDS, b"SVM-light Version V6.02\n", b" # "),
        ),
    )
}
