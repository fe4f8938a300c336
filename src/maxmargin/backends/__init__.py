"""Operations over all samples, or over a working set, that solvers of the dual problem are written on.

`optimality`
    KKT violations, the extremes of the gradient, and the duality gap from a known gradient.
`free_equations`
    The linear equations of the free variables.
"""
