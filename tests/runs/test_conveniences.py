"""Small conveniences of the Python interface and of interrupted runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import xcount
from xcount.cli import batch
from xcount.counters.tally import StopReason
from xcount.model.examples import figure_1


def test_dir_lists_the_public_names() -> None:
    """Also those that nobody has imported yet."""
    assert {*xcount.__all__} <= {*dir(xcount)}


def test_models_may_be_compared_one_after_the_other() -> None:
    """As in a list."""
    compare: Any = xcount.compare
    found, listed = compare(figure_1(), figure_1(), gaps=80), compare([figure_1()] * 2, gaps=80)
    assert found.n_models == 2
    assert [row.results[1].count for row in found.rows] == [
        row.results[1].count for row in listed.rows
    ]


def test_reports_are_written_to_a_path(tmp_path: Path) -> None:
    """The file holds the text that is returned."""
    audit = xcount.audit(figure_1(), gaps=80)
    for write in (audit.to_html, audit.to_markdown, audit.to_csv):
        path = tmp_path / "report"
        assert write(path) == path.read_text(encoding="utf-8")
    comparison = xcount.compare([figure_1(), figure_1()], gaps=80)
    assert comparison.to_html(tmp_path / "page") == (tmp_path / "page").read_text(encoding="utf-8")


def test_an_audit_is_asked_for_a_feature_by_name() -> None:
    """An unknown name is a KeyError that suggests a known one."""
    audit = xcount.audit(figure_1(), gaps=80)
    assert audit["f0"].results[0].sensitive == ("f0",)
    with pytest.raises(KeyError, match="no counts of 'sex'"):
        audit["sex"]


def test_the_line_of_a_count_with_data_says_the_people() -> None:
    """Beside the regions."""
    data = {"f0": [1, 5, 9], "f1": [1, 1, 1]}
    line = repr(xcount.count(figure_1(), sensitive="f0", gap=80, data=data))
    assert "2 of 9 regions" in line
    assert "of 3 rows" in line


def test_an_interrupted_run_says_how_to_continue(capsys: pytest.CaptureFixture[str]) -> None:
    """With a journal and without; a finished run says nothing."""
    audit = xcount.audit(figure_1(), gaps=80)
    batch.name_resume(audit, None)
    assert capsys.readouterr().err == ""
    first = replace(audit.results[0], stop_reason=StopReason.INTERRUPTED)
    cut = replace(audit, results=(first, *audit.results[1:]))
    batch.name_resume(cut, None)
    assert "--journal FILE" in capsys.readouterr().err
    batch.name_resume(cut, "audit.jsonl")
    assert "--resume to continue from audit.jsonl" in capsys.readouterr().err
