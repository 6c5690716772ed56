"""Random models with domains and restricted changes, and the sensitive regions by definition.

As in :mod:`domains`, points come first: a region to start from, a region to change to, and which of
the two fulfils what. Nothing here knows how the package divides a question into parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
from domains import Atom, Key, Value, World, _steps, random_atom, random_world

Region = tuple[Key, ...]


@dataclass(frozen=True)
class ChangingWorld(World):
    """A world in which not every change is allowed.

    Attributes:
        starts: conditions on the start.
        targets: conditions on the target.
        along: for some features the pairs of values that are exchanged.
        rising: whether the sensitive features may only rise (1) or only fall (-1).
        closed_missing: whether a missing value may be left, but not entered.
    """

    starts: tuple[Atom, ...] = ()
    targets: tuple[Atom, ...] = ()
    along: dict[str, tuple[tuple[Any, Any], ...]] = field(default_factory=dict)
    rising: int = 0
    closed_missing: bool = False

    @property
    def words(self) -> dict[str, Any]:
        """The domain as arguments of ``count``."""
        along = [
            f"{name}: {', '.join(f'{_written(a)} <-> {_written(b)}' for a, b in pairs)}"
            for name, pairs in self.along.items()
        ]
        return {
            **super().words,
            "where_from": [atom.text for atom in self.starts],
            "where_to": [atom.text for atom in self.targets],
            "along": along,
        }

    def told_apart(self, name: str) -> list[Atom]:
        """Return the conditions that cut cells."""
        ends = [atom for atom in (*self.starts, *self.targets) if atom.feature == name]
        return [*super().told_apart(name), *ends]

    def cell(self, name: str, value: Value) -> Key:
        """Return the cell of a value; values to be exchanged are told from others."""
        apart = []
        for pair in self.along.get(name, ()) if value is not None else ():
            if self._stands_for_itself(name) and self._differ(name, *pair):
                apart += [value == each for each in pair]
        key = super().cell(name, value)
        return (*key, *apart)

    def _differ(self, name: str, a: Value, b: Value) -> bool:
        """Tell whether two values are in different cells, or one of them in none."""
        exist = [self._holds(name, value) for value in (a, b)]
        return not all(exist) or super().cell(name, a) != super().cell(name, b)

    def _holds(self, name: str, value: Value) -> bool:
        return all(atom(value) for atom in self.where if atom.feature == name)

    def _stands_for_itself(self, name: str) -> bool:
        """Tell whether a value does not stand for all numbers of its cell."""
        if name in self.groups:
            return True
        values = [v for v in self.candidates(name) if v is not None and self._holds(name, v)]
        bounds = {x for atom in self.where if atom.feature == name for x in atom.bounds}
        return all(isinstance(value, str) or value in bounds for value in values)

    def moved(self, region: Region) -> Region | None:
        """Return the region with its values exchanged; None if one of them is not in the domain."""
        found = list(region)
        for name, pairs in self.along.items():
            place = self.features.index(name)
            for pair in pairs:
                for a, b in (pair, pair[::-1]):
                    if not self._holds(name, a) or self.cell(name, a) != region[place]:
                        continue
                    if not self._holds(name, b):
                        return None
                    found[place] = self.cell(name, b)
        return tuple(found)

    def region_of(self, point: Sequence[float]) -> Region:
        """Return the region of a point, given by the features that groups are."""
        values = [self._value(n, x) for n, x in zip(self.features, point, strict=True)]
        return tuple(self.cell(n, v) for n, v in zip(self.features, values, strict=True))

    def _value(self, name: str, number: float) -> Value:
        if math.isnan(number):
            return None
        if name in self.groups:
            return self.candidates(name)[int(number)]
        feature = self.ensemble.features[self.ensemble.feature_names.index(name)]
        return number if feature.categories is None else str(int(number))

    def sensitive_regions(
        self, sensitive: list[str], distance: int | None, **change: Any
    ) -> dict[Region, bool]:
        """Return for every region that a change may start from whether it is sensitive."""
        return {
            region: any(is_change for _, is_change in reached)
            for region, reached in self._reached(sensitive, distance, change).items()
        }

    def n_fixed(self, sensitive: list[str]) -> int:
        """Return the number of starts without any target."""
        reached = self._reached(sensitive, None, {"gap": Fraction(0)}, least=0)
        return sum(not targets for targets in reached.values())

    def _reached(
        self, sensitive: list[str], distance: int | None, change: dict[str, Any], least: int = 1
    ) -> dict[Region, list[tuple[Region, bool]]]:
        points = self.regions()
        sums = {r: oracle.margins(self.ensemble, p, None) for r, p in points.items()}
        values = self._values()
        places = [self.features.index(name) for name in sensitive]
        by_rest: dict[Region, list[Region]] = {}
        for region in points:
            by_rest.setdefault(_rest(region, places), []).append(region)
        found: dict[Region, list[tuple[Region, bool]]] = {}
        for region in points:
            if not self._fulfils(self.starts, region, values):
                continue
            moved = self.moved(region)
            others = [] if moved is None else by_rest.get(_rest(moved, places), [])
            allowed = [
                other
                for other in others
                if self._may_change(region, other, places, distance, values, least)
            ]
            found[region] = [
                (other, oracle.changed(self.ensemble, sums[region], sums[other], **change))
                for other in allowed
            ]
        return found

    def _may_change(
        self,
        a: Region,
        b: Region,
        places: list[int],
        distance: int | None,
        values: dict[tuple[str, Key], Value],
        least: int,
    ) -> bool:
        apart = sum(_steps(a[place], b[place]) for place in places)
        has_moved = any(a[i] != b[i] for i in range(len(a)) if i not in places)
        is_other = any(a[place] != b[place] for place in places)
        if apart < (1 if has_moved else least) or not is_other:
            return False
        if apart > (math.inf if distance is None else distance):
            return False
        if not self._fulfils(self.targets, b, values):
            return False
        if self.closed_missing and any(
            y[0] == "missing" and x != y for x, y in zip(a, b, strict=True)
        ):
            return False
        return not self.rising or all(self._is_beyond(a[p], b[p]) for p in places)

    def _is_beyond(self, a: Key, b: Key) -> bool:
        if not a[0] == b[0] == "guards below":
            return False
        return bool((b[1] - a[1]) * self.rising > 0)

    def _values(self) -> dict[tuple[str, Key], Value]:
        return {(n, key): v for n in self.features for key, v in self.cells(n).items()}

    def _fulfils(
        self, atoms: tuple[Atom, ...], region: Region, values: dict[tuple[str, Key], Value]
    ) -> bool:
        cells = dict(zip(self.features, region, strict=True))
        return all(atom(values[atom.feature, cells[atom.feature]]) for atom in atoms)


def _rest(region: Region, places: list[int]) -> Region:
    return tuple(cell for place, cell in enumerate(region) if place not in places)


def _written(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def random_changing_world(seed: int, n_rules: int = 0) -> tuple[ChangingWorld, list[str]]:
    """Return a random world with restricted changes, and sensitive features."""
    base = random_world(seed, n_rules)
    rng = np.random.default_rng([seed, 78])
    n = int(rng.integers(1, min(2, len(base.features)) + 1))
    sensitive = [str(name) for name in rng.choice(base.features, n, replace=False)]

    def atoms(chance: float) -> tuple[Atom, ...]:
        found = []
        while rng.random() < chance:
            often = sensitive if rng.random() < 0.5 else base.features
            found.append(random_atom(rng, base, str(rng.choice(often))))
        return tuple(found)

    along = {}
    for name in base.features:
        if name not in sensitive and rng.random() < 0.5:
            along[name] = _random_pairs(rng, base, name)
    return (
        ChangingWorld(
            with_outputs(rng, base).ensemble,
            base.groups,
            base.where,
            base.rules,
            base.missing,
            atoms(0.4),
            atoms(0.4),
            {name: pairs for name, pairs in along.items() if pairs},
            closed_missing=base.missing and bool(rng.random() < 0.5),
        ),
        sensitive,
    )


def with_outputs(rng: np.random.Generator, world: World) -> World:
    """Return the world's model with several classes, perhaps."""
    ensemble = world.ensemble
    if rng.random() < 0.6:
        return replace(world, ensemble=replace(ensemble, probability="sigmoid"))
    n_outputs = int(rng.integers(2, 4))
    trees = tuple(replace(t, output=int(rng.integers(n_outputs))) for t in ensemble.trees)
    base = tuple(float(x) for x in rng.choice([0.0, 0.5, -0.5], n_outputs))
    own = replace(ensemble, trees=trees, base=base, probability="softmax", task="multiclass")
    return replace(world, ensemble=own)


def _random_pairs(
    rng: np.random.Generator, world: World, name: str
) -> tuple[tuple[Value, Value], ...]:
    values = [value for value in world.candidates(name) if value is not None]
    if name not in world.groups and not isinstance(values[0], str):
        numbers = [float(x) for x in rng.choice(np.arange(-3, 4.5, 0.5), 2, replace=False)]
        return ((numbers[0], numbers[1]),)
    chosen = [values[i] for i in rng.permutation(len(values))[:2]]
    return ((chosen[0], chosen[1]),) if len(chosen) == 2 else ()


def random_change(seed: int, world: World) -> dict[str, Any]:
    """Return a random change, in the words of the oracle."""
    rng = np.random.default_rng([seed, 79])
    n_outputs = len(world.ensemble.base)
    direction = str(rng.choice(["any", "up", "down"]))
    kind = str(rng.choice(["gap", "gap", "flip", "probability", "sure"]))
    if kind == "gap":
        gap = Fraction(str(rng.choice(["0", "0.5", "0.3", "1"])))
        return {"gap": gap, "direction": direction, "class_": int(rng.integers(n_outputs))}
    if kind == "probability":
        gap = Fraction(str(rng.choice(["0.01", "0.1", "0.3"])))
        own = {"probability_gap": gap, "direction": direction}
        return {**own, "class_": int(rng.integers(n_outputs))}
    least = {"from_probability": Fraction(6, 10)} if kind == "sure" else {}
    if n_outputs > 1:
        return {"flip": True, **least}
    return {"flip": True, "cutoff": Fraction(0), "direction": direction, **least}
