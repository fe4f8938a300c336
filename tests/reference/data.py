"""Small data sets, scaled, for tests of estimators."""

import numpy as np
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def waves(n=2600):
    random = np.random.default_rng(1)
    X = random.normal(size=(n, 5))
    return X, np.sin(X).sum(axis=1) + random.normal(scale=0.1, size=n)
