"""Engines do the work of a count: solve subproblems, draw samples, visit blocks of regions.

Counters do not know where an engine does the work. :data:`LOCAL` does it on the threads of this
process; other engines may distribute it, as long as the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.form import PairSpace
from xcount.problem.subproblem import Pair, Subproblem

Weights = Sequence[NDArray[np.float64]]
"""For each feature, the weights of its cells."""

Solved = tuple[str, Any, Any, Any, int]
"""Status, count, total, size of the part, number of steps; weights instead of counts if given."""

Outcomes = tuple[NDArray[Any], ...]
"""A histogram of outcomes and the hits of the samples; see :meth:`Draws.draw`."""


class Tuning(NamedTuple):
    """How the exact counter works; its answers do not depend on it."""

    max_paths: int = 16_384
    """Combinations of leaves up to which a state is enumerated."""
    memo_bytes: int = 2**21
    """Size at which a memo is emptied, unless it is used much."""


class Solver(Protocol):
    """Solves subproblems in the background: the native counter, or others along with it."""

    @property
    def n_done(self) -> int: ...
    def live(
        self,
        pairs: Sequence[Pair],
        n_threads: int,
        seconds: float,
        on_pause: Callable[[], None],
    ) -> list[int]: ...
    def start(
        self,
        tasks: Sequence[Subproblem],
        n_masks: int,
        max_steps: int,
        max_bytes: int,
        n_threads: int,
        max_paths: int = ...,
        memo_bytes: int = ...,
    ) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    def cancel(self) -> None: ...
    def results(self) -> list[Solved]: ...


class Draws(Protocol):
    """A source of outcomes, drawn in numbered batches. It can be sent to another process."""

    @property
    def levels(self) -> int:
        """Outcomes are multiples of 1 / levels."""
        ...

    @property
    def n_trees(self) -> float: ...

    @property
    def seconds_per_sample(self) -> float:
        """Rough, and the same everywhere: it only weighs one kind of work against another."""
        ...

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float,
        on_pause: Callable[[], None],
    ) -> Outcomes:
        """Return a histogram of outcomes and the hits of the samples.

        If time runs out before all are drawn, they cover only the first samples, or are empty. If
        samples are left undecided, both are returned a second time with these counted as hits.
        """
        ...


class Batches(Protocol):
    """Batches that others draw ahead of their use, taken in the order of their numbers."""

    def take(self, seconds: float, seconds_left: float) -> tuple[int, Outcomes] | None:
        """Return the next batches and their number; None if they do not arrive in time."""
        ...

    def close(self) -> None:
        """Discard batches drawn ahead."""
        ...


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit of all regions, block by block. It can be sent; native sums are made on arrival."""

    question: CornerQuestion
    weights: Weights | None = None
    memory_bytes: int | None = None


BlockCounts = tuple[NDArray[Any], NDArray[Any] | None, int]
"""Counts by threshold and mask; shares, if weighed, in limbs; the number of blocks."""


class Blocks(Protocol):
    """Blocks that others count, taken in the order of their numbers."""

    def take(self, seconds: float) -> BlockCounts | None:
        """Return the counts of the next blocks; None if they do not arrive in time."""
        ...

    def close(self) -> None:
        """Cancel the blocks under way."""
        ...


class Engine(Protocol):
    """Does the work of counts."""

    def solver(self, space: PairSpace, memory_bytes: int | None, weights: Weights | None) -> Solver:
        """Return a solver of subproblems about pairs of these masks."""
        ...

    def batches(
        self, draws: Draws, key: tuple[int, int], span: tuple[int, int, int], n_threads: int
    ) -> Batches | None:
        """Return the batches that others draw from now on; None if the caller should draw.

        Args:
            draws: the source of outcomes.
            key: seed and stream.
            span: number of the next batch, that of the next look, and batches that all threads
                draw in a second.
            n_threads: of each unit of work.
        """
        ...

    def blocks(
        self, visit: Visit, sums: _core.CornerSums, span: tuple[int, int, float], n_threads: int
    ) -> Blocks | None:
        """Return the blocks that others count from now on; None if the caller should count.

        Args:
            visit: the visit, to be sent.
            sums: its native sums in this process.
            span: number of the next block, that of the last one plus 1, and blocks that all
                threads count in a second.
            n_threads: of each unit of work.
        """
        ...


class LocalEngine:
    """Does all work on the threads of this process."""

    def solver(self, space: PairSpace, memory_bytes: int | None, weights: Weights | None) -> Solver:
        return space.counter(weights)

    def batches(
        self, draws: Draws, key: tuple[int, int], span: tuple[int, int, int], n_threads: int
    ) -> None:
        return None

    def blocks(
        self, visit: Visit, sums: _core.CornerSums, span: tuple[int, int, float], n_threads: int
    ) -> None:
        return None


LOCAL = LocalEngine()
