"""Whom a measure weighs: regions with weights, or rows, and what holds among some of them.

A measure is a mixture of product measures over the cells of a grid (one product but for a
population), or a list of rows. Some of its people are those in a *box*: for some features, some of
their cells. What holds among them is found exactly where that is soon done, and by independent
draws where not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount.counters.decisions import RegionDecider
from xcount.counters.exact import ExactRun, pair_scan_seconds
from xcount.counters.sampling.draws import ends_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.counters.visit import CornerRun, corner_seconds
from xcount.errors import BudgetError, OutOfLimitsError, QueryError
from xcount.measures.population import Component
from xcount.measures.products import components_of, laid_bytes, laying_seconds, placed_rows
from xcount.measures.weighting import Weighing
from xcount.problem.parts import Part
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.rules import Box as RuleBox

Box = Mapping[int, NDArray[np.bool_]]
"""For some features which of their cells are inside; all cells of the others are."""

BLOCK = 4096
"""Regions that are decided at a time."""
MAX_PARTS = 4096
"""Products of a mixture, boxes of its domain told apart, that are drawn from."""
_ROUNDING = 1e-13
"""What rounding takes from a share of 1."""
_LEAST_STEPS = 1000
"""Hardly any subproblem that is open at all is solved in fewer."""


@dataclass(frozen=True, eq=False)
class People:
    """What a measure weighs, on the cells of a grid.

    Attributes:
        measure: its name.
        grid: the cells, and the rules that the regions keep.
        components: product measures, rules aside; none of a list of rows.
        rows: the regions of the rows that lie in one; None of other measures.
        values: of the sensitive features of these rows, a column for each.
    """

    measure: str
    grid: Grid
    components: tuple[Component, ...] = ()
    rows: NDArray[np.int64] | None = None
    values: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, name: str, problem: Problem, weighing: Weighing | None = None) -> People:
        """Return the people of a measure on the cells of a question."""
        grid = problem.grid
        if name == "regions":
            return cls(name, grid, (Component(1.0, [np.ones(n) / n for n in grid.cell_counts]),))
        assert weighing is not None
        if name != "rows":
            return cls(name, grid, tuple(components_of(name, problem, weighing)))
        regions, placed = placed_rows(problem, weighing)
        assert weighing.rows is not None
        values = weighing.rows[placed][:, list(problem.query.sensitive)]
        return cls(name, grid, rows=regions[placed], values=values)

    @property
    def fingerprint(self) -> str:
        """A hash of all that they weigh."""
        digest = hashlib.sha256(self.measure.encode())
        for component in self.components:
            digest.update(np.array(component.weight).tobytes())
            for cells in component.cells:
                digest.update(cells.tobytes())
        if self.rows is not None:
            digest.update(self.rows.tobytes())
        if self.values is not None:
            digest.update(self.values.tobytes())
        return digest.hexdigest()

    @cached_property
    def _parts(self) -> tuple[Component, ...]:
        """The products inside the boxes of the domain, with the weights that they have there."""
        boxes = self.grid.boxes(())
        if len(boxes) * len(self.components) > MAX_PARTS:
            raise BudgetError("the domain has too many parts to draw from")
        inside = [
            _inside(c, _flags(box.cells, self.grid)) for c in self.components for box in boxes
        ]
        whole = math.fsum(part.weight for part in inside)
        if not whole > 0:
            raise QueryError(f"nothing of the domain has any weight under {self.measure!r}")
        return tuple(replace(p, weight=p.weight / whole) for p in inside if p.weight > 0)

    def mass(self, box: Box) -> float:
        """Return the share of the people who are in a box."""
        if self.rows is not None:
            return float(inside(self.rows, box).mean()) if len(self.rows) else 0.0
        return min(1.0, math.fsum(_inside(part, box).weight for part in self._parts))

    def marginal(self, feature: int) -> NDArray[np.float64]:
        """Return the share of the people in each cell of a feature."""
        n_cells = self.grid.axes[feature].n_cells
        if self.rows is not None:
            counts = np.bincount(self.rows[:, feature], minlength=n_cells)
            return counts / max(1, len(self.rows))
        weights = np.zeros(n_cells)
        for part in self._parts:
            weights += part.weight * part.cells[feature]
        return weights

    def moved(self, cells: Mapping[int, int]) -> People:
        """Return the same people with other cells of some features; there must be no rules."""
        if self.rows is not None:
            rows = self.rows.copy()
            for feature, cell in cells.items():
                rows[:, feature] = cell
            return replace(self, rows=rows)
        there = [_moved(component, cells) for component in self.components]
        return replace(self, components=tuple(there))

    def extended(self, grid: Grid, cells: Sequence[NDArray[np.float64]]) -> People:
        """Return the people on a grid with more axes: what the cells of each weigh, or which."""
        if self.rows is not None:
            more = np.tile([int(own.argmax()) for own in cells], (len(self.rows), 1))
            return replace(self, grid=grid, rows=np.concatenate([self.rows, more], axis=1))
        wider = (Component(c.weight, [*c.cells, *cells]) for c in self.components)
        return replace(self, grid=grid, components=tuple(wider))

    def drawn(
        self, random: np.random.Generator, n: int, box: Box | None = None
    ) -> NDArray[np.int64]:
        """Draw regions of people in a box, independently; of rows, some of the rows."""
        if self.rows is not None:
            here = self.rows[inside(self.rows, box or {})]
            return here[random.integers(len(here), size=n)]
        parts = [_inside(part, box or {}) for part in self._parts]
        weights = np.array([part.weight for part in parts])
        numbers = np.searchsorted(ends_of(weights), random.random(n), side="right")
        regions = np.zeros((n, len(self.grid.axes)), dtype=np.int64)
        chances = random.random((len(self.grid.axes), n))
        for number in sorted(set(numbers.tolist())):
            own = numbers == number
            for feature, weights_of_cells in enumerate(parts[number].cells):
                if len(weights_of_cells) > 1:
                    ends = ends_of(weights_of_cells)
                    cells = np.searchsorted(ends, chances[feature, own], side="right")
                    regions[own, feature] = cells
        return regions


def inside(regions: NDArray[np.integer], box: Box) -> NDArray[np.bool_]:
    """Return which regions are in a box."""
    found = np.ones(len(regions), dtype=np.bool_)
    for feature, flags in box.items():
        found &= flags[regions[:, feature]]
    return found


def _flags(cells: Mapping[int, Sequence[int]], grid: Grid) -> dict[int, NDArray[np.bool_]]:
    counts = grid.cell_counts
    return {f: np.isin(np.arange(counts[f]), own) for f, own in cells.items()}


def _inside(part: Component, box: Box) -> Component:
    """Return a product in a box, and what it weighs there."""
    cells, weight = list(part.cells), part.weight
    for feature, flags in box.items():
        own = np.where(flags, cells[feature], 0.0)
        mass = float(own.sum())
        weight *= mass
        cells[feature] = own / mass if mass else own
    return Component(weight, cells)


def _moved(part: Component, to: Mapping[int, int]) -> Component:
    cells = list(part.cells)
    for feature, cell in to.items():
        cells[feature] = (np.arange(len(cells[feature])) == cell) / 1.0
    return Component(part.weight, cells)


def decide_rows(
    problem: Problem, rows: NDArray[np.int64], settings: Settings, what: str
) -> NDArray[np.bool_]:
    """Return which rows are sensitive; hear interrupts, and say what is done.

    Raises:
        OutOfLimitsError: the time was over.
    """
    decider, flags = RegionDecider(problem), [np.empty(0, dtype=np.bool_)]
    for start in range(0, len(rows), BLOCK):
        settings.report(Progress(1.0, 0, problem.n_regions, f"explaining: {what}"))
        if start and settings.expired():
            raise OutOfLimitsError("the time was over before all rows were looked at")
        flags.append(decider.decide_regions(rows[start : start + BLOCK], settings.search_seconds()))
    return np.concatenate(flags)


class Budget(NamedTuple):
    """What weighing a box exactly may take.

    Attributes:
        seconds: for visiting all its regions, or for listing its subproblems, by a guess.
        steps: of exact counting, where that is too long.
    """

    seconds: float
    steps: int


def exact_share(
    problem: Problem, people: People, box: Box, settings: Settings, budget: Budget
) -> float | None:
    """Return the share of the people in a box who are sensitive; None where that takes long.

    Args:
        problem: the question.
        people: on the cells of its grid; a mixture, not rows.
        box: who of them.
        settings: limits and threads.
        budget: what it may take.
    """
    weighed = list(_weighed(problem, people, box))
    whole = math.fsum(weight for _, products in weighed for weight, _, _ in products)
    n_products = sum(len(products) for _, products in weighed)
    if not whole > 0:
        return None
    found = []
    for part, products in weighed:
        for weight, cells, masses in products:
            own = Budget(budget.seconds / n_products, budget.steps // n_products)
            share = _share(part.problem, cells, masses, settings, own)
            if share is None:
                return None
            found.append(weight * share)
    share = math.fsum(found) / whole
    return 1.0 if share > 1 - _ROUNDING else share


Product = tuple[float, list[NDArray[np.float64]], NDArray[np.float64]]
"""A product measure in a part: its weight there, and those of the cells and of the masks."""


def _weighed(problem: Problem, people: People, box: Box) -> Iterator[tuple[Part, list[Product]]]:
    """Yield the parts of the question that a box has, with what the people weigh there."""
    sensitive = problem.query.sensitive
    counts = problem.grid.cell_counts
    starts = np.ones(1)
    for feature in sensitive:
        flags = box.get(feature, np.ones(counts[feature], dtype=np.bool_))
        starts = np.outer(starts, flags).ravel()
    others = {f: np.flatnonzero(own) for f, own in box.items() if f not in sensitive}
    for rule_box in problem.grid.boxes(sensitive):
        cells = {f: np.array(own) for f, own in rule_box.cells.items()}
        for feature, own in others.items():
            cells[feature] = np.intersect1d(cells.get(feature, own), own)
        if not all(len(own) for own in cells.values()):
            continue
        listed = {f: tuple(own.tolist()) for f, own in cells.items()}
        part = Part.of_box(problem, RuleBox(listed, rule_box.masks))
        products = [_product(problem, part, component, starts) for component in people.components]
        yield part, [product for product in products if product[0] > 0]


def _product(
    problem: Problem, part: Part, component: Component, starts: NDArray[np.float64]
) -> Product:
    masses = np.ones(1)
    for feature in problem.query.sensitive:
        masses = np.outer(masses, component.cells[feature]).ravel()
    cells, own_masses, mass = part.weights(component.cells, masses * starts)
    return component.weight * mass, cells, own_masses


def _share(
    problem: Problem,
    cells: list[NDArray[np.float64]],
    masses: NDArray[np.float64],
    settings: Settings,
    budget: Budget,
) -> float | None:
    """Return what is sensitive under one product measure, where that is soon known."""
    if problem.n_masks < 2:
        return 0.0
    if laying_seconds(problem) > budget.seconds or laid_bytes(problem) > settings.free_bytes():
        return None
    shares: NDArray[np.float64] | None = None
    if corner_seconds(problem, settings, is_weighed=True) <= budget.seconds:
        shares = _visited(problem, cells, settings)
    if shares is None:
        shares = _solved(problem, cells, masses, settings, budget)
    return None if shares is None else min(1.0, math.fsum(masses * shares))


def _visited(
    problem: Problem, cells: list[NDArray[np.float64]], settings: Settings
) -> NDArray[np.float64] | None:
    try:
        run = CornerRun(problem, settings, cells)
    except BudgetError:
        return None
    run.visit()
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return run.shares if run.is_complete else None


def _solved(
    problem: Problem,
    cells: list[NDArray[np.float64]],
    masses: NDArray[np.float64],
    settings: Settings,
    budget: Budget,
) -> NDArray[np.float64] | None:
    if pair_scan_seconds(problem) + laying_seconds(problem) > budget.seconds:
        return None
    masks = np.flatnonzero(masses).tolist()
    run = ExactRun(problem, settings, weights=cells, masks=masks)
    run.solve(())
    if (n_open := run.n_open_subproblems) > budget.steps // _LEAST_STEPS:
        return None
    if n_open:
        run.solve((budget.steps // n_open,))
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    bounds = run.all_mask_bounds()
    if any(low != high for low, high in bounds):
        return None
    shares = np.zeros(problem.n_masks)
    shares[masks] = [low for low, _ in bounds]
    return shares
