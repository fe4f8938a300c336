import numpy as np
import pytest

from contracts.solver_contract import SolverContract
from maxmargin.solvers import BlockSolver


class BlockContract(SolverContract):
    gradient_accuracy = 1e-5  # rows are in single precision


class TestBlock(BlockContract):
    def make(self, stopping):
        return BlockSolver(stopping=stopping)


class TestSmallBlocks(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=8, stopping=stopping)


class TestPairs(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=2, stopping=stopping)


class TestWithoutMemory(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, cache_bytes=0, stopping=stopping)


class TestWithoutShrinking(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, shrinking=False, stopping=stopping)


class TestTwoThreads(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, threads=2, stopping=stopping)
