"""`ActiveLearner`: no label is lost, and no sample is queried twice."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from maxmargin import SVC, ActiveLearner, LinearSVC
from maxmargin.estimators.active.active_learner import LearnerStatus
from maxmargin.online import QUERY_STRATEGIES, LowErrorRate, MarginExhausted


@pytest.fixture
def clouds():
    X, y = make_blobs(300, centers=[[-2, 0], [2, 0]], cluster_std=1.0, random_state=3)
    return X, y


@pytest.fixture
def three():
    X, y = make_blobs(240, centers=[[-3, 0], [3, 0], [0, 4]], cluster_std=1.2, random_state=3)
    return X, np.array(["left", "right", "top"])[y]


MODELS = [
    SVC(C=10),
    svm.SVC(C=10),
    LinearSVC(),
    SGDClassifier(random_state=0),
    make_pipeline(StandardScaler(), SVC()),
]


@pytest.mark.parametrize("strategy", QUERY_STRATEGIES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__module__.split(".")[-1])
def test_strategies_and_estimators(three, model, strategy):
    X, y = three
    learner = ActiveLearner(model, strategy, random_state=0).run(X, label=lambda index: y[index], n_labels=40)
    assert learner.n_labels_ == 40
    assert len(set(learner.labelled_.tolist())) == 40
    np.testing.assert_array_equal(learner.labels_, y[learner.labelled_])
    assert learner.estimator_.score(X, y) > 0.8
    assert not hasattr(model, "classes_")  # it was cloned


@pytest.mark.parametrize("strategy", QUERY_STRATEGIES)
def test_random_state(three, strategy):
    X, y = three
    first, again = (ActiveLearner(SVC(), strategy, random_state=7).run(X, label=y, n_labels=25) for _ in range(2))
    np.testing.assert_array_equal(first.labelled_, again.labelled_)
    other = ActiveLearner(SVC(), strategy, random_state=8).run(X, label=y, n_labels=25)
    assert other.labelled_.tolist() != first.labelled_.tolist()


def test_four_interfaces_are_equivalent(three):
    X, y = three

    def learner():
        return ActiveLearner(SVC(), "margin", random_state=0)

    ran = learner().run(X, label=lambda index: y[index], n_labels=30)
    from_array = learner().run(X, label=y, n_labels=30)
    asked = learner().set_pool(X)
    for _ in range(30):
        index = asked.ask()
        asked.tell(index, y[index])
    iterated = learner().set_pool(X)
    for count, index in enumerate(iterated, 1):
        iterated.tell(index, y[index])
        if count == 30:
            break
    for other in (from_array, asked, iterated):
        np.testing.assert_array_equal(ran.labelled_, other.labelled_)
        np.testing.assert_array_equal(ran.estimator_.predict(X), other.estimator_.predict(X))


def test_labels_are_read_only_when_queried(clouds):
    X, y = clouds
    labelled = []

    def label(index):
        labelled.append(index)
        return y[index]

    learner = ActiveLearner(SVC(), "gradient", random_state=0).run(X, label=label, n_labels=20)
    assert labelled == learner.labelled_.tolist()
    unlabelled = ActiveLearner(SVC(), "margin_of_candidates", random_state=0).run(X, label=y, n_labels=20)
    np.testing.assert_array_equal(learner.labelled_, unlabelled.labelled_)


def test_gradient_strategy_with_known_labels(clouds):
    X, y = clouds
    learner = ActiveLearner(SVC(), "gradient", random_state=0).set_pool(X, y).run(n_labels=10)
    wrong = learner.estimator_.predict(X) != y
    chosen = learner.ask(5)  # each among 50: nearly the whole pool
    assert wrong.sum() >= 5
    assert wrong[chosen].all()


def test_random_queries_until_there_are_two_classes():
    X = np.arange(100.0)[:, None]
    y = (X[:, 0] >= 97).astype(int)
    learner = ActiveLearner(SVC(gamma=1.0), "margin", n_random=0, random_state=0).set_pool(X)
    count = 0
    for index in learner:
        with pytest.raises(AttributeError, match="labels of two classes"):
            _ = learner.estimator_
        learner.tell(index, y[index])
        count += 1
        if y[index]:
            break
    assert count > 5
    assert set(learner.estimator_.classes_) == {0, 1}


def test_late_class(clouds):
    X, y = clouds
    y = np.where(X[:, 1] > 1.5, 2, y)
    order = np.append(np.flatnonzero(y < 2)[:60], np.flatnonzero(y == 2))
    for model in (SGDClassifier(random_state=0), LinearSVC(), SVC()):
        learner = ActiveLearner(model, random_state=0).set_pool(X)
        for index in order:
            learner.tell(index, y[index])
        np.testing.assert_array_equal(learner.estimator_.classes_, [0, 1, 2])
        assert learner.estimator_.score(X[y == 2], y[y == 2]) > 0.5


def test_partial_fit_with_given_classes(clouds):
    X, y = clouds
    learner = ActiveLearner(SGDClassifier(random_state=0), "random", classes=[0, 1, 5], random_state=0)
    learner.run(X, label=y, n_labels=50)
    rows, labels = X[learner.labelled_], y[learner.labelled_]
    by_hand = SGDClassifier(random_state=0).partial_fit(rows[:10], labels[:10], classes=[0, 1, 5])
    for k in range(10, 50):
        by_hand.partial_fit(rows[k : k + 1], labels[k : k + 1])
    np.testing.assert_array_equal(learner.estimator_.coef_, by_hand.coef_)
    with pytest.raises(ValueError, match="not in classes"):
        learner.tell(learner.ask(), 7)


def test_fit_uses_all_labels(clouds):
    X, y = clouds
    learner = ActiveLearner(LinearSVC(), learning="fit", random_state=0).run(X, label=y, n_labels=30)
    expected = LinearSVC().fit(X[learner.labelled_], y[learner.labelled_])
    np.testing.assert_array_equal(learner.estimator_.coef_, expected.coef_)


class LabellingError(Exception):
    pass


@pytest.mark.parametrize("error", [LabellingError, KeyboardInterrupt])
@pytest.mark.parametrize("batch", [1, 4])
def test_interruption_during_labelling(three, error, batch):
    X, y = three
    calls = 0

    def label(index):
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise error
        return y[index]

    interrupted = ActiveLearner(SVC(), "margin", random_state=0).set_pool(X)
    while interrupted.n_labels_ < 32:
        before = interrupted.n_labels_
        with pytest.raises(error):
            interrupted.run(label=label, n_labels=40 - interrupted.n_labels_, batch=batch)
        assert interrupted.n_labels_ == before + 2
    straight = ActiveLearner(SVC(), "margin", random_state=0).run(X, label=y, n_labels=40, batch=batch)
    np.testing.assert_array_equal(interrupted.labelled_, straight.labelled_[: interrupted.n_labels_])
    interrupted.run(label=y, n_labels=40 - interrupted.n_labels_, batch=batch)
    np.testing.assert_array_equal(interrupted.labelled_, straight.labelled_)
    np.testing.assert_array_equal(interrupted.estimator_.predict(X), straight.estimator_.predict(X))


class Interrupted(SGDClassifier):
    """Raises KeyboardInterrupt in one update."""

    steps = 0

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        super().partial_fit(X, y, classes, sample_weight)
        Interrupted.steps += 1
        if Interrupted.steps == 25:
            raise KeyboardInterrupt
        return self


def test_interruption_during_an_update(clouds):
    X, y = clouds
    Interrupted.steps = 0
    learner = ActiveLearner(Interrupted(random_state=0), "random", random_state=0).set_pool(X)
    with pytest.raises(KeyboardInterrupt):
        learner.run(label=y, n_labels=50)
    assert 20 < learner.n_labels_ < 50
    learner.run(label=y, n_labels=50 - learner.n_labels_)
    straight = ActiveLearner(SGDClassifier(random_state=0), "random", random_state=0).run(X, label=y, n_labels=50)
    np.testing.assert_array_equal(learner.labelled_, straight.labelled_)
    assert learner.estimator_.t_ == straight.estimator_.t_  # each sample was used once


def test_unpickled_learner_continues(three):
    X, y = three
    learner = ActiveLearner(SVC(), stop="low_error_rate", random_state=0).run(X, label=y, n_labels=20)
    learner.ask(3)
    copy = pickle.loads(pickle.dumps(learner))
    for each in (learner, copy):
        each.run(label=y, n_labels=20)
    np.testing.assert_array_equal(learner.labelled_, copy.labelled_)


def test_exhausted_pool(clouds):
    X, y = clouds[0][:30], clouds[1][:30]
    learner = ActiveLearner(SVC(), random_state=0).run(X, label=y)
    assert learner.n_labels_ == 30
    assert learner.status is LearnerStatus.EXHAUSTED
    assert len(learner.ask(5)) == 0
    assert list(learner) == []
    assert learner.run(label=y, n_labels=5).n_labels_ == 30


def test_pool_of_one_class():
    learner = ActiveLearner(SVC(), random_state=0).run(np.arange(5.0)[:, None], label=np.zeros(5))
    assert learner.n_labels_ == 5
    with pytest.raises(AttributeError):
        _ = learner.estimator_


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_equal_rows_are_queried_once(form):
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 3)), 4, axis=0)
    X[3] = [0.0, 1.0, 2.0]
    X[20] = [-0.0, 1.0, 2.0]
    learner = ActiveLearner(SVC(), random_state=0).run(form(X), label=np.arange(60) % 2)
    assert learner.n_labels_ == 16
    assert len(np.unique(X[learner.labelled_], axis=0)) == 16


def test_equal_rows_with_opposite_labels():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    learner = ActiveLearner(SVC(), random_state=0).set_pool(X).tell(range(5), [0, 1, 0, 1, 1])
    assert learner.n_labels_ == 5
    assert len(learner.ask()) == 0


def test_pending_samples_are_not_queried_again(clouds):
    X, y = clouds
    learner = ActiveLearner(SVC(), random_state=0).run(X, label=y, n_labels=20)
    pending = np.concatenate([learner.ask(7) for _ in range(5)])
    assert len(set(pending.tolist()) | set(learner.labelled_.tolist())) == 55
    learner.tell(pending[::-1], y[pending[::-1]])  # in another order
    assert learner.n_labels_ == 55


def test_samples_may_be_skipped(clouds):
    X, y = clouds[0][:40], clouds[1][:40]
    learner = ActiveLearner(SVC(), random_state=0).run(X, label=lambda index: y[index] if index % 2 else None)
    assert sorted(learner.labelled_.tolist()) == list(range(1, 40, 2))
    assert learner.status is LearnerStatus.EXHAUSTED


def test_frames_and_objects(three):
    X, y = three
    frame = pd.DataFrame(X, columns=["a", "b"])
    in_frame = ActiveLearner(SVC(), random_state=0).run(frame, label=y, n_labels=20)
    plain = ActiveLearner(SVC(), random_state=0).run(X, label=y, n_labels=20)
    np.testing.assert_array_equal(in_frame.labelled_, plain.labelled_)
    assert in_frame.estimator_.feature_names_in_.tolist() == ["a", "b"]
    words = ["ab", "aab", "abb", "ba", "xyz", "xxy", "xzy", "yz"]

    def common_letters(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    learner = ActiveLearner(SVC(kernel=common_letters), "margin", n_random=2, random_state=0)
    learner.run(words, label=[0, 0, 0, 0, 1, 1, 1, 1])
    assert learner.estimator_.score(np.array(words, dtype=object), [0, 0, 0, 0, 1, 1, 1, 1]) == 1.0


def test_low_error_rate(clouds):
    X, y = clouds
    X = X + 2 * np.sign(X[:, :1]) * [1, 0]  # separable
    y = (X[:, 0] > 0).astype(int)
    learner = ActiveLearner(SVC(), stop=LowErrorRate(window=20, fraction=0.0), random_state=0).run(X, label=y)
    assert learner.status is LearnerStatus.STOPPED
    assert 20 <= learner.n_labels_ < 60
    assert len(learner.ask()) == 0
    assert learner.estimator_.score(X, y) == 1.0


def test_low_error_rate_uses_predictions_before_the_update():
    X, y = np.arange(60.0)[:, None], np.arange(60) % 2  # labels at random: half of the predictions are wrong
    learner = ActiveLearner(LinearSVC(), stop=LowErrorRate(window=10, fraction=0.1), random_state=0).run(X, label=y)
    assert learner.status is LearnerStatus.EXHAUSTED


@pytest.mark.parametrize("strategy", QUERY_STRATEGIES)
def test_margin_exhausted(clouds, strategy):
    X, y = clouds
    X = X + 3 * np.sign(X[:, :1]) * [1, 0]
    y = (X[:, 0] > 0).astype(int)
    rule = MarginExhausted(window=20, fraction=0.1)
    learner = ActiveLearner(SVC(C=10, gamma=0.02), strategy, stop=rule, random_state=0).run(X, label=y)
    assert learner.status is LearnerStatus.STOPPED
    assert learner.n_labels_ < 150
    inside = np.abs(learner.estimator_.decision_function(X)) < 1
    assert inside.mean() < 0.3


def test_stopping_rules_by_name(clouds):
    X, y = clouds
    for stop in ("low_error_rate", "margin_exhausted"):
        assert ActiveLearner(SVC(), stop=stop, random_state=0).run(X, label=y, n_labels=20).n_labels_ == 20


def stream_of(n, seed=0):
    X, y = make_blobs(n, centers=[[-2, 0], [2, 0]], cluster_std=1.0, random_state=seed)
    return X, dict(zip(map(tuple, X), y, strict=True))


@pytest.mark.parametrize("strategy", ["margin", "auto_active", "gradient"])
def test_stream_with_a_threshold(strategy):
    X, labels = stream_of(500)
    learner = ActiveLearner(SVC(C=10, gamma=0.1), strategy, threshold=0.5, random_state=0)
    learner.run_stream(X, lambda sample: labels[tuple(sample)])
    assert 10 <= learner.n_labels_ < 150
    selected = learner.should_query(X)
    np.testing.assert_array_equal(selected, np.abs(learner.estimator_.decision_function(X)) < 0.5)


@pytest.mark.parametrize("strategy", QUERY_STRATEGIES)
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_stream_with_a_rate(strategy, rate):
    X, labels = stream_of(300)
    learner = ActiveLearner(SVC(C=10, gamma=0.1), strategy, rate=rate, random_state=0)
    learner.run_stream(X, lambda sample: labels[tuple(sample)])
    assert 0.5 * rate * 300 < learner.n_labels_ <= rate * 300
    fresh, known = stream_of(500, seed=1)
    assert learner.estimator_.score(fresh, [known[tuple(x)] for x in fresh]) > 0.9


def test_stream_in_batches_and_sparse_rows():
    X, labels = stream_of(400)
    y = np.array([labels[tuple(x)] for x in X])
    learner = ActiveLearner(SGDClassifier(random_state=0), "margin", rate=0.3, random_state=0)
    for start in range(0, 400, 25):
        part = slice(start, start + 25)
        selected = learner.should_query(X[part])
        if selected.any():
            learner.learn(X[part][selected], y[part][selected])
    assert learner.n_labels_ <= 120
    assert learner.estimator_.score(X, y) > 0.9
    rows = sparse.csr_matrix(X)
    on_sparse = ActiveLearner(SVC(), rate=0.3, random_state=0)
    on_sparse.run_stream((rows[k] for k in range(400)), lambda row: labels[tuple(row.toarray()[0])], n_labels=30)
    assert on_sparse.n_labels_ == 30


def test_stream_stops_and_continues_after_errors():
    X, labels = stream_of(400)
    learner = ActiveLearner(SVC(), threshold=np.nextafter(2, 3), stop=LowErrorRate(20, 0.2), random_state=0)

    def label(sample):
        if learner.n_labels_ == 12:
            raise LabellingError
        return labels[tuple(sample)]

    samples = iter(X)
    with pytest.raises(LabellingError):
        learner.run_stream(samples, label)
    learner.run_stream(samples, lambda sample: labels[tuple(sample)])
    assert learner.status is LearnerStatus.STOPPED
    assert not learner.should_query(X).any()
    assert next(samples) is not None  # the rest was not read


def test_constant_stream_needs_few_labels():
    rows = [np.array([-1.0]), np.array([1.0])] + [np.array([0.1])] * 300
    learner = ActiveLearner(SVC(), rate=0.5, n_random=2, random_state=0)
    learner.run_stream([rows[0], rows[0], *rows[1:]], lambda sample: int(sample[0] > 0))
    assert learner.n_labels_ <= 4


def test_margin_is_better_than_random_on_digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    gained = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(y))
        pool, test = order[:1200], order[1200:]
        model = SVC(C=10, gamma=0.1, multi_class="ovr")
        by_margin, by_chance = (
            ActiveLearner(model, strategy, n_random=20, random_state=seed)
            .run(X[pool], label=y[pool], n_labels=count, batch=10)
            .estimator_.score(X[test], y[test])
            for strategy, count in (("margin", 150), ("random", 300))
        )
        gained.append(by_margin - by_chance)
    assert np.mean(gained) > 0  # with half the number of labels


def test_error_messages(clouds):
    X, y = clouds
    learner = ActiveLearner(SVC(), random_state=0)
    for call in (learner.ask, lambda: learner.tell(0, 1), lambda: list(learner), lambda: learner.run(label=y)):
        with pytest.raises(ValueError, match="no pool"):
            call()
    learner.set_pool(X)
    learner.tell([0, 1], y[:2])
    cases = [
        (lambda: learner.tell(0, 1), "labelled or skipped once"),
        (lambda: learner.tell([5, 5], [1, 1]), "labelled or skipped once"),
        (lambda: learner.tell(2, None), "missing"),
        (lambda: learner.tell(2, np.nan), "missing"),
        (lambda: learner.tell(2, "word"), "all strings or all numbers"),
        (lambda: learner.tell([2, 3], [1]), "as many labels"),
        (lambda: learner.tell(1.5, 1), "must be an integer"),
        (lambda: learner.ask(0), "at least 1"),
        (lambda: learner.run(n_labels=5), "requires label"),
        (lambda: learner.run(label=y[:5]), "one label for each"),
        (lambda: learner.set_pool(X, y[:5]), "one label for each"),
        (lambda: learner.set_pool(X[:0]), "minimum of 1"),
        (lambda: learner.set_pool(np.where(X > 3, np.nan, X)), "NaN"),
        (lambda: learner.learn(X[:3], [1]), "one label for each"),
        (lambda: ActiveLearner(SVC(), "best"), "strategy must be one of"),
        (lambda: ActiveLearner(SVC(), stop="late"), "stop must be None"),
        (lambda: ActiveLearner(SVC(), learning="partial_fit"), "no partial_fit"),
        (lambda: ActiveLearner(SVC(), rate=1.5), "rate must be"),
        (lambda: ActiveLearner(SVC(), "random").should_query(X), "needs a rate"),
    ]
    for call, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(IndexError, match="0 to 299"):
        learner.tell(300, 1)
    assert learner.n_labels_ == 2
    with pytest.raises(TypeError, match="no decision_function"):
        ActiveLearner(DecisionTreeClassifier(), random_state=0).run(X, label=y, n_labels=20)
    assert (
        ActiveLearner(DecisionTreeClassifier(), "random", random_state=0).run(X, label=y, n_labels=20).n_labels_ == 20
    )
