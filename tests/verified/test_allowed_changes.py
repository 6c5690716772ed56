"""``--verify`` with restricted changes: where they start and end, and features that move along."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from conftest import Command
from test_allowed import questions
from test_verify import ENGINES, engines, use

from xcount.errors import QueryError
from xcount.verified.counter import verified_count_of
from xcount.verified.question_file import question_text


@engines
def test_restricted_changes_are_counted_as_defined(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random models, domains with rules, starts, targets and exchanges, against the definition."""
    use(monkeypatch, ENGINES[engine])
    n_hits = 0
    for what, _, problem, expected, _ in islice(questions(40, n_rules=1), 30):
        try:
            text = question_text(problem)
        except QueryError:
            continue
        assert (what, verified_count_of(text)) == (what, sum(expected.values()))
        n_hits += any(expected.values())
    assert n_hits > 2


@engines
def test_a_count_with_restricted_changes_is_verified(
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    xcount_command: Command,
    figure_1_file: str,
) -> None:
    """By the command, with all three options at once."""
    use(monkeypatch, ENGINES[engine])
    allowed = ["--where-from", "age < 4", "--where-to", "age >= 3", "--along", "sex: 1 <-> 2.5"]
    command = ["count", figure_1_file, "--sensitive", "age", "--gap", "30", *allowed, "--verify"]
    run = xcount_command(*command, "--json")
    found = json.loads(run.out)
    assert (run.status, found["count"], found["exact"], found["verified"]) == (0, 3, True, True)
