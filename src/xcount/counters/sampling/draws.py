"""Kinds of draws. Each can be sent to another process, which draws the same samples.

All of them are :class:`xcount.counters.engine.Draws`.

- :class:`RowDraws`: a sample is a combination of non-sensitive cells, and decides all masks.
- :class:`RegionDraws`: a sample is a single region, if masks are too many for a row.
- :class:`CoverDraws`: a sample is a combination of cells in an open state of a cover.
- :class:`PairCoverDraws`: a sample is a row drawn from boxes that hold all sensitive regions.
- :class:`CellDraws`: the same as rows, for every kind of change, by evaluation in arrays.

Draws under the weights of a measure are in :mod:`xcount.measures.draws`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters import costs
from xcount.counters.cover import Refinement, counts, native_cover
from xcount.counters.decisions import RegionDecider
from xcount.counters.engine import Outcomes, Tuning
from xcount.counters.region_search import region_sampler
from xcount.counters.settings import DEFAULT_MEMORY_BYTES
from xcount.errors import ClusterError
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.form import PairSpace, refuse_many_masks
from xcount.problem.integers import to_limbs
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem

BATCH: int = _core.Sampler.batch
"""Samples per batch, the unit of random numbers."""

LEVELS = 1024
"""Outcomes are rounded at random to multiples of 1 / LEVELS, which keeps their mean."""

_TRIAL_STREAM = 2**63
"""The stream of random numbers of samples that choose a budget."""
_DECIDED_ENOUGH, _DECIDES_MORE = 0.1, 0.5
"""A larger budget is tried if more than the first fraction of the masks is left open, and chosen if
it leaves less than the second fraction of those open."""


class NativeDraws:
    """Draws by a native sampler, which is made when first needed."""

    @cached_property
    def _native(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, which makes the native sampler anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    @property
    def levels(self) -> int:
        levels: int = self._native.levels
        return levels

    @property
    def n_trees(self) -> float:
        return float(self._native.n_trees)

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
        *more: Any,
    ) -> Outcomes:
        """Return the histogram of the outcomes of n batches, and the hits of their samples.

        If time runs out, they cover only the first samples, or none.
        """
        key = (seed, stream, first)
        outcomes: Outcomes = self._native.draw(*key, n, n_threads, seconds, on_pause, *more)
        return outcomes


class RowDraws(NativeDraws):
    """Combinations of non-sensitive cells, each of which decides all masks.

    Args:
        space: the masks.
        masks: those to decide.
        pairs: the pairs of masks that may differ and touch one of them; None for all neighbours.
    """

    def __init__(
        self, space: PairSpace, masks: Sequence[int], pairs: Sequence[Pair] | None
    ) -> None:
        self._space = space
        self._masks = np.array(masks, dtype=np.int64)
        self._pairs: NDArray[np.int64] | None = None
        # With many pairs, windows and extremes decide all masks faster than pair by pair.
        if pairs is not None and len(pairs) <= 4 * len(masks):
            self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def _native(self) -> _core.Sampler:
        return self._space.sampler(self._masks, self._pairs)

    @property
    def seconds_per_sample(self) -> float:
        trees = self.n_trees * costs.SECONDS_PER_TREE
        masks = self._native.n_masks * costs.SECONDS_PER_MASK
        return costs.SECONDS_PER_SAMPLE + trees + masks


class RegionDraws(NativeDraws):
    """Single regions, each decided among the masks near it: no list of masks is made.

    Args:
        question: the question about regions.
        budget: how many nodes the search for one sample may look at before it is left open.
    """

    def __init__(self, question: CornerQuestion, budget: int | None = None) -> None:
        self._question, self._budget = question, budget
        self._nodes_per_sample = 0.0

    @cached_property
    def _native(self) -> _core.RegionSampler:
        return region_sampler(self._question, self._budget)

    def tune(
        self,
        seed: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
        budgets: Sequence[int] = costs.SEARCH_BUDGETS,
    ) -> bool:
        """Choose the budget by a few samples: a larger one if it decides far more of them.

        If time runs out before half of the samples are decided, the choice so far stays. Return
        whether there was time for all samples.
        """
        if self._question not in _TUNED:
            _TUNED[self._question] = self._tuned(budgets, seed, n_threads, seconds, on_pause)
        self._budget, self._nodes_per_sample, is_done = _TUNED[self._question]
        self._native.budget = self._budget
        return is_done

    def _tuned(
        self,
        budgets: Sequence[int],
        seed: int,
        n_threads: int,
        seconds: float,
        on_pause: Callable[[], None] | None,
    ) -> tuple[int, float, bool]:
        """Return a budget, the nodes that a search looks at with it, and if all were tried."""
        chosen, nodes, least, is_done = budgets[0], 0.0, math.inf, True
        n_tried = costs.N_TRIED_SAMPLES
        end = time.monotonic() + seconds
        for budget in budgets:
            left = max(0.0, end - time.monotonic())
            key = (budget, seed, _TRIAL_STREAM)
            n, n_open, n_nodes = self._native.try_budget(*key, n_tried, n_threads, left, on_pause)
            is_done &= n == n_tried
            if 2 * n < n_tried:
                break
            part_open = n_open / (n * self.levels)
            if part_open < _DECIDES_MORE * least:
                chosen, nodes, least = budget, n_nodes / n, part_open
            if part_open <= _DECIDED_ENOUGH:
                break
        return chosen, nodes, is_done

    def decide(self, regions: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return for each region, row after row, whether it is sensitive, not, or open."""
        return self._native.decide(regions)

    @property
    def seconds_per_sample(self) -> float:
        return (
            searched_sample_seconds(self.n_trees) + self._nodes_per_sample * costs.SECONDS_PER_NODE
        )


_TUNED: WeakKeyDictionary[CornerQuestion, tuple[int, float, bool]] = WeakKeyDictionary()
"""The budget and nodes per search chosen for questions that are still in use."""


class CoverDraws(NativeDraws):
    """Samples from the open states of a cover.

    A sample is an open state drawn by its volume, then a combination of the cells in its box.
    Another process makes the same cover again by the same slices of refinement.

    Args:
        space: the masks.
        tasks: the subproblems to cover, each with the number of times that it counts.
        max_bytes: the most memory of the cover.
        tuning: how small states must be to be enumerated.
    """

    seconds_per_work = costs.SECONDS_PER_COVER_WORK
    rounding = Fraction(0)
    """The relative rounding of the open regions."""

    def __init__(
        self,
        space: PairSpace,
        tasks: Sequence[tuple[Subproblem, int]],
        max_bytes: int = DEFAULT_MEMORY_BYTES // 2,
        tuning: Tuning | None = None,
    ) -> None:
        self._space = space
        self._tasks = tasks
        self._max_bytes = max_bytes
        self._refinement = Refinement(tuning)

    @cached_property
    def _native(self) -> _core.Cover:
        cover = native_cover(self._space, self._tasks)
        self._refinement.repeat(cover)
        cover.freeze()
        if cover.work != self._refinement.work:
            raise ClusterError(
                f"a worker's cover took {cover.work} steps instead of {self._refinement.work}: its "
                "build of xcount differs; install the same one everywhere"
            )
        return cover

    @property
    def seconds_per_sample(self) -> float:
        return self._native.seconds_per_sample

    @property
    def n_states(self) -> int:
        """The number of open states."""
        return self._native.n_open

    @property
    def n_bytes(self) -> int:
        return self._native.n_bytes

    @property
    def work(self) -> int:
        return self._native.work

    @property
    def is_decided(self) -> bool:
        """Whether nothing is left open."""
        return self._native.n_open == 0

    @property
    def is_full(self) -> bool:
        """Whether memory ended the last refinement."""
        return self._native.is_full

    def refine(
        self, target: int, deadline: float, n_threads: int, on_pause: Callable[[], None]
    ) -> None:
        """Refine in slices, until so much work is done, nothing more fits, or time runs out."""
        cover = self._native
        self._refinement.run(cover, target, self._max_bytes, deadline, n_threads, on_pause)
        cover.freeze()

    def counts(self, n_combinations: int) -> tuple[int, int]:
        """Return how many regions the cover proves to be sensitive, and how many are open."""
        known = counts(self._native, n_combinations)
        times = [n_times for _, n_times in self._tasks]
        certain = sum(n * solved for n, (solved, _) in zip(times, known, strict=True))
        undecided = sum(n * unknown for n, (_, unknown) in zip(times, known, strict=True))
        return certain, undecided


class PairCoverDraws(NativeDraws):
    """Rows from the boxes of a search for changes beyond the gap.

    The boxes hold all sensitive regions, and may overlap: a combination of cells is drawn with a
    chance proportional to the masks of all boxes around it, and its outcome is the part of these
    masks that is sensitive (``cpp/include/xcount/sampling/overlapping_boxes.hpp``). It stays in
    this process: to make the boxes takes longer than to draw from them.

    Args:
        space: the masks.
        rows: decide the masks of a combination.
        max_bytes: the most memory of the boxes.
    """

    seconds_per_work = costs.SECONDS_PER_PAIR_WORK
    rounding = Fraction(1, 2**42)  # far more than that of a sum of floats
    levels: int = _core.Sampler.box_levels

    def __init__(self, space: PairSpace, rows: RowDraws, max_bytes: int) -> None:
        self._rows, self._max_bytes = rows, max_bytes
        # A threshold beyond every difference would not fit the width of the sums.
        threshold = min(space.threshold, 2 * space.trees.bound + 1)
        self._cover = _core.PairCover(
            space.forest,
            list(space.sensitive),
            space.distance,
            to_limbs([threshold], space.trees.n_limbs)[0],
            space.direction,
        )
        self._boxes = self._cover.boxes()

    @property
    def n_trees(self) -> float:
        return self._rows.n_trees

    @property
    def seconds_per_sample(self) -> float:
        boxes = self.n_states * costs.SECONDS_PER_BOX + costs.SECONDS_PER_BOX_DRAW
        return self._rows.seconds_per_sample + boxes

    @property
    def n_states(self) -> int:
        """The number of boxes."""
        return self._boxes.n_boxes

    @property
    def n_bytes(self) -> int:
        return self._cover.n_bytes + self._boxes.n_bytes

    @property
    def work(self) -> int:
        return self._cover.work

    @property
    def is_decided(self) -> bool:
        """Whether no change is larger than the gap."""
        return self._boxes.n_boxes == 0

    @property
    def is_full(self) -> bool:
        """Whether nothing is left to refine, or no memory to do it."""
        return self._cover.is_full or self._cover.n_open == 0

    def refine(
        self, target: int, deadline: float, n_threads: int, on_pause: Callable[[], None]
    ) -> None:
        """Refine until so much work is done, nothing more fits, or time runs out."""
        seconds = max(0.0, deadline - time.monotonic())
        self._cover.refine(target, n_threads, self._max_bytes // 2, seconds, on_pause)
        self._boxes = self._cover.boxes()

    def counts(self, n_combinations: int) -> tuple[int, int]:
        """Return 0, and how many regions the boxes hold, each as often as boxes hold it."""
        return 0, round(Fraction(self._boxes.total) * n_combinations)

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
    ) -> Outcomes:
        """Return the histogram of the outcomes of n batches, and the hits of their samples."""
        boxes = self._boxes
        return self._rows.draw(seed, stream, first, n, n_threads, seconds, on_pause, boxes)


def searched_sample_seconds(n_trees: float) -> float:
    """Estimate the cost of a single region decided by a search, apart from the search itself."""
    return costs.SECONDS_PER_SAMPLE + n_trees * costs.SECONDS_PER_REGION_TREE


def uniform_cells(
    random: np.random.Generator, counts: Sequence[int], features: Sequence[int], n: int
) -> NDArray[np.int32]:
    """Draw n regions with every cell of the given features equally likely; other cells are 0."""
    regions = np.zeros((n, len(counts)), dtype=np.int32)
    if features:
        sizes = np.array([counts[f] for f in features], dtype=np.int64)
        regions[:, features] = random.integers(0, sizes, (n, len(sizes)))
    return regions


class CellDraws:
    """Combinations of non-sensitive cells, each of which decides all masks, by evaluation.

    The outcome is the share of the masks that are sensitive there.

    Args:
        problem: the question.
        masks: the masks that count.
    """

    def __init__(self, problem: Problem, masks: Sequence[int]) -> None:
        refuse_many_masks(problem.n_masks, costs.MAX_FLAGS)
        self._problem, self._decider = problem, RegionDecider(problem)
        self._counts, sensitive = problem.grid.cell_counts, problem.query.sensitive
        self._features = [f for f, n in enumerate(self._counts) if n > 1 and f not in sensitive]
        self._masks = np.array(masks, dtype=np.int64)
        self.levels = min(LEVELS, len(masks))

    @property
    def n_trees(self) -> float:
        return float(self._problem.form.n_trees)

    def regions(self, random: np.random.Generator, n: int = BATCH) -> NDArray[np.int32]:
        """Draw cells; those of the sensitive features are 0."""
        return self._drawn(random, n)[0]

    def _drawn(
        self, random: np.random.Generator, n: int = BATCH
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw cells, and the number of the source that each sample is drawn from."""
        regions = uniform_cells(random, self._counts, self._features, n)
        return regions, np.zeros(n, dtype=np.int64)

    @property
    def seconds_per_sample(self) -> float:
        flags = self._decider.problem.form.flags_per_row * costs.SECONDS_PER_FLAG
        return costs.SECONDS_PER_SAMPLE + self.n_trees * costs.SECONDS_PER_TREE + flags

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Return the histogram of the outcomes of n batches, and the hits of their samples.

        Both are empty if that takes longer than ``seconds``; a single step is not cut short.
        """
        end = time.monotonic() + seconds
        histogram = np.zeros(self.levels + 1, dtype=np.uint64)
        hits = []
        step = max(1, self._decider.block // BATCH)
        for start in range(first, first + n, step):
            if time.monotonic() > end:
                return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint8)
            if on_pause is not None and start > first:
                on_pause()
            batches = range(start, min(start + step, first + n))
            generators = [np.random.default_rng([seed, stream, batch]) for batch in batches]
            drawn = [self._drawn(generator) for generator in generators]
            regions, sources = (np.concatenate(each) for each in zip(*drawn, strict=True))
            outcomes = self._outcomes(regions, sources, end)
            if len(outcomes) < len(regions):
                return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint8)
            chances = np.concatenate([g.random((BATCH, 2)) for g in generators])
            scaled = outcomes * self.levels
            whole = np.floor(scaled + 1e-9)
            levels = np.minimum(whole + (chances[:, 0] < scaled - whole), self.levels)
            histogram += np.bincount(levels.astype(np.int64), minlength=self.levels + 1).astype(
                np.uint64
            )
            hits.append((chances[:, 1] < outcomes).astype(np.uint8))
        return histogram, np.concatenate(hits)

    def single_regions(
        self, random: np.random.Generator, n: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw regions by their weight: cells, those of the sensitive features 0, and masks."""
        regions = self.regions(random, n)
        return regions, self._masks[random.integers(0, len(self._masks), n)]

    def _outcomes(
        self, regions: NDArray[np.int32], sources: NDArray[np.int64], end: float = math.inf
    ) -> NDArray[np.float64]:
        """Return the outcomes of samples; fewer if time runs out."""
        block = self._decider.block
        found = []
        for first in range(0, len(regions), block):
            if first and time.monotonic() > end:
                break
            rows = slice(first, first + block)
            found.append(self._outcomes_of_block(regions[rows], sources[rows]))
        return np.concatenate(found) if found else np.empty(0)

    def _outcomes_of_block(
        self, regions: NDArray[np.int32], sources: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        flags = self._decider.decide(regions)
        if len(self._masks) < flags.shape[1]:
            flags = flags[:, self._masks]
        counts: NDArray[np.float64] = flags.sum(axis=1) / len(self._masks)
        return counts
