"""Steps on the weights of several kernels (multiple kernel learning).

    second_order    weights on the simplex (ℓ1): a quadratic model of the optimal value, by the free support vectors
    value_planes    the same where that model fails: cutting planes, and means of dual vectors
    closed_form     weights of ℓp norm 1, p > 1: the step of Kloft et al.

A step takes the weights and what the inner solves at these weights have found (`WeightedSolution`), and returns the
weights to move to; the training takes care that the objective falls.
"""

from maxmargin.solvers.kernel_weights.closed_form import closed_form_step
from maxmargin.solvers.kernel_weights.second_order import curvature_of, second_order_step
from maxmargin.solvers.kernel_weights.value_planes import ValuePlanes

__all__ = ["ValuePlanes", "closed_form_step", "curvature_of", "second_order_step"]
