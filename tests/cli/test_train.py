"""`maxmargin train`: estimators and options, limits and Ctrl-C, resuming, error messages, terminal output."""

import json
import os
import re
import shlex
from argparse import ArgumentTypeError
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cli.terminal import Terminal, call
from maxmargin import LSSVC, SVC, NuSVC, load
from maxmargin.cli.estimator_options import ESTIMATORS, kernel_family
from maxmargin.cli.main import main
from maxmargin.datasets import chessboard
from maxmargin.interchange import read_notes

SAMPLES = 240


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data for every task, in the current folder."""
    random = np.random.default_rng(0)
    X = random.normal(size=(SAMPLES, 3))
    values = X[:, 0] + np.sin(3 * X[:, 1])
    np.savez(tmp_path / "three.npz", X=X, y=np.digitize(values + 0.5 * random.normal(size=SAMPLES), [-1, 1]))
    np.savez(tmp_path / "values.npz", X=X, y=values + 0.1 * random.normal(size=SAMPLES))
    np.savez(tmp_path / "orders.npz", X=X[:40], y=values[:40], query=np.arange(40) // 10)
    board, colours = chessboard(SAMPLES, noise=0.1)
    words = np.array(["black", "white"])[colours]
    lines = [f"{a},{b},{word}\n" for (a, b), word in zip(board.tolist(), words, strict=True)]
    (tmp_path / "board.csv").write_text("left,up,colour\n" + "".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    """Run the command in this process; return its exit code and what it printed."""
    code = main(["train", *map(str, words)])
    return code, *capsys.readouterr()


def train_json(capsys, *words, code=0):
    """Run the command and return its JSON result."""
    exit_code, out, err = run(capsys, *words, "--json")
    assert exit_code == code, err
    return json.loads(out)


def data_for(estimator):
    return {"regression": "values.npz", "ranking": "orders.npz"}.get(ESTIMATORS[estimator].task, "three.npz")


class TestModels:
    def test_model_equals_that_of_the_estimator(self, folder, capsys):
        found = train_json(capsys, "board.csv", "m", "-C", 10, "-g", 1, "--scaling", "none")
        model = load("m")[-1]
        X, y = chessboard(SAMPLES, noise=0.1)
        expected = SVC(C=10, gamma=1, callback=lambda _: None).fit(X, np.array(["black", "white"])[y])
        np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
        assert found["dual"] == expected.certificate_.dual
        assert found["violation"] == expected.certificate_.violation <= 1e-3
        assert found["support_vectors"] == len(expected.support_)
        assert (found["free"], found["bounded"]) == (
            len(expected.geometry_.free),
            len(expected.geometry_.bounded),
        )
        assert found["status"] == "finished"
        assert found["resume"] is None
        assert list(model.classes_) == ["black", "white"]
        assert model.callback is None

    def test_plain_lines_without_a_terminal(self, folder, capsys):
        code, out, err = run(capsys, "board.csv", "-C", 10, "-g", 1)
        assert code == 0
        facts = dict(line.split("\t") for line in out.splitlines())
        assert facts["data"] == "board.csv: 240 samples, 2 features"
        assert (facts["estimator"], facts["kernel"], facts["parameters"]) == (
            "SVC",
            "Gaussian(gamma=1.0)",
            "C 10, gamma 1",
        )
        assert re.fullmatch(r"\d+ \(\d+ free, \d+ bounded\)", facts["support vectors"])
        assert "relative gap" in facts["duality gap"]
        assert facts["model"].startswith("board.csv.maxmargin (")
        assert err.splitlines()[-2:] == [
            "numbers are scaled to mean 0 and standard deviation 1",
            "2 classes: using svc; --estimator selects another one",
        ]
        assert run(capsys, "board.csv", "-q")[2] == ""

    def test_notes_describe_the_training_data(self, folder, capsys):
        train_json(capsys, folder / "board.csv", "m.maxmargin")
        notes = read_notes("m.maxmargin")
        assert (notes["data"], notes["rows"], notes["columns"]) == ("board.csv", SAMPLES, 2)

    @pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if not name.startswith("mkl-")])
    def test_every_estimator_resumes_after_a_limit(self, estimator, folder, capsys):
        where = [data_for(estimator), "m.maxmargin"]
        starts_anew = estimator in ("approximate-svc", "transductive-svc")
        limit = ["--max-seconds", 0] if starts_anew else ["--max-iter", 1]
        tol = ["--tol", 1e-5]
        limited = train_json(
            capsys, *where, "--estimator", estimator, *tol, *limit, code=0 if estimator.startswith("ls-") else 3
        )
        load("m.maxmargin").predict(np.zeros((2, 3)))
        if starts_anew:
            code, _, err = run(capsys, *where, "--resume")
            assert code == 1
            assert "cannot resume a training" in err
            return
        resumed = train_json(capsys, *where, "--resume")
        whole = train_json(capsys, where[0], "whole.maxmargin", "--estimator", estimator, *tol)
        assert resumed["status"] == whole["status"] == "finished"
        assert resumed["estimator"] == ESTIMATORS[estimator].class_name
        assert limited["gap"] >= resumed["gap"] or limited["status"] == "finished"
        assert abs(resumed["primal"] - whole["primal"]) <= 1e-4 * (abs(whole["primal"]) + 1e-4)
        assert load("m.maxmargin").get_params() == load("whole.maxmargin").get_params()

    def test_data_from_standard_input(self, folder):
        text = "1 1:0.5\n-1 1:-0.5\n1 1:0.7\n-1 1:-0.2\n"
        done = call("train", "-", "--json", input=text)
        assert json.loads(done.stdout)["data"]["rows"] == 4
        assert load("model.maxmargin").n_features_in_ == 1


class TestChoice:
    def test_default_estimator_depends_on_the_labels(self, folder, capsys):
        assert train_json(capsys, "board.csv")["estimator"] == "SVC"
        assert train_json(capsys, "three.npz")["estimator"] == "SVC"
        assert train_json(capsys, "values.npz")["estimator"] == "SVR"
        assert "svr" in run(capsys, "values.npz")[2]

    def test_a_time_limit_leaves_no_time_for_the_certificate(self, folder, capsys):
        facts = train_json(capsys, "chessboard:20000", "m.maxmargin", "-C", 100, "--max-seconds", 0.05, code=3)
        assert facts["certificate"].startswith("not computed")
        assert "max_seconds" in facts["stopping_reason"]
        assert "gap" not in facts
        assert load("m.maxmargin").predict(np.zeros((2, 2))).shape == (2,)

    def test_precomputed_kernels(self, folder, capsys):
        kernel = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]])
        np.savez(folder / "kernel.npz", X=kernel, y=np.array([1, -1, 1]))
        assert train_json(capsys, "kernel.npz", "--kernel", "precomputed")["status"] == "finished"
        lines = "1 0:1 1:1 2:0.5 3:0.1\n-1 0:2 1:0.5 2:1 3:0.3\n1 0:3 1:0.1 2:0.3 3:1\n"
        (folder / "kernel.txt").write_text(lines, encoding="utf-8")
        code, _, errors = run(capsys, "kernel.txt", "--kernel", "precomputed")
        assert code == 1
        assert "kernel.txt: a precomputed kernel is a dense square table" in errors

    def test_options_of_the_estimator(self, folder, capsys):
        train_json(
            capsys, "three.npz", "m", "--kernel", "poly", "--degree", 2, "--coef0", 1, "-C", 3, "--gamma", "auto",
            "--tol", "1e-4", "--gap", 0.5, "--solver", "pairwise", "--multi-class", "ovr",
            "--class-weight", "0=2,2=0.5", "--max-iter", 10**6,
            "--max-seconds", 60, "--memory", 8, "--threads", 1, "--no-intercept", "--seed", 3,
        )  # fmt: skip
        expected = {
            "kernel": "poly", "degree": 2, "coef0": 1.0, "C": 3.0, "gamma": "auto", "tol": 1e-4, "gap_tol": 0.5,
            "solver": "pairwise", "multi_class": "ovr", "class_weight": {0.0: 2.0, 2.0: 0.5}, "max_iter": 10**6,
            "max_seconds": 60.0, "cache_size": 8.0, "n_jobs": 1, "fit_intercept": False, "random_state": 3,
        }  # fmt: skip
        parameters = load("m").get_params()
        assert {name: parameters[name] for name in expected} == expected

    def test_class_weights_of_text_labels(self, folder, capsys):
        train_json(capsys, "board.csv", "m", "--class-weight", "black=3")
        assert list(load("m")[-1].class_weight_) == [3.0, 1.0]
        train_json(capsys, "board.csv", "m", "--class-weight", "balanced", "--estimator", "linear-svc", "--probability")
        assert load("m")[-1].class_weight == "balanced"
        assert load("m").predict_proba([[0.0, 0.0]]).shape == (1, 2)

    def test_zeros_of_svmlight_are_no_labels(self, folder, capsys):
        X, y = chessboard(60, noise=0.0)
        signs = np.where(np.arange(60) % 3, 0, 2 * y - 1)
        lines = [f"{sign} 1:{a} 2:{b}\n" for sign, (a, b) in zip(signs, X.tolist(), strict=True)]
        (folder / "partly.svm").write_text("".join(lines), encoding="utf-8")
        options = ["--estimator", "transductive-svc", "--positive-fraction", 0.25, "--unlabelled-cost", 0.5]
        found = train_json(capsys, "partly.svm", "m", *options)
        model = load("m")
        assert model.classes_.tolist() == [-1, 1]
        assert (model.transduction_[signs == 0] == 1).sum() == 10
        assert (model.C_unlabeled, model.unlabeled_label) == (0.5, 0)
        assert found["status"] == "finished"
        assert model.status_.name == "STATIONARY"
        train_json(capsys, "partly.svm", "three", *options[:2], "--unlabelled", 7)
        assert load("three").classes_.tolist() == [-1, 0, 1]

    def test_noise_model_of_a_regression(self, folder, capsys):
        train_json(capsys, "values.npz", "m", "--probability")
        assert load("m").predict_interval(np.zeros((1, 3))).shape == (1, 2)


class TestResume:
    def test_training_starts_from_the_dual_variables(self, folder, capsys):
        train_json(capsys, "board.csv", "m", "-C", 100, "-g", 1)
        before = load("m")[-1]
        train_json(capsys, "board.csv", "m", "--resume")
        after = load("m")[-1]
        assert before.n_iter_[0] > 20
        assert after.n_iter_[0] == 0
        np.testing.assert_array_equal(before.dual_coef_, after.dual_coef_)
        assert not after.warm_start

    def test_warm_start_with_other_parameters(self, folder, capsys):
        train_json(capsys, "board.csv", "m", "-C", 100, "-g", 1)
        train_json(capsys, "board.csv", "m", "--resume", "-C", 110)
        model = load("m")[-1]
        assert (model.C, model.gamma) == (110.0, 1.0)
        train_json(capsys, "board.csv", "whole", "-C", 110, "-g", 1)
        assert model.n_iter_[0] < load("whole")[-1].n_iter_[0]

    def test_limits_are_not_kept_in_the_model(self, folder, capsys):
        found = train_json(capsys, "board.csv", "m", "-C", 100, "--max-iter", 5, code=3)
        assert found["status"] == "limited"
        assert shlex.split(found["resume"]) == [
            "maxmargin", "train", "board.csv", "m", "-C", "100", "--max-iter", "5", "--json", "--resume",
        ]  # fmt: skip
        assert train_json(capsys, *shlex.split(found["resume"])[2:-2], "--resume", code=3)["status"] == "limited"
        assert train_json(capsys, "board.csv", "m", "--resume")["status"] == "finished"

    def test_seconds_of_all_runs_are_added(self, folder, capsys):
        train_json(capsys, "board.csv", "m", "-C", 100, "--max-iter", 5, code=3)
        first = read_notes("m")["seconds"]
        train_json(capsys, "board.csv", "m", "--resume")
        assert read_notes("m")["seconds"] > first

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["three.npz", "none"], "there is no file none to resume from"),
            (["three.npz", "m"], r"m was not trained on these data (board.csv, 240 x 2; here 240 x 3)"),
            (["other.csv", "m"], "m was not trained on these data"),
            (["board.csv", "m", "--estimator", "nu-svc"], "m is a model of svc"),
            (["board.csv", "foreign"], "foreign was not trained on these data (unknown data"),
            (["board.csv", "board.csv"], "board.csv is not in the format of maxmargin"),
        ],
    )
    def test_models_that_cannot_be_resumed(self, words, message, folder, capsys):
        train_json(capsys, "board.csv", "m")
        text = (folder / "board.csv").read_text(encoding="utf-8")
        (folder / "other.csv").write_text(text.replace("black", "white", 1), encoding="utf-8")
        from maxmargin import save

        save(SVC().fit([[0.0, 0.0], [1.0, 1.0]], ["black", "white"]), "foreign")
        code, out, err = run(capsys, *words, "--resume", "-q")
        assert (code, out) == (1, "")
        assert message in err
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "there is no file nowhere"),
        (["board.csv", "no/such/folder/m"], "there is no folder no/such/folder"),
        (
            ["board.csv", "--estimator", "linear-svc", "--gamma", "1"],
            "linear-svc has no --gamma; estimators that have it",
        ),
        (["board.csv", "--nu", "0.1"], "svc has no --nu; estimators that have it: nu-svc"),
        (["board.csv", "--estimator", "svr"], "the labels of board.csv are text, and svr needs numbers"),
        (["board.csv", "-C", "0"], "C must be a number above 0"),
        (["board.csv", "-g", "wide"], "gamma must be"),
        (["board.csv", "--kernel", "rfb"], "unknown kernel 'rfb'"),
        (["board.csv", "--threads", "0"], "--threads must not be 0"),
        (["board.csv", "--class-weight", "black"], "LABEL=NUMBER"),
        (["board.csv", "--class-weight", "black=much"], "LABEL=NUMBER"),
        (["board.csv", "--class-weight", "red=2"], "red is not a label"),
        (["same.npz"], "all labels are equal"),
        (["board.csv", "--label", "none", "--ignore", "colour"], "there are no labels"),
    ],
)
def test_errors_are_one_line(words, message, folder, capsys):
    np.savez("same.npz", X=np.eye(3), y=np.ones(3))
    code, out, err = run(capsys, *words, "-q")
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not list(folder.glob("*.maxmargin"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("three.npz", "--estimator mkl-svc --kernels linear rbf:gamma=0.1,1 rbf:features=each -C 10 --multi-class ovr"),
        ("three.npz", "--estimator mkl-svc --kernels poly:degree=1,2:coef0=1 rbf:features=0,2 --norm 2"),
        ("values.npz", "--estimator mkl-svr --kernels linear rbf:gamma=0.1,1"),
        ("values.npz", "--estimator mkl-one-class --norm 2 --nu 0.2"),
    ],
)
def test_weights_of_kernels(data, words, folder, capsys):
    code, _, errors = run(capsys, data, "m.maxmargin", *words.split())
    assert code == 0, errors
    model = load("m.maxmargin")
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    assert model.certificate_.relative_gap <= 1e-3


def test_families_of_kernels_are_checked():
    assert kernel_family("poly:degree=1,2:coef0=1") == {"kernel": "poly", "degree": [1, 2], "coef0": [1.0]}
    assert kernel_family("rbf:features=each") == {"kernel": "rbf", "features": "each"}
    with pytest.raises(ArgumentTypeError, match="NAME:PARAMETER=VALUE"):
        kernel_family("rbf:gamma")


def test_overflow_of_the_kernel_is_one_line(folder, capsys):
    (folder / "huge.txt").write_text("1 1:1e308\n-1 1:1e308\n1 1:1e307\n", encoding="utf-8")
    code, _, err = run(capsys, "huge.txt", "-q")
    assert code == 1
    assert "not finite" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("target", "message"), [(".", "it is a folder"), ("board.csv", "is the data file")])
def test_unwritable_model_is_reported_before_training(target, message, folder, capsys, monkeypatch):
    monkeypatch.setattr(SVC, "fit", None)
    before = (folder / "board.csv").read_bytes()
    code, _, err = run(capsys, "board.csv", target)
    assert code == 1
    assert message in err
    assert (folder / "board.csv").read_bytes() == before


def test_model_can_be_written_to_a_pipe(folder, capsys):
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        content = reader.submit((folder / "pipe").read_bytes)
        assert run(capsys, "board.csv", "pipe")[0] == 0
        (folder / "copy").write_bytes(content.result(timeout=60))
    assert (folder / "pipe").is_fifo()
    assert list(load("copy").classes_) == ["black", "white"]


class TestCtrlC:
    def test_before_the_first_solution(self, folder, capsys, monkeypatch):
        def fit(self, X, y):
            raise KeyboardInterrupt

        monkeypatch.setattr(SVC, "fit", fit)
        code, out, err = run(capsys, "board.csv", "-q")
        assert (code, out, err) == (130, "", "interrupted\n")
        assert not list(folder.glob("*.maxmargin"))

    @pytest.mark.parametrize(("estimator", "kind"), [("svc", SVC), ("nu-svc", NuSVC), ("ls-svc", LSSVC)])
    def test_unfinished_model_is_written(self, estimator, kind, folder, capsys, monkeypatch):
        fit = kind.fit

        def interrupted(self, X, y):
            fit(self, X, y)
            raise KeyboardInterrupt

        monkeypatch.setattr(kind, "fit", interrupted)
        found = train_json(capsys, "three.npz", "m", "--estimator", estimator, code=130)
        assert found["status"] == "interrupted"
        assert found["resume"].endswith("--resume")
        assert load("m").predict(np.zeros((1, 3))).shape == (1,)

    def test_second_ctrl_c_while_the_model_is_written(self, folder, capsys, monkeypatch):
        def save(model, file, notes):
            raise KeyboardInterrupt

        monkeypatch.setattr("maxmargin.interchange.save", save)
        code, out, err = run(capsys, "board.csv", "m")
        assert (code, out) == (130, "")
        assert "interrupted: m was not written" in err

    def test_ctrl_c_on_a_terminal(self, folder):
        random = np.random.default_rng(0)
        np.savez("noise.npz", X=random.normal(size=(10000, 4)), y=random.integers(0, 2, 10000))  # a minute
        words = ["train", "noise.npz", "-C", "1e6", "-g", "5", "--tol", "1e-12", "--solver", "pairwise"]
        terminal = Terminal(*words, columns=80)
        terminal.read(until=r"left: ")
        terminal.press(b"\x03")
        written = terminal.read()
        assert terminal.code() == 130
        assert re.search(r"training ━.*[━╸╺] violation \d\.\de[+-]\d\d  gap \d\.\de[+-]\d\d  0:0\d, left: \w+", written)
        assert re.search(r"duality gap +\S+ \(relative gap \S+\)", written)
        assert "interrupted: the unfinished model was written" in written
        assert f"to resume:  maxmargin {shlex.join(words)} --resume" in written
        assert "Traceback" not in written
        drawn = re.split(r"\r|\n|\^C", written)  # the terminal echoes the key
        assert max(len(line) for line in drawn if line.startswith("training ━")) <= 80
        assert not load("noise.npz.maxmargin").status_.converged
        done = call(*words, "--resume", "--tol", "0.5", "--json")
        assert json.loads(done.stdout)["violation"] <= 0.5


def test_table_on_a_terminal(folder):
    terminal = Terminal("train", "board.csv", "-C", 10)
    written = terminal.read()
    assert terminal.code() == 0
    assert re.search(r"support vectors +\d+ \(\d+ free, \d+ bounded\) *\r\n", written)
    assert "training ━" not in written  # the fit was too short for a progress bar


class TestCheckpoints:
    """``train --checkpoint``; kills are in ``tests/kill_and_resume.py``."""

    WORDS = ("chessboard:3000,noise=0.1", "m.maxmargin", "-C", 100, "-g", 20, "--checkpoint", "fit.checkpoint")

    def test_a_finished_training_leaves_only_the_model(self, folder, capsys):
        train_json(capsys, *self.WORDS, "--checkpoint-seconds", 0)
        assert not (folder / "fit.checkpoint").exists()
        model = load("m.maxmargin")
        assert model.checkpoint is None
        assert model.checkpoint_seconds == 60.0

    def test_the_same_command_resumes_after_a_limit(self, folder, capsys):
        limited = train_json(capsys, *self.WORDS, "--max-iter", 1000, code=3)
        assert limited["resume"].endswith("--checkpoint fit.checkpoint --max-iter 1000 --json")
        assert "--resume" not in limited["resume"]
        code, _, err = run(capsys, *self.WORDS)
        assert code == 0
        assert "resuming from fit.checkpoint" in err
        assert not (folder / "fit.checkpoint").exists()
        whole = train_json(capsys, *self.WORDS[:-2])
        assert load("m.maxmargin").certificate_.dual <= whole["primal"]

    def test_the_checkpoint_is_kept_until_the_model_is_written(self, folder, capsys, monkeypatch):
        def fail(*about):
            raise OSError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr("maxmargin.interchange.model_file.write_atomically", fail)
            code, _, err = run(capsys, *self.WORDS)
        assert code == 1
        assert "the disk is full" in err
        assert (folder / "fit.checkpoint").exists()
        train_json(capsys, *self.WORDS)
        assert not (folder / "fit.checkpoint").exists()

    def test_a_checkpoint_of_other_parameters_or_data_is_refused(self, folder, capsys):
        train_json(capsys, *self.WORDS, "--max-iter", 1000, code=3)
        before = (folder / "fit.checkpoint").read_bytes()
        code, _, err = run(capsys, *self.WORDS, "-C", 10)
        assert code == 1
        assert "fit.checkpoint was written for C=100, this fit has C=10" in " ".join(err.split())
        code, _, err = run(capsys, "chessboard:2999,noise=0.1", *self.WORDS[1:])
        assert code == 1
        assert "was written for other data" in " ".join(err.split())
        assert (folder / "fit.checkpoint").read_bytes() == before

    @pytest.mark.parametrize(("name", "reason"), [("m.maxmargin", "both the model"), ("a/b", "does not exist")])
    def test_names(self, name, reason, folder, capsys):
        code, _, err = run(capsys, *self.WORDS[:-1], name)
        assert code == 1
        assert reason in " ".join(err.split())


def test_slow_convergence_is_a_limit_that_was_reached(folder, capsys):
    random = np.random.default_rng(0)
    np.savez(folder / "unscaled.npz", X=1e4 * random.normal(size=(15, 4)), y=random.permutation(np.arange(15) % 2))
    words = ("unscaled.npz", "slow.model", "--kernel", "linear", "-C", "1e8", "--solver", "platt")
    code, printed, _ = run(capsys, *words)
    assert code == 3
    assert "converges too slowly" in printed
    assert (folder / "slow.model").exists()


def test_estimates_of_the_error(folder, capsys):
    code, out, _ = run(capsys, "board.csv", "--estimates", "--leave-one-out", "--json")
    found = json.loads(out)
    assert code == 0
    by = {name: found[f"error_by_{name}"] for name in ("support_vectors", "xi_alpha", "span", "leave_one_out")}
    assert by["leave_one_out"] <= by["xi_alpha"] <= by["support_vectors"]
    assert found["recall_by_xi_alpha"] <= 1
    code, out, _ = run(capsys, "values.npz", "--estimator", "svr", "--estimates")
    assert "squared error by span" in out
    assert "leave-one-out" not in out


def test_estimates_are_refused_before_the_training(folder, capsys):
    code, _, err = run(capsys, "board.csv", "--estimator", "linear-svc", "--estimates")
    assert code != 0
    assert "maxmargin evaluate" in err


def test_a_gamma_for_each_feature(folder, capsys):
    (folder / "gammas.txt").write_text("2.0\n0.5\n0\n", encoding="utf-8")
    for k, words in enumerate(("2.0,0.5,0", "gammas.txt")):
        train_json(capsys, "three.npz", f"{k}.maxmargin", "--gamma", words)
        np.testing.assert_array_equal(load(f"{k}.maxmargin").gamma, [2.0, 0.5, 0.0])
    code, _, err = run(capsys, "three.npz", "other.maxmargin", "--gamma", "1,2")
    assert code != 0
    assert "gamma has 2 values, one for each feature, but X has 3 features" in err
    with pytest.raises(SystemExit):
        main(["train", "three.npz", "--gamma", "1,wide"])
    assert "not numbers separated by commas" in capsys.readouterr().err
