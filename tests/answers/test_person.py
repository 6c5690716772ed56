"""One person: every line is what the library predicts, and the nearest change is the nearest."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import trained
from strategies import random_ensemble

import xcount
from xcount.cli.app import run
from xcount.model.examples import ensemble_of, figure_1

pd = pytest.importorskip("pandas")
MODELS = {
    "xgboost": lambda: trained.boosted(2),
    "lightgbm": trained.light,
    "forest": trained.forest,
}
PEOPLE = {"f0": [1, 3, 5, 1], "f1": [0, 1, 2.5, 0.5]}


def at(given: trained.Trained, row: int, values: dict[str, Any]) -> Any:
    """Return a row with other values of a column, as the library takes it."""
    changed = given.rows.iloc[[row]].copy()
    for name, value in values.items():
        if isinstance(given.rows[name].dtype, pd.CategoricalDtype):
            code = pd.Categorical.from_codes([int(value)], dtype=given.rows[name].dtype)
            changed[name] = pd.Series(code, index=changed.index)
        else:
            changed[name] = value
    return changed


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("sensitive", ["a", "k", "a,k"])
def test_every_line_is_what_the_library_predicts(
    make: Callable[[], trained.Trained], sensitive: str
) -> None:
    """Its probability and decision, at the person's row with other values."""
    given = make()
    names = sensitive.split(",")
    for row in (0, 17, 101):
        found = xcount.person(given.model, data=given.rows, row=row, sensitive=sensitive)
        assert found.confirmed
        now = int(given.decide(given.rows.iloc[[row]])[0])
        flips = []
        for cell in found.cells:
            values = {name: cell.point[name] for name in names}
            one = at(given, row, {} if cell.is_now else values)
            assert cell.probability == pytest.approx(given.output(one)[0], abs=1e-5)
            assert cell.counts == (given.decide(one)[0] != now)
            flips += [cell.distance] if cell.counts else []
            others = {name: value for name, value in cell.point.items() if name not in names}
            assert others == {name: v for name, v in found.inputs.items() if name not in names}
        assert sum(cell.is_now for cell in found.cells) == 1
        assert (found.nearest is None) == (not flips)
        if found.nearest is not None:
            assert found.nearest.distance == min(flips)
        rows = xcount.count(given.model, sensitive=sensitive, flip=True, data=given.rows)
        assert found.n_sensitive == rows.measures["rows"].details["n_sensitive"]
        assert (found.nearest is not None) == (
            row in rows.measures["rows"].details["sensitive_rows"]
        )


@pytest.mark.filterwarnings("ignore:no tree of the model tests")
@pytest.mark.parametrize("seed", range(40))
def test_random_models_agree_with_sums(seed: int) -> None:
    """A person has a change exactly if their row is sensitive, under every kind of question."""
    rng = np.random.default_rng(seed)
    model = random_ensemble(seed)
    axes = [oracle.cells(model, f) for f in range(model.n_features)]
    data = np.array([[rng.choice(axis) for axis in axes] for _ in range(8)])
    is_asked = np.ones(len(data), dtype=np.bool_)
    asked: dict[str, Any] = {"gap": "0.5"} if seed % 2 else {"flip": True, "cutoff": 0}
    asked["distance"] = ["any", 1, 2][seed % 3]
    asked["direction"] = ["any", "up", "down"][seed // 3 % 3]
    if seed % 4 == 0 and model.n_features > 1:
        bound = float(np.median(data[:, 1])) + 0.25
        asked["where_from"] = f"f1 < {bound}"
        is_asked = data[:, 1] < bound
    try:
        counted = xcount.count(model, sensitive="f0", measures="rows", data=data, **asked)
    except xcount.XCountError:  # nobody is asked about
        return
    details = counted.measures["rows"].details
    for row in np.flatnonzero(is_asked).tolist():
        found = xcount.person(model, data=data, row=row, sensitive="f0", **asked)
        assert (found.nearest is not None) == (row in details["sensitive_rows"])
        assert found.n_sensitive == details["n_sensitive"]
        for cell in found.cells:
            point = [np.nan if value is None else value for value in cell.point.values()]
            leaves = model.leaf_indices(np.array([point]))[0]
            both = zip(model.trees, leaves.tolist(), strict=True)
            margin = sum(
                Fraction(float(tree.value[leaf])) for tree, leaf in both if not tree.output
            )
            total = margin / model.divisor + Fraction(model.base[0])
            assert cell.margin == float(total)


def test_what_moves_along_is_in_the_line() -> None:
    """A husband who becomes female is looked up as a wife."""
    model = ensemble_of((0, 0.5, (1, 0.5, 1.0, -1.0), (1, 0.5, 2.0, -2.0)))
    people = {"f0": [0.0], "f1": [0.0]}
    plain = xcount.person(model, data=people, row=0, sensitive="f0", cutoff=0)
    assert [cell.margin for cell in plain.cells] == [1.0, 2.0]
    moved = xcount.person(model, data=people, row=0, sensitive="f0", cutoff=0, along="f1: 0 <-> 1")
    assert [cell.margin for cell in moved.cells] == [1.0, -2.0]
    assert moved.nearest is not None
    assert moved.nearest.point == {"f0": 1.0, "f1": 1.0}


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no such row": ({"row": 4}, "has 4 rows, counted from 0"),
    "outside": ({"where": "f1 < 2", "row": 2}, "outside the domain"),
    "no decision": ({"cutoff": None, "model": "regression"}, "makes no decision"),
}


@pytest.mark.parametrize(("options", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_have_a_message(options: dict[str, Any], said: str) -> None:
    """The row, the domain, the decision."""
    from dataclasses import replace

    model = figure_1()
    if options.pop("model", None):
        model = replace(model, task="regression", decides_at=None)
    asked: dict[str, Any] = {"data": PEOPLE, "row": 0, "sensitive": "f0", "cutoff": 0, **options}
    with pytest.raises(xcount.XCountError, match=said):
        xcount.person(model, **asked)


def test_the_command_writes_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with bars, JSON that can be read again, and a page."""
    from xcount.model.examples import adult_model_path

    people = Path(__file__).parent.parent.parent / "examples" / "adult-extract.csv.gz"
    words = [str(adult_model_path()), "--data", str(people), "--row", "7", "--sensitive", "sex"]
    page = tmp_path / "person.html"
    assert run(["person", *words, "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "What would row 7 get if only sex were different?" in shown
    assert "now" in shown
    assert "█" in shown
    assert "What would row 7 get" in page.read_text(encoding="utf-8")
    assert run(["person", *words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    read = xcount.PersonResult.from_dict(data)
    assert read.to_dict() == data
    assert len(read.cells) == 2
    assert "row 7" in repr(read)
    assert "What would row 7 get" in read._repr_html_()
    assert len(read.to_dataframe()) == 2
