"""The state of the block solver on a device, with NumPy in place of a GPU: every named problem is certified."""

from contextlib import nullcontext

import numpy as np
import pytest

import maxmargin.backends
from maxmargin.backends.array_operations import ArrayOperations
from maxmargin.backends.cuda_backend import tuning
from maxmargin.backends.device_state import DeviceState
from maxmargin.backends.interface import BoundStart
from maxmargin.backends.selection import place_at_bounds
from maxmargin.problems import Status, certify
from maxmargin.solvers import BlockSolver, StoppingRule
from maxmargin.testing.named_problems import CONVEX
from maxmargin.testing.solver_contract import SolverContract
from reference.cuda_twin import take_pair_steps


class HostMatrix:
    """Kernel values in host memory."""

    def __init__(self, matrix):
        everything = np.arange(matrix.size)
        self.values = matrix.block(everything, everything)

    def product_parts(self, columns, weights):
        return (self.values[:, columns].astype(np.float32) @ weights)[None]

    def square(self, variables):
        return self.precise_square(variables).astype(np.float32)

    def precise_product(self, rows, columns, weights):
        return (self.values if rows is None else self.values[rows])[:, columns] @ weights

    def precise_square(self, variables):
        return self.values[np.ix_(variables, variables)]


class HostDevice:
    """A device in host memory."""

    def scope(self):
        return nullcontext()

    def open(self, problem, cache_bytes, threads):
        return DeviceState(
            problem,
            ArrayOperations(np, problem.groups),
            HostMatrix(problem.matrix),
            take_pair_steps,
            tuning(problem.size),
        )

    def start_at_bounds(self, problem, columns, weights):
        product = HostMatrix(problem.matrix).product_parts(columns, weights)[0]
        return BoundStart(place_at_bounds(problem, problem.linear - product), product, 0)


@pytest.fixture(autouse=True)
def host_device(monkeypatch):
    monkeypatch.setitem(maxmargin.backends.BACKENDS, "host device", HostDevice())


#: All named problems but one, of as many groups as samples.
SUPPORTED = [name for name in CONVEX if name != "group_of_each_sample"]


class DeviceContract(SolverContract):
    gradient_accuracy = 1e-5  # kernel values are in single precision

    @pytest.mark.parametrize("name", SUPPORTED)
    def test_certifies(self, name):
        super().test_certifies(name)


def test_many_groups_are_refused():
    with pytest.raises(ValueError, match="at most 2 sum constraints"):
        BlockSolver(backend="host device").solve(CONVEX["group_of_each_sample"]())


class TestWhole(DeviceContract):
    def make(self, stopping):
        return BlockSolver(backend="host device", stopping=stopping)


class TestSmallWorkingSets(DeviceContract):
    def make(self, stopping):
        return BlockSolver(backend="host device", working_set=8, stopping=stopping)


@pytest.mark.parametrize("working_set", [4096, 16])
@pytest.mark.parametrize("name", SUPPORTED)
def test_optimum_of_the_native_backend(name, working_set):
    problem = CONVEX[name]()
    certificates = []
    for backend in ("native", "host device"):
        solver = BlockSolver(backend=backend, working_set=working_set, stopping=StoppingRule(violation=1e-5))
        solution = solver.solve(problem)
        assert solution.status is Status.CONVERGED
        certificates.append(certify(problem, solution.dual))
        assert certificates[-1].violation <= 1e-5
    native, device = certificates
    assert device.dual == pytest.approx(native.dual, rel=1e-6, abs=1e-5)
