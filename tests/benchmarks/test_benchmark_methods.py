"""All methods side by side: the table, and who contradicts whom."""

from __future__ import annotations

from typing import Any

from benchmarks.methods import comparison, method_table
from benchmarks.records import Run, RunSettings


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
    assert rows[2] == "| auto | 2 (1) | 2 (1) | 2 (1) | 1.500 | 2.000 | 1.0 |"
    assert rows[3] == "| cnf-ganak | 2 (1) | 1 (1) | 1 (1) | 62.000 | 120.000 | 4.0 |"


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
