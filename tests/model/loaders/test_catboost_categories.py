"""CatBoost's categorical features: one-hot tests, statistics of one feature or several, by name."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import xcount
from xcount.errors import ModelFormatError, TableError, UnsupportedModelError
from xcount.model.align import aligned
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import catboost_categories, catboost_models, catboost_unfold
from xcount.model.loaders.catboost_hash import category_hash, hash_of_key, key_of_hash
from xcount.model.loaders.check import check
from xcount.model.loaders.xgboost_json import parse_json
from xcount.model.tables import read_table
from xcount.question.domain import Domain
from xcount.question.grid import Grid

SEEDS = Path(__file__).parents[2] / "corpus" / "seeds"
WORDS = ("a", "b", "nan", "", "NaN", "None", "Ärger", "x y", "7", "12.5", "a very long name " * 5)
STRANGERS = ("unheard of", "#5", "zz")
STATISTICS: tuple[list[str] | None, ...] = (
    None,
    ["Borders"],
    ["Buckets"],
    ["Counter"],
    ["BinarizedTargetMeanValue"],
    ["Borders:Prior=0.3/1", "Counter:Prior=0/1", "Buckets", "BinarizedTargetMeanValue"],
)
QUIET: dict[str, Any] = {"thread_count": 1, "verbose": False, "allow_writing_files": False}


def random_model(seed: int, **options: Any) -> tuple[Any, catboost.Pool, list[list[str]]]:
    """Return a model of random columns, its training data, and the words of each text column."""
    rng = np.random.default_rng(seed)
    words: list[list[str]] = [
        rng.permutation(np.array(WORDS, dtype=object))[: rng.integers(2, 9)].tolist()
        for _ in range(rng.integers(1, 4))
    ]
    texts = [rng.choice(np.array(w, dtype=object), 150) for w in words]
    numbers = [rng.normal(size=150).round(1) for _ in range(rng.integers(0, 3))]
    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate([*texts, *numbers])})
    score = sum((column == w[0]) * 1.0 for column, w in zip(texts, words, strict=True))
    score = score + rng.normal(size=150) * 0.5
    kind = str(rng.choice(["binary", "classes", "number"]))
    target = {"binary": score > 0.6, "classes": np.digitize(score, [0.3, 1.2]), "number": score}
    settings = QUIET | {
        "iterations": int(rng.integers(1, 7)),
        "depth": int(rng.integers(1, 4)),
        "one_hot_max_size": int(rng.integers(1, 7)),
        "max_ctr_complexity": 1,
        "random_seed": seed,
        "grow_policy": str(rng.choice(["SymmetricTree", "Depthwise", "Lossguide"])),
    }
    statistics = STATISTICS[rng.integers(len(STATISTICS))]
    settings |= {} if statistics is None else {"simple_ctr": statistics}
    loss = {"binary": "Logloss", "classes": "MultiClass", "number": "RMSE"}[kind]
    names = [f"c{i}" for i in range(len(words))]
    pool = catboost.Pool(frame, np.asarray(target[kind], dtype=float), cat_features=names)
    model = catboost.CatBoost(settings | {"loss_function": loss} | options)
    return model.fit(pool), pool, words


def saved(model: Any, folder: Path, pool: catboost.Pool | None = None) -> Path:
    """Save the model, with the names of its categories if there is a pool."""
    path = folder / "model.json"
    model.save_model(str(path), format="json", pool=pool)
    return path


def original_rows(ensemble: Ensemble, words: list[list[str]], seed: int) -> pd.DataFrame:
    """Return rows with known and unknown texts, and numbers."""
    rng = np.random.default_rng([seed, 1])
    columns: dict[str, Any] = {}
    for i, name in enumerate(ensemble.feature_names):
        known = [*words[i], *STRANGERS] if i < len(words) else [-1.5, -0.2, 0.0, 0.7, 2.0]
        columns[name] = rng.choice(np.array(known, dtype=object), 200)
        if i >= len(words):
            columns[name] = columns[name].astype(np.float64)
    return pd.DataFrame(columns)


@pytest.mark.parametrize("part", range(4))
def test_texts_are_decided_as_catboost_does(part: int, tmp_path: Path) -> None:
    """Known and unknown categories, words that look like numbers or gaps, all statistics."""
    for seed in range(part * 12, part * 12 + 12):
        model, pool, words = random_model(seed)
        ensemble = xcount.load(saved(model, tmp_path, pool if seed % 2 else None))
        frame = original_rows(ensemble, words, seed)
        raw = model.predict(frame, prediction_type="RawFormulaVal")
        rows = read_table(frame, ensemble).rows
        found = ensemble.predict(rows)
        np.testing.assert_allclose(
            found, np.asarray(raw).reshape(len(frame), -1), rtol=0, atol=1e-12, err_msg=f"{seed}"
        )
        if seed % 2:
            check(ensemble, model, rows)


def test_hashes_are_those_of_catboost(tmp_path: Path) -> None:
    """Of texts of every length, as a file with names has them."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcXYZ 019äß€"))
    texts = ["".join(rng.choice(letters, n)) for n in [*range(140), 255, 256, 257, 600]]
    pool = catboost.Pool(
        np.array(texts * 2, dtype=object)[:, None], [0, 1] * len(texts), cat_features=[0]
    )
    model = catboost.CatBoostClassifier(iterations=1, depth=1, **QUIET).fit(pool)
    document = json.loads(saved(model, tmp_path, pool).read_bytes())
    listed = {e["value"]: e["hash"] for e in document["features_info"]["cat_features_hash"]}
    assert {text: category_hash(text) for text in texts} == listed
    assert all(hash_of_key(key_of_hash(known)) == known for known in listed.values())


def people(tmp_path: Path, races: tuple[str, ...], seed: int = 0, name: str = "people") -> Path:
    """Return the file of a model of people: race is one-hot, job has statistics."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.choice(np.array(races, dtype=object), 300),
        rng.choice(np.array(["clerk", "cook", "nurse", "smith"], dtype=object), 300),
        rng.integers(18, 80, 300).astype(np.float64),
    ]
    frame = pd.DataFrame(dict(zip(["race", "job", "age"], columns, strict=True)))
    target = (columns[0] == races[0]) + (columns[1] == "nurse") + columns[2] / 80
    target = target + rng.normal(size=300) * 0.3 > 1.1
    pool = catboost.Pool(frame, target.astype(int), cat_features=["race", "job"])
    model = catboost.CatBoostClassifier(
        iterations=5, depth=2, one_hot_max_size=3, max_ctr_complexity=1, **QUIET
    ).fit(pool)
    path = tmp_path / f"{name}.json"
    model.save_model(str(path), format="json", pool=pool)
    return path


def test_categories_have_their_names(tmp_path: Path) -> None:
    """In features, conditions, witnesses and errors; what no training row had is one more."""
    path = people(tmp_path, ("White", "Black", "Asian"))
    model = xcount.load(path)
    race, job, age = model.features
    # No test asks for Black; but job has a table of all its categories.
    assert sorted(race.labels or ()) == ["(other)", "Asian", "Black", "White"]
    same = [
        xcount.count(model, sensitive="age", flip=True, where=f"race == {word}").count
        for word in ("Black", "'(other)'")
    ]
    assert same[0] == same[1]
    assert sorted(job.labels or ()) == ["(other)", "clerk", "cook", "nurse", "smith"]
    assert (race.can_be_missing, age.is_categorical) == (False, False)
    asked: dict[str, Any] = {"sensitive": "job", "flip": True, "where": "job in {clerk, nurse}"}
    for witness in xcount.witnesses(model, n=3, **asked):
        assert {witness.labels["job"], witness.other_labels["job"]} <= {"clerk", "nurse"}
    with pytest.raises(xcount.XCountError, match="'judge'"):
        xcount.count(model, sensitive="job", flip=True, where="job == judge")
    with pytest.raises(TableError, match="nan is no category"):
        read_table({"race": [np.nan], "job": ["cook"], "age": [30.0]}, model)


def test_names_may_belong_to_one_feature_or_another(tmp_path: Path) -> None:
    """Then they are names of the unknown, in conditions, of every feature that may have them."""
    texts = np.array([["x", "u"], ["y", "v"], ["z", "w"]] * 40, dtype=object)
    target = (texts[:, 0] == "x").astype(int)
    pool = catboost.Pool(texts, target, cat_features=[0, 1])
    model = catboost.CatBoostClassifier(iterations=1, depth=1, one_hot_max_size=3, **QUIET)
    ensemble = xcount.load(saved(model.fit(pool), tmp_path, pool))
    first, second = ensemble.features
    listed = {*(first.labels or ()), *(second.labels or ())} - {"(other)"}
    assert listed | {*first.other_labels} == {"x", "y", "z", "u", "v", "w"}
    for feature in (first, second):
        assert {*(feature.labels or ()), *feature.other_labels} == {"(other)", *"xyzuvw"}
    assert xcount.count(ensemble, sensitive=0, flip=True, where="f1 in {u, v, w}").exact


def test_a_name_that_another_feature_has_too_may_be_said() -> None:
    """Of a one-hot feature it is one of the others, whoever else has it."""
    model = xcount.load(SEEDS / "catboost-buckets.json")
    first, last = model.features[0], model.features[3]
    assert first.labels == ("b", "(other)")
    assert {*(last.labels or ())} >= {"a", "b", "c"}
    for word in ("a", "'(other)'"):
        asked = Grid.of(model, domain=Domain.of(where=f"f0 == {word}"))
        assert asked.axes[0].n_cells == 1
        assert [asked.axes[0].describe(0)] == ["f0 = (other)"]


def test_a_file_without_names_still_knows_texts(tmp_path: Path) -> None:
    """By their hash: rows are read, and unnamed categories are shown by it."""
    named = xcount.load(people(tmp_path, ("White", "Black", "Asian")))
    document = json.loads((tmp_path / "people.json").read_bytes())
    del document["features_info"]["cat_features_hash"]
    (tmp_path / "unnamed.json").write_text(json.dumps(document))
    unnamed = xcount.load(tmp_path / "unnamed.json")
    assert f"#{category_hash('White')}" in (unnamed.features[0].labels or ())
    rows = {"race": ["White", "Martian"], "job": ["cook", "nurse"], "age": [30.0, 60.0]}
    margins = [model.predict(read_table(rows, model).rows) for model in (named, unnamed)]
    assert (margins[0] == margins[1]).all()
    with pytest.raises(UnsupportedModelError, match="pool=pool"):
        check(unnamed, tmp_path / "unnamed.json", read_table(rows, unnamed).rows)


def test_counts_are_those_of_catboosts_own_decisions(tmp_path: Path) -> None:
    """Region by region, with texts; the cells of a category are those that the trees tell apart."""
    path = people(tmp_path, ("White", "Black", "Asian"))
    model = xcount.load(path)
    grid = Grid.of(model)
    regions = list(itertools.product(*(range(n) for n in grid.cell_counts)))
    points = np.array([grid.point(region) for region in regions])
    margins = catboost_models.raw_predictions(path, points, model.features)[:, 0]
    above = dict(zip(regions, (margins > 0).tolist(), strict=True))
    for feature in (0, 1):
        cells = range(grid.cell_counts[feature])
        expected = sum(
            any(above[(*r[:feature], c, *r[feature + 1 :])] != above[r] for c in cells)
            for r in regions
        )
        found = xcount.count(model, sensitive=feature, flip=True, distance="any")
        assert (found.count, found.exact) == (expected, True)


def test_models_with_other_categories_compare(tmp_path: Path) -> None:
    """A category has one code; to a model that does not know it, it is like all others."""
    races = ("White", "Black", "Asian"), ("White", "Black", "Other")
    paths = [people(tmp_path, own, i, f"model{i}") for i, own in enumerate(races)]
    before = [xcount.load(path) for path in paths]
    after = aligned(before)
    assert after[0].features == after[1].features
    words = ["White", "Black", "Asian", "Other", "Martian"]
    frame = {
        "race": words * 8,
        "job": ["clerk", "cook", "nurse", "smith"] * 10,
        "age": np.linspace(10, 90, 40),
    }
    for old, new in zip(before, after, strict=True):
        same = new.predict(read_table(frame, new).rows)
        assert (old.predict(read_table(frame, old).rows) == same).all()
    result = xcount.compare(paths, sensitive="race", flip=True)
    assert len(result.models) == 2


def combining_model(seed: int, **options: Any) -> tuple[Any, catboost.Pool, pd.DataFrame]:
    """Return a model with statistics of several features, as CatBoost trains by default.

    The rows have known and unknown categories, and numbers at borders, beside them and missing.
    """
    rng = np.random.default_rng(seed)
    words = {"a": list("uvwx"), "b": list("pqr"), "c": ["k", "l"], "d": list("ABCDEFGH")}
    frame = pd.DataFrame({name: rng.choice(known, 3000) for name, known in words.items()})
    frame.insert(2, "x", rng.normal(size=3000).round(1))
    target = ((frame.a == "u") & (frame.b == "p")) | ((frame.d == "A") & (frame.x > 0))
    target = target ^ (rng.random(3000) < 0.3)
    pool = catboost.Pool(frame, target.astype(int), cat_features=list(words))
    settings = QUIET | {"max_ctr_complexity": 4}  # which is the default for more iterations
    settings |= {"iterations": 30, "depth": 6, "random_seed": seed} | options
    model = catboost.CatBoostClassifier(**settings).fit(pool)
    rows = {name: rng.choice([*known, *STRANGERS], 600) for name, known in words.items()}
    borders = np.array(model.get_borders().get(2) or [0.0], dtype=np.float32)
    beside = [np.nextafter(borders, np.float32(to)) for to in (-np.inf, np.inf)]
    numbers = rng.choice(np.concatenate([borders, *beside, [np.nan, -np.inf, np.inf]]), 600)
    return model, pool, pd.DataFrame(rows).assign(x=numbers)[list(frame.columns)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"one_hot_max_size": 3, "iterations": 80},
        {"max_ctr_complexity": 2, "boosting_type": "Plain"},
        {"combinations_ctr": ["Borders", "Counter", "Buckets"], "max_ctr_complexity": 3},
    ],
)
def test_statistics_of_several_features_are_decided_as_catboost_does(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """By default CatBoost combines categories, numbers' borders and one-hot tests."""
    model, pool, frame = combining_model(len(options), **options)
    path = saved(model, tmp_path, pool)
    ctrs = json.loads(path.read_bytes())["features_info"]["ctrs"]
    assert max(len(ctr["elements"]) for ctr in ctrs) > 1
    raw = model.predict(frame, prediction_type="RawFormulaVal")
    for ensemble in (xcount.load(path), xcount.load(model)):
        found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
        np.testing.assert_allclose(found, raw, rtol=0, atol=1e-12)
    assert [f.labels and f.labels[-1] for f in ensemble.features].count("(other)") == 4


def test_counts_with_statistics_of_several_features(tmp_path: Path) -> None:
    """Region by region, by CatBoost's own decisions."""
    model, pool, _ = combining_model(7, iterations=10, depth=4)
    path = saved(model, tmp_path, pool)
    ctrs = json.loads(path.read_bytes())["features_info"]["ctrs"]
    assert max(len(ctr["elements"]) for ctr in ctrs) > 1
    ensemble = xcount.load(path)
    grid = Grid.of(ensemble)
    regions = list(itertools.product(*(range(n) for n in grid.cell_counts)))
    points = np.array([grid.point(region) for region in regions])
    margins = catboost_models.raw_predictions(path, points, ensemble.features)[:, 0]
    above = dict(zip(regions, (margins > 0).tolist(), strict=True))
    for feature in range(5):
        cells = range(grid.cell_counts[feature])
        expected = sum(
            any(above[(*r[:feature], c, *r[feature + 1 :])] != above[r] for c in cells)
            for r in regions
        )
        unknown: dict[str, Any] = (
            {} if feature == 2 else {"unknown": [ensemble.feature_names[feature]]}
        )
        found = xcount.count(ensemble, sensitive=feature, flip=True, distance="any", **unknown)
        assert (found.count, found.exact) == (expected, True)


def test_large_combinations_are_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many nodes or tuples: the message says how to train without."""
    model, pool, _ = combining_model(0)
    path = saved(model, tmp_path, pool)
    for home, name in ((catboost_unfold, "MAX_NODES"), (catboost_categories, "MAX_TUPLES")):
        with monkeypatch.context() as patch:
            patch.setattr(home, name, 10)
            with pytest.raises(UnsupportedModelError, match="max_ctr_complexity=1"):
                xcount.load(path)


def test_tuples_of_unnamed_categories_are_refused(tmp_path: Path) -> None:
    """A table with a row that no known categories have would be read wrong."""
    model, pool, _ = combining_model(0)
    document = json.loads(saved(model, tmp_path, pool).read_bytes())
    joint = [c for c in document["features_info"]["ctrs"] if len(c["elements"]) > 1]
    document["ctr_data"][joint[0]["identifier"]]["hash_map"][0] = "12345"
    with pytest.raises(UnsupportedModelError, match="categories that the model does not name"):
        catboost_models.from_document(document, "m.json", "catboost-json")


def test_hostile_statistics_of_several_features_end_in_one_line(tmp_path: Path) -> None:
    """Thousands of tests in one statistic are refused; a table without rows knows no tuple."""
    model, pool, rows = combining_model(0)
    document = json.loads(saved(model, tmp_path, pool).read_bytes())
    (ctr, *_) = [c for c in document["features_info"]["ctrs"] if len(c["elements"]) > 1]
    long = copy.deepcopy(document)
    bit = {"combination_element": "float_feature", "float_feature_index": 0, "border": 0.5}
    for each in long["features_info"]["ctrs"]:
        if each["identifier"] == ctr["identifier"]:
            each["elements"] += [bit] * 20_000
    with pytest.raises(UnsupportedModelError, match="tuples of categories or more"):
        catboost_models.from_document(long, "m.json", "catboost-json")
    document["ctr_data"][ctr["identifier"]]["hash_map"] = []
    (tmp_path / "empty.json").write_text(json.dumps(document))
    ensemble = xcount.load(tmp_path / "empty.json")
    raw = catboost.CatBoostClassifier().load_model(str(tmp_path / "empty.json"), format="json")
    wanted = raw.predict(rows, prediction_type="RawFormulaVal")
    found = ensemble.predict(read_table(rows, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def _document(tmp_path: Path) -> Any:
    return json.loads(people(tmp_path, ("White", "Black", "Asian")).read_bytes())


def _split(document: Any, kind: str) -> Any:
    splits = (s for tree in document["oblivious_trees"] for s in tree["splits"])
    return next(split for split in splits if split["split_type"] == kind)


_CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another feature": (
        lambda d: _split(d, "OneHotFeature").update(cat_feature_index=9),
        "no categorical feature has the number 9",
    ),
    "no hash": (lambda d: _split(d, "OneHotFeature").update(value="x"), "expected an integer"),
    "another border": (lambda d: _split(d, "OnlineCtr").update(border=99.0), "another border"),
    "another split": (lambda d: _split(d, "OnlineCtr").update(split_index=999), "the split 999"),
    "no table": (lambda d: d.pop("ctr_data"), "no table of this statistic"),
    "a torn table": (
        lambda d: next(iter(d["ctr_data"].values()))["hash_map"].pop(),
        "entries in rows of 3",
    ),
    "a column twice": (
        lambda d: d["features_info"]["categorical_features"][0].update(flat_feature_index=1),
        "occurs twice",
    ),
    "a class beyond": (
        lambda d: [ctr.update(target_border_idx=7) for ctr in d["features_info"]["ctrs"]],
        "target_border_idx 7",
    ),
    "another type": (
        lambda d: [ctr.update(ctr_type="Odd") for ctr in d["features_info"]["ctrs"]],
        "the type Odd",
    ),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_malformed_statistics_are_refused_in_one_line(change: str, tmp_path: Path) -> None:
    """Each defect is named, with its place."""
    document = copy.deepcopy(_document(tmp_path))
    damage, message = _CHANGES[change]
    damage(document)
    data = json.dumps(document).encode()
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=message) as caught:
        catboost_models.from_document(parse_json(data, "m.json"), "m.json", "catboost-json")
    assert str(caught.value).startswith("m.json: ")


def test_a_model_of_texts_alone_is_read(tmp_path: Path) -> None:
    """Its file lists no numeric features at all."""
    texts: NDArray[Any] = np.array(["x", "y", "z"] * 40, dtype=object)[:, None]
    pool = catboost.Pool(texts, (texts[:, 0] == "x").astype(int), cat_features=[0])
    model = catboost.CatBoostClassifier(iterations=3, depth=1, one_hot_max_size=3, **QUIET)
    ensemble = xcount.load(saved(model.fit(pool), tmp_path, pool))
    assert xcount.count(ensemble, sensitive=0, flip=True, distance="any").share == 1.0
