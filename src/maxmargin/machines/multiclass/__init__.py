"""Multi-class strategies of the kernel classifiers.

    strategy           the interface: parts, training, layout of the coefficients, predictor
    one_versus_one     a two-class problem for each pair of classes (the default, as in scikit-learn)
    one_versus_rest    a two-class problem for each class against the rest
    all_in_one         one problem for all classes (Crammer–Singer, Weston–Watkins)

Strategies take a `FitContext` and labelled data, never an estimator. Nothing here is public.
"""
