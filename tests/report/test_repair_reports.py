"""A repair as a page, as Markdown and in a notebook."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import xcount
from xcount.model.examples import adult_held_out_path, adult_one_hot_paths, figure_1

pytest.importorskip("clarabel")


def repaired(gap: float = 30) -> xcount.RepairResult:
    """Return a repair of the paper's figure 1."""
    rows = np.array([[1.0, 1.0], [5.0, 5.0]])
    return xcount.repair(figure_1(), sensitive="f0", gap=gap, data=rows, explain=True)


def test_the_curves_show_both_models() -> None:
    """After the repair, no share is left at the gap; before, there is one."""
    result = repaired()
    shares = []
    for count in (result.before, result.after):
        assert count.explanation is not None
        points = count.explanation.curves[0].points
        shares.append(next(point.share.high for point in points if point.gap == 30))
    assert shares[0] > 0
    assert shares[1] == 0
    page = result.to_html()
    assert page.count("<main") == 1
    for words in ("The limit is proved", "Share of the regions", ">before<", ">after<"):
        assert words in page


def test_without_curves_there_is_a_page() -> None:
    """The counts stand there all the same."""
    result = xcount.repair(figure_1(), sensitive="f0", gap=30, data=np.zeros((1, 2)))
    assert "Share of the regions that changes" not in result.to_html()
    assert f"{result.before.count:,} (exact)" in result.to_html()


def test_a_notebook_shows_a_card_and_a_table() -> None:
    """One line, a card with bars, and a row per question before and after."""
    pytest.importorskip("pandas")
    result = repaired()
    assert repr(result) == "RepairResult(f0, gap 30: proved, program)"
    card = result._repr_html_()
    for words in ("Repair of f0", "before", "after", "have another value"):
        assert words in card
    table = result.to_dataframe()
    assert table["model"].tolist() == ["before", "after"]
    assert table["count"].tolist() == [result.before.count, 0]


def test_names_are_escaped(tmp_path: Path) -> None:
    """A feature's name is no markup, in neither form."""
    from dataclasses import replace

    model = figure_1()
    features = tuple(
        replace(feature, name=name)
        for feature, name in zip(model.features, ("<b>|x", "y"), strict=True)
    )
    hostile = replace(model, features=features)
    result = xcount.repair(hostile, sensitive=[0], gap=30, data=np.zeros((1, 2)))
    assert "<b>" not in result.to_html()
    assert "\\|x" in result.to_markdown(tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text() == result.to_markdown()


def test_the_command_writes_the_reports(xcount_command: Command, tmp_path: Path) -> None:
    """The model, its page and its Markdown; the curves come with the page."""
    model, domain = map(str, adult_one_hot_paths())
    html, markdown = tmp_path / "page.html", tmp_path / "card.md"
    run = xcount_command(
        *("repair", model, "--domain", domain, "--sensitive", "sex", "--gap", "0.5"),
        *("--data", str(adult_held_out_path()), "--output", tmp_path / "repaired.json"),
        *("--html", html, "--markdown", markdown),
    )
    assert run.status == 0, run.err
    assert run.out.count("Wrote") == 3
    assert "Share of the regions that changes" in html.read_text(encoding="utf-8")
    assert "154,770 (exact)" in markdown.read_text(encoding="utf-8")
