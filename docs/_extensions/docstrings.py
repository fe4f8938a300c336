"""Docstrings as reStructuredText: formulas with bars, and what the estimators inherit from scikit-learn."""

import re

import numpy as np

LITERAL = re.compile(r"(``.*?``)")
REFERENCE = re.compile(r":ref:`([^`<]+?) *<[^`]+>`")


def escape_bars(app, what, name, thing, options, lines):
    """Escape the bars of norms, except in literals and examples; drop references to scikit-learn's pages."""
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            pieces = LITERAL.split(REFERENCE.sub(r"\1", line))
            lines[k] = "".join(piece if piece.startswith("``") else piece.replace("|", r"\|") for piece in pieces)


def leave_out(app, what, name, member, skip, options):
    """Return whether to omit a member: NumPy functions, and what every estimator of scikit-learn has."""
    inherited = str(getattr(member, "__module__", "")).startswith("sklearn.") and name != "score"
    return True if inherited or name.endswith("_request") or isinstance(member, np.ufunc) else None


def setup(app):
    """Connect the handlers."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
