"""Model selection inside the solver: folds trained together, and what follows from a fit without fitting again.

The folds of a search, at all values of C, on kernel values that all share:

    fold_paths              the engine, and the rule which estimators it trains
    kernel_matrices         the kernel matrix of one kernel at a time, and sums over features for all of them
    fold_problems           the dual problems of a fold, and predictions from their decision values
    fold_path               the problems of a fold in ascending order of C, in native code
    held_out_models         what a scorer sees of a model: its predictions of the held-out samples

What follows from a fit:

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
