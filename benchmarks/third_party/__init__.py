"""Tests of SVMs in other projects, run with our classes in the places of scikit-learn's.

    python -m benchmarks.third_party skl2onnx ../sklearn-onnx
    python -m benchmarks.third_party mlxtend ../mlxtend --results docs/third_party_tests.md

A path is a checkout or an unpacked source distribution of the project, which must be installed, too, where its tests
import it; nothing is fetched. Each suite is run twice, with scikit-learn's classes and with ours. What fails with ours
only needs a reason in `reasons.toml`; without one the exit status is 1. scikit-learn's own tests are part of our tests.

- `suites`: the files of each project, and what stands in for what
- `substitution`: the plugin of pytest that exchanges the classes and writes the outcomes
- `report`: the table of results
"""
