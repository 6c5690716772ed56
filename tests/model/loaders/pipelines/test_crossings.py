"""Crossings are found exactly on the floats."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xcount.model.loaders.pipelines.crossings import LARGEST, crossings


@pytest.mark.parametrize(
    ("function", "turns"),
    [
        (lambda x: (x - 0.1) / 3.7, ()),
        (lambda x: -7.0 * x, ()),
        (lambda x: x.astype(np.float32).astype(np.float64), ()),
        (np.cbrt, ()),
        (lambda x: np.abs(x - 1.0), (1.0,)),
        (lambda x: np.where(x < 0, np.nan, np.sqrt(np.abs(x))), (0.0,)),
        (lambda x: np.floor(x / 10.0), ()),
        (lambda x: np.where(x == 2.0, 5.0, 0.0), (2.0, np.nextafter(2.0, 3.0))),
    ],
    ids=["scaled", "decreasing", "float32", "root", "kink", "half", "steps", "point"],
)
def test_a_crossing_is_the_first_number_of_the_new_side(
    function: Callable[[Any], Any], turns: tuple[float, ...]
) -> None:
    """At the crossing and just below it, some cut is answered differently; elsewhere none is."""
    cuts = np.array([-2.5, -0.1, 0.0, 1e-300, 0.3, 1.0, 4.0])
    with np.errstate(all="ignore"):
        found = crossings(function, turns, cuts)
        here, below = function(found), function(np.nextafter(found, -np.inf))
        assert ((here[:, None] >= cuts) != (below[:, None] >= cuts)).any(axis=1).all()
        ends = np.array([-LARGEST, *found, LARGEST])
        for low, high in itertools.pairwise(ends):
            inside = np.unique(np.clip(np.linspace(low / 2, high / 2, 50) * 2, low, None))
            inside = inside[inside < high]
            sides = function(inside)[:, None] >= cuts
            assert (sides == sides[0]).all()
    assert len(found) >= 2


def test_a_function_that_crosses_nothing_has_no_crossings() -> None:
    """Constants, and NaN everywhere."""
    assert crossings(np.zeros_like, (), [1.0, 2.0]).size == 0
    assert crossings(lambda x: np.full_like(x, np.nan), (3.0,), [0.0]).size == 0
