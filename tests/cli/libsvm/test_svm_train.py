"""`maxmargin svm-train` and `svm-predict` compared with LIBSVM's: objectives, model files, output, errors."""

import numpy as np
import pytest
from libsvm.svmutil import svm_read_problem, svm_save_model, svm_train
from threadpoolctl import threadpool_limits

from maxmargin.datasets import load_libsvm
from reference import libsvm
from reference.libsvm_programs import final_lines, numbers_of, ours, real, shape_of, write_data

DATA = {0: "iris", 1: "iris", 2: "board", 3: "targets", 4: "targets"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(text):
    return text.split()


def rows(data, zero_based=False):
    return load_libsvm(data, zero_based=zero_based)[0].toarray()


def decide(data, model):
    """Answers and decision values of LIBSVM with a model file, for every third sample."""
    kernel_values = data in ("kernel", "part")
    X = rows(data, zero_based=kernel_values)[::3, int(kernel_values) :]
    return libsvm.decide(libsvm.load(model), X, kernel_values)


class TestAgainstLibsvm:
    """The official package, version 3.37 or what is installed: never skipped."""

    @pytest.mark.parametrize("machine", range(5))
    @pytest.mark.parametrize("kernel", ["-t 0", "-t 1 -r 1 -g 0.5 -d 2", "-t 2", "-t 3 -g 0.01", "-t 4"])
    def test_objective_and_model(self, machine, kernel, folder, capfd):
        data = DATA[machine] if kernel != "-t 4" else "kernel"
        # Of the sigmoid, which is no inner product, these are problems with one optimum.
        options = f"-s {machine} {kernel} -n 0.3 -e 1e-5" + " -r 0.5" * (machine == 2 and "-t 3" in kernel)
        code, out, err = ours(capfd, "svm-train", *words(options), data, "ours")
        assert (code, err) == (0, "")
        y, x = svm_read_problem(data)
        with threadpool_limits(1):
            svm_save_model("theirs", svm_train(y, x, options))
        theirs = final_lines(capfd.readouterr().out)
        lines = final_lines(out)
        assert list(map(shape_of, lines)) == list(map(shape_of, theirs))
        # What a ν-classifier says is divided by a margin that is known to the tolerance only.
        close = {"rel": 0.02 if machine == 1 else 1e-4, "abs": 1e-5}
        for mine, other in zip(lines, theirs, strict=True):
            if mine.startswith(("nu =", "C =", "epsilon =", "obj =")):
                # rho stands on the line of obj; where no vector is free, it may be anything in an interval
                assert numbers_of(mine)[0] == pytest.approx(numbers_of(other)[0], **close)
        for model in ("ours", "theirs"):
            assert ours(capfd, "svm-predict", data, model, "out")[0] == 0
            expected, values = decide(data, model)
            clear = np.abs(values).min(axis=1) > 1e-6 if machine < 3 else np.ones(len(values), dtype=bool)
            np.testing.assert_allclose(np.loadtxt("out")[::3][clear], expected[clear], rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("options", ["-c 10", "-s 1 -n 0.1", "-c 5 -t 0", "-c 10 -w3 4"])
    @pytest.mark.parametrize("data", ["iris", "overlap"])
    def test_probabilities(self, options, data, folder, capsys):
        assert ours(capsys, "svm-train", *words(options), "-b", 1, "-q", data, "model")[0] == 0
        assert ours(capsys, "svm-predict", "-b", 1, data, "model", "out")[0] == 0
        model = libsvm.load("model")
        probabilities = libsvm.probabilities(model, rows(data))
        first, *lines = (folder / "out").read_text().splitlines()
        assert first == f"labels {' '.join(map(str, model.get_labels()))}"
        found = np.array([numbers_of(line) for line in lines])
        np.testing.assert_allclose(found[:, 1:], probabilities, rtol=1e-4, atol=1e-5)
        most_probable = np.array(model.get_labels())[np.argmax(probabilities, axis=1)]
        assert (found[:, 0] == most_probable).all()

    def test_noise_of_a_regression_and_density_of_one_class(self, folder, capsys):
        _, out, _ = ours(capsys, "svm-train", "-s", 3, "-b", 1, "targets", "model")
        assert "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= " in out
        _, out, _ = ours(capsys, "svm-predict", "-b", 1, "targets", "model", "out")
        assert "(2sigma),sigma=0." in out
        assert libsvm.load("model").get_svr_probability() == pytest.approx(numbers_of(out.splitlines()[1])[-1], 1e-5)
        assert ours(capsys, "svm-train", "-s", 2, "-b", 1, "-q", "board", "model")[0] == 0
        assert ours(capsys, "svm-predict", "-b", 1, "-q", "board", "model", "out")[0] == 0
        values = libsvm.probabilities(libsvm.load("model"), rows("board"))
        text = (folder / "out").read_text().splitlines()
        assert text[0] == "label normal outlier"
        found = np.array([numbers_of(line)[1:] for line in text[1:]])
        assert np.isclose(found, values, atol=1e-5).all(axis=1).mean() > 0.97  # but for samples on a mark

    def test_labels_are_in_the_order_of_libsvm(self, folder, capsys):
        for data, expected in (("iris", None), ("overlap", [1, -1]), ("board", [1, -1])):
            assert ours(capsys, "svm-train", "-q", data, "model")[0] == 0
            theirs = libsvm.train(rows(data), load_libsvm(data)[1].tolist(), "")
            loaded = libsvm.load("model")
            assert loaded.get_labels() == theirs.get_labels()
            assert expected in (None, theirs.get_labels())
            assert loaded.get_nr_sv() == theirs.get_nr_sv()

    def test_indices_from_zero_and_subset_of_a_precomputed_kernel(self, folder, capsys):
        lines = (folder / "iris").read_text().splitlines()
        shifted = [line.replace(" 1:", " 0:").replace(" 2:", " 1:").replace(" 3:", " 2:").replace(" 4:", " 3:")
                   for line in lines]  # fmt: skip
        (folder / "zero").write_text("\n".join([*shifted, ""]))
        for data, options in (("zero", "-e 1e-5"), ("part", "-t 4 -c 0.01 -e 1e-5")):
            assert ours(capsys, "svm-train", "-q", *words(options), data, "ours")[0] == 0
            assert real("svm-train", "-q", *words(options), data, "theirs", folder=folder)[0] == 0
            for model in ("ours", "theirs"):
                theirs = real("svm-predict", data, model, "a", folder=folder)
                assert ours(capsys, "svm-predict", data, model, "b") == theirs
                assert (folder / "a").read_text() == (folder / "b").read_text()
        # Samples with an index 0, and a model without: the feature counts in distances.
        assert ours(capsys, "svm-train", "-q", "iris", "model")[0] == 0
        assert real("svm-predict", "-q", "zero", "model", "a", folder=folder)[0] == 0
        assert ours(capsys, "svm-predict", "-q", "zero", "model", "b")[0] == 0
        assert (folder / "a").read_text() == (folder / "b").read_text()


class TestOutput:
    """The output of both programs is compared."""

    @pytest.mark.parametrize(
        "options", ["", "-s 1 -n 0.2", "-s 2", "-s 3", "-s 4", "-w1 5 -w9 2", "-v 3", "-c 100 -g 0.5 -h 0 -m 10", "-q"]
    )
    @pytest.mark.parametrize("data", ["iris", "overlap"])
    def test_training(self, options, data, folder, capsys):
        code, out, err = real("svm-train", *words(options), data, "theirs", folder=folder)
        own_code, own_out, own_err = ours(capsys, "svm-train", *words(options), data, "ours")
        assert (own_code, own_err) == (code, err)
        assert list(map(shape_of, final_lines(own_out))) == list(map(shape_of, final_lines(out)))
        if "-v" in options:
            return
        headers = [(folder / name).read_text().split("\nSV\n")[0].splitlines() for name in ("ours", "theirs")]
        for mine, other in zip(*headers, strict=True):
            if mine.startswith(("total_sv", "nr_sv", "rho")):  # known to the tolerance only
                assert shape_of(mine) == shape_of(other)
            else:
                assert mine == other

    @pytest.mark.parametrize("data", ["iris", "overlap", "targets"])
    def test_prediction(self, data, folder, capsys):
        machine = 3 if data == "targets" else 0
        for options in ("", "-b 1", "-q"):
            real("svm-train", "-s", machine, "-b", 1, "-q", data, "model", folder=folder)
            theirs = real("svm-predict", *words(options), data, "model", "theirs", folder=folder)
            assert ours(capsys, "svm-predict", *words(options), data, "model", "ours") == theirs
            mine, other = ((folder / name).read_text() for name in ("ours", "theirs"))
            if machine == 0 and options != "-b 1":
                assert mine == other
            np.testing.assert_allclose(numbers_of(mine), numbers_of(other), rtol=1e-4, atol=1e-5)

    def test_a_single_class(self, folder, capsys):
        (folder / "lone").write_text("5 1:1 2:3\n5 2:1\n")
        theirs = real("svm-train", "lone", "theirs", folder=folder)
        assert ours(capsys, "svm-train", "lone", "ours") == theirs
        assert (folder / "ours").read_text() == (folder / "theirs").read_text()
        theirs = real("svm-predict", "iris", "theirs", "a", folder=folder)
        assert ours(capsys, "svm-predict", "iris", "ours", "b") == theirs
        assert (folder / "a").read_text() == (folder / "b").read_text()

    @pytest.mark.parametrize(
        "command",
        ["svm-train -s 9 iris", "svm-train -s -1 iris", "svm-train -t 7 iris", "svm-train -g -1 iris",
         "svm-train -t 1 -d -1 iris", "svm-train -m 0 iris", "svm-train -e 0 iris", "svm-train -c 0 iris",
         "svm-train -s 1 -n 0 iris", "svm-train -s 2 -n 2 iris", "svm-train -s 3 -p -1 iris", "svm-train -h 2 iris",
         "svm-train -b 2 iris", "svm-train -s 1 -n 0.99 uneven", "svm-train -x 1 iris", "svm-train -v 1 iris",
         "svm-train -c", "svm-train", "svm-train nothing", "svm-train -q iris no/where", "svm-train -t 4 iris",
         "svm-train -t 4 serial", "svm-predict iris nothing out", "svm-predict nothing model out",
         "svm-predict iris model no/where", "svm-predict -b 1 iris model out", "svm-predict -x iris model out",
         "svm-predict iris model", "svm-predict"],
    )  # fmt: skip
    def test_errors_equal_those_of_libsvm(self, command, folder, capsys):
        (folder / "uneven").write_text("1 1:1\n" + "2 1:3\n" * 20)
        (folder / "serial").write_text("1 0:1 1:2\n-1 0:7 1:2\n")
        real("svm-train", "-q", "iris", "model", folder=folder)
        program, *rest = words(command)
        code, out, err = real(program, *rest, folder=folder)
        own_code, own_out, own_err = ours(capsys, program, *rest)
        assert (own_code, own_err) == (code, err)
        assert own_out[:20] == out[:20]  # the usage texts are our own words

    @pytest.mark.parametrize("content", ["1 1:2\n2 2:1 1:3\n", "1 1:2\nx 1:3\n", "1 1:2\n1:3 2:4\n", "1 1:2\n3 -1:4\n"])
    @pytest.mark.parametrize("command", ["svm-train -q bad", "svm-predict bad model out", "liblinear-train -q bad"])
    def test_malformed_lines_are_reported(self, command, content, folder, capsys):
        real("svm-train", "-q", "iris", "model", folder=folder)
        (folder / "bad").write_text(content)
        program, *rest = words(command)
        code, _, err = real(program, *rest, folder=folder)
        assert (code, err) == (1, "Wrong input format at line 2\n")
        own_code, _, own_err = ours(capsys, program, *rest)
        assert own_code == 1
        assert own_err.startswith(err)
        assert "bad, line 2: " in own_err.splitlines()[1]


class TestStricterChecks:
    """Input that LIBSVM accepts silently or crashes on."""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["-c", "much", "iris"], "ERROR: -c needs a number, not much"),
            (["-t", "1.5", "iris"], "ERROR: -t needs an integer, not 1.5"),
            (["-t", "inf", "iris"], "ERROR: -t needs an integer, not inf"),
            (["-w", "2", "iris"], "ERROR: -w must be followed by a label without a blank"),
            (["-w3", "0", "iris"], "ERROR: weight of a class <= 0"),
            (["empty"], "empty has no samples"),
            (["endless"], "endless: sample 2 has a value that is not finite, inf"),
            (["crooked"], "WARNING: labels are truncated to integers"),
            (["large"], "ERROR: class labels must be below 2147483648"),
        ],
    )
    def test_error_is_one_line(self, arguments, message, folder, capsys):
        (folder / "empty").write_text("")
        (folder / "endless").write_text("1 1:2\n2 1:inf\n")
        (folder / "crooked").write_text("1.5 1:2\n2 1:3\n")
        (folder / "large").write_text("1 1:2\n1e10 1:3\n")
        code, out, err = ours(capsys, "svm-train", "-q", *arguments)
        assert code == (0 if "WARNING" in message else 1)
        assert out == ""
        assert err.startswith(message)
        assert len(err.splitlines()) == 1

    def test_an_asymmetric_kernel(self, folder, capsys):
        (folder / "crooked").write_text("1 0:1 1:2 2:1\n-1 0:2 1:3 2:2\n")
        code, _, err = ours(capsys, "svm-train", "-t", 4, "crooked")
        assert code == 1
        assert "symmetric" in err

    def test_invalid_model_files(self, folder, capsys):
        code, _, err = ours(capsys, "svm-predict", "iris", "board", "out")
        assert code == 1
        assert err.splitlines()[0] == "can't open model file board"
        assert "board, line 1" in err.splitlines()[1]

    def test_standard_input_and_output(self, folder, capsys, monkeypatch):
        assert ours(capsys, "svm-train", "-q", "iris", "model")[0] == 0
        with (folder / "iris").open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            code, out, _ = ours(capsys, "svm-predict", "-q", "-", "model", "-")
        assert code == 0
        assert len(out.splitlines()) == 150

    def test_no_samples_to_predict(self, folder, capsys):
        (folder / "empty").write_text("")
        assert ours(capsys, "svm-train", "-q", "iris", "model")[0] == 0
        code, out, _ = ours(capsys, "svm-predict", "empty", "model", "out")
        assert (code, out) == (0, "Accuracy = nan% (0/0) (classification)\n")

    def test_default_name_of_the_model(self, folder, capsys):
        assert ours(capsys, "svm-train", "-q", folder / "iris")[0] == 0
        assert (folder / "iris.model").exists()
