"""Random models with domains, and their regions by definition: points first, cells from them.

Nothing here knows how the package reads conditions or makes cells: every feature gets the numbers
at, just below and just above each guard and bound; points that the domain does not hold are left
out; the others are gathered by the guards below them. What is left are the regions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
from strategies import SCALES, random_tree

from xcount.model.ensemble import Ensemble, Feature

Value = float | str | None
"""A number, the label of a category, or None for a missing value."""
Key = tuple[Any, ...]
"""A cell: the guards below it, or how the tests see a category."""


@dataclass(frozen=True)
class Atom:
    """A condition: its words, its feature, what it means, and the numbers it names."""

    text: str
    feature: str
    holds: Callable[[Any], bool]
    bounds: tuple[float, ...] = ()
    sides: Callable[[float], tuple[bool, ...]] = lambda x: ()
    """On which side of each of its bounds a number lies: a rule's bounds cut cells."""

    def __call__(self, value: Value) -> bool:
        """Tell whether a value fulfils it; only ``is missing`` is fulfilled by a missing one."""
        if value is None:
            return self.text.endswith("is missing")
        return self.holds(value)


@dataclass(frozen=True)
class World:
    """A model on columns, its one-hot groups and conditions."""

    ensemble: Ensemble
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    where: tuple[Atom, ...] = ()
    rules: tuple[tuple[tuple[Atom, ...], tuple[Atom, ...]], ...] = ()
    missing: bool = False

    @property
    def words(self) -> dict[str, Any]:
        """The domain as arguments of ``count``."""
        return {
            "one_hot": {name: list(columns) for name, columns in self.groups.items()},
            "where": [atom.text for atom in self.where],
            "rule": [" -> ".join(" and ".join(a.text for a in s) for s in r) for r in self.rules],
        }

    def told_apart(self, name: str) -> list[Atom]:
        """Return the conditions of rules on a feature."""
        return [a for rule in self.rules for side in rule for a in side if a.feature == name]

    @property
    def features(self) -> list[str]:
        """The names of the features, groups in place of their first columns."""
        owner = {c: name for name, columns in self.groups.items() for c in columns}
        return list(dict.fromkeys(owner.get(n, n) for n in self.ensemble.feature_names))

    def columns(self, point: Sequence[Value]) -> list[float]:
        """Return the point as the model takes it."""
        values: dict[str, float] = {}
        for name, value in zip(self.features, point, strict=True):
            if name in self.groups:
                own = [c for c in self.groups[name] if c != "+none"]
                values |= {column: float(column == f"{name}_{value}") for column in own}
            else:
                values[name] = math.nan if value is None else float(value)
        return [values[name] for name in self.ensemble.feature_names]

    def candidates(self, name: str) -> list[Value]:
        """Return values of a feature, at least one of every kind that can matter."""
        if name in self.groups:
            return [c.removeprefix(f"{name}_").removeprefix("+") for c in self.groups[name]]
        feature = self.ensemble.features[self.ensemble.feature_names.index(name)]
        found: list[Value] = []
        if feature.categories is not None:
            found += [str(code) for code in feature.categories]
        else:
            asked = [a for a in self.where if a.feature == name] + self.told_apart(name)
            ends = {x for atom in asked for x in atom.bounds}
            for x in sorted(self.guards(name) | ends | {0.0}):
                found += [math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf)]
        if self.missing and feature.can_be_missing:
            found.append(None)
        return found

    def guards(self, name: str) -> set[float]:
        index = self.ensemble.feature_names.index(name)
        return {
            float(tree.threshold[node])
            for tree in self.ensemble.trees
            for node in range(tree.n_nodes)
            if tree.feature[node] == index
        }

    def cell(self, name: str, value: Value) -> Key:
        """Return the cell that a value lies in."""
        if value is None:
            return ("missing",)
        if name not in self.groups and not isinstance(value, str):
            cuts = [side for atom in self.told_apart(name) for side in atom.sides(value)]
            return ("guards below", sum(guard <= value for guard in self.guards(name)), *cuts)
        told_apart = [atom(value) for atom in self.told_apart(name)]
        return ("seen as", *self._tests(name, value), *told_apart)

    def _tests(self, name: str, value: Value) -> list[bool]:
        """Return how all tests of a category, or of the columns of a group, decide."""
        point = self.columns([value if n == name else 0.0 for n in self.features])
        own = self.groups.get(name, (name,))
        indices = [self.ensemble.feature_names.index(c) for c in own if c != "+none"]
        decided = []
        for tree in self.ensemble.trees:
            for node in range(tree.n_nodes):
                if tree.feature[node] in indices:
                    x = point[tree.feature[node]]
                    sets = tree.left_categories
                    left = int(x) in sets[node] if node in sets else x < tree.threshold[node]
                    decided.append(bool(left))
        return decided

    def cells(self, name: str) -> dict[Key, Value]:
        """Return the cells of a feature that conditions leave, each with a value of it."""
        found: dict[Key, Value] = {}
        for value in self.candidates(name):
            if all(atom(value) for atom in self.where if atom.feature == name):
                found.setdefault(self.cell(name, value), value)
        return found

    def can_change(self, name: str) -> bool:
        """Tell whether two cells of a feature are at a distance."""
        return any(_steps(a, b) for a in self.cells(name) for b in self.cells(name))

    def regions(self) -> dict[tuple[Key, ...], list[float]]:
        """Return the regions that exist, each with a point of it as the model takes it."""
        per_feature = [self.cells(name) for name in self.features]
        found = {}
        for point in itertools.product(*(cells.items() for cells in per_feature)):
            if self.keeps_rules(dict(zip(self.features, (v for _, v in point), strict=True))):
                found[tuple(key for key, _ in point)] = self.columns([v for _, v in point])
        return found

    def changes_somewhere(self, name: str, sensitive: Sequence[str]) -> bool:
        """Tell whether two regions that differ in sensitive features alone differ in this one."""
        place = self.features.index(name)
        others = [i for i, each in enumerate(self.features) if each not in sensitive]
        by_rest: dict[tuple[Key, ...], list[Key]] = {}
        for region in self.regions():
            by_rest.setdefault(tuple(region[i] for i in others), []).append(region[place])
        return any(_steps(cells[0], cell) for cells in by_rest.values() for cell in cells)

    def keeps_rules(self, values: dict[str, Value]) -> bool:
        """Tell whether a point keeps all rules."""

        def hold(side: tuple[Atom, ...]) -> bool:
            return all(atom(values[atom.feature]) for atom in side)

        return all(hold(required) or not hold(supposed) for supposed, required in self.rules)

    def count(
        self,
        sensitive: Sequence[str],
        distance: int | None,
        gap: Fraction | None,
        differs: Callable[[Fraction, Fraction], bool] | None = None,
    ) -> tuple[int, int]:
        """Return how many regions are sensitive to a gap (None: to a flip at 0), and how many.

        Or to another change, of the margins before and after.
        """
        regions = self.regions()
        values: dict[tuple[Key, ...], Any] = {
            key: oracle.margin(self.ensemble, point, None) for key, point in regions.items()
        }
        places = [self.features.index(name) for name in sensitive]

        def rest(key: tuple[Key, ...]) -> tuple[Key, ...]:
            return tuple(cell for place, cell in enumerate(key) if place not in places)

        by_rest: dict[tuple[Key, ...], list[tuple[Key, ...]]] = {}
        for key in regions:
            by_rest.setdefault(rest(key), []).append(key)

        def changes(a: tuple[Key, ...], b: tuple[Key, ...]) -> bool:
            apart = sum(_steps(a[place], b[place]) for place in places)
            if not 1 <= apart <= (math.inf if distance is None else distance):
                return False
            if differs is not None:
                return differs(values[a], values[b])
            if gap is None:
                return bool((values[a] > 0) != (values[b] > 0))
            return bool(abs(values[a] - values[b]) > gap)

        found = sum(any(changes(key, other) for other in by_rest[rest(key)]) for key in regions)
        return found, len(regions)


def _steps(a: Key, b: Key) -> int:
    if a[0] == b[0] == "guards below":
        return int(abs(a[1] - b[1]))
    return int(a != b)


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def random_atom(rng: np.random.Generator, world: World, name: str) -> Atom:
    """Return a random condition on a feature."""
    feature = None
    if name not in world.groups:
        feature = world.ensemble.features[world.ensemble.feature_names.index(name)]
    if world.missing and feature is not None and feature.can_be_missing and rng.random() < 0.2:
        is_missing = bool(rng.random() < 0.5)
        return Atom(
            f"{name} is {'' if is_missing else 'not '}missing", name, lambda _: not is_missing
        )
    if feature is None or feature.categories is not None:
        labels = [str(value) for value in world.candidates(name) if value is not None]
        return _random_choice(rng, name, labels)
    return _random_comparison(rng, name)


def _random_choice(rng: np.random.Generator, name: str, labels: list[str]) -> Atom:
    chosen = [label for label in labels if rng.random() < 0.6] or labels[:1]
    kind = rng.random()
    if len(chosen) == 1 and kind < 0.4:
        return Atom(f"{name} == {chosen[0]}", name, lambda value: value == chosen[0])
    if kind < 0.6:
        return Atom(f"{name} != {chosen[0]}", name, lambda value: value != chosen[0])
    return Atom(f"{name} in {{{', '.join(chosen)}}}", name, lambda value: value in chosen)


def _random_comparison(rng: np.random.Generator, name: str) -> Atom:
    low, high = (float(x) for x in sorted(rng.choice(np.arange(-4, 4.5, 0.5), 2, replace=False)))
    both = (low, high)
    kind = rng.random()

    def around_both(x: float) -> tuple[bool, ...]:
        return (x < low, x > low, x < high, x > high)

    if kind < 0.25:
        words = f"{low:g} <= {name} < {high:g}"
        return Atom(words, name, lambda x: low <= x < high, both, lambda x: (x < low, x < high))
    if kind < 0.35:
        words = f"{name} in {{{low:g}, {high:g}}}"
        return Atom(words, name, lambda x: x in both, both, around_both)
    if kind < 0.45:
        words = f"{name} not in {{{low:g}, {high:g}}}"
        return Atom(words, name, lambda x: x not in both, both, around_both)
    operator = str(rng.choice(list(COMPARISONS)))
    compare = COMPARISONS[operator]
    sides: dict[str, Callable[[float], tuple[bool, ...]]] = {
        **dict.fromkeys(("<", ">="), lambda x: (x < low,)),
        **dict.fromkeys(("<=", ">"), lambda x: (x <= low,)),
        **dict.fromkeys(("==", "!="), lambda x: (x < low, x > low)),
    }
    words = f"{name} {operator} {low:g}"
    return Atom(words, name, lambda x: compare(x, low), (low,), sides[operator])


def random_world(seed: int, n_rules: int = 0) -> World:
    """Return the random world of that seed: small enough to go through all its points."""
    rng = np.random.default_rng([seed, 77])
    features, groups = _random_features(rng)
    scale = SCALES["ties" if rng.random() < 0.5 else "decimals"]
    thresholds = np.sort(rng.choice([-2.0, -1.0, 0.5, 1.0, 2.0, 3.0], 4, replace=False))
    trees = tuple(
        random_tree(rng, tuple(features), int(rng.integers(1, 4)), scale, thresholds)
        for _ in range(int(rng.integers(1, 5)))
    )
    world = World(Ensemble(tuple(features), trees), groups, missing=bool(rng.random() < 0.4))
    atoms = []
    for name in world.features:
        while rng.random() < 0.4:
            atoms.append(random_atom(rng, world, name))
    rules = tuple(_random_rule(rng, world) for _ in range(n_rules))
    return World(
        world.ensemble, groups, tuple(atoms[: None if not rules else 1]), rules, world.missing
    )


def _random_rule(
    rng: np.random.Generator, world: World
) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    sides = []
    for _ in range(2):
        n = 1 + int(rng.random() < 0.3)
        names = [str(name) for name in rng.choice(world.features, n)]
        sides.append(tuple(random_atom(rng, world, name) for name in names))
    return sides[0], sides[1]


def _random_features(
    rng: np.random.Generator,
) -> tuple[list[Feature], dict[str, tuple[str, ...]]]:
    features: list[Feature] = []
    groups: dict[str, tuple[str, ...]] = {}
    for name in "ab"[: int(rng.integers(0, 3))]:
        columns = [f"{name}_{label}" for label in "xyz"[: int(rng.integers(2, 4))]]
        features += [Feature(column) for column in columns]
        groups[name] = (*columns, *(["+none"] if rng.random() < 0.4 else []))
    for i in range(int(rng.integers(1, 3))):
        categories = (0, 1, 2) if rng.random() < 0.25 else None
        missing = bool(rng.random() < 0.5)
        features.append(Feature(f"n{i}", categories, can_be_missing=missing))
    order = rng.permutation(len(features)).tolist()
    return [features[i] for i in order], groups
