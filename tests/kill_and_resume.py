"""Kill fits at random moments and resume them: the checkpoints of `docs/checkpoints.md`.

    python -m tests.kill_and_resume --kills 200 [--case NAME] [--seed 0]

A process fits with a checkpoint and is killed by SIGKILL, at a random time or while it writes the file. Others resume,
and are killed again once or twice; the last one finishes. Checked: every problem ends converged with a certificate
whose interval overlaps that of a fit without interruptions, so that both contain the same optimum; the state in the
file is never older than the interval and the time to the next report; no file stays behind. The exit code is 1 if one
of the checks fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import (
    LSSVC,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RankSVC,
)
from maxmargin.datasets import chessboard
from maxmargin.training.checkpoint_file import CheckpointError, read_checkpoint, temporary_of

#: Seconds between two checkpoints. Fits take about a second.
INTERVAL = 0.05

#: Seconds that a state may be older than the interval: a step of a solver that does not return, a busy machine.
ALLOWANCE = 5.0

#: The fraction of kills that wait for the file to be written.
KILLS_IN_WRITES = 0.3


class Case(NamedTuple):
    """An estimator, its data, and whether its fit is a command."""

    model: Any
    X: Any
    y: Any
    is_command: bool = False


def cases() -> dict[str, Case]:
    """Return fits of about a second each, of all kinds of problems."""
    rng = np.random.default_rng(0)
    X, y = chessboard(6000, seed=0, noise=0.1)
    small, labels = X[:2500], y[:2500]
    thirds = np.digitize(X[:, 0] + 0.05 * rng.normal(size=len(X)), [0.3, 0.6])
    targets = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))
    wide = rng.normal(size=(4000, 300))
    signs = np.sign(wide[:, :20].sum(axis=1) + 4 * rng.normal(size=4000))
    outputs = wide[:, :2] + 0.3 * wide[:, 2:4] + 0.1 * rng.normal(size=(4000, 2))
    return {
        "svc": Case(SVC(C=100, gamma=20.0), X, y),
        "svc pairwise": Case(SVC(C=1000, gamma=5.0, solver="pairwise"), small, labels),
        "svc three classes": Case(SVC(C=1000, gamma=20.0), X, thirds),
        "svc one-vs-rest": Case(SVC(C=1000, gamma=20.0, multi_class="ovr"), X, thirds),
        "svc crammer-singer": Case(SVC(C=1000, gamma=20.0, multi_class="crammer_singer"), small, thirds[:2500]),
        "svc probability": Case(SVC(C=1000, gamma=5.0, probability=True), small, labels),
        "svc hard margin": Case(SVC(C=np.inf, gamma=200.0), small, thirds[:2500] == 0),
        "nu_svc": Case(NuSVC(nu=0.3, gamma=20.0), X, y),
        "svr": Case(SVR(C=100, gamma=20.0, noise=True), small, targets[:2500]),
        "nu_svr": Case(NuSVR(C=10, gamma=20.0), small, targets[:2500]),
        "quantile_svr": Case(QuantileSVR(C=100, gamma=20.0, quantile=0.3), small, targets[:2500]),
        "one_class_svm": Case(OneClassSVM(nu=0.5, gamma=50.0, tol=1e-5), X, None),
        "svdd": Case(SVDD(nu=0.5, gamma=50.0, tol=1e-6), X, None),
        "rank_svc": Case(RankSVC(gamma=20.0), X[:500], targets[:500]),
        "lssvc": Case(LSSVC(C=1e4, tol=1e-6), small, labels),
        "linear_svc": Case(LinearSVC(C=1.0, tol=1e-6, dual=True), wide[:, :100], signs),
        "linear_svc newton": Case(LinearSVC(loss="hinge", tol=1e-8, dual=False), wide, signs),
        "linear_svc l1": Case(LinearSVC(penalty="l1", C=0.05, tol=1e-8), wide, signs),
        "linear_svr": Case(LinearSVR(epsilon=0.1, tol=1e-8, noise=True), wide[:, :100], outputs),
        "linear_one_class_svm": Case(LinearOneClassSVM(nu=0.3, tol=1e-8), wide + 1.0, None),
        "kernel_approximation_svc": Case(KernelApproximationSVC(C=100, n_components=300, tol=1e-6), X, y),
        "train": Case(SVC(C=100.0, gamma=20.0), X, y, is_command=True),
        "train linear-svc": Case(LinearSVC(C=1.0, tol=1e-6, dual=True), wide[:, :100], signs, is_command=True),
    }


def fit(case: Case, folder: Path, checkpoint: bool) -> dict[str, Any]:
    """Fit a case in this process; return the statuses and certificates of its problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case.is_command:
            model = _train(case, folder, checkpoint)
        else:
            where = folder / "fit.checkpoint" if checkpoint else None
            model = type(case.model)(**case.model.get_params())
            model.set_params(checkpoint=where, checkpoint_seconds=INTERVAL)
            model.fit(case.X) if case.y is None else model.fit(case.X, case.y)
        found = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
        status = model.status_ if isinstance(model.status_, list) else [model.status_]
    return {
        "converged": [one.converged for one in status],
        "intervals": [(one.dual, one.primal) for one in found],
        "iterations": int(np.sum(model.n_iter_)),
    }


def _train(case: Case, folder: Path, checkpoint: bool) -> Any:
    """Run ``maxmargin train`` in this process; return the model that it wrote."""
    from maxmargin import load
    from maxmargin.cli.main import main

    data, written = folder / "data.npz", folder / "model.maxmargin"
    if not data.exists():
        np.savez(folder / "data.part.npz", X=case.X, y=case.y)
        os.replace(folder / "data.part.npz", data)
    words = ["train", str(data), str(written), "--quiet", "-C", str(case.model.C), "--tol", str(case.model.tol)]
    words += ["--estimator", "svc", "-g", str(case.model.gamma)] if isinstance(case.model, SVC) else []
    words += ["--estimator", "linear-svc", "--solver", "dual_coordinate_ascent"] if len(words) == 8 else []
    if checkpoint:
        words += ["--checkpoint", str(folder / "fit.checkpoint"), "--checkpoint-seconds", str(INTERVAL)]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        code = main(words)
    if code:
        raise RuntimeError(f"maxmargin {' '.join(words)} ended with code {code}")
    return load(written)


def in_child(task: Callable[[], Any], result: Path) -> int:
    """Start a process that writes what `task` returns to a file, as JSON; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        outcome = task()
        result.write_text(json.dumps(outcome), encoding="utf-8")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def finished(child: int) -> int:
    """Wait for a process; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Killing(NamedTuple):
    """What one kill has left."""

    in_write: bool
    lost: float | None
    problems: int
    done: int


class Killer:
    """Kills and resumes the fits of one case in one folder."""

    def __init__(self, name: str, case: Case, folder: Path, rng: random.Random) -> None:
        self.name, self.case, self.folder, self.rng = name, case, folder, rng
        self.file, self.result = folder / "fit.checkpoint", folder / "result.json"
        began = time.perf_counter()
        code = finished(in_child(lambda: fit(case, folder, checkpoint=False), self.result))
        self.seconds = time.perf_counter() - began
        if code:
            raise RuntimeError(f"{name}: the fit without a checkpoint ended with code {code}")
        self.reference = json.loads(self.result.read_text(encoding="utf-8"))
        self.failures: list[str] = []

    def kill(self) -> Killing | None:
        """Start the fit, or resume it, and kill it; None if it ended before."""
        began, left = time.time(), self.rng.uniform(0.0, self.seconds)
        child = in_child(lambda: fit(self.case, self.folder, checkpoint=True), self.result)
        in_write = self.rng.random() < KILLS_IN_WRITES
        wanted = time.perf_counter() + left
        while time.perf_counter() < wanted or (in_write and not temporary_of(self.file).exists()):
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                code = finished(child)
                if code:
                    self.failures.append(f"{self.name}: a fit that was not killed ended with code {code}")
                self.seconds = min(self.seconds, 0.9 * (time.time() - began))  # a busy machine makes it longer
                return None
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
        finished(child)
        killed = time.time()
        return self._look(in_write and temporary_of(self.file).exists(), killed, began)

    def _look(self, in_write: bool, killed: float, began: float) -> Killing:
        """Return what the checkpoint has after a kill."""
        try:
            state = read_checkpoint(self.file)
        except CheckpointError as error:
            self.failures.append(f"{self.name}: {error}")
            state = None
        if state is None:
            return Killing(in_write, None, 0, 0)
        written = self.file.stat().st_mtime
        lost = killed - max(began, written)
        if lost > INTERVAL + ALLOWANCE:
            self.failures.append(f"{self.name}: {lost:.2f} s were lost")
        done = sum(problem.finished is not None for problem in state.problems.values())
        return Killing(in_write, lost if written >= began else None, len(state.problems), done)

    def finish(self) -> int:
        """Resume the fit to its end and check the result; return its iterations of all runs."""
        code = finished(in_child(lambda: fit(self.case, self.folder, checkpoint=True), self.result))
        if code:
            self.failures.append(f"{self.name}: the resumed fit ended with code {code}")
            return 0
        return self.check()

    def check(self) -> int:
        """Compare the result with that of the fit without interruptions, and look for files that were left."""
        found = json.loads(self.result.read_text(encoding="utf-8"))
        if not all(found["converged"]):
            self.failures.append(f"{self.name}: the resumed fit has not converged")
        same = not isinstance(self.case.model, KernelApproximationSVC)  # which has drawn other landmarks
        for one, other in zip(found["intervals"], self.reference["intervals"], strict=True):
            rounding = 1e-9 * max(map(abs, other))
            if same and max(one[0], other[0]) > min(one[1], other[1]) + rounding:
                self.failures.append(f"{self.name}: resumed {one}, without interruptions {other}")
        expected = {"result.json", *(("data.npz", "model.maxmargin") if self.case.is_command else ())}
        left = {path.name for path in self.folder.iterdir()} - expected
        if left:
            self.failures.append(f"{self.name}: these files were left: {', '.join(sorted(left))}")
        return int(found["iterations"])


def run(chosen: dict[str, Case], kills: int, seed: int) -> Iterator[tuple[Killer, list[Killing], int]]:
    """Kill the cases in turn, up to three times before each end; yield the kills, and the iterations of all runs."""
    rng, killers = random.Random(seed), {}
    names = rng.sample(list(chosen), len(chosen))
    with tempfile.TemporaryDirectory() as place:
        for turn in itertools.count():
            if kills <= 0:
                return
            name = names[turn % len(names)]
            if name not in killers:
                folder = Path(place, str(turn))
                folder.mkdir()
                killers[name] = Killer(name, chosen[name], folder, rng)
            killer, done = killers[name], []
            for _ in range(rng.randint(1, min(3, kills))):
                if (killing := killer.kill()) is None:
                    break
                done.append(killing)
            kills -= len(done)
            yield killer, done, killer.check() if killing is None else killer.finish()


def main(words: list[str]) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill_and_resume", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="how many processes are killed [200]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the times [0]")
    parser.add_argument("--case", action="append", choices=list(cases()), metavar="NAME", help="only this one")
    options = parser.parse_args(words)
    known = cases()
    chosen = known if options.case is None else {name: known[name] for name in options.case}
    killings: list[Killing] = []
    failures: list[str] = []
    for killer, done, iterations in run(chosen, options.kills, options.seed):
        killings += done
        lost = ", ".join("no checkpoint yet" if one.lost is None else f"{one.lost:.2f} s" for one in done)
        print(
            f"{killer.name}: killed {len(done)} times (lost {lost or 'nothing'}); {iterations:,} iterations, "
            f"{killer.reference['iterations']:,} without interruptions",
            flush=True,
        )
        failures += killer.failures
        killer.failures = []
    lost_seconds = sorted(one.lost for one in killings if one.lost is not None)
    print(
        f"{len(killings)} kills, {sum(one.in_write for one in killings)} of them while the file was written, "
        f"{len(killings) - len(lost_seconds)} before the first checkpoint of a run; "
        f"{sum(one.done for one in killings)} finished problems were not solved again"
    )
    if lost_seconds:
        middle = lost_seconds[len(lost_seconds) // 2]
        print(f"lost: median {middle:.2f} s, most {lost_seconds[-1]:.2f} s (interval {INTERVAL} s)")
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
