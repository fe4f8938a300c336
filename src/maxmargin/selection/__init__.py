"""Model selection from solved problems: the folds of a grid on shared kernel values, and what follows from one fit.

Training of the models of a cross-validation together, a fold at many values of C:

- `kernel_matrices`: the kernel matrix of all samples for one kernel at a time, and sums over features for all of them.
- `fold_problems`: the dual problems of a fold at a point of a grid, and predictions from their decision values.
- `fold_path`: the problems of a fold in ascending order of C, each started from the solution before, in native code.
- `held_out_models`: what a scorer sees of a model: its predictions of the held-out samples.
- `fold_paths`: the engine, and the rule which estimators it trains.

What follows from a fit without fitting again; public are the names under ``maxmargin``:

- `leave_one_out`: `maxmargin.leave_one_out`, each sample predicted by the model without it.
- `problem_without_each`: one problem with each of its samples left out.
- `left_out`: values and proved signs of left-out samples; `left_out_result` is what is known of them.
- `left_out_paths`: the same on the paths along which samples are removed, where there are paths.
- `removal_paths`: these paths, in native code; `removal_checks` whether their ends are optimal.
- `kernel_rows`: rows of the matrix in memory.
- `common_point`: the solution from which they are found.
- `restricted_problems`: many variations of a problem over some of its variables, in native calls.
- `free_equations`: the linear equations of the free variables of many variations.
- `least_squares`: the closed form of least squares machines.
- `error_estimates`: `maxmargin.error_estimates`: ξα, span and support vectors.
- `piecewise_path`: solutions for all C, from break point to break point.
"""
