"""A test of ranges of numbers counts like the nested plain tests that it stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import random_classifier

import xcount
from xcount.counters import METHODS
from xcount.errors import XCountError
from xcount.model.ensemble import Ensemble, Tree
from xcount.question.grid import Grid
from xcount.runs.task import fingerprint

SLOW = ("cnf-ganak", "cnf-approxmc", "subproblems-cnf")
ESTIMATES = ("sample", "xcount", "xcount-sum-first")
CERTAIN = tuple(m for m in METHODS if m not in SLOW + ESTIMATES)


def with_ranges(ensemble: Ensemble, seed: int) -> Ensemble:
    """Return the ensemble with ranges in the place of half of its numeric tests."""
    rng = np.random.default_rng(seed)
    trees = []
    for tree in ensemble.trees:
        ranges, threshold = {}, tree.threshold.copy()
        for node in np.flatnonzero(~np.isnan(tree.threshold)).tolist():
            if rng.random() < 0.5:
                size = int(rng.integers(2, 5))
                chosen = np.sort(rng.choice(np.arange(-3.0, 4.0), size, replace=False))
                ranges[node], threshold[node] = tuple(chosen.tolist()), np.nan
        trees.append(replace(tree, threshold=threshold, left_ranges=ranges))
    return replace(ensemble, trees=tuple(trees))


def plain(tree: Tree) -> Tree:
    """Return the same tree with nested tests ``x < t``; shared subtrees are copied."""
    rows: list[tuple[int, float, int, int, bool, float]] = []
    categories: dict[int, frozenset[int]] = {}

    def add(node: int, ends: tuple[float, ...], goes_left: bool) -> int:
        """Add a node; of one with ranges, the test of its first end, whose low side goes_left."""
        index = len(rows)
        rows.append((-1, np.nan, -1, -1, False, float(tree.value[node])))
        if tree.feature[node] < 0:
            return index
        sides = [int(tree.left[node]), int(tree.right[node])]
        threshold, missing_left = float(tree.threshold[node]), bool(tree.missing_left[node])
        if node in tree.left_categories:
            categories[index] = frozenset(tree.left_categories[node])
        if ends and not goes_left:
            sides.reverse()
        if ends:
            threshold, missing_left = ends[0], missing_left == goes_left
        low = start(sides[0])
        high = add(node, ends[1:], not goes_left) if ends[1:] else start(sides[1])
        rows[index] = (int(tree.feature[node]), threshold, low, high, missing_left, 0.0)
        return index

    def start(node: int) -> int:
        return add(node, tree.left_ranges.get(node, ()), goes_left=False)

    start(0)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return replace(
        tree,
        feature=columns[0].astype(np.int32),
        threshold=columns[1],
        left=columns[2].astype(np.int32),
        right=columns[3].astype(np.int32),
        missing_left=columns[4],
        zero_side=np.zeros(len(rows), dtype=np.int8),
        value=columns[5],
        left_categories=categories,
        left_ranges={},
    )


def pair(seed: int) -> tuple[Ensemble, Ensemble]:
    """Return a random ensemble with ranges, and the plain one that decides alike."""
    ranged = with_ranges(random_classifier(seed), seed)
    return ranged, replace(ranged, trees=tuple(map(plain, ranged.trees)))


def test_plain_tests_decide_alike() -> None:
    """At every guard, beside it, and at a missing value."""
    for seed in range(200, 230):
        ranged, nested = pair(seed)
        rng = np.random.default_rng(seed)
        values = [*np.arange(-4.0, 5.0), *np.nextafter(np.arange(-4.0, 5.0), -9.0), np.nan]
        rows = rng.choice(values, (200, ranged.n_features))
        for column, feature in enumerate(ranged.features):
            if feature.categories is not None:
                rows[:, column] = rng.choice(feature.categories, 200)
        np.testing.assert_array_equal(ranged.predict(rows), nested.predict(rows))


@pytest.mark.parametrize("missing", ["none", "cell"])
@pytest.mark.parametrize("method", CERTAIN)
def test_every_counter_takes_ranges(method: str, missing: Any) -> None:
    """Gaps and flips, at distances 1 and any."""
    n_counted = 0
    for seed in range(300, 312):
        ranged, nested = pair(seed)
        change: dict[str, Any] = {"flip": True} if seed % 2 else {"gap": "0.3", "class_": 0}
        for distance in (1, "any"):
            asked = {"sensitive": 0, "distance": distance, "missing": missing, **change}
            try:
                found = xcount.count(ranged, method=method, jobs=1, **asked)
            except XCountError:
                continue  # not every method answers every question
            assert found.count == xcount.count(nested, method="brute", jobs=1, **asked).count
            n_counted += 1
    assert n_counted >= 12


def test_ganak_takes_ranges() -> None:
    """The formula of a test of ranges is that of the nested tests."""
    pytest.importorskip("pyganak")
    for seed in (300, 304):
        ranged, nested = pair(seed)
        asked: dict[str, Any] = {"sensitive": 0, "gap": "0.3", "class_": 0, "precision": 1}
        expected = xcount.count(nested, method="brute", **asked).count
        assert xcount.count(ranged, method="cnf-ganak", **asked).count == expected


def test_ranges_make_guards_and_fingerprints() -> None:
    """The ends of ranges are guards, and two models that differ there have different keys."""
    ranged, nested = pair(200)
    assert Grid.of(ranged).cell_counts == Grid.of(nested).cell_counts
    other = with_ranges(random_classifier(200), 201)
    assert fingerprint(other) != fingerprint(ranged)
