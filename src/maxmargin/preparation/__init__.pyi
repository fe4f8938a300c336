from .column_plan import ColumnPlan, TablePlan
from .column_types import plan_columns
from .date_parts import DateParts
from .plan_file import read_plan, write_plan
from .transformers import column_transformer

__all__ = [
    "ColumnPlan",
    "DateParts",
    "TablePlan",
    "column_transformer",
    "plan_columns",
    "read_plan",
    "write_plan",
]
