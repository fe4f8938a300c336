"""The result of fuzzing one target, and what the fuzzers have in common."""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: A file takes at most this long in seconds, and the process at most this memory in MB.
MAX_SECONDS, MAX_MEGABYTES = 10, 2048

#: Bytes of an input.
MAX_BYTES = 4096

#: Names of the inputs that libFuzzer writes.
ARTIFACTS = ("crash-*", "timeout-*", "oom-*", "leak-*")


@dataclass
class Outcome:
    """Executions of a target, line coverage of its modules or headers in percent, and findings as text."""

    target: str
    fuzzer: str
    executions: int
    seconds: float
    coverage: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def row(self) -> str:
        """Return the row of a table."""
        covered = ", ".join(f"{name.removeprefix('maxmargin.')} {share:.0f} %" for name, share in self.coverage.items())
        rate = self.executions / max(self.seconds, 1e-9)
        return (
            f"| {self.target} | {self.fuzzer} | {self.executions:,} | {rate:,.0f} | {covered or '–'} "
            f"| {len(self.findings)} |"
        )


def libfuzzer(
    command: Sequence[str | Path], folder: Path, seconds: float, words: Iterable[bytes], seed: int, **options: object
) -> tuple[int, float, list[str]]:
    """Run a program linked with libFuzzer on the corpus in a folder; return executions, seconds and findings."""
    dictionary = folder.parent / f"{folder.name}.dict"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words), encoding="ascii")
    # On Linux the peak memory of a program begins with that of the process that started it.
    of_this_process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    settings = {
        "max_total_time": max(1, round(seconds)),
        "timeout": MAX_SECONDS,
        "rss_limit_mb": MAX_MEGABYTES + of_this_process,
        "max_len": MAX_BYTES,
        "seed": seed,
        "artifact_prefix": f"{folder.parent}/{folder.name}-",
        "print_final_stats": 1,
        "dict": dictionary,
        "verbosity": 1,
        **options,
    }
    arguments = [f"-{name}={value}" for name, value in settings.items()]
    run = subprocess.run([*command, *arguments, folder], capture_output=True, check=False)
    output = (run.stdout + run.stderr).decode("utf-8", "replace")
    found = re.search(r"number_of_executed_units: (\d+)", output)
    executions = int(found[1]) if found else 0
    if run.returncode == 0 and found:
        duration = re.search(r"Done \d+ runs in (\d+) second", output)
        return executions, float(duration[1]) if duration else seconds, []
    files = [str(path) for kind in ARTIFACTS for path in folder.parent.glob(f"{folder.name}-{kind}")]
    return executions, seconds, [f"{', '.join(files) or 'no input was written'}\n{_excerpt(output)}"]


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _excerpt(output: str) -> str:
    """Return the part of the output that describes the finding."""
    for mark in ("=== Uncaught Python exception", "failed: ", "ERROR: ", "runtime error"):
        if mark in output:
            return output[output.index(mark) :].split("\nINFO: ")[0][:3000]
    return output[-3000:]
