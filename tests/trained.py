"""Models that the libraries train on one small table, and what they predict.

Nothing here knows cells, leaves or regions: every row is predicted as it is and with every other
value of a column, by the library that trained the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pd = pytest.importorskip("pandas")
N_ROWS = 150
COLOURS = ("blue", "green", "grey", "red")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trained:
    """A model, its rows, and its predictions; ``output`` is what changes."""

    model: Any
    rows: Any
    output: Callable[[Any], Floats]
    decide: Callable[[Any], NDArray[np.int64]]


def table(has_categories: bool) -> tuple[Any, Floats]:
    """Return rows and what is to be predicted."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        {
            "a": rng.integers(0, 6, N_ROWS).astype(float),
            "b": rng.normal(size=N_ROWS).round(2),
            "k": pd.Categorical(rng.choice(COLOURS, N_ROWS), categories=COLOURS),
        }
    )
    target = rows.b + 0.6 * (rows.a > 2) * (rows.k == "red") - 0.5 * (rows.k == "blue")
    target = (target + rng.normal(0, 0.3, N_ROWS)).to_numpy()
    if not has_categories:
        rows["k"] = rows.k.cat.codes.astype(float)
    return rows, target


def boosted(n_classes: int) -> Trained:
    """XGBoost, of two classes or of three."""
    xgboost = pytest.importorskip("xgboost")
    rows, target = table(has_categories=True)
    labels = np.digitize(target, [0.0] if n_classes == 2 else [-0.4, 0.4])
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3, enable_categorical=True)
    model.fit(rows, labels)
    return Trained(model, rows, lambda t: model.predict_proba(t)[:, 1], model.predict)


def light() -> Trained:
    """LightGBM, with categories."""
    lightgbm = pytest.importorskip("lightgbm")
    rows, target = table(has_categories=True)
    model = lightgbm.LGBMClassifier(
        n_estimators=8, min_child_samples=5, min_data_per_group=5, cat_smooth=1, verbose=-1
    ).fit(rows, target > 0)
    return Trained(
        model, rows, lambda t: model.predict_proba(t)[:, 1], lambda t: model.predict(t).astype(int)
    )


def forest() -> Trained:
    """A forest of scikit-learn."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, target = table(has_categories=False)
    model = ensemble.RandomForestClassifier(7, max_depth=4, random_state=0).fit(rows, target > 0)
    return Trained(
        model, rows, lambda t: model.predict_proba(t)[:, 1], lambda t: model.predict(t).astype(int)
    )


def regression() -> Trained:
    """A regressor, which decides by a cut-off of ours."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, target = table(has_categories=False)
    model = ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0).fit(rows, target)
    return Trained(model, rows, model.predict, lambda t: (model.predict(t) > 0.05).astype(int))


def cat() -> Trained:
    """CatBoost, on numbers."""
    catboost = pytest.importorskip("catboost")
    rows, target = table(has_categories=False)
    model = catboost.CatBoostClassifier(
        iterations=8, depth=3, verbose=0, allow_writing_files=False, random_seed=0
    ).fit(rows, (target > 0).astype(int))
    return Trained(
        model,
        rows,
        lambda t: model.predict_proba(t)[:, 1],
        lambda t: np.ravel(model.predict(t)).astype(int),
    )


MAKERS: dict[str, Callable[[], Trained]] = {
    "two classes": lambda: boosted(2),
    "three classes": lambda: boosted(3),
    "LightGBM": light,
    "forest": forest,
    "regression": regression,
    "CatBoost": cat,
}


def moved(rows: Any, name: str) -> Iterator[Any]:
    """Yield the rows with each value of a column that a cell could hold."""
    if isinstance(rows[name].dtype, pd.CategoricalDtype):
        for colour in COLOURS:
            yield rows.assign(**{name: pd.Categorical([colour] * len(rows), categories=COLOURS)})
    else:
        for number in np.arange(-1, 7, 0.25):  # thresholds are halves or quarters of two numbers
            yield rows.assign(**{name: number})
