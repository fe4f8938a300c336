"""The linear suites: time to the same duality gap, for C from 0.01 to 100.

    minimise  P(w, b) = ½ (‖w‖² + b²) + C Σ max(0, 1 − y_i (w·x_i + b))^p      p = 1: hinge, p = 2: squared hinge

over the samples; with several classes, one such problem per class (one-vs-rest). The intercept is regularised, as in
LIBLINEAR, so that all libraries solve the same problem. Tolerances of libraries differ in meaning, so that each peer
runs with the loosest one that reaches the gap: `loosest_setting` finds it, `search` and `search_process` do so in a
separate process, `verification` computes the gap, `limit` a lower bound on the time of one pass over the data,
`run_case` combines these, and `report` writes the tables.
"""
