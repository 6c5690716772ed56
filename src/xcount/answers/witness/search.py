"""Find sensitive regions: drawn uniformly, or nearest to a given region."""

from __future__ import annotations

import bisect
import itertools
import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from xcount.answers.witness.climb import Climber, can_climb
from xcount.answers.witness.visited_draws import VisitedDraws
from xcount.counters.costs import FREE_PAIR_SCAN_SECONDS, MAX_LISTED, VISIT_SECONDS
from xcount.counters.decisions import RegionDecider
from xcount.counters.exact import ExactRun
from xcount.counters.sampling.box_draws import BoxDraws
from xcount.counters.sampling.draws import CellDraws
from xcount.counters.settings import Settings
from xcount.counters.solutions import Solutions
from xcount.counters.tally import Progress, StopReason
from xcount.counters.visit import corner_seconds, pair_scan_seconds, visited
from xcount.errors import BudgetError, OutOfLimitsError, QueryWarning
from xcount.problem.parts import Part, parts_of
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Decomposition

Cells = NDArray[np.int32]
Masks = NDArray[np.int64]

MAX_DRAWS = 1_000_000
"""Random regions tried before solutions of subproblems are drawn."""
MAX_CANDIDATES = 200_000
"""Most combinations of cells around a row that are tried."""
_STEPS = (200_000, 3_000_000, 40_000_000)
_BATCH = 4096
_BATCH_WALKS = 2**24
"""Most trees walked for a batch: some tenths of a second."""
_SEARCHED_BATCH = 256
_MAX_MOVED = 2
_STARTS = 40
_TOO_HARD = (
    "the sensitive regions are too rare to be drawn and too hard to be counted; look near rows "
    "with --near, or ask for a smaller gap"
)


_NOT_DRAWN = (
    "the sensitive regions are too rare to be drawn and too hard to be counted within the limits: "
    "these were found by climbing to large changes, and are no fair sample"
)
_CHANCE_PART = 0.25
"""Part of the time for random regions, before anything else is tried."""
_SOLUTIONS_PART = 0.5
"""Part of the time left after that for solutions of subproblems, before a climb."""
_OUT_OF_TIME = (
    "the time limit came before enough sensitive regions were found; there may be some: raise "
    "--timeout, or look near rows with --near"
)


@dataclass(frozen=True, eq=False)
class RegionFinder:
    """Finds sensitive regions of one problem, within the limits of its settings."""

    problem: Problem
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def decider(self) -> RegionDecider:
        return RegionDecider(self.problem)

    def draw(self, n: int) -> list[NDArray[np.int64]]:
        """Return n sensitive regions, uniform and independent.

        If they are too rare to draw and too hard to count, return up to n that climbs find in the
        time left; a warning then says that they were not drawn uniformly.

        Raises:
            BudgetError: no sensitive region was found, nor proved not to exist.
        """
        if self._is_empty():
            return []
        found = self._draw_by_chance(n)
        if len(found) == n:
            return found
        if self.problem.n_combinations * self.problem.n_masks <= MAX_LISTED:
            return self._draw_listed(n)
        with suppress(BudgetError):
            return self._draw_visited(n)
        return self._draw_rare(n, found)

    def _draw_rare(self, n: int, found: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Draw from solutions, or climb for the regions that random draws did not find."""
        try:
            return self._with_less_time(_SOLUTIONS_PART).draw_solutions(n)
        except BudgetError as error:
            if self._is_proved_empty():
                return []
            climbed = self._climb(n - len(found))
            if not found and not climbed:
                raise self._why_not(error) from None
            warnings.warn(_NOT_DRAWN, QueryWarning, stacklevel=4)
            return found + climbed

    def _with_less_time(self, part: float) -> RegionFinder:
        """Return the same finder with part of the time left, if a climb may follow."""
        return replace(self, settings=self.settings.within(part)) if self._climbs else self

    @property
    def _climbs(self) -> bool:
        has_time = self.settings.timeout_seconds is not None
        return has_time and not self.decider.searches and can_climb(self.problem)

    def _climb(self, n: int) -> list[NDArray[np.int64]]:
        """Return up to n sensitive regions that climbs find before time runs out."""
        found: list[NDArray[np.int64]] = []
        if not self._climbs:
            return found
        with suppress(BudgetError):
            climber = Climber(self.problem, self.decider, self.go_on, self.settings.seed)
            for cells, mask in islice(climber.found(), n):
                found.append(self.with_mask(cells, mask))
        return found

    def _why_not(self, error: BudgetError) -> BudgetError:
        """Return the error message if nothing was found."""
        return OutOfLimitsError(_OUT_OF_TIME) if self.settings.expired() else error

    def _draw_visited(self, n: int) -> list[NDArray[np.int64]]:
        """Draw by visits of all regions, if visits are fast.

        Raises:
            BudgetError: visits are not fast.
        """
        if self.problem.is_split or self.problem.starts is not None or self.decider.searches:
            raise BudgetError(_TOO_HARD)
        if corner_seconds(self.problem, self.settings) > VISIT_SECONDS:
            raise BudgetError(_TOO_HARD)
        return VisitedDraws(self.problem, self.settings).draw(n)

    def _draw_listed(self, n: int) -> list[NDArray[np.int64]]:
        """List all sensitive regions of a small grid, and draw from them."""
        regions, flags = self.decider.decide_all()
        rows, masks = np.nonzero(flags)
        chance = random.Random(self.settings.seed)
        chosen = [chance.randrange(len(rows)) for _ in range(n if len(rows) else 0)]
        return [self.with_mask(regions[rows[i]], int(masks[i])) for i in chosen]

    def _is_proved_empty(self) -> bool:
        """Return whether a visit of all regions proves that nothing is sensitive."""
        parts = parts_of(self.problem)
        problems = [p.problem for p in parts if p.problem.n_masks > 1] if parts else [self.problem]
        if sum(corner_seconds(problem, self.settings) for problem in problems) > VISIT_SECONDS:
            return False
        tallies = (visited(problem, self.settings, "auto") for problem in problems)
        return all(tally is not None and tally.high == 0 for tally in tallies)

    def _is_empty(self) -> bool:
        """Return whether bounds, if fast to compute, prove that nothing is sensitive."""
        if pair_scan_seconds(self.problem) > FREE_PAIR_SCAN_SECONDS:
            return False
        run = ExactRun(self.problem, self.settings)
        run.solve(())
        return run.is_exact() and run.bounds() == (0, 0)

    def _draw_by_chance(self, n: int) -> list[NDArray[np.int64]]:
        if self.decider.searches:
            return self._draw_single_regions(n)
        n_masks = self.problem.n_masks
        draw = self._draws()
        generator = np.random.default_rng([self.settings.seed, 2])
        found: list[NDArray[np.int64]] = []
        walks = n_masks * max(1, self.problem.ensemble.n_trees)
        size = max(1, min(_BATCH, self.decider.block, _BATCH_WALKS // walks))
        limits = self.settings.within(_CHANCE_PART)
        for _ in range(max(1, MAX_DRAWS // (size * max(1, n_masks // 64)))):
            if limits.expired():
                self.go_on()
                break
            regions, masks = draw(generator, size)
            flags = self.decider.decide(regions)
            for index in np.flatnonzero(flags[np.arange(size), masks]):
                found.append(self.with_mask(regions[index], int(masks[index])))
            if len(found) >= n:
                return found[:n]
            self.go_on()
        return found

    def _draws(self) -> Callable[[np.random.Generator, int], tuple[Cells, Masks]]:
        """Return a function that draws regions of the domain: their cells and masks."""
        parts = [part for part in parts_of(self.problem) if part.n_masks > 1]
        if parts:
            return BoxDraws(self.problem, parts).regions_and_masks
        counted = np.array(self.problem.counted_masks)
        draws = CellDraws(self.problem, self.problem.counted_masks)

        def draw(generator: np.random.Generator, size: int) -> tuple[Cells, Masks]:
            masks = generator.integers(len(counted), size=size)
            return draws.regions(generator, size), counted[masks]

        return draw

    def _draw_single_regions(self, n: int) -> list[NDArray[np.int64]]:
        """Draw regions with their masks, if a list of all masks would be too long."""
        generator = np.random.default_rng([self.settings.seed, 2])
        sizes = np.array(self.problem.grid.cell_counts)
        found: list[NDArray[np.int64]] = []
        for _ in range(max(1, MAX_DRAWS // _SEARCHED_BATCH)):
            regions = generator.integers(0, sizes, (_SEARCHED_BATCH, len(sizes)))
            found += list(regions[self.is_sensitive(regions)])
            if len(found) >= n:
                return found[:n]
            self.go_on()
        return found

    def is_sensitive(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each region is sensitive, within the time."""
        return self.decider.decide_regions(regions, self.settings.search_seconds())

    def go_on(self) -> None:
        """Report progress, which may interrupt the run, and stop when time runs out."""
        self.settings.report(Progress(1.0, 0, self.problem.n_regions, "looking for witnesses"))
        if self.settings.expired():
            raise OutOfLimitsError(_OUT_OF_TIME)

    def draw_solutions(self, n: int, steps: Sequence[int] = _STEPS) -> list[NDArray[np.int64]]:
        """Choose masks by their exact counts, and solutions of each.

        Raises:
            BudgetError: the steps of exact counting are not enough.
            OutOfLimitsError: time ran out.
        """
        if parts := parts_of(self.problem):
            return self._draw_from_parts(n, parts, steps)
        run = ExactRun(self.problem, self.settings)
        run.solve(steps)
        if run.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        found = run.decomposition
        if found is None or not run.is_exact():
            is_late = run.stop_reason is StopReason.TIMEOUT
            raise OutOfLimitsError(_OUT_OF_TIME) if is_late else BudgetError(_TOO_HARD)
        chance = random.Random(self.settings.seed)
        chosen = _by_weight([count for count, _ in run.all_mask_bounds()], n, chance)
        masks = [run.masks[index] for index in chosen]
        regions: list[NDArray[np.int64]] = []
        for mask in sorted(set(masks)):
            regions += self._draw_of_mask(mask, masks.count(mask), found, chance)
        return regions

    def _draw_from_parts(
        self, n: int, parts: Sequence[Part], steps: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Choose parts by their exact counts, and regions of each."""
        live = [part for part in parts if part.n_masks > 1]
        runs = [ExactRun(part.problem, self.settings) for part in live]
        for run in runs:
            run.solve(steps)
            if run.stop_reason is StopReason.INTERRUPTED:
                raise KeyboardInterrupt
            if not run.is_exact():
                raise BudgetError(_TOO_HARD)
        chosen = _by_weight([run.bounds()[0] for run in runs], n, random.Random(self.settings.seed))
        regions: list[NDArray[np.int64]] = []
        for number in sorted(set(chosen)):
            part = live[number]
            finder = RegionFinder(part.problem, self.settings)
            for region in finder.draw(chosen.count(number)):
                mask = int(finder.decider.masks_of(region[np.newaxis])[0])
                regions.append(part.to_whole(region, mask))
        return regions

    def _draw_of_mask(
        self, mask: int, n: int, found: Decomposition, chance: random.Random
    ) -> list[NDArray[np.int64]]:
        """Draw from the smallest set that holds all solutions of the mask; keep the solutions."""
        wider = [
            Solutions.of_subproblem(self.problem, subproblem)
            for subproblem in self.problem.form.supersets(found, mask)
        ]
        if not wider:
            raise BudgetError(_TOO_HARD)
        solutions = min(wider, key=lambda s: s.count)
        regions: list[NDArray[np.int64]] = []
        for _ in range(MAX_DRAWS // _BATCH):
            rows = solutions.sample(min(_BATCH, 8 * n), chance.randrange(2**62))
            rows[:, list(self.problem.query.sensitive)] = 0
            flags = self.decider.decide(rows)[:, mask]
            regions += [self.with_mask(row, mask) for row in rows[flags]]
            if len(regions) >= n:
                return regions[:n]
            self.go_on()
        raise BudgetError(_TOO_HARD)

    def with_mask(self, cells: NDArray[np.integer], mask: int) -> NDArray[np.int64]:
        """Return the region with these cells and that mask."""
        region = np.array(cells, dtype=np.int64)
        region[list(self.problem.query.sensitive)] = self.problem.masks.cells(mask)
        return region


def _by_weight(weights: list[int], n: int, chance: random.Random) -> list[int]:
    """Return n indices drawn by weight, whole numbers of any size; none if all weights are 0."""
    ends = [*itertools.accumulate(weights)]
    if not ends or not ends[-1]:
        return []
    return [bisect.bisect_right(ends, chance.randrange(ends[-1])) for _ in range(n)]


class NearestSearch:
    """The search around one row: ever more features in other cells, until the nearest is proved."""

    def __init__(self, finder: RegionFinder, region: NDArray[np.int64]) -> None:
        self._finder = finder
        self._region = region
        self._problem = finder.problem
        sensitive = self._problem.query.sensitive
        self._sensitive = list(sensitive)
        self._best: tuple[tuple[int, int], NDArray[np.int64]] | None = None
        if not finder.decider.searches:
            masks = range(self._problem.n_masks)
            costs = [self._cost(sensitive, self._problem.masks.cells(mask)) for mask in masks]
            self._mask_costs = np.array(costs, dtype=np.int64)

    def run(self) -> tuple[NDArray[np.int64] | None, bool]:
        """Return the nearest sensitive region found, and whether it is proved to be the nearest."""
        if self._finder.decider.searches:
            return self._run_by_search()
        features = self._features()
        proved, n_moved = True, 0
        for n_moved in range(len(features) + 1):
            # A region with more features in other cells than the best cannot be nearer.
            if self._best is not None and n_moved > self._best[0][0]:
                break
            if n_moved > _MAX_MOVED or not self._look(features, n_moved):
                proved = False
                break
        if self._best is None and not proved:
            self._shrink()
        return (None if self._best is None else self._best[1]), proved

    def _run_by_search(self) -> tuple[NDArray[np.int64] | None, bool]:
        """Return the row itself, or a drawn region moved near it, if masks are too many to list."""
        if self._finder.is_sensitive(self._region[np.newaxis])[0]:
            return self._region, True
        shrunk = [self._shrunk(start) for start in self._finder.draw(_STARTS)]
        features = range(len(self._region))
        best = min(shrunk, key=lambda r: self._cost(features, r.tolist()), default=None)
        return best, False

    def _features(self) -> list[int]:
        """Return the non-sensitive features that can make a difference."""
        return sorted(self._problem.form.influences() - set(self._sensitive))

    def _look(self, features: list[int], n_moved: int) -> bool:
        """Try all regions with so many features in other cells; False if there are too many."""
        counts = self._problem.grid.cell_counts
        others = {f: [c for c in range(counts[f]) if c != self._region[f]] for f in features}
        sizes = [len(others[f]) for f in features]
        total = {0: 1, 1: sum(sizes), 2: sum(sizes) ** 2 // 2}[n_moved]
        if total * max(1, self._problem.n_masks // 64) > MAX_CANDIDATES:
            return False
        candidates = []
        for chosen in itertools.combinations(features, n_moved):
            for cells in itertools.product(*(others[f] for f in chosen)):
                candidate = self._region.copy()
                candidate[list(chosen)] = cells
                candidates.append(candidate)
        block = self._finder.decider.block
        for start in range(0, len(candidates), block):
            self._finder.go_on()
            self._take(np.stack(candidates[start : start + block]))
        return True

    def _take(self, regions: NDArray[np.int64]) -> None:
        """Keep the nearest sensitive one of these, if it is nearer than the best."""
        flags = self._finder.decider.decide(regions)
        for index in np.flatnonzero(flags.any(axis=1)):
            region = regions[index]
            changed = np.flatnonzero(region != self._region).tolist()
            moved = [f for f in changed if f not in self._sensitive]
            features, steps = self._cost(moved, region[moved].tolist())
            masks = np.flatnonzero(flags[index])
            costs = self._mask_costs[masks] + (features, steps)
            cost, mask = min(zip(map(tuple, costs.tolist()), masks.tolist(), strict=True))
            if self._best is None or cost < self._best[0]:
                self._best = (cost, self._finder.with_mask(region, mask))

    def _cost(self, features: Sequence[int], cells: Sequence[int]) -> tuple[int, int]:
        """Return how many features are in another cell than the row's, and their total distance."""
        axes = self._problem.grid.axes
        steps = [
            axes[f].distance(int(self._region[f]), c) for f, c in zip(features, cells, strict=True)
        ]
        return sum(step > 0 for step in steps), sum(steps)

    def _shrink(self) -> None:
        """Start from drawn regions and put features back into the row's cells one by one."""
        for start in self._finder.draw(_STARTS):
            self._take(self._shrunk(start)[np.newaxis])

    def _shrunk(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        region = start.copy()
        for feature in range(len(region)):
            kept = region[feature]
            region[feature] = self._region[feature]
            if (
                kept != region[feature]
                and not self._finder.decider.decide_regions(region[np.newaxis])[0]
            ):
                region[feature] = kept
        self._finder.go_on()
        return region
