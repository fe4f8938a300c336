"""Pictures as parts of a page that needs nothing from anywhere."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def svg_of(figure: Figure) -> str:
    """Return a figure as an element of a page, without references to other documents."""
    from matplotlib import rc_context

    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "maxmargin"}):
        figure.savefig(written, format="svg")
    picture = written.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", picture[picture.index("<svg") :], flags=re.DOTALL)
