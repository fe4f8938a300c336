"""The tuned thresholds of the solvers and of training, and their values and comments in the source."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).parents[1] / "src" / "maxmargin"


@dataclass(frozen=True)
class Threshold:
    """A constant of a module, or the default of a field of a class (``"BlockSolver.working_set"``).

    Attributes
    ----------
    module : str
        Below `maxmargin`.
    name : str
    maximum : float
        The largest value that makes sense, where doubling would exceed it (fractions).
    kept : str
        Why the threshold is kept although it does not change the counts of the cases.
    """

    module: str
    name: str
    maximum: float = np.inf
    kept: str = ""

    @property
    def label(self) -> str:
        """The name with that of the last module."""
        return f"{self.module.rpartition('.')[2]}.{self.name}"

    @property
    def path(self) -> Path:
        """The source file."""
        return SOURCE.joinpath(*self.module.split(".")).with_suffix(".py")

    def scaled(self, value: Any, factor: float) -> Any:
        """Return a multiple of the value, of the same type, at most `maximum`."""
        product = min(value * factor, self.maximum)
        return max(1, round(product)) if isinstance(value, int) else product


#: The largest sensible values of fractions that exceed it when they are doubled or multiplied by ten.
MAXIMA = {
    "MAX_WRITING_FRACTION": 1.0,
    "MAX_PART": 1.0,
    "GROWTH_FRACTION": 0.95,
    "TOLERANCE_RESERVE": 0.9,
    "MIN_SUPPORT_FRACTION": 1.0,
    "MIN_DISTINCT_FRACTION": 1.0,
    "MIN_VIOLATION_FRACTION": 1.0,
    "MAX_FRACTION_AFTER_SHRINKING": 0.9,
    "MIN_STEP_WITHOUT_DAMPING": 1.0,
    "SIGMA_REDUCTION": 0.9,
    "SHORT_STEP": 1.0,
    "FULL_STEP_SLOPE": 1.0,
    "MAX_CHANGED_FRACTION": 1.0,
    "NEAR_FRACTION": 1.0,
    "MAX_FRACTION": 1.0,
    "REFINEMENT_RATIO": 0.9,
    "MAX_MIN_FRACTION": 1.0,
    "MAX_ROUNDING_FRACTION": 1.0,
}

_STALLS = "ends runs that rounding keeps from converging; no case stalls"
_FALLBACK = "used only after the Newton method has stalled; no case reaches it"

#: Why thresholds are kept that do not change the counts of the cases.
KEPT = {
    "block_solver.STALL_STEPS": _STALLS,
    "block_solver.STALL_STEPS_PER_VARIABLE": _STALLS,
    "block_solver.STEPS_PER_ROUND": _STALLS,
    "block_solver.MAX_UNBOUNDED_STEPS_PER_VARIABLE": "detects unbounded duals; all cases are bounded",
    "nested_start.MIN_SUPPORT_FRACTION": "the classes of the cases are of even size",
    "selection.MAX_GROUPS_BY_VARIABLE": "the cases have one group, or one for each sample",
    "repeated_matrix.MIN_DISTINCT_FRACTION": "the cases have one variable for each sample",
    "pairwise.STALL_STEPS": _STALLS,
    "pairwise.STALL_STEPS_PER_VARIABLE": _STALLS,
    "pairwise.ROUNDING_STALL_STEPS": _STALLS,
    "pairwise.ROUNDING_STALL_STEPS_PER_VARIABLE": _STALLS,
    "exact_finish.MAX_ROUNDS": "ends the exact finish where bounds keep changing; in the cases it ends by itself",
    "exact_finish.STEPS_PER_ROUND": "ends a round of the exact finish; in the cases the rounds end by themselves",
    "free_equations.MAX_WORK": "bounds the time of one solution of the equations; the cases have few free variables",
    "linear_solver.MAX_FALLBACK_PASSES": _FALLBACK,
    "linear_solver.MAX_FALLBACK_MULTIPLICATIONS": _FALLBACK,
    "linear_solver.MAX_PAIRWISE_SAMPLES": _FALLBACK,
    "linear_solver.PAIRWISE_STEPS_PER_SAMPLE": _FALLBACK,
    "dual_coordinate_ascent.DEFAULT_RELATIVE_GAP": "for solver objects whose stopping rule has no relative gap",
    "dual_coordinate_ascent.MAX_STALLED_PASSES": _STALLS,
    "semismooth_newton.MIN_SIGMA_RATIO": "a lower limit of the smoothing; the cases converge before they reach it",
    "semismooth_newton.MAX_STALLED_STEPS": _STALLS,
    "smoothed_primal.DEFAULT_RELATIVE_SIGMA": "for problems without finite bounds, or with a small ridge beside them",
    "coordinate_descent.CHUNK_MULTIPLICATIONS": "bounds the delay of time limits and Ctrl-C; large data only",
    "l1_model.MIN_NEWTON_STEPS": "for models so large that their factorisation exceeds the multiplications",
    "linear_system_solver.REFINEMENT_RATIO": _STALLS,
    "linear_system_solver.STALL_STEPS": _STALLS,
    "fit_context.MAX_SINGLE_THREAD_ROWS": "concerns the number of threads, not the counts",
    "verification.CONFIRMED_GRADIENTS": "concerns fits that are resumed from a checkpoint",
    "checkpoint.MAX_WRITING_FRACTION": "concerns fits with checkpoints",
    "verification.MAX_VERIFICATION_WORK": "concerns when the certificate is computed, not the counts of the solver",
    "cross_validation.MIN_SUBSET": "the subsets of the cases are larger",
    "cross_validation.MAX_MIN_FRACTION": "the subsets of the cases are larger",
    "cross_validation.MAX_ROUNDING_FRACTION": "ensures the precision of folds with large dual variables",
    "cross_validation.QUICK_STEPS_PER_VARIABLE": "for folds that converge slowly; those of the cases do not",
    "smoothed_primal.ROWS_FOR_MEAN_NORM": "bounds the cost of an estimate of which only the magnitude matters",
}

#: The tuned thresholds by the group of cases on which they are measured. Tolerances of rounding errors, budgets of
#: memory and intervals of time are not among them.
_NAMES: dict[str, dict[str, str]] = {
    "Block solver": {
        "solvers.block.block_solver": """
            BlockSolver.working_set VARIABLES_PER_FREE
            MAX_PART GROWTH_FRACTION SUBPROBLEM_TOLERANCE SETTLED_FACTOR REFINEMENT_FRACTION
            STALL_STEPS STALL_STEPS_PER_VARIABLE STEPS_PER_ROUND MAX_UNBOUNDED_STEPS_PER_VARIABLE
            TOLERANCE_RESERVE MAX_FREE_EQUATIONS INITIAL_RANK
        """,
        "backends.native_backend": """
            MAX_WHOLE_SIZE FIRST_SIZE FIRST_SIZE_EXPENSIVE MIN_FIRST_SIZE MAX_FIRST_SIZE MAX_FIRST_WHOLE_SIZE
            STEPS_PER_CHECK
        """,
        "backends.host_state": """
            AUDITED_AT_EACH_END AUDITED_SPREAD ERROR_SAFETY_FACTOR MAX_FRACTION_AFTER_SHRINKING
            MAX_SIZE_AFTER_SHRINKING MAX_PRECISE_SIZE
        """,
        "matrices.float32_row_cache": "MAX_COST_OF_RECOMPUTING",
    },
    "Block solver: nested start": {
        "solvers.block.block_solver": """
            BlockSolver.nested_above
        """,
        "solvers.block.nested_start": """
            SAMPLE_VIOLATION MAX_SAMPLE_STEPS_PER_VARIABLE FIRST_VARIABLES_PER_SUPPORT_VECTOR
            SAMPLE_RATIO NUMBER_OF_SAMPLES MIN_SAMPLE_SIZE MIN_BOUNDED_FRACTION MIN_SUPPORT_FRACTION
        """,
    },
    "Block solver: other cases": {
        "solvers.block.block_solver": "MIN_WORKING_SET_FOR_WHOLE STEPS_PER_GAP_CHECK",
        "backends.native_backend": "ROWS_PER_REQUEST MIN_VIOLATION_FRACTION",
        "backends.selection": "MAX_GROUPS_BY_VARIABLE",
        "matrices.float32_row_cache": "REQUESTS_UNTIL_STALE",
        "matrices.repeated_matrix": "MIN_DISTINCT_FRACTION",
    },
    "Pairwise solver": {
        "solvers.smo.pairwise": """
            PairwiseSolver.finish_below STALL_STEPS STALL_STEPS_PER_VARIABLE ROUNDING_STALL_STEPS
            ROUNDING_STALL_STEPS_PER_VARIABLE MIN_CHECK_PERIOD MAX_CHECK_PERIOD ACCELERATION_PERIOD RESHRINK_VIOLATION
        """,
        "solvers.smo.exact_finish": "MAX_ROUNDS STEPS_PER_ROUND",
        "backends.free_equations": "MAX_WORK",
    },
    "Batches of small problems": {"solvers.smo.small_problem_batch": "MAX_STEPS MAX_FREE"},
    "Linear solver: choice of the method, dual coordinate ascent": {
        "solvers.linear.linear_solver": """
            MIN_SUBSAMPLE SUBSAMPLE_PER_FEATURE SUBSAMPLE_ONE_IN MIN_SUBSAMPLE_RATIO SUBSAMPLE_RELATIVE_GAP
            BLAS_SPEEDUP FACTORISATION_SPEEDUP MAX_CHEAP_STEP_PASSES NEWTON_STEPS SMOOTHED_NEWTON_STEPS
            PASSES_PER_STEP MAX_FALLBACK_PASSES MAX_FALLBACK_MULTIPLICATIONS MAX_PAIRWISE_SAMPLES
            PAIRWISE_STEPS_PER_SAMPLE MAX_PASSES_BEFORE_NEWTON
        """,
        "solvers.linear.dual_coordinate_ascent": """
            CHUNK_MULTIPLICATIONS MIN_MULTIPLICATIONS_FOR_THREADS MULTIPLICATIONS_PER_COPIED_WEIGHT
            MIN_STEP_WITHOUT_DAMPING PASSES_BEFORE_FIRST_EVALUATION DEFAULT_RELATIVE_GAP MAX_STALLED_PASSES
        """,
    },
    "Semismooth Newton method": {
        "solvers.linear.semismooth_newton": """
            SOLVED_FRACTION SIGMA_REDUCTION MIN_SIGMA_RATIO MAX_STEPS_PER_PROBLEM MAX_SHORT_STEPS SHORT_STEP
            MAX_FEATURES_PER_FREE_SAMPLE MAX_STALLED_STEPS FULL_STEP_SLOPE
        """,
        "solvers.linear.newton_equations": """
            MAX_FACTORISED CG_TOLERANCE MAX_CG_STEPS MAX_UPDATES MAX_CHANGED_FRACTION
        """,
        "solvers.linear.kink_samples": "NEAR_FRACTION MAX_FRACTION MIN_STORED_VALUES",
        "solvers.linear.smoothed_primal": """
            DEFAULT_RELATIVE_SIGMA NEAR_KINK_PER_FEATURE NEAR_KINK_ONE_IN ROWS_FOR_MEAN_NORM
        """,
    },
    "Coordinate descent for the l1 penalty": {
        "solvers.linear.coordinate_descent": """
            MIN_WORKING_SET_SIZE WORKING_SET_RATIO MAX_NEWTON_WEIGHTS MIN_PASSES MAX_PASSES BLAS_SPEEDUP
            PASS_REDUCTION MODEL_REDUCTION CHUNK_MULTIPLICATIONS MAX_SHORT_STEPS SHORT_STEP
            MAX_ROUNDS_PER_PROBLEM FIRST_COST_RATIO SIGMA_REDUCTION SOLVED_FRACTION
        """,
        "solvers.linear.l1_model": """
            PASSES_PER_NEWTON_STEP MULTIPLICATIONS MIN_NEWTON_STEPS MAX_NEWTON_STEPS
        """,
    },
    "Linear system": {
        "solvers.linear_system.linear_system_solver": """
            REFRESH_FRACTION REFINEMENT_RATIO STALL_STEPS MAX_DIRECT_SIZE MAX_COLUMNS MIN_COLUMNS
        """,
        "solvers.linear_system.preconditioners": "WHOLE_PANEL PARTIAL_PANEL",
    },
    "Training": {
        "training.fit_context": """
            MAX_FULL_KERNEL_ROWS MAX_PAIRWISE_VARIABLES MAX_SINGLE_THREAD_ROWS
        """,
        "training.verification": "MAX_VERIFICATION_WORK CONFIRMED_GRADIENTS",
        "training.checkpoint": "MAX_WRITING_FRACTION",
    },
    "Cross-validation for calibration": {
        "machines.calibration.cross_validation": """
            MIN_SUBSET MAX_MIN_FRACTION SUBSET_PER_FREE SUBSET_PER_SUPPORT_VECTOR MAX_DOUBLE_PRECISION_SIZE
            FOLD_TOLERANCE_FACTOR MAX_ROUNDING_FRACTION QUICK_STEPS_PER_VARIABLE
        """
    },
}

THRESHOLDS = {
    group: [
        Threshold(module, name, MAXIMA.get(name, np.inf), KEPT.get(f"{module.rpartition('.')[2]}.{name}", ""))
        for module, names in modules.items()
        for name in names.split()
    ]
    for group, modules in _NAMES.items()
}


def find_assignment(tree: ast.Module, name: str) -> tuple[ast.expr, int]:
    """Return the expression that is assigned to a constant or a field of a class, and the line of the statement."""
    owner, _, name = name.rpartition(".")
    body: list[ast.stmt] = tree.body
    if owner:
        (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert node.value is not None
            return node.value, node.lineno
        if not isinstance(node, ast.Assign):
            continue
        (target,) = node.targets
        if isinstance(target, ast.Name) and target.id == name:
            return node.value, node.lineno
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for one, value in zip(target.elts, node.value.elts, strict=True):
                if isinstance(one, ast.Name) and one.id == name:
                    return value, node.lineno
    raise LookupError(f"no assignment of {name}")


def present_value(threshold: Threshold) -> Any:
    """Return the value of a threshold in the source."""
    value, _ = find_assignment(ast.parse(threshold.path.read_text(encoding="utf-8")), threshold.name)
    return evaluate(value)


def evaluate(expression: ast.expr) -> Any:
    """Return the value of an expression of literals."""
    return eval(compile(ast.Expression(expression), "threshold", "eval"), {})


def comment_of(threshold: Threshold) -> str:
    """Return the comment above the assignment, or the description of a field in the docstring of its class."""
    text = threshold.path.read_text(encoding="utf-8")
    owner, _, name = threshold.name.rpartition(".")
    if owner:
        found = re.search(rf"^    {name} : .*\n((?:        .*\n)+)", text, re.MULTILINE)
        return " ".join(found[1].split()) if found else ""
    lines = text.splitlines()
    _, line = find_assignment(ast.parse(text), threshold.name)
    comment: list[str] = []
    for above in reversed(lines[: line - 1]):
        if not above.startswith("#:"):
            break
        comment.insert(0, above.removeprefix("#:").strip())
    return " ".join(comment)
