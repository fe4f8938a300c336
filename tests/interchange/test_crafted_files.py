"""Files that are damaged or crafted: more than 100,000, and each either predicts or is refused with a sentence."""

import io
import itertools
import json
import random
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

from interchange.mutations import MUTATIONS, PREFIX_BYTES, edit_header, edit_table, join, split
from maxmargin import (
    LSSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    RankSVC,
)
from maxmargin.interchange import ModelFileError, load, save
from maxmargin.kernels import ChiSquared, Gaussian, Linear, Polynomial

#: Loading takes at most so many bytes for each byte of the file, and this much besides.
BYTES_PER_BYTE, BESIDES = 64, 2**18


def written(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def small_models():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.3], [0.0, 0.5], [0.7, 0.0]])
    rows, y = sparse.csr_matrix(X), np.array([0, 1, 0, 1, 2, 2])
    return [
        SVC(kernel=0.5 * Gaussian(1.0) + Linear() * Polynomial(2, 0.5, 1.0)).fit(X, y % 2 == 0),
        SVC(class_weight={"a": 1.0, "b": 2.0, "c": 1.5}, n_jobs=1).fit(rows, np.array(list("abc"))[y]),
        SVR(kernel="precomputed").fit(X @ X.T, y),
        OneClassSVM(kernel="linear").fit(rows),
        SVDD(kernel=ChiSquared(0.5)).fit(X),
        SVC(multi_class="weston_watkins").fit(X.astype(np.float32), y),
        RankSVC().fit(X, y, [1, 1, 2, 2, 2, 1]),
        SVC(probability=True).fit(X, y),
        SVR(noise=True).fit(X, y),
        OneClassSVM(probability=True).fit(X),
        LSSVR().fit(X, np.stack([y, -y], axis=1)),
        LinearSVC(probability=True).fit(X, y),
        LinearSVC(multi_class="crammer_singer").fit(rows, y).sparsify(),
        LinearSVR(noise=True).fit(X, np.stack([y, -y], axis=1)),
        LinearOneClassSVM(probability=True).fit(X),
        KernelApproximationSVC(n_components=4, random_state=0).fit(rows, y),
    ]


FILES = [written(model) for model in small_models()]


def use(model):
    """Do what reads the arrays of a loaded model; only numbers that overflow may be heard of."""
    features = model.n_features_in_
    if features > 10**6:
        return  # nobody has such samples, and a file cannot make anybody have them
    X = sparse.csr_array((3, features))
    if features <= 1000:
        X = np.abs(np.sin(np.arange(3.0 * features))).reshape(3, features)
    predicted = model.predict(X)
    assert len(predicted) == 3
    if getattr(model, "noise", False) is True and hasattr(model, "noise_scale_"):
        assert len(model.predict_interval(X)) == 3
    if getattr(model, "_is_linear", False):
        assert model.coef_.shape[1] == features


def outcome(file):
    """Return "used" or "refused"; everything else is a failure of the test."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # numbers near the largest, names of features that appear from nowhere
        try:
            model = load(io.BytesIO(file))
        except ModelFileError:
            return "refused"
        use(model)
    return "used"


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_mutated_files(mutate):
    chance = random.Random(f"{mutate.__name__} 1")
    found = {"used": 0, "refused": 0}
    for number in range(MUTATIONS[mutate]):
        file, other = FILES[number % len(FILES)], chance.choice(FILES)
        crafted = mutate(file, chance, other)
        try:
            found[outcome(crafted)] += 1
        except Exception as error:
            raise AssertionError(f"{mutate.__name__}, file number {number}: {crafted[:5000]!r}") from error
    # Damage is always noticed. What has a right checksum must often get as far as a model, or nothing was tested.
    blind = mutate.__name__ in ("flip_bytes", "cut_off", "splice")
    assert found["used"] <= (MUTATIONS[mutate] // 100 if blind else MUTATIONS[mutate])
    assert blind or found["used"] > MUTATIONS[mutate] // 50


def test_there_are_enough():
    assert sum(MUTATIONS.values()) >= 100_000


def refusal(file):
    with pytest.raises(ModelFileError) as caught:
        load(io.BytesIO(file))
    return str(caught.value)


def edited(number, change):
    """Return a file whose header was changed by a function."""
    text, arrays = split(FILES[number])
    header = json.loads(text)
    change(header)
    return join(header, arrays)


class TestSentences:
    def test_other_files(self):
        for other in (b"", b"PK\x03\x04", b"\x80\x04\x95", FILES[0][1:], b"\x89PNG\r\n\x1a\n" + bytes(100)):
            assert refusal(other) == "this is not a model file of maxmargin"

    def test_every_length(self):
        file = FILES[2]
        for size in range(len(file)):
            assert refusal(file[:size])
        assert "cut off" in refusal(file[:20])
        assert "cut off" in refusal(file[:-1])
        assert "something was added" in refusal(file + b"x")

    def test_every_bit(self):
        file = bytearray(FILES[3])
        for place, bit in itertools.product(range(len(file)), range(8)):
            if place < PREFIX_BYTES or (place * 8 + bit) % 7 == 0:
                file[place] ^= 1 << bit
                assert refusal(bytes(file))
                file[place] ^= 1 << bit
        load(io.BytesIO(bytes(file)))

    def test_damage(self):
        assert "checksum" in refusal(FILES[0][:-1] + bytes([FILES[0][-1] ^ 1]))

    def test_newer_versions(self):
        text, arrays = split(FILES[0])
        assert "format 2" in refusal(join(text, arrays, version=2))
        assert "format 0" in refusal(join(text, arrays, version=0))

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda header: header.update(estimator="Perceptron"), "does not know: 'Perceptron'"),
            (lambda header: header.update(estimator=["SVC"]), "does not know"),
            (lambda header: header.pop("arrays"), "lacks a part"),
            (lambda header: header.update(more=1), "one too many"),
            (lambda header: header.update(fitted=[]), "must be named"),
            (lambda header: header["parameters"].update(depth=3), "no parameter 'depth'"),
            (lambda header: header["parameters"].update(break_ties=1), "break_ties must be True or False"),
            (lambda header: header["parameters"].update(n_jobs=0), "n_jobs"),
            (lambda header: header["parameters"].update(kernel="precomputed"), "not the one that was fitted"),
            (lambda header: header["parameters"].update(C={"eval": "1"}), "'eval' is not a word"),
            (lambda header: header["parameters"].update(C=10**400), "too large"),
            (lambda header: header["fitted"].update(predict=1), "attribute 'predict'"),
            (lambda header: header["fitted"].pop("support_"), "no support_"),
            (lambda header: header["fitted"].update(n_features_in_=3), "shape_fit_ .* does not fit"),
            (lambda header: header["fitted"].update(_kernel_={"Polynomial": {"degree": 2**40}}), "_kernel_"),
            (
                lambda header: header["fitted"].update(_kernel_={"Gaussian": {"gamma": -1.0}}),
                "gamma must be at least 0",
            ),
            (lambda header: header["fitted"]["_machines_"].pop(), "_machines_ .* does not fit"),
            (lambda header: header["arrays"][0].update(dtype="|O8"), "array 0: its dtype"),
            (lambda header: header["arrays"][1].update(offset=0), "array 1: it must start at"),
            (lambda header: header["arrays"][0].update(shape=[2**40]), "array 0: it takes more bytes"),
        ],
    )
    def test_what_is_wrong(self, change, sentence):
        with pytest.raises(ModelFileError, match=sentence):
            load(io.BytesIO(edited(0, change)))

    def test_keys_that_occur_twice_and_what_is_not_json(self):
        text, arrays = split(FILES[0])
        twice = text.replace(b'"degree":3', b'"degree":3,"degree":4')
        assert "a key twice" in refusal(join(twice, arrays))
        assert "NaN" in refusal(join(text.replace(b'"degree":3', b'"degree":NaN'), arrays))
        assert "too large" in refusal(join(text.replace(b'"degree":3', b'"degree":1e999'), arrays))
        assert "cannot be read" in refusal(join(text.replace(b'"degree":3', b'"degree":' + b"9" * 5000), arrays))
        assert "cannot be read" in refusal(join(b"\xff" + text, arrays))

    @pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["]",', b'["\\"",'])
    def test_nesting(self, opening):
        assert "nested too deep" in refusal(join(opening * 100_000, b""))

    @pytest.mark.parametrize("text", [b"", b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\\n", b'"x' * 500_000])
    def test_strings_without_an_end(self, text):
        assert "cannot be read" in refusal(join(text, b""))

    def test_sparse_rows_that_lead_outside(self):
        def change_array(name, position, value):
            text, arrays = split(FILES[1])
            header, changed = json.loads(text), bytearray(arrays)
            entry = header["arrays"][header["fitted"]["support_vectors_"]["csr"][name]]
            assert entry["dtype"] == "<i4"
            start = entry["offset"] + 4 * (position % entry["shape"][0])
            changed[start : start + 4] = value.to_bytes(4, "little", signed=True)
            return join(header, bytes(changed))

        for file in (
            change_array("indices", 0, 2), change_array("indices", -1, -1), change_array("indptr", 0, 1),
            change_array("indptr", -1, 2**31 - 1), change_array("indptr", 1, -5), change_array("indptr", 2, 100),
        ):  # fmt: skip
            assert "sparse matrix lie outside" in refusal(file)


class TestMemory:
    """What is allocated is bounded by the size of the file, whatever the file says."""

    def peak(self, file):
        stream = io.BytesIO(file)
        tracemalloc.start()
        try:
            load(stream)
        except ModelFileError:
            pass
        finally:
            used = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return used

    def assert_modest(self, file):
        used = self.peak(file)
        assert used <= BYTES_PER_BYTE * len(file) + BESIDES, (used / len(file), file[:2000])

    def test_mutated_files(self):
        chance = random.Random(2)
        for number in range(400):
            mutate = (edit_header, edit_table)[number % 2]
            self.assert_modest(mutate(FILES[number % len(FILES)], chance, chance.choice(FILES)))

    @pytest.mark.parametrize(
        "part", ["[],", "{},", "[0],", '{"a":0},', '"",', "0.5,", '{"tuple":[]},', '{"objects":[]},', '{"array":0},']
    )
    def test_headers_of_many_small_things(self, part):
        many = json.loads("[" + (part * 10_000)[:-1] + "]")
        self.assert_modest(edited(0, lambda header: header["parameters"].update(C=many)))
        self.assert_modest(edited(0, lambda header: header.update(arrays=many)))

    @pytest.mark.parametrize("shape", [[2**40], [0, 2**50], [2**20, 2**20, 2**20, 0], [2**61], [10**30]])
    @pytest.mark.parametrize("dtype", ["<f8", "|b1", "<U99999999"])
    def test_arrays_that_claim_much(self, shape, dtype):
        def claim(header):
            header["arrays"] = [{"dtype": dtype, "shape": shape, "order": "C", "offset": 0}]

        self.assert_modest(edited(0, claim))

    def test_one_array_under_many_names(self):
        header = json.loads(split(FILES[0])[0])
        header["arrays"] = [{"dtype": "<f8", "shape": [10_000], "order": "C", "offset": 0}]
        header["parameters"]["C"] = [{"array": 0}] * 10_000
        self.assert_modest(join(header, bytes(80_000)))
        header["parameters"]["C"] = [
            {"csr": {"type": "matrix", "shape": [9_999, 2**31 - 1], "data": 0, "indices": 0, "indptr": 0}}
        ] * 1_000
        self.assert_modest(join(header, bytes(80_000)))

    def test_many_empty_arrays(self):
        entry = {"dtype": "<f8", "shape": [0, 10**9], "order": "F", "offset": 0}
        self.assert_modest(edited(0, lambda header: header.update(arrays=[entry] * 5_000)))

    def test_models_of_some_size(self):
        X = np.random.default_rng(0).normal(size=(400, 20))
        for model in (SVC().fit(X, np.arange(400) % 4), SVR(kernel="linear").fit(sparse.csr_matrix(X), X[:, 0])):
            file = written(model)
            assert self.peak(file) <= 4 * len(file) + BESIDES
