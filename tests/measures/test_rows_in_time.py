"""Rows are decided within the limit of time; what is not decided counts at its worst."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.examples import figure_1
from xcount.model.loaders import files
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def test_rows_that_no_time_is_left_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block is decided; the others may be sensitive or not."""
    decide = RegionDecider.decide_regions

    def slowly(self: RegionDecider, *of_what: Any) -> Any:
        time.sleep(0.2)
        return decide(self, *of_what)

    monkeypatch.setattr(RegionDecider, "decide_regions", slowly)
    monkeypatch.setattr("xcount.measures.shares._ROWS_AT_ONCE", 10)
    model = figure_1()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80, distance=1))
    rows = np.array([[1.0, 1.0], [5.0, 5.0]] * 50)  # every other row is sensitive
    weighing = Weighing.of(model, "rows", rows)
    found = measure(problem, weighing, Settings(timeout_seconds=0.3))["rows"]
    assert found.details["n_rows"] == 100
    n_decided = 100 - found.details["left_out"]
    assert 10 <= n_decided <= 30
    assert (found.low, found.high) == (n_decided / 200, 1 - n_decided / 200)
    assert str(found.stop_reason) == "timeout"
    assert found.details["left_out_reasons"] == {
        "no time was left to decide it": found.details["left_out"]
    }


def test_seconds_include_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the model and of the table."""

    def slow(*of_what: Any, **named: Any) -> Any:
        time.sleep(0.3)
        return read(*of_what, **named)

    read = xcount.measures.weighting.read_table
    monkeypatch.setattr("xcount.measures.weighting.read_table", slow)
    rows = np.array([[1.0, 2.5]])
    assert xcount.count(figure_1(), sensitive="f0", gap=80, data=rows).seconds >= 0.3


def test_rows_that_no_time_is_left_to_read_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted, and count at their worst; those that were read are decided."""
    monkeypatch.setattr(files, "BLOCK_BYTES", 40)
    path = tmp_path / "rows.csv"
    path.write_text("f0,f1\n" + "1,1\n5,5\n" * 50)
    model = figure_1()
    n_asked = 0

    def is_over() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked == 3

    weighing = Weighing.of(model, "rows", path, is_over=is_over)
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80, distance=1))
    found = measure(problem, weighing)["rows"]
    n_unread = found.details["left_out"]
    assert found.details["n_rows"] == 100
    assert 60 <= n_unread <= 80
    assert found.details["left_out_reasons"] == {"no time was left to read it": n_unread}
    assert found.details["left_out_rows"] == list(range(100 - n_unread, 100))
    n_sensitive = found.details["n_sensitive"]
    assert n_sensitive == (101 - n_unread) // 2
    assert (found.low, found.high) == (n_sensitive / 100, (n_sensitive + n_unread) / 100)
    assert str(found.stop_reason) == "timeout"


def test_a_count_reads_for_half_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And decides the rows that it has read in the other half."""
    monkeypatch.setattr(files, "BLOCK_BYTES", 40)
    monkeypatch.setattr(Settings, "expired", lambda self: self.timeout_seconds < 40)
    path = tmp_path / "rows.csv"
    path.write_text("f0,f1\n" + "1,1\n5,5\n" * 50)
    result = xcount.count(figure_1(), sensitive="f0", gap=80, data=path, timeout=60)
    rows = result.measures["rows"].details
    assert rows["n_sensitive"] > 0
    assert set(rows["left_out_reasons"]) == {"no time was left to read it"}
