"""Preparation of tables: from columns as they come to the features of a machine.

- `column_values`: numbers with decimal commas and dates in many formats
- `column_plan`: what becomes of each column, as a value that a model file can hold
- `column_types`: finds the plan; `plan_file`: reads and writes it
- `transformers`: the plan as a `ColumnTransformer` of scikit-learn; `date_parts`: the features of a date

Public: the names below.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
