"""The exact counter against enumeration: thousands of small worlds, every path of the code."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from enumeration import count_by_enumeration
from oracle import known
from strategies import SCALES, random_ensemble, random_tree

import xcount
from xcount import _core
from xcount.counters.costs import THRESHOLDS, Thresholds
from xcount.counters.engine import Tuning
from xcount.counters.exact import ExactRun, count_exactly
from xcount.counters.settings import Settings
from xcount.counters.tally import Profile, Progress, StopReason, Tally
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

N_ENSEMBLES = 5000
N_BLOCKS = 20


def problem_of(ensemble: Ensemble, missing: bool = False, **question: Any) -> Problem:
    """Return a question ready to be counted, about distance 1 unless said otherwise."""
    grid = Grid.of(ensemble, missing="cell" if missing else "none")
    return Problem(ensemble, grid, Query.of(ensemble, **{"distance": 1, **question}))


def odd_tree(rng: np.random.Generator, tree: Tree) -> Tree:
    """Return the tree with infinite thresholds and zero ranges here and there."""
    threshold, zero_side = tree.threshold.copy(), tree.zero_side.copy()
    for node in np.flatnonzero(~np.isnan(threshold)):
        if rng.random() < 0.1:
            threshold[node] = rng.choice([-np.inf, np.inf])
        elif rng.random() < 0.15:
            zero_side[node] = rng.choice([-1, 1])
    return replace(tree, threshold=threshold, zero_side=zero_side)


def odd_ensemble(seed: int) -> Ensemble:
    """Return a random ensemble; some have several outputs, a divisor, or odd splits."""
    rng = np.random.default_rng([seed, 2])
    ensemble = random_ensemble(seed)
    trees = ensemble.trees
    if seed % 4 == 1:
        trees = tuple(odd_tree(rng, tree) for tree in trees)
    if seed % 5 == 2:
        trees = tuple(replace(tree, output=int(rng.integers(2))) for tree in trees)
        return replace(ensemble, trees=trees, base=(0.0, 0.0))
    return replace(ensemble, trees=trees, divisor=3 if seed % 7 == 3 else 1)


def random_question(seed: int, ensemble: Ensemble) -> dict[str, Any]:
    """Return a question whose gap often equals a difference that occurs."""
    rng = np.random.default_rng([seed, 3])
    n_sensitive = int(rng.integers(1, min(3, ensemble.n_features) + 1))
    sensitive = sorted(rng.choice(ensemble.n_features, n_sensitive, replace=False).tolist())
    leaves = np.concatenate([tree.value for tree in ensemble.trees])
    tie = abs(Fraction(float(rng.choice(leaves))) - Fraction(float(rng.choice(leaves))))
    gaps = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1, 10), tie / ensemble.divisor]
    return {
        "sensitive": sensitive,
        "gap": gaps[int(rng.integers(len(gaps)))],
        "distance": [1, 2, 3, None][int(rng.integers(4))],
        "precision": [None, None, 0, 1, 3][int(rng.integers(5))],
        "class_": int(rng.integers(len(ensemble.base))),
        "missing": bool(rng.random() < 0.5),
    }


def run_exactly(
    problem: Problem,
    *,
    max_paths: int,
    memo_bytes: int = 2**21,
    want_profile: bool = True,
    thresholds: Thresholds = THRESHOLDS,
) -> Tally:
    """Count with other limits of what is enumerated and remembered within the exact counter."""
    tuning = Tuning(max_paths, memo_bytes)
    settings = Settings(jobs=1, want_profile=want_profile, thresholds=thresholds)
    run = ExactRun(problem, settings, tuning)
    run.solve(thresholds.exact_step_budgets)
    return run.tally("exact")


def masks_of(profile: Profile | None) -> list[tuple[tuple[int, ...], int, int]]:
    """Return the rows of a profile: cells, low, high."""
    assert profile is not None
    return [(row.cells, row.low, row.high) for row in profile.masks]


def agree(
    problem: Problem,
    max_paths: int,
    memo_bytes: int = 2**21,
    thresholds: Thresholds = THRESHOLDS,
) -> Tally:
    """Assert that the exact counter finds what enumeration finds, mask by mask."""
    expected = count_by_enumeration(problem, Settings(jobs=1, want_profile=True))
    found = run_exactly(problem, max_paths=max_paths, memo_bytes=memo_bytes, thresholds=thresholds)
    assert (found.count, found.low, found.high) == (expected.count,) * 3
    assert found.stop_reason is StopReason.COMPLETE
    assert masks_of(found.profile) == masks_of(expected.profile)
    return found


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_random_ensembles_are_counted_as_by_enumeration(block: int) -> None:
    """Several sensitive features, d from 1 to any, ties, odd leaves, categories, missing cells.

    All ways through the counter: small states enumerated, everything split to the end, and that
    with a memo that is emptied all the time.
    """
    size = N_ENSEMBLES // N_BLOCKS
    for seed in range(block * size, (block + 1) * size):
        ensemble = odd_ensemble(seed)
        question = random_question(seed, ensemble)
        memo_bytes = 1 if seed % 6 == 0 else 2**21
        agree(problem_of(ensemble, **question), (0, 8, 16384)[seed % 3], memo_bytes)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("max_paths", [0, 16384])
def test_leaves_of_any_size(scale: str, max_paths: int) -> None:
    """64-bit, 128-bit and wide sums (1e300 beside 5e-324), ties and negative zeros."""
    for seed in range(40):
        ensemble = random_ensemble(70_000 + seed, scale=scale)
        question = random_question(seed, ensemble) | {"precision": None}
        agree(problem_of(ensemble, **question), max_paths)


@pytest.mark.parametrize("seed", range(60))
def test_pairs_are_counted_as_by_the_definition(seed: int) -> None:
    """Each pair of the profile, against fractions in plain Python; absent pairs count 0."""
    ensemble = random_ensemble(80_000 + seed, max_features=3, max_trees=3)
    question = random_question(seed, ensemble) | {"class_": 0}
    problem = problem_of(ensemble, **question)
    profile = count_exactly(problem, Settings(jobs=1, want_profile=True)).profile
    assert profile is not None
    found = {(row.cells, row.other_cells): (row.low, row.high) for row in profile.pairs}
    expected = pairs_by_definition(ensemble, question)
    assert {pair: counts for pair, counts in found.items() if counts != (0, 0)} == {
        pair: (count, count) for pair, count in expected.items() if count
    }


def pairs_by_definition(
    ensemble: Ensemble, question: dict[str, Any]
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """Count, for each pair of masks within the distance, where they differ by more than the gap."""
    axes = [oracle.cells(ensemble, f, question["missing"]) for f in range(ensemble.n_features)]
    sensitive = question["sensitive"]
    others = [f for f in range(ensemble.n_features) if f not in sensitive]
    masks = list(itertools.product(*(range(len(axes[f])) for f in sensitive)))
    grid = Grid.of(ensemble, missing="cell" if question["missing"] else "none")
    counts = {}
    for a, b in itertools.combinations(masks, 2):
        steps = [grid.axes[f].distance(i, j) for f, i, j in zip(sensitive, a, b, strict=True)]
        if question["distance"] is not None and sum(steps) > question["distance"]:
            continue
        counts[a, b] = 0
        for rest in itertools.product(*(range(len(axes[f])) for f in others)):
            margins = []
            for mask in (a, b):
                cells = dict(zip([*sensitive, *others], [*mask, *rest], strict=True))
                point = [axes[f][cells[f]] for f in range(ensemble.n_features)]
                margins.append(oracle.margin(ensemble, point, question["precision"]))
            counts[a, b] += abs(margins[0] - margins[1]) > question["gap"]
    return counts


def wide_ensemble(n_trees: int = 40, n_features: int = 6, depth: int = 4) -> Ensemble:
    """Return an ensemble that tiny budgets do not solve."""
    rng = np.random.default_rng(5)
    features = tuple(Feature(f"f{i}") for i in range(n_features))
    leaves = rng.normal(size=64) * 0.2
    trees = tuple(random_tree(rng, features, depth, leaves, np.arange(8.0)) for _ in range(n_trees))
    return Ensemble(features, trees)


def nested_tree(rng: np.random.Generator, features: tuple[int, ...], depth: int) -> Any:
    """Return a full tree with whole leaves from -2 to 2, as nested tuples."""
    if depth == 0:
        return float(rng.integers(-2, 3))
    low, high = (nested_tree(rng, features, depth - 1) for _ in range(2))
    return int(rng.choice(features)), float(rng.integers(0, 4)), low, high


@pytest.mark.parametrize("max_paths", [0, 64, 16384])
@pytest.mark.parametrize("seed", range(4))
def test_more_features_than_bits_in_a_word(seed: int, max_paths: int) -> None:
    """Features 64 apart share a bit of what a state may mention; narrowed axes still count right.

    f1 and f2 come first, then 62 features that vanish where ``f1 >= 5`` and never decide, then f3
    and f4.
    """
    rng = np.random.default_rng(seed)
    main: list[Any] = [(0, 0.0, (1, 5.0, 100.0, 0.0), 0.0), (0, 0.0, (2, 0.0, 1.0, 0.0), 0.0)]
    chain: Any = 0.0
    for feature in range(66, 4, -1):
        chain = (feature, 0.0, 0.001, chain)
    fillers = (0, 0.0, (1, 5.0, chain, 0.0), 0.0)
    others = [
        (0, 0.0, nested_tree(rng, (1, 2, 3, 4), 2), nested_tree(rng, (1, 2, 3, 4), 2))
        for _ in range(8)
    ]
    question: dict[str, Any] = {"sensitive": 0, "gap": "4.5", "precision": 3}
    small = problem_of(ensemble_of(*main, *others), **question)
    large = problem_of(ensemble_of(*main, fillers, *others), **question)
    expected = known(count_by_enumeration(small, Settings(jobs=1)).count)
    found = run_exactly(large, max_paths=max_paths)
    assert (found.low, found.high) == (expected * 2**62,) * 2


@pytest.mark.parametrize("n_fillers", [10, 40, 80, 500])
def test_counts_beyond_machine_words(n_fillers: int) -> None:
    """Up to 4**500 combinations in one subproblem: exact integers of any size."""
    rng = np.random.default_rng(n_fillers)
    main = [
        (0, 0.0, nested_tree(rng, (1, 2, 3), 3), nested_tree(rng, (1, 2, 3), 2)) for _ in range(4)
    ]
    fillers = [
        (0, 0.0, (4 + i, float(t), 1e-4, 0.0), 0.0) for i in range(n_fillers) for t in range(3)
    ]
    question: dict[str, Any] = {"sensitive": 0, "gap": "2.5", "precision": 4}
    expected = count_by_enumeration(problem_of(ensemble_of(*main), **question), Settings(jobs=1))
    found = count_exactly(problem_of(ensemble_of(*main, *fillers), **question), Settings(jobs=2))
    assert known(expected.count) > 0
    assert (found.low, found.high) == (known(expected.count) * 4**n_fillers,) * 2


@pytest.mark.parametrize("zero_ranges", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("max_paths", [0, 16384])
def test_axes_of_more_than_64_cells(max_paths: int, missing: bool, zero_ranges: bool) -> None:
    """Long axes keep intervals instead of bit sets; zero ranges make tests that are no prefix."""
    for seed in range(3):
        rng = np.random.default_rng([seed, 4])
        features = (
            Feature("s", categories=(0, 1, 2)),
            Feature("long", can_be_missing=True),
            Feature("t", categories=(0, 1, 2)),
        )
        guards = np.arange(-60.0, 60.0)
        trees = [random_tree(rng, features, 4, SCALES["ties"], guards) for _ in range(40)]
        if zero_ranges:
            trees = [odd_tree(rng, tree) for tree in trees]
        ensemble = Ensemble(features, tuple(trees))
        problem = problem_of(ensemble, missing, sensitive=2, gap=2)
        assert problem.grid.axes[1].n_cells > 65
        agree(problem, max_paths)


def test_one_long_axis() -> None:
    """Several hundred guards of one feature, all needed: deep recursion, the right sum."""
    stumps = [(0, 0.0, (1, float(i), 1.0, -1.0), 0.0) for i in range(400)]
    agree(problem_of(ensemble_of(*stumps), sensitive=0, gap=150), max_paths=0)


def chain_tree(depth: int) -> Tree:
    """Return a tree with one long path; its last test is on feature 0."""
    n_nodes = 2 * depth + 1
    inner = np.arange(0, n_nodes - 1, 2)
    feature = np.full(n_nodes, -1, dtype=np.int32)
    threshold = np.full(n_nodes, np.nan)
    left, right = feature.copy(), feature.copy()
    feature[inner], threshold[inner] = 1, np.arange(depth)
    left[inner], right[inner] = inner + 1, inner + 2
    feature[inner[-1]] = 0
    value = np.zeros(n_nodes)
    value[-1] = 5.0
    flags = np.zeros(n_nodes, dtype=np.int8)
    return Tree(feature, threshold, left, right, flags.astype(np.bool_), flags, value)


def test_deep_trees() -> None:
    """A path of thousands of tests is followed."""
    ensemble = Ensemble((Feature("f0"), Feature("f1")), (chain_tree(2_000),))
    result = xcount.count(ensemble, sensitive="f0", gap=1, method="exact")
    assert (result.count, result.exact) == (2, True)


@pytest.fixture
def wide_problem() -> Problem:
    """Return a question with several neighbours a mask, too hard for small budgets."""
    return problem_of(wide_ensemble(), sensitive="f0", gap="0.8", distance=2)


def test_small_budgets_leave_valid_bounds(
    wide_problem: Problem,
) -> None:
    """Whatever the budget of steps: low <= C <= high, and the larger budget is never worse."""
    expected = known(count_by_enumeration(wide_problem, Settings()).count)
    widths = []
    for budget in (0, 40, 400, 4_000, 40_000, 2**62):
        thresholds = Thresholds(exact_step_budgets=(budget,), least_cover_work=0)
        settings = Settings(want_profile=True, may_visit=False, thresholds=thresholds)
        tally = count_exactly(wide_problem, settings)
        assert tally.low <= expected <= tally.high
        is_exact = tally.low == tally.high
        assert tally.stop_reason is (StopReason.COMPLETE if is_exact else StopReason.STEPS)
        assert tally.profile is not None
        assert sum(row.low for row in tally.profile.masks) == tally.low
        widths.append(tally.high - tally.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0 == widths[-1]


def test_little_memory_leaves_valid_bounds(
    wide_problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that need more than their share are given up, the others go on."""
    monkeypatch.setattr(Settings, "free_bytes", lambda self: 100_000)
    expected = known(count_by_enumeration(wide_problem, Settings()).count)
    run = ExactRun(wide_problem, Settings(jobs=2), Tuning(max_paths=0))
    run.solve(THRESHOLDS.exact_step_budgets)
    tally = run.tally("exact")
    assert tally.low <= expected <= tally.high
    assert tally.low < tally.high
    assert tally.stop_reason is StopReason.MEMORY


def test_an_expired_time_limit_leaves_the_trivial_bounds() -> None:
    """Nothing was counted: anything between none and all."""
    result = xcount.count(
        figure_1(), sensitive="f0", gap=80, method="exact", timeout=1e-9, profile=True
    )
    assert (result.low, result.high) == (0, 9)
    assert result.stop_reason is StopReason.TIMEOUT


def test_time_that_is_just_enough_is_no_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything was counted when the time was up: complete, and said so."""
    run = ExactRun(problem_of(figure_1(), sensitive="f0", gap=80), Settings(timeout_seconds=3600))
    run.solve((2**62,))
    monkeypatch.setattr(Settings, "expired", lambda self: True)
    run.solve((2**62,))
    assert run.bounds() == (2, 2)
    assert run.stop_reason is StopReason.COMPLETE


HARD = {"n_trees": 150, "n_features": 14, "depth": 7}


def test_a_time_limit_leaves_valid_bounds() -> None:
    """A question for hours, asked for a moment."""
    problem = problem_of(wide_ensemble(**HARD), sensitive="f0", gap="1.5")
    tally = count_exactly(problem, Settings(timeout_seconds=0.3))
    assert tally.stop_reason is StopReason.TIMEOUT
    assert 0 <= tally.low < tally.high <= problem.n_regions


def test_an_interrupt_keeps_what_was_counted() -> None:
    """Ctrl-C in the middle of a batch: the tasks that were done count."""
    thresholds = Thresholds(exact_step_budgets=(2**62,))
    hard = wide_ensemble(**HARD)
    trees = [
        replace(tree, threshold=np.where(tree.feature == 0, 4.0, tree.threshold))
        for tree in hard.trees
    ]
    easy = ensemble_of((0, 0.5, 99.0, 0.0), n_features=hard.n_features)
    problem = problem_of(replace(hard, trees=(*easy.trees, *trees)), sensitive="f0", gap="3.5")

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    settings = Settings(on_progress=interrupt, may_visit=False, thresholds=thresholds)
    tally = count_exactly(problem, settings)
    assert tally.stop_reason is StopReason.INTERRUPTED
    assert problem.n_masks == 3
    assert 2 * problem.n_combinations <= tally.low < tally.high <= problem.n_regions


SCRIPT = """
import sys
from collections.abc import Iterator
sys.path[:0] = {path!r}
from test_exact import HARD, problem_of, wide_ensemble
from xcount.counters.settings import Settings
from xcount.counters.exact import count_exactly
tell = lambda progress: print("counting", flush=True)
problem = problem_of(wide_ensemble(**HARD), sensitive="f0", gap="1.5")
print(count_exactly(problem, Settings(on_progress=tell)).stop_reason)
"""


def test_a_signal_is_answered() -> None:
    """SIGINT while native threads count: they stop, and the result says why."""
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(path=sys.path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "counting\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.split()[-1] == "interrupted"
    assert child.returncode == 0


@pytest.mark.parametrize("distance", [1, 3, None])
def test_the_number_of_threads_changes_nothing(distance: int | None) -> None:
    """Counts, profile, even the number of steps: the same on one thread and on five."""
    problem = problem_of(wide_ensemble(), sensitive=["f0"], gap="1.2", distance=distance)
    tallies = [count_exactly(problem, Settings(jobs=n, want_profile=True)) for n in (1, 2, 5)]
    assert tallies[0] == tallies[1] == tallies[2]


def test_masks_out_of_range_are_refused() -> None:
    """The native counter checks what it is asked."""
    problem = problem_of(figure_1(), sensitive="f0", gap=80)
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
    with pytest.raises(ValueError, match="out of range"):
        counter.start([([(0, 3)], False, 0, 0)], 3, 1000, 2**20, 1)


def test_the_profile_says_where_the_model_jumps() -> None:
    """Figure 1: between the first two cells of f0, in one of the three cells of f1."""
    result = xcount.count(figure_1(), sensitive="f0", gap=80, method="exact", profile=True)
    assert result.profile is not None
    jumps = [(row.description, row.low, row.n_combinations) for row in result.profile.pairs]
    assert jumps == [("f0 < 3 | 3 <= f0 < 4", 1, 3)]


def test_time_that_runs_out_in_the_last_round_is_a_timeout(
    wide_problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the clock stopped is not called a lack of steps."""
    run = ExactRun(wide_problem, Settings(timeout_seconds=60))
    real = run.round

    def solve_until_time_is_up(budget: int) -> Iterator[float]:
        yield from real(1)
        monkeypatch.setattr(Settings, "seconds_left", lambda _self: 0.0)

    monkeypatch.setattr(run, "round", solve_until_time_is_up)
    run.solve([10**9])
    assert not run.is_exact()
    assert run.stop_reason is StopReason.TIMEOUT
