"""Assertions about shares: they pass, fail with the culprit, or say that they do not know."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.counters.tally import Progress, StopReason
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import adult_model_path, ensemble_of, figure_1
from xcount.testing import assert_share


def failure(model: Any, **question: Any) -> list[str]:
    """Return the message of an assertion that must not hold, by lines."""
    with pytest.raises(AssertionError) as caught:
        assert_share(model, **question)
    return str(caught.value).splitlines()


def test_a_share_at_its_limit_passes() -> None:
    """2 of 9 regions are at most 2/9; the result is returned."""
    result = assert_share(figure_1(), sensitive="f0", gap=80, max_share="2/9")
    assert (result.count, result.verdict) == (2, "PASS")


def test_a_share_above_its_limit_fails_with_the_culprit() -> None:
    """Verdict, share, limit, the question in words, and a pair of inputs."""
    first, asked, *more = failure(figure_1(), sensitive="f0", gap=80, max_share="2/10")
    assert first == "FAIL: the share is 22.2 %, allowed 20 %"
    assert asked.startswith("In how many regions does the margin move by more than 80")
    assert "  sensitive: 2 (exact)" in more
    assert "  regions: 9" in more
    pairs = {"f0 2 -> 3: margin 70 -> -15", "f0 3 -> 2: margin -15 -> 70"}
    assert more[-2].removeprefix("  for example ") in pairs
    assert more[-1] == "  where f1 1"


def test_a_flip_shows_the_decisions() -> None:
    """The words of the change are those of the question."""
    lines = failure(figure_1(), sensitive=["f0"], flip=True, cutoff=0, max_share=0, distance="any")
    assert lines[0].startswith("FAIL")
    assert "the decision (cut-off 0) flip" in lines[1]
    assert "decision above -> not above" in lines[-2] or "not above -> above" in lines[-2]


def test_people_who_are_judged_are_the_example() -> None:
    """A row of the data that is sensitive, and its number."""
    rows = {"f0": [9.0, 3.5], "f1": [9.0, 1.0]}
    lines = failure(figure_1(), sensitive="f0", gap=80, max_share=0, judge="rows", data=rows)
    assert lines[0] == "FAIL: the share is 50.0 % of 2 rows, allowed 0 %"
    assert lines[1].startswith("For how many rows does the margin move by more than 80")
    assert lines[-2].startswith("  for example row 1 of the data (from 0), f0 3.5 -> ")


def test_names_neither_break_lines_nor_steer_the_terminal() -> None:
    """In the question, the example and what stays the same."""
    named = replace(figure_1(), features=(Feature("a\n\x1b[2J"), Feature("b\u202e")))
    _, asked, *_, example, same = failure(named, sensitive=0, gap=80, max_share=0)
    assert r"only a\n\x1b[2J changes" in asked
    assert example.startswith(r"  for example a\n\x1b[2J ")
    assert same.startswith(r"  where b\u202e ")


def test_names_may_come_from_a_generator() -> None:
    """They are used twice: to count, and to find a witness."""
    names = (name for name in ("f0", "f1"))
    assert "for example" in failure(figure_1(), sensitive=names, gap=80, max_share=0)[-2]


@pytest.mark.filterwarnings("ignore:reading the model took")  # on a machine with other work
def test_no_time_is_undecided() -> None:
    """Another text than a failure, without a witness, and with what may help."""
    lines = failure(adult_model_path(), sensitive="age", gap="0.5", max_share="50%", timeout=1e-9)
    assert lines[0].startswith("UNDECIDED: the share is between ")
    assert "a longer timeout may decide it" in lines[-1]
    assert not any("FAIL" in line or "for example" in line for line in lines)


@pytest.mark.parametrize(
    ("reason", "help_"),
    [
        (StopReason.MEMORY, "a larger limit of memory may decide it"),
        (StopReason.COMPLETE, "a smaller epsilon or method='exact' may decide it"),
    ],
)
def test_undecided_says_what_may_help(
    monkeypatch: pytest.MonkeyPatch, reason: StopReason, help_: str
) -> None:
    """More memory, or more accuracy where no limit stopped it."""
    exact = xcount.count(figure_1(), sensitive="f0", gap=80, max_share="2/9")
    wide = replace(exact, high=3, confidence=0.9, stop_reason=reason)
    monkeypatch.setattr("xcount.answers.count.count", lambda *_, **__: wide)
    lines = failure(figure_1(), sensitive="f0", gap=80, max_share="2/9")
    assert lines[0] == "UNDECIDED: the share is between 22.2 % and 33.3 %, allowed 22.2222 %"
    assert help_ in lines[-1]


def test_a_limit_of_zero_asks_for_a_proof() -> None:
    """And gets it from the exact counter."""
    idle = ensemble_of((0, 1.0, 5.0, 5.0), (1, 1.0, 0.0, 9.0))
    assert assert_share(idle, sensitive="f0", gap=0, max_share=0).count == 0


def test_a_question_that_witnesses_do_not_know_has_no_example() -> None:
    """Cells of another grid would be another question."""
    grid = xcount.Grid.of(figure_1())
    lines = failure(figure_1(), sensitive="f0", gap=80, max_share=0, grid=grid)
    assert lines[0].startswith("FAIL")
    assert not any("for example" in line for line in lines)


def test_an_interrupt_is_not_a_failure() -> None:
    """Who presses Ctrl-C means the whole test run."""

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assert_share(
            adult_model_path(),
            sensitive="age",
            gap=1,
            max_share="50%",
            method="brute",
            timeout=60,
            on_progress=stop,
        )


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"sensitive": "f7", "gap": 80, "max_share": 0}, xcount.XCountError),
        ({"sensitive": "f0", "gap": 80, "max_share": "ten"}, ValueError),
        ({"sensitive": "f0", "gap": 80, "max_share": None}, TypeError),
        ({"sensitive": "f0", "gap": 80, "max_share": 0, "gaps": 1}, TypeError),
    ],
)
def test_a_wrong_question_is_an_error_of_its_own(
    question: dict[str, Any], error: type[Exception]
) -> None:
    """Never an AssertionError, which would look like a finding."""
    with pytest.raises(error):
        assert_share(figure_1(), **question)


def test_pytest_shows_the_line_of_the_test(tmp_path: Path) -> None:
    """The inside of the assertion is hidden; the message is the report."""
    test = tmp_path / "test_model.py"
    test.write_text(
        "from xcount.model.examples import figure_1\n"
        "from xcount.testing import assert_share\n\n"
        "def test_it():\n"
        "    assert_share(figure_1(), sensitive='f0', gap=80, max_share='1%')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take seconds to import
    run = subprocess.run(
        command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "FAIL: the share is 22.2 %, allowed 1 %" in run.stdout
    assert "_example" not in run.stdout
    assert "max_share is None" not in run.stdout


def test_importing_it_costs_nothing() -> None:
    """What counts is imported when something is counted."""
    code = (
        "import sys, xcount.testing; "
        "print([m for m in ('numpy', 'xcount.answers', 'xcount.report') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_ensemble_is_a_model() -> None:
    """As everywhere else."""
    assert isinstance(figure_1(), Ensemble)
    assert assert_share(figure_1(), sensitive=0, gap=80, max_share=1).n_regions == 9


def test_an_index_may_be_numpys() -> None:
    """As in a count."""
    index: Any = np.int64(0)
    assert assert_share(figure_1(), sensitive=index, gap=80, max_share=1).count == 2
