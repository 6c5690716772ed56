"""All methods side by side: the table, and who contradicts whom."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import options
from benchmarks.harness.instances import Instance, alternating_order
from benchmarks.harness.records import RESULTS, Run, RunSettings, placement, read_run
from experiments import encodings, suites
from experiments.methods import common, comparison, method_table


def run_of(method: str, *records: dict[str, Any]) -> Run:
    """Return a run with these records."""
    return Run(RunSettings("methods", method, limit_seconds=60), {}, records)


def solved(name: str, seconds: float, count: int) -> dict[str, Any]:
    """Return the record of an exact answer."""
    answer = {"status": "exact", "count": count, "low": count, "high": count}
    return {"name": name, "seconds": seconds, **answer}


def test_the_table_has_solved_par2_and_ratio() -> None:
    """An unsolved instance costs twice the limit; ratios are over instances that both solved."""
    auto = run_of("auto", solved("a", 1.0, 0), solved("b", 2.0, 7))
    stopped = {"name": "b", "seconds": 60.0, "status": "stopped", "low": 0, "high": 9}
    ganak = run_of("cnf-ganak", solved("a", 4.0, 0), stopped)
    rows = method_table([auto, ganak]).splitlines()
    shares = "100 (34 to 100) | 100 (21 to 100)"
    assert rows[2] == f"| auto | 2 (1) | 2 (1) | 2 (1) | {shares} | 1.500 | 2.000 | 1.0 |"
    shares = "50 (9 to 91) | 0 (0 to 79)"
    assert rows[3] == f"| cnf-ganak | 2 (1) | 1 (1) | 1 (1) | {shares} | 62.000 | 120.000 | 4.0 |"


def test_further_runs_tell_which_counts_are_zero() -> None:
    """A zero that no method of the table has proved is known from elsewhere."""
    stopped = run_of("xcount", {"name": "a", "seconds": 60.0, "status": "stopped"})
    assert "| xcount | 1 (0) |" in method_table([stopped])
    assert "| xcount | 1 (1) |" in method_table([stopped], [run_of("exact", solved("a", 1.0, 0))])


def test_methods_are_compared_on_what_all_were_asked() -> None:
    """Instances that only some runs have are left out of the common sample."""
    longer = run_of("xcount", solved("a", 1.0, 1), solved("b", 1.0, 2))
    shared = common([longer, run_of("auto", solved("b", 1.0, 2))])
    assert [[r["name"] for r in run.records] for run in shared] == [["b"], ["b"]]
    assert common([]) == []


def instance(name: str) -> Instance:
    """Return an instance whose model nobody reads."""
    return Instance(name, Path("m.json"), "adult", 3, 20, 9, (0,), "2")


def test_samples_take_counts_and_zeros_in_turns() -> None:
    """Every beginning has both kinds alike, until one of them ends; nothing is lost or doubled."""
    zeros = {"z1", "z2", "z3", "z4", "z5"}
    order = alternating_order([instance(name) for name in sorted(zeros | {"a", "b"})], zeros)
    kinds = [each.name in zeros for each in order]
    assert kinds == [False, True, False, True, True, True, True]
    assert {each.name for each in order} == zeros | {"a", "b"}


def test_the_ablations_know_their_zeros() -> None:
    """The names in the kept gap sweep are those of the suite."""
    named = [f"adult-d3-t10-f{feature}" for feature in range(14)]
    kept = RESULTS / "gaps-auto.jsonl.gz"
    records = {r["name"]: r for r in read_run(kept).records}
    asked = [name for name in named if f"{name}-g2" in records]
    zeros = [name for name in asked if records[f"{name}-g2"]["high"] == 0]
    others = [name for name in asked if name not in zeros]
    assert others
    assert zeros
    order = [each.name for each in suites.ablations_order([instance(name) for name in asked])]
    n_both = 2 * min(len(zeros), len(others))
    assert [name in zeros for name in order[:n_both]] == [False, True] * (n_both // 2)


@pytest.mark.parametrize(("text", "minutes"), [("14:30", 30), ("13:59", 24 * 60 - 1)])
def test_runs_end_when_the_clock_shows_a_time(text: str, minutes: int) -> None:
    """A time that has passed is tomorrow's."""
    now = datetime(2026, 1, 1, 14, 0)
    assert options.seconds_until(text, now) == 60 * minutes
    with pytest.raises(argparse.ArgumentTypeError, match="14:30"):
        options.seconds_until("soon", now)


def test_any_part_of_the_sweep_asks_the_same_at_every_gap() -> None:
    """What a stopped run has compares the gaps: each question comes with all of them."""
    asked = [
        replace(instance(f"f{feature}-g{gap}"), sensitive=(feature,), gap=gap)
        for gap in suites.GAPS
        for feature in range(5)
    ]
    order = suites.gaps_order(asked)
    assert sorted(i.name for i in order) == sorted(i.name for i in asked)
    for start in range(0, len(order), len(suites.GAPS)):
        part = order[start : start + len(suites.GAPS)]
        assert len({i.sensitive for i in part}) == 1
        assert [i.gap for i in part] == list(suites.GAPS)


def test_a_run_knows_the_cores_that_it_is_pinned_to() -> None:
    """A process that may use all cores, and yields to others, has nothing to say."""
    assert placement(4, 4, is_real_time=False) == ""
    assert placement(1, 4, is_real_time=True) == "pinned to 1 core, real-time priority"


def test_formulas_are_compared_by_size_and_time() -> None:
    """What was not solved in time is a dash; the solved are counted, and those without zeros."""
    sizes = {"variables": 3, "clauses": 1200, "cnf-ganak": None, "cnf-approxmc": 2.5}
    found = {
        "limit_seconds": 30.0,
        "machine": {"processor": "P", "cores": 2, "system": "S"},
        "revision": "r",
        "date": "2026-01-01",
        "load": 1.0,
        "rows": [
            {"name": "a", "masks": 4, "counterpart": sizes, "pairs": {**sizes, "cnf-ganak": 1}},
            {"name": "b", "masks": 4, "counterpart": sizes, "pairs": sizes},
        ],
    }
    text = encodings.report(found, {"b"})
    assert "| a | not 0 | 4 | 1,200 | 1,200 | - | 1.00 | 2.50 | 2.50 |" in text
    assert "| b | 0 | 4 |" in text
    assert "Ganak 0 and 1, ApproxMC 2 and 2; of the 1 that are not 0: Ganak 0 and 1, " in text


def test_contradictions_are_named() -> None:
    """Two exact counts that differ, and an interval that misses an exact count."""
    auto = run_of("auto", solved("a", 1.0, 5), solved("b", 1.0, 7), solved("c", 1.0, 9))
    other = run_of("xcount", solved("a", 1.0, 5), solved("b", 1.0, 8))
    confirmed, lines = comparison([auto, other])
    assert confirmed == {"auto": 1, "xcount": 1}
    assert lines[0] == "b: auto 7, xcount 8"
    sampled = {"name": "c", "seconds": 1.0, "status": "guarantee", "low": 10, "high": 12}
    _, lines = comparison([auto, run_of("xcount", sampled)])
    assert lines == ["c: xcount says 10 to 12, auto 9"]
