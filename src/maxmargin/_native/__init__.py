"""The compiled loops of `native/`, re-exported; `_extension.pyi` has their names and types.

Arguments that belong together are passed as structs with keyword constructors (`BoxProblem`, `PairwiseState`,
`DataRows`, …), which keep their arrays alive and check types and shapes; results of more than three values are structs,
too. Arrays are never converted or copied, and an array that is written to must not overlap another one. Indices inside
arrays are checked by every call, but for the feature indices of `DataRows`. The interpreter lock is released while a
loop runs, and exceptions of worker threads are raised in the caller.

`level` is the instruction set in use; the environment variable MAXMARGIN_LEVEL requests a narrower one at import. The
whole module is private: names and signatures may change.
"""

from maxmargin._native._extension import *  # noqa: F403
