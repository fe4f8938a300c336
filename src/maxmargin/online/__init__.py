"""Online learning (LASVM, first and second order) and active selection of samples to label.

- `learner`: `OnlineLearner`, the LASVM steps; `memory`: `OnlineMemory`, its samples and dual variables
- `sample_constraints`: the binary subproblems of a stream, `BinaryClassification` and `NoveltyDetection`
- `budget`: removal of support vectors by age or to keep within a budget
- `kernel_table`, `sample_store`: cached kernel rows and growing arrays of samples (internal)
- `selection`: query strategies `Random`, `Margin`, `Gradient`, `AutoActive`, and the labelling rate of streams
- `early_stopping`: the stopping rules `LowErrorRate` and `MarginExhausted` of active learning

Public are the names below; estimators are in `maxmargin.estimators.online` and `maxmargin.estimators.active`.
"""

from maxmargin.online.early_stopping import STOPPING_RULES, LowErrorRate, MarginExhausted
from maxmargin.online.learner import OnlineLearner
from maxmargin.online.sample_constraints import BinaryClassification, NoveltyDetection, StreamSubproblem
from maxmargin.online.selection import QUERY_STRATEGIES, AutoActive, Gradient, Margin, Random

__all__ = [
    "QUERY_STRATEGIES",
    "STOPPING_RULES",
    "AutoActive",
    "BinaryClassification",
    "Gradient",
    "LowErrorRate",
    "Margin",
    "MarginExhausted",
    "NoveltyDetection",
    "OnlineLearner",
    "Random",
    "StreamSubproblem",
]
