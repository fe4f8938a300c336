"""Model selection from solved problems: what follows from a fit without fitting again.

    leave_one_out           `maxmargin.leave_one_out`: each sample predicted by the model without it
    problem_without_each    one problem with each of its samples left out
    left_out                values and proved signs of left-out samples
    common_point            the solution from which they are found
    restricted_problems     many variations of a problem over some of its variables, in native calls
    free_equations          the linear equations of the free variables of many variations
    least_squares           the closed form of least squares machines
    error_estimates         `maxmargin.error_estimates`: ξα, span and support vectors
    piecewise_path          solutions for all C, from break point to break point

Public are the names under ``maxmargin``.
"""
