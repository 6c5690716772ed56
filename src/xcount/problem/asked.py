"""One query on one ensemble and grid: the regions, the masks and their neighbours.

A *mask* fixes one cell per sensitive feature; a region is a mask and a combination x of the cells
of the other features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from xcount import _core
from xcount.model.ensemble import Ensemble
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.subproblem import Pair
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.rules import Box
from xcount.support.workspace import Workspace


@dataclass(frozen=True, eq=False)
class Asked:
    """A query, its ensemble and its grid.

    Attributes:
        starts: the masks whose regions are counted; None for all. The others are only there to
            change to. Parts of a question have them (:mod:`xcount.problem.parts`), and questions
            about two models, which start from the first.
    """

    ensemble: Ensemble
    grid: Grid
    query: Query
    starts: tuple[int, ...] | None = None
    workspace: Workspace = field(default_factory=Workspace, init=False, repr=False)
    """Values derived from the question and shared by its users, such as its parts."""

    def __post_init__(self) -> None:
        """Reject a question about features that the domain does not let change."""
        self.grid.check_can_change(self.query.sensitive, self.ensemble)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to send to another process, without cached values."""
        return {
            "ensemble": self.ensemble,
            "grid": self.grid,
            "query": self.query,
            "starts": self.starts,
            "workspace": Workspace(),
        }

    @cached_property
    def n_regions(self) -> int:
        """The number of regions that are counted."""
        if self.starts is None:
            return self.grid.n_regions
        if not self.is_split:
            return self.n_combinations * len(self.starts)
        boxes = self.grid.boxes(self.query.sensitive)
        counts, sensitive = self.grid.cell_counts, self.query.sensitive
        return sum(self.of_starts(box).n_regions(counts, sensitive) for box in boxes)

    def of_starts(self, box: Box) -> Box:
        """Return a box with only the masks to start from that are counted."""
        if self.starts is None:
            return box
        counted = np.zeros([self.grid.axes[f].n_cells for f in self.query.sensitive], np.bool_)
        counted.ravel()[list(self.starts)] = True
        belonging = box.masks if box.starts is None else box.starts
        return replace(box, starts=counted if belonging is None else counted & belonging)

    @property
    def counted_masks(self) -> Sequence[int]:
        """The masks whose regions are counted."""
        return range(self.n_masks) if self.starts is None else self.starts

    @cached_property
    def is_split(self) -> bool:
        """Whether the question is a sum of parts."""
        return self.grid.is_split(self.query.sensitive)

    @cached_property
    def n_masks(self) -> int:
        return math.prod(self.grid.axes[f].n_cells for f in self.query.sensitive)

    @cached_property
    def n_combinations(self) -> int:
        """The number of combinations of the non-sensitive cells, rules aside."""
        return math.prod(self.grid.cell_counts) // self.n_masks

    @cached_property
    def masks(self) -> _core.MaskSpace:
        """The masks and their neighbours, in native form."""
        axes = LaidTrees.axes_of(self.grid).forest
        return _core.MaskSpace(axes, list(self.query.sensitive), self.distance)

    @cached_property
    def distance(self) -> int | None:
        """The distance asked about; None if no two masks are further apart."""
        asked = self.query.distance
        max_distance = sum(self.grid.axes[f].max_distance for f in self.query.sensitive)
        return None if asked is None or asked >= max_distance else asked

    @cached_property
    def n_pairs_about(self) -> int:
        """An upper estimate of the number of pairs of masks, without listing them."""
        n_masks, distance = self.n_masks, self.distance
        if distance is None:
            return n_masks * (n_masks - 1) // 2
        # Steps of 1..d along the axes, in either direction: lattice points of a ball, axis by axis.
        ball = [1] + [0] * distance
        for n_cells in (self.grid.axes[f].n_cells for f in self.query.sensitive):
            steps = [1] + [2 if step < n_cells else 0 for step in range(1, distance + 1)]
            ball = [sum(ball[i] * steps[r - i] for i in range(r + 1)) for r in range(distance + 1)]
        return n_masks * min(sum(ball) - 1, n_masks - 1) // 2

    def mask_number(self, mask_cells: Sequence[int]) -> int:
        """Return the number of a mask."""
        number = 0
        for feature, cell in zip(self.query.sensitive, mask_cells, strict=True):
            number = number * self.grid.axes[feature].n_cells + cell
        return number

    def describe(self, mask_cells: Sequence[int]) -> str:
        """Return a mask in words, e.g. ``30.5 <= age < 42, sex in {1}``."""
        axes = (self.grid.axes[f] for f in self.query.sensitive)
        return ", ".join(a.describe(c) for a, c in zip(axes, mask_cells, strict=True))

    def around(self, mask: int) -> tuple[int, ...]:
        """Return the mask and its neighbours, ascending."""
        if self.distance is None:
            return self._everyone
        return tuple(sorted([mask, *self.masks.neighbours(mask)]))

    @cached_property
    def _everyone(self) -> tuple[int, ...]:
        return tuple(range(self.n_masks))

    def pairs(self) -> Iterator[Pair]:
        """Yield the unordered pairs of masks within the distance."""
        return self.pairs_of(range(self.n_masks))

    def pairs_of(self, masks: Sequence[int]) -> Iterator[Pair]:
        """Yield the unordered pairs of neighbours that have one of these masks, each once."""
        wanted = masks if isinstance(masks, range) else set(masks)
        for mask in range(self.n_masks):
            for other in self.masks.neighbours(mask):
                if other > mask and (mask in wanted or other in wanted):
                    yield mask, other
