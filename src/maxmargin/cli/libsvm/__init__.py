"""Replacements of the programs of LIBSVM and LIBLINEAR, with their options, files, output and exit codes.

- `svm_train`, `svm_predict`, `svm_scale`, `svm_grid`, `liblinear_train`, `liblinear_predict`: one module per program,
  each with `main(arguments)`.
- `program_options`: command line syntax, error messages and warnings of the programs.
- `program_data`: training data, blocks of test data, output files.
- `svm_parameters`, `svm_training`: options of svm-train, training and cross-validation with its output.
- `liblinear_parameters`, `liblinear_training`: the same for LIBLINEAR's train, with its search for C.
- `classes`, `folds`: order of labels, folds of the cross-validation.
- `grid_order`: the order in which grid.py visits the grid.
"""
