"""Line coverage of the modules of a target by the files of a folder, as JSON.

python -m tests.fuzz.python_coverage csv corpus_folder
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import coverage


def main() -> None:
    # Starts before the modules are imported, so that their definitions count.
    measured = coverage.Coverage(data_file=None, include=["*/maxmargin/*"])
    measured.start()
    from .targets import TARGETS

    target = TARGETS[sys.argv[1]]
    for path in sorted(Path(sys.argv[2]).iterdir()):
        target.run(path.read_bytes())
    measured.stop()
    shares = {}
    for name in target.modules:
        _, lines, _, missing, _ = measured.analysis2(find_spec(name).origin)
        shares[name] = 100.0 * (1.0 - len(missing) / len(lines))
    print(json.dumps(shares))


if __name__ == "__main__":
    main()
