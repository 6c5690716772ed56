"""Domains in which not all combinations of sensitive cells exist, and what they hold in memory."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from xcount.counters import counter
from xcount.counters.decisions import RegionDecider
from xcount.counters.parts import count_parts
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of
from xcount.problem.joint import JointTests
from xcount.problem.parts import Part, by_masks, parts_of
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query


def split(ensemble: Ensemble, sensitive: list[str], *rules: str) -> Problem:
    """Return a question in a domain with rules."""
    grid = Grid.of(ensemble, domain=Domain.of(rule=list(rules)))
    return Problem(ensemble, grid, Query.of(ensemble, sensitive, gap="0.1"))


def test_equal_tests_share_one_set_of_masks() -> None:
    """Trees repeat a few tests at many nodes, and a set may have many thousands of masks."""
    stumps = [(f, 0.5, 0.0, 1.0 + i) for f in (0, 1, 2) for i in range(20)]
    problem = split(ensemble_of(*stumps), ["f0", "f1"], "f0 < 0.5 -> f1 < 0.5")
    (joint,) = [p for p in parts_of(problem) if len(p.problem.query.sensitive) == 1]
    sets = [own for tree in joint.problem.ensemble.trees for own in tree.left_categories.values()]
    assert len(sets) == 40
    assert len({id(own) for own in sets}) == 2


def test_regions_are_decided_with_few_layouts_of_the_trees() -> None:
    """One for each set of masks, however many boxes the rules cut the domain into."""
    stumps = [(f, t, 0.0, 0.3 + f * t) for f in (1, 2, 3) for t in (1.0, 2.0, 3.0)]
    deep = (0, 1.0, (1, 2.0, 0.0, 1.0), (2, 2.0, (3, 1.0, 0.05, 2.0), 0.02))
    ensemble = ensemble_of(deep, *stumps)
    rules = ["f1 < 1 -> f2 < 2", "f2 < 1 -> f3 < 3", "f3 < 1 -> f1 < 3", "f1 >= 3 -> f2 >= 1"]
    problem = split(ensemble, ["f0"], *rules)
    parts = parts_of(problem)
    groups = by_masks(problem, parts)
    assert len(parts) > len(groups) == 1
    rows, sizes = np.random.default_rng(0), problem.grid.cell_counts
    regions = rows.integers(0, sizes, (200, len(sizes)))
    expected = np.zeros((len(regions), problem.n_masks), dtype=np.bool_)
    for part in parts:
        inside = part.rows_of(regions)
        own = part.problem.form.decide(part.to_part(regions[inside]))
        expected[np.ix_(inside, part.starts)] = own[:, list(part.problem.counted_masks)]
    fresh = split(ensemble, ["f0"], *rules)
    assert len(parts_of(fresh)) == len(parts)
    with mock.patch.object(Part, "of_box", wraps=Part.of_box) as made:
        found = RegionDecider(fresh).decide(regions)
    assert expected.any()
    assert np.array_equal(found, expected)
    assert made.call_count == 1


def test_a_part_is_made_when_it_is_asked_for() -> None:
    """A domain may have thousands of parts: their trees are neither made nor held before."""
    stumps = [(f, 0.5, 0.0, 1.0 + f) for f in (0, 1, 2)]
    problem = split(
        ensemble_of(*stumps), ["f0", "f1"], "f0 < 0.5 -> f1 < 0.5", "f2 < 0.5 -> f1 < 0.5"
    )
    with mock.patch.object(JointTests, "with_masks", autospec=True) as made:
        parts = parts_of(problem)
        sizes = [(part.n_masks, part.n_regions) for part in parts]
    assert made.call_count == 0
    assert sizes == [(part.problem.n_masks, part.problem.n_regions) for part in parts]
    assert sum(n_regions for _, n_regions in sizes) == problem.n_regions


def test_parts_share_what_their_tests_have_in_common() -> None:
    """Sets of masks differ between parts; the trees of the joint feature do not."""
    stumps = [(f, 0.5, 0.0, 1.0 + f) for f in (0, 1, 2)]
    rules = ["f0 < 0.5 -> f1 < 0.5", "f2 < 0.5 and f1 >= 0.5 -> f0 >= 0.5"]
    problem = split(ensemble_of(*stumps), ["f0", "f1"], *rules)
    joint = [p for p in parts_of(problem) if len(p.problem.query.sensitive) == 1]
    features = [p.problem.ensemble.trees[0].feature for p in joint]
    assert all(own is features[0] for own in features)


@pytest.mark.parametrize("method", ["auto", "sample", "exact"])
def test_no_part_is_laid_out_beyond_a_limit(method: str) -> None:
    """Each of many parts would take the time of laying its trees out after the time is up."""
    stumps = [(f, 0.5, 0.0, 1.0 + f) for f in (0, 1, 2)]
    rules = ["f0 < 0.5 -> f1 < 0.5", "f2 < 0.5 -> f1 < 0.5"]
    problem = split(ensemble_of(*stumps), ["f0", "f1"], *rules)
    late = Settings(timeout_seconds=0.0)
    with mock.patch.object(JointTests, "with_masks", autospec=True) as made:
        tally = count_parts(problem, parts_of(problem), late, counter(method), method)
    assert made.call_count == 0
    assert tally.stop_reason is StopReason.TIMEOUT
    assert (tally.low, tally.count) == (0, None)
    assert tally.high > 0
