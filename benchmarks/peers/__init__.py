"""Benchmark maxmargin against other libraries ("peers") on the same data, parameters, tolerance and cores.

    python -m benchmarks.peers --data FOLDER --suite kernel
    python -m benchmarks.peers --data FOLDER --suite linear
    python -m benchmarks.peers --data FOLDER --suite machines --quick

`cases`, `machine_cases` and `small_cases` define the problems, partly from `generated` data, and `suites` lists them;
`libraries` are the adapters of the libraries. `launch` and `fit_process` run the first fit and warm fits in a fresh
process, `verification` and `weights_verification` certify the solutions in float64, `limit` measures a lower bound on
the time of any solver, and `run_case` combines these. `summary`, `report` and `plots` present the results. `linear`
contains what differs for linear models that are timed to the same duality gap; `problem_kinds` lists libraries,
parameters and solutions of both kinds. Run it on an otherwise idle computer.
"""
