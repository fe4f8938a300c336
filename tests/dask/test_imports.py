"""Dask is imported when it is needed, and missing in one clear sentence."""

import subprocess
import sys

import pytest

WITHOUT_DASK = """
import sys
sys.modules["{module}"] = None
import maxmargin.dask
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("module", ["dask", "distributed"])
def test_missing(module):
    done = run(WITHOUT_DASK.format(module=module))
    assert done.returncode
    assert done.stderr.splitlines()[-1] == "ImportError: maxmargin.dask needs Dask: pip install 'maxmargin[dask]'"


def test_not_imported_by_the_package():
    done = run("import sys, maxmargin; maxmargin.LinearSVC(); assert not {'dask', 'distributed'} & set(sys.modules)")
    assert not done.returncode, done.stderr
