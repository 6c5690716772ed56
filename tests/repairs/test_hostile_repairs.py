"""Repairs of degenerate models and data, and commands that cannot finish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import xcount
from xcount.counters.tally import Progress
from xcount.errors import QueryError, TableError
from xcount.model.examples import (
    adult_held_out_path,
    adult_one_hot_paths,
    ensemble_of,
    figure_1,
)

pytest.importorskip("clarabel")
FIGURE = np.array([[1.0, 1.0], [5.0, 5.0]])


def test_equal_rows_are_enough() -> None:
    """All rows alike: other leaves stay close to where they are."""
    result = xcount.repair(figure_1(), sensitive="f0", gap=10, data=np.ones((50, 2)))
    assert result.proved
    assert result.moves is not None
    assert result.moves.n_rows == 50


@pytest.mark.parametrize("huge", [1e-300, 1e18, 1e300])
def test_leaves_of_any_size(huge: float) -> None:
    """Tiny and huge leaves keep a limit in their own size, and one of 0."""
    model = ensemble_of((0, 4.0, (1, 3.0, huge, -huge), 0.5 * huge), (0, 3.0, -huge, huge))
    for gap in (0, f"{huge / 3:.6g}"):
        result = xcount.repair(model, sensitive=[0], gap=gap, data=FIGURE)
        assert result.proved, (huge, gap)


def test_a_model_without_the_feature_is_left_alone() -> None:
    """A constant, and a tree that never tests it, meet every limit."""
    for model in (ensemble_of(1.5, n_features=2), ensemble_of((1, 3.0, 1.0, -1.0), n_features=2)):
        result = xcount.repair(model, sensitive=[0], gap=0, data=FIGURE)
        assert (result.method, result.proved) == ("unchanged", True)


def test_rows_that_nobody_can_read_are_left_out() -> None:
    """Missing and infinite numbers: the others are the data."""
    rows = np.array([[1.0, 1.0], [np.inf, 5.0], [5.0, -np.inf], [2.0, 2.0]])
    assert xcount.repair(figure_1(), sensitive="f0", gap=30, data=rows).proved
    model, domain = adult_one_hot_paths()
    with pytest.raises((TableError, QueryError)):
        xcount.repair(model, domain=domain, sensitive="sex", gap=1, data=np.zeros((0, 2)))


def command_line(folder: Path, *more: str) -> list[str]:
    """Return a repair that takes some seconds."""
    model, domain = map(str, adult_one_hot_paths())
    asked = ["--sensitive", "age", "--gap", "0.3", "--data", str(adult_held_out_path())]
    own = ["--domain", domain, *asked, "--output", str(folder / "repaired.json"), *more]
    return ["repair", model, *own]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_an_interrupt_writes_nothing(step: int, tmp_path: Path) -> None:
    """Ctrl-C stops a repair in each of its steps, and leaves no file."""
    steps: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        steps.append(progress)
        if len(steps) > step:
            raise KeyboardInterrupt

    booster = pytest.importorskip("xgboost")
    rows = np.random.default_rng(0).integers(0, 4, size=(50, 2)).astype(float)
    parameters = {"max_depth": 3, "nthread": 1}
    model = booster.train(parameters, booster.DMatrix(rows, rows[:, 0] * rows[:, 1]), 3)
    output = tmp_path / "repaired.json"
    with pytest.raises(KeyboardInterrupt):
        xcount.repair(
            model, sensitive=[0], gap=0.1, data=rows, output=output, on_progress=interrupt
        )
    assert len(steps) == step + 1
    assert list(tmp_path.iterdir()) == []


def test_without_time_nothing_is_written(xcount_command: Command, tmp_path: Path) -> None:
    """A time limit that is too short ends with a status that says so."""
    run = xcount_command(*command_line(tmp_path, "--timeout", "0.01s"))
    assert run.status in (2, 3)
    assert "Traceback" not in run.err
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_told_first(
    xcount_command: Command, tmp_path: Path
) -> None:
    """A folder in its place is an error before anything is counted."""
    (tmp_path / "repaired.json").mkdir()
    run = xcount_command(*command_line(tmp_path))
    assert run.status == 2
    assert run.err.count("\n") == 1


def test_the_verified_counter_counts_the_repaired_model() -> None:
    """``verified`` is true for every count that it finishes."""
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 30, "distance": 1, "data": FIGURE}
    result = xcount.repair(figure_1(), **asked, verify=True)
    assert result.proved
    assert result.after.verified in (True, None)
