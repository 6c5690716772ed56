"""``xcount audit``, ``compare`` and ``report`` from the command line to their exit statuses."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from model_files import Nested, write_model

from xcount.model.examples import adult_model_path
from xcount.runs.audit import AuditResult
from xcount.runs.journal import read_journal

GAP = ("--gap", "80", "--distance", "1")


def test_an_audit_is_a_table(xcount_command: Command, figure_1_file: str) -> None:
    """Ranked features with shares; where the gaps come from is said."""
    run = xcount_command("audit", figure_1_file, *GAP)
    assert (run.status, run.err) == (0, "")
    assert run.out.index("age") < run.out.index("sex")
    assert "22.2 %" in run.out
    assert "given, in margin" in run.out


@pytest.mark.slow
def test_the_default_ladder_and_probability_gaps(
    xcount_command: Command, figure_1_file: str
) -> None:
    """Without gaps there is a ladder; gaps in probability are those of the model itself."""
    run = xcount_command("audit", figure_1_file)
    assert run.status == 0
    assert "ladder of round numbers" in run.out
    question = ("--sensitive", "sex", "--probability-gap", "0.2,0.1", "--direction", "down")
    run = xcount_command("audit", adult_model_path(), *question, "--json")
    data = json.loads(run.out)
    assert "predicted probability" in data["gap_origin"]
    found = [(r["probability_gap"], r["direction"], r["link"]) for r in data["results"]]
    assert found == [(0.1, "down", "sigmoid"), (0.2, "down", "sigmoid")]


def test_repeated_limits_all_count(xcount_command: Command, figure_1_file: str) -> None:
    """As with commas: none replaces another."""
    limits = ("--max-share", "age=10%", "--max-share", "sex=10%")
    run = xcount_command("audit", figure_1_file, *GAP, *limits)
    assert run.status == 1
    assert "FAIL: age is above the limit" in run.out


@pytest.mark.parametrize(
    ("max_share", "status", "word"),
    [("30%", 0, "PASS"), ("0.1", 1, "FAIL"), ("age=0.3,sex=0", 0, "PASS"), ("age=0", 1, "FAIL")],
)
def test_limits_become_exit_statuses(
    xcount_command: Command, figure_1_file: str, max_share: str, status: int, word: str
) -> None:
    """0 for PASS, 1 for FAIL."""
    run = xcount_command("audit", figure_1_file, *GAP, "--max-share", max_share)
    assert run.status == status
    assert word in run.out


def test_groups_and_several_values(xcount_command: Command, figure_1_file: str) -> None:
    """Groups repeat; gaps and distances repeat or have commas."""
    run = xcount_command(
        "audit",
        figure_1_file,
        *("--sensitive", "age", "--sensitive", "age,sex"),
        *("--gap", "1,80", "--gap", "2"),
        *("--distance", "1,any"),
        "--json",
    )
    results = json.loads(run.out)["results"]
    questions = {(tuple(r["sensitive"]), r["gap"], r["distance"]) for r in results}
    assert questions == {
        (group, gap, distance)
        for group in (("age",), ("age", "sex"))
        for gap in (1.0, 2.0, 80.0)
        for distance in (1, "any")
    }


def test_every_output_has_the_same_numbers(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """HTML, CSV, Markdown, plot and journal of one run; report renders them again, alike."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    journal = tmp_path / "results.jsonl"

    def files(folder: Path) -> list[object]:
        return [
            *("--html", folder / "r.html", "--csv", folder / "r.csv"),
            *("--markdown", folder / "r.md", "--plot", folder / "r.svg"),
        ]

    run = xcount_command("audit", figure_1_file, *GAP, "--journal", journal, *files(first))
    assert (run.status, run.err) == (0, "")
    again = xcount_command("report", journal, *files(second))
    assert again.out.replace("second", "first") == run.out
    for name in ("r.html", "r.csv", "r.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert "<svg" in (second / "r.svg").read_text()
    rows = list(csv.DictReader((first / "r.csv").read_text().splitlines()))
    assert [(row["sensitive"], row["count"]) for row in rows] == [("age", "2"), ("sex", "0")]
    assert "22.2 %" in (first / "r.md").read_text()
    assert sorted(path.name for path in first.iterdir()) == ["r.csv", "r.html", "r.md", "r.svg"]


def test_text_can_go_to_standard_output(xcount_command: Command, figure_1_file: str) -> None:
    """A dash prints; two outputs cannot both be printed."""
    run = xcount_command("audit", figure_1_file, *GAP, "--csv", "-")
    assert run.out.startswith("sensitive,gap,")
    run = xcount_command("audit", figure_1_file, *GAP, "--csv", "-", "--json")
    assert (run.status, run.out) == (2, "")
    assert "only one" in run.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-share", "0.1"], "gap of your choice"),
        (["--gap", "80", "--max-share", "income=0"], "unknown feature 'income'"),
        (["--gap", "80", "--html", "absent/r.html"], "absent/r.html"),
        (["--gap", "80", "--journal", "absent/j.jsonl"], "absent/j.jsonl"),
        (["--gap", "x"], "must be a number such as"),
        (["--probability-gap", "0.1"], "regression model predicts no probability"),
        (["--sensitive", "nobody"], "unknown feature"),
        (["--method", "guess"], "unknown method"),
        (["--gap", "80", "--plot", "r.xyz"], "xyz"),
        (["--gap", "80", "--max-share", "nan%"], "'nan%' is not a share"),
        (["--gap", "80", "--resume"], "--journal"),
        (["--gap", "80", "--csv", "x.out", "--html", "./x.out"], "x.out is named for two outputs"),
        (["--gap", "80", "--csv", "x.out", "--journal", "x.out"], "x.out is named for two outputs"),
    ],
)
def test_errors_are_one_line(
    xcount_command: Command, figure_1_file: str, arguments: list[str], message: str
) -> None:
    """Status 2, nothing on standard output, one line that says what is wrong."""
    run = xcount_command("audit", figure_1_file, *arguments)
    assert (run.status, run.out) == (2, "")
    assert run.err.count("\n") == 1
    assert message in run.err


@pytest.mark.parametrize(
    "arguments", [["--html", "absent/r.html"], ["--plot", "r.xyz"], ["--csv", "."], ["--plot", "-"]]
)
def test_what_cannot_be_written_is_said_before_counting(
    xcount_command: Command,
    figure_1_file: str,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    """Nobody waits an hour for an error that could be known at once."""

    def count_nothing(*arguments: object, **options: object) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr("xcount.runs.audit.audit", count_nothing)
    run = xcount_command("audit", figure_1_file, *GAP, *arguments)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert "internal error" not in run.err


def test_a_journal_is_resumed_only_on_request(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """A second run without --resume is an error; with it, nothing is counted again."""
    journal = tmp_path / "results.jsonl"
    arguments = ("audit", figure_1_file, *GAP, "--journal", journal)
    assert xcount_command(*arguments).status == 0
    before = journal.read_bytes()
    run = xcount_command(*arguments)
    assert run.status == 2
    assert "--resume" in run.err
    assert xcount_command(*arguments, "--resume").status == 0
    assert journal.read_bytes() == before


def test_compare_and_its_report(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Two models, ratios to the first, verdict by --max-ratio; rendered again from the journal."""
    halved = write_model(
        tmp_path / "new.json",
        [(0, 4.0, (1, 3.0, 15.0, -15.0), 17.5), (0, 3.0, (1, 2.0, 20.0, -20.0), -22.5)],
        ["age", "sex"],
    )
    journal, page = tmp_path / "c.jsonl", tmp_path / "c.html"
    arguments = ("compare", figure_1_file, halved, *GAP, "--max-ratio", "1")
    run = xcount_command(*arguments, "--journal", journal, "--html", page)
    assert (run.status, run.err) == (0, "")
    assert "PASS" in run.out
    data = json.loads(xcount_command("report", journal, "--json").out)
    assert data["names"] == ["figure 1.json", "new.json"]
    assert [[r["count"] for r in row["results"]] for row in data["rows"]] == [[2, 0], [0, 0]]
    assert data["rows"][0]["ratios"][1] == {
        "value": 0.0,
        "low": 0.0,
        "high": 0.0,
        "confidence": 1.0,
    }
    assert "C/C₀" in page.read_text()
    worse = xcount_command("compare", halved, figure_1_file, *GAP, "--max-ratio", "1")
    assert (worse.status, "FAIL" in worse.out) == (1, True)
    assert "ratio_low" in xcount_command("report", journal, "--csv", "-").out
    refused = xcount_command("report", journal, "--markdown", "-")
    assert (refused.status, refused.out) == (2, "")


@pytest.mark.parametrize(("ratio", "status"), [("1/3", 0), ("34%", 0), ("0.3333", 1)])
def test_a_ratio_is_compared_exactly(
    xcount_command: Command, tmp_path: Path, ratio: str, status: int
) -> None:
    """Two regions against six are at most a third; the journal says the same."""
    idle: list[Nested] = [(1, 1.0, 0.0, 0.0), (1, 2.0, 0.0, 0.0)]
    base = write_model(tmp_path / "base.json", [(0, 0.5, 0.0, 9.0), *idle], ["age", "sex"])
    other = write_model(
        tmp_path / "other.json", [(1, 1.0, (0, 0.5, 0.0, 9.0), 0.0)], ["age", "sex"]
    )
    journal = tmp_path / "j.jsonl"
    asked = ("--sensitive", "age", "--gap", "2", "--max-ratio", ratio, "--journal", journal)
    run = xcount_command("compare", base, other, *asked, "--json")
    data = json.loads(run.out)
    assert [result["count"] for result in data["rows"][0]["results"]] == [6, 2]
    assert (run.status, data["verdict"]) == (status, "PASS" if status == 0 else "FAIL")
    again = xcount_command("report", journal, "--json")
    assert (again.status, json.loads(again.out)) == (status, data)


@pytest.mark.parametrize(("limit", "status"), [("2/9", 0), ("0.2222", 1)])
def test_a_verdict_survives_the_journal(
    xcount_command: Command, figure_1_file: str, tmp_path: Path, limit: str, status: int
) -> None:
    """An exact fraction is one after it was written and read."""
    journal = tmp_path / "j.jsonl"
    asked = (*GAP, "--max-share", limit, "--journal", journal)
    run = xcount_command("audit", figure_1_file, *asked, "--json")
    again = xcount_command("report", journal, "--json")
    assert (run.status, again.status) == (status, status)
    assert json.loads(again.out) == json.loads(run.out)


def test_report_refuses_what_is_no_journal(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """A model file, an empty file and an absent one are one-line errors."""
    (tmp_path / "empty").write_bytes(b"")
    for path in (figure_1_file, tmp_path / "empty", tmp_path / "absent"):
        run = xcount_command("report", path)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)


def test_sigterm_ends_an_audit_with_what_it_has(tmp_path: Path) -> None:
    """A batch system's signal in the middle of long counts: status 3, bounds, a whole journal."""
    journal = tmp_path / "j.jsonl"
    arguments = [sys.executable, "-m", "xcount", "audit", str(adult_model_path())]
    arguments += ["--sensitive", "marital_status", "--sensitive", "relationship"]
    arguments += ["--gap", "1", "--method", "exact", "--timeout", "500s"]
    arguments += ["--journal", str(journal), "--progress", "none"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        while not (journal.exists() and b'"run"' in journal.read_bytes()):
            assert child.poll() is None
            os.sched_yield()
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 3
    assert err.startswith(b"xcount: interrupted; run the same command with --resume") or not err
    assert b"Sensitivity of" in out
    reasons = [r["result"]["stop_reason"] for r in read_journal(journal) if r["kind"] == "result"]
    assert set(reasons) <= {"interrupted"}
    assert AuditResult.from_journal(journal).n_planned == 2


def test_data_alone_weighs_its_rows(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Who gives people asks about them."""
    (tmp_path / "people.csv").write_text("age,sex\n1,1\n5,1\n")
    given = ("--gap", "80", "--data", tmp_path / "people.csv", "--json")
    run = xcount_command("audit", figure_1_file, *given)
    assert run.status == 0
    results = json.loads(run.out)["results"]
    assert all("rows" in result["details"]["measures"] for result in results)
