"""Newton methods for pairwise ranking, whose variables are far more than its samples.

multiplier_newton   the method of multipliers on listed pairs, for every kernel
order_newton        a smoothed primal whose pairs are summed by the order of the scores, for the linear kernel
newton_equations    the linear equations of a step, in the smaller of samples and features
line_search         the step length along a direction
"""
