"""Random fits of all estimators against an independent evaluation: ``python -m tests.random_search --help``.

- `arithmetic`: extended and multiple precision with one interface
- `exact_products`: products with the matrix of a dual problem in extended precision, with error bounds
- `exact_values`: primal and dual values of a fitted model, and whether they confirm the certificate
- `recorder`: the problem and the point that a certificate is about
"""
