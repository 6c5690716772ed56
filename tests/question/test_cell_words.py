"""Cells in words: what is written as a condition names just these cells."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_ensemble

from xcount.model.ensemble import Feature
from xcount.question.cell_words import cells_text, condition_text, quoted
from xcount.question.condition import parse_conditions
from xcount.question.grid import Axis, Grid


def sets_of(axis: Axis) -> list[np.ndarray]:
    """Return sets of cells that one condition can name: runs of numbers, all sets of categories."""
    n_values = axis.n_cells - (axis.missing_cell is not None)
    numbers = np.arange(axis.n_cells)
    if axis.feature.is_categorical:
        found = []
        for i in range(1, 2**n_values):
            found.append(np.array([c < n_values and bool(i >> c & 1) for c in numbers]))
    else:
        found = [
            (a <= numbers) & (numbers < b)
            for a in range(n_values)
            for b in range(a + 1, n_values + 1)
        ]
    if axis.missing_cell is not None:
        found.append(numbers == axis.missing_cell)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_a_condition_names_just_the_cells(seed: int) -> None:
    """Runs of numbers, sets of categories, missing values."""
    ensemble = random_ensemble(seed)
    for axis in Grid.of(ensemble, missing="cell").axes:
        for flags in sets_of(axis):
            if flags.all():
                continue
            (condition,) = parse_conditions(condition_text(axis, flags))
            values = condition.test.values(axis.feature, axis.dtype)
            assert condition.name == axis.feature.name
            assert (axis.holds_in(values) == flags).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bound_has_all_its_digits(dtype: str) -> None:
    """As a condition; to be read, as many as tell guards apart."""
    guards = np.array([0.1, 1 / 3, 123456.789]).astype(dtype).astype(np.float64)
    axis = Axis(Feature("x"), guards, dtype=dtype)
    flags = np.array([False, True, True, False])
    (condition,) = parse_conditions(condition_text(axis, flags))
    assert (axis.holds_in(condition.test.values(axis.feature, dtype)) == flags).all()
    assert cells_text(axis, flags) == "0.1 <= x < 123457"
    assert cells_text(axis, flags[[1, 1, 0, 0]]) == "x < 0.333333"
    assert cells_text(axis, flags[[0, 0, 0, 1]]) == "x >= 123457"


def test_categories_are_named() -> None:
    """One by name, several in a list, most of them by the others."""
    feature = Feature("work class", tuple(range(6)), ("a", "b, c", "d and e", "'", "", "f"))
    axis = Axis(feature, np.empty(0), tuple((code,) for code in range(6)))
    one = np.arange(6) == 0
    assert cells_text(axis, one) == "work class = a"
    assert condition_text(axis, one) == "work class == a"
    assert condition_text(axis, ~one) == "work class != a"
    assert cells_text(axis, np.arange(6) < 2) == "work class in {a, b, c}"
    assert cells_text(axis, np.arange(6) < 3, 2) == "work class in {a, 2 more}"
    assert cells_text(axis, np.arange(6) < 3, None) == "work class in {a, b, c, d and e}"
    for flags in sets_of(axis)[:-1]:
        (condition,) = parse_conditions(condition_text(axis, flags))
        assert (axis.holds_in(condition.test.values(feature, "float64")) == flags).all()


def test_names_get_quotes_where_they_need_some() -> None:
    """Operators, commas and words of conditions."""
    assert quoted("marital-status") == "marital-status"
    assert quoted("a < b") == "'a < b'"
    assert quoted("it's") == '"it\'s"'
    assert quoted("rock and roll") == "'rock and roll'"
