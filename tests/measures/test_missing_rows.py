"""Rows with missing values, and rows without a place: decided by the libraries' own predictions."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import xcount
from xcount.cli import main
from xcount.errors import QueryError, TableError
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.grid import Grid
from xcount.support.interval import Interval

pd = pytest.importorskip("pandas")

N_ROWS = 300
SEX = 1

Predict = Callable[[NDArray[np.float64]], NDArray[Any]]


def people(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return people (age, sex, hours, a code of their work), and who is approved."""
    random = np.random.default_rng(seed)
    rows = np.stack(
        [
            random.integers(18, 80, N_ROWS),
            random.integers(0, 2, N_ROWS),
            random.normal(0, 10, N_ROWS).round(1),
            random.integers(0, 5, N_ROWS),
        ],
        axis=1,
    ).astype(np.float64)
    score = (rows[:, 0] - 45) / 20 + rows[:, 1] * (rows[:, 2] > -3) + (rows[:, 3] == 2)
    return rows, (score + random.normal(0, 0.3, N_ROWS) > 0.6).astype(np.int64)


def lacking(rows: NDArray[np.float64], seed: int, part: float) -> NDArray[np.float64]:
    """Return rows with some values missing, sex apart."""
    found, random = rows.copy(), np.random.default_rng([seed, 1])
    for feature in (0, 2, 3):
        found[random.random(len(rows)) < part, feature] = np.nan
    return found


def xgboost(seed: int, part: float) -> tuple[Any, Predict]:
    """Return a model trained on rows of which a part lacks values, and its own prediction."""
    xgb = pytest.importorskip("xgboost")
    rows, labels = people(seed)
    model = xgb.XGBClassifier(n_estimators=10, max_depth=4, n_jobs=1)
    model.fit(lacking(rows, seed, part), labels)
    return model, model.predict


def lightgbm(
    seed: int, part: float, categories: str | list[int] = "auto", **parameters: Any
) -> tuple[Any, Predict]:
    """As :func:`xgboost`."""
    lgb = pytest.importorskip("lightgbm")
    rows, labels = people(seed)
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    seen = lacking(rows, seed, part)
    data = lgb.Dataset(seen, labels, categorical_feature=categories, params=parameters)
    model = lgb.train({**settings, **parameters}, data, 10)
    return model, lambda table: model.predict(table, raw_score=True) > 0


def lightgbm_with_zero_as_missing(seed: int, part: float) -> tuple[Any, Predict]:
    """As :func:`xgboost`; 0 is missing, too."""
    return lightgbm(seed, part, zero_as_missing=True)


def lightgbm_with_categories(seed: int, part: float) -> tuple[Any, Predict]:
    """As :func:`xgboost`; the last column is a category."""
    return lightgbm(seed, part, [3], min_data_per_group=2, cat_smooth=1)


def histogram(seed: int, part: float) -> tuple[Any, Predict]:
    """As :func:`xgboost`."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, labels = people(seed)
    model = ensemble.HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    model.fit(lacking(rows, seed, part), labels)
    return model, model.predict


def forest(seed: int, part: float) -> tuple[Any, Predict]:
    """As :func:`xgboost`."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows, labels = people(seed)
    model = ensemble.RandomForestClassifier(9, max_depth=5, random_state=seed, n_jobs=1)
    model.fit(lacking(rows, seed, part), labels)
    return model, model.predict


def catboost(seed: int, part: float) -> tuple[Any, Predict]:
    """As :func:`xgboost`."""
    cat = pytest.importorskip("catboost")
    rows, labels = people(seed)
    model = cat.CatBoostClassifier(
        iterations=10, depth=4, verbose=False, thread_count=1, allow_writing_files=False
    )
    model.fit(lacking(rows, seed, part), labels)
    return model, model.predict


MODELS = (
    xgboost,
    lightgbm,
    lightgbm_with_zero_as_missing,
    lightgbm_with_categories,
    histogram,
    forest,
    catboost,
)


def sensitive_rows(
    predict: Predict, rows: NDArray[np.float64], targets: Sequence[float] = (0.0, 1.0)
) -> list[int]:
    """Return the rows that the library decides differently at another sex."""
    before, found = np.asarray(predict(rows)).ravel(), np.zeros(len(rows), dtype=np.bool_)
    for sex in targets:
        changed = rows.copy()
        changed[:, SEX] = sex
        found |= np.asarray(predict(changed)).ravel() != before
    listed: list[int] = np.flatnonzero(found).tolist()
    return listed


@pytest.mark.parametrize("part", [0.0, 0.3], ids=["trained on whole rows", "trained on NaN"])
@pytest.mark.parametrize("make", MODELS, ids=lambda make: str(make.__name__))
def test_rows_are_placed_where_the_library_routes_them(
    make: Callable[[int, float], tuple[Any, Predict]], part: float
) -> None:
    """By default and with a cell for every feature; without any, they count at their worst."""
    n_found = 0
    for seed in range(2):
        model, predict = make(seed, part)
        rows = lacking(people(seed + 10)[0], seed, 0.4)
        rows[seed::4, SEX] = np.nan  # a place to start from
        expected = sensitive_rows(predict, rows)
        may_lack_sex = xcount.load(model).features[SEX].can_be_missing
        with_missing = sensitive_rows(predict, rows, (0.0, 1.0, np.nan))
        question: dict[str, Any] = {
            "sensitive": [SEX],
            "flip": True,
            "distance": "any",
            "data": rows,
        }
        for missing in ("auto", "cell"):
            found = xcount.count(model, missing=missing, **question).measures["rows"]
            changes_more = missing == "cell" and may_lack_sex
            truth = with_missing if changes_more else expected
            assert found.details["sensitive_rows"] == truth, missing
            assert (found.details["n_rows"], found.details["left_out"]) == (N_ROWS, 0)
            assert found.exact
        without = xcount.count(model, missing="none", **question).measures["rows"]
        n_left_out = int(np.isnan(rows).any(axis=1).sum())
        assert without.details["left_out"] == n_left_out
        assert without.low <= len(expected) / N_ROWS <= without.high
        assert without.high == (without.details["n_sensitive"] + n_left_out) / N_ROWS
        n_found += len(expected)
    assert n_found > 20


def test_missing_is_no_place_to_change_to_unless_asked() -> None:
    """Regions are counted by the same rule as rows: against every region, one by one."""
    model, _ = xgboost(0, 0.3)
    ensemble = xcount.load(model)
    rows, _ = people(1)
    rows[::5, SEX] = np.nan
    asked: dict[str, Any] = {"sensitive": [SEX], "flip": True, "distance": "any"}
    found = xcount.count(model, data=rows, **asked)
    grid = Grid.of(ensemble, missing="auto", missing_in=[ensemble.feature_names[SEX]])
    assert (found.exact, found.n_regions) == (True, grid.n_regions)
    regions = np.indices(grid.cell_counts).reshape(len(grid.axes), -1).T
    decided = ensemble.decide([grid.point(region) for region in regions.tolist()])
    by_mask = decided.reshape(grid.cell_counts)
    n_values = grid.axes[SEX].n_cells - 1
    targets = np.moveaxis(by_mask, SEX, 0)[:n_values]
    expected = sum(
        int((targets != by_sex).any(axis=0).sum()) for by_sex in np.moveaxis(by_mask, SEX, 0)
    )
    assert found.count == expected
    assert xcount.count(model, data=rows, missing="cell", **asked).n_regions > found.n_regions


def test_only_features_that_the_data_lacks_have_a_missing_cell() -> None:
    """So a table without missing values changes nothing, and no data is like no missing values."""
    model, _ = xgboost(0, 0.3)
    rows, _ = people(1)
    question: dict[str, Any] = {"sensitive": [SEX], "flip": True, "distance": "any"}
    plain = xcount.count(model, missing="none", **question).n_regions
    assert xcount.count(model, **question).n_regions == plain
    assert xcount.count(model, data=rows, **question).n_regions == plain
    rows[7, 0] = np.nan
    found = xcount.count(model, data=rows, **question)
    n_cells = Grid.of(xcount.load(model)).axes[0].n_cells
    assert found.n_regions == plain // n_cells * (n_cells + 1)
    assert xcount.count(model, missing="cell", **question).n_regions > found.n_regions


def test_a_joint_grid_places_a_row_where_each_library_routes_it() -> None:
    """What is 0 to one model and missing to the other is missing on the grid of both."""
    models = [lightgbm(0, 0.0), xgboost(0, 0.3)]
    names = ["Column_0", "Column_1", "Column_2", "Column_3"]
    ensembles = [xcount.load(model) for model, _ in models]
    ensembles[1] = _renamed(ensembles[1], names)
    rows = lacking(people(9)[0], 0, 0.4)
    data = dict(zip(names, rows.T, strict=True))
    found = xcount.compare(
        ensembles, sensitive="Column_1", flip=True, distances="any", data=data, explain=False
    )
    for result, (_, predict) in zip(found.rows[0].results, models, strict=True):
        assert result is not None
        details = result.measures["rows"].details
        assert details["sensitive_rows"] == sensitive_rows(predict, rows)


def _renamed(ensemble: xcount.Ensemble, names: list[str]) -> xcount.Ensemble:
    features = zip(ensemble.features, names, strict=True)
    return replace(ensemble, features=tuple(replace(f, name=name) for f, name in features))


def test_unknown_categories_go_where_lightgbm_sends_them() -> None:
    """A code that it never saw is to LightGBM what a missing one is."""
    model, predict = lightgbm_with_categories(0, 0.0)
    rows, _ = people(3)
    rows[::3, 3] = 9.0
    found = xcount.count(model, sensitive=[SEX], flip=True, distance="any", data=rows).measures[
        "rows"
    ]
    assert found.details["sensitive_rows"] == sensitive_rows(predict, rows)
    assert found.details["left_out"] == 0


def test_a_population_keeps_the_rows_that_lack_values(tmp_path: Path) -> None:
    """The missing cell is a cell of it, also when it is used again without the data."""
    model, predict = xgboost(0, 0.3)
    rows, _ = people(2)
    rows[5:, 0] = np.nan
    truth = len(sensitive_rows(predict, rows)) / N_ROWS
    file = tmp_path / "people.json"
    question: dict[str, Any] = {
        "sensitive": [SEX],
        "flip": True,
        "distance": "any",
        "measures": "population",
    }
    fitted = xcount.count(model, data=rows, population=file, **question)
    again = xcount.count(model, population=file, **question)
    assert again.measures["population"].share == fitted.measures["population"].share
    assert fitted.measures["population"].share == pytest.approx(truth, abs=0.05)


def figure(folder: Path) -> Path:
    """Write two columns, of which the second has a word among its numbers."""
    path = folder / "rows.csv"
    lines = ["f0,f1", "3.5,1", "5,9", "3.5,unknown", "1,1", "2.9,8"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def trees() -> xcount.Ensemble:
    """Return the paper's figure 1, for inputs that may be missing."""
    model = figure_1()
    return replace(model, features=tuple(replace(f, can_be_missing=True) for f in model.features))


def test_a_row_without_a_place_counts_at_its_worst(tmp_path: Path) -> None:
    """It is not sensitive in the low bound, and sensitive in the high one."""
    question: dict[str, Any] = {"sensitive": "f0", "gap": 80, "distance": 1}
    data = figure(tmp_path)
    result = xcount.count(trees(), data=data, judge="rows", max_share="20%", **question)
    whole = {"f0": [3.5, 5.0, 1.0, 2.9], "f1": [1.0, 9.0, 1.0, 8.0]}
    n_sensitive = xcount.count(trees(), data=whole, **question).measures["rows"].details
    found = result.measures["rows"]
    assert found.details["left_out_reasons"] == {"f1 is no number": 1}
    assert found.details["left_out_rows"] == [2]
    assert found.details["n_sensitive"] == n_sensitive["n_sensitive"] == 2
    assert (found.low, found.share, found.high) == (2 / 5, 2 / 4, 3 / 5)
    statuses = [
        xcount.count(trees(), data=data, judge="rows", max_share=limit, **question).exit_status
        for limit in ("39%", "40%", "59%", "60%")
    ]
    assert statuses == [1, 3, 3, 0]


def test_a_column_of_words_is_an_error_still(tmp_path: Path) -> None:
    """Nothing can be placed: the user has to encode it."""
    path = tmp_path / "rows.csv"
    path.write_text("f0,f1\n3.5,low\n5,high\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"'f1', row 0 .*'low' is text, the model takes numbers"):
        xcount.count(trees(), sensitive="f0", gap=80, data=path)


def test_rows_outside_the_domain_are_not_asked_about() -> None:
    """Neither is a row that lacks what a condition is about; and it is said how many there are."""
    rows = {"f0": [3.5, 5.0, 1.0, math.nan], "f1": [1.0, 9.0, 1.0, 1.0]}
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "data": rows}
    found = xcount.count(trees(), where="f1 < 5", **asked).measures["rows"]
    assert (found.details["outside"], found.details["left_out"]) == (1, 0)
    found = xcount.count(trees(), where="f0 < 4", **asked).measures["rows"]
    assert (found.details["outside"], found.details["left_out"]) == (2, 0)
    found = xcount.count(trees(), rule="f1 < 5 -> f0 < 3", **asked).measures["rows"]
    assert (found.details["outside"], found.details["left_out"]) == (2, 0)
    with pytest.raises(QueryError, match=r"in a region: outside the domain \(\d+\)$"):
        xcount.count(trees(), where="f1 > 50", **asked)


def test_no_cell_for_what_the_model_refuses() -> None:
    """A model that takes no missing values leaves such rows out, whatever the option."""
    model = ensemble_of((0, 1.0, 0.0, 3.0))
    assert not model.features[0].can_be_missing
    rows = {"f0": [0.0, math.nan, 2.0]}
    for missing in ("auto", "cell", "none"):
        found = xcount.count(model, sensitive="f0", gap=1, missing=missing, data=rows)
        assert found.measures["rows"].interval == Interval(1, Fraction(2, 3), 1, 1.0, 1)


def outputs(folder: Path, *options: str) -> dict[str, str]:
    """Return what an audit and a comparison of rows write, by the kind of output."""
    model, data = folder / "model.json", str(figure(folder))
    _write_figure(model)
    asked = ("--sensitive", "f0", "--gap", "80", "--distance", "1", "--data", data, *options)
    found = {}
    for command, models in (("audit", [str(model)]), ("compare", [str(model), str(model)])):
        files = {kind: str(folder / f"{command}.{kind}") for kind in ("html", "csv")}
        files |= {"markdown": str(folder / "audit.md")} if command == "audit" else {}
        written = [text for kind, file in files.items() for text in (f"--{kind}", file)]
        names = ["--name", "old", "--name", "new"] if command == "compare" else []
        main([command, *models, *asked, *names, *written])
        for kind, file in files.items():
            found[f"{command} {kind}"] = Path(file).read_text(encoding="utf-8")
    return found


def _write_figure(path: Path) -> None:
    source = Path(__file__).parents[2] / "docs" / "architecture.md"
    text = source.read_text(encoding="utf-8")
    block = text.split('```json title="figure-1.json"\n')[1].split("```")[0]
    path.write_text(json.dumps(json.loads(block)), encoding="utf-8")


@pytest.mark.parametrize("judge", ["regions", "rows"])
def test_every_output_says_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judge: str
) -> None:
    """Terminal, HTML, Markdown and CSV, of an audit and of a comparison."""
    judged = ("--judge", "rows") if judge == "rows" else ()
    where = ("--where", "f0 < 5")
    found = outputs(tmp_path, *judged, *where)
    found["terminal"] = " ".join(capsys.readouterr().out.split())
    for kind, text in found.items():
        if kind.endswith("csv"):
            line = next(csv.DictReader(io.StringIO(text)))
            numbers = [line[f"rows_{key}"] for key in ("n_rows", "outside", "left_out")]
            assert numbers == ["5", "1", "1"]
            assert line["rows_left_out_reasons"] == "f1 is no number: 1"
        elif kind != "terminal":
            assert "1 of 5 is outside the domain" in text, kind
            assert "1 left out: f1 is no number" in text, kind
    assert found["terminal"].count("left out") >= 2


def test_an_undecided_verdict_names_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the card, the headline of an audit, and the message of an assertion."""
    why = "1 row could not be placed: the share is 40.0 % if none of them is sensitive, 60.0 % if"
    model, data = tmp_path / "model.json", str(figure(tmp_path))
    _write_figure(model)
    judged = ("--data", data, "--judge", "rows", "--max-share", "50%", "--distance", "1")
    for command in ("count", "audit"):
        asked = [command, str(model), "--sensitive", "f0", "--gap", "80", *judged]
        assert main(asked) == 3
        said = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert why in said, command
    from xcount.testing import assert_share

    asked_again: dict[str, Any] = {"gap": 80, "data": data, "judge": "rows", "distance": 1}
    with pytest.raises(AssertionError) as error:
        assert_share(model, sensitive="f0", max_share="50%", **asked_again)
    assert why in str(error.value)
    assert "a smaller epsilon" not in str(error.value)


def test_cards_and_frames_have_the_numbers_of_rows(tmp_path: Path) -> None:
    """A notebook shows what the terminal does."""
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "distance": 1, "where": "f0 < 5"}
    result = xcount.count(trees(), data=figure(tmp_path), judge="rows", **asked)
    notes = ("1 of 5 is outside the domain", "1 left out: f1 is no number")
    for text in (result._repr_html_(), repr(result), repr(result.measures["rows"])):
        assert all(note in text for note in notes), text
    for frame in (result.to_dataframe(), result.measures["rows"].to_dataframe()):
        names = [name for name in frame.columns if name.endswith(("n_rows", "outside", "left_out"))]
        assert frame[names].to_numpy().tolist() == [[5, 1, 1]]
