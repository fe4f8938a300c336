"""The native loops under sanitisers, the checks of their arguments, and the instruction sets against each other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin import _native
from maxmargin._native import _extension

ROOT = Path(__file__).parents[2]


@pytest.mark.native
def test_sanitisers_report_no_errors(tmp_path):
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # both are in the test extra
    cmake, ninja = (shutil.which(name, path=programs) for name in ("cmake", "ninja"))
    configure = [cmake, "-S", str(ROOT), "-B", str(tmp_path), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    configure.append("-DMAXMARGIN_SANITIZE=address")
    for command in (configure, [cmake, "--build", str(tmp_path)]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    for program in ("native_tests", "text_tests", "text_tests_with_strtod", "from_chars_tests"):
        result = subprocess.run([tmp_path / program], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "passed" in result.stdout


def test_instruction_sets_agree():
    program = (
        "import sys, numpy as np; from maxmargin import SVC, _native; from maxmargin.datasets import chessboard;"
        "X, y = chessboard(3000, noise=0.05); m = SVC(C=10, gamma=1.0).fit(X, y);"
        "n = SVC(C=10, gamma=1.0, n_jobs=1).fit(X, y); assert (m.dual_coef_ == n.dual_coef_).all();"
        "Z = np.tile(X[:300], 40); k = SVC(kernel='laplacian', gamma=0.01).fit(Z, y[:300]);"
        "assert m.certificate_.violation <= 1e-3 and k.certificate_.violation <= 1e-3;"
        "sys.stdout.buffer.write(m.decision_function(X).tobytes() + k.decision_function(Z).tobytes());"
        "print(_native.level, file=sys.stderr)"
    )
    results = {}
    for requested in ("v2", "v3", "v4"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MAXMARGIN_LEVEL": requested},
            capture_output=True,
            check=True,
        )
        results[run.stderr.decode().strip()] = np.frombuffer(run.stdout)
    for result in results.values():
        np.testing.assert_allclose(result, results[_native.level], atol=1e-2)
    assert _native.level in results


def test_blocks_check_their_arguments():
    X, indices = np.ones((4, 3)), np.array([0, 1])
    values, norms = np.zeros(48 * 3), np.zeros(48)
    with pytest.raises(ValueError, match="out of range"):
        _native.pack(X, np.array([0, 5]), 4, np.empty(0), np.empty(0), values, norms, 1)
    with pytest.raises(ValueError, match="more memory"):
        _native.pack(X, indices, 4, np.empty(0), np.empty(0), np.empty(2), norms, 1)
    with pytest.raises(ValueError, match="unknown kernel formula"):
        _native.Formula(term=9, function=0, gamma=0.0, coef0=0.0, degree=0)
    formula = _native.Formula(term=0, function=0, gamma=0.0, coef0=0.0, degree=0)
    packed = _native.PackedSamples(values=values, half_norms=norms, count=2, features=3)
    single = values.astype(np.float32), norms.astype(np.float32)
    with pytest.raises(ValueError, match="float32 or float64"):
        _native.PackedSamples(values=single[0], half_norms=norms, count=2, features=3)
    mixed = _native.PackedSamples(values=single[0], half_norms=single[1], count=2, features=3)
    with pytest.raises(ValueError, match="same precision"):
        _native.dense_block(formula, packed, mixed, np.empty((2, 2)), indices, 1)
    many = _native.PackedSamples(values=values, half_norms=norms, count=49, features=3)
    for columns, out, slots, message in (
        (packed, np.empty((2, 1)), indices, "too short"),
        (packed, np.empty((1, 2)), indices, "out of range"),
        (packed, np.empty((2, 2)), indices[:1], "one slot"),
        (many, np.empty((2, 49)), indices, "too short"),
    ):
        with pytest.raises(ValueError, match=message):
            _native.dense_block(formula, packed, columns, out, slots, 1)
    for first, last in ((-1, 1), (1, 0), (0, 2)):
        with pytest.raises(ValueError, match="panels are out of range"):
            _native.dense_square(formula, packed, packed, np.empty((2, 2)), indices, first, last, 1)
    for size, rows, message in ((3, indices, "square"), (2, np.array([0, 4]), "out of range")):
        with pytest.raises(ValueError, match=message):
            _native.dense_matrix(formula, X, rows, np.empty((size, size)), 1)
    starts, features = np.array([0, 1, 2]), np.array([0, 7], dtype=np.int32)
    for changed, message in (({"width": 3}, "feature index"), ({"starts": np.array([0, 9, 2])}, "malformed")):
        given = {
            "starts": starts,
            "features": features,
            "values": np.ones(2),
            "indices": indices,
            "width": 8,
            **changed,
        }
        with pytest.raises(ValueError, match=message):
            _native.sparse_separate_sums(0, _native.SparseSamples(**given), np.empty(2))
    with pytest.raises(ValueError, match="one change"):
        _native.subtract_rows(np.zeros(2), np.zeros((2, 2), np.float32), indices, np.ones(3), 2, 1)
    with pytest.raises(ValueError, match="wrong shape"):
        _native.mirror(np.zeros((2, 3), np.float32), 1, 2, 1)
    with pytest.raises(ValueError, match="wrong shape"):
        _native.mirror(np.zeros((2, 2), np.float32), 3, 3, 1)


def pairwise_steps(**changed):
    """Call the pair steps of a problem of three variables, some of whose arguments are changed."""
    given = {
        "dual": np.zeros(3), "gradient": np.zeros(3), "diagonal": np.zeros(3), "bounded_product": np.zeros(3),
        "lower": np.zeros(3), "upper": np.zeros(3), "ridge": np.zeros(3), "group": np.zeros(3, np.int32), "groups": 1,
        "active": 3, "storage": np.zeros((2, 3)), "slot": np.zeros(3, np.int64), "valid": np.zeros(2, np.int64),
        "last_use": np.zeros(2, np.int64), "rule": 1, "memory": np.full(4, -1), **changed,
    }  # fmt: skip

    def part(*names):
        return {name: given[name] for name in names}

    return _native.pairwise_steps(
        _native.BoxProblem(**part("lower", "upper", "ridge", "group", "groups")),
        _native.PairwiseState(**part("dual", "gradient", "diagonal", "active", "bounded_product")),
        _native.CachedRows(**part("storage", "slot", "valid", "last_use"), clock=0),
        _native.PairSelection(**part("rule", "memory"), violation=0.0),
        _native.StepLimits(tolerance=1e-3, max_steps=10, max_seconds=1.0),
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lower", np.zeros(4)),
        ("gradient", np.zeros(4)),
        ("bounded_product", np.zeros(2)),
        ("active", 4),
        ("valid", np.zeros(3, np.int64)),
        ("valid", np.full(2, 4)),
        ("storage", np.zeros((2, 2))),
        ("storage", np.zeros((2, 3), np.int32)),
        ("slot", np.array([0, 0, 2])),
        ("group", np.array([0, 0, 1], np.int32)),
        ("groups", -1),
        ("rule", 9),
        ("memory", np.zeros(2, np.int64)),
        ("memory", np.full(4, 3)),
    ],
)
def test_pairwise_steps_check_their_arguments(name, value):
    with pytest.raises(ValueError, match=r"must|wrong length|out of range|malformed|unknown|memory"):
        pairwise_steps(**{name: value})


def test_arrays_are_never_converted():
    assert pairwise_steps().steps == 0
    with pytest.raises(TypeError):
        pairwise_steps(dual=np.zeros(3, np.float32))
    with pytest.raises(TypeError):
        pairwise_steps(dual=np.zeros(6)[::2])
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    with pytest.raises(TypeError):
        pairwise_steps(gradient=read_only)
    pairwise_steps(lower=read_only)


def test_argument_structs_keep_their_arrays_alive():
    upper = np.ones(3)
    count = sys.getrefcount(upper)
    problem = _native.BoxProblem(lower=np.zeros(3), upper=upper, group=np.zeros(3, np.int32), groups=1)
    assert sys.getrefcount(upper) > count
    increasing, decreasing = np.empty(3), np.empty(3)
    _native.kkt_violations(problem, np.zeros(3), np.arange(3.0), increasing, decreasing)
    assert increasing.tolist() == [-np.inf] * 3  # no variable can decrease
    assert decreasing.tolist() == [-np.inf] * 3
    del problem
    assert sys.getrefcount(upper) == count
    with pytest.raises(ValueError, match="one length"):
        _native.BoxProblem(lower=np.zeros(2), upper=upper, group=np.zeros(3, np.int32), groups=1)
    assert sys.getrefcount(upper) == count


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_exceptions_of_worker_threads_reach_python(threads):
    with pytest.raises(RuntimeError, match="raised in a worker thread"):
        _extension._raise_in_thread(threads)


def test_overlapping_outputs_are_rejected():
    shared = np.zeros(6)
    with pytest.raises(ValueError, match="dual and gradient share memory"):
        pairwise_steps(dual=shared[:3], gradient=shared[2:5])
    with pytest.raises(ValueError, match="lower and dual share memory"):
        pairwise_steps(dual=shared[:3], lower=shared[:3])
    pairwise_steps(dual=shared[:3], gradient=shared[3:], lower=np.zeros(3))  # neighbours do not overlap
    same = np.zeros(3)
    pairwise_steps(lower=same, upper=same, ridge=same)  # nothing is written to these
    table = np.ones((4, 4), np.float32)
    some = np.arange(2)
    with pytest.raises(ValueError, match="share memory"):
        _native.gather(table, some, np.arange(4), table[1:3], 1)
    with pytest.raises(ValueError, match="share memory"):
        _native.subtract_rows(same, np.ones((2, 3), np.float32), some, same[:2], 3, 1)
    rows = _native.DataRows(values=np.ones((3, 3)), width=3)
    with pytest.raises(ValueError, match="weights and out share memory"):
        _native.row_decisions(rows, same, same, 1)
    problem = _native.BoxProblem(lower=np.zeros(3), upper=np.ones(3), group=np.zeros(3, np.int32), groups=1)
    with pytest.raises(ValueError, match="increasing and decreasing share memory"):
        _native.kkt_violations(problem, np.zeros(3), np.ones(3), same, same)
    with pytest.raises(ValueError, match="dual and gradient share memory"):
        _native.solve_free_variables(np.eye(3), problem, same, same, 1e-11, 1e9)


def test_text_loops_check_their_arguments():
    text = np.frombuffer(b"1 1:2\n" + b"\n" * _native.text_padding, np.uint8)
    chunks, floats, longs = np.zeros((4, 3), np.int64), np.zeros(4), np.zeros(4, np.int64)
    assert _native.count_text(text, 6, chunks, 1) == 1
    assert chunks[0].tolist() == [6, 1, 1]

    def read(text=text, size=6, chunks=chunks[:1], base=1, row=0, stored=0):
        rules = _native.TextRules(base=base, zero_allowed=True, limit=9, has_queries=False)
        target = _native.TextArrays(
            labels=floats, starts=longs, queries=longs[:0], features=np.zeros(4, np.int32), values=np.zeros(4), row=row,
            stored=stored,
        )  # fmt: skip
        return _native.read_text(text, size, chunks, rules, target, 1)

    good = read()
    assert (good.status, good.line, good.rows, good.stored) == (0, -1, 1, 1)
    assert (good.largest, good.largest_line, good.zero_line) == (1, 0, -1)
    for changed in (
        {"text": text[:-1]},
        {"size": 5},
        {"size": -1},
        {"chunks": chunks[:, :2].copy()},
        {"chunks": np.array([[9, 1, 1]])},
        {"chunks": np.array([[3, 1, 1]])},
        {"chunks": np.array([[6, 1, -1]])},
        {"chunks": np.array([[6, 9, 1]])},
        {"chunks": np.array([[6, 1, 9]])},
        {"base": 2},
        {"row": 4},
        {"row": -1},
        {"stored": 4},
    ):
        with pytest.raises(ValueError, match=r"text|malformed|must"):
            read(**changed)
    assert read(chunks=np.array([[6, 0, 0]])).status == 1  # a wrong count: nothing is written beyond it
    with pytest.raises(ValueError, match="out of range"):
        _native.find_irregular_lines(text, 6, 7, False, False, False, longs)
    rows = [np.ones(1), np.array([0, 1]), np.zeros(1, np.int32), np.full(1, 0.5), longs[:0], 1, 17, 1]
    assert _native.write_text(*rows) == b"1 1:0.5\n"
    for position, value in ((0, floats), (1, np.array([0, 2])), (1, np.array([1, 0])), (5, 2), (6, 18), (4, longs)):
        bad = list(rows)
        bad[position] = value
        with pytest.raises(ValueError, match=r"malformed|ascend"):
            _native.write_text(*bad)


def test_shuffling_is_uniform_and_depends_on_the_seed_alone():
    """Every order of three comes up equally often, to within five standard deviations."""
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        order = np.arange(3)
        _native.shuffle(order, seed)
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 5 * np.sqrt(6000 * 5 / 36) for count in counts.values())
    first, second = np.arange(100), np.arange(100)
    _native.shuffle(first, 2**63 - 1)
    _native.shuffle(second, 2**63 - 1)
    assert np.array_equal(first, second)
    assert np.array_equal(np.sort(first), np.arange(100))
    _native.shuffle(np.arange(0), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_largest_absolute_value_is_not_a_number_where_one_is_not_finite(dtype, threads):
    values = np.random.default_rng(0).normal(size=200_003).astype(dtype)
    assert _native.largest_absolute(values, threads) == np.abs(values).max()
    assert _native.largest_absolute(values[:0], threads) == 0.0
    for bad in (np.nan, np.inf, -np.inf):
        for position in (0, 70_001, len(values) - 1):
            changed = values.copy()
            changed[position] = bad
            assert np.isnan(_native.largest_absolute(changed, threads))


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_combinations_pack_rows_of_either_precision(source):
    random = np.random.default_rng(0)
    X, shift = random.normal(size=(301, 7)).astype(source), random.normal(size=7)
    indices = random.permutation(301)[:205]
    formula = _native.Formula(term=1, function=2, gamma=0.3, coef0=0.0, degree=0)
    width = _native.double_panel
    padded = -(-20 // width) * width
    values, norms, weights = np.empty(padded * 7), np.empty(padded), np.zeros(padded)
    _native.pack(X, np.arange(20), width, shift, np.empty(0), values, norms, 1)
    columns = _native.PackedSamples(values=values, half_norms=norms, count=20, features=7)
    weights[:20] = random.normal(size=20)
    results = []
    for threads in (1, 3):
        out = np.empty(len(indices))
        _native.dense_combination(formula, X, indices, shift, np.empty(0), columns, weights, out, threads)
        results.append(out)
    distances = ((X[indices, None].astype(float) - X[None, :20].astype(float)) ** 2).sum(axis=2)
    np.testing.assert_allclose(results[0], np.exp(-0.3 * distances) @ weights[:20], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(results[0], results[1])
    with pytest.raises(ValueError, match="out of range"):
        _native.dense_combination(formula, X, np.array([301]), shift, np.empty(0), columns, weights, out[:1], 1)
    with pytest.raises(ValueError, match="one output"):
        _native.dense_combination(formula, X, indices, shift, np.empty(0), columns, weights, out[:1], 1)
