"""Training of the models of a cross-validation together: a fold at many values of C, on kernel values that all share.

- `kernel_matrices`: the kernel matrix of all samples for one kernel at a time, and sums over features for all of them.
- `fold_problems`: the dual problems of a fold at a point of a grid, and predictions from their decision values.
- `fold_path`: the problems of a fold in ascending order of C, each started from the solution before, in native code.
- `held_out_models`: what a scorer sees of a model: its predictions of the held-out samples.
- `fold_paths`: the engine, and the rule which estimators it trains.
"""
