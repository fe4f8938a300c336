"""The same model everywhere: bit-equal where that is promised (docs/same_everywhere.md), else within a proven bound."""

import os
import pickle
import subprocess
import sys
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from maxmargin import _native, load, save
from parity import KERNEL_MODELS, LINEAR_MODELS, MODELS, assert_same_optimum, fitted, intervals, values

#: Forms of the same samples that every estimator must give the same bits for.
EQUAL_FORMS = {
    "again": lambda samples: samples.copy(),
    "Fortran order": np.asfortranarray,
    "strided": lambda samples: np.repeat(samples, 2, axis=0)[::2],
    "reversed memory": lambda samples: samples[::-1].copy()[::-1],
    "read-only": lambda samples: np.frombuffer(samples.tobytes()).reshape(samples.shape),
}

#: Numbers of threads besides 1.
THREADS = (2, 3, 4, 5, 8, 11, 16)

#: Models with so much work per pass that linear loops divide it among threads.
DIVIDED = {"LinearSVC, 60,000 samples", "KernelApproximationSVC"}


def wide_indices(samples):
    """Return the samples as compressed rows with 64-bit indices."""
    rows = sparse.csr_array(samples)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


@cache
def reference(name):
    """Return values and intervals of a model with one thread on dense float64 samples in C order."""
    return measured(name, fitted(name, n_jobs=1))


def measured(name, model):
    return values(model, MODELS[name][1]), intervals(model)


def assert_same_bits(name, model):
    expected = reference(name)
    for mine, theirs in zip(measured(name, model), expected, strict=True):
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("form", EQUAL_FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_the_memory_layout_changes_no_bit(name, form):
    assert_same_bits(name, fitted(name, EQUAL_FORMS[form], n_jobs=1))


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_float32_samples_give_kernel_models_the_bits_of_float64(name):
    assert_same_bits(name, fitted(name, lambda samples: samples.astype(np.float32), n_jobs=1))


@pytest.mark.parametrize("name", LINEAR_MODELS)
def test_float32_samples_give_linear_models_the_same_optimum(name):
    model = fitted(name, lambda samples: samples.astype(np.float32), n_jobs=1)
    assert_same_optimum(name, measured(name, model), reference(name))


@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_sparse_samples_give_the_same_optimum(name, precision):
    model = fitted(name, lambda samples: sparse.csr_array(samples.astype(precision)), n_jobs=1)
    assert_same_optimum(name, measured(name, model), reference(name))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, wide_indices])
@pytest.mark.parametrize("name", MODELS)
def test_the_sparse_format_changes_no_bit(name, container):
    known, model = (fitted(name, each, n_jobs=1) for each in (sparse.csr_array, container))
    for mine, theirs in zip(measured(name, model), measured(name, known), strict=True):
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_threads(name, threads):
    model = fitted(name, n_jobs=threads)
    if name in DIVIDED:  # sums over samples are divided among the threads
        assert_same_optimum(name, measured(name, model), reference(name))
        again = measured(name, fitted(name, n_jobs=threads))
        assert all(a.tobytes() == b.tobytes() for a, b in zip(again, measured(name, model), strict=True))
    elif name in LINEAR_MODELS:  # the bound on rounding errors counts the partial sums
        assert measured(name, model)[0].tobytes() == reference(name)[0].tobytes()
        assert_same_optimum(name, measured(name, model), reference(name))
    else:
        assert_same_bits(name, model)


@pytest.mark.parametrize("name", MODELS)
def test_an_observer_changes_no_bit(name):
    assert_same_bits(name, fitted(name, n_jobs=1, callback=lambda progress: None, max_seconds=1e6))


@pytest.mark.parametrize("name", [name for name in MODELS if hasattr(MODELS[name][0], "checkpoint")])
def test_a_resumed_fit_has_the_same_optimum(name, tmp_path):
    file = tmp_path / "fit.checkpoint"
    limit = {"max_iter": 3} if "max_iter" in MODELS[name][0].get_params() else {"max_seconds": 0.0}
    stopped = fitted(name, n_jobs=1, checkpoint=file, checkpoint_seconds=0.0, **limit)
    if stopped.fit_status_:  # else it ended within the limit
        assert file.exists()
    model = fitted(name, n_jobs=1, checkpoint=file, checkpoint_seconds=0.0)
    assert not file.exists()
    assert not model.fit_status_
    assert_same_optimum(name, measured(name, model), reference(name))


@pytest.mark.parametrize("name", MODELS)
def test_stored_models_predict_the_same_bits(name):
    model, samples = fitted(name, n_jobs=1), MODELS[name][1]
    stored = [pickle.loads(pickle.dumps(model))]
    if not name.startswith("Online"):  # whose state is pickled only
        file = BytesIO()
        save(model, file)
        stored.append(load(BytesIO(file.getvalue())))
    for other in stored:
        assert values(other, samples).tobytes() == reference(name)[0].tobytes()


#: Instruction sets to ask for; a processor without one uses the next narrower one.
LEVELS = ("v2", "v3", "v4")


@pytest.fixture(scope="session")
def at_level(tmp_path_factory):
    """Return the values and intervals of all models with an instruction set, computed by another process."""

    @cache
    def run(level):
        file = tmp_path_factory.mktemp("levels") / f"{level}.npz"
        program = Path(__file__).with_name("parity.py")
        environment = {**os.environ, "MAXMARGIN_LEVEL": level}
        subprocess.run([sys.executable, str(program), str(file)], env=environment, check=True)
        with np.load(file) as found:
            return dict(found)

    return run


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_instruction_sets_give_the_same_optimum(name, level, at_level):
    found = at_level(level)
    measured_there = found[f"{name}/values"], found[f"{name}/intervals"]
    assert_same_optimum(name, measured_there, reference(name))
    if found["level"] == _native.level:  # another process with the same instruction set
        assert all(a.tobytes() == b.tobytes() for a, b in zip(measured_there, reference(name), strict=True))
