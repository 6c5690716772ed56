"""Models of scikit-learn and CatBoost come back with other leaf values, live and from files."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import effort
import numpy as np
import oracle
import pytest
from numpy.typing import NDArray

import xcount
from xcount.errors import UnsupportedModelError

pytest.importorskip("clarabel")
SEEDS = range(effort.FIRST_SEED, effort.FIRST_SEED + effort.n_examples(3))
SMALL: dict[str, Any] = {"max_depth": 3, "random_state": 0}


def _sklearn(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        home = pytest.importorskip("sklearn.tree" if "Decision" in name else "sklearn.ensemble")
        return getattr(home, name)(**SMALL, **options)

    return make


def _pipeline() -> Any:
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    own = _sklearn("GradientBoostingClassifier", n_estimators=3)()
    return pipeline.make_pipeline(preprocessing.StandardScaler(), own)


def _catboost(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        catboost = pytest.importorskip("catboost")
        own: dict[str, Any] = {"iterations": 3, "depth": 3, "verbose": 0, "thread_count": 1}
        return getattr(catboost, name)(**own, allow_writing_files=False, **options)

    return make


_HIST: dict[str, Any] = {"max_iter": 3, "min_samples_leaf": 3}
MAKERS = {
    "tree for classes": _sklearn("DecisionTreeClassifier"),
    "tree for numbers": _sklearn("DecisionTreeRegressor"),
    "forest for classes": _sklearn("RandomForestClassifier", n_estimators=3),
    "forest for numbers": _sklearn("RandomForestRegressor", n_estimators=3),
    "extra trees": _sklearn("ExtraTreesClassifier", n_estimators=3),
    "boosting for classes": _sklearn("GradientBoostingClassifier", n_estimators=3),
    "boosting for numbers": _sklearn("GradientBoostingRegressor", n_estimators=3),
    "histograms for classes": _sklearn("HistGradientBoostingClassifier", **_HIST),
    "histograms with categories": _sklearn(
        "HistGradientBoostingRegressor", categorical_features=[1], **_HIST
    ),
    "pipeline": _pipeline,
    "CatBoost for classes": _catboost("CatBoostClassifier"),
    "CatBoost for numbers": _catboost("CatBoostRegressor"),
    "CatBoost without symmetry": _catboost("CatBoostRegressor", grow_policy="Lossguide"),
}


def fitted(make: Callable[[], Any], seed: int, n_classes: int = 2) -> tuple[Any, NDArray[Any]]:
    """Return a fitted model, and its rows."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, size=(80, 3)).astype(float)
    score = rows @ rng.normal(size=3) + rows[:, 0] * rows[:, -1] + rng.normal(size=80)
    classes = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    model = make()
    return model.fit(rows, classes if hasattr(model, "predict_proba") else score), rows


def limit_of(model: Any, rows: NDArray[Any], seed: int) -> dict[str, Any]:
    """Return a change in the words of the oracle: a gap down to 0, or one in probability."""
    rng, ensemble = np.random.default_rng([seed, 1]), xcount.load(model)
    if ensemble.probability == "sigmoid" and rng.random() < 0.5:
        return {"probability_gap": Fraction("0.05")}
    part = float(np.ptp(ensemble.predict(rows))) * float(rng.choice([0.0, 0.1, 0.3]))
    return {"gap": Fraction(f"{part:.4f}")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", MAKERS)
def test_live_models_keep_their_limit(kind: str, seed: int) -> None:
    """The library predicts what we count, the oracle finds 0 regions, the old model stays."""
    model, rows = fitted(MAKERS[kind], seed)
    before, limit = xcount.load(model).predict(rows), limit_of(model, rows, seed)
    words: dict[str, Any] = {name: str(value) for name, value in limit.items()}
    distance = None if seed % 2 else 1
    result = xcount.repair(model, sensitive=[0], distance=distance, data=rows, **words)
    assert result.proved
    assert type(result.model) is type(model)
    repaired = xcount.load(result.model, check=rows)  # the library predicts the same
    assert not any(oracle.changing_regions(repaired, [0], distance, **limit).values())
    assert np.array_equal(xcount.load(model).predict(rows), before)


def test_flips_of_votes_are_gone() -> None:
    """Leaves of a forest stay shares, and its own decisions depend on the feature no more."""
    model, rows = fitted(MAKERS["forest for classes"], 1)
    result = xcount.repair(model, sensitive=[0], flip=True, data=rows)
    assert result.proved
    repaired = xcount.load(result.model, check=rows)
    assert all(((tree.value >= 0) & (tree.value <= 1)).all() for tree in repaired.trees)
    found = oracle.changing_regions(repaired, [0], None, flip=True, cutoff=Fraction(1, 2))
    assert not any(found.values())


@pytest.mark.parametrize("kind", ["boosting for classes", "CatBoost for classes"])
def test_one_of_several_classes_is_repaired(kind: str) -> None:
    """The other classes keep their leaves, to the digits that CatBoost itself writes."""
    model, rows = fitted(MAKERS[kind], 0, n_classes=3)
    result = xcount.repair(model, sensitive=[0], gap="0.01", class_=1, data=rows)
    assert result.proved
    before, after = xcount.load(model), xcount.load(result.model, check=rows)
    found = oracle.changing_regions(after, [0], None, gap=Fraction("0.01"), class_=1)
    assert not any(found.values())
    for old, new in zip(before.trees, after.trees, strict=True):
        assert old.output == 1 or np.allclose(old.value, new.value, rtol=1e-14, atol=0)


def test_votes_of_several_classes_cannot_be_repaired() -> None:
    """Their shares must add up to 1."""
    model, rows = fitted(MAKERS["forest for classes"], 0, n_classes=3)
    with pytest.raises(UnsupportedModelError, match="must add up to 1; train one model per class"):
        xcount.repair(model, sensitive=[0], gap="0.1", class_=1, data=rows)


@pytest.mark.parametrize(
    ("kind", "name"), [("pipeline", "model.skops"), ("CatBoost for numbers", "model.json")]
)
def test_files_are_written_in_their_format(kind: str, name: str, tmp_path: Path) -> None:
    """The library reads the file, which holds the repaired model."""
    model, rows = fitted(MAKERS[kind], 2)
    path, output = tmp_path / name, tmp_path / f"repaired-{name}"
    if kind == "pipeline":
        skops = pytest.importorskip("skops.io")
        skops.dump(model, path)
    else:
        model.save_model(str(path), format="json")
    result = xcount.repair(path, sensitive=[0], gap="0.1", data=rows, output=output)
    assert result.output == str(output)
    repaired = xcount.load(output, check=rows)
    assert not any(oracle.sensitive_regions(repaired, [0], Fraction("0.1"), None).values())


def test_a_live_model_is_written_too(tmp_path: Path) -> None:
    """As skops, and the same comes back live."""
    pytest.importorskip("skops")
    model, rows = fitted(MAKERS["forest for numbers"], 0)
    output = tmp_path / "repaired.skops"
    result = xcount.repair(model, sensitive=[0], gap="0.1", data=rows, output=output)
    own, written = xcount.load(result.model), xcount.load(output)
    assert np.array_equal(own.predict(rows), written.predict(rows))


def test_a_pipeline_around_another_library_is_told() -> None:
    """The message says what to repair instead."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2))
    own = xgboost.XGBRegressor(n_estimators=2, n_jobs=1)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), own).fit(rows, rows[:, 0])
    with pytest.raises(UnsupportedModelError, match="repair the model inside by itself"):
        xcount.repair(model, sensitive=[0], gap="0.1", data=rows)


def test_an_ensemble_comes_back_as_one() -> None:
    """It has no library, so it cannot be written."""
    from xcount.model.examples import figure_1

    result = xcount.repair(figure_1(), sensitive="f0", gap=30, data=np.zeros((1, 2)))
    assert result.proved
    assert not any(oracle.sensitive_regions(result.model, [0], Fraction(30), None).values())
    with pytest.raises(UnsupportedModelError, match="leave out output"):
        xcount.repair(
            figure_1(), sensitive="f0", gap=30, data=np.zeros((1, 2)), output="figure.json"
        )
