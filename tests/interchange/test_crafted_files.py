"""More than 100,000 damaged or crafted files: each either loads and predicts or raises ModelFileError."""

import io
import itertools
import json
import random
import tracemalloc
import warnings
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from interchange.mutations import MUTATIONS, PREFIX_BYTES, all_paths, edit_header, edit_table, follow, join, split
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

#: Limit of the memory for loading, in bytes per byte of the file, plus a constant.
BYTES_PER_BYTE, CONSTANT_BYTES = 64, 2**18


def written(model, with_certificate=True):
    if with_certificate:
        assert model.certificate_
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
FILES += [written(SVC().fit([[0.0], [1.0], [3.0]], [0, 1, 2]), with_certificate=False)]


def use(model):
    """Use the arrays of a loaded model; numbers may overflow."""
    features = model.n_features_in_
    if features > 10**6:
        return  # such samples do not fit into memory
    X = sparse.csr_array((3, features))
    if features <= 1000:
        X = np.abs(np.sin(np.arange(3.0 * features))).reshape(3, features)
    try:
        predicted = model.predict(X)
    except ValueError as error:
        if "exceeds the range of float64" not in str(error):
            raise
        return
    assert len(predicted) == 3
    assert predicted.dtype.kind != "f" or not np.isnan(predicted).any()
    if hasattr(model, "certificate_"):
        assert str(model.certificate_)
    if getattr(model, "noise", False) is True and hasattr(model, "noise_scale_"):
        assert len(model.predict_interval(X)) == 3
    if isinstance(getattr(model, "_kernel_", None), Linear) and hasattr(model, "coef_"):
        assert model.coef_.shape[1] == features


def outcome(file):
    """Return "used" or "rejected"; other exceptions are failures of the test."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # overflow, unknown feature names
        try:
            model = load(io.BytesIO(file))
        except ModelFileError:
            return "rejected"
        use(model)
    return "used"


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_mutated_files(mutate):
    chance = random.Random(f"{mutate.__name__} 1")
    found = {"used": 0, "rejected": 0}
    for number in range(MUTATIONS[mutate]):
        file, other = FILES[number % len(FILES)], chance.choice(FILES)
        crafted = mutate(file, chance, other)
        try:
            found[outcome(crafted)] += 1
        except Exception as error:
            raise AssertionError(f"{mutate.__name__}, file number {number}: {crafted[:5000]!r}") from error
    # Damage is always detected. Files with a valid checksum must often load, otherwise little was tested.
    blind = mutate.__name__ in ("flip_bytes", "cut_off", "splice")
    assert found["used"] <= (MUTATIONS[mutate] // 100 if blind else MUTATIONS[mutate])
    assert blind or found["used"] > MUTATIONS[mutate] // 50


def test_number_of_mutations():
    assert sum(MUTATIONS.values()) >= 100_000


def error_message(file):
    with pytest.raises(ModelFileError) as caught:
        load(io.BytesIO(file))
    return str(caught.value)


def edited(number, change):
    """Return a file whose header was changed by a function."""
    text, arrays = split(FILES[number])
    header = json.loads(text)
    change(header)
    return join(header, arrays)


class TestErrorMessages:
    def test_other_files(self):
        for other in (b"", b"PK\x03\x04", b"\x80\x04\x95", FILES[0][1:], b"\x89PNG\r\n\x1a\n" + bytes(100)):
            assert error_message(other) == "this is not a model file of maxmargin"

    def test_every_length(self):
        file = FILES[2]
        for size in range(len(file)):
            assert error_message(file[:size])
        assert "truncated" in error_message(file[:20])
        assert "truncated" in error_message(file[:-1])
        assert "extra bytes" in error_message(file + b"x")

    def test_every_bit(self):
        file = bytearray(FILES[3])
        for place, bit in itertools.product(range(len(file)), range(8)):
            if place < PREFIX_BYTES or (place * 8 + bit) % 7 == 0:
                file[place] ^= 1 << bit
                assert error_message(bytes(file))
                file[place] ^= 1 << bit
        load(io.BytesIO(bytes(file)))

    def test_damage(self):
        assert "checksum" in error_message(FILES[0][:-1] + bytes([FILES[0][-1] ^ 1]))

    def test_newer_versions(self):
        text, arrays = split(FILES[0])
        assert "format 3" in error_message(join(text, arrays, version=3))
        assert "format 0" in error_message(join(text, arrays, version=0))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda header: header.update(estimator="Perceptron"), "estimator 'Perceptron' is unknown"),
            (lambda header: header.update(estimator=["SVC"]), "is unknown"),
            (lambda header: header.pop("arrays"), "must have the keys"),
            (lambda header: header.update(more=1), "must have the keys"),
            (lambda header: header.update(fitted=[]), "must be JSON objects"),
            (lambda header: header["parameters"].update(depth=3), "no parameter 'depth'"),
            (lambda header: header["parameters"].update(break_ties=1), "break_ties must be True or False"),
            (lambda header: header["parameters"].update(n_jobs=0), "n_jobs"),
            (lambda header: header["parameters"].update(kernel="precomputed"), "differs from the fitted kernel"),
            (lambda header: header["parameters"].update(C={"eval": "1"}), "'eval' is unknown"),
            (lambda header: header["parameters"].update(C=10**400), "too large"),
            (lambda header: header["fitted"].update(predict=1), "attribute 'predict'"),
            (lambda header: header["fitted"].pop("support_"), "no support_"),
            (lambda header: header["fitted"].update(n_features_in_=3), "shape_fit_ .* inconsistent"),
            (lambda header: header["fitted"].update(_kernel_={"Polynomial": {"degree": 2**40}}), "_kernel_"),
            (
                lambda header: header["fitted"].update(_kernel_={"Gaussian": {"gamma": -1.0}}),
                "gamma must be at least 0",
            ),
            (lambda header: header["fitted"]["_models_"].pop(), "_models_ .* inconsistent"),
            (lambda header: header["arrays"][0].update(dtype="|O8"), "array 0: its dtype"),
            (lambda header: header["arrays"][1].update(offset=0), "array 1: its offset must be"),
            (lambda header: header["arrays"][0].update(shape=[2**40]), "array 0: it exceeds the end"),
        ],
    )
    def test_invalid_headers(self, change, message):
        with pytest.raises(ModelFileError, match=message):
            load(io.BytesIO(edited(0, change)))

    def test_duplicate_keys_and_invalid_json(self):
        text, arrays = split(FILES[0])
        twice = text.replace(b'"degree":3', b'"degree":3,"degree":4')
        assert "duplicate key" in error_message(join(twice, arrays))
        assert "NaN" in error_message(join(text.replace(b'"degree":3', b'"degree":NaN'), arrays))
        assert "overflows float64" in error_message(join(text.replace(b'"degree":3', b'"degree":1e999'), arrays))
        assert "not valid JSON" in error_message(join(text.replace(b'"degree":3', b'"degree":' + b"9" * 5000), arrays))
        assert "not valid JSON" in error_message(join(b"\xff" + text, arrays))

    @pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["]",', b'["\\"",'])
    def test_nesting(self, opening):
        assert "nested too deeply" in error_message(join(opening * 100_000, b""))

    @pytest.mark.parametrize("text", [b"", b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\\n", b'"x' * 500_000])
    def test_unterminated_strings(self, text):
        assert "not valid JSON" in error_message(join(text, b""))

    def test_sparse_rows_out_of_bounds(self):
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
            assert "sparse matrix are inconsistent" in error_message(file)


class TestMemory:
    """Allocated memory is bounded by the size of the file, whatever its header claims."""

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

    def assert_bounded(self, file):
        used = self.peak(file)
        assert used <= BYTES_PER_BYTE * len(file) + CONSTANT_BYTES, (used / len(file), file[:2000])

    def test_mutated_files(self):
        chance = random.Random(2)
        for number in range(400):
            mutate = (edit_header, edit_table)[number % 2]
            self.assert_bounded(mutate(FILES[number % len(FILES)], chance, chance.choice(FILES)))

    @pytest.mark.parametrize(
        "part", ["[],", "{},", "[0],", '{"a":0},', '"",', "0.5,", '{"tuple":[]},', '{"objects":[]},', '{"array":0},']
    )
    def test_headers_with_many_small_values(self, part):
        many = json.loads("[" + (part * 10_000)[:-1] + "]")
        self.assert_bounded(edited(0, lambda header: header["parameters"].update(C=many)))
        self.assert_bounded(edited(0, lambda header: header.update(arrays=many)))

    @pytest.mark.parametrize("shape", [[2**40], [0, 2**50], [2**20, 2**20, 2**20, 0], [2**61], [10**30]])
    @pytest.mark.parametrize("dtype", ["<f8", "|b1", "<U99999999"])
    def test_arrays_with_huge_shapes(self, shape, dtype):
        def claim(header):
            header["arrays"] = [{"dtype": dtype, "shape": shape, "order": "C", "offset": 0}]

        self.assert_bounded(edited(0, claim))

    def test_many_references_to_one_array(self):
        header = json.loads(split(FILES[0])[0])
        header["arrays"] = [{"dtype": "<f8", "shape": [10_000], "order": "C", "offset": 0}]
        header["parameters"]["C"] = [{"array": 0}] * 10_000
        self.assert_bounded(join(header, bytes(80_000)))
        header["parameters"]["C"] = [
            {"csr": {"type": "matrix", "shape": [9_999, 2**31 - 1], "data": 0, "indices": 0, "indptr": 0}}
        ] * 1_000
        self.assert_bounded(join(header, bytes(80_000)))

    def test_many_empty_arrays(self):
        entry = {"dtype": "<f8", "shape": [0, 10**9], "order": "F", "offset": 0}
        self.assert_bounded(edited(0, lambda header: header.update(arrays=[entry] * 5_000)))

    def test_larger_models(self):
        X = np.random.default_rng(0).normal(size=(400, 20))
        for model in (SVC().fit(X, np.arange(400) % 4), SVR(kernel="linear").fit(sparse.csr_matrix(X), X[:, 0])):
            file = written(model)
            assert self.peak(file) <= 4 * len(file) + CONSTANT_BYTES


#: Numbers that no fit writes, and contents of arrays at the ends of float64.
EXTREME_NUMBERS = (2**1000, -(2**1000), 2**63, 1e308, -1e308, 5e-324)
EXTREME_CONTENTS = ([1e308], [-1e308], [1e308, -1e308], [5e-324])


def check_extreme(file):
    """Load a crafted file if it is valid; its predictions are finite or a clear error, without warnings."""
    try:
        model = load(io.BytesIO(file))
    except ModelFileError:
        return
    X = np.abs(np.sin(np.arange(3.0 * model.n_features_in_))).reshape(3, -1)
    for name in ("predict", "decision_function", "predict_proba", "predict_interval", "score_samples"):
        try:
            values = np.asarray(getattr(model, name)(X))
        except AttributeError:  # not a method of this estimator
            continue
        except ValueError as error:
            if "exceeds the range of float64" not in str(error):
                raise
            continue
        assert values.dtype.kind != "f" or not np.isnan(values).any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("file", FILES, ids=range(len(FILES)))
def test_extreme_numbers_never_predict_nan(file):
    text, arrays = split(file)
    header = json.loads(text)
    for path in all_paths(header["fitted"]):
        if type(follow(header["fitted"], path)) in (int, float) and not {"array", "scalar", "csr"} & set(path):
            for number in EXTREME_NUMBERS:
                crafted = deepcopy(header)
                follow(crafted["fitted"], path[:-1])[path[-1]] = number
                check_extreme(join(crafted, arrays))
    for entry in header["arrays"]:
        for content in EXTREME_CONTENTS if entry["dtype"] == "<f8" else ():
            filled = np.resize(content, entry["shape"]).tobytes()
            start, end = entry["offset"], entry["offset"] + len(filled)
            check_extreme(join(header, arrays[:start] + filled + arrays[end:]))


def test_offset_beyond_the_range_of_integers():
    text, arrays = split(written(LinearSVC().fit([[0.0], [1.0]], [0, 1])))
    header = json.loads(text)
    header["fitted"]["_models_"][0]["TrainedLinearModel"]["offset"] = 2**1000
    assert "TrainedLinearModel: the field 'offset' has the wrong type" in error_message(join(header, arrays))
