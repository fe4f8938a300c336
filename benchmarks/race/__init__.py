"""The race: maxmargin and its peers on the same data, parameters, tolerance and cores, all judged by one referee.

    python -m benchmarks.race --data ../shared/data --suite kernel
    python -m benchmarks.race --data ../shared/data --suite linear
    python -m benchmarks.race --quick

`cases` says what is fitted, `contestants` who fits, `launch` and `fit_process` run one fit in a fresh process,
`referee` judges the coefficients in float64, `limit` measures what no solver can beat, `rounds` brings these together,
`summary`, `report` and `pictures` tell the result. `linear` has what is different for linear machines, which are raced
to the same duality gap; `leagues` says who takes part in what. Run it on a machine that does nothing else.
"""
