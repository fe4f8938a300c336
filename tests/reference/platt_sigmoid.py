"""The cross-entropy of Platt's sigmoid and its derivatives, in NumPy."""

import numpy as np
from scipy.special import expit


def sigmoid_loss(values, targets, weights, slope, shift):
    """Return Σ weight · cross-entropy(target, expit(−(slope · value + shift))), its gradient and second derivatives."""
    margin = slope * values + shift
    probability = expit(-margin)
    residual = weights * (targets - probability)
    curvature = weights * probability * (1.0 - probability)
    loss = weights @ (targets * margin + np.logaddexp(0.0, -margin))
    second = curvature @ values**2, curvature @ values, curvature.sum()
    return loss, residual @ values, residual.sum(), *second
