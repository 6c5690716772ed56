"""Random pipelines, and questions about them that the pipeline itself can answer.

A pipeline is drawn step by step: encoders, scalers, imputers, functions, binning, selection,
nested column transformers. The loaded model must predict what the pipeline predicts, on original
rows at thresholds and next to them, with missing values and unknown categories; and a small count
must equal a plain enumeration of regions in which only the pipeline decides.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
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

from xcount import Ensemble, Grid, count, load
from xcount.errors import TableError, UnsupportedModelError
from xcount.model.tables import read_table

N_ROWS = 90
MAX_REGIONS = 700
_WORDS = ("sex", "job", "region")
_NUMBERS = ("age", "debt", "gain", "rooms")
_POSITIVE = ("gain", "rooms")
Random = np.random.Generator
Maker = Callable[[Random], Any]


def _one_of(random: Random, *values: Any) -> Any:
    return values[int(random.integers(len(values)))]


def training_rows(random: Random) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a table with texts, numbers and missing values, and two or three classes."""
    jobs = ["clerk", "cook", "smith", "judge", "monk"]
    frame = pd.DataFrame(
        {
            "sex": random.choice(["Female", "Male"], N_ROWS),
            "job": random.choice(jobs, N_ROWS, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "region": random.choice(np.array(["north", "south", np.nan], dtype=object), N_ROWS),
            "rooms": random.integers(1, 5, N_ROWS).astype(np.float64),
            "age": random.integers(18, 80, N_ROWS).astype(np.float64),
            "debt": np.where(
                random.random(N_ROWS) < 0.2, np.nan, random.normal(0.0, 3.0, N_ROWS).round(1)
            ),
            "gain": random.lognormal(1.0, 1.0, N_ROWS).round(2),
        }
    )
    score = (frame["sex"] == "Male") + (frame["age"] > 40) + (frame["job"] == "cook") * 1.0
    score += frame["debt"].fillna(2.0) / 4.0 + np.log(frame["gain"]) / 2.0
    score += random.normal(0.0, 0.3, N_ROWS)
    if random.random() < 0.4:
        return frame, np.array(["low", "mid", "top"])[np.digitize(score, [0.8, 1.9])]
    return frame, (score > score.median()).to_numpy().astype(np.int64)


def _encoder(random: Random) -> Any:
    """Return a random encoder of categories."""
    rare = {"min_frequency": int(random.integers(5, 30))}
    rare = _one_of(random, {}, {}, rare, {"max_categories": int(random.integers(2, 5))})
    kind = int(random.integers(8))
    if kind < 4:
        unknown = _one_of(random, "error", "ignore", "infrequent_if_exist", "warn")
        drop = _one_of(random, None, "first", "if_binary")
        return OneHotEncoder(handle_unknown=unknown, drop=drop, **rare)
    if kind < 6:
        if random.random() < 0.3:
            return OrdinalEncoder(**rare)
        value = _one_of(random, -1, 9, np.nan)
        missing = _one_of(random, np.nan, -2)
        return OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=value,
            encoded_missing_value=missing,
            **rare,
        )
    return TargetEncoder(smooth=_one_of(random, "auto", 5.0), cv=2, random_state=0)


def _imputer(random: Random, word: bool) -> Any:
    flags = bool(random.random() < 0.3)
    if word:
        constant = _one_of(random, "none", "north", "cook")
        return _one_of(
            random,
            SimpleImputer(strategy="most_frequent", add_indicator=flags),
            SimpleImputer(strategy="constant", fill_value=constant, add_indicator=flags),
        )
    return _one_of(
        random,
        SimpleImputer(strategy=_one_of(random, "mean", "median", "most_frequent")),
        SimpleImputer(add_indicator=True),
        SimpleImputer(strategy="constant", fill_value=-9.0, add_indicator=flags),
        SimpleImputer(missing_values=float(random.integers(1, 4)), strategy="mean"),
    )


_FUNCTIONS = (
    *(None, np.exp, np.exp2, np.expm1, np.cbrt, np.arctan, np.arcsinh, np.sinh, np.tanh),
    *(np.negative, np.positive, np.sign, np.floor, np.ceil, np.rint, np.trunc, np.float32),
    *(np.deg2rad, np.rad2deg, np.radians, np.degrees, np.square, np.abs, np.fabs, np.isnan),
)
_OF_POSITIVE = (np.sqrt, np.log, np.log2, np.log10, np.log1p)


def _number_step(random: Random, positive: bool) -> Any:
    """Return a random transformer of numbers."""
    functions = (*_FUNCTIONS, *(_OF_POSITIVE * 4 if positive else ()))
    normal = _one_of(random, "uniform", "normal")
    return _one_of(
        random,
        "passthrough",
        StandardScaler(with_mean=bool(random.integers(2)), with_std=bool(random.integers(2))),
        MinMaxScaler(clip=bool(random.integers(2)), feature_range=(-1, 2)),
        RobustScaler(with_centering=bool(random.integers(2))),
        MaxAbsScaler(),
        PowerTransformer(standardize=bool(random.integers(2))),
        *([PowerTransformer(method="box-cox")] if positive else []),
        QuantileTransformer(n_quantiles=int(random.integers(3, 20)), output_distribution=normal),
        Binarizer(threshold=float(random.integers(0, 3))),
        FunctionTransformer(functions[int(random.integers(len(functions)))]),
        FunctionTransformer(functions[int(random.integers(len(functions)))]),
        KBinsDiscretizer(
            int(random.integers(2, 5)),
            encode=_one_of(random, "onehot", "onehot-dense", "ordinal"),
            strategy=_one_of(random, "uniform", "quantile", "kmeans"),
            quantile_method="averaged_inverted_cdf",
            random_state=0,
        ),
        _imputer(random, word=False),
        MissingIndicator(features="all"),
        FeatureUnion([("flag", MissingIndicator(features="all")), ("as is", "passthrough")]),
        FeatureUnion([("scaled", StandardScaler()), ("folded", FunctionTransformer(np.abs))]),
    )


def _chain(random: Random, name: str) -> Any:
    """Return the steps of one column."""
    steps: list[Any] = []
    is_word = name in _WORDS or (name == "rooms" and random.random() < 0.5)
    if is_word:
        if random.random() < 0.3:
            steps.append(_imputer(random, word=name != "rooms"))
        steps.append(_encoder(random))
    for _ in range(int(random.integers(0 if is_word else 1, 3))):
        steps.append(_number_step(random, positive=name in _POSITIVE and not is_word and not steps))
    if random.random() < 0.15:
        steps.append(VarianceThreshold(0.0))
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


def _columns(random: Random, names: Sequence[str], depth: int) -> ColumnTransformer:
    """Return a column transformer, which may contain others."""
    members: list[Any] = []
    for name in names:
        for place in range(int(_one_of(random, 1, 1, 1, 2))):
            step = "drop" if random.random() < 0.07 else _chain(random, name)
            members.append((f"{name} {place}", step, [name]))
    if depth > 0 and random.random() < 0.6:
        chosen = sorted({str(name) for name in random.choice(names, 2)})
        members.append(("inner", _columns(random, chosen, depth - 1), chosen))
    order = random.permutation(len(members))
    return ColumnTransformer(
        [members[i] for i in order],
        remainder="drop",
        sparse_threshold=float(_one_of(random, 0.0, 0.3, 1.0)),
    )


def _selection(random: Random) -> Any:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return _one_of(
        random,
        VarianceThreshold(0.0),
        SelectKBest(k=2),
        SelectPercentile(percentile=60),
        GenericUnivariateSelect(mode="k_best", param=2),
        SelectFromModel(tree),
        RFE(tree, n_features_to_select=2),
    )


def _model(random: Random) -> Any:
    return _one_of(
        random,
        DecisionTreeClassifier(max_depth=int(random.integers(1, 5)), random_state=0),
        RandomForestClassifier(3, max_depth=3, random_state=0),
        ExtraTreesClassifier(3, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0),
    )


def random_pipeline(seed: int) -> tuple[Any, pd.DataFrame]:
    """Return a fitted pipeline and its training rows; one that cannot be fitted is drawn again."""
    for attempt in itertools.count():
        random = np.random.default_rng([seed, attempt])
        frame, target = training_rows(random)
        words = random.choice(_WORDS, int(random.integers(1, 3)), replace=False)
        numbers = random.choice(_NUMBERS, int(random.integers(1, 3)), replace=False)
        names = [str(name) for name in (*words, *numbers)]
        steps: list[Any] = [_columns(random, names, depth=2)]
        steps += [SimpleImputer()] if random.random() < 0.3 else []
        steps += [_selection(random)] if random.random() < 0.5 else []
        pipeline = make_pipeline(*steps, _model(random))
        try:
            return pipeline.fit(frame[names], target), frame[names]
        except (ValueError, TypeError):
            continue
    raise AssertionError


def candidates(pipeline: Any, frame: pd.DataFrame, ensemble: Ensemble) -> dict[str, list[Any]]:
    """Return values for each original column: edges, missing and unknown values."""
    axes = {axis.feature.name: axis for axis in Grid.of(ensemble).axes}
    found: dict[str, list[Any]] = {}
    for name in frame.columns:
        known = frame[name].drop_duplicates().tolist()
        values: list[Any] = known[:6]
        if frame[name].dtype == object:
            values += ["unheard of", "none", None, np.nan]
        else:
            at = axes[name].thresholds if name in axes else np.empty(0)
            beside = (at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf))
            values += [*np.concatenate(beside).tolist(), 0.0, -0.0, 1e6, 77.0, 2.5, np.nan]
            values = [v for v in values if not (name in _POSITIVE and v <= 0)]
        taken = (value for value in values if _takes(pipeline, frame, name, value))
        # A column of numbers that feeds an encoder has only the categories of that encoder.
        found[name] = [v for v in taken if v in known or _is_read(ensemble, frame, name, v)]
    return found


def _is_read(ensemble: Ensemble, frame: pd.DataFrame, name: str, value: Any) -> bool:
    """Tell whether the loaded pipeline reads a number; it must read texts and missing values."""
    if name != "rooms" or np.isnan(value):
        return True
    try:
        read_table(_row(frame, name, value), ensemble)
    except TableError:
        return False
    return True


def _row(frame: pd.DataFrame, name: str, value: Any) -> pd.DataFrame:
    row = frame.iloc[:1].copy()
    row[name] = pd.Series([value], index=row.index, dtype=frame[name].dtype)
    return row


def _takes(pipeline: Any, frame: pd.DataFrame, name: str, value: Any) -> bool:
    """Tell whether the pipeline predicts for a row with this value."""
    try:
        pipeline.predict_proba(_row(frame, name, value))
    except (ValueError, TypeError):
        return False
    return True


def findings(seed: int) -> Iterator[str]:
    """Draw a pipeline, ask about it, and yield the errors found."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tiny training data, and of unknown categories
        pipeline, frame = random_pipeline(seed)
        try:
            ensemble = load(pipeline)
        except UnsupportedModelError as error:
            if "is not known to be monotone" not in str(error):
                yield f"refused: {error}"
            return
        random = np.random.default_rng([seed, 1234])
        yield from _wrong_predictions(pipeline, frame, ensemble, random)
        yield from _wrong_counts(pipeline, frame, ensemble, random)


def _wrong_predictions(
    pipeline: Any, frame: pd.DataFrame, ensemble: Ensemble, random: Random
) -> Iterator[str]:
    values = candidates(pipeline, frame, ensemble)
    drawn = {
        name: pd.Series(
            [values[name][i] for i in random.integers(len(values[name]), size=200)],
            dtype=frame[name].dtype,
        )
        for name in frame.columns
    }
    rows = pd.DataFrame(drawn)
    try:
        table = read_table(rows, ensemble).rows
    except TableError as error:
        yield f"the pipeline takes what is refused: {error}"
        return
    expected = pipeline.predict_proba(rows)
    found = _probabilities(ensemble, table)
    wrong = np.abs(found - expected).max(axis=1) > 3e-6
    for index in np.flatnonzero(wrong)[:1]:
        yield (
            f"row {rows.iloc[index].to_dict()}: the pipeline says {expected[index]}, "
            f"what was loaded {found[index]}"
        )


def _probabilities(ensemble: Ensemble, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of all classes, in floats."""
    margins = ensemble.predict(rows)
    if ensemble.n_outputs > 1:
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        softmax: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return margins if ensemble.probability == "margin" else softmax
    chance = margins if ensemble.probability == "margin" else 1.0 / (1.0 + np.exp(-margins))
    return np.hstack([1.0 - chance, chance])


def _wrong_counts(
    pipeline: Any, frame: pd.DataFrame, ensemble: Ensemble, random: Random
) -> Iterator[str]:
    """Count flips and changes of probability region by region, as the pipeline predicts."""
    missing = _one_of(random, "none", "cell")
    grid = Grid.of(ensemble, missing=missing)
    if grid.n_regions > MAX_REGIONS or not len(grid.axes):
        return
    regions = np.array(list(itertools.product(*(range(n) for n in grid.cell_counts))))
    points = np.array([grid.point(region) for region in regions])
    for axis, values in zip(grid.axes, points.T, strict=True):
        is_cut = len(axis.thresholds) > 0 and axis.thresholds[0] <= 0
        if axis.feature.name in _POSITIVE and not axis.feature.is_categorical and not is_cut:
            first = np.nextafter(axis.thresholds[0], -np.inf) if len(axis.thresholds) else 1.0
            values[values <= 0] = first  # logarithms and similar functions refuse other numbers
    rows = _users_rows(ensemble, points, frame)
    try:
        chances = pipeline.predict_proba(rows)
    except (ValueError, TypeError) as error:
        if "strictly positive" not in str(error):  # a region may lie outside a logarithm's domain
            yield f"the pipeline refuses a region's point: {error}"
        return
    feature = int(random.integers(len(grid.axes)))
    distance = _one_of(random, 1, 2, None)
    near = _neighbours(grid, regions, feature, distance)
    sums = np.argmax(chances, axis=1)
    expected = sum(bool((sums[others] != sums[i]).any()) for i, others in enumerate(near))
    question = {"sensitive": feature, "missing": missing, "distance": distance or "any"}
    found = count(ensemble, flip=True, **question)
    if not _has_ties(chances) and (found.count, found.exact) != (expected, True):
        yield f"{question}, flips: the pipeline has {expected}, counted were {found.count}"
    output = int(random.integers(ensemble.n_outputs))
    column = chances[:, output + (ensemble.n_outputs == 1)]
    moves = [np.abs(column[others] - column[i]).max(initial=0.0) for i, others in enumerate(near)]
    gap = round(float(random.choice(moves)) * 0.7 + 0.0123, 4)
    if gap < 1 and np.abs(np.array(moves) - gap).min() > 1e-5:
        expected = sum(move > gap for move in moves)
        result = count(ensemble, probability_gap=gap, class_=output, **question)
        if (result.count, result.exact) != (expected, True):
            yield f"{question}, gap {gap}: the pipeline has {expected}, counted {result.count}"


def _has_ties(chances: NDArray[np.float64]) -> bool:
    """Tell whether two classes are so close that rounding decides."""
    ordered = np.sort(chances, axis=1)
    return bool((ordered[:, -1] - ordered[:, -2] < 1e-6).any())


def _neighbours(
    grid: Grid, regions: NDArray[np.int64], feature: int, distance: int | None
) -> list[NDArray[np.int64]]:
    """Return, for each region, those within the distance that differ only in one feature's cell."""
    axis = grid.axes[feature]
    rest = np.delete(regions, feature, axis=1)
    found = []
    for i, region in enumerate(regions):
        same = np.flatnonzero((rest == rest[i]).all(axis=1))
        far = [axis.distance(int(region[feature]), int(regions[j, feature])) for j in same]
        found.append(
            np.array(
                [j for j, d in zip(same, far, strict=True) if d > 0 and d <= (distance or d)],
                dtype=np.int64,
            )
        )
    return found


def _users_rows(
    ensemble: Ensemble, points: NDArray[np.float64], frame: pd.DataFrame
) -> pd.DataFrame:
    """Return inputs in the users' form: categories by name, all columns of the table."""
    columns: dict[str, Any] = {name: frame[name].iloc[[0] * len(points)] for name in frame.columns}
    for feature, values in zip(ensemble.features, points.T, strict=True):
        column: list[Any] = values.tolist()
        if feature.labels is not None:
            names: dict[float, Any] = dict(
                zip(feature.categories or (), feature.labels, strict=True)
            )
            if feature.other is not None:
                names[feature.other] = 55.5 if feature.name == "rooms" else "unheard of"
            column = [np.nan if np.isnan(value) else names[value] for value in values]
        columns[feature.name] = pd.Series(column).astype(frame[feature.name].dtype).to_numpy()
    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})
