"""Corner sums count what enumeration counts: gaps, flips, classes, directions, weights, slices."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from enumeration import count_by_enumeration
from numpy.typing import NDArray
from strategies import SCALES, random_classifier, random_ensemble

from xcount import _core
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.counters.visit import visiting_seconds
from xcount.errors import BudgetError
from xcount.measures.products import mask_masses
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing, volume_weights
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.integers import to_limbs
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

DISTANCES = (1, 2, 3, "any")
DIRECTIONS = ("any", "up", "down")


def limbs_of(value: int, n_limbs: int) -> NDArray[np.uint64]:
    """Return an integer as the native core takes it."""
    limbs: NDArray[np.uint64] = to_limbs([value], n_limbs)[0]
    return limbs


def with_zero_ranges(tree: Tree, rng: np.random.Generator) -> Tree:
    """Let some tests of 0 send the zero range to a side of its own, as LightGBM does."""
    zero_side = tree.zero_side.copy()
    for node in np.flatnonzero((tree.feature >= 0) & np.isfinite(tree.threshold)):
        if rng.random() < 0.5:
            zero_side[node] = rng.choice([-1, 1])
    return replace(tree, zero_side=zero_side)


def random_problem(seed: int, ensemble: Ensemble | None = None, flip: bool = False) -> Problem:
    """Return a random question, of a random ensemble unless one is given."""
    rng = np.random.default_rng([seed, 21])
    if ensemble is None:
        scale = [None, *SCALES][int(rng.integers(5))]
        ensemble = random_ensemble(seed, scale=scale)
        if rng.random() < 0.3:
            trees = tuple(with_zero_ranges(tree, rng) for tree in ensemble.trees)
            ensemble = replace(ensemble, trees=trees)
    size = int(rng.integers(1, min(3, ensemble.n_features) + 1))
    sensitive = [int(f) for f in rng.choice(ensemble.n_features, size, replace=False)]
    distance = DISTANCES[int(rng.integers(4))]
    precision = (None, None, 1, 0)[int(rng.integers(4))]
    grid = Grid.of(ensemble, missing="cell" if seed % 2 else "none")
    if flip:
        cutoff = None
        if ensemble.n_outputs == 1:
            cutoff = Fraction(int(rng.integers(-3, 4)), int(rng.choice([1, 2, 10])))
        query = Query.of(
            ensemble, sensitive, distance=distance, precision=precision, flip=True, cutoff=cutoff
        )
    else:
        gap = ("0", "0.5", "0.3", "1", "2")[int(rng.integers(5))]
        query = Query.of(ensemble, sensitive, gap, distance=distance, precision=precision)
    return Problem(ensemble, grid, query)


def gap_sums(problem: Problem, thresholds: list[int], **options: Any) -> _core.CornerSums:
    """Return the corner sums of several gaps."""
    changes = [_core.Change.gap(limbs_of(t, problem.space.trees.n_limbs)) for t in thresholds]
    zero = limbs_of(0, problem.space.trees.n_limbs)
    return _core.CornerSums([problem.forest], [zero], problem.masks, changes, None, **options)


def flip_sums(problem: Problem, cutoffs: list[int]) -> _core.CornerSums:
    """Return the corner sums of several flips: unlike those of gaps, they need all leaves."""
    zero = limbs_of(0, problem.space.trees.n_limbs)
    changes = [_core.Change.flip(limbs_of(c, problem.space.trees.n_limbs)) for c in cutoffs]
    return _core.CornerSums([problem.forest], [zero], problem.masks, changes)


def count_all(sums: _core.CornerSums, n_threads: int = 1) -> NDArray[np.uint64]:
    """Return the counts by change and mask."""
    counts, shares, n_finished = sums.count(0, sums.n_blocks, n_threads)
    assert shares is None
    assert n_finished == sums.n_blocks
    return np.asarray(counts)


def margins(problem: Problem) -> NDArray[np.object_]:
    """Return the integer sums by combination of non-sensitive cells and mask, found tree by tree.

    Enumeration knows no direction: this is the slow definition.
    """
    cells = problem.grid.cell_counts
    sensitive = problem.query.sensitive
    others = [f for f in range(len(cells)) if f not in sensitive]
    points = np.indices([cells[f] for f in (*others, *sensitive)]).reshape(len(cells), -1)
    regions = np.empty((points.shape[1], len(cells)), dtype=np.int64)
    for column, f in enumerate((*others, *sensitive)):
        regions[:, f] = points[column]
    values = problem.space.trees.values
    total = np.zeros(len(regions), dtype=object)
    start = 0
    for tree in problem.trees:
        leaves = tree_leaves(problem, tree, regions)
        total += np.array(values, dtype=object)[start + leaves]
        start += tree.n_nodes
    return total.reshape(-1, problem.n_masks)


def tree_leaves(problem: Problem, tree: Tree, regions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the leaf of each region; numeric tests without zero ranges, and categories."""
    nodes = np.zeros(len(regions), dtype=np.int64)
    for node in range(tree.n_nodes):
        if tree.feature[node] < 0:
            continue
        here = np.flatnonzero(nodes == node)
        axis = problem.grid.axes[int(tree.feature[node])]
        cell = regions[here, tree.feature[node]]
        if node in tree.left_categories:
            left_cells = [codes[0] in tree.left_categories[node] for codes in axis.classes]
        else:
            lower = [-np.inf, *axis.thresholds]
            left_cells = [end < tree.threshold[node] for end in lower]
        if axis.missing_cell is not None:
            left_cells.append(bool(tree.missing_left[node]))
        goes_left = np.array(left_cells)[cell]
        nodes[here] = np.where(goes_left, tree.left[node], tree.right[node])
    return nodes


@pytest.mark.parametrize("block", range(10))
def test_gaps_agree_with_enumeration(block: int) -> None:
    """Mask by mask, for several gaps in one pass: ties, categories, missing cells, all widths."""
    for seed in range(block * 120, (block + 1) * 120):
        problem = random_problem(seed)
        bound = problem.space.trees.bound
        # Without a gap of 0, wide sums are decided by rounded ones where they can be.
        thresholds = [problem.threshold, bound // 3, 2 * bound + 1, *([0] * (seed % 2))]
        sums = gap_sums(problem, thresholds, block_bytes=seed % 3 << 9)
        counts = count_all(sums, 1 + seed % 2)
        for row, threshold in zip(counts, thresholds, strict=True):
            limbs = limbs_of(threshold, problem.space.trees.n_limbs)
            brute = _core.BruteForce(problem.forest, problem.masks, limbs)
            expected = brute.count(0, brute.n_combinations, 1)
            np.testing.assert_array_equal(row, expected, err_msg=f"seed {seed}")


@pytest.mark.parametrize("block", range(6))
def test_flips_agree_with_enumeration(block: int) -> None:
    """One to three sums with bases: ties at the cut-off and between classes."""
    for seed in range(block * 80, (block + 1) * 80):
        problem = random_problem(seed, random_classifier(seed), flip=True)
        question = problem.form.corner_question
        expected = count_by_enumeration(problem, Settings(want_profile=True))
        assert expected.profile is not None
        counts = count_all(question.sums())[0].tolist()
        assert counts == [row.low for row in expected.profile.masks], seed
        assert sum(counts) == expected.count


@pytest.mark.parametrize("block", range(4))
def test_directions_agree_with_the_definition(block: int) -> None:
    """Up: some neighbour is higher; down: some neighbour is lower, for gaps and flips alike."""
    for seed in range(block * 60, (block + 1) * 60):
        problem = random_problem(seed, random_ensemble(seed, max_features=3))
        values = margins(problem)
        cutoff = int(sorted(values.ravel())[seed % values.size])
        zero = limbs_of(0, problem.space.trees.n_limbs)
        changes, expected = [], []
        for direction in DIRECTIONS:
            changes.append(_core.Change.gap(problem.threshold_limbs, direction))
            expected.append(by_definition(problem, values, problem.threshold, direction))
            changes.append(
                _core.Change.flip(limbs_of(cutoff, problem.space.trees.n_limbs), direction)
            )
            expected.append(by_definition(problem, 1 * (values > cutoff), 0, direction))
        sums = _core.CornerSums([problem.forest], [zero], problem.masks, changes)
        assert count_all(sums).tolist() == expected, seed


def by_definition(problem: Problem, values: NDArray[Any], gap: int, direction: str) -> list[int]:
    """Return for each mask how many rows have a neighbour that is higher or lower by the gap."""
    counts = []
    for mask in range(problem.n_masks):
        near = problem.masks.neighbours(mask)
        rise = values[:, near] - values[:, [mask]]
        up, down = (rise > gap).any(axis=1), (-rise > gap).any(axis=1)
        counts.append(int({"any": up | down, "up": up, "down": down}[direction].sum()))
    return counts


def test_weights_agree_with_the_measure() -> None:
    """Under a product measure, the shares of the masks add up to the measured share."""
    n_compared = 0
    for seed in range(120):
        problem = random_problem(seed)
        names = [axis.feature.name for axis in problem.grid.axes]
        bounds = dict.fromkeys(names, (-5.0, 7.0))
        weighing = Weighing.of(problem.ensemble, "volume", bounds=bounds)
        weights, _ = volume_weights(problem.grid, weighing)
        change = _core.Change.gap(problem.threshold_limbs)
        zero = limbs_of(0, problem.space.trees.n_limbs)
        sums = _core.CornerSums([problem.forest], [zero], problem.masks, [change], weights)
        counts, shares, _ = sums.count(0, sums.n_blocks, 2)
        assert shares is not None
        assert counts.tolist() == count_all(gap_sums(problem, [problem.threshold])).tolist()
        units = [int(low) + (int(high) << 64) for low, high in shares[0].reshape(-1, 2)]
        total = math.fsum(np.array(units) * sums.share_unit * mask_masses(problem, weights))
        measured = measure(problem, weighing)["volume"]
        if measured.interval.is_settled:
            assert total == pytest.approx(measured.share, abs=1e-12), seed
            n_compared += 1
    assert n_compared >= 90


def wide_problem() -> Problem:
    """Return a problem with many blocks: eight features of a few cells, 40 trees."""
    rng = np.random.default_rng(3)
    ensembles = [
        random_ensemble(seed, max_features=4, max_trees=5, scale="ties", categorical=False)
        for seed in range(200)
    ]
    full = [e for e in ensembles if e.n_features == 4][:16]
    features = tuple(replace(full[0].features[0], name=f"f{i}") for i in range(12))
    trees = []
    for ensemble in full:
        moved = rng.permutation(12)
        for tree in ensemble.trees:
            feature = np.where(tree.feature >= 0, moved[tree.feature], -1).astype(np.int32)
            trees.append(replace(tree, feature=feature))
    ensemble = Ensemble(features, tuple(trees))
    query = Query.of(ensemble, "f1", "1.5", distance="any")
    return Problem(ensemble, Grid.of(ensemble), query)


@pytest.mark.slow
def test_slices_and_threads_add_up() -> None:
    """Blocks can be counted in any ranges, by any number of threads."""
    problem = wide_problem()
    sums = flip_sums(problem, [problem.threshold, 0])
    assert sums.n_blocks > 50
    assert sums.n_regions == problem.n_regions
    whole = count_all(sums, 2)
    step = sums.n_blocks // 7 + 1
    parts = [sums.count(i, i + step, 1 + i % 3) for i in range(0, sums.n_blocks, step)]
    assert sum(n for _, _, n in parts) == sums.n_blocks
    np.testing.assert_array_equal(sum(counts for counts, _, _ in parts), whole)


def test_a_time_limit_ends_after_whole_blocks() -> None:
    """What is counted when time is up are the first blocks, and it says how many."""
    problem = wide_problem()
    sums = flip_sums(problem, [problem.threshold])
    counts, _, n_finished = sums.count(0, sums.n_blocks, 2, seconds=0.0)
    assert n_finished == 0
    assert not counts.any()
    counts, _, n_finished = sums.count(0, sums.n_blocks, 2, seconds=0.01)
    again, _, n_again = sums.count(0, n_finished, 1)
    assert n_again == n_finished
    np.testing.assert_array_equal(counts, again)


def test_an_exception_of_on_pause_ends_the_count() -> None:
    """Ctrl-C and time-outs belong to Python."""

    class StopNowError(Exception):
        pass

    def on_pause() -> None:
        raise StopNowError

    problem = wide_problem()
    sums = flip_sums(problem, [problem.threshold])

    def count_until_a_pause() -> None:
        while True:  # once is too quick for a pause
            sums.count(0, sums.n_blocks, 1, on_pause=on_pause)

    with pytest.raises(StopNowError):
        count_until_a_pause()


def test_the_cost_is_known_beforehand() -> None:
    """Regions, axes and corners are told without making anything."""
    problem = wide_problem()
    cost = _core.estimate_corner_cost([problem.forest], problem.masks)
    sums = flip_sums(problem, [problem.threshold])
    assert cost.n_regions == sums.n_regions
    assert cost.n_axes == sums.n_axes
    assert sums.n_corners <= cost.n_corners
    assert cost.work == cost.n_regions * cost.n_axes + cost.n_corners
    assert sums.n_corners * 8 < sums.bytes(1) < sums.bytes(2) < 50_000_000


def test_tiles_are_as_small_as_the_memory_asks() -> None:
    """Many masks with little memory take a shorter row at a time, and are counted all the same."""
    rng = np.random.default_rng(4)
    n_cuts = (40, 40, 15, 15, 5)
    trees = []
    for _ in range(300):
        first, second = rng.permutation(5)[:2].tolist()
        cuts = [float(rng.integers(n_cuts[f])) for f in (first, second)]
        inner = (second, cuts[1], *rng.normal(size=2).tolist())
        trees.append((first, cuts[0], inner, float(rng.normal())))
    model = ensemble_of(*trees)
    problem = Problem(model, Grid.of(model), Query.of(model, "f0,f1", 3, distance="any"))
    assert problem.space.trees.n_limbs > 1  # rounded leaves, and in full where these are not enough
    ample, scarce = (gap_sums(problem, [problem.threshold], max_bytes=2**n) for n in (32, 22))
    assert 2 * scarce.bytes(1) < ample.bytes(1)
    np.testing.assert_array_equal(count_all(scarce), count_all(ample))


def test_rows_are_short_where_masks_are_many() -> None:
    """A million masks are visited too: by rows of one axis, where several would be too large."""
    n_cuts = (1200, 1200, 15, 5)
    stumps = [(f, float(cut), 0.0, 1.0) for f, n in enumerate(n_cuts) for cut in range(n)]
    model = ensemble_of(*stumps)
    problem = Problem(model, Grid.of(model), Query.of(model, "f0,f1", flip=True, cutoff=3))
    assert problem.n_masks == 1201**2
    cost = problem.form.corner_question.cost
    assert cost.n_regions == problem.n_regions
    assert math.isfinite(visiting_seconds(problem.form.corner_question))


def test_gaps_need_no_leaf_that_cancels() -> None:
    """Features that no leaf below a sensitive test depends on are not visited, and multiply."""
    problem = wide_problem()
    few = _core.estimate_corner_cost([problem.forest], problem.masks, gaps_only=True)
    all_of_them = _core.estimate_corner_cost([problem.forest], problem.masks)
    assert few.n_regions < all_of_them.n_regions == problem.n_regions
    assert few.n_corners < all_of_them.n_corners
    sums = gap_sums(problem, [problem.threshold])
    assert sums.n_regions == problem.n_regions
    assert sums.n_corners < flip_sums(problem, [0]).n_corners
    exact = ExactRun(problem, Settings())
    exact.solve((10_000_000,))
    assert (int(count_all(sums).sum()),) * 2 == exact.bounds()


def test_what_cannot_be_counted_is_refused() -> None:
    """Too many regions are a budget's matter, nonsense is an error."""
    model = figure_1()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
    zero, wide = limbs_of(0, 1), limbs_of(0, 2)
    gap = _core.Change.gap(problem.threshold_limbs)
    forest, masks = problem.forest, problem.masks
    assert count_all(_core.CornerSums([forest], [zero], masks, [gap])).sum() == 2
    for forests, bases, changes in (
        ([], [], [gap]),
        ([forest], [wide], [gap]),
        ([forest], [zero], [_core.Change.gap(wide)]),
        ([forest], [zero], [_core.Change.largest()]),
        ([forest, forest], [zero, zero], [gap]),
        ([forest], [zero], [_core.Change.gap(limbs_of(-1, 1))]),
    ):
        with pytest.raises(ValueError, match=r"."):
            _core.CornerSums(forests, bases, masks, changes)
    with pytest.raises(ValueError, match="direction"):
        _core.Change.gap(zero, "sideways")
    with pytest.raises(ValueError, match="weight"):
        _core.CornerSums([forest], [zero], masks, [gap], [np.ones(3), np.ones(2)])
    with pytest.raises(BudgetError, match="corners"):
        _core.CornerSums([forest], [zero], masks, [gap], max_bytes=100)


def test_too_many_regions_are_a_matter_of_budget() -> None:
    """More than 2**62 regions are refused, not wrapped around."""
    n = 70
    forest = _core.Forest(
        n_cells=np.full(n, 2, dtype=np.int32),
        missing_cell=np.full(n, -1, dtype=np.int32),
        ordered=np.ones(n, dtype=np.uint8),
        roots=np.array([0], dtype=np.int32),
        feature=np.array([-1], dtype=np.int32),
        cut=np.zeros(1, dtype=np.int32),
        missing_left=np.zeros(1, dtype=np.uint8),
        left=np.array([-1], dtype=np.int32),
        right=np.array([-1], dtype=np.int32),
        limbs=np.zeros((1, 1), dtype=np.uint64),
        membership=np.empty(0, dtype=np.uint8),
    )
    masks = _core.MaskSpace(forest, [0], None)
    zero = limbs_of(0, 1)
    assert _core.estimate_corner_cost([forest], masks).n_listed == math.inf
    with pytest.raises(BudgetError, match="regions"):
        _core.CornerSums([forest], [zero], masks, [_core.Change.gap(zero)])
