"""A short run of the fuzzers: the corpus with every former finding, and some thousand mutations of each format."""

import subprocess
import sys
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from fuzz import native_fuzzer
from fuzz.mutation import mutations
from fuzz.python_fuzzer import mutate
from fuzz.targets import CORPUS, SEPARATOR, TARGETS, check_sentence, seal_model, unseal
from maxmargin.datasets import DataFileError

ROOT = Path(__file__).parents[2]

#: Mutations of each format; `python -m tests.fuzz` runs for longer.
MUTATIONS = 3000

#: Memory for reading a file: bytes per byte of the file, and a constant for buffers and imports.
BYTES_PER_BYTE, CONSTANT_BYTES = 128, 2**24


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_corpus_and_mutations(target):
    outcome = mutate(target, seconds=0.0, seed=1, executions=MUTATIONS)
    assert not outcome.findings, outcome.findings[0]
    assert outcome.executions > MUTATIONS


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_corpus_has_valid_and_invalid_files(target):
    assert {target.run(data) for data in target.corpus()} == {"read", "rejected"}


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_memory_is_in_proportion_to_the_file(target):
    corpus = list(target.corpus())
    for data in [*corpus, *islice(mutations(corpus, target.words, 2), 100)]:
        target.run(data)  # imports and caches
        tracemalloc.start()
        try:
            target.run(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak <= BYTES_PER_BYTE * len(data) + CONSTANT_BYTES, (peak, data)


def test_every_target_has_a_corpus_of_kilobytes():
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 200_000


def test_findings_are_reported():
    """What a reader must not do is a finding: another exception, or a message that is not one sentence."""

    def read(data):
        if data.startswith(b"x"):
            raise KeyError("not documented")
        raise DataFileError("the file", "a message")

    target = TARGETS["csv"]
    fails = type(target)("csv", lambda data: read(b"x"), target.errors, target.modules)
    assert "KeyError" in mutate(fails, seconds=0.0, seed=1, executions=1).findings[0]
    good = type(target)("csv", lambda data: read(b""), target.errors, target.modules)
    assert not mutate(good, seconds=0.0, seed=1, executions=1).findings
    for message in ("", "two\nlines", "\x1b[2J"):
        with pytest.raises(AssertionError, match="not one sentence"):
            check_sentence(ValueError(message))


def test_sealed_models_are_complete():
    for data in TARGETS["model"].seeds():
        assert unseal(seal_model(data)) == data
        assert SEPARATOR in data


@pytest.mark.native
@pytest.mark.parametrize("name", list(native_fuzzer.TARGETS))
def test_native_parsers_under_sanitisers(name, tmp_path):
    missing = native_fuzzer.missing_tool()
    if missing:
        pytest.skip(missing)
    outcome = native_fuzzer.fuzz(name, tmp_path, seconds=60.0, seed=1, runs=100_000)
    assert not outcome.findings, outcome.findings[0]
    assert outcome.executions >= 100_000
    assert all(share > 90.0 for share in outcome.coverage.values()), outcome.coverage


def test_command_line(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--minutes", "0.01", "--work", str(tmp_path), "ranges"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| ranges |" in run.stdout
    assert "executions" in run.stdout
    replay = subprocess.run(
        [*command[:3], "--replay", str(CORPUS / "ranges" / "x"), "ranges"], cwd=ROOT, capture_output=True, text=True
    )
    assert replay.stdout == "ranges: read\n"
    refused = subprocess.run([*command[:3], "nothing"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "unknown target 'nothing'" in refused.stderr
