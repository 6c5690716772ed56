"""Verdicts by measures: exact where things are counted, early where samples decide."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from measure_problems import expected_share, random_population, random_problem
from numpy.typing import NDArray

import xcount
from xcount.answers import count as counting
from xcount.answers.count import CONTEXT_SECONDS, solve
from xcount.answers.result import CountResult, Verdict, verdict_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import QueryError
from xcount.measures import exact_shares
from xcount.measures.measured import Measured
from xcount.measures.weighting import Weighing
from xcount.model.examples import figure_1
from xcount.problem.problem import Problem
from xcount.question.share import Limit
from xcount.support.interval import Interval
from xcount.testing import assert_share

ROWS = np.array([[1.0, 1.0], [5.0, 1.0], [5.0, 5.0]])
"""One of three is sensitive in figure 1, at a gap of 80."""


def judged_by_rows(limit: object, rows: NDArray[np.float64] = ROWS) -> CountResult:
    """Ask figure 1 which of the rows are sensitive, and judge those."""
    return xcount.count(
        figure_1(), sensitive="f0", gap=80, judge="rows", data=rows, max_share=limit
    )


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("1/3", Verdict.PASS),
        (1 / 3, Verdict.PASS),
        (Fraction(1, 3), Verdict.PASS),
        ("33.333333333333333333%", Verdict.FAIL),
        ("0.33333333333333334", Verdict.PASS),
        (0, Verdict.FAIL),
        (1, Verdict.PASS),
    ],
)
def test_rows_are_compared_with_the_limit_as_whole_numbers(limit: object, verdict: Verdict) -> None:
    """A third of the rows is at most a third, whatever its float is."""
    result = judged_by_rows(limit)
    assert result.verdict is verdict
    assert result.exit_status == (0 if verdict is Verdict.PASS else 1)
    assert (result.judge, result.judged) == ("rows", Interval.exactly(Fraction(1, 3)))
    assert result.measures["rows"].share == 1 / 3
    assert result.share == 2 / 9  # the count is still there


def test_a_judge_is_measured_though_nobody_asked_for_it() -> None:
    """And only then: a result has the measures that were asked for, and the judge."""
    result = judged_by_rows("50%")
    assert [*result.measures] == ["rows"]
    assert isinstance(result.measures["rows"], Measured)
    assert result.measures["rows"].to_dict() == result.to_dict()["details"]["measures"]["rows"]
    plain = xcount.count(figure_1(), sensitive="f0", gap=80, max_share="50%")
    assert plain.judge == "regions"
    assert not plain.measures
    assert float(plain.judged.least) == plain.share


def test_a_result_says_who_judges_and_comes_back_from_json() -> None:
    """A result that is read back has the same judge and the same verdict."""
    result = judged_by_rows("1/3")
    data = json.loads(result.to_json())
    assert data["judge"] == "rows"
    assert CountResult.from_dict(data) == result
    assert CountResult.from_dict(data).verdict is Verdict.PASS


def test_a_judge_that_was_not_measured_decides_nothing() -> None:
    """As in a journal's line of a run that was stopped before."""
    result = replace(judged_by_rows("1/3"), judge="population")
    assert result.judged == Interval.unknown_share()
    assert result.verdict is Verdict.UNDECIDED
    assert replace(result, max_share=Limit.share(1)).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"judge": "people"}, "unknown measure 'people'"),
        (
            {"judge": "population"},
            "'population' needs data; give --data FILE, or --population",
        ),
        ({"judge": "rows"}, "'rows' needs data"),
        ({"judge": "volume"}, "bounds of 'f0'"),
    ],
)
def test_a_judge_needs_its_data(asked: dict[str, Any], what: str) -> None:
    """One line says what is missing."""
    with pytest.raises(QueryError, match=what):
        xcount.count(figure_1(), sensitive="f0", gap=80, max_share="1%", **asked)


def test_a_weight_that_equals_the_limit_but_for_rounding_passes() -> None:
    """The volume of figure 1 is 0.08: as a float it is a little more."""
    bounds = "f0=0:10,f1=0:10"
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "judge": "volume", "bounds": bounds}
    result = xcount.count(figure_1(), max_share="8%", **asked)
    assert result.verdict is Verdict.PASS
    assert result.judged.value == pytest.approx(0.08, rel=1e-12)
    assert xcount.count(figure_1(), max_share="7.99999%", **asked).verdict is Verdict.FAIL
    tenth = Interval.exactly(0.1)
    assert verdict_of(Limit.share(0), tenth) is Verdict.FAIL


def weighed_share(problem: Problem, weighing: Weighing, name: str) -> float:
    """Return the exact share under a measure, found without a limit."""
    found = xcount.measures.shares.measure(problem, weighing, Settings())[name]
    assert found.interval.is_settled
    assert found.share is not None
    return found.share


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_are_those_of_the_share(seed: int) -> None:
    """By every measure, on both sides of it; what the regions' share is does not matter."""
    problem, regions, weighing = random_problem(seed)
    assert weighing.inputs is not None
    placed = (problem.grid.cells_of(weighing.inputs) >= 0).all(axis=1)
    population = random_population(problem, seed)
    weighing = replace(
        weighing,
        names=(*weighing.names, "population"),
        inputs=weighing.inputs.at(np.flatnonzero(placed)),
        population=population,
    )
    truth = {name: weighed_share(problem, weighing, name) for name in weighing.names}
    assert truth["population"] == pytest.approx(
        expected_share(population, problem, regions), abs=1e-9
    )
    for name, share in truth.items():
        for factor, verdict in ((0.9, Verdict.FAIL), (1.1, Verdict.PASS)):
            if not 1e-9 < share < 0.9:
                continue
            limit = Limit.share(str(factor * share))
            result = solve(problem, Settings(max_share=limit, judge=name), "auto", weighing)
            assert result.verdict is verdict, (name, share)
            assert float(result.judged.low) <= share <= float(result.judged.high)


@pytest.mark.usefixtures("no_corner_sums")
def test_samples_decide_early_and_rarely_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is weighed exactly, few samples tell that a share is far from the limit."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", -1)
    n_right = n = spared = n_decided = 0
    for seed in range(60):
        problem, regions, _ = random_problem(seed)
        population = random_population(problem, seed)
        share = expected_share(population, problem, regions)
        if not 0.02 < share < 0.6:
            continue
        weighing = Weighing(("population",), population=population)
        limit, verdict = (1.5, Verdict.PASS) if seed % 2 else (0.6, Verdict.FAIL)
        settings = Settings(
            seed=seed, jobs=1, max_share=Limit.share(str(limit * share)), judge="population"
        )
        result = solve(problem, settings, "auto", weighing)
        alone = solve(problem, replace(settings, max_share=None), "auto", weighing)
        judged, accurate = (r.measures["population"] for r in (result, alone))
        assert result.stop_reason is judged.stop_reason
        n_decided += judged.stop_reason is StopReason.DECIDED
        assert judged.confidence == 0.9
        assert judged.details["samples"] <= accurate.details["samples"]
        spared += accurate.details["samples"] - judged.details["samples"]
        n += 1
        n_right += result.verdict is verdict
    assert n > 5
    assert spared > 0
    assert n_decided > n / 2  # of the others, the first look knows the share, too
    assert n_right >= n - 2  # each is right with at least 90 %


def test_once_it_is_decided_nothing_else_goes_on_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is context then; without a limit it has its half of the time."""
    given: list[Settings] = []

    def note(problem: Problem, settings: Settings, method: str) -> Tally:
        given.append(settings)
        return Tally.of_bounds(0, problem.n_regions, method, StopReason.TIMEOUT)

    monkeypatch.setattr(counting, "_tally", note)
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "judge": "rows", "data": ROWS}
    decided = xcount.count(figure_1(), max_share="50%", timeout=60, **asked)
    endless = xcount.count(figure_1(), max_share="50%", **asked)
    alone = xcount.count(figure_1(), timeout=60, **asked)
    limits = [settings.timeout_seconds for settings in given]
    assert limits[0] == pytest.approx(CONTEXT_SECONDS, abs=0.5)
    assert limits[1] == pytest.approx(CONTEXT_SECONDS, abs=0.5)
    assert limits[2] == 60
    assert all(settings.max_share is None for settings in given)
    assert decided.verdict is endless.verdict is Verdict.PASS
    assert decided.stop_reason is endless.stop_reason is StopReason.DECIDED
    assert (decided.exit_status, alone.exit_status) == (0, 3)  # alone, the count was asked for
    assert (decided.low, decided.high, decided.count) == (0, 9, None)


@pytest.mark.usefixtures("no_corner_sums")
def test_an_interrupt_leaves_what_is_known_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is certain then but what samples said."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", -1)

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = xcount.count(
        figure_1(),
        sensitive="f0",
        gap=80,
        judge="volume",
        bounds="f0=0:10,f1=0:10",
        max_share="8%",
        on_progress=stop,
        epsilon=0.001,
    )
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.judged.low <= 0.08 <= result.judged.high
    assert result.exit_status == 3


def test_parts_of_a_domain_end_when_the_limit_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the parts left out could weigh is part of the interval."""
    asked: dict[str, Any] = {
        "sensitive": "f0",
        "gap": 80,
        "rule": "f0 < 3 -> f1 < 3",
        "judge": "volume",
        "bounds": "f0=0:10,f1=0:10",
    }
    whole = xcount.count(figure_1(), **asked)
    assert whole.judged.is_settled
    share = float(whole.judged.least)
    passed = xcount.count(figure_1(), max_share=str(share * 1.01), **asked)
    failed = xcount.count(figure_1(), max_share=str(share * 0.99), **asked)
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAIL)
    early = xcount.count(figure_1(), max_share="99.9%", **asked)
    assert early.verdict is Verdict.PASS
    assert float(early.judged.low) <= share <= float(early.judged.high)


def test_an_assertion_is_about_rows_if_asked() -> None:
    """And its message says so."""
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "judge": "rows", "data": ROWS}
    assert assert_share(figure_1(), max_share="1/3", **asked).judged.value == Fraction(1, 3)
    with pytest.raises(AssertionError, match=r"33.3 % of 3 rows, allowed 10 %") as caught:
        assert_share(figure_1(), max_share="10%", **asked)
    assert "by rows: 33.3 %: 1 of 3 rows" in str(caught.value)
    assert "for example" in str(caught.value)


def test_the_command_judges(tmp_path: Path, xcount_command: Command, figure_1_file: str) -> None:
    """As a user asks: the verdict stands under the measure, the status is the verdict's."""
    data = tmp_path / "rows.csv"
    data.write_text("age,sex\n1,1\n5,1\n5,5\n")
    asked = ["count", figure_1_file, "--sensitive", "age", "--gap", "80", "--judge", "rows"]
    passed = xcount_command(*asked, "--data", str(data), "--max-share", "1/3")
    assert passed.status == 0
    assert "PASS (at most 33.3333 % of the rows allowed)" in passed.out
    assert passed.out.index("By rows") < passed.out.index("Verdict")
    failed = xcount_command(*asked, "--data", str(data), "--max-share", "1%")
    assert failed.status == 1
    bare = xcount_command(*asked, "--max-share", "1%")
    assert bare.status == 2
    assert "'rows' needs data; give --data FILE" in bare.err
