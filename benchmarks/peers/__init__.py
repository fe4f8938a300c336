"""Benchmark maxmargin against other libraries ("peers") on the same data, parameters, tolerance and cores.

    python -m benchmarks.peers --data ../shared/data --suite kernel
    python -m benchmarks.peers --data ../shared/data --suite linear
    python -m benchmarks.peers --quick

`cases` defines the problems and `libraries` the adapters of the libraries. `launch` and `fit_process` run one fit in a
fresh process, `verification` certifies the coefficients in float64, `limit` measures a lower bound on the time of any
solver, and `run_case` combines these. `summary`, `report` and `plots` present the results. `linear` contains what
differs for linear models, which are timed to the same duality gap; `problem_kinds` lists libraries, parameters and
solutions of both kinds. Run it on an otherwise idle computer.
"""
