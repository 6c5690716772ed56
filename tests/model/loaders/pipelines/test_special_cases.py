"""Settings of transformers and models that are easy to get wrong."""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from random_pipelines import people
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier
from test_random_pipelines import assert_same
from threadpoolctl import threadpool_limits

import xcount
from xcount.model.tables import read_table
from xcount.question.grid import Grid

FRAME, DECISIONS = people()
TREE = DecisionTreeClassifier(max_depth=6, random_state=0)
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
WORDS = ["sex", "job"]


def boosted(**options: Any) -> Any:
    """Return a LightGBM model that takes all columns for categories."""
    options |= {"n_estimators": 5, "min_child_samples": 2, "min_data_per_group": 1}
    return lightgbm.LGBMClassifier(cat_smooth=1.0, n_jobs=1, verbose=-1, **options)


CASES: dict[str, tuple[list[Any], Any]] = {
    "flags of several columns": (
        [
            ("fill", SimpleImputer(add_indicator=True), ["debt", "age"]),
            ("w", OneHotEncoder(), WORDS),
        ],
        TREE,
    ),
    "categories that were given": (
        [("words", OrdinalEncoder(categories=[["Male", "Female", "Other"]]), ["sex"])],
        TREE,
    ),
    "a union with all and nothing": (
        [
            (
                "union",
                FeatureUnion(
                    [("p", "passthrough"), ("d", "drop"), ("q", QuantileTransformer(n_quantiles=9))]
                ),
                ["age", "income"],
            )
        ],
        TREE,
    ),
    "three encoders of one column": (
        [
            ("a", OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"), ["job"]),
            ("b", TargetEncoder(cv=2), WORDS),
            ("c", OrdinalEncoder(**UNKNOWN), ["job"]),
        ],
        RandomForestClassifier(5, max_depth=5, random_state=0),
    ),
    "codes for categories of LightGBM": (
        [("words", OrdinalEncoder(), WORDS)],
        boosted(categorical_feature=[0, 1]),
    ),
    "bins for categories of LightGBM": (
        [("bins", KBinsDiscretizer(6, encode="ordinal", strategy="uniform"), ["age", "income"])],
        boosted(categorical_feature=[0, 1]),
    ),
    "bins for categories of HistGradientBoosting": (
        [("bins", KBinsDiscretizer(6, encode="ordinal", strategy="uniform"), ["age", "income"])],
        HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 1], min_samples_leaf=2),
    ),
    "unknown codes for HistGradientBoosting": (
        [("words", OrdinalEncoder(**UNKNOWN), WORDS)],
        HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 1], min_samples_leaf=2),
    ),
    "unknown codes for XGBoost": (
        [("words", OrdinalEncoder(**UNKNOWN), WORDS)],
        xgboost.XGBClassifier(
            n_estimators=5, enable_categorical=True, feature_types=["c", "c"], n_jobs=1
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_case_predicts_what_the_pipeline_does(case: str) -> None:
    """At thresholds, next to them, at gaps and unknown categories."""
    members, model = CASES[case]
    pipeline = make_pipeline(ColumnTransformer(members), model)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tiny training data
        pipeline.fit(FRAME, DECISIONS)
        assert_same(pipeline, xcount.load(pipeline))


def fitted(members: list[Any], frame: pd.DataFrame, **options: Any) -> Any:
    """Return a fitted pipeline around a tree."""
    return make_pipeline(ColumnTransformer(members, **options), TREE).fit(frame, DECISIONS)


@pytest.mark.parametrize("keep", [False, True])
def test_columns_without_any_value(keep: bool) -> None:
    """An imputer drops a column that was always missing, or keeps it as a constant."""
    frame = FRAME[["debt", "age"]].assign(empty=np.nan)[["debt", "empty", "age"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the column is skipped
        imputer = SimpleImputer(keep_empty_features=keep)
        pipeline = fitted([("fill", imputer, ["debt", "empty", "age"])], frame)
        expected = pipeline.predict_proba(frame)[:, 1]
    ensemble = xcount.load(pipeline)
    assert ensemble.feature_names == ("debt", "empty", "age")
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, expected)


def test_kinds_of_columns_of_pandas() -> None:
    """Texts may be objects, strings or categories; the rest may have steps of its own."""
    frame = FRAME[["sex", "job", "debt", "age"]].astype({"sex": "category", "job": "string"})
    rest = make_pipeline(SimpleImputer(), MinMaxScaler())
    pipeline = fitted([("words", OneHotEncoder(), WORDS)], frame, remainder=rest)
    ensemble = xcount.load(pipeline)
    assert ensemble.features[0].labels == ("Female", "Male")
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, pipeline.predict_proba(frame)[:, 1])


def test_none_is_the_missing_value_of_an_encoder_that_knows_it() -> None:
    """To scikit-learn None and NaN are two categories; the one that training had is missing."""
    region = FRAME.region.where(FRAME.region.notna(), None).astype(object)
    frame = pd.DataFrame({"region": region.to_numpy()}, dtype=object)
    pipeline = fitted([("words", OneHotEncoder(handle_unknown="ignore"), ["region"])], frame)
    ensemble = xcount.load(pipeline)
    assert (ensemble.features[0].labels or ())[:3] == ("north", "south", "west")
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, pipeline.predict_proba(frame)[:, 1])


@pytest.mark.parametrize("function", [np.sqrt, np.log1p])
def test_numbers_without_an_image_are_a_cell_where_the_pipeline_takes_them(function: Any) -> None:
    """The root of a negative number is NaN: a value to a tree, but refused by other steps."""
    rows = np.random.default_rng(0).integers(0, 9, size=(200, 1)).astype(np.float64)
    target, first = rows[:, 0] % 4 > 1, 0.0 if function is np.sqrt else -1.0
    refusing = GradientBoostingClassifier(n_estimators=3, max_depth=6, random_state=0)
    for is_taken, *steps in ((True, TREE), (False, refusing), (False, SelectKBest(k=1), TREE)):
        pipeline = make_pipeline(FunctionTransformer(function), *steps).fit(rows, target)
        guards = Grid.of(xcount.load(pipeline)).axes[0].thresholds
        assert (first in guards) == is_taken, steps
        assert (guards[guards != first] > first).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_trees_refuse_missing_values_in_a_sparse_matrix(is_sparse: bool) -> None:
    """So there is a missing cell just where the pipeline itself predicts for a missing value."""
    frame = FRAME.assign(age=FRAME["age"].fillna(0.0))
    members = [("words", OneHotEncoder(), ["sex"]), ("age", "passthrough", ["age"])]
    pipeline = fitted(members, frame, sparse_threshold=float(is_sparse))
    takes = {feature.name: feature.can_be_missing for feature in xcount.load(pipeline).features}
    assert takes == {"sex": False, "age": not is_sparse}
    row = pd.DataFrame({"sex": ["Male"], "age": [np.nan]})
    if is_sparse:
        with pytest.raises(ValueError, match="NaN"):
            pipeline.predict(row)
    else:
        pipeline.predict(row)
