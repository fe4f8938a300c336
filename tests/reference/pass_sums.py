"""The sums of a pass over blocks in NumPy, sample by sample what `native/pass_sums.hpp` computes."""

import numpy as np

from maxmargin.problems.losses import conjugate, excess, response_to_excess

#: Roundings of the numbers that a slack is computed from.
SLACK_ROUNDINGS = 8 * 2.0**-53


def pass_sums(problem, rows, weights, offset, sigma, centre, slack_error):
    """Return the sums as a dictionary, the responses, and which samples are free."""
    slack = problem.linear - rows.decisions(weights) - offset
    error = slack_error + SLACK_ROUNDINGS * (np.abs(slack) + np.abs(problem.linear))
    losses = np.maximum(conjugate(problem, slack + error), conjugate(problem, slack - error))
    if sigma == 0.0:
        response = response_to_excess(problem, excess(problem, slack))
    else:
        beyond = excess(problem, slack + sigma * centre.astype(np.float64))
        response = np.clip(beyond / (problem.ridge + sigma), problem.lower, problem.upper)
    parts = np.maximum(response, 0.0), np.minimum(response, 0.0)
    free = (response > problem.lower) & (response < problem.upper)
    if problem.kinked:
        free &= response != 0
    sums = {
        "loss": losses.sum(),
        "slack_square": slack @ slack,
        "size": (np.abs(problem.linear) + problem.kink + 1.0) @ np.abs(response),
        "free": int(free.sum()),
        "linear": [problem.linear @ part - problem.kink @ np.abs(part) for part in parts],
        "ridge": [problem.ridge @ part**2 for part in parts],
        "total": [part.sum() for part in parts],
        "weights": [rows.weights(part) for part in parts],
    }
    return sums, response, free
