"""`StructuredSVC` against Crammer–Singer machines, quadratic programs over all outputs, and hostile input."""

import pickle
import threading
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from maxmargin import LinearSVC, Status, StructuredSVC
from maxmargin.models import ChainModel, JointModel, MultiLabelModel
from maxmargin.solvers import StoppingRule
from maxmargin.solvers.structured import BlockCoordinateFrankWolfe

SOLVERS = ("frank_wolfe", "cutting_planes")


class Classes(JointModel):
    """Single labels: the problem of Crammer and Singer."""

    def __init__(self, count):
        self.count = count

    def prepare(self, X, y):
        self.n_features = self.count * len(X[0])

    def features(self, x, y):
        return np.outer(np.arange(self.count) == y, x).ravel()

    def loss(self, y, other):
        return float(y != other)

    def predict(self, weights, x):
        return int(np.argmax(weights.reshape(self.count, -1) @ x))

    def most_violated(self, weights, x, y):
        return int(np.argmax(weights.reshape(self.count, -1) @ x + (np.arange(self.count) != y)))


def classes(count=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 4))
    return X, (X @ random.normal(size=(4, 3)) + random.normal(size=(count, 3))).argmax(axis=1)


def sequences(count=30, length=6, labels=3, inputs=4, seed=0, noise=0.7):
    random = np.random.default_rng(seed)
    transitions, means = random.dirichlet(np.full(labels, 0.3), size=labels), random.normal(size=(labels, inputs))
    X, y = [], []
    for _ in range(count):
        path = [random.integers(labels)]
        for _ in range(length - 1):
            path.append(random.choice(labels, p=transitions[path[-1]]))
        y.append(np.array(path))
        X.append(means[path] + noise * random.normal(size=(length, inputs)))
    return X, y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
def test_single_labels_are_the_problem_of_crammer_and_singer(solver, C):
    X, y = classes()
    model = StructuredSVC(Classes(3), C=C, solver=solver, tol=1e-4).fit(X, y)
    same = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-7).fit(X, y).certificate_
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.dual <= same.primal * (1 + 1e-9)
    assert model.certificate_.primal >= same.dual * (1 - 1e-9)
    assert model.certificate_.infeasibility <= 1e-12 * C


def test_optimum_of_a_quadratic_program_over_all_outputs():
    clarabel = pytest.importorskip("clarabel")
    X, y = sequences(count=8, length=3, labels=2, inputs=2)
    chain = ChainModel()
    chain.prepare(X, y)
    width, count = chain.n_features, len(X)
    rows, sides = [], []
    for i, (x, right) in enumerate(zip(X, y, strict=True)):
        for other in product(range(2), repeat=3):
            other = np.array(other)
            row = np.zeros(width + count)
            row[:width], row[width + i] = chain.features(x, other) - chain.features(x, right), -1.0
            rows.append(row)
            sides.append(-chain.loss(right, other))
    quadratic = sparse.block_diag([sparse.eye(width), sparse.csc_matrix((count, count))], format="csc")
    linear = np.concatenate([np.zeros(width), np.full(count, 0.5)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrix, cones = sparse.csc_matrix(np.array(rows)), [clarabel.NonnegativeConeT(len(sides))]
    found = clarabel.DefaultSolver(quadratic, linear, matrix, np.array(sides), cones, settings).solve()
    for solver in SOLVERS:
        certificate = StructuredSVC(ChainModel(), C=0.5, solver=solver, tol=1e-6).fit(X, y).certificate_
        assert certificate.primal == pytest.approx(found.obj_val, rel=2e-6)
        assert certificate.dual == pytest.approx(found.obj_val, rel=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_by_enumeration(solver):
    X, y = sequences(count=10, length=4)
    model = StructuredSVC(ChainModel(), C=0.3, solver=solver, tol=1e-3).fit(X, y)
    weights, chain, certificate = model.coef_, model.model_, model.certificate_
    slack = [
        max(
            chain.loss(right, np.array(other))
            + weights @ (chain.features(x, np.array(other)) - chain.features(x, right))
            for other in product(range(3), repeat=4)
        )
        for x, right in zip(X, y, strict=True)
    ]
    primal = 0.5 * weights @ weights + 0.3 * sum(slack)
    assert certificate.primal == pytest.approx(primal, rel=1e-12)
    assert certificate.slack == pytest.approx(slack, rel=1e-12, abs=1e-12)
    dual = model._models_[0].dual
    own, loss = np.zeros(chain.n_features), 0.0
    for x, right, outputs, coefficients in zip(X, y, dual.outputs, dual.coefficients, strict=True):
        assert (coefficients > 0).all()
        assert coefficients.sum() <= 0.3 * (1 + 1e-12)
        for other, coefficient in zip(outputs, coefficients, strict=True):
            own += coefficient * (chain.features(x, right) - chain.features(x, other))
            loss += coefficient * chain.loss(right, other)
    assert certificate.dual == pytest.approx(loss - 0.5 * own @ own, rel=1e-12)
    assert certificate.gap == pytest.approx(primal - (loss - 0.5 * own @ own), abs=1e-9)


def test_order_of_labels_is_learned():
    X, y = sequences(count=120, length=12, labels=4, noise=1.5)
    chain = StructuredSVC(ChainModel(), C=0.1).fit(X[:80], y[:80])
    single = LinearSVC(C=0.1).fit(np.vstack(X[:80]), np.concatenate(y[:80]))
    apart = single.score(np.vstack(X[80:]), np.concatenate(y[80:]))
    assert chain.score(X[80:], y[80:]) > apart + 0.05


def test_labels_that_occur_together_are_learned():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    first = (X[:, 0] > 0).astype(int)
    y = np.column_stack([first, np.where(random.random(300) < 0.95, first, 1 - first), random.integers(2, size=300)])
    X[:, 1:] = random.normal(size=(300, 4))
    model = StructuredSVC(MultiLabelModel(), C=1.0).fit(X[:200], y[:200])
    predicted = model.predict(X[200:])
    assert predicted.shape == (100, 3)
    assert (predicted[:, 0] == predicted[:, 1]).mean() > 0.95
    assert model.score(X[200:], y[200:]) == pytest.approx((predicted == y[200:]).mean())


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_weight_of_two_is_the_sample_twice_and_zero_leaves_it_out(solver):
    X, y = classes(30)
    weights = np.tile([0.0, 1.0, 2.0], 10)
    weighted = StructuredSVC(Classes(3), solver=solver, tol=1e-6).fit(X, y, weights).certificate_
    index = np.repeat(np.arange(30), weights.astype(int))
    repeated = StructuredSVC(Classes(3), solver=solver, tol=1e-6).fit(X[index], y[index]).certificate_
    assert weighted.primal == pytest.approx(repeated.primal, rel=3e-6)


def test_solvers_agree_on_hard_problems():
    X, y = classes(40)
    for samples, outputs in [
        (np.vstack([X, X]), np.append(y, (y + 1) % 3)),  # every sample twice, with another class
        (X * [1e-4, 1.0, 1e3, 1.0], y),
        (X[:1], y[:1]),
        (np.zeros((4, 2)), [0, 1, 2, 0]),
    ]:
        found = [StructuredSVC(Classes(3), solver=solver).fit(samples, outputs).certificate_ for solver in SOLVERS]
        assert all(one.relative_gap <= 1e-3 for one in found)
        assert found[0].primal == pytest.approx(found[1].primal, rel=2e-3)


def test_huge_costs():
    X, y = classes(40)
    certificate = StructuredSVC(Classes(3), C=1e6).fit(X, y).certificate_
    assert certificate.relative_gap <= 1e-3


def test_inexact_maximisers_are_errors():
    class Inexact(Classes):
        def most_violated(self, weights, x, y):
            return y

    X, y = classes()
    start = BlockCoordinateFrankWolfe(StoppingRule(relative_gap=1e-3))
    model = StructuredSVC(Classes(3)).fit(X, y)
    problem = model._models_[0]._problem
    problem.model.most_violated = lambda weights, x, y: y
    with pytest.raises(ValueError, match=r"most_violated\(\) is not exact"):
        problem.certify(model._models_[0].dual)
    for solver in (*SOLVERS, start):
        with pytest.raises(ValueError, match=r"most_violated\(\) is not exact"):
            StructuredSVC(Inexact(3), solver=solver).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": lambda x, y: np.ones(3)}, r"shape \(n_features,\) = \(12,\), not \(3,\)"),
        ({"features": lambda x, y: np.full(12, np.nan)}, "NaN or infinity"),
        ({"loss": lambda y, other: -1.0}, "at least 0"),
        ({"loss": lambda y, other: np.nan}, "at least 0"),
    ],
)
def test_wrong_models_are_errors(change, message):
    model = Classes(3)
    vars(model).update(change)
    X, y = classes()
    with pytest.raises(ValueError, match=message):
        StructuredSVC(model).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be"),
        ({"C": "1"}, "C must be"),
        ({"tol": -1}, "tol must be"),
        ({"solver": "newton"}, "'frank_wolfe', 'cutting_planes'"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"model": None}, "inherits from"),
        ({"model": ChainModel}, "inherits from"),
        ({"callback": 3}, "callback"),
    ],
)
def test_wrong_parameters_are_errors(parameters, message):
    X, y = sequences(4)
    with pytest.raises(ValueError, match=message):
        StructuredSVC(**{"model": ChainModel(), **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "empty"),
        ("text", [1], "sequence"),
        ([np.ones((2, 2))], [[0, 1], [1]], "inconsistent numbers of samples"),
        ([np.full((2, 2), np.nan)], [[0, 1]], "NaN"),
        (3, [1], "sequence"),
    ],
)
def test_wrong_data_are_errors(X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVC(ChainModel()).fit(X, y)


def test_limits_leave_a_valid_model():
    X, y = sequences(40, noise=2.0)
    with pytest.warns(ConvergenceWarning, match="limit on iterations"):
        model = StructuredSVC(ChainModel(), max_iter=1).fit(X, y)
    assert model.fit_status_ == 1
    assert model.status_ is Status.MAX_ITERATIONS
    assert model.n_iter_ == 1
    assert 0 < model.certificate_.gap < np.inf
    with pytest.warns(ConvergenceWarning, match="time limit"):
        timed = StructuredSVC(ChainModel(), max_seconds=0.0).fit(X, y)
    assert len(timed.predict(X)) == len(X)


def test_callbacks_stop_and_do_not_change_the_result():
    X, y = sequences(40, noise=2.0)
    seen = []
    silent = StructuredSVC(ChainModel()).fit(X, y)
    observed = StructuredSVC(ChainModel(), callback=seen.append, max_seconds=1000.0).fit(X, y)
    assert np.array_equal(silent.coef_, observed.coef_)
    assert seen
    assert seen[-1].dual == pytest.approx(observed.certificate_.dual, rel=1e-9)
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = StructuredSVC(ChainModel(), callback=lambda progress: True).fit(X, y)
    assert stopped.status_ is Status.STOPPED


def test_interruption_keeps_a_model():
    X, y = sequences(40, noise=2.0)

    class Interrupted(ChainModel):
        calls = 0

        def most_violated(self, weights, x, y):
            Interrupted.calls += 1
            if Interrupted.calls == 50:
                raise KeyboardInterrupt
            return super().most_violated(weights, x, y)

    model = StructuredSVC(Interrupted())
    with pytest.raises(KeyboardInterrupt, match="usable"):
        model.fit(X, y)
    assert model.coef_.any()
    assert model.certificate_.gap < np.inf


def test_the_order_of_samples_is_that_of_random_state():
    X, y = sequences(20)
    first, same, other = (StructuredSVC(ChainModel(), random_state=seed).fit(X, y) for seed in (None, 0, 3))
    assert first.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-3)
    assert np.array_equal(StructuredSVC(ChainModel(), random_state=3).fit(X, y).coef_, other.coef_)
    assert same.status_.converged


def test_pickle_clone_and_search():
    X, y = sequences(20)
    model = StructuredSVC(ChainModel(), C=0.1)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.certificate_.primal == model.certificate_.primal
    assert all(np.array_equal(a, b) for a, b in zip(copied.predict(X), model.predict(X), strict=True))
    assert not hasattr(clone(model), "coef_")
    search = GridSearchCV(StructuredSVC(ChainModel()), {"C": [1e-3, 0.1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


def test_fits_in_threads():
    X, y = sequences(20)
    alone = StructuredSVC(ChainModel()).fit(X, y).coef_
    found = [None] * 4

    def fit(k):
        found[k] = StructuredSVC(ChainModel()).fit(X, y).coef_

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(alone, one) for one in found)
