"""`query` with classifiers of this package and of scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, LinearSVC, query
from maxmargin.estimators.active import active_query
from maxmargin.estimators.active.active_query import class_values
from maxmargin.online import QUERY_STRATEGIES, Margin
from maxmargin.online.selection import margins

MODELS = [SVC(), SVC(multi_class="ovr"), LinearSVC(), svm.SVC(), SGDClassifier(random_state=0), LogisticRegression()]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_smallest_margins_come_first(model, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    values = model.decision_function(X)
    largest = np.sort(values, axis=-1)
    expected = np.abs(values) if classes == 2 else largest[:, -1] - largest[:, -2]
    chosen = query(model, X, n=10, random_state=0)
    np.testing.assert_allclose(expected[chosen], np.sort(expected)[:10], atol=1e-12)


@pytest.mark.parametrize("strategy", [*QUERY_STRATEGIES, Margin(n_candidates=5)])
def test_strategies_and_data_formats(strategy):
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    chosen = query(model, X, 5, strategy=strategy, random_state=1)
    assert len(set(chosen.tolist())) == 5
    for form in (sparse.csr_array(X), sparse.csc_matrix(X), X.tolist()):
        np.testing.assert_array_equal(chosen, query(model, form, 5, strategy=strategy, random_state=1))


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
@pytest.mark.parametrize("classes", [3, 4])
def test_margin_of_one_vs_one_is_that_of_the_closest_pair(wrap, classes):
    random = np.random.default_rng(0)
    y = np.arange(200) % classes
    X = random.normal(size=(200, 2)) + 2 * np.column_stack([np.cos(1.6 * y), np.sin(1.6 * y)])
    model = wrap(SVC(decision_function_shape="ovo", gamma=0.5)).fit(X, y)
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    expected = []
    for row in model.decision_function(X):
        against = dict(zip(pairs, row, strict=True))
        against |= {(b, a): -value for (a, b), value in against.items()}
        votes = [sum(against[c, d] > 0 for d in range(classes) if d != c) for c in range(classes)]
        winner = int(np.argmax(votes))
        expected.append(max(0.0, min(against[winner, d] for d in range(classes) if d != winner)))
    values = class_values(model, X)
    np.testing.assert_allclose(margins(values), expected, atol=1e-12)
    assert (np.argmax(values, axis=1) == model.predict(X)).mean() > 0.98  # except for ties of the vote


def test_chunks_do_not_change_the_result(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    whole = query(model, X, 10, random_state=0)
    for rows in (1, 7, 149, 150):
        monkeypatch.setattr(active_query, "CHUNK_ROWS", rows)
        np.testing.assert_array_equal(whole, query(model, X, 10, random_state=0))


def test_known_labels():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC().fit(X[::2], y[::2])
    changed = np.where(np.arange(len(y)) == 77, (y + 1) % 3, y)
    changed[20] = 9  # a class that the model does not know
    assert query(model, X, 2, strategy="gradient", y=changed, random_state=0).tolist()[0] == 20
    with pytest.raises(ValueError, match="one label for each"):
        query(model, X, strategy="gradient", y=y[:3])


def test_error_messages():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        query(SVC(), X)
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="strategy must be one of"):
        query(model, X, strategy="clever")
    with pytest.raises(ValueError, match="n must be a whole number"):
        query(model, X, 0)
    assert len(query(model, X, 1000)) == 150

    class Broken(LogisticRegression):
        def decision_function(self, X):
            return super().decision_function(X) * np.nan

    with pytest.raises(ValueError, match="not finite"):
        query(Broken(max_iter=1000).fit(X, y), X)
