"""Random pipelines over one small table, and rows on which a wrong pull-back gives itself away."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier

from xcount.model.ensemble import Ensemble
from xcount.question.grid import Grid

N_ROWS = 160


@functools.cache
def people() -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return a table of people with texts, numbers, gaps and zeros, and a decision about each."""
    rng = np.random.default_rng(0)
    jobs = rng.choice(
        ["clerk", "cook", "smith", "judge", "monk"], N_ROWS, p=[0.4, 0.3, 0.2, 0.06, 0.04]
    )
    region = rng.choice(np.array(["north", "south", "west", np.nan], dtype=object), N_ROWS)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["Female", "Male"], N_ROWS),
            "job": jobs,
            "region": pd.Series(region, dtype=object),
            "rooms": rng.integers(1, 5, N_ROWS).astype(np.float64),
            "age": rng.uniform(18, 80, N_ROWS).round(1),
            "income": rng.lognormal(size=N_ROWS).round(2) + 0.01,
            "debt": np.where(rng.random(N_ROWS) < 0.2, np.nan, rng.normal(size=N_ROWS).round(1)),
            "gain": np.where(rng.random(N_ROWS) < 0.5, 0.0, rng.normal(size=N_ROWS).round(2)),
        }
    )
    score = (frame.sex == "Male") + (frame.job == "cook") * 1.5 + (frame.region == "west")
    score = score + frame.income - (frame.age / 40 - 1) ** 2 - frame.debt.isna() + frame.gain
    noise = rng.normal(scale=0.3, size=N_ROWS)
    return frame, (score + noise > np.median(score)).astype(np.int64).to_numpy()


POSITIVE = ("income",)
"""Columns that some transformers take only where they are positive."""

_CATEGORY: tuple[Callable[[], Any], ...] = (
    OneHotEncoder,
    lambda: OneHotEncoder(drop="first"),
    lambda: OneHotEncoder(drop="if_binary", sparse_output=False),
    lambda: OneHotEncoder(handle_unknown="ignore"),
    lambda: OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False),
    lambda: OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20),
    lambda: OneHotEncoder(handle_unknown="ignore", max_categories=2, dtype=np.float32),
    OrdinalEncoder,
    lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=-2
    ),
    lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=9, max_categories=2, dtype=np.float32
    ),
    lambda: TargetEncoder(random_state=0, cv=2),
    lambda: make_pipeline(
        SimpleImputer(strategy="constant", fill_value="unknown"), OneHotEncoder(drop="first")
    ),
    lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    ),
    lambda: make_pipeline(OrdinalEncoder(), StandardScaler()),
    lambda: make_pipeline(OneHotEncoder(), MaxAbsScaler()),
)
_NUMBER: tuple[Callable[[], Any], ...] = (
    lambda: "passthrough",
    StandardScaler,
    MinMaxScaler,
    lambda: MinMaxScaler(clip=True, feature_range=(-1, 2)),
    RobustScaler,
    MaxAbsScaler,
    PowerTransformer,
    lambda: QuantileTransformer(n_quantiles=15),
    lambda: QuantileTransformer(n_quantiles=15, output_distribution="normal"),
    lambda: Binarizer(threshold=0.5),
    lambda: make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    lambda: make_pipeline(
        SimpleImputer(strategy="median"),
        KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf"),
    ),
    lambda: make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-9.0),
        KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    ),
    lambda: make_pipeline(
        StandardScaler(),
        SimpleImputer(),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
    ),
    lambda: make_pipeline(FunctionTransformer(np.square), StandardScaler()),
    lambda: make_pipeline(StandardScaler(), FunctionTransformer(np.abs)),
    lambda: make_pipeline(FunctionTransformer(np.negative), RobustScaler()),
    lambda: FeatureUnion(
        [("flag", MissingIndicator(features="all")), ("scaled", StandardScaler())]
    ),
    lambda: make_pipeline(SimpleImputer(missing_values=0.0, strategy="mean"), MinMaxScaler()),
    lambda: make_pipeline(
        SimpleImputer(),
        KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        OneHotEncoder(),
    ),
)
_POSITIVE: tuple[Callable[[], Any], ...] = (
    lambda: FunctionTransformer(np.log1p),
    lambda: make_pipeline(FunctionTransformer(np.log), StandardScaler()),
    lambda: FunctionTransformer(np.sqrt),
    lambda: PowerTransformer(method="box-cox"),
)
_MODELS: tuple[Callable[[], Any], ...] = (
    lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
    lambda: lightgbm.LGBMClassifier(
        n_estimators=6, num_leaves=7, min_child_samples=3, n_jobs=1, verbose=-1
    ),
    lambda: catboost.CatBoostClassifier(
        n_estimators=5, depth=3, thread_count=1, verbose=0, allow_writing_files=False
    ),
    lambda: RandomForestClassifier(5, max_depth=5, random_state=0),
    lambda: ExtraTreesClassifier(5, max_depth=5, random_state=0),
    lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    lambda: HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3, random_state=0),
)
_CATEGORIES = ("sex", "job", "region", "rooms")
_NUMBERS = ("age", "income", "debt", "gain", "rooms")


def random_pipeline(seed: int) -> Any:
    """Return a random pipeline that is fitted on the people; one that cannot be is drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        try:
            return _drawn(rng)
        except (ValueError, TypeError):
            continue


def _drawn(rng: np.random.Generator) -> Any:
    members = []
    for name in ("sex", "job", "region", "rooms", "age", "income", "debt", "gain"):
        known: list[Any] = [*(_CATEGORY if name in _CATEGORIES else ())]
        known += _NUMBER if name in _NUMBERS else ()
        known += _POSITIVE * 2 if name in POSITIVE else ()
        for place in range(int(rng.choice([0, 1, 1, 1, 2]))):
            members.append((f"{name} {place}", known[rng.integers(len(known))](), [name]))
    members.append(("both", StandardScaler(), ["debt", "age"]))
    rng.shuffle(members)
    threshold = float(rng.choice([0.0, 0.3, 1.0]))
    steps: list[Any] = [ColumnTransformer(members, sparse_threshold=threshold)]
    steps += [VarianceThreshold(0.0)] if rng.random() < 0.3 else []
    model = _MODELS[rng.integers(len(_MODELS))]()
    needs_numbers = isinstance(model, GradientBoostingClassifier)
    steps += [SimpleImputer()] if needs_numbers or rng.random() < 0.1 else []
    return make_pipeline(*steps, model).fit(*people())


def edge_frame(ensemble: Ensemble, n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Return original rows with every threshold, its neighbours, gaps and unknown categories."""
    rng = np.random.default_rng(seed)
    grid = Grid.of(ensemble)
    columns: dict[str, Any] = {}
    for feature, axis in zip(ensemble.features, grid.axes, strict=True):
        if feature.is_categorical:
            labels: list[Any] = list(feature.labels or feature.categories or ())
            if feature.other is not None:
                labels[-1] = "unheard of" if feature.name != "rooms" else 77
            if feature.name == "rooms":
                labels = [float(label) for label in labels]
            values = np.array([*labels, *feature.missing_labels], dtype=object)
        else:
            at = axis.thresholds
            known = people()[0][feature.name].to_numpy(dtype=np.float64)
            beside = [at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), known, [-0.0, 0.0]]
            values = np.concatenate(beside)
            values = values[~np.isnan(values)]
            values = values[values > 0] if feature.name in POSITIVE else values
        chosen = rng.choice(values, n_rows)
        if feature.can_be_missing:
            chosen[rng.random(n_rows) < 0.1] = np.nan
        columns[feature.name] = chosen
    return pd.DataFrame(columns)
