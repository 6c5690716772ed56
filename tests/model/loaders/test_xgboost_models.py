"""Trained XGBoost models of every kind, live and from every file format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from probes import assert_same_leaves, probe_rows, rows_and_their_points

import xcount
from xcount.errors import ModelFormatError, TableError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import xgboost_json
from xcount.model.loaders.check import rounding_bound

xgb = pytest.importorskip("xgboost")

N = 240
RNG = np.random.default_rng(7)
FULL = RNG.normal(size=(N, 4))
HOLEY = np.where(RNG.random(FULL.shape) < 0.25, np.nan, FULL)
CODES = np.column_stack([FULL[:, 0], RNG.integers(0, 9, N), RNG.integers(0, 3, N), FULL[:, 3]])
BINARY = (np.nan_to_num(HOLEY[:, 0]) + FULL[:, 1] > 0).astype(int) ^ (CODES[:, 1] == 4)
THREE = (FULL[:, 0] > 0).astype(int) + (FULL[:, 1] > 0)
AMOUNT = np.abs(FULL[:, 0] * 3 + FULL[:, 1]) + 0.1


def train(parameters: dict[str, Any], rows: NDArray[Any], labels: NDArray[Any], **more: Any) -> Any:
    """Train five rounds."""
    kinds = more.pop("feature_types", None)
    data = xgb.DMatrix(rows, labels, feature_types=kinds)
    if parameters["objective"].startswith("rank:"):
        data.set_group([N // 2, N // 2])
    return xgb.train({"max_depth": 4, "nthread": 1, "seed": 3, **parameters}, data, 5, **more)


CATEGORICAL = ["q", "c", "c", "q"]
KINDS: dict[str, Callable[[], Any]] = {
    "regression": lambda: train({"objective": "reg:squarederror"}, FULL, AMOUNT),
    "holes": lambda: train({"objective": "reg:squarederror"}, HOLEY, AMOUNT),
    "exact": lambda: train(
        {"objective": "reg:squarederror", "tree_method": "exact"}, HOLEY, AMOUNT
    ),
    "approx": lambda: train(
        {"objective": "reg:squarederror", "tree_method": "approx"}, HOLEY, AMOUNT
    ),
    "pruned": lambda: train(
        {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 2.0}, HOLEY, AMOUNT
    ),
    "lossguide": lambda: train(
        {"objective": "reg:squarederror", "grow_policy": "lossguide", "max_leaves": 9},
        HOLEY,
        AMOUNT,
    ),
    "binary": lambda: train({"objective": "binary:logistic"}, HOLEY, BINARY),
    "binary-raw": lambda: train({"objective": "binary:logitraw"}, HOLEY, BINARY),
    "hinge": lambda: train({"objective": "binary:hinge"}, HOLEY, BINARY),
    "extreme-base": lambda: train(
        {"objective": "binary:logistic", "base_score": 0.99999}, FULL, BINARY
    ),
    "logistic-regression": lambda: train(
        {"objective": "reg:logistic", "base_score": 0.2}, FULL, BINARY
    ),
    "poisson": lambda: train({"objective": "count:poisson"}, FULL, AMOUNT),
    "gamma": lambda: train({"objective": "reg:gamma"}, FULL, AMOUNT),
    "tweedie": lambda: train({"objective": "reg:tweedie", "base_score": 0.7}, FULL, AMOUNT),
    "cox": lambda: train({"objective": "survival:cox"}, FULL, AMOUNT),
    "absolute": lambda: train({"objective": "reg:absoluteerror"}, FULL, AMOUNT),
    "ranking": lambda: train({"objective": "rank:ndcg"}, FULL, BINARY),
    "quantiles": lambda: train(
        {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]}, FULL, AMOUNT
    ),
    "dart": lambda: train(
        {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.6}, HOLEY, BINARY
    ),
    "multiclass": lambda: train({"objective": "multi:softprob", "num_class": 3}, HOLEY, THREE),
    "multiclass-base": lambda: train(
        {"objective": "multi:softmax", "num_class": 3, "base_score": 0.3}, HOLEY, THREE
    ),
    "multiclass-dart": lambda: train(
        {"objective": "multi:softmax", "num_class": 3, "booster": "dart", "rate_drop": 0.5},
        HOLEY,
        THREE,
    ),
    "multiclass-parallel": lambda: train(
        {
            "objective": "multi:softmax",
            "num_class": 3,
            "num_parallel_tree": 3,
            "subsample": 0.6,
        },
        HOLEY,
        THREE,
    ),
    "categories-one-hot": lambda: train(
        {"objective": "binary:logistic", "max_cat_to_onehot": 20},
        CODES,
        BINARY,
        feature_types=CATEGORICAL,
    ),
    "categories-partition": lambda: train(
        {"objective": "binary:logistic", "max_cat_to_onehot": 1},
        CODES,
        BINARY,
        feature_types=CATEGORICAL,
    ),
    "constant": lambda: train({"objective": "reg:squarederror"}, FULL, np.full(N, 0.25)),
    "two-targets": lambda: train(
        {"objective": "reg:squarederror"}, FULL, np.column_stack([AMOUNT, FULL[:, 2]])
    ),
    "vector-leaves": lambda: train(
        {"objective": "reg:squarederror", "multi_strategy": "multi_output_tree"},
        HOLEY,
        np.column_stack([AMOUNT, FULL[:, 2]]),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def booster(request: pytest.FixtureRequest) -> Any:
    """Train one kind of model, once for all tests of the module."""
    return KINDS[request.param]()


def matrix_of(booster: Any, rows: NDArray[Any]) -> Any:
    """Return the rows as the booster wants them."""
    return xgb.DMatrix(
        rows, feature_names=booster.feature_names, feature_types=booster.feature_types
    )


def assert_like_xgboost(ensemble: Ensemble, booster: Any, rows: NDArray[np.float64]) -> None:
    """Assert that XGBoost gives the same leaves, and margins within the error of its sums."""
    matrix = matrix_of(booster, rows)
    expected = booster.predict(matrix, output_margin=True).reshape(len(rows), -1)
    assert (np.abs(ensemble.predict(rows) - expected) <= rounding_bound(ensemble, rows)).all()
    if ensemble.n_trees == len(booster.get_dump()):  # but for vector leaves
        assert_same_leaves(ensemble, rows, booster.predict(matrix, pred_leaf=True))


def test_a_live_booster_predicts_the_same(booster: Any) -> None:
    """Thresholds, their float32 neighbours, NaN, odd categories: same leaf, same margin."""
    ensemble = xcount.load(booster)
    assert ensemble.n_trees > 0
    assert_like_xgboost(ensemble, booster, probe_rows(ensemble))


def test_a_regions_point_gets_from_xgboost_what_its_rows_get(booster: Any) -> None:
    """All rows of a region, and the point that stands for it, end in the same leaves."""
    ensemble = xcount.load(booster)
    rows, points = rows_and_their_points(ensemble)
    expected = booster.predict(matrix_of(booster, rows), output_margin=True)
    assert (booster.predict(matrix_of(booster, points), output_margin=True) == expected).all()


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_saved_model_is_the_live_model(booster: Any, suffix: str, tmp_path: Path) -> None:
    """JSON and UBJSON hold what the live object holds."""
    path = tmp_path / f"model.{suffix}"
    booster.save_model(path)
    from_file, live = xcount.load(path), xcount.load(booster)
    assert from_file.format == {"json": "xgboost-json", "ubj": "xgboost-ubjson"}[suffix]
    assert from_file.features == live.features
    assert from_file.base == live.base
    rows = probe_rows(live, n_rows=200)
    assert (from_file.leaf_indices(rows) == live.leaf_indices(rows)).all()
    assert (from_file.predict(rows) == live.predict(rows)).all()


def test_a_dump_holds_the_same_trees(booster: Any, tmp_path: Path) -> None:
    """The dump's trees go the same ways; its sum lacks the base score, weights and classes."""
    live = xcount.load(booster)
    if live.n_trees != len(booster.get_dump()):
        pytest.skip("vector leaves")
    path = tmp_path / "dump.json"
    booster.dump_model(path, dump_format="json", with_stats=True)
    dump = xcount.load(path)
    assert dump.format == "xgboost-dump"
    assert dump.base == (0.0,)
    assert dump.decides_at is None
    rows = probe_rows(live)
    assert_same_leaves(dump, rows[:, : dump.n_features], live.leaf_indices(rows))
    if booster_name(booster) == "gbtree" and live.n_outputs == 1:
        difference = live.predict(rows) - dump.predict(rows[:, : dump.n_features])
        assert np.allclose(difference, live.base[0], atol=1e-6)


def booster_name(booster: Any) -> str:
    """Return gbtree or dart."""
    name: str = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["name"]
    return name


def test_infinite_inputs_go_where_the_largest_numbers_go() -> None:
    """XGBoost refuses infinities; an ensemble sends them beyond every threshold."""
    ensemble = xcount.load(KINDS["binary"]())
    largest = float(np.finfo(np.float32).max)
    rows = np.where(FULL > 0, np.inf, -np.inf)
    assert (ensemble.predict(rows) == ensemble.predict(np.sign(rows) * largest)).all()


WRAPPERS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: xgb.XGBClassifier(n_estimators=4, n_jobs=1, max_depth=3).fit(
        HOLEY, BINARY
    ),
    "multiclass": lambda: xgb.XGBClassifier(n_estimators=4, n_jobs=1, max_depth=3).fit(
        HOLEY, THREE
    ),
    "regressor": lambda: xgb.XGBRegressor(n_estimators=4, n_jobs=1, max_depth=3).fit(HOLEY, AMOUNT),
    "forest-classifier": lambda: xgb.XGBRFClassifier(n_estimators=6, n_jobs=1, max_depth=3).fit(
        HOLEY, BINARY
    ),
    "forest-multiclass": lambda: xgb.XGBRFClassifier(n_estimators=6, n_jobs=1, max_depth=3).fit(
        HOLEY, THREE
    ),
    "forest-regressor": lambda: xgb.XGBRFRegressor(n_estimators=6, n_jobs=1, max_depth=3).fit(
        HOLEY, AMOUNT
    ),
    "early-stopping": lambda: xgb.XGBClassifier(
        n_estimators=40, n_jobs=1, max_depth=3, early_stopping_rounds=2, learning_rate=1.0
    ).fit(HOLEY[:160], BINARY[:160], eval_set=[(HOLEY[160:], BINARY[160:])], verbose=False),
    "early-stopping-forest": lambda: xgb.XGBClassifier(
        n_estimators=40,
        n_jobs=1,
        max_depth=3,
        early_stopping_rounds=2,
        learning_rate=1.0,
        num_parallel_tree=2,
        subsample=0.7,
    ).fit(HOLEY[:160], THREE[:160], eval_set=[(HOLEY[160:], THREE[160:])], verbose=False),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_is_loaded_as_its_predict_uses_it(name: str, tmp_path: Path) -> None:
    """The scikit-learn wrappers predict up to the best iteration, live and from their files."""
    model = WRAPPERS[name]()
    ensemble = xcount.load(model)
    rows = probe_rows(ensemble, n_rows=400)
    expected = model.predict(rows, output_margin=True).reshape(len(rows), -1)
    tolerance = rounding_bound(ensemble, rows)
    assert (np.abs(ensemble.predict(rows) - expected) <= tolerance).all()
    if name.startswith("early"):
        assert 0 < ensemble.n_trees < len(model.get_booster().get_dump())
    path = tmp_path / "model.json"
    model.save_model(path)
    assert (xcount.load(path).predict(rows) == ensemble.predict(rows)).all()
    assert xcount.load(model, check=rows) is not None
    assert xcount.load(path, check=rows) is not None


def test_class_labels_come_from_the_wrapper() -> None:
    """A multiclass wrapper names its outputs."""
    assert xcount.load(WRAPPERS["multiclass"]()).class_labels == ("0", "1", "2")


def test_pandas_columns_keep_their_names_and_category_labels(tmp_path: Path) -> None:
    """Names and labels survive; codes route as XGBoost routes the frame."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": FULL[:, 0],
            "town": pd.Categorical(rng.choice(["Koblenz", "Bonn", "Trier", "Ulm"], N)),
            "size": pd.Categorical(rng.choice([10, 20, 30], N)),
        }
    )
    labels = (frame["age"] > 0).to_numpy() ^ (frame["town"] == "Bonn").to_numpy()
    model = xgb.XGBClassifier(
        n_estimators=5, max_depth=4, enable_categorical=True, max_cat_to_onehot=1
    ).fit(frame, labels)
    path = tmp_path / "model.ubj"
    model.save_model(path)
    for ensemble in (xcount.load(model), xcount.load(path)):
        assert ensemble.feature_names == ("age", "town", "size")
        assert ensemble.features[1].labels == ("Bonn", "Koblenz", "Trier", "Ulm")
        assert ensemble.features[1].categories == (0, 1, 2, 3)
        assert ensemble.features[2].labels == ("10", "20", "30")
        codes = frame.assign(town=frame["town"].cat.codes, size=frame["size"].cat.codes)
        expected = model.predict(frame, output_margin=True)
        found = ensemble.predict(codes.to_numpy(dtype=np.float64))[:, 0]
        assert np.allclose(found, expected, atol=1e-5)


def test_names_of_categories_that_xgboost_garbles_are_not_shown() -> None:
    """XGBoost cuts UTF-8 bytes at counts of characters; no name is better than a wrong one."""
    pd = pytest.importorskip("pandas")
    towns = np.random.default_rng(1).choice(["Köln", "Bonn", "Ulm"], N)
    model = xgb.XGBRegressor(n_estimators=2, enable_categorical=True, n_jobs=1)
    model.fit(pd.DataFrame({"town": pd.Categorical(towns)}), (towns == "Ulm") * 1.0)
    feature = xcount.load(model).features[0]
    assert feature.categories == (0, 1, 2)
    assert feature.labels == ("category 0", "category 1", "category 2")


def test_unseen_categories_are_as_many_as_the_splits_show() -> None:
    """Without a frame the file does not say how many categories there are."""
    ensemble = xcount.load(KINDS["categories-partition"]())
    categories = ensemble.features[1].categories
    assert categories == tuple(range(len(categories or ())))
    assert 2 <= len(categories or ()) <= 10
    assert ensemble.features[0].categories is None


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("5E-1", [0.5]),
        ("[6.27E-1]", [0.627]),
        ("[1E0,-2E0, 3.5]", [1.0, -2.0, 3.5]),
        (0.25, [0.25]),
        (1, [1.0]),
        ([0.5, 1.5], [0.5, 1.5]),
        (np.array([0.5], dtype=np.float32), [0.5]),
    ],
)
def test_every_spelling_of_the_base_score(spelling: object, expected: list[float]) -> None:
    """XGBoost has written the base score in many ways over the years."""
    assert xgboost_json._read_base_score(spelling, "m") == expected


@pytest.mark.parametrize("spelling", ["", "[]", "[1,]", "abc", None, True, {}, [[1.0]], ["x"]])
def test_a_base_score_that_is_none(spelling: object) -> None:
    """Anything else is an error that says where."""
    with pytest.raises(ModelFormatError, match=r"^m"):
        xgboost_json._read_base_score(spelling, "m")


def test_linear_boosters_are_refused_by_name() -> None:
    """A gblinear booster has no trees."""
    booster = xgb.train({"booster": "gblinear"}, xgb.DMatrix(FULL, AMOUNT), 2)
    with pytest.raises(UnsupportedModelError, match="gblinear"):
        xcount.load(booster)


def test_another_value_for_missing_is_refused_by_name() -> None:
    """A wrapper may call 0 missing; the trees know only NaN, and the message says what to do."""
    model = xgb.XGBRegressor(n_estimators=2, n_jobs=1, missing=0.0).fit(FULL, AMOUNT)
    with pytest.raises(UnsupportedModelError, match=r"missing=0\.0.*get_booster"):
        xcount.load(model)
    assert xcount.load(model.get_booster()).n_trees == 2


def test_a_boosters_early_stopping_is_not_the_wrappers() -> None:
    """A plain Booster predicts with all trees, also beyond its best iteration."""
    data = xgb.DMatrix(HOLEY[:160], BINARY[:160]), xgb.DMatrix(HOLEY[160:], BINARY[160:])
    booster = xgb.train(
        {"objective": "binary:logistic", "eta": 1.0, "nthread": 1},
        data[0],
        40,
        evals=[(data[1], "valid")],
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    ensemble = xcount.load(booster)
    assert ensemble.n_trees == len(booster.get_dump()) > booster.best_iteration + 1
    assert_like_xgboost(ensemble, booster, probe_rows(ensemble, n_rows=300))


def test_an_unfitted_wrapper_is_refused() -> None:
    """There is nothing to load yet."""
    with pytest.raises(UnsupportedModelError, match="not fitted"):
        xcount.load(xgb.XGBClassifier())


def test_a_model_without_rounds_is_its_base_score() -> None:
    """No trees: every row gets the base score."""
    booster = xgb.train({"base_score": 0.25}, xgb.DMatrix(FULL, AMOUNT), 0)
    ensemble = xcount.load(booster)
    assert ensemble.n_trees == 0
    assert ensemble.predict(FULL)[:, 0].tolist() == [0.25] * N


def test_a_dump_may_be_written_in_unusual_ways(tmp_path: Path) -> None:
    """Children in either order, whole numbers, numbers as text: the same trees."""

    def dump(*, swapped: bool, leaf: Any, condition: Any) -> list[dict[str, Any]]:
        children = [{"nodeid": 1, "leaf": leaf}, {"nodeid": 2, "leaf": -0.5}]
        split = {"split": "f1", "split_condition": condition, "yes": 1, "no": 2, "missing": 2}
        return [{"nodeid": 0, **split, "children": children[::-1] if swapped else children}]

    usual = dump(swapped=False, leaf=1.0, condition=3.0)
    for other in (
        dump(swapped=True, leaf=1.0, condition=3.0),
        dump(swapped=False, leaf=1, condition=3),
        dump(swapped=False, leaf="1", condition="3"),
    ):
        trees = []
        for name, document in (("usual", usual), ("other", other)):
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(document))
            trees.append(xcount.load(path).trees[0])
        for column in ("feature", "threshold", "left", "right", "missing_left", "value"):
            first, second = (getattr(tree, column) for tree in trees)
            np.testing.assert_array_equal(first, second)


def test_codes_beyond_those_that_splits_name_have_a_cell(tmp_path: Path) -> None:
    """A path of splits shows that there are more codes; all of them are like one another."""
    codes = np.arange(600.0)[:, np.newaxis] % 6
    paid = (codes[:, 0] < 2).astype(float)
    data = xgb.DMatrix(codes, paid, feature_names=["race"], feature_types=["c"])
    settings = {"max_cat_to_onehot": 100, "max_depth": 3, "eta": 1, "lambda": 0, "base_score": 0}
    booster = xgb.train(settings, data, 1)
    booster.save_model(tmp_path / "codes.json")
    result = xcount.count(
        tmp_path / "codes.json",
        sensitive="race",
        gap=0.5,
        distance="any",
        measures="rows",
        data={"race": codes[:, 0].tolist()},
    )
    assert (result.count, result.n_regions) == (3, 3)
    assert result.measures["rows"].share == 1
    ensemble = xcount.load(tmp_path / "codes.json")
    assert ensemble.features[0].other == 2
    with pytest.raises(TableError, match=r"'x' is no category"):
        xcount.count(ensemble, sensitive="race", gap=0, measures="rows", data={"race": ["x"]})


@pytest.mark.parametrize("ends", [[0], [0, 1], [1, 2, 3], [0, 2, 1, 3], [0, 1, 2, 4]])
def test_iterations_that_are_not_those_of_the_trees_are_refused(ends: list[int]) -> None:
    """XGBoost predicts with the trees of ``iteration_indptr``."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    rows = np.arange(20.0).reshape(10, 2)
    matrix = xgboost.DMatrix(rows, np.arange(10) % 2)
    booster = xgboost.train({"max_depth": 2, "nthread": 1}, matrix, 3)
    document = json.loads(bytes(booster.save_raw("json")))
    model = document["learner"]["gradient_booster"]["model"]
    assert model["iteration_indptr"] == [0, 1, 2, 3]
    model["iteration_indptr"] = ends
    with pytest.raises(ModelFormatError, match="does not divide 3 trees"):
        xgboost_json.from_document(document, "m", "xgboost-json")
