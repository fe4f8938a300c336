"""Pipelines of scikit-learn's transformers in model files: the same predictions, and nothing unsafe."""

import io
import json
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import set_config, svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import (
    RFE,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    mutual_info_classif,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import maxmargin
from interchange.mutations import join, split
from maxmargin import SVC, SVCCV, SVR, LinearSVC, OneClassSVM, feature_maps
from maxmargin.interchange import ModelFileError
from maxmargin.interchange.sklearn_classes import MODULE_OF

RANDOM = np.random.default_rng(0)
X = RANDOM.random((60, 3))
Y = np.arange(60) % 3
BINARY = (X[:, 0] > 0.5).astype(int)
MISSING = X.copy()
MISSING[[0, 3], [0, 1]] = np.nan
WORDS = np.array([["a", "b", None], ["b", "a", "c"], ["d", "a", "c"]] * 20, dtype=object)
TEXTS = ["the cat sat", "a dog sat down", "cat and dog"] * 20
RECORDS = [{"age": 3.0, "town": "Ulm"}, {"age": 4.0, "town": "Jena"}, {"town": "Ulm"}] * 20
TABLE = pd.DataFrame(MISSING, columns=["größe", "q", "r"]).assign(
    colour=WORDS[:, 0], kind=pd.Categorical(["u", "v", None] * 20), one=1, text=TEXTS
)

METHODS = ("transform", "predict", "decision_function", "predict_proba", "score_samples")


def written(model):
    file = io.BytesIO()
    maxmargin.save(model, file)
    return file.getvalue()


def round_trip(model):
    return maxmargin.load(io.BytesIO(written(model)))


def values(result):
    return result.toarray() if sparse.issparse(result) else np.asarray(result)


def assert_same(found, expected):
    found, expected = values(found), values(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    same = found.tolist() == expected.tolist() if found.dtype == object else found.tobytes() == expected.tobytes()
    assert same


def check(model, data, *target):
    """Compare everything that a model computes with that of the model read from a file."""
    model.fit(data, *target)
    found = round_trip(model)
    assert type(found) is type(model)
    methods = [name for name in METHODS if hasattr(model, name)]
    assert methods
    for name in methods:
        assert_same(getattr(found, name)(data), getattr(model, name)(data))
    if hasattr(model, "get_feature_names_out") and not isinstance(model, RFE):
        names = _names_out(model)
        assert names == _names_out(found)
    if hasattr(model, "feature_names_in_"):
        assert list(found.feature_names_in_) == list(model.feature_names_in_)
    clone(found)
    return found


def _names_out(model):
    try:
        return model.get_feature_names_out().tolist()
    except (AttributeError, TypeError, ValueError) as error:  # transformers that have none
        return type(error)


NUMERIC = [
    AdditiveChi2Sampler(),
    Binarizer(threshold=0.5),
    FunctionTransformer(),
    FunctionTransformer(np.log1p, np.expm1, validate=True),
    IncrementalPCA(2),
    KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"),
    KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
    KernelPCA(2, kernel="rbf"),
    MaxAbsScaler(),
    MinMaxScaler((-1, 1), clip=True),
    Normalizer(),
    Nystroem(n_components=5, random_state=0),
    PCA(0.9, whiten=True),
    PolynomialCountSketch(random_state=0),
    PolynomialFeatures((2, 3), interaction_only=True),
    PolynomialFeatures(3, include_bias=False),
    PowerTransformer(),
    PowerTransformer("box-cox", standardize=False),
    QuantileTransformer(n_quantiles=10, output_distribution="normal"),
    RBFSampler(random_state=0),
    RFE(LinearSVC()),
    RobustScaler(quantile_range=(10.0, 90.0)),
    SelectFdr(alpha=0.9),
    SelectFpr(alpha=0.9),
    SelectFromModel(LinearSVC(), threshold="median"),
    SelectFwe(alpha=0.9),
    SelectKBest(chi2, k=2),
    SelectPercentile(mutual_info_classif, percentile=70),
    SkewedChi2Sampler(random_state=0),
    SplineTransformer(extrapolation="periodic"),
    SplineTransformer(sparse_output=True, knots="quantile"),
    StandardScaler(with_mean=False),
    StandardScaler().set_output(transform="pandas"),
    TargetEncoder(cv=2, random_state=0),
    TruncatedSVD(2, random_state=0),
    VarianceThreshold(0.05),
    feature_maps.DistanceMap(random_state=0),
    feature_maps.NystroemMap(n_components=5, random_state=0),
    feature_maps.PolarCoordinates("mean"),
    feature_maps.PolynomialMap(),
    FeatureUnion([("scaled", StandardScaler()), ("same", "passthrough"), ("none", "drop")]),
]
INCOMPLETE = [
    KNNImputer(n_neighbors=2, add_indicator=True),
    MissingIndicator(),
    SimpleImputer(add_indicator=True),
    SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True),
]
CATEGORICAL = [
    OneHotEncoder(),
    OneHotEncoder(sparse_output=False, dtype=np.float32, drop="if_binary"),
    OneHotEncoder(min_frequency=25, handle_unknown="infrequent_if_exist", drop="first"),
    OneHotEncoder(max_categories=2, handle_unknown="ignore"),
    OneHotEncoder(categories=[["a", "b", "d"], ["a", "b"], ["c", None]]),
    OrdinalEncoder(encoded_missing_value=-5),
    OrdinalEncoder(max_categories=2, handle_unknown="use_encoded_value", unknown_value=np.nan),
    SimpleImputer(missing_values=None, strategy="most_frequent", add_indicator=True),
]
TEXTUAL = [
    CountVectorizer(ngram_range=(1, 2), max_features=4),
    CountVectorizer(vocabulary={"cat": 1, "dog": 0}, binary=True, dtype=np.float32),
    HashingVectorizer(n_features=32),
    TfidfVectorizer(stop_words=["the"], sublinear_tf=True),
    TfidfVectorizer(analyzer="char_wb", max_features=10),
    make_pipeline(CountVectorizer(), TfidfTransformer()),
]
MODELS = [
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(MinMaxScaler(), PCA(2), SVC(probability=True)),
    make_pipeline(StandardScaler(), "passthrough", OneClassSVM()),
    make_pipeline(feature_maps.NystroemMap(n_components=5, random_state=0), LinearSVC()),
    CalibratedClassifierCV(SVC()),
    CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), method="isotonic", cv=3),
    CalibratedClassifierCV(SVC(), method="temperature", ensemble=False),
    CalibratedClassifierCV(FrozenEstimator(SVC().fit(X, Y))),
    OneVsRestClassifier(SVC()),
    OneVsOneClassifier(make_pipeline(StandardScaler(), LinearSVC())),
]


@pytest.mark.filterwarnings("ignore:Features .* are constant")
@pytest.mark.parametrize("model", NUMERIC, ids=str)
def test_numeric_transformers(model):
    check(clone(model), X, Y)


@pytest.mark.parametrize("model", [StandardScaler(with_mean=False), MaxAbsScaler(), PolynomialFeatures()], ids=str)
def test_sparse_samples(model):
    data = sparse.csr_array(np.where(X > 0.5, X, 0.0))
    pipeline = make_pipeline(model, SVC()).fit(data, Y)
    assert_same(round_trip(pipeline).decision_function(data), pipeline.decision_function(data))


@pytest.mark.parametrize("model", INCOMPLETE, ids=str)
def test_missing_values(model):
    check(clone(model), MISSING)


@pytest.mark.parametrize("model", CATEGORICAL, ids=str)
def test_categories(model):
    check(clone(model), WORDS)


@pytest.mark.parametrize("model", TEXTUAL, ids=str)
def test_texts(model):
    check(clone(model), TEXTS)


def test_records():
    check(DictVectorizer(), RECORDS)
    check(FeatureHasher(8), RECORDS)


def test_labels_and_kernels():
    assert_same(round_trip(LabelEncoder().fit(["b", "a"])).transform(["b"]), [1])
    assert_same(round_trip(LabelBinarizer().fit(["b", "a", "c"])).transform(["b"]), [[0, 1, 0]])
    check(KernelCenterer(), X @ X.T)
    check(IsotonicRegression(out_of_bounds="clip"), X[:, 0], X[:, 0] ** 2)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_models(model):
    check(clone(model), X, Y)


@pytest.mark.parametrize(
    "model",
    [
        TransformedTargetRegressor(SVR(), func=np.log1p, inverse_func=np.expm1),
        TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR()), transformer=RobustScaler()),
    ],
    ids=str,
)
def test_transformed_targets(model):
    check(clone(model), X, X[:, 0] ** 2)


def test_several_outputs():
    check(MultiOutputRegressor(SVR()), X, X[:, :2])
    model = MultiOutputClassifier(SVC()).fit(X, np.stack([Y, BINARY], axis=1))
    assert_same(round_trip(model).predict(X), model.predict(X))


def preparation(remainder="drop"):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("numbers", numbers, ["größe", "q"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include=["object", "str"])),
            ("kinds", OneHotEncoder(), TABLE.columns[4:5]),
            ("same", "passthrough", slice("one", "one")),
            ("none", "drop", ["r"]),
        ],
        remainder=remainder,
    )


@pytest.mark.parametrize("remainder", ["drop", "passthrough", SimpleImputer()])
def test_tables(remainder):
    table = TABLE.drop(columns="text")
    if remainder != "drop":
        table = table.assign(more=MISSING[:, 2])
    found = check(make_pipeline(preparation(remainder), SVC(probability=True)), table, Y)
    new = table.assign(colour="never seen")
    assert len(found.predict(new[sorted(new.columns)])) == len(new)
    with pytest.raises(ValueError, match="columns are missing"):
        found.predict(new.drop(columns="q"))


def test_tables_with_text_and_nested_columns():
    mask = [True] * 3 + [False] * 4
    nested = ColumnTransformer([("text", TfidfVectorizer(), "text"), ("numbers", SimpleImputer(), mask)])
    union = FeatureUnion([("first", nested), ("second", preparation())])
    check(make_pipeline(union, MaxAbsScaler(), LinearSVC()), TABLE, Y)


def test_nullable_columns():
    table = pd.DataFrame({"a": pd.array([1, None, 3] * 20, dtype="Int64"), "b": X[:, 0]})
    check(make_pipeline(SimpleImputer(missing_values=pd.NA, strategy="constant", fill_value=0), SVC()), table, Y)


def test_searches():
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    search = GridSearchCV(pipeline, {"svc__C": [1.0, 10.0]}, cv=3).fit(X, Y)
    found = round_trip(search)
    assert found.get_params()["svc__C"] == search.best_params_["svc__C"]
    assert_same(found.decision_function(X), search.decision_function(X))
    inside = make_pipeline(StandardScaler(), SVCCV(Cs=2, gammas=2, cv=3)).fit(X, BINARY)
    found = round_trip(inside)
    assert type(found[-1]) is SVC
    assert_same(found.predict(X), inside.predict(X))


@pytest.mark.parametrize("label", [0, "x"])
def test_thresholds(label):
    y = np.where(BINARY, label, 2 if label == 0 else "y")
    check(FixedThresholdClassifier(SVC(), threshold=0.3, pos_label=label), X, y)
    tuned = TunedThresholdClassifierCV(SVC(), scoring="balanced_accuracy", cv=3).fit(X, y)
    found = round_trip(tuned)
    assert type(found) is FixedThresholdClassifier
    assert found.threshold == tuned.best_threshold_
    assert_same(found.predict(X), tuned.predict(X))


def test_every_class_is_tested():
    tested = {type(model).__name__ for group in (NUMERIC, INCOMPLETE, CATEGORICAL, TEXTUAL, MODELS) for model in group}
    tested |= {"TfidfTransformer", "Pipeline"}  # in pipelines
    elsewhere = {"DictVectorizer", "FeatureHasher", "LabelBinarizer", "LabelEncoder", "KernelCenterer"}
    elsewhere |= {"IsotonicRegression", "TransformedTargetRegressor", "MultiOutputClassifier", "MultiOutputRegressor"}
    elsewhere |= {"DateParts"}  # of tables: tests/cli/test_tables.py
    elsewhere |= {"ColumnTransformer", "make_column_selector", "FixedThresholdClassifier", "FrozenEstimator"}
    parts = {"BSpline", "_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"}
    assert tested | elsewhere | parts == set(MODULE_OF)


class Own(StandardScaler):
    """A class outside of scikit-learn."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(RandomForestClassifier(n_estimators=2)), "steps of Pipeline contains .* sklearn.RandomForest.*"),
        (make_pipeline(svm.SVC()), "steps of Pipeline contains .* sklearn.SVC, .*from_sklearn"),
        (make_pipeline(Own(), SVC()), "steps of Pipeline contains a value of type .*Own"),
        (
            make_pipeline(FunctionTransformer(lambda X: X), SVC()),
            "func of FunctionTransformer is .*function.* NumPy",
        ),
        (make_pipeline(FunctionTransformer(np.sort), SVC()), "func of FunctionTransformer is .* NumPy"),
        (Pipeline([("svc", SVC())], memory="folder"), r"memory of Pipeline .* set_params\(memory=None\)"),
        (make_pipeline(RBFSampler(random_state=np.random.RandomState(0)), SVC()), "random_state of RBFSampler"),
        (ColumnTransformer([("a", StandardScaler(), lambda X: [0])]), "transformers of ColumnTransformer .*selector"),
        (RandomForestClassifier(n_estimators=2), "sklearn.RandomForestClassifier cannot be stored .*model_file.md"),
    ],
)
def test_unsupported(model, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match=message):
        written(model.fit(X, Y))


def test_not_fitted():
    for model in (make_pipeline(StandardScaler(), SVC()), preparation(), OneHotEncoder()):
        with pytest.raises(ModelFileError, match=f"{type(model).__name__} is not fitted yet"):
            written(model)


def edited(model, change):
    """Return a file whose header was changed by a function."""
    text, arrays = split(written(model))
    header = json.loads(text)
    change(header)
    return io.BytesIO(join(header, arrays))


def with_version(text):
    return edited(StandardScaler().fit(X), lambda header: header.update({"scikit-learn": text}))


def test_versions():
    major, minor = version("scikit-learn").split(".")[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maxmargin.load(with_version(f"{major}.{minor}.99"))
    with pytest.warns(UserWarning, match=rf"objects of scikit-learn {major}\.0\.1, but this is .* fit and save again"):
        maxmargin.load(with_version(f"{major}.0.1"))
    with pytest.raises(ModelFileError, match="scikit-learn 0.24.2, but this is .*: install scikit-learn 0"):
        maxmargin.load(with_version("0.24.2"))
    for other in (None, 3, "1." * 30, "\n"):
        with pytest.raises(ModelFileError, match="must be a short string"):
            maxmargin.load(with_version(other))
    with pytest.raises(ModelFileError, match="not its version"):
        maxmargin.load(edited(StandardScaler().fit(X), lambda header: header.pop("scikit-learn")))


ENCODER = OneHotEncoder(min_frequency=25, handle_unknown="infrequent_if_exist", drop="first").fit(WORDS)


@pytest.mark.parametrize(
    ("model", "part", "crafted"),
    [
        (ENCODER, ("fitted", "_n_features_outs"), [1, 1, 10**9]),
        (ENCODER, ("fitted", "_n_features_outs"), [9, 1, 1]),
        (ENCODER, ("fitted", "_infrequent_indices"), [None, None, None]),
        (ENCODER, ("fitted", "drop_idx_", "objects"), None),
        (ENCODER, ("fitted", "_drop_idx_after_grouping"), {"objects": [0, 5, 0]}),
        (ENCODER, ("fitted", "_infrequent_enabled"), False),
        (ENCODER, ("parameters", "handle_unknown"), "run"),
        (OneHotEncoder().fit([[1.0], [2.0]]), ("fitted", "categories_"), [{"tuple": []}]),
        (OneHotEncoder().fit([[1.0], [2.0]]), ("fitted", "n_features_in_"), 3),
        (CountVectorizer().fit(TEXTS), ("fitted", "vocabulary_"), {"dict": [["cat", 10**9]]}),
        (CountVectorizer().fit(TEXTS), ("fitted", "vocabulary_"), {"dict": [["cat", -1]]}),
        (TfidfVectorizer().fit(TEXTS), ("fitted", "vocabulary_"), {"dict": [["cat", 0], ["dog", 0]]}),
        (DictVectorizer().fit(RECORDS), ("fitted", "vocabulary_"), {"dict": [["cat", 1.5]]}),
        (PolynomialFeatures().fit(X), ("fitted", "_n_out_full"), 10**12),
        (PolynomialFeatures().fit(X), ("fitted", "_max_degree"), 10**12),
        (PolynomialFeatures().fit(X), ("parameters", "degree"), 10**12),
        (HashingVectorizer().fit(TEXTS), ("parameters", "n_features"), 0),
        (feature_maps.NystroemMap(n_components=4).fit(X), ("fitted", "_factor_"), {"array": 0}),
        (Pipeline([("svc", SVC().fit(X, Y))]), ("parameters", "memory"), "/tmp"),
        (StandardScaler().fit(X), ("parameters", "deep"), 1),
        (StandardScaler().fit(X), ("fitted", "transform"), {"function": "numpy.exp"}),
        (StandardScaler().fit(X), ("fitted", "__class__"), 1),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"function": "numpy.save"}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"function": "os.system"}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"function": "numpy.lib.format.open_memmap"}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"type": "memmap"}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"dtype": "V9"}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"RandomForestClassifier": {"parameters": {}, "fitted": {}}}),
        (StandardScaler().fit(X), ("fitted", "mean_"), {"BSpline": {"parameters": {}, "fitted": {}}}),
        (SplineTransformer().fit(X), ("fitted", "bsplines_", 0, "BSpline", "parameters", "k"), 50),
        (IsotonicRegression().fit(X[:, 0], X[:, 1]), ("fitted", "X_thresholds_"), 3),
        (make_pipeline(SVC()).fit(X, Y), ("parameters", "steps", 0, "tuple", 1, "SVC", "fitted", "support_"), [1]),
    ],
)
def test_crafted_files(model, part, crafted):
    def change(header):
        for key in part[:-1]:
            header = header[key]
        header[part[-1]] = crafted

    with pytest.raises(ModelFileError):
        maxmargin.load(edited(model, change))


def test_the_configuration_of_scikit_learn_does_not_matter():
    model = make_pipeline(StandardScaler(), SVC()).fit(X, Y)
    set_config(skip_parameter_validation=True)
    try:
        with pytest.raises(ModelFileError, match="must be an instance of 'bool'"):
            maxmargin.load(edited(model, _with_wrong_flag))
    finally:
        set_config(skip_parameter_validation=False)


def _with_wrong_flag(header):
    header["parameters"]["steps"][0]["tuple"][1]["StandardScaler"]["parameters"]["with_mean"] = "yes"
