"""The extension built with ThreadSanitizer: no unsynchronised access in any threaded loop."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the extension built for the thread sanitiser."""
    nanobind = pytest.importorskip("nanobind")
    folder = tmp_path_factory.mktemp("threads")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # both are in the test extra
    cmake, ninja = (shutil.which(name, path=programs) for name in ("cmake", "ninja"))
    configure = [
        *(cmake, "-S", ROOT, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"),
        *("-DMAXMARGIN_SANITIZE=thread", "-DCMAKE_BUILD_TYPE=None", f"-Dnanobind_DIR={nanobind.cmake_dir()}"),
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    for command in (configure, [cmake, "--build", folder / "build"]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    source = Path(maxmargin.__file__).parent
    shutil.copytree(source, folder / "maxmargin", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (extension,) = (folder / "build").glob("_extension*.so")
    shutil.copy(extension, folder / "maxmargin" / "_native")
    return folder


def run(package, program):
    """Run a program with the sanitised extension; the runtime must be loaded before Python.

    Without the module `site` an editable installation does not take precedence over the path.
    """
    runtime = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package), *filter(None, sys.path)]),
        "LD_PRELOAD": runtime.stdout.strip(),
        "TSAN_OPTIONS": "halt_on_error=1 exitcode=66 report_signal_unsafe=0",
        "OMP_NUM_THREADS": "1",  # BLAS is not instrumented
    }
    return subprocess.run([sys.executable, "-S", program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.native
@pytest.mark.skipif(shutil.which("g++") is None, reason="the thread sanitiser is tested with g++")
def test_thread_sanitiser_reports_no_errors(package):
    found = run(package, Path(__file__).parent / "threaded_loops.py")
    assert found.returncode == 0, found.stdout + found.stderr[-6000:]
    assert re.fullmatch(r"finished on (v2|plain)\n", found.stdout)
