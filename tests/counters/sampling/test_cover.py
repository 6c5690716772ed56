"""Covers: what they call solved is solved, what they leave open is sampled without bias."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from oracle import cells, margin
from strategies import random_ensemble, random_tree

import xcount
from xcount import _core
from xcount.counters.costs import Thresholds
from xcount.counters.cover import counts, native_cover
from xcount.counters.sampling.count import count_by_sampling
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem
from xcount.question.grid import Grid
from xcount.question.query import Query


def problem_of(ensemble: Ensemble, gap: str, distance: int | str, missing: bool = False) -> Problem:
    """Return the question about f0."""
    query = Query.of(ensemble, "f0", gap, distance=distance)
    return Problem(ensemble, Grid.of(ensemble, missing="cell" if missing else "none"), query)


NO_LIMIT = 2**62


def cover_of(problem: Problem) -> _core.Cover:
    """Return the cover of all masks with all their pairs."""
    pairs = list(problem.pairs())
    masks = range(problem.n_masks)
    tasks = [(Subproblem([p for p in pairs if mask in p]), 1) for mask in masks]
    return native_cover(problem.space, tasks)


def known_regions(problem: Problem, cover: _core.Cover) -> tuple[int, int]:
    """Return how many regions are solved, and how many are open."""
    each = counts(cover, problem.n_combinations)
    return sum(solved for solved, _ in each), sum(unknown for _, unknown in each)


def true_count(problem: Problem) -> int:
    """Return what enumeration finds."""
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    return int(brute.count(0, brute.n_combinations, 1).sum())


@pytest.mark.parametrize("seed", range(150))
def test_refined_to_the_end_a_cover_is_an_exact_count(seed: int) -> None:
    """Nothing is open in the end, and the solved volume is the count of enumeration."""
    distance = (1, 2, "any")[seed % 3]
    problem = problem_of(random_ensemble(seed), "0.3", distance, missing=seed % 2 == 0)
    cover = cover_of(problem)
    cover.refine(10**12, NO_LIMIT, 2, max_paths=(0, 20, 16_384)[seed % 5 % 3])
    assert cover.n_open == 0
    assert known_regions(problem, cover) == (true_count(problem), 0)


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_any_and_all_of_several_pairs_are_bounded_at_every_step(seed: int, all_pairs: bool) -> None:
    """Slice by slice, the bounds hold what enumeration finds and never get wider."""
    missing = seed % 2 == 0
    problem = problem_of(random_ensemble(seed), "0.3", "any", missing=missing)
    pairs = list(problem.pairs())[: 1 + seed % 4]
    cover = native_cover(problem.space, [(Subproblem(pairs, all_pairs), 1)])
    true = solutions(problem.ensemble, missing, pairs, all_pairs)
    last = (0, problem.n_combinations)
    while cover.n_open:
        cover.refine(1, NO_LIMIT, 1, max_paths=8)
        solved, unknown = known_regions(problem, cover)
        assert last[0] <= solved <= true <= solved + unknown <= last[1]
        last = (solved, solved + unknown)
    assert known_regions(problem, cover) == (true, 0)


def solutions(ensemble: Ensemble, missing: bool, pairs: list[Pair], all_pairs: bool) -> int:
    """Return for how many combinations of the other cells any (or all) of the pairs differ."""
    n_solved = 0
    axes = [cells(ensemble, f, missing) for f in range(ensemble.n_features)]
    for point in itertools.product(*axes[1:]):
        sums = [margin(ensemble, (x, *point), None) for x in axes[0]]
        differ = [abs(sums[a] - sums[b]) > Fraction(3, 10) for a, b in pairs]
        n_solved += all(differ) if all_pairs else any(differ)
    return n_solved


def wide_problem(
    gap: str, distance: int | str = 1, n_features: int = 6, n_guards: int = 8
) -> Problem:
    """Return a problem of 40 trees, by default on half a million regions."""
    rng = np.random.default_rng(11)
    features = tuple(Feature(f"f{i}") for i in range(n_features))
    leaves = rng.normal(size=64) * 0.2
    guards = np.arange(float(n_guards))
    trees = tuple(random_tree(rng, features, 4, leaves, guards) for _ in range(40))
    return problem_of(Ensemble(features, trees), gap, distance)


@pytest.mark.parametrize("work", [0, 100, 1_000, 8_000])
@pytest.mark.parametrize(("gap", "distance"), [("0.4", 1), ("1.2", 1), ("1.2", 3)])
def test_solved_and_sampled_parts_add_up(work: int, gap: str, distance: int | str) -> None:
    """At any stage: solved <= C <= solved + open, and hits are as frequent as they must be."""
    check_parts(wide_problem(gap, distance), work)


@pytest.mark.parametrize("work", [0, 1_000, 8_000])
def test_parts_of_many_tasks_add_up(work: int) -> None:
    """More tasks than a batch can group are sampled one by one."""
    problem = wide_problem("0.6", 1, n_features=3, n_guards=24)
    assert problem.n_masks > 16
    check_parts(problem, work)


def check_parts(problem: Problem, work: int) -> None:
    """Check the solved part and the hits of the open one against enumeration."""
    exact = true_count(problem)
    cover = cover_of(problem)
    cover.refine(work, NO_LIMIT, 1, max_paths=64)
    cover.freeze()
    solved, undecided = known_regions(problem, cover)
    assert solved <= exact <= solved + undecided
    assert undecided > 0
    share = (exact - solved) / undecided
    n = 256 * 200
    _, hits = cover.draw(5, 1, 0, 200, 2)
    deviation = (share * (1 - share) / n) ** 0.5
    assert abs(float(hits.mean()) - share) <= 5 * deviation + 1e-9


def test_covers_do_not_depend_on_threads() -> None:
    """The same states, volumes and hits on one thread and on three."""
    seen = set()
    for n_threads in (1, 3):
        cover = cover_of(wide_problem("0.4"))
        for work in (500, 5_000, 50_000):
            cover.refine(work, NO_LIMIT, n_threads, max_paths=64)
        cover.freeze()
        _, hits = cover.draw(1, 2, 3, 20, n_threads)
        seen.add((*cover.counts(), cover.n_open, cover.work, hits.tobytes()))
    assert len(seen) == 1


def rare_ensemble(n_features: int) -> Ensemble:
    """Return stumps that must all agree: sensitive where f1..fn are all in their last cell."""
    pairs = [(0, 1.0, (i, 9.0, 0.0, 1.0), (i, 9.0, 0.0, -1.0)) for i in range(1, n_features + 1)]
    grids = [(i, float(c), 0.0, 0.0) for i in range(1, n_features + 1) for c in range(1, 9)]
    return ensemble_of(*pairs, *grids)


def test_rare_solutions_are_found_where_plain_sampling_finds_none() -> None:
    """One combination in 10^8: the count is right although no sample would ever hit it."""
    ensemble = rare_ensemble(8)
    result = xcount.count(ensemble, sensitive="f0", gap="15.5", method="sample", timeout=30)
    assert result.n_regions == 2 * 10**8
    assert (result.low, result.high) == (2, 2)


def test_an_interrupt_while_refining_leaves_what_is_known() -> None:
    """Ctrl-C before the first sample still gives an interval."""
    thresholds = Thresholds(plain_seconds=0.0, first_cover_work=1_000)

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    problem = wide_problem("1.2")
    settings = Settings(thresholds=thresholds, on_progress=interrupt)
    result = count_by_sampling(problem, settings)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.low <= true_count(problem) <= result.high


@pytest.mark.parametrize("method", ["sample", "auto"])
@pytest.mark.parametrize("n_features", [20, 70, 350])
def test_shares_far_below_any_float_are_counted(method: str, n_features: int) -> None:
    """Two sensitive regions of 2 * 10^n, on more features than a machine word has bits."""
    ensemble = rare_ensemble(n_features)
    gap = f"{2 * n_features - 0.5}"
    result = xcount.count(ensemble, sensitive="f0", gap=gap, method=method, timeout=60)
    assert result.n_regions == 2 * 10**n_features
    assert (result.low, result.count, result.high, result.exact) == (2, 2, 2, True)
