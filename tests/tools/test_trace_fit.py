"""The trace of a fit on small data: it begins and ends at the estimator, and its hops are balanced."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the tools are not installed

from tools.trace_fit import hop_lines, main, summary, trace_call, trace_fit, tree_lines  # noqa: E402


@pytest.mark.parametrize("name", ["SVC", "LinearSVC", "SVR", "OneClassSVM"])
def test_trace_enters_the_estimator_and_returns(name):
    trace = trace_fit(name, rows=60)
    assert any(file.startswith("machines/") for file in trace.files)
    assert any(file.startswith("solvers/") for file in trace.files)
    calls = [hop for hop in trace.hops if not hop.is_return]
    assert trace.hops[0].caller == ""
    assert trace.hops[-1].is_return
    assert trace.hops[-1].callee == ""
    assert 2 * len(calls) == len(trace.hops)


def test_calls_between_files_are_hops(tmp_path):
    (tmp_path / "low.py").write_text("def square(x):\n    return x * x\n", encoding="utf-8")
    (tmp_path / "high.py").write_text("def twice(f, x):\n    return f(x) + f(x)\n", encoding="utf-8")
    functions = {}
    for file in tmp_path.glob("*.py"):
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), functions)
    trace = trace_call(lambda: functions["twice"](functions["square"], 3), tmp_path)
    assert trace.files == {"low.py", "high.py"}
    assert list(tree_lines(trace.root, max_depth=2)) == ["high.py: twice", "  low.py: square  (2 calls)"]
    assert list(tree_lines(trace.root, max_depth=1)) == ["high.py: twice"]
    assert list(hop_lines(trace)) == [
        "-> high.py: twice",
        "  -> low.py: square",
        "  <- high.py",
        "  -> low.py: square",
        "  <- high.py",
        "<- caller",
    ]
    assert summary(trace) == "2 files, 6 hops between files (2 different calls)"


def test_an_exception_leaves_a_balanced_trace(tmp_path):
    file = tmp_path / "failing.py"
    file.write_text("def fail():\n    raise ValueError\n", encoding="utf-8")
    functions = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), functions)

    def call():
        with pytest.raises(ValueError):  # noqa: PT011
            functions["fail"]()

    assert [hop.is_return for hop in trace_call(call, tmp_path).hops] == [False, True]


@pytest.mark.parametrize("option", [[], ["--every-hop"]])
def test_command_prints_files_and_counts(option, capsys):
    main(["SVC", "--rows", "50", "--set", "kernel=linear", "--set", "C=10", *option])
    printed = capsys.readouterr().out
    assert "machines/kernel/" in printed
    assert "hops between files" in printed
