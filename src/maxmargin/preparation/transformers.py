"""The plan of a table as a `ColumnTransformer` of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from maxmargin.datasets.table import is_number
from maxmargin.preparation.date_parts import DateParts

if TYPE_CHECKING:
    from maxmargin.preparation.column_plan import TablePlan

#: The most columns that the categories of one column may have; rarer ones are joined.
MAX_CATEGORIES = 100


def column_transformer(plan: TablePlan) -> ColumnTransformer:
    r"""Return the transformer of the columns that `TablePlan.values` returns; not fitted.

    Numbers and parts of dates are imputed by the median and scaled, and a column marks those that were missing.
    Categories are one-hot encoded; those that are rare or unknown share a column. The result has no missing values.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import read_columns
    >>> from maxmargin.preparation import column_transformer, plan_columns
    >>> table = read_columns(io.BytesIO(b"age,town,label\n41,Ulm,a\n,Bonn,b\n17,Ulm,a\n"))
    >>> plan = plan_columns(table)
    >>> print(column_transformer(plan).fit_transform(plan.values(table)).round(2))
    [[ 1.22  0.    1.    0.  ]
     [ 0.    1.    0.    1.  ]
     [-1.22  0.    1.    0.  ]]
    """
    steps: list[tuple[str, Any, list[int]]] = []
    places = {column.name: place for place, column in enumerate(plan.features)}
    numbers = [places[column.name] for column in plan.features if column.type == "number"]
    if numbers:
        steps.append(("numbers", _filled(plan.scaling), numbers))
    for column in plan.features:
        if column.type == "date":
            parts = DateParts(parts=column.parts, cyclic=column.cyclic)
            steps.append((f"date {column.name}", _filled(plan.scaling, ("parts", parts)), [places[column.name]]))
    missing = [places[column.name] for column in plan.features if column.missing and column.type in ("number", "date")]
    if missing:
        steps.append(("missing", MissingIndicator(features="all", error_on_new=False), missing))
    for least in sorted({column.min_count for column in plan.features if column.type == "category"}):
        chosen = [places[c.name] for c in plan.features if c.type == "category" and c.min_count == least]
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=least, max_categories=MAX_CATEGORIES, dtype=np.float64
        )
        steps.append((f"categories from {least}", encoder, chosen))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


def _filled(scaling: str, *before: tuple[str, Any]) -> Pipeline:
    """Return the imputation and scaling of numbers."""
    scalers = {
        "standard": [("scale", StandardScaler())],
        "range": [("scale", MinMaxScaler((-1, 1)))],
        "none": [],
    }
    return Pipeline([*before, ("fill", SimpleImputer(strategy="median", keep_empty_features=True)), *scalers[scaling]])


def unknown_categories(transformer: ColumnTransformer, plan: TablePlan, X: Any) -> dict[str, list[str]]:
    """Return the categories in X that a fitted transformer does not know, by column.

    Raises
    ------
    ValueError
        If a column has no known category but numbers instead of words: it is of another type.
    """
    found = {}
    for _, fitted, places in transformer.transformers_:
        if not isinstance(fitted, OneHotEncoder):
            continue
        for place, known in zip(places, fitted.categories_, strict=True):
            name = plan.features[place].name
            present = set(X[:, place].tolist()) - {""}
            unknown = sorted(present - set(known.tolist()))
            all_new = len(unknown) == len(present) > 0
            if all_new and all(map(is_number, unknown)) and not any(map(is_number, known)):
                raise ValueError(
                    f"column {name!r} has numbers such as {unknown[0]}, but the model expects categories such as "
                    f"{next((word for word in known if word), '')!r}"
                )
            if unknown:
                found[name] = unknown
    return found


def feature_names(transformer: ColumnTransformer, plan: TablePlan) -> tuple[str, ...]:
    """Return the names of the features of a fitted transformer."""
    names = np.array([column.name for column in plan.features], dtype=object)
    found = []
    for step, fitted, places in transformer.transformers_:
        columns = names[places]
        if step == "missing":
            found += [f"{column} is missing" for column in columns]
        elif isinstance(fitted, Pipeline) and step == "numbers":
            found += list(columns)
        else:
            found += list(fitted.get_feature_names_out(columns))
    return tuple(found)
