"""Fuzz the native parsers with libFuzzer under the address and undefined-behaviour sanitisers. Needs clang."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .outcome import Outcome, libfuzzer
from .targets import CORPUS
from .words import LIBSVM_WORDS, NUMBERS

NATIVE = Path(__file__).resolve().parents[2] / "native"

#: Dictionary of each target, and the headers whose coverage is reported.
TARGETS: dict[str, tuple[tuple[bytes, ...], tuple[str, ...]]] = {
    "number": (NUMBERS, ("decimal.hpp",)),
    "text": (LIBSVM_WORDS, ("libsvm_text.hpp", "decimal.hpp")),
}

SANITISERS = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
COVERAGE = ["-fsanitize=fuzzer", "-fprofile-instr-generate", "-fcoverage-mapping"]


@cache
def missing_tool() -> str | None:
    """Return why the native parsers cannot be fuzzed here, None if they can."""
    if shutil.which("clang++") is None:
        return "clang++ is not installed (Debian: apt install clang libclang-rt-dev llvm)"
    trial = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    command = ["clang++", *SANITISERS, "-x", "c++", "-", "-o", os.devnull]
    if subprocess.run(command, input=trial.encode(), capture_output=True, check=False).returncode:
        return "clang++ has no libFuzzer or no sanitisers (Debian: apt install libclang-rt-dev)"
    return None


def build(name: str, work: Path, options: Sequence[str]) -> Path:
    """Compile a target; return the program."""
    program = work / f"fuzz_{name}{'' if options is SANITISERS else '_coverage'}"
    source = NATIVE / "tests" / f"fuzz_{name}.cpp"
    command = ["clang++", "-std=c++17", "-O1", "-g", *options, "-I", NATIVE, source, "-o", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"clang++ cannot build {source.name}:\n{run.stderr[-3000:]}")
    return program


def fuzz(name: str, work: Path, seconds: float, seed: int, runs: int = -1) -> Outcome:
    """Fuzz a native target for some time or number of runs; the corpus grows in a folder of `work`."""
    folder = work / f"native_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (CORPUS / "libsvm").iterdir():
        data = path.read_bytes()
        for number, word in enumerate(data.replace(b":", b" ").split() if name == "number" else [data]):
            (folder / f"seed-{path.name}-{number}").write_bytes(word)
    words, headers = TARGETS[name]
    executions, spent, findings = libfuzzer([build(name, work, SANITISERS)], folder, seconds, words, seed, runs=runs)
    outcome = Outcome(f"native {name}", "libFuzzer, ASan, UBSan", executions, spent, findings=findings)
    if shutil.which("llvm-profdata") and shutil.which("llvm-cov") and not findings:
        outcome.coverage = measure_coverage(name, work, folder, headers)
    return outcome


def measure_coverage(name: str, work: Path, folder: Path, headers: Sequence[str]) -> dict[str, float]:
    """Return the line coverage of headers by the files of a folder, in percent."""
    program, raw, profile = build(name, work, COVERAGE), work / f"{name}.profraw", work / f"{name}.profdata"
    environment = {**os.environ, "LLVM_PROFILE_FILE": str(raw)}
    subprocess.run([program, "-runs=0", folder], env=environment, capture_output=True, check=True)
    subprocess.run(["llvm-profdata", "merge", "-sparse", raw, "-o", profile], check=True)
    command = ["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", program]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    files = {Path(entry["filename"]).name: entry["summary"] for entry in report["data"][0]["files"]}
    return {header: files[header]["lines"]["percent"] for header in headers}
