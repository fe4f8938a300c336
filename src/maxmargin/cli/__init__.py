"""The `maxmargin` command. `main.main` is its entry point; nothing here is a Python interface.

- `main`: subcommands and error messages. A command `x` is a module `x` with `add_options(parser)` and `run(options)`:
  `easy`, `train`, `predict`, `evaluate`, `grid`, `info`, `check`, `scale`, `convert`, `compare`, `demo`, `completion`.
- `libsvm`: replacements of the programs of LIBSVM and LIBLINEAR.
- `data`, `estimator_options`: the options that read data and select an estimator with its parameters.
- `output`: results as tables, lines or JSON.
- `training_progress`, `heat_map`, `live_table`: progress of a fit, a grid search and a comparison on the terminal.
- `model_files`, `model_data`, `model_report`: formats of models, samples in the form a model expects, descriptions.
- `metrics`, `easy_report`: metrics of predictions; the HTML report of `easy`.
"""
