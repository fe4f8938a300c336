"""Online learning: the native loop against its reference, and invariants of the memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin import _native
from maxmargin.datasets import chessboard
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Polynomial
from maxmargin.online import BinaryClassification, NoveltyDetection, OnlineLearner, kernel_table
from maxmargin.online.budget import Budget
from maxmargin.online.kernel_table import KernelTable
from maxmargin.online.sample_store import SampleStore
from reference.online import OnlineTwin

RULES = ["second_order", "most_violating_pair"]


def never():
    return False


def learner_for(
    X, subproblems, kernel=None, *, bias=True, selection="second_order", cache=2**26, tolerance=1e-3, **others
):
    options = {"bias": bias, "selection": selection, "tolerance": tolerance, "cache_bytes": cache, **others}
    learner = OnlineLearner(kernel or Gaussian(1.0), X, **options)
    for subproblem in subproblems:
        learner.add_subproblem(subproblem)
    return learner


def observe(learner, X, labels, costs, first=0, **options):
    identity = first + np.arange(len(labels))
    return learner.observe(X, np.asarray(labels, dtype=np.int64), np.asarray(costs), identity, never, **options)


def dual_of(learner, subproblem, size):
    dual = np.zeros(size)
    used = learner.used()
    dual[learner.slots.identity[used]] = learner.dual[subproblem, used]
    return dual


def exact_gradient(learner, subproblem):
    """Return the gradient computed in double precision."""
    K = learner.kernel(learner.samples.points.values())
    return learner.linear(subproblem) - K @ learner.dual[subproblem, : learner.count]


def assert_valid(learner, accuracy=1e-5):
    used = learner.used()
    for m, subproblem in enumerate(learner.subproblems):
        b = learner.dual[m, : learner.count]
        assert (b >= learner.lower[m, : learner.count]).all()
        assert (b <= learner.upper[m, : learner.count]).all()
        assert not b[np.setdiff1d(np.arange(learner.count), used)].any()
        size = 1.0 + np.abs(b).sum()
        if learner.bias and isinstance(subproblem, BinaryClassification):
            assert abs(b.sum()) <= 1e-12 * size
        constraints = subproblem.constraints(learner.slots.label[used], learner.slots.cost[used])
        members = used[constraints.lower < constraints.upper]
        np.testing.assert_allclose(
            learner.gradient[m, members], exact_gradient(learner, m)[members], atol=accuracy * size
        )


def streams(seed, n=160):
    """Return samples with copies under equal and opposite labels."""
    X, y = chessboard(n, noise=0.1, seed=seed)
    X[n // 2 : n // 2 + 10] = X[:10]
    y[n // 2 : n // 2 + 5] = 1 - y[:5]
    return X, y.astype(np.int64)


class TestNativeLoop:
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("selection", RULES)
    @pytest.mark.parametrize(("cost", "forget"), [(0.5, None), (50.0, None), (1e5, None), (5.0, 10**6)])
    def test_steps_equal_the_reference(self, bias, selection, cost, forget):
        X, y = streams(3)
        costs = cost * np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        costs[::17] = 0.0
        learner = learner_for(X, [BinaryClassification(1)], bias=bias, selection=selection, forget=forget)
        observe(learner, X, y, costs)
        assert learner.table.dtype == (np.float64 if cost == 1e5 else np.float32)
        table = KernelTable(Gaussian(1.0), 2**26)
        store = SampleStore(X)
        store.append(X)
        table.append_all(store, 1)
        if cost == 1e5:
            table.restart(store, np.float64, 1)
        K = np.array([table.fetch(store, k, 1) for k in range(len(y))], dtype=np.float64)
        constraints = BinaryClassification(1).constraints(y, costs)
        options = {"bias": bias, "selection": selection, "selective": forget is None}
        twin = OnlineTwin(K, *constraints[:3], **options)
        for t in range(len(y)):
            twin.observe(t)
        assert learner.steps == len(twin.path)
        assert sorted(learner.slots.identity[learner.used()]) == sorted(twin.memory)
        np.testing.assert_array_equal(dual_of(learner, 0, len(y)), twin.b)

    @pytest.mark.parametrize("selection", RULES)
    def test_steps_of_novelty_detection_equal_the_reference(self, selection):
        X = np.random.default_rng(1).normal(size=(200, 2))
        weights = np.random.default_rng(2).uniform(0.5, 2.0, 200)
        learner = learner_for(X, [NoveltyDetection(0.2)], selection=selection)
        observe(learner, X, np.zeros(200), weights)
        K = Gaussian(1.0)(X)
        constraints = NoveltyDetection(0.2).constraints(np.zeros(200), weights)
        twin = OnlineTwin(K, *constraints, selection=selection)
        for t in range(200):
            twin.observe(t)
        assert learner.steps == pytest.approx(len(twin.path), abs=3)  # ties in float32
        np.testing.assert_allclose(learner.dual.sum(), 0.2 * weights.sum())
        learner.finish(never)
        while twin.reprocess() > 1e-3:
            pass
        np.testing.assert_allclose(learner.dual_value(), 0.5 * twin.b @ twin.g, rtol=1e-3)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize(
        "kernel", [Gaussian(1.0), FunctionKernel(lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(2)))]
    )
    def test_cache_size_does_not_change_the_result(self, bias, kernel):
        X, y = streams(5, 400)
        results = []
        for cache in (2**26, 60_000, 1):
            learner = learner_for(X, [BinaryClassification(1), BinaryClassification(0)], kernel, bias=bias, cache=cache)
            observe(learner, X, y, np.full(400, 10.0))
            assert learner.table.complete == (cache == 2**26)
            assert_valid(learner)
            results.append(np.array([dual_of(learner, m, 400) for m in range(2)]))
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])

    def test_threads_do_not_change_the_result(self, monkeypatch):
        monkeypatch.setattr("maxmargin.online.learner.MIN_MULTIPLICATIONS_FOR_THREADS", 0)
        X, y = streams(5, 400)
        results = []
        for threads in (1, 3):
            learner = learner_for(X, [BinaryClassification(0), BinaryClassification(1), BinaryClassification(1, 0)])
            learner.threads = threads
            observe(learner, X, y, np.full(400, 10.0))
            results.append((learner.dual[:, : learner.count].copy(), learner.steps))
        np.testing.assert_array_equal(results[0][0], results[1][0])
        assert results[0][1] == results[1][1]

    def test_arguments_are_validated(self):
        def call(**changed):
            one = np.zeros(1)
            given = {
                "dual": np.zeros(3), "gradient": np.zeros(3), "lower": np.zeros(3), "upper": np.zeros(3),
                "diagonal": np.zeros(3), "storage": np.zeros((2, 3)), "slot": np.zeros(3, np.int64),
                "last_use": np.zeros(2, np.int64), "arrivals": np.zeros(1, np.int64), "new_lower": one, "rule": 1,
                "progress": np.array([0, 0, 1]), **changed,
            }  # fmt: skip
            names = ("dual", "gradient", "lower", "upper", "diagonal")
            state = _native.OnlineState(**{name: given[name] for name in names})
            rows = _native.CachedRows(**{name: given[name] for name in ("storage", "slot", "last_use")}, clock=0)
            stream = _native.Arrivals(
                slot=given["arrivals"], linear=one, lower=given["new_lower"], upper=one, start=one
            )
            options = _native.OnlineOptions(rule=given["rule"], grouped=True, selective=True)
            return _native.online_steps(state, rows, stream, options, given["progress"], 1e-3, 1.0)

        assert call().reason in (0, 1)
        for name, value in (
            ("gradient", np.zeros(4)),
            ("diagonal", np.zeros(2)),
            ("storage", np.zeros((2, 2))),
            ("storage", np.zeros((2, 3), np.int64)),
            ("slot", np.array([0, 0, 5])),
            ("last_use", np.zeros(3, np.int64)),
            ("arrivals", np.array([3])),
            ("arrivals", np.array([2])),
            ("new_lower", np.zeros(3)),
            ("rule", 2),
            ("progress", np.array([0, 0])),
            ("progress", np.array([2, 0, 0])),
            ("progress", np.array([0, 3, 0])),
            ("progress", np.array([1, 1, 1])),
        ):
            with pytest.raises(ValueError, match=r"must|malformed|out of range|unknown|progress"):
                call(**{name: value})
        with pytest.raises(TypeError):
            call(dual=np.zeros(3, np.float32))


class TestMemory:
    @settings(max_examples=40, deadline=None)
    @given(
        st.integers(0, 10**6),
        st.integers(1, 90),
        st.booleans(),
        st.sampled_from(RULES),
        st.floats(-2, 4).map(lambda e: 10.0**e),
        st.integers(1, 40),
    )
    def test_invariants_hold_and_the_dual_value_increases(self, seed, n, bias, selection, cost, batch):
        random = np.random.default_rng(seed)
        X = random.integers(-2, 3, (n, 2)) * 10.0 ** random.uniform(-2, 1)
        y = random.integers(0, 3, n)
        costs = cost * random.choice([0.1, 1.0, 3.0], n)
        learner = learner_for(
            X,
            [BinaryClassification(0), BinaryClassification(1), BinaryClassification(0, 2)],
            bias=bias,
            selection=selection,
        )
        value = 0.0
        for start in range(0, n, batch):
            part = slice(start, start + batch)
            observe(learner, X[part], y[part], costs[part], first=start)
            assert_valid(learner)
            assert learner.dual_value() >= value - 1e-6 * (1.0 + abs(value))
            value = learner.dual_value()
        assert learner.seen == n

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("batch", [1, 7, 300])
    def test_batch_boundaries_do_not_matter(self, form, batch):
        X, y = streams(2, 500)
        X = form(X)
        whole, cut = learner_for(X, [BinaryClassification(1)]), learner_for(X, [BinaryClassification(1)])
        observe(whole, X, y, np.full(500, 10.0))
        for start in range(0, 500, batch):
            part = slice(start, start + batch)
            observe(cut, X[part], y[part], np.full(500, 10.0)[part], first=start)
        np.testing.assert_array_equal(dual_of(cut, 0, 500), dual_of(whole, 0, 500))

    def test_finish_reaches_the_tolerance(self):
        X, y = streams(4, 300)
        learner = learner_for(X, [BinaryClassification(1), BinaryClassification(0)])
        observe(learner, X, y, np.full(300, 100.0))
        assert max(learner.violation(m) for m in range(2)) > 1e-3
        learner.finish(never)
        assert max(learner.violation(m) for m in range(2)) <= 1e-3
        assert_valid(learner)

    def test_repeated_samples_are_stored_once(self):
        X, y = streams(4, 300)
        learner = learner_for(X, [BinaryClassification(1)])
        for _ in range(15):
            observe(learner, X, y, np.full(300, 10.0), again=True)
        used = learner.used()
        assert len(np.unique(learner.slots.identity[used])) == len(used)
        assert learner.violation(0) <= 0.1
        assert_valid(learner)

    def test_classes_one_after_the_other(self):
        X, y = streams(4, 300)
        learner = learner_for(X, [BinaryClassification(1)])
        observe(learner, X[y == 1], y[y == 1], np.full((y == 1).sum(), 10.0))
        assert 0 < len(learner.used()) <= 10
        assert learner.offset(0) == 1.0
        observe(learner, X[y == 0], y[y == 0], np.full((y == 0).sum(), 10.0), first=1000)
        assert learner.dual[0].max() > 0
        assert_valid(learner)

    def test_negated_subproblem(self):
        X, y = chessboard(300, noise=0.1)
        learner = learner_for(X, [BinaryClassification(1)], selection="most_violating_pair")
        observe(learner, X[:150], y[:150], np.full(150, 10.0))
        learner.add_subproblem(BinaryClassification(0), negated=0)
        assert_valid(learner)
        observe(learner, X[150:], y[150:], np.full(150, 10.0), first=150)
        assert_valid(learner)
        np.testing.assert_allclose(learner.dual[0], -learner.dual[1], atol=1e-6)

    def test_switch_to_double_precision(self):
        X, y = streams(4, 200)
        learner = learner_for(X, [BinaryClassification(1)], Polynomial(3, 1.0, 1.0))
        observe(learner, X[:100] / 100, y[:100], np.full(100, 1.0))
        assert learner.table.dtype == np.float32
        observe(learner, X[100:] * 100, y[100:], np.full(100, 1.0), first=100)
        assert learner.table.dtype == np.float64
        assert_valid(learner, accuracy=1e-2)
        huge = learner_for(X, [BinaryClassification(1)], Linear())
        observe(huge, np.where(X > 2, 1e20, X), y, np.full(200, 1.0))  # squares overflow float32
        assert huge.table.dtype == np.float64

    def test_common_offset_of_the_samples_loses_no_accuracy(self):
        X, y = chessboard(200, noise=0.1, seed=4)
        X = np.round(X * 2**10) / 2**10  # exact sums
        near, far = learner_for(X, [BinaryClassification(1)]), learner_for(X, [BinaryClassification(1)])
        observe(near, X, y, np.full(200, 10.0))
        observe(far, X + 2**20, y, np.full(200, 10.0))
        np.testing.assert_allclose(dual_of(far, 0, 200), dual_of(near, 0, 200), atol=1e-3)
        assert far.table.dtype == np.float32

    def test_a_stop_while_the_table_grows_leaves_the_memory_unchanged(self, monkeypatch):
        monkeypatch.setattr(kernel_table, "VALUES_BETWEEN_STOPS", 2**14)
        X, y = chessboard(600)
        labels, costs = (y > 0).astype(np.int64), np.full(600, 10.0)
        learner, alike = (learner_for(X, [BinaryClassification(1)]) for _ in range(2))
        for one in (learner, alike):
            observe(one, X[:400], labels[:400], costs[:400])
        width, count = learner.table.width, learner.count
        learner.table._width_for = lambda slots: 2 * width  # more slots are needed
        learner.table.reserve, reserve = lambda slots, stop: reserve(width + 1, stop), learner.table.reserve
        assert learner.observe(X[400:], labels[400:], costs[400:], np.arange(400, 600), lambda: True) == 0
        assert (learner.table.width, learner.count, learner.seen) == (width, count, 400)
        assert_valid(learner)
        for one in (learner, alike):
            observe(one, X[400:], labels[400:], costs[400:], first=400)
        assert learner.table.width == 2 * width
        np.testing.assert_array_equal(dual_of(learner, 0, 600), dual_of(alike, 0, 600))

    @pytest.mark.parametrize("values", [1, 2**14])
    def test_every_call_that_is_stopped_at_once_makes_progress(self, monkeypatch, values):
        X, _ = chessboard(600)
        labels, costs = np.random.default_rng(0).integers(0, 2, 600), np.full(600, 10.0)
        stopped, alike = (learner_for(X, [BinaryClassification(1)]) for _ in range(2))
        monkeypatch.setattr(kernel_table, "VALUES_BETWEEN_STOPS", values)
        done = interrupted = 0
        while done < 600:
            copied = 0 if stopped.table._copy is None else stopped.table._copy.done
            taken = stopped.observe(X[done:], labels[done:], costs[done:], np.arange(done, 600), lambda: True)
            assert taken or stopped.table._copy.done > copied
            if not taken:
                interrupted += 1
                if interrupted % 5 == 0:  # the rows change between two calls
                    stopped.keep(np.arange(stopped.count))
                    assert stopped.table._copy is None
                    stopped.table.reserve(stopped.table.width + 1, lambda: False)
            observe(alike, X[done : done + taken], labels[done : done + taken], costs[:taken], first=done)
            done += taken
        assert interrupted
        np.testing.assert_array_equal(dual_of(stopped, 0, 600), dual_of(alike, 0, 600))
        assert_valid(stopped)

    def test_a_copy_of_a_learner_resumes_after_a_stop_while_the_table_grew(self, monkeypatch):
        monkeypatch.setattr(kernel_table, "VALUES_BETWEEN_STOPS", 1)
        X, _ = chessboard(600)
        labels, costs = np.random.default_rng(0).integers(0, 2, 600), np.full(600, 10.0)
        learner = learner_for(X, [BinaryClassification(1)])
        done = 0
        while learner.table._copy is None:
            assert done < 600
            done += learner.observe(X[done:], labels[done:], costs[done:], np.arange(done, 600), lambda: True)
        again = pickle.loads(pickle.dumps(learner))
        assert again.table._copy is None
        for one in (learner, again):
            observe(one, X[done:], labels[done:], costs[done:], first=done)
        np.testing.assert_array_equal(dual_of(learner, 0, 600), dual_of(again, 0, 600))

    def test_kernel_error_leaves_the_memory_unchanged(self):
        def kernel(A, B):
            return np.where((A[:, :1] > 1e6) | (B[:, :1].T > 1e6), np.nan, A @ B.T)

        X, y = streams(4, 200)
        learner = learner_for(X, [BinaryClassification(1)], FunctionKernel(kernel))
        observe(learner, X[:100], y[:100], np.full(100, 1.0))
        before = learner.dual.copy(), learner.count, learner.seen
        X[150, 0] = 1e7
        with pytest.raises(ValueError, match="finite"):
            observe(learner, X[100:], y[100:], np.full(100, 1.0), first=100)
        assert (learner.count, learner.seen) == before[1:]
        np.testing.assert_array_equal(learner.dual[:, : learner.count], before[0][:, : learner.count])
        assert_valid(learner)
        observe(learner, X[:100], y[:100], np.full(100, 1.0), first=300)
        assert_valid(learner)


class TestRemoval:
    @settings(max_examples=25, deadline=None)
    @given(
        st.integers(0, 10**6),
        st.sampled_from(["remove", "project", "merge"]),
        st.booleans(),
        st.integers(2, 40),
        st.sampled_from([None, 1, 30]),
    )
    def test_invariants_hold_after_removal(self, seed, strategy, bias, most, forget):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(120, 2)), random.integers(0, 3, 120)
        X[60:70] = X[:10]
        costs = random.choice([0.3, 10.0], 120)
        learner = learner_for(
            X,
            [BinaryClassification(0), BinaryClassification(1), BinaryClassification(2)],
            bias=bias,
            budget=Budget(most, strategy),
            forget=forget,
        )
        for start in range(0, 120, 24):
            part = slice(start, start + 24)
            observe(learner, X[part], y[part], costs[part], first=start)
            used = learner.used()
            assert len(used) <= most
            assert forget is None or (learner.slots.arrived[used] >= learner.seen - forget).all()
            assert_valid(learner)

    @pytest.mark.parametrize("strategy", ["remove", "project", "merge"])
    def test_sum_of_novelty_detection_is_kept(self, strategy):
        X = np.random.default_rng(0).normal(size=(600, 2))
        learner = learner_for(X, [NoveltyDetection(0.3)], budget=Budget(40, strategy))
        observe(learner, X, np.zeros(600), np.ones(600))
        assert len(learner.used()) <= 40
        assert learner.dual.sum() == pytest.approx(180.0)
        assert_valid(learner)
        old = learner_for(X, [NoveltyDetection(0.3)], forget=100)
        observe(old, X, np.zeros(600), np.ones(600))
        assert old.dual.sum() == pytest.approx(30.0)
        assert_valid(old)

    def test_projection_loses_less_than_removal(self):
        X, y = streams(6, 1000)
        losses = {}
        for strategy in ("remove", "project"):
            learner = learner_for(X, [BinaryClassification(1)], budget=Budget(60, strategy))
            observe(learner, X, y, np.full(1000, 10.0))
            losses[strategy] = learner.budget_loss
        assert losses["project"] < losses["remove"]
        assert losses["remove"] > 0


class TestPickle:
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("cache", [2**26, 20_000])
    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(1.0) + Linear(), Polynomial(2, 1.0, 1.0)])
    def test_unpickled_learner_continues_bit_for_bit(self, form, cache, kernel):
        X, y = streams(7, 300)
        X = form(X)
        one = learner_for(X, [BinaryClassification(1), BinaryClassification(0)], kernel, cache=cache)
        other = one
        for start in range(0, 300, 60):
            part = slice(start, start + 60)
            observe(one, X[part], y[part], np.full(60, 10.0), first=start)
            if other is not one:
                observe(other, X[part], y[part], np.full(60, 10.0), first=start)
            other = pickle.loads(pickle.dumps(other))
        np.testing.assert_array_equal(one.dual[:, : one.count], other.dual[:, : other.count])
        np.testing.assert_array_equal(one.gradient[:, : one.count], other.gradient[:, : other.count])

    def test_kernel_values_are_not_pickled(self):
        X, y = chessboard(3000, noise=0.3)
        learner = learner_for(X, [BinaryClassification(1)])
        observe(learner, X, y, np.full(3000, 1.0))
        assert len(pickle.dumps(learner)) < 0.2 * learner.table.storage.nbytes

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sample_store(self, form, dtype):
        random = np.random.default_rng(0)
        X = (random.normal(size=(50, 6)) * (random.random((50, 6)) < 0.5)).astype(dtype)
        store = SampleStore(form(X[:3]))
        store.append(form(X[:20]))
        store.append(np.asarray(X[20:40]))  # another storage format
        keep = np.sort(random.choice(40, 15, replace=False))
        store.keep(keep)
        store.append(sparse.csr_array(X[40:].astype(np.float64)))
        values = store.points.values()
        assert sparse.issparse(values) == (form is not np.asarray)
        dense = values.toarray() if sparse.issparse(values) else values
        np.testing.assert_array_equal(dense, np.concatenate([X[keep], X[40:]]))
