"""The benchmark of certificates measures those of linear fits and those that are read."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the benchmarks are not installed

from benchmarks.certificate_cost import measure, samples

from maxmargin import SVC, LinearSVC
from maxmargin.training.linear_verification import LinearVerifier


def test_certificates_of_both_kinds_are_measured():
    X, labels, _ = samples(1200, 90)
    whole = LinearVerifier.verify
    for make in (LinearSVC, SVC):
        fit, certificate, model = measure(make, (X, labels))
        assert fit > 0.0
        assert certificate > 0.0
        assert model.certificate_.relative_gap < 1e-3
    assert LinearVerifier.verify is whole
