"""Random questions within conditions and rules, counted by plain enumeration of points.

Guards are whole numbers and bounds of conditions are multiples of 1/2, so the midpoints between
neighbouring multiples lie in every cell of every axis. The enumeration uses no code of the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from xcount import Ensemble
from xcount.model.examples import Nested, ensemble_of

POINTS = tuple(Fraction(n, 4) for n in range(-3, 25, 2))
Region = tuple[int, ...]


@dataclass(frozen=True)
class Condition:
    """``low <= feature < high``, where either end may be missing."""

    feature: int
    low: Fraction | None
    high: Fraction | None

    def holds(self, value: Fraction) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value < self.high)

    def __str__(self) -> str:
        name = f"f{self.feature}"
        if self.low is None or self.high is None:
            ends = ("<", self.high) if self.low is None else (">=", self.low)
            return f"{name} {ends[0]} {float(ends[1] or 0)}"
        return f"{float(self.low)} <= {name} < {float(self.high)}"

    @property
    def bounds(self) -> list[Fraction]:
        return [bound for bound in (self.low, self.high) if bound is not None]


@dataclass(frozen=True)
class Cell:
    """Points of one axis that no test and no rule distinguishes."""

    value: Fraction
    position: int


@dataclass(frozen=True)
class DomainQuestion:
    """A model, a domain and a question."""

    trees: Sequence[Nested]
    n_features: int
    where: Sequence[Condition]
    rules: Sequence[tuple[Condition, Condition]]
    sensitive: Sequence[int]
    distance: int | None
    gap: Fraction | None
    direction: str

    @property
    def ensemble(self) -> Ensemble:
        return ensemble_of(*self.trees, n_features=self.n_features)

    @property
    def words(self) -> dict[str, Any]:
        """The question as arguments of ``xcount.count``."""
        change = {"flip": True, "cutoff": 0} if self.gap is None else {"gap": str(self.gap)}
        return {
            "sensitive": list(self.sensitive),
            "distance": "any" if self.distance is None else self.distance,
            "direction": self.direction,
            "where": [str(condition) for condition in self.where],
            "rule": [f"{a!s} -> {b!s}" for a, b in self.rules],
            **change,
        }

    def counts(self) -> tuple[int, int]:
        """Return the numbers of sensitive regions and of all regions of the domain."""
        axes = [list(self._cells(f)) for f in range(self.n_features)]
        margins = {}
        for region in itertools.product(*(range(len(axis)) for axis in axes)):
            point = [axis[cell].value for axis, cell in zip(axes, region, strict=True)]
            if all(
                not a.holds(point[a.feature]) or b.holds(point[b.feature]) for a, b in self.rules
            ):
                margins[region] = sum((margin(tree, point) for tree in self.trees), Fraction(0))
        return sum(self._is_sensitive(r, margins, axes) for r in margins), len(margins)

    def _keeps_rules(self, point: Sequence[Fraction]) -> bool:
        return all(
            not a.holds(point[a.feature]) or b.holds(point[b.feature]) for a, b in self.rules
        )

    def _cells(self, feature: int) -> Iterator[Cell]:
        """Yield the cells of an axis: as cut by the trees and by the bounds of rules."""
        guards = {guard for tree in self.trees for guard in guards_of(tree, feature)}
        atoms = [atom for rule in self.rules for atom in rule if atom.feature == feature]
        cuts = guards.union(*(atom.bounds for atom in atoms))
        known = set()
        for value in POINTS:
            place = sum(cut <= value for cut in cuts)
            allowed = all(c.holds(value) for c in self.where if c.feature == feature)
            if allowed and place not in known:
                known.add(place)
                yield Cell(value, sum(guard <= value for guard in guards))

    def _is_sensitive(
        self, region: Region, margins: dict[Region, Fraction], axes: Sequence[Sequence[Cell]]
    ) -> bool:
        for cells in itertools.product(*(range(len(axes[f])) for f in self.sensitive)):
            moved = dict(zip(self.sensitive, cells, strict=True))
            other = tuple(moved.get(feature, cell) for feature, cell in enumerate(region))
            steps = (
                axes[f][region[f]].position - axes[f][cell].position for f, cell in moved.items()
            )
            distance = sum(map(abs, steps))
            is_near = 1 <= distance <= (distance if self.distance is None else self.distance)
            if is_near and other in margins and self._changes(margins[region], margins[other]):
                return True
        return False

    def _changes(self, value: Fraction, other: Fraction) -> bool:
        """Tell whether the change from one margin to the other counts."""
        if self.gap is None:
            value, other = Fraction(value > 0), Fraction(other > 0)
        rise = other - value
        least = self.gap or Fraction(0)
        return {"up": rise, "down": -rise, "any": abs(rise)}[self.direction] > least


def margin(tree: Nested, point: Sequence[Fraction]) -> Fraction:
    """Return the leaf of a point, exactly as stored."""
    while isinstance(tree, tuple):
        feature, threshold, low, high = tree
        tree = low if point[feature] < threshold else high
    return Fraction(tree)


def guards_of(tree: Nested, feature: int) -> Iterator[Fraction]:
    """Yield the thresholds of a feature."""
    if isinstance(tree, tuple):
        if tree[0] == feature:
            yield Fraction(tree[1])
        for child in tree[2:]:
            yield from guards_of(child, feature)


def random_domain_question(
    seed: int, random_tree: Callable[[np.random.Generator, int, int], Nested]
) -> DomainQuestion:
    """Return a question about a few trees, within conditions and rules."""
    random = np.random.default_rng([seed, 98])
    n_features = int(random.integers(2, 4))

    def condition() -> Condition:
        ends = sorted(Fraction(int(n), 2) for n in random.choice(range(1, 11), 2, replace=False))
        form = int(random.integers(3))
        return Condition(
            int(random.integers(n_features)),
            None if form == 0 else ends[0],
            None if form == 1 else ends[1],
        )

    n_sensitive = int(random.integers(1, 3))
    gaps = (None, Fraction(0), Fraction(1, 4), Fraction(1), Fraction(2))
    return DomainQuestion(
        trees=[random_tree(random, n_features, 3) for _ in range(int(random.integers(1, 6)))],
        n_features=n_features,
        where=[condition() for _ in range(int(random.integers(2)))],
        rules=[(condition(), condition()) for _ in range(int(random.integers(4)))],
        sensitive=[int(f) for f in random.choice(n_features, n_sensitive, replace=False)],
        distance=(1, 2, 3, None)[int(random.integers(4))],
        gap=gaps[int(random.integers(len(gaps)))],
        direction=("any", "up", "down")[int(random.integers(3))],
    )
