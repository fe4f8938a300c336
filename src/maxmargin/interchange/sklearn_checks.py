"""Checks of objects of scikit-learn's classes in model files.

scikit-learn validates samples, but trusts fitted attributes. Python code that gets wrong ones raises an error; sparse
matrices whose columns come from an attribute, and compiled loops, could read or write outside of arrays. What these use
is checked here, when a model is saved and when it is read, as are the parameters, by scikit-learn's own conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.interchange import attribute_checks as check
from maxmargin.interchange.attribute_checks import Check, Sizes, count, matrix
from maxmargin.interchange.errors import ModelFileError

#: Degree of polynomials up to which monomials are counted.
MAX_DEGREE = 1000


def check_object(value: Any) -> None:
    """Raise ModelFileError unless the parameters, and the attributes that need it, are valid."""
    name = type(value).__name__
    if hasattr(value, "_parameter_constraints"):
        try:
            value._validate_params()
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{name}: {' '.join(str(error).split())[:400]}") from error
    is_valid = CHECKS.get(name)
    try:
        valid = is_valid is None or is_valid(value)
    except ModelFileError:
        raise
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError):  # of attributes of wrong types
        valid = False
    if not valid:
        raise ModelFileError(f"the fitted attributes of {name} have wrong types, or are inconsistent")


def _pipeline(pipeline: Any) -> bool:
    if pipeline.memory is not None:
        raise ModelFileError(
            "memory of Pipeline is a folder of the computer that fits, which a model file cannot store: remove it with "
            "set_params(memory=None)"
        )
    return _are_named(pipeline.steps, 2)


def _are_named(parts: Any, length: int) -> bool:
    """Check a list of tuples of a name, an estimator or "passthrough", and what else there is."""
    return (
        isinstance(parts, list)
        and len(parts) > 0
        and all(isinstance(part, tuple) and len(part) == length and isinstance(part[0], str) for part in parts)
        and all(part[1] is None or isinstance(part[1], str) or hasattr(part[1], "fit") for part in parts)
    )


def _vocabulary(vectorizer: Any) -> bool:
    """Check that terms have the numbers 0, 1, …: columns of the matrix."""
    if not hasattr(vectorizer, "vocabulary_"):
        return True
    terms = vectorizer.vocabulary_
    return isinstance(terms, dict) and sorted(map(_integer, terms.values())) == list(range(len(terms)))


def _one_hot(encoder: Any) -> bool:
    """Check that every category has a column."""
    if not hasattr(encoder, "categories_"):
        return True
    categories, infrequent = encoder.categories_, encoder._infrequent_enabled
    features = len(categories)
    valid = isinstance(categories, list) and features == encoder.n_features_in_ and isinstance(infrequent, bool)
    if not (valid and all(map(_are_categories, categories))):
        return False
    counts = [len(values) for values in categories]
    if infrequent:
        groups = encoder._infrequent_indices, encoder._default_to_infrequent_mappings
        if not all(isinstance(group, list) and len(group) == features for group in groups):
            return False
        if not all(map(_is_grouping, categories, *groups)):
            return False
        counts = [
            number if group is None else number - len(group) + 1
            for number, group in zip(counts, groups[0], strict=True)
        ]
    dropped = encoder._drop_idx_after_grouping
    if dropped is not None:
        if not (isinstance(dropped, np.ndarray) and dropped.shape == (features,)):
            return False
        pairs = list(zip(dropped, counts, strict=True))
        if not all(index is None or 0 <= _integer(index) < number for index, number in pairs):
            return False
        counts = [number - (index is not None) for index, number in pairs]
    return [_integer(number) for number in encoder._n_features_outs] == counts


def _are_categories(values: Any) -> bool:
    """Check an array of different values, in ascending order unless they are Python objects."""
    if not (isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufUO"):
        return False
    if values.dtype == object:
        return len(set(values.tolist())) == len(values)
    known = values[:-1] if values.dtype.kind == "f" and len(values) and np.isnan(values[-1]) else values
    return bool((known[1:] > known[:-1]).all())


def _is_grouping(categories: Any, group: Any, mapping: Any) -> bool:
    """Check the indices of infrequent categories, and the numbers that categories have then."""
    if group is None or mapping is None:
        return group is None and mapping is None
    count = len(categories)
    valid = all(isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind == "i" for part in (group, mapping))
    valid = valid and 0 < len(group) <= count == len(mapping) and len(set(group.tolist())) == len(group)
    return valid and check.is_within(group, count) and check.is_within(mapping, count - len(group) + 1)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError
    return int(value)


def _polynomials(polynomials: Any) -> bool:
    """Check the numbers of monomials, which size the memory for them."""
    if not hasattr(polynomials, "n_features_in_"):
        return True
    if not (0 < _integer(polynomials.n_features_in_) < 2**31 and np.max(polynomials.degree) <= MAX_DEGREE):
        return False
    again = type(polynomials)(**polynomials.get_params()).fit(sparse.csr_array((1, polynomials.n_features_in_)))
    names = ("_min_degree", "_max_degree", "n_output_features_", "_n_out_full")
    return all(_integer(getattr(polynomials, name)) == getattr(again, name) for name in names)


def _has(**checks: Check) -> Callable[[Any], bool]:
    """Return a check of attributes of a fitted object with sizes that agree."""

    def is_valid(value: Any) -> bool:
        sizes = Sizes()
        attributes = vars(value)
        if not any(name in attributes for name in checks):
            return True
        return all(name in attributes and is_one(attributes[name], sizes) for name, is_one in checks.items())

    return is_valid


def _factor(value: Any, sizes: Sizes) -> bool:
    return check.is_floats(value, allow_float32=True) and sizes.agree(("landmarks", "rank"), value.shape)


#: Checks by class; other classes only have Python code.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "ColumnTransformer": lambda columns: all(
        _are_named(getattr(columns, name), 3) for name in ("transformers", "transformers_") if hasattr(columns, name)
    ),
    "CountVectorizer": _vocabulary,
    "DictVectorizer": _vocabulary,
    "FeatureUnion": lambda union: _are_named(union.transformer_list, 2),
    "NystroemMap": _has(
        n_features_in_=count("features"),
        _kernel_=lambda value, sizes: value is not None and check.kernel(value, sizes),
        landmarks_=matrix("landmarks", "features", allow_float32=True),
        _factor_=_factor,
        rank_=count("rank"),
    ),
    "OneHotEncoder": _one_hot,
    "Pipeline": _pipeline,
    "PolynomialFeatures": _polynomials,
    "TfidfVectorizer": _vocabulary,
}
