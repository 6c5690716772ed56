"""Instances whose exact count is known: by enumeration, or because they were made that way.

A made instance asks n features at once: ``f0`` decides the sign, and each of the others adds 1 to
the jump when its cell is one of its last ``a`` out of ``k``. With a gap just below n times 2, a
region is sensitive iff all features agree: ``C = 2 * product of a``, of ``2 * product of k``
regions. So counts of any size and shares of any rarity are known exactly. (The smallest count but 0
is 2: a sensitive region's partner is sensitive, too.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from xcount import _core
from xcount.counters.engine import Draws, Tuning
from xcount.counters.sampling.count import Rest
from xcount.counters.sampling.draws import CoverDraws, RegionDraws, RowDraws
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.settings import Settings
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.examples import ensemble_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

HASTY_BUDGET = 60
"""Nodes that a search may look at which is likely to end early."""


@dataclass(frozen=True, eq=False)
class KnownCount:
    """A problem, its count, and how it is sampled.

    Attributes:
        name: what tables call it.
        problem: the question.
        count: its answer.
        n_refinements: how much of it a cover decides before sampling; None for no cover.
        budget: of the search for one sample, if samples are single regions; None for rows of masks.
    """

    name: str
    problem: Problem
    count: int
    n_refinements: int | None = None
    budget: int | None = None

    @property
    def share(self) -> float:
        return self.count / self.problem.n_regions

    def estimator(self, settings: Settings) -> Estimator:
        """Return an estimation that has not drawn anything yet."""
        problem = self.problem
        rest = Rest.everything(problem)
        if self.n_refinements is None:
            undecided = problem.n_combinations * problem.n_masks
            known_part = KnownPart(0, undecided, rest.known, problem.n_regions)
            draws: Draws = RowDraws(problem.space, rest.unresolved, None)
            if self.budget is not None:
                draws = RegionDraws(problem.form.corner_question, self.budget)
            return Estimator(draws, known_part, settings)
        rest = Rest(0, rest.unresolved, list(problem.pairs()), rest.known)
        # Small as they are, these would be enumerated to the end, with nothing left to sample.
        cover = CoverDraws(problem.space, rest.cover_tasks(), tuning=Tuning(max_paths=0))
        for _ in range(self.n_refinements):
            cover.refine(cover.work + 1, math.inf, 1, lambda: None)
        certain, undecided = cover.counts(problem.n_combinations)
        known_part = KnownPart(rest.solved + certain, undecided, rest.known, problem.n_regions)
        return Estimator(cover, known_part, settings)


def made_instance(cells: Sequence[tuple[int, int]], n_refinements: int | None) -> KnownCount:
    """Return the instance with features of k cells, a of which count, for each (a, k)."""
    jumps = [
        (0, 1.0, (i, float(k - a), 0.0, 1.0), (i, float(k - a), 0.0, -1.0)) if a < k else
        (0, 1.0, 1.0, -1.0)
        for i, (a, k) in enumerate(cells, start=1)
    ]  # fmt: skip
    guards = [
        (i, float(c), 0.0, 0.0) for i, (_, k) in enumerate(cells, start=1) for c in range(1, k)
    ]
    ensemble = ensemble_of(*jumps, *guards)
    gap = 2 * len(cells) - 1
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", gap, distance=1))
    count = 2 * math.prod(a for a, _ in cells)
    sizes = [f"1e{math.log10(n):.0f}" for n in (count, problem.n_regions)]
    name = f"made-{sizes[0]}-of-{sizes[1]}-{len(cells)}x{cells[0]}-{n_refinements}"
    return KnownCount(name, problem, count, n_refinements)


def made_instances() -> list[KnownCount]:
    """Return made instances with counts from 2 to 10^20 and shares from 10^-9 to 1."""
    return [
        made_instance([(1, 1)], None),
        made_instance([(1, 4)], None),
        made_instance([(9, 10)], None),
        made_instance([(1, 2), (1, 2)], None),
        made_instance([(3, 10), (5, 10)], None),
        made_instance([(10**3 - 1, 10**3)], None),
        made_instance([(60, 100)] * 3, None),
        made_instance([(80, 100)] * 10, None),
        made_instance([(95, 100)] * 10, None),
        made_instance([(90, 100)] * 10, 0),
        made_instance([(1, 3)] * 4, 1),
        made_instance([(1, 10)] * 9, 8),
        made_instance([(1, 100)] * 4, 3),
        made_instance([(10, 100)] * 9, 8),
        made_instance([(30, 100)] * 17, 12),
    ]


def random_instances(n: int) -> list[KnownCount]:
    """Return random instances with one to three sensitive features, counted by enumeration."""
    found: list[KnownCount] = []
    seed = 0
    while len(found) < n:
        seed += 1
        problem = _random_problem(seed)
        brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
        count = int(brute.count(0, brute.n_combinations, 1).sum())
        # Rarer shares need a cover, see the made instances.
        if count * 50 >= problem.n_regions:
            found.append(KnownCount(f"random-{seed}", problem, count))
    return found


def region_instances(n: int) -> list[KnownCount]:
    """Return random instances whose samples are single regions; searches of every third end early.

    Those leave samples open, so that their interval stays wide: the run is stopped, not finished.
    """
    several = [i for i in random_instances(2 * n) if len(i.problem.query.sensitive) > 1][:n]
    return [
        replace(i, name=f"{i.name}-regions", budget=HASTY_BUDGET if k % 3 == 2 else 10**6)
        for k, i in enumerate(several)
    ]


def _random_problem(seed: int) -> Problem:
    rng = np.random.default_rng([seed, 77])
    features = tuple(Feature(f"f{i}") for i in range(4))
    leaves = rng.normal(size=32)
    trees = tuple(_random_tree(rng, 3, leaves) for _ in range(int(rng.integers(2, 9))))
    ensemble = Ensemble(features, trees)
    size = 1 + seed % 3
    sensitive = [int(f) for f in rng.choice(4, size, replace=False)]
    distance = (1, 2, "any")[int(rng.integers(3))]
    gap = f"{rng.uniform(0.2, 3):.2f}"
    query = Query.of(ensemble, sensitive, gap, distance=distance)
    return Problem(ensemble, Grid.of(ensemble), query)


def _random_tree(rng: np.random.Generator, depth: int, leaves: np.ndarray) -> Tree:
    from xcount.model.examples import Nested, tree_of

    def grow(level: int) -> Nested:
        if level == 0:
            return float(rng.choice(leaves))
        feature, threshold = int(rng.integers(4)), float(rng.integers(1, 6))
        return (feature, threshold, grow(level - 1), grow(level - 1))

    return tree_of(grow(depth))


def zero_instance() -> KnownCount:
    """Return an instance without any sensitive region, although the sensitive feature is tested."""
    ensemble = ensemble_of(
        (0, 1.0, (1, 1.0, 0.5, 0.0), 0.0), (0, 1.0, (1, 1.0, 0.0, 0.5), 0.0), n_features=3
    )
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", "0.75", distance=1))
    return KnownCount("zero", problem, 0)


def all_instances() -> list[KnownCount]:
    """Return all of them."""
    return [zero_instance(), *made_instances(), *random_instances(26), *region_instances(12)]
