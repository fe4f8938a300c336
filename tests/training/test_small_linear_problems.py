"""Small linear problems: the native call takes the steps of its twin, and its certificate is that of `certify`."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, LinearSVR
from maxmargin.formulations import c_classification, epsilon_regression, squared_epsilon_regression, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix
from maxmargin.problems import Status, certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import LinearSolver, StoppingRule, Trace
from maxmargin.training import Session, small_linear_problems
from maxmargin.training.small_linear_problems import MAX_STEPS, AscentFit, stays_compressed, suits_ascent, train_small
from reference.coordinate_ascent import ascend_to_gap
from reference.small_linear import SmallLinearSolver

RULE = StoppingRule(violation=1e-13, relative_gap=1e-4)
SHAPES = [(20, 8), (50, 3), (300, 6), (40, 60)]
KINDS = ["hinge", "squared hinge", "tube", "squared tube"]


def pose(kind, shape, cost=1.0, intercept="free", storage="dense", epsilon=0.1):
    random = np.random.default_rng(shape[0])
    X = random.normal(size=shape) + 3 * random.normal(size=shape[1])
    targets = X[:, 0] + X[:, 1] * X[:, 2] / 10 + 0.5 * random.normal(size=len(X))
    targets -= targets.mean()
    X = {"dense": X, "single": X.astype(np.float32), "csr": sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))}[storage]
    matrix = KernelMatrix(Linear(), Points(X))
    matrix = BiasAugmentedMatrix(matrix, 4.0) if intercept == "regularised" else matrix
    costs, free = cost * random.uniform(0.5, 1.5, len(targets)), intercept == "free"
    if kind in ("hinge", "squared hinge"):
        formulation = c_classification if kind == "hinge" else squared_hinge
        return formulation.pose(matrix, np.where(targets > 0, 1.0, -1.0), costs, free)
    formulation = epsilon_regression if kind == "tube" else squared_epsilon_regression
    return SplitProblem.of(formulation.pose(matrix, targets, costs, epsilon, free)).problem


def train(problem, rule=RULE, session=None):
    samples = np.arange(problem.matrix.features().points.data.shape[0])
    return train_small(problem, LinearSolver(rule), samples, session or Session())


def weights_of(problem, model):
    """The weights with that of the constant feature."""
    constant = problem.matrix.features().constant
    return np.append(model.weights, float(model.offset) / constant if constant else 0.0)


@pytest.mark.parametrize("intercept", ["free", "regularised", "none"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_takes_the_steps_of_the_twin(kind, shape, intercept):
    problem = pose(kind, shape, intercept=intercept)
    model, twin = train(problem), SmallLinearSolver(problem, RULE.relative_gap)
    dual, weights = twin.solve()
    assert twin.converged
    assert model.status is Status.CONVERGED
    assert (model.counters.iterations, model.counters.rounds) == (twin.steps, twin.rounds)
    np.testing.assert_allclose(model.dual, dual, atol=1e-7 * np.abs(dual).max())
    np.testing.assert_allclose(weights_of(problem, model), weights, atol=1e-7 * np.abs(weights).max())


@pytest.mark.parametrize("storage", ["dense", "single", "csr"])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", ["free", "regularised", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_certificate_is_that_of_the_point(kind, intercept, cost, storage):
    problem = pose(kind, (60, 5), cost, intercept, storage)
    model = train(problem)
    found = model.certificate
    expected = certify(problem, model.dual, weights_of(problem, model), extended=False)
    exact = certify(problem, model.dual, weights_of(problem, model), extended=True)
    assert found.relative_gap <= RULE.relative_gap
    for name in ("primal", "dual", "gap", "violation", "squared_norm"):
        size = abs(found.primal) if name in ("gap", "violation") else abs(getattr(expected, name))
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-11 * (1 + size))
    # The bounds hold, and are about as tight: a sum of bounded variables may be repaired by one of two.
    assert found.primal >= exact.primal - exact.rounding
    assert found.dual <= exact.dual + exact.rounding
    assert 0.5 * expected.rounding <= found.rounding <= 2 * expected.rounding
    assert found.infeasibility <= 1e-12 * np.abs(model.dual).sum()
    np.testing.assert_allclose(found.slack, expected.slack, atol=1e-5)
    assert found.offset_interval.shape == (problem.groups, 2)


@pytest.mark.parametrize("intercept", ["regularised", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_compressed_rows_take_the_steps_of_the_twin(kind, intercept):
    random = np.random.default_rng(0)
    problem = pose(kind, (300, 40), intercept=intercept)
    X = sparse.random_array((300, 40), density=0.05, rng=random, format="csr")
    matrix = KernelMatrix(Linear(), Points(X))
    matrix = BiasAugmentedMatrix(matrix, 4.0) if intercept == "regularised" else matrix
    rows = np.arange(problem.size) % 300
    problem = problem.with_matrix(matrix if problem.size == 300 else matrix.take(rows))
    assert stays_compressed(problem, problem.matrix.features())
    model, twin = train(problem), SmallLinearSolver(problem, RULE.relative_gap)
    dual, weights = twin.solve()
    assert model.status is Status.CONVERGED
    assert (model.counters.iterations, model.counters.rounds) == (twin.steps, twin.rounds)
    np.testing.assert_allclose(model.dual, dual, atol=1e-7 * np.abs(dual).max())
    np.testing.assert_allclose(weights_of(problem, model), weights, atol=1e-7 * np.abs(weights).max())


@pytest.fixture
def ascent(monkeypatch):
    """Leave no problem to the Newton method."""
    monkeypatch.setattr(small_linear_problems, "MAX_STEP_MULTIPLICATIONS", -1)
    monkeypatch.setattr(small_linear_problems, "MAX_RIDGED_VALUES", -1)


@pytest.mark.parametrize("storage", ["dense", "single", "csr"])
@pytest.mark.parametrize("intercept", ["regularised", "none"])
@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("kind", KINDS)
def test_coordinate_ascent_takes_the_passes_of_the_twin(kind, shape, intercept, storage, ascent):
    problem = pose(kind, shape, 2e-3, intercept, storage)
    rows = problem.matrix.features()
    assert suits_ascent(problem, rows)
    model = train(problem)
    table = np.array([rows.decisions(unit) for unit in np.eye(rows.dimension)]).T[:, :-1]
    arrays = {name: getattr(problem, name) for name in ("linear", "lower", "upper", "ridge", "group")}
    state = arrays | {
        "dual": np.zeros(problem.size), "weights": np.zeros(rows.dimension), "constant": rows.constant,
    }  # fmt: skip
    passes, evaluations, converged = ascend_to_gap(table, state, RULE.relative_gap, 50)
    assert converged
    assert model.status is Status.CONVERGED
    assert (model.counters.iterations, model.counters.rounds) == (passes, evaluations)
    np.testing.assert_allclose(model.dual, state["dual"], atol=1e-9 * np.abs(state["dual"]).max())
    np.testing.assert_allclose(weights_of(problem, model), state["weights"], atol=1e-9)


@pytest.mark.parametrize("intercept", ["regularised", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_certificate_of_coordinate_ascent_is_that_of_the_point(kind, intercept, ascent):
    problem = pose(kind, (300, 6), 1e-3, intercept, "csr")
    model = train(problem)
    expected = certify(problem, model.dual, extended=False)
    for name in ("primal", "dual", "gap", "violation", "squared_norm"):
        size = abs(expected.primal)
        assert getattr(model.certificate, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-8 * size)
    np.testing.assert_allclose(model.certificate.slack, expected.slack, atol=1e-9)


def test_coordinate_ascent_ends_where_it_would_take_many_passes(ascent):
    problem = pose("squared hinge", (300, 6), 1.0, "regularised")
    rows = problem.matrix.features()
    assert not suits_ascent(problem, rows)
    assert train(problem) is None
    fit = AscentFit(problem, rows, RULE, 50)
    assert not fit.converged
    assert fit.steps < 50
    assert fit.certificate is not None


def test_coordinate_ascent_with_a_limit_of_passes(ascent):
    problem = pose("hinge", (300, 6), 1e-3, "regularised")
    model = train(problem, StoppingRule(violation=1e-13, relative_gap=1e-9, max_iterations=2))
    assert model.status is Status.MAX_ITERATIONS
    assert model.counters.iterations == 2
    assert model.certificate.dual > 0.0


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_extreme_magnitudes_are_left_to_the_pipeline(scale):
    X, signs = np.array([[1.0], [2.0], [3.0], [4.0]]) * scale, np.array([1.0, -1.0, 1.0, 1.0])
    assert train(squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.ones(4))) is None


def test_large_problems_are_left_to_the_pipeline():
    problem = pose("hinge", (5000, 60))
    assert train(problem) is None


def test_no_other_stopping_rule():
    assert train(pose("hinge", (50, 3)), StoppingRule(violation=1e-3)) is None


def test_a_limit_of_steps():
    problem = pose("tube", (50, 3))
    model = train(problem, StoppingRule(violation=1e-13, relative_gap=1e-4, max_iterations=2))
    assert model.status is Status.MAX_ITERATIONS
    assert model.counters.iterations == 2
    assert model.certificate.primal >= train(problem).certificate.dual
    silent = train(problem, StoppingRule(violation=1e-13, relative_gap=1e-4, max_iterations=MAX_STEPS - 1))
    np.testing.assert_array_equal(silent.dual, train(problem).dual)


def test_observers_see_start_and_end_and_can_stop():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    trace = Trace()
    silent, observed = LinearSVC().fit(X, y), LinearSVC(callback=trace).fit(X, y)
    np.testing.assert_array_equal(silent.coef_, observed.coef_)
    first, last = trace.entries[0], trace.entries[-1]
    assert first.iteration == 0
    assert last.iteration == silent.n_iter_
    assert last.gap <= first.gap
    with pytest.warns(UserWarning, match="callback"):
        stopped = LinearSVC(callback=lambda progress: True).fit(X, y)
    assert stopped.status_ is Status.STOPPED
    assert not stopped.coef_.any()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_samples(n):
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n, dtype=float)
    model = LinearSVR(C=10).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4 or model.certificate_.gap <= 1e-12


def test_columns_of_zeros_and_constants():
    X = np.zeros((30, 4))
    X[:, 1], X[:, 2] = 5.0, np.arange(30)
    model = LinearSVC().fit(X, np.arange(30) > 12)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.coef_[0, 0] == 0.0
