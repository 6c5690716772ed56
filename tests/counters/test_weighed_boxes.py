"""Measures in a domain with rules: drawn from all boxes at once, with one interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracle import all_regions
from test_domains import random_rows, weighed_problem

from xcount.counters.decisions import RegionDecider
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.measures import exact_shares
from xcount.measures.draws import MixtureDraws
from xcount.measures.fitting import fit_population
from xcount.measures.measured import Measured
from xcount.measures.mixture import Mixture
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.problem.parts import parts_of
from xcount.problem.problem import Problem
from xcount.question.share import Limit


def weighed_problems(n_seeds: int) -> Iterator[tuple[Problem, Weighing, float]]:
    """Yield questions in domains with rules, a population, and what of it is sensitive."""
    for seed in range(n_seeds):
        problem = weighed_problem(seed, n_rules=1 + seed % 3)
        if problem is None:
            continue
        population = fit_population(problem.grid, random_rows(problem.ensemble, seed))
        weighing = Weighing(("population",), population=population)
        regions = all_regions(problem)
        regions = regions[problem.grid.exists(regions)]
        masses = np.zeros(len(regions))
        for component in Mixture.population(problem.grid, weighing).components:
            cells = zip(component.cell_weights, regions.T, strict=True)
            masses += component.weight * np.prod([w[own] for w, own in cells], axis=0)
        if masses.sum() > 0:
            flags = RegionDecider(problem).decide_regions(regions)
            yield problem, weighing, float(masses[flags].sum() / masses.sum())


@pytest.mark.filterwarnings("ignore:values of:xcount.errors.QueryWarning")
def test_boxes_are_drawn_from_by_their_weight() -> None:
    """The mean of all outcomes is the share, and no region outside the domain is drawn."""
    n_drawn = 0
    for problem, weighing, share in weighed_problems(30):
        parts = parts_of(problem)
        products = Mixture.population(problem.grid, weighing).products(problem)
        draws = MixtureDraws(problem, products, parts)
        regions = draws.regions(np.random.default_rng(n_drawn), 200)
        inside = [part.rows_of(regions) for part in parts]
        assert sorted(np.concatenate(inside).tolist()) == list(range(200))
        histogram, hits = draws.draw(n_drawn, 0, 0, 8, 1)
        n, values = histogram.sum(), np.arange(len(histogram)) / draws.levels
        error = 4.5 * math.sqrt(max(share * (1 - share), 1e-9) / n)
        assert abs(float(values @ histogram) / n - share) <= error
        assert abs(hits.mean() - share) <= error
        n_drawn += 1
    assert n_drawn > 10


@pytest.mark.filterwarnings("ignore:values of:xcount.errors.QueryWarning")
@pytest.mark.parametrize("max_share", [None, "1/2"])
def test_open_boxes_have_one_interval(
    max_share: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other box is weighed exactly, the rest is estimated; intervals cover as promised."""
    seen: dict[int, int] = {}

    def every_other(product: exact_shares.WeighedProduct) -> bool:
        return seen.setdefault(id(product.problem), len(seen)) % 2 > 0

    monkeypatch.setattr(exact_shares.WeighedProduct, "is_solvable", property(every_other))
    found: list[tuple[Measured, float]] = []
    limit = None if max_share is None else Limit.of(max_share)
    settings = Settings(
        0.3,
        max_share=limit,
        judge="population",
        seed=1,
        timeout_seconds=1.0,
        may_visit=False,
    )
    kept = []  # alive, so that no two problems have the same id
    for problem, weighing, share in weighed_problems(120):
        kept.append(problem)
        if len(parts_of(problem)) > 1 and share > 0.01:
            found.append((measure(problem, weighing, settings.restarted())["population"], share))
    estimated = [(m, share) for m, share in found if not m.exact]
    assert len(estimated) > 5
    right = [m.low - 1e-9 <= share <= m.high + 1e-9 for m, share in estimated]
    assert sum(right) >= 0.85 * len(right)
    assert {round(m.confidence, 9) for m, _ in estimated} <= {0.9, 1.0}
    assert sum("samples" in m.details for m, _ in estimated) > 3


@pytest.mark.filterwarnings("ignore:values of:xcount.errors.QueryWarning")
def test_an_interrupt_leaves_what_the_boxes_before_it_weigh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The interval is certain, and narrower than 0 to 1 where a box was weighed."""
    round_of = ExactRun.round
    n_narrow = n_interrupted = 0
    for problem, weighing, share in weighed_problems(30):
        asked: list[ExactRun] = []

        def first_alone(
            self: ExactRun, *limits: Any, asked: list[ExactRun] = asked
        ) -> Iterator[float]:
            asked.append(self)
            if len(asked) > 1:
                raise KeyboardInterrupt
            return round_of(self, *limits)

        monkeypatch.setattr(ExactRun, "round", first_alone)
        found = measure(problem, weighing, Settings(may_visit=False))["population"]
        assert found.low - 1e-9 <= share <= found.high + 1e-9
        if found.stop_reason is StopReason.INTERRUPTED:
            assert found.confidence == 1.0
            n_interrupted += 1
            n_narrow += found.high - found.low < 0.999
    assert n_interrupted > 5
    assert n_narrow > 5
