# ruff: noqa: E501  # the texts are wrapped when they are written to docstrings
"""The texts of the parameters of all estimators, which `tools/parameter_docs.py` writes to their docstrings."""

from __future__ import annotations

SELECTIONS = '{"second_order", "most_violating_pair", "maximum_gain"}'
CLASSICAL = (
    'Classical algorithms for comparison: "quadratic_program", "chunking", "decomposition", "gradient_projection", '
    '"active_set", "platt", and with the linear kernel "primal_quadratic_program". A solver object has its own tolerance, '
    "cache and limits."
)
LINEAR_SOLVERS = (
    'The algorithm: "dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient", "pairwise", '
    '"primal_quadratic_program", or "auto", which chooses by cost{}. A solver object has its own tolerance and limits.'
)
CORES = (
    "None: the cores available to the process, or fewer if BLAS is limited (``OMP_NUM_THREADS``, threadpoolctl, workers of "
    "joblib and Dask)."
)
THREADS = f"{CORES} The result does not depend on it."
FOLDS = "The folds of the cross-validation with ``probability=True``; None always gives the same folds. "
PROBABILITY = (
    "Whether to fit class probabilities by cross-validation, for ``predict_proba``. ``predict`` then returns the most "
    "probable class."
)

SCORING = (
    "Name of a scikit-learn scorer, or ``f(model, X, y)``; greater is better. Several metrics by a list or a dict of these; "
    "`refit` then names the one that chooses. None: {}."
)
SEARCHES = "SVCCV SVRCV OneClassSVMCV LinearSVCCV LinearSVRCV"

#: Parameter → estimators (separated by spaces; "" for all others) → type and text.
TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "C_unlabeled": {"": ("float", "Cost of slack of samples without a label; None is `C`.")},
    "positive_fraction": {
        "": (
            "float or dict",
            "The fraction of unlabelled samples in the class ``classes_[1]``, above 0 and below 1; of several classes, a "
            "dict from each label to its fraction. None takes the fractions of the labelled samples, by weight: then "
            "they should be drawn at random. The option ``-p`` of SVMlight.",
        )
    },
    "method": {
        "": (
            '{"label_switching", "concave_convex"}',
            "Joachims' label switching, which gives exactly this fraction of the unlabelled samples the label "
            "``classes_[1]`` while their cost grows; or the concave–convex procedure of Collobert et al., which solves "
            "fewer problems, and in which the mean decision value of unlabelled samples is 2 · fraction − 1.",
        )
    },
    "ramp": {
        "": (
            "float",
            "Where y f(x) is below this number, above −1 and below 1, the loss of an unlabelled sample in "
            '``method="concave_convex"`` is constant.',
        )
    },
    "unlabeled_label": {
        "": (
            "int, str or other label",
            "The label of samples without one: −1 as in ``sklearn.semi_supervised``, in an array of text the text "
            '``"-1"``. Where −1 is a class, choose another, for example 0 as in SVMlight\'s files.',
        )
    },
    "Cs": {
        "SVCCV": (
            "int or list of float",
            "Values of C, or how many: from 2⁻⁵ to 2¹¹, at equal ratios.",
        ),
        "SVRCV": (
            "int or list of float",
            "Values of C, or how many: from 2⁻⁵ to 2¹¹ at equal ratios, times the standard deviation of the targets (but not "
            "with the squared loss, where C has no unit).",
        ),
        "LinearSVCCV": (
            "int or list of float",
            "Values of C, or how many: from 2⁻¹¹ to 2⁹, at equal ratios.",
        ),
        "LinearSVRCV": (
            "int or list of float",
            "Values of C, or how many: from 2⁻¹¹ to 2⁹ at equal ratios, times the standard deviation of the targets (but not "
            "with the squared loss, where C has no unit).",
        ),
    },
    "gammas": {
        "": (
            "int or list of float",
            "Values of γ, or how many: from 2⁻⁸ to 2⁴ at equal ratios, times 1 / (n_features · variance of X), which is "
            '``gamma="scale"``. Kernels without a γ have none, whatever the number.',
        ),
        "SVCCV SVRCV": (
            'int, list of float or "ard"',
            "Values of γ, or how many: from 2⁻⁸ to 2⁴ at equal ratios, times 1 / (n_features · variance of X), which is "
            '``gamma="scale"``. Kernels without a γ have none, whatever the number. ``"ard"`` chooses a γ for each feature, '
            "and C and ε with it, by gradients of a held-out loss; see `gradient_search`.",
        ),
    },
    "epsilons": {
        "": (
            "int or list of float",
            "Values of ε, half the width of the tube, or how many: from 0.01 to 1 at equal ratios, times the standard "
            "deviation of the targets.",
        ),
    },
    "nus": {
        "": (
            "int or list of float",
            "Values of ν, above 0 and at most 1, or how many: from 0.01 to 0.5, at equal ratios.",
        ),
    },
    "cv": {
        "": (
            'int, splitter, iterable of (train, test) or "loo"',
            "The splits into training and test samples, as in scikit-learn's GridSearchCV: None is 5 folds, stratified for "
            'classifiers and for labels 1 and −1 of novelty detection; a splitter such as ``GroupKFold()``; or pairs of row numbers. ``"loo"`` holds out one sample at a '
            "time and computes one score from all predictions, so that also R² and ranks are defined.",
        ),
    },
    "scoring": {
        "SVCCV LinearSVCCV": ("str, callable, list or dict", SCORING.format("accuracy")),
        "SVRCV LinearSVRCV": ("str, callable, list or dict", SCORING.format("R²")),
        "OneClassSVMCV": (
            "str, callable, list or dict",
            SCORING.format(
                "balanced accuracy if y has the labels 1 (normal) and −1 (novel); otherwise y is ignored, and the score is "
                "the fraction of held-out samples inside minus the fraction of background samples inside, see "
                "docs/model_selection.md"
            ),
        ),
    },
    "refit": {
        "": (
            "bool, str or callable",
            "Whether to train on all samples with the best parameters, needed for predictions; the name of the metric that "
            "chooses them; or a function from ``cv_results_`` to the index of a point.",
        ),
    },
    "refine": {
        "": (
            "int",
            "Number of refinements of the grid. Each adds the neighbours of the best point at half the distance (in "
            "logarithms), diagonals included.",
        ),
    },
    "prune": {
        "": (
            "bool",
            "Whether to skip the other folds of points whose mean score cannot be the best any more, even if these "
            "folds have the largest possible score. What is chosen is the same; ``cv_results_`` has nan scores for "
            "such points, and says in ``pruned`` which ones. It needs a score whose maximum is known, such as accuracy "
            "or R².",
        ),
    },
    "error_score": {
        "": (
            '"raise" or float',
            "The score of a trial that fails, with a warning. If all fail, their error is raised.",
        ),
    },
    "return_train_score": {"": ("bool", "Whether to score the training samples as well.")},
    "model": {
        "": (
            "JointModel",
            "Joint features, loss and maximiser: `maxmargin.models.ChainModel` for sequences of labels, "
            "`maxmargin.models.MultiLabelModel` for sets of labels, or an object of a class of your own that inherits from "
            "`maxmargin.models.JointModel`.",
        ),
    },
    "C": {
        "StructuredSVC": ("float", "Cost of the slack of a sample."),
        "MKLSVR": ("float", "Cost of an error beyond the tube."),
        "": ("float", "Cost of slack."),
        "SVC": (
            "float",
            "Cost of slack. ``C=inf`` is the hard margin, an error if the classes cannot be separated. (Classes that "
            "overlap under a wide Gaussian kernel are separable in theory only: set ``max_seconds``, or use a large C.)",
        ),
        "LSSVC": ("float", "Cost of half the squared slack."),
        "LSSVR": ("float", "Cost of half the squared error."),
        "SVR": (
            "float",
            "Cost of an error beyond the tube. ``inf`` forbids such errors; the primal value of the certificate is then "
            "infinite as soon as a target is outside by a rounding error, and the violation says by how much.",
        ),
        "NuSVR LinearSVR": ("float", "Cost of an error beyond the tube."),
        "QuantileSVR": ("float", "Cost of an error."),
        "RankSVC": ("float", "Cost of the slack of a pair."),
    },
    "quantile": {
        "": (
            "float or list of float",
            "The quantile τ, between 0 and 1; or several, increasing, of which `predict` returns a column each.",
        )
    },
    "nu": {
        "": (
            "float",
            "Above 0 and at most 1: an upper bound on the fraction of training samples outside, and a lower bound on the "
            "fraction of support vectors.",
        ),
        "NuSVC": (
            "float",
            "Above 0 and at most 1: an upper bound on the fraction of margin errors, and a lower bound on the fraction of "
            "support vectors. Feasible up to twice the fraction of the smaller class of a pair; more is an error.",
        ),
        "NuSVR": (
            "float",
            "Above 0 and at most 1: an upper bound on the fraction of samples outside the tube, and a lower bound on the "
            "fraction of support vectors.",
        ),
    },
    "epsilon": {"": ("float", "Half the width of the tube: smaller errors cost nothing.")},
    "penalty": {
        "": (
            '{"l2", "l1"}',
            '½‖w‖², or Σ |w_j|, which makes most weights exactly 0 and needs ``loss="squared_hinge"`` and '
            '``multi_class="ovr"``. The latter takes a copy of `X` stored by columns.',
        )
    },
    "loss": {
        "": ('{"hinge", "squared_hinge"}', "Σ C ξ_i or Σ C ξ_i²."),
        "SVR LinearSVR": (
            '{"epsilon_insensitive", "squared_epsilon_insensitive"}',
            "The distance from the tube, or its square.",
        ),
        "LinearSVC": (
            '{"squared_hinge", "hinge"}',
            'Σ C ξ_i² or Σ C ξ_i; ignored with ``multi_class="crammer_singer"``.',
        ),
    },
    "kernel": {
        "": (
            "str, Kernel or callable",
            '``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``, '
            '``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function '
            "``k(X, Z)`` that returns the block of values of the rows of X and Z.",
        ),
        "KernelApproximationSVC OnlineSVC OnlineOneClassSVM": (
            "str, Kernel or callable",
            '``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``, '
            '``"chi_squared"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function ``k(X, Z)`` that '
            "returns the block of values of the rows of X and Z.",
        ),
    },
    "kernels": {
        "": (
            'list, "precomputed" or None',
            'The kernels: names such as ``"linear"``, kernel objects such as ``Gaussian(0.5)``, functions ``k(X, Z)``, and '
            'dicts for families, one kernel for each combination of values: ``{"kernel": "rbf", "gamma": [0.1, 1, 10]}``, '
            '``{"kernel": "rbf", "gamma_factors": [0.5, 1, 2]}`` (times "scale"), ``{"kernel": "linear", "features": [[0, 1], '
            '[2, 3]]}`` (a list for each group, of numbers or names; ``"each"``), ``"degree"`` and ``"coef0"`` of "poly". '
            'None: linear, and Gaussians with γ of 1/16, 1/4, 1, 4 and 16 times "scale". ``"precomputed"``: X is a list of '
            "matrices, or an array of shape (n_samples, n_training_samples, n_kernels).",
        )
    },
    "norm": {
        "": (
            "float",
            "p ≥ 1 of the norm ‖d‖_p ≤ 1 that bounds the weights d of the kernels. 1 gives few kernels a weight; the larger p, "
            "the more even the weights.",
        )
    },
    "normalize": {
        "": (
            '{"trace", "diagonal"}',
            'Scale of the kernels before they are weighted: "trace" divides each by the mean of its diagonal over the training '
            'samples, "diagonal" makes k(x, x) = 1 for every sample, None leaves them as they are.',
        )
    },
    "degree": {"": ("int", "Degree of the polynomial kernel.")},
    "gamma": {
        "": (
            '{"scale", "auto"}, float or array-like of shape (n_features,)',
            'Coefficient of the kernels other than "linear". ``"scale"`` is 1 / (n_features · variance of X, by sample '
            'weights), ``"auto"`` is 1 / n_features. An array has one for each feature, for "rbf", "laplacian" and '
            '"chi_squared": 0 ignores a feature.',
        ),
        "OnlineSVC OnlineOneClassSVM": (
            '{"scale", "auto"}, float or array-like of shape (n_features,)',
            'Coefficient of the kernels other than "linear". ``"scale"`` and ``"auto"`` are computed from the data given '
            "to ``fit``, or from the first batch of a stream, and then kept: for small batches set a number. An array has "
            'one for each feature, for "rbf", "laplacian" and "chi_squared": 0 ignores a feature.',
        ),
    },
    "coef0": {"": ("float", "Constant term of the polynomial and sigmoid kernels.")},
    "n_components": {
        "": ("int", "The number of landmarks: more approximate `SVC` better; at most the number of samples is used.")
    },
    "landmarks": {
        "": (
            '{"sample", "kmeans"} or array-like of shape (n_landmarks, n_features)',
            "Samples drawn at random, k-means centres (a better approximation that takes longer), or given rows.",
        )
    },
    "tol": {
        "StructuredSVC": (
            "float",
            "Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two.",
        ),
        "MKLSVC MKLSVR MKLOneClassSVM": (
            "float",
            "Tolerance on the relative duality gap of weights and dual variables together: primal − dual ≤ tol · the larger "
            "of the two.",
        ),
        "": ("float", "Tolerance on the violation of the optimality conditions."),
        "LSSVC LSSVR": (
            "float",
            "Tolerance on the violation of the optimality conditions: the residual of the equations.",
        ),
        "LinearSVC": (
            "float",
            "Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two.",
        ),
        "LinearSVR LinearOneClassSVM": (
            "float",
            "Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two. The optimum may be 0: "
            "then a gap that is negligible next to the objective without a model is accepted.",
        ),
        "KernelApproximationSVC": ("float", "Tolerance on the relative duality gap of the linear problem."),
        "OnlineSVC OnlineOneClassSVM": (
            "float",
            "Violation of the optimality conditions above which a pair is updated.",
        ),
    },
    "cache_size": {
        "MKLSVC MKLSVR MKLOneClassSVM": (
            'float or "auto"',
            'Megabytes for the matrices of the kernels; "auto" is a quarter of the memory available to the process. What does '
            "not fit is computed again where it is needed.",
        ),
        "": (
            'float or "auto"',
            'Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed '
            "is allocated. Less memory makes the fit slower; the result differs only within the tolerance.",
        ),
        "LSSVC LSSVR": (
            'float or "auto"',
            'Megabytes for a Cholesky factor of the matrix; "auto" is a quarter of the memory available to the process. '
            "Where the factor does not fit (8 n² bytes), conjugate gradients are preconditioned by a few columns.",
        ),
    },
    "shrinking": {
        "": (
            "bool",
            "Leave variables that are likely to stay at a bound out of the iterations; all are checked before the end.",
        )
    },
    "class_weight": {
        "": ('dict or "balanced"', 'Factors on C by class. "balanced" counts samples by their weight.'),
        "NuSVC": ('dict or "balanced"', 'Factors on the weights by class. "balanced" counts samples by their weight.'),
        "LinearSVC KernelApproximationSVC": (
            'dict or "balanced"',
            "Factors on C by class. In the problem of one class against the rest the factor applies to the samples of that "
            'class, the rest have a factor of 1, as in LIBLINEAR. "balanced" counts samples by their weight.',
        ),
        "OnlineSVC": ('dict or "balanced"', 'Factors on C by class; "balanced" only in ``fit``.'),
    },
    "probability": {
        "": ("bool", PROBABILITY),
        "SVC NuSVC": (
            "bool",
            f"{PROBABILITY} The fit takes about twice as long. Two classes are equally probable close to, but not exactly "
            "at, decision value 0, so that a few labels near the boundary differ from those without probabilities; "
            "``break_ties`` has no effect. Sample and class weights count samples.",
        ),
        "LinearSVC": ("bool", f'{PROBABILITY} Only with ``multi_class="ovr"``.'),
        "OneClassSVM LinearOneClassSVM": (
            "bool",
            "Whether to fit probabilities for ``predict_proba``; this takes little time.",
        ),
    },
    "noise": {
        "": (
            "bool",
            "Whether to estimate the noise of the targets by cross-validation, for ``predict_interval``. The fit takes "
            "about twice as long.",
        )
    },
    "multi_class": {
        "MKLSVC": (
            '{"ovo", "ovr"}',
            "Multi-class strategy: a model for each pair of classes, or for each class against the rest, all with the same "
            "weights of the kernels.",
        ),
        "SVC": (
            '{"ovo", "ovr", "crammer_singer", "weston_watkins"}',
            "Multi-class strategy: a model for each pair of classes, as in scikit-learn; a model for each class against the "
            "rest; or one problem for all classes, where a sample has slack with respect to the closest other class "
            "(Crammer–Singer) or to every other class (Weston–Watkins), with the hinge loss and a finite C. The offsets of "
            "the last two are regularised like the weights.",
        ),
        "LinearSVC": (
            '{"ovr", "crammer_singer"}',
            "Multi-class strategy: a model for each class against the rest, or one problem for all classes.",
        ),
        "OnlineSVC": (
            '{"ovr", "ovo"}',
            "Multi-class strategy: a model for each class against the rest, or for each pair of classes. They share support "
            "vectors and kernel values.",
        ),
    },
    "decision_function_shape": {
        "": (
            '{"ovr", "ovo"}',
            "Shape of ``decision_function`` with more than two classes; training is one-vs-one always.",
        ),
        "SVC MKLSVC": (
            '{"ovr", "ovo"}',
            'Shape of ``decision_function`` with more than two classes; "ovo" needs ``multi_class="ovo"``.',
        ),
    },
    "break_ties": {
        "": ("bool", 'Whether the decision values break ties between classes with equal votes (with "ovr").')
    },
    "fit_intercept": {"": ("bool", "Whether the decision function has an offset b.")},
    "intercept_scaling": {
        "LinearSVC": (
            "float",
            "None: the offset b is not regularised. A number: b is regularised, as the weight of a constant feature of this "
            'value; scikit-learn\'s default is 1. ``multi_class="crammer_singer"`` takes None as 1.',
        ),
        "": (
            "float",
            "None: the offset b is not regularised. A number: b is regularised, as the weight of a constant feature of this "
            "value; scikit-learn's default is 1.",
        ),
    },
    "dual": {
        "": (
            '"auto" or bool',
            'The algorithm of ``solver="auto"``: True is coordinate ascent on the dual, False is Newton\'s method on the '
            'primal; "auto" chooses by cost. Both solve both losses.',
        ),
        "LinearSVC": (
            '"auto" or bool',
            'The algorithm of ``solver="auto"``: True is coordinate ascent on the dual, False is Newton\'s method on the '
            'primal; "auto" chooses by cost. Both solve both losses. ``penalty="l1"`` is solved in the primal only.',
        ),
    },
    "solver": {
        "StructuredSVC": (
            "str or solver object",
            'The algorithm. "frank_wolfe": pairwise block-coordinate Frank–Wolfe steps on one sample at a time. '
            '"cutting_planes": the one-slack formulation, all samples at once; many more calls of the maximiser, less memory. '
            "Both reach the same optimum.",
        ),
        "": (
            "str or solver object",
            'The algorithm. "auto": up to 2,048 samples all problems in one batch of sequential minimal optimisation; problems '
            f'that take many steps, and larger data, "pairwise" up to 500 variables, else "block". {CLASSICAL}',
        ),
        "SVC": (
            "str or solver object",
            'The algorithm. "auto": up to 2,048 samples all pairs of classes in one batch of sequential minimal optimisation; '
            'problems that take many steps, and larger data, "block"; up to 500 samples (all-in-one: 2,048 variables) and for '
            f'hard margins "pairwise". {CLASSICAL}',
        ),
        "RankSVC": (
            "str or solver object",
            'The algorithm: "auto" is "multiplier_newton" or, with the linear kernel and more than a million pairs, Newton '
            f'steps without a list of the pairs. "pairwise" and "block" take steps by pair. {CLASSICAL}',
        ),
        "LSSVC LSSVR": (
            "str or solver object",
            'The algorithm: "auto" is "linear_system". "pairwise", "block", "quadratic_program", "chunking" and '
            '"decomposition" find the same model more slowly. A solver object has its own tolerance, cache and limits.',
        ),
        "LinearSVR LinearOneClassSVM": ("str or solver object", LINEAR_SOLVERS.format("")),
        "LinearSVC": (
            "str or solver object",
            LINEAR_SOLVERS.format('; with ``penalty="l1"`` it is "coordinate_descent"'),
        ),
    },
    "selection": {
        "": (SELECTIONS, "Working-set selection of the pairwise solver."),
        "OnlineSVC OnlineOneClassSVM": (
            '{"second_order", "most_violating_pair"}',
            "Working-set selection: by gain or by violation.",
        ),
    },
    "max_iter": {
        "StructuredSVC": ("int", "Limit on the passes over the samples, −1 for none."),
        "MKLSVC MKLSVR MKLOneClassSVM": ("int", "Limit on the changes of the weights, −1 for none."),
        "": ("int", "Limit on the iterations of each problem, −1 for none."),
        "RankSVC": ("int", "Limit on the Newton steps, −1 for none."),
        "LSSVC LSSVR": ("int", "Limit on the iterations of conjugate gradients of each problem, −1 for none."),
        "LinearSVC LinearSVR LinearOneClassSVM": (
            "int",
            "Limit on the iterations of each problem: passes over the samples, or Newton steps. None for no limit.",
        ),
    },
    "max_seconds": {
        "StructuredSVC": (
            "float",
            "Limit on the time of the whole fit. The model is then valid, and a warning says that it is not optimal.",
        ),
        "MKLSVC MKLSVR MKLOneClassSVM": (
            "float",
            "Limit on the time of the search for weights; the certificate of what it has found comes after it. The model is "
            "then valid, and a warning says how far it is.",
        ),
        SEARCHES: (
            "float",
            "Limit on the time of the whole fit. The search ends after three quarters of it with the best of the finished "
            "points, and a warning; the rest is for the final fit, which is limited in the same way.",
        ),
        "": (
            "float",
            "Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a "
            "warning says how far it is. See docs/fitting.md.",
        ),
        "KernelApproximationSVC": (
            "float",
            "Limit on the time of the whole fit, within a tenth of it or half a second. Half of it is for landmarks and "
            "features, of samples in random order: if time runs out, the fit uses what was computed so far, or 100 "
            "landmarks, and warns. See docs/fitting.md.",
        ),
        "OnlineSVC OnlineOneClassSVM": (
            "float",
            "Limit on the time of a call; a warning says how many rows were used.",
        ),
    },
    "gap_tol": {
        "": (
            "float",
            "Duality gap at which to stop even if the violation is above ``tol``. Small problems that are solved in a batch "
            "always reach ``tol``.",
        )
    },
    "epochs": {"": ("int", "Passes over the data in ``fit``, each in a different order; a sample counts once.")},
    "finishing": {
        "OnlineSVC": (
            "bool",
            "Whether ``fit`` solves the batch problem, as ``SVC`` does, and ``partial_fit`` the problem of the samples in "
            "memory, to ``tol``.",
        ),
        "": ("bool", "Whether ``fit`` and ``partial_fit`` solve the problem of the samples in memory, to ``tol``."),
    },
    "budget": {
        "": (
            "int",
            "The maximum number of samples in memory. The least useful are removed; ``budget_loss_`` is the loss in dual "
            "value.",
        )
    },
    "budget_strategy": {
        "": (
            '{"remove", "project", "merge"}',
            "How a sample is removed: its dual variable is distributed, it is projected on the most similar samples, or it "
            "is merged with one of its class (Gaussian kernel, dense data).",
        )
    },
    "forget": {
        "": (
            "int",
            "Remove samples after this many others have followed: for streams that drift. Until then all of them are kept, "
            "so the memory holds this many samples.",
        )
    },
    "random_state": {
        "StructuredSVC": (
            "int, RandomState or None",
            'Order of the samples with "frank_wolfe"; None is the same as 0.',
        ),
        "": ("int, RandomState or None", f"{FOLDS}Nothing else is random."),
        "KernelApproximationSVC": (
            "int, RandomState or None",
            "Chooses landmarks, the samples on which errors are estimated, and the folds of the cross-validation.",
        ),
        "LinearSVR": (
            "int, RandomState or None",
            "Accepted for compatibility with scikit-learn; the result does not depend on it.",
        ),
        "OnlineSVC OnlineOneClassSVM": ("int, RandomState or None", "Order of the samples in ``fit``."),
    },
    "callback": {
        "StructuredSVC": (
            "callable",
            "Called with the progress (iteration, primal, dual, gap, seconds) up to ten times a second; returning True stops "
            "the fit with a valid model. It never changes the result otherwise. The gap between two passes is an estimate.",
        ),
        "MKLSVC MKLSVR MKLOneClassSVM": (
            "callable",
            "Called after every change of the weights with the progress (iteration, violation, primal, dual, gap, seconds, "
            "and active, the number of kernels with a weight); returning True stops the fit with a valid model. It never "
            "changes the result otherwise.",
        ),
        SEARCHES: (
            "callable",
            "Called with the result so far, a `GridSearchResult`, after every trial; returning True stops the search, and "
            "the best of the finished points is used.",
        ),
        "": (
            "callable",
            "Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a second; "
            "returning True stops the fit with a valid model. It never changes the result otherwise.",
        ),
    },
    "checkpoint": {
        SEARCHES: (
            "path",
            "A file of the finished trials. If the process is killed, the next fit with the same data and parameters resumes "
            "from the file; a file of another search is an error. A fit that ends removes it; one that a limit or an "
            "interruption ends keeps it.",
        ),
        "": (
            "path",
            "A file in which the state of the fit is stored every ``checkpoint_seconds``. If the process is killed, the "
            "next fit with the same data and parameters resumes from the file; a file of another fit is an error. A fit "
            "that ends removes it; one that a limit or an interruption ends keeps it. See docs/checkpoints.md.",
        ),
    },
    "checkpoint_seconds": {"": ("float", "The time between two writes of the checkpoint: the most that is lost.")},
    "verbose": {
        SEARCHES: ("bool", "Show a progress line on the terminal for searches longer than a second."),
        "": ("bool", "Show a progress line on the terminal for fits longer than a second."),
    },
    "certify": {
        "": (
            '{None, "exact"}',
            'Whether to bound the distance from the exact kernel machine, ``exact_certificate_``, in ``fit``. "exact" takes '
            "kernel values between the support vectors, which may take longer than the fit; ``max_seconds`` limits it, and "
            "``certify_exact`` does the same later.",
        )
    },
    "polish": {
        "": (
            "bool",
            "Whether to continue from these bounds with the block solver on the exact kernel, as `SVC` is trained, until the "
            "violation of its optimality conditions is below ``tol``, or the time is up. The model then predicts with "
            "the support vectors of the exact problem, class by class if that has the smaller objective.",
        )
    },
    "polish_seconds": {
        "": (
            "float",
            "Limit on the time of the block solver in all classes; None for ``max_seconds`` alone, half of what is left of "
            "it. The certificate that follows is not included.",
        )
    },
    "warm_start": {
        "": ("bool", "Start from the solution of the previous fit, if the shape of the data is the same."),
        "SVC NuSVC LSSVC LinearSVC": (
            "bool",
            "Start from the solution of the previous fit, if it had the same number of samples and the same classes.",
        ),
        "LinearSVR LinearOneClassSVM": (
            "bool",
            "Start from the solution of the previous fit, if it had the same rows.",
        ),
        "RankSVC": (
            "bool",
            "Start from the solution of the previous fit, if it had the same shape and number of pairs.",
        ),
    },
    "device": {
        "": (
            "str",
            'Where kernel values are computed and problems are solved: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an NVIDIA GPU; '
            "``pip install 'maxmargin[cuda13]'``), or ``\"auto\"``, which takes the GPU where it pays. The tolerance and the "
            "certificate are the same; see docs/gpu.md.",
        ),
        "KernelApproximationSVC": (
            "str",
            'Where features, and kernel values of predictions, are computed: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an NVIDIA '
            "GPU; ``pip install 'maxmargin[cuda13]'``), or ``\"auto\"``, which takes the GPU where it pays. The linear problem "
            "is solved on the CPU; see docs/gpu.md.",
        ),
    },
    "n_jobs": {
        SEARCHES: (
            "int",
            f"Threads: trials that run at the same time, then for the final fit and predictions. {THREADS}",
        ),
        "LinearSVC LinearSVR LinearOneClassSVM KernelApproximationSVC": (
            "int",
            f"Threads for training and prediction. {CORES} The last digits of the result may depend on it.",
        ),
        "": ("int", f"Threads for training and prediction. {THREADS}"),
    },
}
