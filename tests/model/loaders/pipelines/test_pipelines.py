"""Pipelines with known answers: names and categories, counts by the pipeline, what is refused."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.typing import NDArray
from random_pipelines import N_ROWS, edge_frame, people
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import xcount
from xcount.errors import TableError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.tables import read_table
from xcount.question.grid import Grid

FRAME, DECISIONS = people()
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def fitted(*members: Any, model: Any = TREE, **options: Any) -> Any:
    """Return a pipeline of a ColumnTransformer and a model, fitted on the people."""
    return make_pipeline(ColumnTransformer([*members], **options), model).fit(FRAME, DECISIONS)


def users_rows(ensemble: Ensemble, rows: NDArray[np.float64]) -> pd.DataFrame:
    """Return rows of codes as a user has them: categories by name."""
    columns: dict[str, Any] = {}
    for feature, column in zip(ensemble.features, rows.T, strict=True):
        columns[feature.name] = column
        if feature.labels is not None:
            names = dict(zip(feature.categories or (), feature.labels, strict=True))
            columns[feature.name] = [names[code] for code in column]
    return pd.DataFrame(columns)


def assert_votes(pipeline: Any, ensemble: Ensemble) -> None:
    """Compare the probabilities of a tree or forest on rows at all thresholds."""
    frame = edge_frame(ensemble, 500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pipeline.predict_proba(frame)
    expected = expected[:, 1:] if expected.shape[1] == 2 else expected
    np.testing.assert_allclose(ensemble.predict(read_table(frame, ensemble).rows), expected)


def test_features_are_the_original_columns() -> None:
    """Names, categories and gaps are those of the table; dropped columns are no features."""
    pipeline = fitted(
        ("words", OneHotEncoder(), ["sex", "region"]),
        ("job", OneHotEncoder(handle_unknown="ignore"), ["job"]),
        ("numbers", StandardScaler(), ["age", "debt"]),
    )
    sex, job, region, age, debt = xcount.load(pipeline).features
    assert (sex.name, sex.labels, sex.can_be_missing) == ("sex", ("Female", "Male"), False)
    assert job.labels == ("clerk", "cook", "judge", "monk", "smith", "(other)")
    assert job.other == job.categories[-1] if job.categories else False
    # A missing region has a column of its own, a missing job is no category that training knew.
    assert region.labels == ("north", "south", "west")
    assert (region.can_be_missing, job.can_be_missing) == (True, True)
    assert (age.name, debt.name, age.is_categorical) == ("age", "debt", False)


def test_what_an_imputer_fills_in_is_the_missing_cell() -> None:
    """A constant that stands for missing values is no category of its own, but can be read."""
    filled = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder())
    ensemble = xcount.load(fitted(("region", filled, ["region"])))
    (region,) = ensemble.features
    assert (region.labels, region.missing_labels) == (("north", "south", "west"), ("none",))
    rows = read_table({"region": ["west", "none", None, np.nan]}, ensemble).rows
    assert rows[0, 0] == 2.0
    assert np.isnan(rows[1:, 0]).all()


def test_flags_of_missing_values_keep_the_constant_apart() -> None:
    """With add_indicator a filled-in text is not the missing value: it stays a category."""
    imputer = SimpleImputer(strategy="constant", fill_value="none", add_indicator=True)
    words = make_pipeline(imputer, OneHotEncoder(handle_unknown="ignore"))
    pipeline = fitted(("region", words, ["region"]), ("age", "passthrough", ["age"]))
    assert_votes(pipeline, xcount.load(pipeline))


def test_a_column_feeds_several_steps() -> None:
    """The axis of an original column has the guards of all columns that are made of it."""
    pipeline = fitted(
        ("scaled", StandardScaler(), ["age", "income"]),
        ("binned", KBinsDiscretizer(4, encode="onehot", strategy="uniform"), ["age"]),
        ("log", FunctionTransformer(np.log1p), ["income"]),
        model=RandomForestClassifier(8, max_depth=4, random_state=0),
    )
    ensemble = xcount.load(pipeline)
    assert ensemble.feature_names == ("age", "income")
    assert any(tree.left_ranges for tree in ensemble.trees)
    assert_votes(pipeline, ensemble)


def test_scaled_thresholds_are_exact() -> None:
    """The guard is the first number that the scaler itself lifts over the tree's threshold."""
    rows = np.random.default_rng(0).normal(3.0, 7.0, size=(200, 1))
    tree = DecisionTreeRegressor(max_depth=5)
    for scaler in (StandardScaler(), MinMaxScaler(), FunctionTransformer(np.cbrt)):
        model = make_pipeline(scaler, tree).fit(rows, np.sin(rows[:, 0]))
        guards = Grid.of(xcount.load(model)).axes[0].thresholds
        assert len(guards) == model[-1].tree_.node_count // 2
        below = np.nextafter(guards, -np.inf)
        leaves = [model[-1].apply(model[0].transform(x[:, None])) for x in (below, guards)]
        assert (leaves[0] != leaves[1]).all()


def test_decreasing_functions_turn_the_tests() -> None:
    """A negative logarithm sends large numbers left."""
    rows = np.random.default_rng(1).lognormal(size=(200, 2))
    steps = (FunctionTransformer(np.log), FunctionTransformer(np.negative))
    model = make_pipeline(*steps, TREE).fit(rows, rows[:, 0] > 1)
    ensemble = xcount.load(model)
    points = np.random.default_rng(2).lognormal(size=(500, 2))
    np.testing.assert_allclose(ensemble.predict(points)[:, 0], model.predict_proba(points)[:, 1])


def test_a_pipeline_without_names_keeps_all_columns() -> None:
    """Arrays are matched by position, so a dropped column stays a feature."""
    rows = np.random.default_rng(0).normal(size=(100, 3))
    choice = ColumnTransformer([("last", StandardScaler(), [2]), ("first", "passthrough", [0])])
    model = make_pipeline(choice, TREE).fit(rows, rows[:, 2] > rows[:, 0])
    ensemble = xcount.load(model)
    assert ensemble.feature_names == ("f0", "f1", "f2")
    assert Grid.of(ensemble).cell_counts[1] == 1
    np.testing.assert_allclose(ensemble.predict(rows)[:, 0], model.predict_proba(rows)[:, 1])


def test_texts_in_arrays() -> None:
    """An array of objects has categories and numbers side by side."""
    rows = FRAME[["sex", "rooms", "age"]].to_numpy(dtype=object)
    choice = ColumnTransformer([("words", OneHotEncoder(), [0, 1])], remainder="passthrough")
    model = make_pipeline(choice, TREE).fit(rows, DECISIONS)
    ensemble = xcount.load(model)
    assert ensemble.features[0].labels == ("Female", "Male")
    assert ensemble.features[1].categories == (1, 2, 3, 4)
    found = ensemble.predict(read_table(rows, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, model.predict_proba(rows)[:, 1])


@pytest.mark.parametrize("outer", ["numbers", "names", "mask", "slice", "selector"])
def test_columns_are_chosen_in_every_way(outer: str) -> None:
    """By number, name, mask, slice of names, and by the kind of column."""
    chosen: dict[str, Any] = {
        "numbers": [4, -1],
        "names": ["age", "gain"],
        "mask": [False] * 4 + [True] + [False] * 2 + [True],
        "slice": slice("age", "gain"),
        "selector": make_column_selector(dtype_include=np.number),
    }
    pipeline = fitted(
        ("numbers", StandardScaler(), chosen[outer]),
        ("inner", make_pipeline(ColumnTransformer([("sex", OrdinalEncoder(), [0])])), ["sex"]),
        model=RandomForestClassifier(4, max_depth=4, random_state=0),
    )
    assert_votes(pipeline, xcount.load(pipeline))


def test_frames_between_steps_are_chosen_from_by_name() -> None:
    """With set_output, a later step names what an earlier one put out."""
    first = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["sex"])], remainder=StandardScaler()
    )
    second = ColumnTransformer([("few", MinMaxScaler(), ["words__sex_Male", "remainder__age"])])
    pipeline = make_pipeline(first, second, TREE).set_output(transform="pandas")
    pipeline.fit(FRAME[["sex", "age", "gain"]], DECISIONS)
    ensemble = xcount.load(pipeline)
    assert ensemble.feature_names == ("sex", "age", "gain")
    assert_votes(pipeline, ensemble)


@pytest.mark.parametrize(
    "selection",
    [
        SelectKBest(k=4),
        SelectFromModel(RandomForestClassifier(5, random_state=0), threshold="median"),
        RFE(DecisionTreeClassifier(random_state=0), n_features_to_select=4),
    ],
    ids=lambda selection: type(selection).__name__,
)
def test_selected_features(selection: Any) -> None:
    """What a selection leaves out is still an original column that can be asked about."""
    choice = ColumnTransformer(
        [
            ("words", OneHotEncoder(drop="first"), ["sex", "job"]),
            ("scale", StandardScaler(), ["age"]),
        ],
        remainder="drop",
    )
    pipeline = make_pipeline(choice, selection, TREE).fit(FRAME, DECISIONS)
    ensemble = xcount.load(pipeline)
    assert ensemble.feature_names == ("sex", "job", "age")
    assert_votes(pipeline, ensemble)


def test_several_classes() -> None:
    """Target encoding has a column for each class, and the model a sum for each."""
    classes = np.array(["low", "middle", "high"])[np.digitize(FRAME.age, [35, 60])]
    choice = ColumnTransformer(
        [("jobs", TargetEncoder(cv=2, random_state=0), ["job", "sex"])], remainder="drop"
    )
    pipeline = make_pipeline(choice, RandomForestClassifier(4, max_depth=5, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn 1.9 wants the seed elsewhere
        pipeline.fit(FRAME, classes)
    ensemble = xcount.load(pipeline)
    assert ensemble.class_labels == ("high", "low", "middle")
    assert_votes(pipeline, ensemble)


def test_numbers_are_predicted_too() -> None:
    """The margin of a regressor is what the pipeline predicts."""
    choice = ColumnTransformer(
        [("job", OrdinalEncoder(), ["job"]), ("age", "passthrough", ["age"])]
    )
    pipeline = make_pipeline(choice, GradientBoostingRegressor(n_estimators=8, random_state=0))
    ensemble = xcount.load(pipeline.fit(FRAME, FRAME.income))
    frame = edge_frame(ensemble, 300)
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, pipeline.predict(frame))
    assert ensemble.task == "regression"


def test_zeros_of_a_sparse_matrix_are_missing_to_xgboost() -> None:
    """XGBoost takes what a sparse matrix leaves out for missing, and so a number that is 0."""
    pipeline = fitted(
        ("words", OneHotEncoder(), ["sex", "job"]),
        ("gain", "passthrough", ["gain"]),
        model=xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1),
        sparse_threshold=1.0,
    )
    ensemble = xcount.load(pipeline)
    frame = edge_frame(ensemble, 300)
    frame.loc[:99, "gain"] = 0.0
    frame.loc[100:150, "gain"] = [5e-324, -5e-324, 1e-300] * 17
    margins = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    expected = pipeline.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-margins)), expected, atol=1e-6)
    assert any(tree.left_ranges for tree in ensemble.trees)  # a hole at 0


def count_by_the_pipeline(
    pipeline: Any, ensemble: Ensemble, sensitive: str, gap: float, distance: int | None
) -> int:
    """Count by the definition; the pipeline itself predicts a row of every region."""
    grid = Grid.of(ensemble)
    regions = list(itertools.product(*(range(n) for n in grid.cell_counts)))
    rows = np.array([grid.point(region) for region in regions])
    margins = pipeline.predict_proba(users_rows(ensemble, rows))[:, 1]
    index = {region: i for i, region in enumerate(regions)}
    axis, at = (
        grid.axes[ensemble.feature_names.index(sensitive)],
        ensemble.feature_names.index(sensitive),
    )
    found = 0
    for region in regions:
        others = [
            index[(*region[:at], cell, *region[at + 1 :])]
            for cell in range(axis.n_cells)
            if cell != region[at]
            and (distance is None or axis.distance(cell, region[at]) <= distance)
        ]
        found += any(abs(margins[index[region]] - margins[other]) > gap for other in others)
    return found


@pytest.mark.parametrize(("sensitive", "gap"), [("sex", "0.05"), ("job", "0.3"), ("age", "0.3")])
@pytest.mark.parametrize("distance", [1, None])
def test_counts_are_those_of_the_pipeline_itself(
    sensitive: str, gap: str, distance: int | None
) -> None:
    """Every region once, predicted by the pipeline on original rows."""
    pipeline = fitted(
        ("words", OneHotEncoder(drop="if_binary"), ["sex", "job"]),
        ("age", KBinsDiscretizer(4, encode="onehot", strategy="uniform"), ["age"]),
        ("scaled", StandardScaler(), ["age"]),
        model=RandomForestClassifier(5, max_depth=4, random_state=3),
    )
    ensemble = xcount.load(pipeline)
    assert any(tree.left_ranges for tree in ensemble.trees)
    expected = count_by_the_pipeline(pipeline, ensemble, sensitive, float(gap), distance)
    assert 0 < expected < Grid.of(ensemble).n_regions
    for method in ("exact", "brute"):
        asked: dict[str, Any] = {"sensitive": sensitive, "gap": gap, "distance": distance or "any"}
        assert xcount.count(pipeline, method=method, **asked).count == expected


def test_a_pipeline_counts_the_valid_combinations_of_its_one_hot_columns() -> None:
    """The model inside, on rows in which just one column of a group is 1, has the same count."""
    pipeline = fitted(
        ("job", OneHotEncoder(), ["job"]),
        ("sex", OneHotEncoder(), ["sex"]),
        ("age", "passthrough", ["age"]),
    )
    ensemble, inner = xcount.load(pipeline), xcount.load(pipeline[-1])
    ages = Grid.of(inner).axes[-1]
    cells = range(ages.n_cells)
    jobs, sexes = np.eye(5), np.eye(2)
    points = np.array(
        [
            [*job, *sex, ages.point(cell, "float64")]
            for job in jobs
            for sex in sexes
            for cell in cells
        ]
    )
    margins = inner.predict(points)[:, 0].reshape(5, 2, -1)
    changes = np.abs(margins[:, 0] - margins[:, 1]) > 0.2
    # Jobs that no test tells apart are one cell.
    distinct = len({row.tobytes() for row in np.ascontiguousarray(margins.reshape(5, -1))})
    counts = xcount.count(ensemble, sensitive="sex", gap="0.2", distance="any")
    grid = Grid.of(ensemble)
    weights = [len(codes) for codes in grid.axes[ensemble.feature_names.index("job")].classes]
    assert len(weights) == distinct
    representatives = [codes[0] for codes in grid.axes[1].classes]
    assert counts.count == 2 * int(changes[representatives].sum())
    assert counts.n_regions == distinct * 2 * ages.n_cells


def test_ordinal_codes_for_native_categories_are_the_native_model() -> None:
    """Codes that a model takes for categories give the count of the model on the texts."""
    options = {"max_iter": 6, "min_samples_leaf": 5, "random_state": 0}
    columns = ["sex", "job", "age"]
    native = HistGradientBoostingClassifier(categorical_features=["sex", "job"], **options)
    native.fit(FRAME[columns], DECISIONS)
    coded = make_pipeline(
        ColumnTransformer([("words", OrdinalEncoder(), ["sex", "job"])], remainder="passthrough"),
        HistGradientBoostingClassifier(categorical_features=[0, 1], **options),
    ).fit(FRAME[columns], DECISIONS)
    for sensitive in columns:
        asked: dict[str, Any] = {"sensitive": sensitive, "gap": "0.3", "distance": "any"}
        counts = [xcount.count(model, **asked) for model in (native, coded)]
        assert counts[0].count == counts[1].count
        assert counts[0].count
        assert counts[0].n_regions == counts[1].n_regions


def test_texts_that_pass_through_to_a_model_of_categories() -> None:
    """A step may leave texts to the model, which knows their names."""
    choice = ColumnTransformer(
        [("age", StandardScaler(), ["age"])], remainder="passthrough"
    ).set_output(transform="pandas")
    frame = FRAME[["sex", "job", "age"]].astype({"sex": "category", "job": "category"})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    pipeline = make_pipeline(choice, model).fit(frame, DECISIONS)
    ensemble = xcount.load(pipeline)
    assert ensemble.features[0].labels == ("Female", "Male")
    rows = read_table(frame, ensemble).rows
    np.testing.assert_allclose(ensemble.predict(rows)[:, 0], pipeline.decision_function(frame))
    xcount.load(pipeline, check=rows)


class Sampler:
    """A step that only changes training rows, as those of imbalanced-learn do."""

    def fit_resample(self, rows: Any, targets: Any) -> Any:
        return rows, targets


def test_a_step_that_draws_training_rows_does_nothing_to_inputs() -> None:
    """imbalanced-learn's pipelines have such steps."""
    pipeline = fitted(("age", StandardScaler(), ["age"]), ("sex", OneHotEncoder(), ["sex"]))
    expected = xcount.load(pipeline)
    pipeline.steps.insert(1, ("sampler", Sampler()))
    found = xcount.load(pipeline)
    rows = np.array([[0.0, 30.0], [1.0, 50.0]])
    np.testing.assert_array_equal(found.predict(rows), expected.predict(rows))


class OwnScaler(StandardScaler):  # type: ignore[misc]  # scikit-learn ships no types
    """A scaler that does something else."""

    def transform(self, X: Any, copy: Any = None) -> Any:  # noqa: N803  # scikit-learn's own name
        return super().transform(X, copy) * X[:, :1]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("mix", PCA(2))], r"^step 'mix' \(PCA\) cannot be pulled back"),
        ([("norm", Normalizer())], r"step 'norm' \(Normalizer\)"),
        ([("poly", PolynomialFeatures(2))], r"step 'poly' \(PolynomialFeatures\)"),
        ([("spline", SplineTransformer())], r"step 'spline' \(SplineTransformer\)"),
        ([("knn", KNNImputer())], r"step 'knn' \(KNNImputer\)"),
        ([("own", OwnScaler())], r"step 'own' \(OwnScaler\) is a StandardScaler with a transform"),
        ([("sin", FunctionTransformer(np.sin))], r"step 'sin' .* the function sin is not known"),
        (
            [("clip", FunctionTransformer(np.log, kw_args={"where": True}))],
            "the function log with options",
        ),
        (
            [("both", FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]))],
            r"step 'both', step 'b' \(PCA\)",
        ),
        (
            [("choice", ColumnTransformer([("in", Pipeline([("deep", PCA(1))]), [0, 1])]))],
            r"step 'choice', step 'in', step 'deep' \(PCA\)",
        ),
    ],
)
def test_what_mixes_columns_is_refused_by_name(steps: Sequence[Any], message: str) -> None:
    """One line that names the step."""
    rows = np.random.default_rng(0).lognormal(size=(60, 2))
    model = Pipeline([*steps, ("tree", DecisionTreeClassifier())]).fit(rows, rows[:, 0] > 1)
    with pytest.raises(UnsupportedModelError, match=message) as caught:
        xcount.load(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(StandardScaler(), TREE), "not fitted"),
        (make_pipeline(StandardScaler()), "its last step is no model"),
        (
            make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0], [1.0]], [0, 1]),
            "LogisticRegression is not supported",
        ),
    ],
    ids=["unfitted", "no model", "no trees"],
)
def test_other_pipelines_are_refused(model: Any, message: str) -> None:
    """One line that says what is wrong."""
    with pytest.raises(UnsupportedModelError, match=message):
        xcount.load(model)


def test_unknown_categories_of_a_table_need_leave() -> None:
    """An encoder that refuses them makes a table with one an error that lists the categories."""
    strict = xcount.load(fitted(("sex", OneHotEncoder(), ["sex"])))
    with pytest.raises(TableError, match=r"'Robot' is no category .*'Female', 'Male'"):
        read_table({"sex": ["Male", "Robot"]}, strict)
    lenient = xcount.load(fitted(("sex", OneHotEncoder(handle_unknown="ignore"), ["sex"])))
    assert read_table({"sex": ["Male", "Robot", "1"]}, lenient).rows[:, 0].tolist() == [1, 2, 2]


def test_numbers_can_be_categories() -> None:
    """A column of numbers that an encoder takes has their own values as codes."""
    ignoring = OneHotEncoder(handle_unknown="ignore")
    ensemble = xcount.load(fitted(("rooms", ignoring, ["rooms"])))
    (rooms,) = ensemble.features
    assert (rooms.categories, rooms.labels) == ((1, 2, 3, 4, 5), ("1", "2", "3", "4", "(other)"))
    rows = read_table({"rooms": ["1", "2.0", 3, 4.0, 77, "88", ""]}, ensemble).rows[:, 0]
    assert rows.tolist()[:6] == [1, 2, 3, 4, 5, 5]
    assert np.isnan(rows[6])


def test_truth_values_can_be_categories() -> None:
    """False and True are names, in any spelling of a table."""
    frame = pd.DataFrame({"member": FRAME.sex == "Male", "age": FRAME.age})
    choice = ColumnTransformer([("flag", OneHotEncoder(), ["member"])], remainder="passthrough")
    model = make_pipeline(choice, TREE).fit(frame, DECISIONS)
    ensemble = xcount.load(model)
    assert ensemble.features[0].labels == ("False", "True")
    table = {"member": [True, "true", "FALSE", False], "age": [30, 30, 40, 40]}
    assert read_table(table, ensemble).rows[:, 0].tolist() == [1, 1, 0, 0]
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, model.predict_proba(frame)[:, 1])
    assert len(frame) == N_ROWS
