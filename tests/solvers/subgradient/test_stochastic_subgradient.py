"""The stochastic subgradient method: steps, averages, options and streams."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from contracts.linear_problems import EASY, hinge, matrix_of, novelty, sparse_rows, squared
from maxmargin import _native
from maxmargin.formulations import c_classification
from maxmargin.problems import Status, certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import PairwiseSolver, StepSize, StochasticSubgradientSolver, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds
from maxmargin.solvers.subgradient.stochastic_state import StochasticState
from maxmargin.testing.named_problems import overlapping, two_clouds
from reference.subgradient_steps import descend


def dense_rows(problem):
    rows = problem.matrix.features()
    data = rows.points.data
    data = data.toarray() if sparse.issparse(data) else data
    return np.hstack([data[rows.points.index], np.full((rows.size, 1), rows.constant)])


STEPS = [StepSize.inverse_time(), StepSize.decaying(0.7, 30.0), StepSize.constant(1e-3)]


@pytest.mark.parametrize(
    "name", ["hinge", "regularised_bias", "squared", "sparse_rows", "regression", "novelty", "two_groups"]
)
@pytest.mark.parametrize(("batch_size", "radius", "growing"), [(1, np.inf, True), (7, np.inf, False), (1, 0.3, True)])
def test_steps_equal_the_reference(name, batch_size, radius, growing):
    problem = SplitProblem.of(EASY[name]()).problem
    F = dense_rows(problem)
    random = np.random.default_rng(1)
    order = np.concatenate([random.permutation(problem.size), random.integers(0, problem.size, 50)])
    smooth = problem.ridge.any()  # its longest steps overflow
    for step_size in STEPS[1:] if smooth else STEPS:
        state = StochasticState(
            np.zeros(F.shape[1]), np.zeros(problem.groups), 60.0, step_size, 0.5, radius=radius, growing=growing
        )
        state.start_average()
        responses, visits = np.zeros((2, problem.size))
        state.update(problem, order, batch_size, responses, visits)
        weights, offset, mean, mean_offset, expected_responses, expected_visits = descend(
            problem, F, order, step_size, batch_size, 60.0, 0.5, radius, growing
        )
        size = np.abs(weights).max()
        np.testing.assert_allclose(state.weights, weights, rtol=1e-8, atol=1e-9 * size)
        np.testing.assert_allclose(state.offset, offset, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(state.average()[0], mean, rtol=1e-8, atol=1e-9 * np.abs(mean).max())
        np.testing.assert_allclose(state.average()[1], mean_offset, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(responses, expected_responses, rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(visits, expected_visits)


@pytest.mark.parametrize("kind", ["float32", "long indices", "picked", "dense"])
def test_data_formats(kind):
    random = np.random.default_rng(5)
    X = sparse.random_array((70, 40), density=0.2, format="csr", rng=random)
    X.data = np.round(X.data * 64) / 64  # the same numbers in single precision
    signs = np.where(random.normal(size=70) > 0, 1.0, -1.0)
    costs = np.full(70, 0.3)
    plain = c_classification.pose(matrix_of(X), signs, costs)
    if kind == "float32":
        other = c_classification.pose(matrix_of(X.astype(np.float32)), signs, costs)
    elif kind == "long indices":
        wide = sparse.csr_array(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        other = c_classification.pose(matrix_of(wide), signs, costs)
    elif kind == "picked":
        twice = matrix_of(sparse.vstack([X[::-1], X], format="csr"))
        other = c_classification.pose(twice.take(np.arange(70, 140)), signs, costs)
    else:
        other = c_classification.pose(matrix_of(X.toarray()), signs, costs)
    solver = StochasticSubgradientSolver(stopping=StoppingRule(max_iterations=3))
    first, second = solver.solve(plain), solver.solve(other)
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"order": "random"},
        {"batch_size": 8},
        {"average_from": 3},
        {"averaging": "uniform", "average_from": 2},
        {"step_size": "inverse_time"},
        {"step_size": "inverse_time", "projection": "ball"},
        {"step_size": StepSize.decaying(1.0, 100.0)},
        {"seed": 7},
    ],
    ids=str,
)
def test_every_option_reaches_the_gap(options):
    problem = hinge()
    solution = StochasticSubgradientSolver(**options).solve(problem)
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution.dual, solution.weights)
    optimum = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-7)).solve(problem).dual).dual
    assert certificate.relative_gap <= 1e-2 * (1 + 1e-9)
    assert certificate.dual <= optimum * (1 + 1e-9)
    assert certificate.primal >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("name", ["hinge", "squared", "novelty", "two_groups", "sparse_rows", "regression"])
def test_ball_contains_the_optimum(name):
    problem = EASY[name]()
    optimum = PairwiseSolver(stopping=StoppingRule(violation=1e-7)).solve(problem).dual
    length = np.linalg.norm(problem.matrix.features().weights(optimum))
    solver = StochasticSubgradientSolver(StepSize.constant(1e-3), projection="ball")
    assert length <= solver.begin(PrimalBounds(problem, None)).state.radius


def test_projection_keeps_the_weights_in_the_ball():
    problem = hinge(cost=10.0)
    run = StochasticSubgradientSolver("inverse_time", projection="ball").begin(PrimalBounds(problem, None))
    for _ in range(5):
        run.advance()
        assert np.linalg.norm(run.state.weights) <= run.state.radius * (1 + 1e-9)


def test_is_deterministic_and_the_seed_matters():
    problem = hinge()
    rule = StoppingRule(max_iterations=4)
    first, second, other = (StochasticSubgradientSolver(stopping=rule, seed=s).solve(problem) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.dual, second.dual)
    assert (first.weights != other.weights).any()


def test_unused_features_have_zero_weights():
    """Features without nonzero entries keep a weight of exactly 0."""
    random = np.random.default_rng(0)
    X = sparse.random_array((200, 100_000), density=1e-4, format="csr", rng=random)
    signs = np.where(random.normal(size=200) > 0, 1.0, -1.0)
    problem = c_classification.pose(matrix_of(X), signs, np.ones(200))
    solution = StochasticSubgradientSolver(stopping=StoppingRule(relative_gap=0.05)).solve(problem)
    assert solution.status is Status.CONVERGED
    unused = np.setdiff1d(np.arange(100_000), X.indices)
    assert not solution.weights[unused].any()


def test_start_from_the_optimum_takes_no_steps():
    problem = squared()
    optimum = PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual
    solution = StochasticSubgradientSolver(stopping=StoppingRule(violation=1e-5)).solve(problem, optimum)
    assert solution.status is Status.CONVERGED
    assert solution.counters.iterations == 0


def test_limits():
    problem = hinge()
    solution = StochasticSubgradientSolver(stopping=StoppingRule(violation=1e-12, max_iterations=5)).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.counters.iterations == 5
    rule = StoppingRule(violation=1e-12, max_seconds=0.0)
    assert StochasticSubgradientSolver(stopping=rule).solve(problem).status is Status.MAX_SECONDS


def test_callback_can_stop_within_a_pass(monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.subgradient.stochastic_subgradient.CHUNK_VALUES", 30)
    problem = hinge(n=600)
    seen = []
    solver = StochasticSubgradientSolver(stopping=StoppingRule(violation=1e-12))
    solution = solver.solve(problem, callback=lambda progress: seen.append(progress) or True)
    assert solution.status is Status.STOPPED
    assert solution.counters.iterations == 0
    assert certify(problem, solution.dual, solution.weights).primal < certify(problem, np.zeros(600)).primal


def test_chunks_do_not_change_the_path(monkeypatch):
    problem = hinge()
    rule = StoppingRule(max_iterations=3)
    whole = StochasticSubgradientSolver(batch_size=4, stopping=rule).solve(problem)
    monkeypatch.setattr("maxmargin.solvers.subgradient.stochastic_subgradient.CHUNK_VALUES", 50)
    np.testing.assert_array_equal(
        StochasticSubgradientSolver(batch_size=4, stopping=rule).solve(problem).weights, whole.weights
    )


def test_divergence_with_a_given_step_size_raises():
    with pytest.raises(ValueError, match="too long.*'trial'"):
        StochasticSubgradientSolver(step_size=StepSize.constant(10.0)).solve(squared())


def test_recovers_from_a_bad_trial(monkeypatch):
    problem = squared()
    monkeypatch.setattr(
        "maxmargin.solvers.subgradient.stochastic_subgradient.choose_step_size",
        lambda *_: StepSize.decaying(1.0, 1.0 / 100),
    )
    solution = StochasticSubgradientSolver(stopping=StoppingRule(relative_gap=1e-2)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-2


def test_options_are_checked():
    for wrong, sentence in (
        ({"order": "sorted"}, "order must be one of"),
        ({"averaging": "none"}, "averaging must be one of"),
        ({"projection": "box"}, "projection must be one of"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"average_from": -1}, "average_from must be at least 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            StochasticSubgradientSolver(**wrong)
    with pytest.raises(ValueError, match="solver='stochastic_subgradient'.*use 'block' or 'pairwise'"):
        StochasticSubgradientSolver().solve(overlapping())


class TestStreams:
    """A state that batches of a stream update."""

    def batches(self, count=10, size=50):
        X, signs = two_clouds(count * size, 4, 2.0, seed=3)
        X[:, 0] += 5.0
        for k in range(count):
            part = slice(k * size, (k + 1) * size)
            yield c_classification.pose(matrix_of(X[part]), signs[part], np.full(size, 0.02))
        self.whole = c_classification.pose(matrix_of(X), signs, np.full(len(X), 0.02))

    def test_stream_approaches_the_optimum_of_all_samples(self):
        batches = list(self.batches())
        state = StochasticSubgradientSolver().begin_stream(batches[0], samples=500)
        for _ in range(5):
            for batch in batches:
                state.update(batch)
        weights, offset = state.average()
        optimum = certify(self.whole, PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(self.whole).dual)
        slack = self.whole.linear - self.whole.matrix.features().decisions(weights) - offset[0]
        primal = 0.5 * weights @ weights + 0.02 * np.maximum(0, self.whole.linear * slack).sum()
        assert optimum.dual <= primal <= 1.05 * optimum.dual

    def test_pickled_state_continues_bit_for_bit(self):
        batches = list(self.batches())
        state = StochasticSubgradientSolver(projection="ball").begin_stream(batches[0], samples=500)
        for batch in batches[:5]:
            state.update(batch, batch_size=3)
        other = pickle.loads(pickle.dumps(state))
        for batch in batches[5:]:
            state.update(batch, batch_size=3)
            other.update(batch, batch_size=3)
        for mine, yours in zip(state.average(), other.average(), strict=True):
            np.testing.assert_array_equal(mine, yours)
        assert state.steps == other.steps == 5 * 17 + 5 * 17

    def test_batch_boundaries_do_not_matter(self):
        (whole,) = self.batches(count=1, size=60)
        X = whole.matrix.features().points.data
        one = StochasticSubgradientSolver().begin_stream(whole)
        two = StochasticSubgradientSolver().begin_stream(whole)
        one.update(whole)
        for part in (slice(0, 7), slice(7, 8), slice(8, 60)):
            size = part.stop - part.start
            two.update(c_classification.pose(matrix_of(X[part]), whole.linear[part], np.full(size, 0.02)))
        np.testing.assert_array_equal(one.average()[0], two.average()[0])
        np.testing.assert_array_equal(one.average()[1], two.average()[1])

    def test_one_class_stream(self):
        problem = novelty()
        state = StochasticSubgradientSolver().begin_stream(problem)
        for _ in range(300):
            state.update(problem)
        optimum = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-7)).solve(problem).dual)
        primal = PrimalBounds(problem, None).evaluate(state.average()[0]).primal
        assert primal == pytest.approx(optimum.dual, rel=2e-2)

    @pytest.mark.parametrize("first", [1, 3])
    def test_uninformative_first_batch(self, first):
        """One sample, or a few with one label, are sufficient for the choice of the step size."""
        list(self.batches())
        X, signs = self.whole.matrix.features().points.data, self.whole.linear
        positive = np.flatnonzero(signs > 0)[:first]
        some = c_classification.pose(matrix_of(X[positive]), signs[positive], np.full(first, 0.02))
        state = StochasticSubgradientSolver().begin_stream(some, samples=500)
        for _ in range(10):
            state.update(self.whole, np.random.default_rng(0).permutation(500))
        optimum = certify(self.whole, PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(self.whole).dual)
        assert PrimalBounds(self.whole, None).evaluate(state.average()[0]).primal <= 1.25 * optimum.dual

    def test_before_the_first_step(self):
        state = StochasticSubgradientSolver(average_from=1).begin_stream(hinge())
        assert not state.average()[0].any()
        state.update(hinge())
        np.testing.assert_array_equal(state.average()[0], state.weights)  # averaging has not begun
        state.start_average()
        state.update(hinge())
        assert (state.average()[0] != state.weights).any()

    def test_other_features_raise(self):
        state = StochasticSubgradientSolver().begin_stream(hinge())
        with pytest.raises(ValueError, match="50 features and 1 groups, but earlier ones had 3 and 1"):
            state.update(sparse_rows())
        with pytest.raises(ValueError, match="samples must be above 0"):
            StochasticSubgradientSolver().begin_stream(hinge(), samples=0)


def test_native_loop_checks_its_arguments():
    floats, longs, none = np.zeros(3), np.arange(3), np.empty(0)

    def call(**changed):
        given = {
            "direction": np.zeros(3), "sums": np.zeros(3), "offset": np.zeros(1), "offset_sums": np.zeros(1),
            "numbers": np.zeros(5), "lower": floats, "group": np.zeros(3, np.int32), "responses": none, "visits": none,
            "order": longs, "batch": 1, **changed,
        }  # fmt: skip
        names = ("direction", "sums", "offset", "offset_sums", "numbers")
        weights = _native.AveragedWeights(**{name: given[name] for name in names}, steps=0)
        problem = _native.BoxProblem(
            linear=floats, lower=given["lower"], upper=floats, ridge=floats, group=given["group"], groups=1
        )
        options = _native.SubgradientOptions(
            constant=0.0, samples=3.0, share=np.zeros(1), numerator=1.0, growth=1.0, delay=1.0, offset_rate=1.0,
            radius=np.inf, growing=True,
        )  # fmt: skip
        rows = _native.DataRows(values=np.ones((3, 2)), width=2)
        others = (given[name] for name in ("order", "batch", "responses", "visits"))
        return _native.subgradient_steps(rows, problem, weights, options, *others)

    assert call() == 3
    for name, value in (
        ("direction", np.empty(0)),
        ("direction", np.zeros(4)),
        ("sums", np.zeros(2)),
        ("offset_sums", np.zeros(2)),
        ("numbers", np.zeros(4)),
        ("lower", np.zeros(4)),
        ("group", np.full(3, 2, np.int32)),
        ("responses", np.zeros(3)),
        ("order", np.array([0, 1, 7])),
        ("batch", 0),
    ):
        with pytest.raises(ValueError, match="malformed|one length|another width|out of range|at least 1"):
            call(**{name: value})
