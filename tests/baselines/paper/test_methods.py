"""The paper's methods agree with enumeration, keep their guarantee, and respect limits."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import n_examples
from oracle import known
from published import PUBLISHED, SMALL, published_model
from strategies import random_ensemble

from xcount import count
from xcount.baselines.paper.dot import terminal_value
from xcount.baselines.paper.guards import GuardSpace
from xcount.baselines.paper.limits import diagram_bytes
from xcount.baselines.paper.subproblem import difference_of_sums, pruned_tree, sum_of_differences
from xcount.baselines.paper.xcount import implied_interval
from xcount.counters import counter
from xcount.counters import settings as limits
from xcount.counters.settings import Settings
from xcount.counters.tally import Method, StopReason
from xcount.errors import BudgetError, QueryWarning
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.model.loaders import load
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

METHODS = ["xcount", "xcount-sum-first", "xcount-exact-union", "add-baseline", "add-baseline-plain"]


def questions(n: int) -> Iterator[tuple[Ensemble, dict[str, Any]]]:
    """Yield random small ensembles, each with a question about it."""
    for seed in range(n):
        ensemble = random_ensemble(seed)
        rng = np.random.default_rng([seed, 5])
        n_sensitive = int(rng.integers(1, min(3 if seed % 10 == 0 else 2, ensemble.n_features) + 1))
        chosen = rng.choice(ensemble.n_features, n_sensitive, replace=False)
        yield (
            ensemble,
            {
                "sensitive": [int(f) for f in chosen],
                "gap": ["0", "0.3", "1", "0.1", "2"][seed % 5],
                "distance": [1, 2, 3, "any"][int(rng.integers(4))],
                "precision": ["exact", 1, 3][int(rng.integers(3))],
                "missing": ["none", "cell"][int(rng.integers(2))],
            },
        )


def test_random_ensembles_are_counted_as_by_visiting_all_regions() -> None:
    """Every method finds the count of a visit, whatever the features and distances."""
    n_sensitive, n_models = 0, n_examples(300)
    for ensemble, question in questions(n_models):
        missing = question.pop("missing")
        problem = Problem(
            ensemble, Grid.of(ensemble, missing=missing), Query.of(ensemble, **question)
        )
        expected = known(counter(Method.VISIT)(problem, Settings(jobs=1)).count)
        n_sensitive += expected > 0
        assert expected != 1, "being sensitive is mutual: no count is 1"
        for method in METHODS:
            found = counter(method)(problem, Settings())
            assert (found.low, found.high, found.confidence) == (expected, expected, 1.0), method
    assert n_sensitive > 0.4 * n_models


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_trees", SMALL)
def test_published_counts(method: str, n_trees: int) -> None:
    """The counts that the authors publish for load_diabetes come out."""
    found = count(
        published_model(n_trees),
        sensitive=2,
        gap=2,
        precision=3,
        method=method,
        epsilon=0.04,
        distance=1,
    )
    n_regions, expected = PUBLISHED[n_trees]
    assert found.n_regions == n_regions
    assert found.low <= expected <= found.high
    if found.exact:
        assert found.count == expected
    assert found.exact or "xcount" in method


@pytest.mark.parametrize("method", METHODS)
def test_figure_1(method: str) -> None:
    """Figure 1 has two sensitive regions of nine; the change of exactly 85 is not above 85."""
    assert count(figure_1(), sensitive="f0", gap=80, method=method, distance=1).count == 2
    assert count(figure_1(), sensitive="f0", gap=85, method=method, distance=1).count == 0


def chain(n_features: int, n_cells: int) -> Ensemble:
    """Return an ensemble of which every region is sensitive to f0."""
    stumps = [(0, 0.5, 1.0, -1.0)]
    others = [(f, float(t), 0.0, 0.0) for f in range(1, n_features + 1) for t in range(n_cells - 1)]
    return ensemble_of(*stumps, *others)


def test_what_cancels_is_left_out_before_it_is_added() -> None:
    """With only_fixed, a tree is 0 outside the branches that test the sensitive feature."""
    ensemble = ensemble_of((1, 0.0, (0, 0.0, 5.0, 7.0), 3.0), (1, 1.0, 2.0, 4.0))
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, 1, distance=1))
    space = GuardSpace(problem, [1])
    whole, part = (pruned_tree(space, 0, 0, only_fixed=only) for only in (False, True))
    scale = problem.space.trees.scale
    terminals = [
        sorted(terminal_value(row[4]) / scale for row in space.table.rows(add) if row[1] < 0)
        for add in (whole, part)
    ]
    assert terminals == [[3, 5], [0, 5]]
    assert pruned_tree(space, 1, 0, only_fixed=True) == space.number(0)
    assert difference_of_sums(space, (0, 1)) == sum_of_differences(space, (0, 1))


def binomial_limit(n: int, p: float) -> int:
    """Return the most failures of n that have probability above one in a million at rate p."""
    tail, k = 1.0, 0
    while tail > 1e-6:
        tail -= math.comb(n, k) * p**k * (1 - p) ** (n - k)
        k += 1
    return k


@pytest.mark.parametrize("n_trees", [1, 2, 3])
def test_guarantee_holds_over_fixed_seeds(n_trees: int) -> None:
    """Of 200 seeds at most the promised part misses the interval; small counts are exact."""
    _, expected = PUBLISHED[n_trees]
    epsilon, delta, misses = 0.4, 0.2, 0
    ensemble = load(published_model(n_trees))
    problem = Problem(
        ensemble, Grid.of(ensemble), Query.of(ensemble, 2, 2, precision=3, distance=1)
    )
    for seed in range(200):
        found = counter("xcount")(problem, Settings(epsilon=epsilon, delta=delta, seed=seed))
        misses += not found.low <= expected <= found.high
        if expected < 12 * math.log(24 / delta) / epsilon**2:
            assert (found.low, found.high, found.confidence) == (expected, expected, 1.0)
        else:
            assert found.confidence == pytest.approx(1 - delta)
            assert found.low <= known(found.count) <= found.high
    assert misses <= binomial_limit(200, delta)


@pytest.mark.parametrize("n_features", [1, 4, 60, 200])
def test_guarantee_holds_where_single_subproblems_are_sampled(n_features: int) -> None:
    """One subproblem of up to 10**139 solutions: p is halved before anything is drawn."""
    ensemble = chain(n_features, 5)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, 1, distance=1))
    expected, misses, epsilon, delta = 2 * 5**n_features, 0, 0.5, 0.3
    for seed in range(100):
        settings = Settings(epsilon=epsilon, delta=delta, seed=seed)
        found = counter("xcount")(problem, settings)
        if not found.details["halvings"]:
            assert (found.low, found.count, found.high) == (expected, expected, expected)
            continue
        # The subproblem's own number of solutions is exact; the answer is the paper's all the same.
        assert found.details["pair_bounds"] == [expected, expected]
        assert found.details["clipped"] == expected
        sampled = found.details["sample_size"] << found.details["halvings"]
        assert found.count == sampled
        assert found.low <= min(sampled, expected)
        assert max(sampled, expected) <= found.high
        low, high = implied_interval(sampled, epsilon)
        misses += not low <= expected <= high
    assert misses <= binomial_limit(100, delta)


def test_a_seed_gives_the_same_answer_again() -> None:
    """The same seed draws the same sample, another seed another one."""
    question: dict[str, Any] = {
        "sensitive": 2,
        "gap": 2,
        "precision": 3,
        "method": "xcount",
        "epsilon": 0.5,
    }
    first, again, other = (
        count(published_model(4), **question, seed=seed).details["sample_size"]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_limit_gives_valid_bounds(method: str) -> None:
    """Diagrams that outgrow the memory end the run with an interval that holds the count."""
    ensemble = wide_ensemble()
    with pytest.warns(QueryWarning, match="of --memory"):
        found = count(ensemble, sensitive=0, gap="0.001", method=method, memory=10**6, distance=1)
    assert found.stop_reason is StopReason.MEMORY
    assert 0 <= found.low < found.high <= found.n_regions
    assert found.count is None
    assert found.confidence == 1.0


def test_what_an_earlier_count_held_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagrams get what is left beside what the process holds now, not beside its peak."""
    monkeypatch.setattr(limits, "held_memory_bytes", lambda: 2**20)
    peak = SimpleNamespace(ru_maxrss=2**40)
    monkeypatch.setattr(resource, "getrusage", lambda who: peak)
    assert diagram_bytes(Settings(memory_bytes=2**30)) == 2**30 - 2**20
    assert diagram_bytes(Settings()) is None


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_gives_valid_bounds(method: str) -> None:
    """A run without any time left ends with an interval that holds the count."""
    found = count(figure_1(), sensitive="f0", gap=80, method=method, timeout=0, distance=1)
    # The monolithic diagram of two trees is made before the clock is looked at.
    assert found.stop_reason in {StopReason.TIMEOUT, StopReason.COMPLETE}
    assert found.low <= 2 <= found.high
    slow = count(wide_ensemble(), sensitive=0, gap="0.001", method=method, timeout=0, distance=1)
    assert slow.stop_reason is StopReason.TIMEOUT


def wide_ensemble() -> Ensemble:
    """Return an ensemble whose sums are all different, so that diagrams of sums explode."""
    rng = np.random.default_rng(0)
    trees = []
    for f in range(1, 25):
        for t in range(2):
            a, b, c = rng.normal(size=3)
            trees.append((f, float(t), (0, float(t), a, b), c))
    return ensemble_of(*trees)


def test_profile_holds_the_pairs() -> None:
    """A profile lists every pair of masks with its number of solutions, and the masks' bounds."""
    found = count(
        figure_1(), sensitive="f0", gap=80, method="xcount-exact-union", profile=True, distance=1
    )
    assert found.profile is not None
    assert [pair.low for pair in found.profile.pairs] == [1, 0]
    assert [mask.low for mask in found.profile.masks] == [1, 1, 0]
    assert all(mask.exact for mask in found.profile.masks)


def test_progress_is_reported() -> None:
    """A listener sees the bounds close in on the count."""
    seen: list[Any] = []
    count(figure_1(), sensitive="f0", gap=80, method="xcount", on_progress=seen.append, distance=1)
    assert [progress.fraction for progress in seen] == sorted({p.fraction for p in seen})
    assert seen[-1].fraction == 1.0
    assert seen[-1].low == seen[-1].high == 2


def test_too_many_masks_are_refused() -> None:
    """A product of sensitive features with millions of masks is refused before anything is made."""
    stumps = [(f, float(t), 1.0, 0.0) for f in range(3) for t in range(120)]
    with pytest.raises(BudgetError, match="masks"):
        count(ensemble_of(*stumps), sensitive=[0, 1, 2], gap=1, method="xcount", distance=1)


def test_problem_can_be_counted_twice() -> None:
    """A problem keeps nothing of a run: the second count is the first."""
    from xcount.answers.count import solve

    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", 80, distance=1))
    assert solve(problem, Settings(), "xcount").count == 2
    assert solve(problem, Settings(), "add-baseline").count == 2
