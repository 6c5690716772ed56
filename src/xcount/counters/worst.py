"""The largest change that a change of the sensitive features can make.

A native best-first search over boxes of pairs of regions (``cpp/include/xcount/worst``) keeps
``low <= largest change <= high`` at every moment, and ends when the two meet. Sums of leaves are
integers; a probability is a float, known up to :data:`TOLERANCE`.

A question that is a sum of parts is searched part by part: a later part only has to show that it
holds nothing larger than what was found before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, QueryError
from xcount.problem.integers import to_limbs
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.parts import Part, parts_of
from xcount.problem.problem import Problem
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Link, Sigmoid, Votes

TOLERANCE = 1e-12
"""A probability's change that is larger by less than this is not looked for."""
_MANY_BOXES = 2**62
_ONE_TURN = 1
_SHORT_SEARCH = 4096
"""Boxes after which a proof that no change exceeds a gap is given up."""
_LEAST_MASKS, _MOST_TREES = 8, 1000
"""Questions with fewer masks, or more trees, are not tried that way."""

Run = tuple[int, int]
"""The first and the last cell of a run of cells."""
RegionPair = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The cells of a region, and of the region that it changes to."""


@dataclass(frozen=True, eq=False)
class LargestChange:
    """The largest change, or bounds of it.

    Attributes:
        low: the change of ``pair``; 0 if there is none.
        high: no change is larger.
        pair: the two regions with the largest change found; None if nothing changes.
        stop_reason: why the search ended.
        n_boxes: how many boxes of pairs were evaluated.
    """

    low: Fraction
    high: Fraction
    pair: RegionPair | None
    stop_reason: StopReason
    n_boxes: int

    @property
    def exact(self) -> bool:
        return self.low == self.high


def largest_change(problem: Problem, settings: Settings) -> LargestChange:
    """Search for the largest change; the gap of the question does not matter.

    Args:
        problem: a question about a gap in margin or in probability.
        settings: limits, and who listens to the progress.
    """
    parts = parts_of(problem) if problem.is_split else ()
    run = _Run(settings)
    if not parts:
        run.search(_PairQuestion(problem))
    else:
        live = [part for part in parts if part.n_masks > 1]
        for number, part in enumerate(live):
            own = part.apart()
            run.search(_PairQuestion(own.problem, own), is_last=number + 1 == len(live))
            if run.stop_reason is not StopReason.COMPLETE:
                if number + 1 < len(live):
                    run.add_unsearched(_PairQuestion(problem))
                break
    return run.result()


def no_change_exceeds_gap(problem: Problem, settings: Settings) -> bool:
    """Tell whether a short search proves that no change is larger than the gap.

    It ends as soon as a pair is found that changes by more, which climbs do at once unless such
    pairs are rare. Only questions with many pairs of masks are tried: the others are counted in
    less time.
    """
    change = problem.query.change
    if not isinstance(change, Gap) or problem.distance is not None:
        return False
    if problem.n_masks < _LEAST_MASKS:
        return False
    question = _PairQuestion(problem)
    if len(question.trees.trees) > _MOST_TREES:
        return False
    try:
        native = question.native(change.gap, settings.seed)
    except BudgetError:  # the trees are too large for it
        return False

    def report() -> None:
        settings.report(Progress(0.0, 0, problem.n_regions, "looking for a change beyond the gap"))

    native.advance(
        _SHORT_SEARCH,
        settings.n_threads,
        settings.free_bytes(),
        until_found=True,
        seconds=settings.search_seconds() / 4,
        on_pause=report,
    )
    return native.is_done and native.pair is None


class _PairQuestion:
    """One part of a question, in the form that the native search takes."""

    def __init__(self, problem: Problem, part: Part | None = None) -> None:
        self.problem, self.part = problem, part
        change = problem.query.change
        assert isinstance(change, Gap | ProbabilityGap)
        self.change = change
        self.link: Link = change.link if isinstance(change, ProbabilityGap) else Votes()
        if not isinstance(self.link, Votes | Sigmoid):
            raise QueryError(
                "the largest change of a probability is not found for models with several "
                "classes; leave out --probability for the margin of one class"
            )
        self.trees = LaidTrees.of_output(
            problem.ensemble, problem.grid, change.output, problem.query.precision
        )

    @property
    def is_margin(self) -> bool:
        return isinstance(self.link, Votes)

    def native(self, least: Fraction, seed: int) -> _core.LargestChange:
        """Return a search for changes larger than ``least``."""
        floor = math.floor(least * self.trees.scale) if self.is_margin else 0
        # A floor beyond every difference would not fit the width of the sums.
        floor = min(floor, 2 * self.trees.bound + 1)
        return _core.LargestChange(
            self.trees.forest,
            list(self.problem.query.sensitive),
            self.problem.distance,
            self._roots(),
            to_limbs([floor], self.trees.n_limbs)[0],
            None if self.is_margin else self._sigmoid(float(least)),
            seed,
        )

    def _sigmoid(self, least: float) -> tuple[tuple[float, int], float, float]:
        base = Fraction(self.problem.ensemble.base[self.change.output])
        in_exponents = float(base * self.link.scaled_unit(Fraction(1)))
        return self.link.unit_as_float(self.trees.scale), in_exponents, least

    def _roots(self) -> list[list[Run]]:
        """Return the boxes of masks to search: where the lower sum is, where the higher one is."""
        counts = [self.problem.grid.axes[f].n_cells for f in self.problem.query.sensitive]
        everywhere: list[Run] = [(0, n - 1) for n in counts]
        starts = self.problem.starts
        if starts is None:
            return [_in_turn(everywhere, everywhere)]
        found = []
        for box in _boxes(starts, counts):
            if self.change.direction != "down":
                found.append(_in_turn(box, everywhere))
            if self.change.direction != "up":
                found.append(_in_turn(everywhere, box))
        return found

    def size(self, value: float) -> Fraction:
        """Return what a number of the native search stands for."""
        return Fraction(value) / self.trees.scale if self.is_margin else Fraction(value)

    def regions(self, lower: Sequence[int], higher: Sequence[int]) -> RegionPair:
        """Return a pair in the cells of the whole question, the start of the change first."""
        is_down = self.change.direction == "down"
        if self.problem.starts is not None and self.change.direction == "any":
            is_down = self._mask(lower) not in self.problem.starts
        start, target = (higher, lower) if is_down else (lower, higher)
        reached = self._whole(target)
        if self.part is not None:
            for feature, cell in self.part.moved.items():
                reached[feature] = cell
        return self._whole(start), reached

    def _mask(self, region: Sequence[int]) -> int:
        return self.problem.mask_number([region[f] for f in self.problem.query.sensitive])

    def _whole(self, region: Sequence[int]) -> NDArray[np.int64]:
        cells = np.array(region, dtype=np.int64)
        return cells if self.part is None else self.part.to_whole(cells, self._mask(region))


class _Run:
    """A search of one part after the other, with the best pair so far."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stop_reason = StopReason.COMPLETE
        self._low = self._high = Fraction(0)
        self._pair: RegionPair | None = None
        self._n_boxes = 0

    def search(self, question: _PairQuestion, is_last: bool = True) -> None:
        """Search one part for a larger change."""
        settings = self.settings
        native = question.native(self._low, settings.seed)

        def report() -> None:
            low, high = (max(self._low, question.size(v)) for v in (native.low, native.high))
            share = float(low / high) if high else 1.0
            message = f"largest change {float(low):.6g} to {float(high):.6g}"
            settings.report(Progress(share if is_last else 0.0, 0, 0, message))

        try:
            native.advance(
                _MANY_BOXES,
                settings.n_threads,
                settings.free_bytes(),
                seconds=settings.search_seconds(),
                on_pause=report,
            )
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
        self._add(question, native)
        if not native.is_done and self.stop_reason is StopReason.COMPLETE:
            self.stop_reason = StopReason.MEMORY if native.is_full else StopReason.TIMEOUT

    def add_unsearched(self, whole: _PairQuestion) -> None:
        """Raise the upper bound to one that holds for the parts that were not searched."""
        if whole.problem.grid.allowed.along:  # in parts, more than sensitive features change
            most = 2 * whole.trees.bound if whole.is_margin else 1
            self._high = max(self._high, whole.size(most))
            return
        native = whole.native(Fraction(0), self.settings.seed)
        native.advance(_ONE_TURN, 1, self.settings.free_bytes())
        self._high = max(self._high, whole.size(native.high))

    def _add(self, question: _PairQuestion, native: _core.LargestChange) -> None:
        self._n_boxes += native.n_boxes
        if native.pair is not None:
            self._low = question.size(native.low)
            self._pair = question.regions(*native.pair)
        high = self._low if native.is_done else max(self._low, question.size(native.high))
        self._high = max(self._high, high)

    def result(self) -> LargestChange:
        return LargestChange(self._low, self._high, self._pair, self.stop_reason, self._n_boxes)


def _in_turn(lower: Sequence[Run], higher: Sequence[Run]) -> list[Run]:
    return list(itertools.chain.from_iterable(zip(lower, higher, strict=True)))


def _boxes(masks: Sequence[int], counts: Sequence[int]) -> Iterator[list[Run]]:
    """Yield boxes that hold these masks, each once: runs along the last feature."""
    cells = np.stack(np.unravel_index(np.array(sorted(masks)), counts), axis=1).tolist()
    start = 0
    for i in range(1, len(cells) + 1):
        goes_on = (
            i < len(cells)
            and cells[i][:-1] == cells[i - 1][:-1]
            and cells[i][-1] == cells[i - 1][-1] + 1
        )
        if not goes_on:
            yield [*((c, c) for c in cells[start][:-1]), (cells[start][-1], cells[i - 1][-1])]
            start = i
