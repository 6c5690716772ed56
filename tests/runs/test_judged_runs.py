"""Audits and comparisons by measures: ranking, limits, ratios, journals."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from journals import records_of, write_records

import xcount
from xcount.answers.result import Verdict
from xcount.model.examples import ensemble_of
from xcount.report import csv_comparison, csv_report, markdown_report
from xcount.report.lead import headline
from xcount.runs import task
from xcount.runs.audit import AuditResult
from xcount.runs.batch import BatchProgress
from xcount.runs.compare import CompareResult

WIDE = ensemble_of((0, 1.0, 0.0, 3.0), (1, 1.0, 0.0, (0, 9.0, 1.0, 4.0)))
"""f0 matters everywhere; f1 only from 9 on, where nobody is."""
NARROW = ensemble_of((0, 1.0, 0.0, (1, 5.0, 0.0, 3.0)), (1, 1.0, 0.0, 0.5))
"""f0 matters only where f1 is at least 5."""
ROWS = np.array([[0.0, 0.0], [2.0, 6.0], [2.0, 0.0], [0.0, 7.0]])
ASKED: dict[str, Any] = {"gaps": 2, "distances": "any", "data": ROWS}


def audited(**asked: Any) -> AuditResult:
    """Audit the first model, rows measured unless said."""
    return xcount.audit(WIDE, **(ASKED | {"measures": "rows"} | asked))


def compared(**asked: Any) -> CompareResult:
    """Compare both models, rows measured unless said."""
    return xcount.compare([WIDE, NARROW], sensitive="f0", **(ASKED | {"measures": "rows"} | asked))


def test_an_audit_ranks_and_judges_by_rows() -> None:
    """A limit for each feature is one on its share of the rows."""
    plain = audited(sensitive=["f0", "f1"], max_share="f0=1,f1=0%")
    result = audited(sensitive=["f0", "f1"], judge="rows", max_share="f0=1,f1=0%")
    assert [r.verdict for r in plain.results] == [Verdict.PASS, Verdict.FAIL]
    assert [r.verdict for r in result.results] == [Verdict.PASS, Verdict.PASS]
    assert [(r.label, r.score.value) for r in result.ranking] == [("f0", 1.0), ("f1", 0.0)]
    assert plain.ranking[1].score.value == pytest.approx(1 / 3)
    assert (plain.judge, result.judge) == ("regions", "rows")
    assert result.to_dict()["judge"] == "rows"
    assert AuditResult.from_dict(result.to_dict()) == result
    assert headline(result) == "Both features stay within their limits (shares of the rows)"
    same = audited(sensitive=["f0", "f1"], judge="rows", max_share="5%")
    assert headline(same) == (
        "f0 is above the limit: 100 % of the 4 cases in the array, at most 5 % allowed"
    )


def test_measures_are_columns_of_csv_and_markdown() -> None:
    """The judged one comes first where people read."""
    result = audited(sensitive="f0", judge="rows", max_share="99%")
    (line,) = csv.DictReader(io.StringIO(csv_report(result)))
    assert (line["judge"], line["verdict"], line["max_share"]) == ("rows", "FAIL", "0.99")
    assert [line[f"rows_{end}"] for end in ("share", "low", "high")] == ["1.0"] * 3
    text = markdown_report(result)
    assert "| By rows | How sure | Share of regions | How sure | Verdict |" in text
    assert "| 100 % (4 of 4 rows) | exact | 100 % | exact | FAIL |" in text
    assert "Limits apply to the share of the rows, not to the share of the regions." in text


def test_ratios_are_those_of_each_measure() -> None:
    """All models are weighed by the same rows on the shared grid."""
    result = compared(judge="rows", max_ratio="1/2")
    (row,) = result.rows
    assert [r.measures["rows"].details["n_sensitive"] for r in row.results if r] == [4, 2]
    ratio = row.ratio(1, "rows")
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == (0.5, 0.5, 0.5)
    assert row.ratios[1] != ratio  # that of the regions
    assert result.to_dict()["rows"][0]["measure_ratios"]["rows"][1]["value"] == 0.5
    assert result.verdict is Verdict.PASS
    assert compared(judge="rows", max_ratio="0.4999").verdict is Verdict.FAIL
    assert result.ranking[0].mean_share.value == 0.5
    assert CompareResult.from_dict(result.to_dict()) == result
    lines = list(csv.DictReader(io.StringIO(csv_comparison(result))))
    assert [line["rows_ratio"] for line in lines] == ["1.0", "0.5"]
    assert "measure_ratios" not in compared(measures=(), data=None).to_dict()["rows"][0]


def test_a_comparison_has_one_population() -> None:
    """Fitted once, on the cells of the shared grid."""
    rng = np.random.default_rng(0)
    rows = rng.random((200, 2)) * 8
    result = compared(data=rows, measures="population,volume", bounds="f0=0:8,f1=0:8")
    first, second = (r.measures["population"] for r in result.rows[0].results if r)
    assert first.details == second.details
    sensitive = (rows[:, 1] >= 5).mean()
    ratio = result.rows[0].ratio(1, "population")
    assert ratio is not None
    assert ratio.value == pytest.approx(sensitive, abs=0.06)
    volume = result.rows[0].ratio(1, "volume")
    assert volume is not None
    assert volume.value == pytest.approx(3 / 8)


@pytest.mark.parametrize("run", [audited, compared])
def test_another_judge_counts_nothing_again(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has all measures: a verdict is only arithmetic."""
    journal = tmp_path / "journal.jsonl"
    asked: dict[str, Any] = {"sensitive": "f0"} if run is audited else {}
    limit = "max_share" if run is audited else "max_ratio"
    first = run(journal=journal, **asked)
    assert first.verdict is None

    def solve(*arguments: object) -> None:
        raise AssertionError("counted again")

    monkeypatch.setattr(task, "solve", solve)
    kept: dict[str, Any] = {"journal": journal, "resume": True, **asked}
    by_rows = run(judge="rows", **{limit: "0.6"}, **kept)
    by_regions = run(**{limit: "0.6"}, **kept)
    assert by_rows.judge == "rows"
    assert by_rows.verdict is (Verdict.FAIL if run is audited else Verdict.PASS)
    assert by_regions.judge == "regions"
    assert by_regions.verdict is not None
    read = type(first).from_journal(journal)
    assert (read.judge, read.verdict) == ("regions", by_regions.verdict)


@pytest.mark.parametrize(
    "more", [{"judge": "marginals", "max_share": "50%"}, {"judge": "rows", "timeout": 90}]
)
def test_a_measure_that_had_little_time_is_weighed_again(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """Most of the time is for the measure that is judged; with more, all of them have more."""
    journal = tmp_path / "journal.jsonl"
    asked: dict[str, Any] = {
        "sensitive": "f0",
        "measures": ["rows", "marginals"],
        "journal": journal,
        "timeout": 60,
        "explain": False,
    }
    first = audited(judge="rows", max_share=1, **asked).results[0]
    lines = records_of(journal)
    cut = lines[-1]["result"]["details"]["measures"]["marginals"]
    cut |= {"share": None, "low": 0.0, "high": 1.0, "exact": False, "stop_reason": "timeout"}
    write_records(journal, lines)
    again = audited(**asked | {"resume": True} | more).results[0]
    assert again.measures == first.measures
    assert again.judge == more["judge"]


def test_a_limit_whose_counts_are_missing_is_undecided(tmp_path: Path) -> None:
    """The run line says that there is a limit, before any count that it judges is done."""
    path, begun = tmp_path / "j.jsonl", tmp_path / "begun.jsonl"

    def interrupt(progress: BatchProgress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    asked: dict[str, Any] = {"gaps": [1, 2], "jobs": 1, "on_progress": interrupt}
    stopped = xcount.audit(WIDE, **asked, max_share={"f1": "1%"}, journal=path)
    assert {result.sensitive for result in stopped.results} == {("f0",)}
    begun.write_text(path.read_text().splitlines(keepends=True)[0])
    only_begun = AuditResult.from_journal(begun)
    assert only_begun.results == ()
    again = AuditResult.from_dict(stopped.to_dict())
    for found in (stopped, AuditResult.from_journal(path), again, only_begun):
        assert (found.verdict, found.exit_status) == (Verdict.UNDECIDED, 3)
        assert headline(found).startswith("Not decided: ")
    assert xcount.audit(WIDE, **asked).verdict is None


def test_a_run_line_of_before_limits_were_kept_is_read(tmp_path: Path) -> None:
    """What its results say is the verdict then."""
    path = tmp_path / "j.jsonl"
    audited(max_share="100%", journal=path)
    run, *results = records_of(path)
    del run["judged"]
    for lines, verdict in ((results, Verdict.PASS), ([], None)):
        write_records(path, [run, *lines])
        assert AuditResult.from_journal(path).verdict is verdict
