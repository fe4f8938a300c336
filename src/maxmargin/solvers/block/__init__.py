"""Block decomposition on the operations of a backend (`maxmargin.backends`).

`block_solver`
    `BlockSolver`, the public solver: rounds of working sets, shrinking, double-precision audit.
`nested_start`
    Samples of a large problem whose solutions start it, and the conditions under which that pays.
"""
