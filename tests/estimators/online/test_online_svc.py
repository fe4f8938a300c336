"""`OnlineSVC`: streams, passes and certificates."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, OnlineSVC, certify, save
from maxmargin.datasets import chessboard
from maxmargin.kernels import Gaussian, Linear
from reference.data import iris, wine


@parametrize_with_checks(
    [
        OnlineSVC(),
        OnlineSVC(kernel="linear", finishing=True, tol=1e-10),
        OnlineSVC(fit_intercept=False, selection="most_violating_pair", epochs=2, multi_class="ovo"),
        OnlineSVC(budget=40, budget_strategy="merge"),
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": "one pass depends on the order and number of the samples",
            "check_sample_weight_equivalence_on_sparse_data": "one pass depends on the order and number of the samples",
        }
        if not estimator.finishing
        else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def certificates(model):
    found = model.certificate_
    return found if isinstance(found, list) else [found]


def in_batches(model, X, y, size, **options):
    for start in range(0, len(y), size):
        model.partial_fit(X[start : start + size], y[start : start + size], **options)
    return model


class TestOnePass:
    def test_second_order_beats_first_order_on_the_chessboard(self):
        X, y = chessboard(5000)
        test = chessboard(5000, seed=1)
        found = {}
        for selection in ("most_violating_pair", "second_order"):
            models = [OnlineSVC(C=1000, gamma=1.0, selection=selection, random_state=s).fit(X, y) for s in range(3)]
            certified = [model.certify(X, y) for model in models]
            found[selection] = np.mean(
                [(len(m.support_), m.score(*test), p.primal, p.dual) for m, p in zip(models, certified, strict=True)],
                axis=0,
            )
        first, second = found["most_violating_pair"], found["second_order"]
        assert second[0] < first[0] / 3
        assert second[1] > first[1]
        assert second[2] < first[2]
        assert second[3] > first[3]

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_is_close_to_the_batch_model(self, bias, form):
        X, y = chessboard(3000, size=2, noise=0.1)
        test = chessboard(3000, size=2, seed=1)
        model = OnlineSVC(C=1.0, gamma=2.0, fit_intercept=bias, random_state=0).fit(form(X), y)
        batch = SVC(C=1.0, gamma=2.0, fit_intercept=bias).fit(X, y)
        assert model.score(*test) > batch.score(*test) - 0.02
        certificate = model.certify(form(X), y)
        assert certificate.dual <= batch.certificate_.primal
        assert batch.certificate_.dual <= certificate.primal <= 1.3 * batch.certificate_.primal
        assert certificate.infeasibility <= 1e-9

    def test_more_epochs_reduce_the_gap(self):
        X, y = chessboard(1000, noise=0.05)
        gaps = [OnlineSVC(C=10, gamma=2.0, epochs=k, random_state=0).fit(X, y).certify(X, y).gap for k in (1, 4, 16)]
        assert gaps[2] < gaps[1] < gaps[0]

    def test_random_state_determines_the_order(self):
        X, y = chessboard(300)
        one, same, other = (OnlineSVC(random_state=s, gamma=2.0).fit(X, y).decision_function(X) for s in (0, 0, 1))
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)

    def test_attributes(self):
        X, y = wine()
        model = OnlineSVC(gamma=0.01, random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        assert model.n_support_.sum() == len(model.support_)
        np.testing.assert_array_equal(model.classes_[np.repeat([0, 1, 2], model.n_support_)], y[model.support_])
        assert model.dual_coef_.shape == (3, len(model.support_))
        assert model.intercept_.shape == (3,)
        assert model.n_samples_seen_ == len(y)
        assert model.n_iter_ > 0
        assert model.budget_loss_ == 0.0
        decision = model.dual_coef_ @ Gaussian(0.01)(model.support_vectors_, X) + model.intercept_[:, None]
        np.testing.assert_allclose(model.decision_function(X), decision.T, atol=1e-9)
        with pytest.raises(AttributeError, match="before fit"):
            _ = OnlineSVC().support_
        with pytest.raises(NotFittedError):
            OnlineSVC().predict(X)


class TestFinishing:
    @pytest.mark.parametrize("strategy", ["ovr", "ovo"])
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("data", [iris, wine, lambda: chessboard(600, noise=0.1)])
    def test_reaches_the_batch_optimum(self, strategy, bias, data):
        X, y = data()
        options = {"multi_class": strategy, "fit_intercept": bias, "C": 3.0, "tol": 1e-5, "gamma": 0.1}
        weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        weights[::9] = 0.0
        batch = SVC(**options).fit(X, y, weights)
        model = OnlineSVC(finishing=True, random_state=0, **options).fit(X, y, weights)
        np.testing.assert_allclose(model.decision_function(X), batch.decision_function(X), atol=1e-3)
        batch_certificates = batch.certificate_ if isinstance(batch.certificate_, list) else [batch.certificate_]
        for own, expected in zip(certificates(model), batch_certificates, strict=True):
            assert own.violation <= 1e-5
            assert own.primal == pytest.approx(expected.primal, rel=1e-5)
            assert len(own.slack) == len(expected.slack)  # all samples, not only the memory

    def test_stream_after_finishing(self):
        X, y = chessboard(1000, noise=0.05)
        model = OnlineSVC(C=10, gamma=2.0, finishing=True, random_state=0).fit(X[:800], y[:800])
        in_memory = certify(*model._learner_.dual_problem(0))
        assert in_memory.violation <= 2e-3
        model.set_params(finishing=False)
        in_batches(model, X[800:], y[800:], 17)
        assert model.n_samples_seen_ == 1000
        assert model.score(X, y) > 0.85
        assert certificates(model)[0].infeasibility <= 1e-9

    def test_partial_fit_reaches_the_optimum_of_the_memory(self):
        X, y = chessboard(1000, noise=0.05)
        model = in_batches(OnlineSVC(C=10, gamma=2.0, finishing=True), X, y, 100)
        assert model.certificate_.violation <= 1.5e-3
        assert len(model.certificate_.slack) < 1000

    def test_excludes_budget_and_forget(self):
        X, y = chessboard(100)
        for others in ({"budget": 20}, {"forget": 20}):
            with pytest.raises(ValueError, match="finishing=True in fit keeps all support vectors"):
                OnlineSVC(finishing=True, **others).fit(X, y)


class TestStreams:
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_batch_boundaries_do_not_matter(self, form):
        X, y = chessboard(600, noise=0.05)
        whole = OnlineSVC(C=10, gamma=2.0).partial_fit(form(X), y)
        for size in (1, 50, 333):
            cut = in_batches(OnlineSVC(C=10, gamma=2.0), form(X), y, size)
            np.testing.assert_array_equal(cut.decision_function(X), whole.decision_function(X))

    @pytest.mark.parametrize("strategy", ["ovr", "ovo"])
    @pytest.mark.parametrize("names", [np.arange(3), np.array(["red", "blue", "a very long name"])])
    def test_late_classes(self, strategy, names):
        X, y = iris()
        y = names[y]
        order = np.random.default_rng(0).permutation(150)
        model = OnlineSVC(C=10, gamma=0.3, multi_class=strategy, finishing=True)
        late = names[[2, 0, 1]]  # the first is alone for a while, and another appears late
        for known in (late[:1], late[:2], late):
            rows = order[np.isin(y[order], known)]
            for k in rows[:40]:
                model.partial_fit(X[k : k + 1], y[k : k + 1])
            assert model.classes_.tolist() == sorted(known.tolist())
            assert set(model.predict(X)) <= set(known)
            shape = model.decision_function(X).shape
            assert shape == ((150,) if len(known) < 3 else (150, 3))
        in_batches(model, X[order], y[order], 30)
        assert model.score(X, y) > 0.93
        assert len(certificates(model)) == 3
        assert all(certificate.infeasibility <= 1e-9 for certificate in certificates(model))

    @pytest.mark.parametrize("strategy", ["ovr", "ovo"])
    def test_known_classes(self, strategy):
        X, y = iris()
        model = OnlineSVC(gamma=0.3, multi_class=strategy).partial_fit(X[:50], y[:50], classes=[0, 1, 2])
        assert model.classes_.tolist() == [0, 1, 2]
        assert (model.predict(X) == 0).all()
        with pytest.raises(ValueError, match="not in classes"):
            model.partial_fit(X, y + 3, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="all be numbers or all be strings"):
            model.partial_fit(X, np.where(y == 0, "a", "b"))

    def test_a_constant_stream(self):
        model = OnlineSVC(gamma=1.0)
        for _ in range(200):
            model.partial_fit([[1.0, 2.0]], [7])
        assert model.predict([[0.0, 0.0]]).tolist() == [7]
        assert model._learner_.count < 100
        assert model.n_samples_seen_ == 200
        assert model.certificate_.gap == 0.0
        model.partial_fit([[5.0, 5.0]], [3])
        assert model.predict([[1.0, 2.0], [5.0, 5.0]]).tolist() == [7, 3]

    @pytest.mark.parametrize("bias", [True, False])
    def test_copies_with_opposite_labels(self, bias):
        X, y = np.zeros((200, 2)), np.arange(200) % 2
        model = in_batches(OnlineSVC(C=2.0, gamma=1.0, fit_intercept=bias), X, y, 7)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.certificate_.infeasibility <= 1e-9
        assert model.certify(X, y).primal <= 400 * (1 + 1e-9)

    def test_classes_one_after_the_other(self):
        X, y = chessboard(1000, size=2)
        order = np.argsort(y, kind="stable")
        model = in_batches(OnlineSVC(C=10, gamma=2.0, finishing=True), X[order], y[order], 50)
        assert model.certificate_.violation <= 1.5e-3
        assert model.score(X, y) > 0.6  # the first samples were observed without the other class
        assert in_batches(model, X, y, 50).score(X, y) > 0.9

    def test_weights_are_costs(self):
        X, y = chessboard(300, noise=0.1)
        weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 300)
        one = OnlineSVC(C=2.0, gamma=2.0).partial_fit(X, y, sample_weight=weights)
        used = weights > 0
        other = OnlineSVC(C=1.0, gamma=2.0).partial_fit(X[used], y[used], sample_weight=2 * weights[used])
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        by_class = OnlineSVC(C=1.0, gamma=2.0, class_weight={0: 3.0, 9: 5.0}).partial_fit(X, y)
        by_sample = OnlineSVC(C=1.0, gamma=2.0).partial_fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
        np.testing.assert_array_equal(by_class.decision_function(X), by_sample.decision_function(X))
        with pytest.raises(ValueError, match="not supported by partial_fit"):
            OnlineSVC(class_weight="balanced").partial_fit(X, y)

    @pytest.mark.parametrize(
        "options", [{}, {"multi_class": "ovo"}, {"forget": 90}, {"budget": 30}, {"cache_size": 0.01}]
    )
    def test_unpickled_model_continues_bit_for_bit(self, options):
        X, y = wine()
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        one, other = OnlineSVC(gamma=0.1, **options), OnlineSVC(gamma=0.1, **options)
        for start in range(0, 170, 17):
            batch = X[start : start + 17], y[start : start + 17]
            one.partial_fit(*batch)
            other = pickle.loads(pickle.dumps(other.partial_fit(*batch)))
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)

    def test_format_may_change_between_batches(self):
        X, y = chessboard(300)
        X32 = X.astype(np.float32)
        one = OnlineSVC(gamma=2.0).partial_fit(X32[:150], y[:150]).partial_fit(X[150:], y[150:])
        other = OnlineSVC(gamma=2.0).partial_fit(X32[:150].astype(float), y[:150])
        other.partial_fit(sparse.csr_matrix(X[150:]), y[150:])
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(sparse.csr_array(X)))


class TestValidation:
    def test_rejected_batch_leaves_the_model_unchanged(self):
        X, y = chessboard(200)
        model = OnlineSVC(gamma=2.0).partial_fit(X, y)
        before = pickle.dumps(model)
        broken = X.copy()
        broken[150, 1] = np.nan
        for arguments, sentence in (
            ((broken, y), "NaN"),
            ((X[:, :1], y), "features"),
            ((X, y[:-1]), "inconsistent"),
            ((X, y, None, np.ones(3)), "sample_weight"),
            ((X, y + 0.5), "continuous"),
        ):
            with pytest.raises(ValueError, match=sentence):
                model.partial_fit(*arguments)
        assert pickle.dumps(model) == before
        with pytest.raises(ValueError, match="NaN"):
            OnlineSVC().partial_fit(broken, y)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"C": np.inf}, "no hard margin"),
            ({"C": 0}, "C must be"),
            ({"kernel": "precomputed"}, "use SVC"),
            ({"selection": "maximum_gain"}, "selection must be"),
            ({"epochs": 0}, "epochs must be"),
            ({"budget": 1}, "budget must be"),
            ({"budget_strategy": "forget"}, "budget_strategy must be"),
            ({"forget": 0}, "forget must be"),
            ({"forget": 5, "epochs": 2}, "requires epochs=1"),
            ({"multi_class": "crammer_singer"}, "multi_class must be"),
            ({"budget": 9, "budget_strategy": "merge", "kernel": "linear"}, "Gaussian kernel and dense"),
            ({"max_seconds": -1}, "max_seconds must be"),
            ({"callback": 3}, "callback must be"),
            ({"finishing": 1}, "finishing must be"),
        ],
    )
    def test_parameters(self, options, sentence):
        X, y = iris()
        for learn in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=sentence):
                getattr(OnlineSVC(**options), learn)(X, y)

    def test_samples_must_be_numeric(self):
        with pytest.raises(ValueError, match="numeric table"):
            OnlineSVC(kernel=lambda A, B: np.ones((len(A), len(B)))).partial_fit(["a", "b"], [0, 1])

    def test_overflow_of_kernel_values(self):
        with pytest.raises(ValueError, match="finite"):
            OnlineSVC(kernel="poly", gamma=1.0, degree=9).partial_fit([[1e60], [0.0]], [0, 1])


class TestLimits:
    def test_time_limit(self):
        X, y = chessboard(3000)
        model = OnlineSVC(gamma=2.0, max_seconds=0.0)
        with pytest.warns(
            ConvergenceWarning, match=r"time limit.*of 3,000 rows of the batch were processed; pass the others"
        ):
            model.partial_fit(X, y)
        taken = model.n_samples_seen_
        assert 0 < taken < 3000
        model.set_params(max_seconds=None).partial_fit(X[taken:], y[taken:])
        whole = OnlineSVC(gamma=2.0).partial_fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))

    def test_callback(self):
        X, y = chessboard(3000)
        reports = []

        def stop(progress):
            reports.append(progress)
            return True

        with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
            OnlineSVC(C=10, gamma=2.0, callback=stop, random_state=0).fit(X, y)
        assert reports[0].gap >= 0
        assert reports[0].support_vectors > 0

        def fail(progress):
            raise OSError("the disk is full")

        model = OnlineSVC(gamma=2.0, callback=fail)
        with pytest.raises(OSError, match="disk is full"):
            model.partial_fit(X, y)
        assert 0 < model.n_samples_seen_ < 3000
        assert model.certificate_.infeasibility <= 1e-9

    def test_ctrl_c(self):
        X, y = chessboard(2000)
        pressed = []

        def press(progress):
            if not pressed:
                pressed.append(True)
                os.kill(os.getpid(), signal.SIGINT)

        model = OnlineSVC(gamma=2.0, callback=press)
        with pytest.raises(KeyboardInterrupt, match=r"of 2,000 rows of the batch were processed; pass the others"):
            model.partial_fit(X, y)
        taken = model.n_samples_seen_
        assert 0 < taken < 2000
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        model.partial_fit(X[taken:], y[taken:])
        whole = OnlineSVC(gamma=2.0).partial_fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))

    def test_ctrl_c_at_any_time(self):
        program = """
import os, signal, threading, time
import numpy as np
from maxmargin import OnlineSVC
from maxmargin.datasets import chessboard

X, y = chessboard(60000, noise=0.2)
model = OnlineSVC(gamma=2.0, C=10).partial_fit(X[:10], y[:10])
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model.partial_fit(X[10:], y[10:])
    raise SystemExit("not interrupted")
except KeyboardInterrupt as interrupt:
    assert "is valid" in str(interrupt), str(interrupt)
taken = model.n_samples_seen_
assert 10 < taken < 60000
assert model.certificate_.infeasibility <= 1e-8
model.partial_fit(X[taken : taken + 100], y[taken : taken + 100])
print("valid model")
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        assert "valid model" in run.stdout, run.stdout + run.stderr


class TestCertificates:
    def test_bounds_hold_on_other_data(self):
        X, y = chessboard(600, noise=0.1)
        model = OnlineSVC(C=5.0, gamma=2.0, random_state=0).fit(X[:300], y[:300])
        for rows in (slice(0, 300), slice(0, 600), slice(300, 600)):
            best = SVC(C=5.0, gamma=2.0, tol=1e-6).fit(X[rows], y[rows]).certificate_
            certificate = model.certify(X[rows], y[rows])
            decision = model.decision_function(X[rows])
            slack = np.maximum(0.0, 1.0 - np.where(y[rows] == 1, 1.0, -1.0) * decision)
            K = Gaussian(2.0)(model.support_vectors_)
            primal = 0.5 * float(model.dual_coef_[0] @ K @ model.dual_coef_[0]) + 5.0 * slack.sum()
            assert certificate.primal == pytest.approx(primal, rel=1e-9)
            assert certificate.dual <= best.primal * (1 + 1e-9)
            assert best.dual <= certificate.primal * (1 + 1e-9)
            assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
        with pytest.raises(ValueError, match="not in classes_"):
            model.certify(X, y + 5)

    def test_certificate_of_the_memory(self):
        X, y = chessboard(600, noise=0.1)
        model = OnlineSVC(C=5.0, gamma=2.0).partial_fit(X, y)
        certificate = model.certificate_
        assert certificate.dual == pytest.approx(model._learner_.dual_value(), rel=1e-5)
        assert certificate.offset[0] == model.intercept_[0]
        assert certificate.gap >= 0

    def test_model_files_are_not_supported(self, tmp_path):
        X, y = chessboard(100)
        with pytest.raises(ValueError, match="use pickle"):
            save(OnlineSVC(gamma=2.0).partial_fit(X, y), tmp_path / "stream.maxmargin")


class TestRemoval:
    @pytest.mark.parametrize("strategy", ["remove", "project", "merge"])
    @pytest.mark.parametrize("bias", [True, False])
    def test_budget(self, strategy, bias):
        X, y = chessboard(1500, size=2, noise=0.05)
        model = OnlineSVC(C=5.0, gamma=2.0, budget=50, budget_strategy=strategy, fit_intercept=bias, finishing=True)
        in_batches(model, X, y, 100)
        assert len(model.support_) <= 50
        assert np.isfinite(model.budget_loss_)
        assert model.score(*chessboard(2000, size=2, seed=1)) > 0.8
        assert model.certificate_.infeasibility <= 1e-8

    def test_unused_budget_changes_nothing(self):
        X, y = chessboard(400, noise=0.05)
        free = OnlineSVC(C=5.0, gamma=2.0).partial_fit(X[:200], y[:200])
        held = OnlineSVC(C=5.0, gamma=2.0, budget=10**6, budget_strategy="remove").partial_fit(X[:200], y[:200])
        assert held.budget_loss_ == 0.0
        np.testing.assert_array_equal(free.decision_function(X), held.decision_function(X))

    def test_forgetting_adapts_to_drift(self):
        X, y = chessboard(2500, size=2, noise=0.1)
        y[2000:] = 1 - y[2000:]  # the labels are exchanged
        model = in_batches(OnlineSVC(C=1.0, gamma=4.0, forget=300), X[:2000], y[:2000], 60)
        test_X, test_y = chessboard(2000, size=2, seed=1)
        assert model.score(test_X, test_y) > 0.8
        in_batches(model, X[2000:], y[2000:], 60)
        assert model.score(test_X, 1 - test_y) > 0.8
        assert (model.support_ >= 2500 - 300).all()
        assert len(model.support_) < 300
        assert len(in_batches(OnlineSVC(C=1.0, gamma=4.0), X, y, 60).support_) > 600

    def test_kernels(self):
        X, y = iris()
        for kernel in (Linear(), 0.5 * Gaussian(0.5) + Linear(), "laplacian", lambda A, B: (1.0 + A @ B.T) ** 2):
            model = OnlineSVC(kernel=kernel, random_state=0, budget=60, epochs=3).fit(X, y)
            assert model.score(X, y) > 0.75
            assert all(certificate.infeasibility <= 1e-8 for certificate in certificates(model))
            clone(model)
