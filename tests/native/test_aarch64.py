"""The native loops on another processor: compiled for 64-bit ARM with NEON, and run by an emulator."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER, EMULATOR, LIBRARIES = "aarch64-linux-gnu-g++", "qemu-aarch64", "/usr/aarch64-linux-gnu"

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason="needs a compiler for 64-bit ARM and an emulator (Debian: g++-aarch64-linux-gnu, qemu-user)",
    ),
]


def sources(target):
    """The source files of an executable in CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.findall(r"native/tests/\S+\.cpp", re.search(rf"add_executable\({target} ([^)]*)\)", text)[1])


@pytest.mark.parametrize("target", ["native_tests", "text_tests"])
def test_loops(target, tmp_path):
    loops = ["kernel_loops", "linear_loops", "solver_loops", "extended_loops"] if target == "native_tests" else []
    for name in loops:
        contract = "fast" if name in ("kernel_loops", "linear_loops") else "off"
        options = [f"-ffp-contract={contract}", "-DMAXMARGIN_LEVEL=plain", "-c", f"native/{name}.cpp"]
        compile_for_arm(*options, "-o", str(tmp_path / f"{name}.o"))
    objects = [str(tmp_path / f"{name}.o") for name in loops]
    compile_for_arm("-Inative", *sources(target), *objects, "-pthread", "-o", str(tmp_path / target))
    command = [EMULATOR, "-L", LIBRARIES, str(tmp_path / target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def compile_for_arm(*options):
    subprocess.run([COMPILER, "-std=c++17", "-O2", "-Wno-psabi", *options], cwd=ROOT, check=True)
