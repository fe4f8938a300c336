"""Polar coordinates: conventions, inverse transform, extreme values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from maxmargin import SVC
from maxmargin.feature_maps import PolarCoordinates


def test_two_dimensions():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -4.0], [0.0, 0.0], [-1.0, -0.0], [-0.0, 0.0]])
    radius, angle = PolarCoordinates().fit_transform(X).T
    np.testing.assert_allclose(radius, [1, 2, 3, 4, 0, 1, 0])
    np.testing.assert_allclose(angle, np.pi * np.array([0, 0.5, 1, -0.5, 0, 1, 0]))


def test_three_dimensions_are_spherical_coordinates_about_the_first_axis():
    x, y, z = 1.0, 2.0, -2.0
    found = PolarCoordinates().fit_transform([[x, y, z]])[0]
    np.testing.assert_allclose(found, [3.0, np.arccos(x / 3.0), np.arctan2(z, y)])


@given(
    arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
                  elements=st.floats(-1e3, 1e3)),
    st.sampled_from([None, "mean"]),
)  # fmt: skip
def test_inverse_transform(X, center):
    map = PolarCoordinates(center).fit(X)
    features = map.transform(X)
    assert (features[:, 0] >= 0).all()
    assert ((features[:, 1:-1] >= 0) & (features[:, 1:-1] <= np.pi)).all()
    assert ((features[:, -1] > -np.pi - 1e-12) & (features[:, -1] <= np.pi)).all()
    np.testing.assert_allclose(features[:, 0], np.linalg.norm(X - map.center_, axis=1), atol=1e-9)
    np.testing.assert_allclose(map.inverse_transform(features), X, atol=1e-9)


def test_huge_and_tiny_radii_are_accurate():
    X = np.array([[3e200, 4e200], [3e-200, 4e-200]])
    radius, angle = PolarCoordinates().fit_transform(X).T
    np.testing.assert_allclose(radius, [5e200, 5e-200])
    np.testing.assert_allclose(angle, np.arctan2(4, 3))


def test_rings_become_linearly_separable():
    random = np.random.default_rng(0)
    angle, y = random.uniform(-np.pi, np.pi, 200), np.repeat([0, 1], 100)
    X = (np.where(y, 2.0, 1.0) + random.uniform(-0.3, 0.3, 200)) * np.array([np.cos(angle), np.sin(angle)]) + 5.0
    polar = PolarCoordinates(center=[5.0, 5.0]).fit_transform(X.T)
    assert SVC(kernel="linear", C=1e3).fit(X.T, y).score(X.T, y) < 0.8
    assert SVC(kernel="linear", C=np.inf).fit(polar, y).score(polar, y) == 1.0


def test_feature_names():
    assert list(PolarCoordinates().fit(np.ones((1, 2))).get_feature_names_out()) == ["radius", "angle"]
    assert list(PolarCoordinates().fit(np.ones((1, 3))).get_feature_names_out()) == ["radius", "angle1", "angle2"]


def test_errors():
    with pytest.raises(ValueError, match="at least 2 features"):
        PolarCoordinates().fit([[1.0]])
    with pytest.raises(ValueError, match="one number per feature"):
        PolarCoordinates([1.0, 2.0, 3.0]).fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="center must be 'mean'"):
        PolarCoordinates("median").fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="must have 2 columns"):
        PolarCoordinates().fit([[1.0, 2.0]]).inverse_transform([[1.0, 2.0, 3.0]])
