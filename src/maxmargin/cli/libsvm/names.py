"""The drop-ins under the programs' own names, for the distribution in ``packaging/libsvm-names``."""

from __future__ import annotations

import sys
from pathlib import Path

from maxmargin.cli.main import main


def run_by_name() -> int:
    """Run the drop-in that is called as this program is."""
    return main([Path(sys.argv[0]).stem, *sys.argv[1:]])
