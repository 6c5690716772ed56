"""Masks shared out among processes; and a comparison whose counts are verified."""

from __future__ import annotations

import json
from pathlib import Path

import effort
import pytest
import question_oracle
from conftest import Command
from random_questions import question_text
from test_verify import ENGINES, engines, stand_in, use

from xcount.verified.counter import verified_count

__all__ = ["stand_in"]


@engines
def test_parts_add_up_to_the_answer(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However many processes there are, also more than masks."""
    use(monkeypatch, ENGINES[engine])
    for seed in range(effort.n_examples(10)):
        path = tmp_path / f"{seed}.question"
        path.write_text(question_text(seed))
        expected = question_oracle.count(path.read_text())
        for jobs in (2, 3 + seed % 5):
            assert (seed, verified_count(path, jobs=jobs).count) == (seed, expected)


@engines
def test_the_jobs_of_verify(
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    xcount_command: Command,
    figure_1_file: str,
    tmp_path: Path,
) -> None:
    """The command counts with several processes, and says in one line what is wrong with a file."""
    use(monkeypatch, ENGINES[engine])
    path = tmp_path / "age.question"
    asked = ("--sensitive", "age", "--gap", "80", "--question", path)
    assert xcount_command("count", figure_1_file, *asked).status == 0
    run = xcount_command("verify", path, "--jobs", 3, "--json")
    found = json.loads(run.out)
    assert (run.status, found["count"], found["verified"]) == (0, 2, True)
    path.write_text(path.read_text().replace("distance any", "distance few"))
    refused = xcount_command("verify", path, "--jobs", 3)
    assert (refused.status, refused.err.count("\n")) == (2, 1)


@pytest.mark.usefixtures("stand_in")
def test_the_counts_of_a_comparison_are_verified(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Each exact count of each model, in JSON, the journal and the page."""
    journal, page = tmp_path / "kept.jsonl", tmp_path / "page.html"
    asked = ["compare", figure_1_file, figure_1_file, "--gap", "80", "--verify", "--json"]
    run = xcount_command(*asked, "--journal", journal, "--html", page)
    assert run.status == 0
    rows = json.loads(run.out)["rows"]
    assert [result["verified"] for row in rows for result in row["results"]] == [True] * 4
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sum('"verified": true' in json.dumps(line) for line in lines) >= 4
    assert "4 counts; xcount count --question" in page.read_text()
