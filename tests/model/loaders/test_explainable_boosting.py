"""interpret's explainable boosting machines: tables over bins, scored as the library does."""

from __future__ import annotations

import copy
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from edge_rows import all_region_points, edge_rows
from numpy.typing import NDArray

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.loaders import explainable_boosting, parse_model
from xcount.model.loaders.check import check
from xcount.model.loaders.predictions import library_predictions
from xcount.model.tables import read_table
from xcount.question.grid import Grid

glassbox = pytest.importorskip("interpret.glassbox", reason="interpret-core is not installed")

_RNG = np.random.default_rng(11)
_N = 300


def _people() -> pd.DataFrame:
    people = pd.DataFrame(
        {
            "age": _RNG.integers(18, 70, _N).astype(float),
            "sex": _RNG.choice(["F", "M"], _N),
            "job": _RNG.choice(["clerk", "cook", "nurse", "smith", "(other)"], _N),
            "size": _RNG.choice(["1", "2", "3"], _N),
            "wage": _RNG.normal(size=_N).round(2),
        }
    )
    people.loc[_RNG.random(_N) < 0.1, "wage"] = np.nan
    people.loc[_RNG.random(_N) < 0.1, "job"] = None
    return people


PEOPLE = _people()
SCORE = PEOPLE.age / 30 + (PEOPLE.sex == "M") * (PEOPLE.job == "nurse") + PEOPLE.wage.fillna(1.5)
TWO = np.where(SCORE + _RNG.normal(size=_N) > 2, "yes", "no")
TARGETS: dict[str, Any] = {
    "two": TWO,
    "three": np.digitize(SCORE, [1.2, 2.4]),
    "number": np.asarray(SCORE),
    "positive": np.asarray(SCORE - SCORE.min() + 0.5),
}
OPTIONS: dict[str, Any] = {
    "two": {"interactions": 3, "max_interaction_bins": 4},
    "three": {"interactions": 0},
    "number": {"interactions": [("age", "sex"), ("job", "wage")]},
    "positive": {"objective": "poisson_deviance", "interactions": 0},
    "triples": {"interactions": [("age", "sex", "job")], "max_interaction_bins": 3},
}


@cache
def fitted(name: str) -> Any:
    """Return a fitted model; one with a term of three features has the target of two classes."""
    is_number = name in ("number", "positive")
    regressor, classifier = "ExplainableBoostingRegressor", "ExplainableBoostingClassifier"
    kind = getattr(glassbox, regressor if is_number else classifier)
    sizes = {"outer_bags": 2, "max_rounds": 40, "max_bins": 24, "n_jobs": 1, "random_state": 0}
    kinds = ["continuous", "nominal", "nominal", "ordinal", "continuous"]
    model = kind(feature_types=[*kinds[:3], ["1", "2", "3"], kinds[4]], **sizes | OPTIONS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(PEOPLE, TARGETS.get(name, TWO))


@cache
def document(name: str = "two") -> dict[str, Any]:
    """Return the JSON export."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported: dict[str, Any] = fitted(name).to_jsonable("minimal")
        return exported


@pytest.mark.parametrize("name", OPTIONS)
def test_scores_are_the_library_s(name: str) -> None:
    """At cuts, their neighbours, infinities, missing values and categories it does not know."""
    model = fitted(name)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=True)
    expected = explainable_boosting.raw_predictions(model, rows, ensemble.features)
    np.testing.assert_allclose(ensemble.predict(rows), expected, rtol=1e-12, atol=1e-12)
    check(ensemble, model, rows)
    assert {ensemble.features[2].other} < set(rows[:, 2]), "unknown categories are among the rows"


@pytest.mark.parametrize("name", ["two", "three", "triples"])
def test_classes_and_probabilities_are_those_of_predict(name: str) -> None:
    """The probability is the sigmoid of the score or the softmax of the scores."""
    model = fitted(name)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False)[:600]
    found = library_predictions(ensemble, model, rows)
    np.testing.assert_array_equal(ensemble.decide(rows), found.decisions)
    margins = ensemble.predict(rows)
    if ensemble.n_outputs == 1:
        expected = 1 / (1 + np.exp(-margins))
    else:
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        expected = powers / powers.sum(axis=1, keepdims=True)
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-9)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_export_is_the_same_model(name: str, tmp_path: Path) -> None:
    """In every amount of detail; the file needs no interpret."""
    live = xcount.load(fitted(name))
    for detail in ("minimal", "all"):
        path = tmp_path / f"{detail}.json"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted(name).to_json(str(path), detail=detail)
        read = xcount.load(path)
        assert read.format == "interpret-ebm-json"
        assert (read.features, read.base, read.task) == (live.features, live.base, live.task)
        rows = edge_rows(live, infinities=True)[:300]
        np.testing.assert_array_equal(read.predict(rows), live.predict(rows))


def test_a_count_of_flips_is_that_of_predict() -> None:
    """Every region is predicted by the library, at a point of its own."""
    kind = glassbox.ExplainableBoostingClassifier
    bins = {"max_bins": 6, "max_interaction_bins": 5}
    sizes = {"outer_bags": 1, "max_rounds": 60, "n_jobs": 1, "random_state": 0, **bins}
    columns = ["age", "sex", "wage"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(interactions=[(0, 1), (1, 2)], **sizes).fit(PEOPLE[columns], TWO)
    ensemble = xcount.load(model)
    points = all_region_points(ensemble)
    inputs = explainable_boosting.as_user_input(points, ensemble.features)
    grid = Grid.of(ensemble, missing="cell")
    decisions = np.asarray(model.predict(inputs) == "yes").reshape(grid.cell_counts)
    for axis, name in enumerate(columns):
        # A missing value or an unknown category is no place to change to, but one to change from.
        cells = [c for c in range(grid.cell_counts[axis]) if _is_target(ensemble, grid, axis, c)]
        targets = np.take(decisions, cells, axis=axis)
        ends = targets.min(axis=axis, keepdims=True), targets.max(axis=axis, keepdims=True)
        expected = int(((decisions != ends[0]) | (decisions != ends[1])).sum())
        data = PEOPLE[columns].copy()
        data.loc[0, columns] = [np.nan, None, np.nan]
        result = xcount.count(ensemble, sensitive=name, flip=True, data=data)
        assert result.n_regions == grid.n_regions
        assert (result.count, result.exact) == (expected, True)
        assert expected > 0


def _is_target(ensemble: Any, grid: Grid, axis: int, cell: int) -> bool:
    value = grid.point([cell if a == axis else 0 for a in range(3)])[axis]
    return not np.isnan(value) and value != ensemble.features[axis].other


def test_tables_name_categories_and_unknown_ones_have_a_bin_of_their_own() -> None:
    """Also categories whose names are numbers, and one that is called like all others."""
    model = fitted("number")
    ensemble = xcount.load(model)
    job = ensemble.features[2]
    assert job.labels is not None
    assert job.labels[-2:] == ("smith", "(other).") or "(other)." in job.labels
    table = PEOPLE.head(40).copy()
    table["size"] = table["size"].astype(int)
    table.loc[3, "job"] = "pilot"
    rows = read_table(table, ensemble).rows
    assert rows[3, 2] == job.other
    expected = model.predict(table.astype({"size": str}))
    np.testing.assert_allclose(ensemble.predict(rows)[:, 0], expected, rtol=1e-12)


def test_cuts_between_equal_scores_are_no_guards() -> None:
    """They decide nothing."""
    flat = copy.deepcopy(document())
    for term in flat["ebm"]["terms"]:
        term["scores"] = np.zeros_like(np.array(term["scores"])).tolist()
    ensemble = explainable_boosting.from_document(flat, "flat", "ebm")
    assert Grid.of(ensemble).n_regions == 1
    one = flat["ebm"]["terms"][0]["scores"]
    one[3:6] = [0.5] * 3
    ensemble = explainable_boosting.from_document(flat, "flat", "ebm")
    assert Grid.of(ensemble).cell_counts == (3, 1, 1, 1, 1)


def test_a_pickle_is_read_if_it_is_trusted(tmp_path: Path) -> None:
    """As those of scikit-learn are."""
    joblib.dump(fitted("two"), tmp_path / "ebm.joblib")
    with pytest.raises(UnsupportedModelError, match="trust-pickle"):
        xcount.load(tmp_path / "ebm.joblib")
    trusted = xcount.load(tmp_path / "ebm.joblib", trust_pickle=True)
    assert trusted.n_trees == xcount.load(fitted("two")).n_trees


def test_other_models_of_interpret_are_refused_by_name() -> None:
    """And models that are not fitted."""
    with pytest.raises(UnsupportedModelError, match="not fitted"):
        xcount.load(glassbox.ExplainableBoostingRegressor())
    with pytest.raises(UnsupportedModelError, match="interpret's LinearRegression is not"):
        xcount.load(glassbox.LinearRegression())


def test_a_file_cannot_be_checked_by_the_library(tmp_path: Path) -> None:
    """Interpret does not read its own export."""
    path = tmp_path / "ebm.json"
    path.write_text(json.dumps(document()))
    with pytest.raises(UnsupportedModelError, match="does not read its own JSON"):
        xcount.load(path, check=[[0.0] * 5])


def _changed(*keys: Any, to: Any) -> bytes:
    changed: Any = copy.deepcopy(document())
    at: Any = changed["ebm"]
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to
    return json.dumps(changed).encode()


def _damages() -> dict[str, tuple[bytes, str]]:
    many: NDArray[Any] = np.zeros(3)
    return {
        "no outputs": (_changed("outputs", to=[]), "expected one output"),
        "one class": (_changed("outputs", 0, "link", to="monoclassification"), "only one class"),
        "link": (_changed("outputs", 0, "link", to="probit"), "link function 'probit'; supported"),
        "classes": (_changed("outputs", 0, "classes", to=["a"]), "1 classes with the link"),
        "intercept": (_changed("intercept", to=many.tolist()), "of shape (3,), the bins have (1,)"),
        "kind": (_changed("features", 0, "type", to="text"), "of the type 'text'"),
        "name": (_changed("features", 0, "name", to="sex"), "two features are called 'sex'"),
        "cuts": (_changed("features", 0, "cuts", 0, to=[2.0, 1.0]), "not finite numbers in ascend"),
        "levels": (_changed("features", 0, "cuts", to=[]), "the list is empty"),
        "twice": (_changed("features", 1, "categories", 0, to=["F", "F"]), "'F' occurs twice"),
        "shape": (_changed("terms", 0, "scores", to=[1.0, 2.0]), "of shape (2,)"),
        "ragged": (_changed("terms", 0, "scores", to=[[1.0], [2.0, 1.0]]), "differ in length"),
        "infinite": (_changed("terms", 1, "scores", to=[0.0, "+inf", 0.0, 0.0]), "not all scores"),
        "truth": (_changed("terms", 1, "scores", to=[True] * 4), "expected numbers"),
        "unknown": (_changed("terms", 0, "term_features", to=["x"]), "'x' is no feature"),
        "same": (_changed("terms", 0, "term_features", to=["sex", "sex"]), "different features"),
    }


@pytest.mark.parametrize("name", _damages())
def test_damaged_exports_are_refused_with_the_place(name: str) -> None:
    """One line that names the entry."""
    data, message = _damages()[name]
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        parse_model(data, "ebm.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("ebm.json")
    assert "\n" not in str(caught.value)
