"""Regions and rows that cannot change: no other values of the sensitive features are allowed."""

from __future__ import annotations

import csv
import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from domains import random_world

import xcount
from xcount.cli import main
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.domain import Domain
from xcount.question.grid import Grid


@pytest.mark.parametrize("seed", range(60))
def test_regions_that_cannot_change_are_counted(seed: int) -> None:
    """By the regions of the domain, found point by point: no other one differs just there."""
    world = random_world(seed)
    regions = set(world.regions())
    if not regions:
        return
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    grid = Grid.of(ensemble, missing="cell" if world.missing else "none", domain=domain)
    for sensitive in itertools.combinations(range(len(grid.axes)), 1 + seed % 2):
        rests = [tuple(key for i, key in enumerate(r) if i not in sensitive) for r in regions]
        expected = sum(rests.count(rest) == 1 for rest in rests)
        assert grid.n_fixed(sensitive) == expected
        existing = np.array([*np.ndindex(*grid.cell_counts)])
        existing = existing[grid.exists(existing)]
        assert int(grid.are_fixed(existing, sensitive).sum()) == expected


def test_a_value_that_may_only_be_left_makes_the_other_one_stay() -> None:
    """From a missing value one can go to the only other one, and from there nowhere."""
    model = ensemble_of((0, 1.0, (1, 1.0, 0.0, 1.0), 3.0))
    model = replace(model, features=tuple(replace(f, can_be_missing=True) for f in model.features))
    domain = Domain.of(rule="f1 < 1 -> f0 < 1")
    grid = Grid.of(model, missing="auto", missing_in=["f0"], domain=domain)
    starts = [region for region in np.ndindex(3, 2) if grid.exists(np.array([region]))[0]]
    # f0 < 1, f0 >= 1 or f0 is missing; a rule is broken by a missing value.
    assert starts == [(0, 0), (0, 1), (1, 1), (2, 1)]
    assert grid.n_fixed([0]) == 1


def written(folder: Path) -> tuple[str, str]:
    """Write figure 1 and some rows; return the files."""
    page = Path(__file__).parents[2] / "docs" / "architecture.md"
    text = page.read_text(encoding="utf-8").split('```json title="figure-1.json"\n')[1]
    model, data = folder / "model.json", folder / "rows.csv"
    model.write_text(json.dumps(json.loads(text.split("```")[0])), encoding="utf-8")
    data.write_text("f0,f1\n1,1\n1,1.5\n1,2.5\n3.5,9\n1,9\n", encoding="utf-8")
    return str(model), str(data)


RULE = "f1 < 2 -> f0 < 3"
"""Leaves 7 of the 9 regions of figure 1; of one of them, f0 cannot change."""


def test_shares_of_all_and_of_those_that_can_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the JSON, the card, and every report of an audit and a comparison."""
    model, data = written(tmp_path)
    asked = ["--sensitive", "f0", "--gap", "50", "--rule", RULE, "--data", data]
    assert main(["count", model, *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["details"]["measures"]["rows"]
    assert (found["n_regions"], found["n_fixed"]) == (7, 1)
    assert (rows["n_rows"], rows["n_fixed"], rows["n_sensitive"]) == (5, 2, 2)
    assert main(["count", model, *asked]) == 0
    card = " ".join(capsys.readouterr().out.replace("│", " ").split())
    regions = f"{found['count'] / 6:.1%}".replace("%", " %")
    assert f"{regions} of the 6 whose f0 can change" in card
    assert "2 of 5 rows; 66.7 % of the 3 whose f0 can change" in card
    files = {kind: tmp_path / f"audit.{kind}" for kind in ("html", "csv", "markdown")}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    for judge in ("regions", "rows"):
        assert main(["audit", model, *asked, "--judge", judge, *options]) == 0
        texts = {kind: file.read_text(encoding="utf-8") for kind, file in files.items()}
        assert "66.7 % of the 3 whose f0 can change" in texts["html"] + texts["markdown"]
        for kind in ("html", "markdown"):
            assert "66.7 % of the 3 that can change" in texts[kind]
            assert f"{regions} of the 6 that can change" in texts[kind]
        line = next(csv.DictReader(io.StringIO(texts["csv"])))
        assert (line["n_fixed"], line["rows_n_fixed"]) == ("1", "2")
    assert capsys.readouterr().out.count("can change") > 3


def test_a_comparison_says_it_of_each_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal and on the page."""
    model, data = written(tmp_path)
    page = tmp_path / "page.html"
    asked: list[str] = ["--sensitive", "f0", "--gap", "50", "--rule", RULE, "--data", data]
    names = ["--name", "old", "--name", "new"]
    assert main(["compare", model, model, *names, *asked, "--html", str(page)]) == 0
    assert "that can change" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert page.read_text(encoding="utf-8").count("66.7 % of the 3 that can change") >= 2


def test_nothing_is_said_if_all_can_change() -> None:
    """Without rules, or if they fix nothing."""
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 50}
    assert xcount.count(figure_1(), **asked).n_fixed == 0
    result = xcount.count(figure_1(), rule="f1 < 2 -> f0 < 4", **asked)
    assert result.n_fixed == 0
    assert "can change" not in result._repr_html_()
