"""Fuzz a Python reader with atheris, Google's coverage-guided fuzzer, or else with random mutations.

    python -m tests.fuzz.python_fuzzer csv -max_total_time=60 corpus_folder

runs a target under atheris alone, with options of libFuzzer; `python -m tests.fuzz` starts it for all targets. atheris
ends the process after the run, or at the first finding with the input in a file crash-….
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

from .mutation import mutations
from .outcome import MAX_SECONDS, Outcome, libfuzzer
from .targets import TARGETS, Target

MODULE = "tests.fuzz.python_fuzzer"


def fuzz(target: Target, work: Path, seconds: float, seed: int) -> Outcome:
    """Fuzz a target for some time; the corpus grows in a folder of `work`."""
    folder = work / target.name
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.corpus()):
        (folder / f"seed-{number}").write_bytes(data)
    if importlib.util.find_spec("atheris") is None:
        outcome = mutate(target, seconds, seed)
    else:
        command = [sys.executable, "-m", MODULE, target.name]
        executions, spent, findings = libfuzzer(command, folder, seconds, target.words, seed)
        outcome = Outcome(target.name, "atheris", executions, spent, findings=findings)
    if importlib.util.find_spec("coverage") is not None:
        outcome.coverage = measure_coverage(target, folder)
    return outcome


def mutate(target: Target, seconds: float, seed: int, executions: int | None = None) -> Outcome:
    """Run a target on its corpus and on random mutations of it, in this process."""
    corpus = list(target.corpus())
    outcome = Outcome(target.name, "mutations", 0, 0.0)
    started = perf_counter()
    for data in _chain(corpus, mutations(corpus, target.words, seed)):
        outcome.executions += 1
        begun = perf_counter()
        try:
            target.run(data)
        except Exception:  # what a reader must not raise
            outcome.findings.append(f"{data!r}\n{traceback.format_exc()}")
        if perf_counter() - begun > MAX_SECONDS:
            outcome.findings.append(f"{data!r}\ntook {perf_counter() - begun:.1f} s")
        outcome.seconds = perf_counter() - started
        finished = outcome.seconds > seconds if executions is None else outcome.executions >= len(corpus) + executions
        if outcome.findings or finished:
            return outcome
    return outcome


def _chain(corpus: list[bytes], more: Iterable[bytes]) -> Iterable[bytes]:
    yield from corpus
    yield from more


def measure_coverage(target: Target, folder: Path) -> dict[str, float]:
    """Return the line coverage of each module of a target by the files of a folder, in percent."""
    command = [sys.executable, "-m", "tests.fuzz.python_coverage", target.name, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def run_atheris(target: Target, arguments: list[str]) -> None:
    """Run a target under atheris with arguments of libFuzzer; does not return."""
    import atheris

    for name in target.modules:
        for value in vars(importlib.import_module(name)).values():
            _instrument(atheris, value, name)
    atheris.Setup([sys.argv[0], *arguments], lambda data: target.run(data) and None)
    atheris.Fuzz()


def _instrument(atheris: object, value: object, module: str) -> None:
    """Instrument a function, or the methods of a class, of a module that is already imported."""
    if getattr(value, "__module__", None) != module:
        return
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    for member in members:
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if hasattr(function, "__code__"):
            atheris.instrument_func(function)


if __name__ == "__main__":
    run_atheris(TARGETS[sys.argv[1]], sys.argv[2:])
