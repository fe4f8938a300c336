"""Active learning: selection of the samples to label, for any classifier with a ``decision_function``.

Public, through `maxmargin`:

- `active_learner`: `ActiveLearner`, which queries labels over a pool or a stream, and its `LearnerStatus`
- `active_query`: `query`, the samples that a fitted classifier should be given labels of
- `importance_weights`: `importance_weights`, sample weights for covariate shift

Internal: `incremental_learner` (an estimator updated label by label) and `sample_pool` (the state of a pool).
"""
