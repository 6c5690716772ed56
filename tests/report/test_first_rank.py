"""The headline of a report is the first rank of its table; and which grid a share is of."""

from __future__ import annotations

import io
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import xcount
from xcount.model.examples import ensemble_of, figure_1
from xcount.report.batch_text import audit_tables, comparison_tables
from xcount.report.lead import lead, ranking_shown
from xcount.report.page.view import View
from xcount.report.text import count_tables

ROWS = np.array([[1.0, 9.0], [5.0, 9.0], [3.5, 2.5], [1.0, 2.5]])

QUESTIONS: list[dict[str, Any]] = [
    {"gaps": "50"},
    {"gaps": "5,50", "distances": [1, "any"]},
    {"gaps": "50", "data": ROWS},
    {"gaps": "50", "data": ROWS, "judge": "rows"},
    {"gaps": "50", "max_share": "f0=90%,f1=10%"},
    {"gaps": "50", "max_share": "f0=10%,f1=90%"},
    {"gaps": "5,50", "data": ROWS, "judge": "rows", "max_share": "f0=90%,f1=10%"},
    {"gaps": "50", "sensitive": ["f1"], "max_share": "50%"},
]


def printed(tables: Any) -> str:
    """Return what the terminal shows, on one line."""
    out = io.StringIO()
    console = Console(file=out, width=200, color_system=None)
    for each in tables:
        console.print(each)
    return " ".join(out.getvalue().replace("│", " ").split())


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
@pytest.mark.parametrize("named", [("f0", "f1"), ("f0", "sex"), ("sex", "f1")], ids=str)
def test_the_headline_is_the_first_rank(asked: dict[str, Any], named: tuple[str, str]) -> None:
    """Whatever leads, because it fails, is protected, or is the largest: the same question."""
    model = figure_1()
    features = tuple(replace(f, name=n) for f, n in zip(model.features, named, strict=True))
    model = replace(model, features=features)
    words = {key: _renamed(value, named) for key, value in asked.items()}
    audit = xcount.audit(model, explain=False, **words)
    leading, ranking = lead(audit), ranking_shown(audit)
    assert leading is not None
    assert ranking[0].results[0] is leading.result
    assert [ranked.rank for ranked in ranking] == list(range(1, len(ranking) + 1))
    assert View.of(audit).ranking[0].sensitive == leading.result.sensitive
    text = printed(audit_tables(audit))
    table = text.split("Sensitivity of the model", 1)[1]
    label = " + ".join(leading.result.sensitive)
    assert table.index(f" 1 {label} ") < table.index(leading.result.change.brief)


def _renamed(value: Any, names: tuple[str, str]) -> Any:
    """Return the words of a question with other names of features."""
    if isinstance(value, str):
        return value.replace("f0", names[0]).replace("f1", names[1])
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return value


def test_every_share_of_regions_says_of_which_grid() -> None:
    """A model of its own grid passes a limit that it does not on a shared one: both say so."""
    rough = ensemble_of((0, 1.0, (1, 1.0, 0.0, 3.0), 0.0))
    fine = ensemble_of((1, 0.5, 0.0, (1, 0.7, 1.0, 0.0)), n_features=2)
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 2}
    alone = xcount.count(rough, **asked)
    both = xcount.compare([rough, fine], sensitive="f0", gaps=2, explain=False)
    result = both.rows[0].results[0]
    assert result is not None
    assert alone.share != result.share
    assert "(the model's own grid)" in printed(count_tables(alone))
    shown = printed(comparison_tables(both))
    why = "On a model's own grid (xcount count, xcount audit) a share of regions differs"
    assert why in shown
    assert why in unescape(both.to_html())
    audit = xcount.audit(rough, sensitive="f0", gaps=2)
    shown = printed(audit_tables(audit))
    assert "own grid; a grid that xcount compare shares with other models has more" in shown
    for text in (unescape(audit.to_html()), audit.to_markdown()):
        assert "the model's own grid (xcount compare shares a finer one between models" in text
