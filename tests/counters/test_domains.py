"""Counts in a domain: every counter finds what enumeration of its points finds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from domains import World, random_world

import xcount
from xcount.errors import QueryError

METHODS = ("auto", "exact", "brute", "sample")
PAPER = ("xcount-exact-union", "add-baseline", "add-baseline-plain")


def ask(world: World, method: str, names: list[str], distance: int | None, gap: Any) -> Any:
    """Count in a world with the package."""
    change = {"flip": True, "cutoff": 0} if gap is None else {"gap": gap}
    return xcount.count(
        world.ensemble,
        sensitive=names,
        distance="any" if distance is None else distance,
        missing="cell" if world.missing else "none",
        method=method,
        epsilon=0.1 if method == "sample" else 1e-9,
        **change,
        **world.words,
    )


def question(world: World, seed: int) -> tuple[list[str], int | None, Fraction | None]:
    """Return random sensitive features, a distance, and a gap (or a flip)."""
    rng = np.random.default_rng([seed, 5])
    n = int(rng.integers(1, min(2, len(world.features)) + 1))
    names = [str(name) for name in rng.choice(world.features, n, replace=False)]
    distance = [1, 2, 3, None][int(rng.integers(4))]
    gap = [Fraction(0), Fraction(1, 2), Fraction(3, 10), Fraction(1), None][int(rng.integers(5))]
    return names, distance, gap


def is_refused(world: World, names: list[str], expected: tuple[int, int]) -> bool:
    """Tell whether the domain has no region, or fixes a sensitive feature."""
    whole = World(world.ensemble, world.groups, missing=world.missing)
    return expected[1] == 0 or any(
        len(cells_of(world, name)) == 1 < len(cells_of(whole, name)) for name in names
    )


def cells_of(world: World, name: str) -> set[Any]:
    """Return the cells of a feature that exist."""
    place = world.features.index(name)
    return {key[place] for key in world.regions()}


def check(seed: int, method: str) -> bool:
    """Count in a random world; return whether there was anything to count."""
    world = random_world(seed)
    names, distance, gap = question(world, seed)
    expected = world.count(names, distance, gap)
    if is_refused(world, names, expected):
        with pytest.raises(QueryError, match=r"no region is left|cannot change"):
            ask(world, method, names, distance, gap)
        return False
    result = ask(world, method, names, distance, gap)
    assert result.n_regions == expected[1]
    assert result.low <= expected[0] <= result.high
    assert result.exact or method == "sample"
    return True


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_the_points_of_the_domain(method: str) -> None:
    """All of our counters, on random models, groups and conditions."""
    assert sum(check(seed, method) for seed in range(200)) > 100


@pytest.mark.parametrize("method", PAPER)
def test_the_papers_algorithms_know_domains(method: str) -> None:
    """A domain is a grid like any other, but for the distances of its cells."""
    seeds = [seed for seed in range(60) if question(random_world(seed), seed)[2] is not None]
    assert sum(check(seed, method) for seed in seeds) > 15
