"""Classifiers with a threshold of their own: it is the cut-off of flips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from edge_rows import edge_rows
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import xcount
from xcount.errors import UnsupportedModelError
from xcount.model.loaders.check import check
from xcount.model.loaders.predictions import library_predictions

_RNG = np.random.default_rng(5)
X = _RNG.normal(size=(200, 3)).round(1)
Y = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] * X[:, 2] > 0.5).astype(int)]
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)
BOOSTED = GradientBoostingClassifier(n_estimators=5, random_state=0)

MODELS: dict[str, Any] = {
    "fixed votes": FixedThresholdClassifier(FOREST, threshold=0.3),
    "votes of the first class": FixedThresholdClassifier(FOREST, threshold=0.6, pos_label="no"),
    "fixed probability": FixedThresholdClassifier(BOOSTED, threshold=0.4),
    "the first class's probability": FixedThresholdClassifier(
        BOOSTED, threshold=0.7, pos_label="no"
    ),
    "fixed margin": FixedThresholdClassifier(
        BOOSTED, threshold=-0.2, response_method="decision_function"
    ),
    "the first class's margin": FixedThresholdClassifier(
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0),
        threshold=0.3,
        response_method="decision_function",
        pos_label="no",
    ),
    "auto": FixedThresholdClassifier(HistGradientBoostingClassifier(max_iter=4)),
    "a pipeline": FixedThresholdClassifier(make_pipeline(StandardScaler(), FOREST), threshold=0.25),
    "a frozen model": FixedThresholdClassifier(FrozenEstimator(FOREST.fit(X, Y)), threshold=0.8),
    "tuned": TunedThresholdClassifierCV(BOOSTED, cv=3, random_state=0),
    "tuned for the first class": TunedThresholdClassifierCV(
        FOREST, cv=3, random_state=0, scoring=make_scorer(f1_score, pos_label="no")
    ),
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("case", MODELS)
def test_decisions_are_those_of_the_classifier(case: str) -> None:
    """At all thresholds of the trees and their neighbours; margins stay as they are inside."""
    model = MODELS[case].fit(X, Y)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False)
    rows = rows[(np.abs(rows) < 1e30).all(axis=1)]
    check(ensemble, model, rows)
    margins = ensemble.predict(rows)[:, 0]
    assert ensemble.decides_at is not None
    is_clear = np.abs(margins - ensemble.decides_at) > 1e-12
    expected = (model.predict(rows) == "yes").astype(int)
    assert set(expected.tolist()) == {0, 1}
    np.testing.assert_array_equal(ensemble.decide(rows)[is_clear], expected[is_clear])
    found = library_predictions(ensemble, model, rows)
    assert found.decisions is not None
    np.testing.assert_array_equal(found.decisions[is_clear], expected[is_clear])


def test_a_flip_is_one_of_the_classifier_s_own_decision() -> None:
    """The count equals asking predict about every region."""
    model = FixedThresholdClassifier(
        RandomForestClassifier(2, max_depth=2, random_state=0), threshold=0.3
    ).fit(X, Y)
    grid = xcount.Grid.of(xcount.load(model))
    cells = np.stack(np.meshgrid(*map(np.arange, grid.cell_counts), indexing="ij"), axis=-1)
    points = np.stack([grid.point(region) for region in cells.reshape(-1, 3).tolist()])
    decided = (model.predict(points) == "yes").reshape(grid.cell_counts)
    mixed = (decided.min(axis=0) != decided.max(axis=0)).sum() * grid.cell_counts[0]
    assert xcount.count(model, sensitive="f0", flip=True).count == int(mixed) > 0


def test_a_classifier_that_is_not_fitted_is_refused() -> None:
    """By its name."""
    with pytest.raises(UnsupportedModelError, match="FixedThresholdClassifier: the model is not"):
        xcount.load(FixedThresholdClassifier(RandomForestClassifier()))
