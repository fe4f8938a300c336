"""The native loops on other platforms: cross-compiled for 64-bit ARM with NEON and for Windows, run by emulators."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Source files of loops, and whether the compiler may fuse multiplications and additions there.
LOOPS = {"kernel_loops": "fast", "linear_loops": "fast", "solver_loops": "off", "extended_loops": "off"}


@dataclass(frozen=True)
class Platform:
    compiler: str
    options: tuple[str, ...]
    emulator: tuple[str, ...]
    levels: tuple[str, ...]
    packages: str

    def missing(self):
        return not (shutil.which(self.compiler) and shutil.which(self.emulator[0]))

    def compile(self, *arguments):
        command = [self.compiler, "-std=c++17", "-Wno-psabi", *self.options, *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


ARM = Platform(
    "aarch64-linux-gnu-g++",
    ("-O2",),
    ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ("plain",),
    "g++-aarch64-linux-gnu, qemu-user",
)
WINDOWS = Platform(
    "x86_64-w64-mingw32-g++-posix",
    # The second option: this compiler assumes a stack aligned for wide vectors, which Windows does not promise.
    ("-O1", "-Wa,-muse-unaligned-vector-move", "-static"),
    ("wine",),
    ("v2", "v3", "v4"),
    "g++-mingw-w64-x86-64-posix, wine",
)

pytestmark = pytest.mark.native


@pytest.fixture(params=[pytest.param(ARM, id="aarch64"), pytest.param(WINDOWS, id="windows")])
def platform(request):
    if request.param.missing():
        pytest.skip(f"needs a cross compiler and an emulator (Debian: {request.param.packages})")
    return request.param


def sources(target):
    """The source files of an executable in CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.findall(r"native/tests/\S+\.cpp", re.search(rf"add_executable\({target} ([^)]*)\)", text)[1])


@pytest.mark.parametrize("target", ["native_tests", "text_tests"])
def test_loops(platform, target, tmp_path):
    def compile_loops(level, name):
        march = () if level == "plain" else (f"-march=x86-64-{level}",)
        out = tmp_path / f"{name}_{level}.o"
        options = (f"-ffp-contract={LOOPS[name]}", f"-DMAXMARGIN_LEVEL={level}", *march)
        platform.compile(*options, "-c", f"native/{name}.cpp", "-o", out)
        return out

    objects = []
    if target == "native_tests":
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda of: compile_loops(*of), product(platform.levels, LOOPS)))
    program = tmp_path / f"{target}.exe"
    platform.compile("-Inative", *sources(target), *objects, "-pthread", "-o", program)
    environment = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    done = subprocess.run(
        [*platform.emulator, program], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
