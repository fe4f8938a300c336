"""The linear suites: seconds to the same duality gap, C from 0.01 to 100.

    minimise  P(w, b) = ½ (‖w‖² + b²) + C Σ max(0, 1 − y_i (w·x_i + b))^p      p = 1: hinge, p = 2: squared hinge

over the rows, with many classes one such machine for each of them against the rest. The bias is regularised, as
LIBLINEAR has it, so that all contestants solve the same problem. Their tolerances mean different things, so each peer
is run with the loosest one that reaches the gap: `ladder` finds it, `search_process` does so in one process, `referee`
says what the gap is, `limit` what a pass over the data must cost, `rounds` brings these together, `report` tells it.
"""
