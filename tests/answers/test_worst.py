"""The largest change is that of the definition, with a pair that attains it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from domains import random_world
from strategies import random_ensemble
from swings_oracle import swings
from test_changes import QUESTIONS
from test_only_starts import closed_categories, problem_of, truth_of

import xcount
from xcount.answers.worst import WorstResult
from xcount.counters import worst as worst_search
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.counters.worst import largest_change, no_change_exceeds_gap
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import adult_model_path, figure_1
from xcount.problem.problem import Problem


def asked(seed: int) -> tuple[Ensemble, list[int], int | None, str]:
    """Return a small model, sensitive features, a distance and a direction."""
    rng = np.random.default_rng([seed, 31])
    ensemble = replace(
        random_ensemble(seed, max_features=4),
        task="binary",
        probability="sigmoid",
        decides_at=0.0,
    )
    n = int(rng.integers(1, min(3, ensemble.n_features) + 1))
    chosen = sorted(rng.choice(ensemble.n_features, n, replace=False).tolist())
    distance = [1, 2, 3, None, None][int(rng.integers(5))]
    return ensemble, chosen, distance, str(rng.choice(["any", "up", "down"]))


def by_definition(
    ensemble: Ensemble, sensitive: list[int], distance: int | None, direction: str, what: str
) -> Fraction:
    """Return the largest change, by comparing all regions with all their neighbours."""
    question = {"probability_gap": "0.1"} if what == "probability" else {"gap": "1"}
    found = swings(ensemble, sensitive, distance, question)
    ups, downs = [up for up, _ in found], [down for _, down in found]
    return max({"any": ups + downs, "up": ups, "down": downs}[direction])


def check_pair(result: WorstResult, ensemble: Ensemble) -> None:
    """The pair differs in sensitive features only, and its outputs differ by the largest change."""
    pair = result.pair
    if pair is None:
        assert result.largest == 0
        return
    for name, a, b in zip(pair.features, pair.point, pair.other, strict=True):
        assert name in result.sensitive or a == b or (np.isnan(a) and np.isnan(b))
    before, after = (oracle.margins(ensemble, p, None) for p in (pair.point, pair.other))
    if result.of == "probability":
        low, high = (oracle.probability(ensemble, v, 0) for v in (before, after))
        change = high - low
    else:
        change = after[0] - before[0]
    if result.direction != "any":
        assert (change > 0) == (result.direction == "up")
    assert float(abs(change)) == pytest.approx(result.largest, abs=1e-12)
    assert result.distance is None or pair.distance <= result.distance


@pytest.mark.parametrize("seed", range(60))
def test_the_largest_change_is_that_of_the_definition(seed: int) -> None:
    """Margins agree to the last bit, probabilities up to the tolerance; the pair attains them."""
    ensemble, sensitive, distance, direction = asked(seed)
    question: dict[str, Any] = {"distance": distance, "direction": direction}
    margin = xcount.worst(ensemble, sensitive=sensitive, **question)
    expected = by_definition(ensemble, sensitive, distance, direction, "margin")
    assert margin.exact
    assert margin.largest == margin.low == margin.high == float(expected)
    check_pair(margin, ensemble)
    chance = xcount.worst(ensemble, sensitive=sensitive, probability=True, **question)
    expected = by_definition(ensemble, sensitive, distance, direction, "probability")
    assert chance.exact
    assert chance.largest == pytest.approx(float(expected), abs=1e-11)
    check_pair(chance, ensemble)


@pytest.mark.parametrize("seed", range(40))
def test_a_domain_bounds_both_ends_of_a_change(seed: int) -> None:
    """In a world with conditions, groups and rules, something changes as much, nothing more."""
    world = random_world(seed, n_rules=seed % 3)
    rng = np.random.default_rng([seed, 32])
    n = int(rng.integers(1, min(2, len(world.features)) + 1))
    names = [str(name) for name in rng.choice(world.features, n, replace=False)]
    distance = [1, 2, None][int(rng.integers(3))]
    try:
        found = xcount.worst(
            world.ensemble,
            sensitive=names,
            distance=distance,
            missing="cell" if world.missing else "none",
            **world.words,
        )
    except QueryError:  # nothing can change in this domain
        assert not any(world.changes_somewhere(name, names) for name in names)
        return
    assert found.exact
    assert found.low == found.high
    more, _ = world.count(names, distance, None, lambda a, b: float(abs(b - a)) > found.largest)
    same, _ = world.count(names, distance, None, lambda a, b: float(abs(b - a)) == found.largest)
    assert more == 0
    assert found.largest == 0 or same > 0


@pytest.mark.parametrize("seed", range(60))
def test_cells_that_may_only_be_left_are_starts_but_no_targets(seed: int) -> None:
    """No region changes by more; some region changes by more than a little less."""
    ensemble, words, change = QUESTIONS["gap"](seed + 700)
    closed = closed_categories(ensemble, seed)
    found = largest_change(problem_of(ensemble, words, change, closed), Settings(jobs=1))
    assert found.exact

    def n_sensitive(gap: Fraction) -> int:
        return sum(truth_of(ensemble, words, {**change, "gap": gap}, closed).values())

    assert n_sensitive(found.low) == 0
    if found.low > 0:
        assert n_sensitive(found.low * (1 - Fraction(1, 10**12))) > 0


@pytest.mark.parametrize("scale", ["ties", "huge-and-tiny", "subnormal"])
def test_sums_of_any_width_are_compared_exactly(scale: str) -> None:
    """Leaves of 1e-30 beside leaves of 1e30 neither vanish nor hide a tie."""
    for seed in range(25):
        ensemble = random_ensemble(seed + 9000, max_features=3, scale=scale)
        found = xcount.worst(ensemble, sensitive=[0], distance=None)
        assert found.exact
        expected = by_definition(ensemble, [0], None, "any", "margin")
        assert found.largest == float(expected)


def test_the_answer_is_the_same_for_any_number_of_threads() -> None:
    """Numbers, pair and work."""
    found = [
        xcount.worst(adult_model_path(), sensitive="age,sex", jobs=jobs, timeout=120)
        for jobs in (1, 2, 3)
    ]
    one = found[0]
    for each in found[1:]:
        assert (each.largest, each.pair, each.n_boxes) == (one.largest, one.pair, one.n_boxes)


def test_a_count_at_the_largest_change_is_zero_and_below_it_is_not() -> None:
    """The two commands agree."""
    found = xcount.worst(figure_1(), sensitive="f0")
    assert xcount.count(figure_1(), sensitive="f0", gap=found.largest).count == 0
    assert xcount.count(figure_1(), sensitive="f0", gap=found.largest - 1).count


def test_a_limit_leaves_bounds() -> None:
    """A search without time has bounds that hold, and says why it ended."""
    whole = xcount.worst(adult_model_path(), sensitive="age")
    cut = xcount.worst(adult_model_path(), sensitive="age", timeout=0)
    assert whole.exact
    assert not cut.exact
    assert cut.stop_reason is StopReason.TIMEOUT
    assert cut.exit_status == 3
    assert cut.low <= whole.largest <= cut.high


def test_an_interrupt_leaves_bounds() -> None:
    """Ctrl-C ends the search with what it has found."""

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    found = xcount.worst(
        adult_model_path(), sensitive="age,hours_per_week,education_num", on_progress=interrupt
    )
    assert found.stop_reason in (StopReason.INTERRUPTED, StopReason.COMPLETE)
    assert found.low <= found.high


def test_the_library_confirms_the_pair() -> None:
    """Its own margins differ by the largest change, up to its rounding."""
    pytest.importorskip("xgboost")
    found = xcount.worst(adult_model_path(), sensitive="sex")
    assert found.confirmed
    assert found.pair is not None
    assert found.pair.library_margins is not None
    before, after = found.pair.library_margins
    assert abs(after - before) == pytest.approx(found.largest, abs=1e-4)
    assert xcount.worst(figure_1(), sensitive="f0").confirmed is None


def test_json_can_be_read_back() -> None:
    """A result survives JSON."""
    found = xcount.worst(figure_1(), sensitive="f0", where=["f1 >= 2.5"])
    assert WorstResult.from_dict(found.to_dict()) == found


def test_the_probability_of_several_classes_is_refused() -> None:
    """With what to ask instead."""
    trees = figure_1().trees
    classes = replace(
        figure_1(),
        trees=(trees[0], replace(trees[1], output=1)),
        base=(0.0, 0.0),
        task="multiclass",
        probability="softmax",
    )
    with pytest.raises(QueryError, match="leave out --probability"):
        xcount.worst(classes, sensitive="f0", class_=0, probability=True)
    assert xcount.worst(classes, sensitive="f0", class_=1).largest == 85


@pytest.mark.parametrize("seed", range(30))
def test_starts_targets_and_features_that_move_along_are_obeyed(seed: int) -> None:
    """A visit of all regions finds none that changes by more, and some that change by less."""
    ensemble = random_ensemble(seed + 100, max_features=4, categorical=False, scale="ties")
    names = ensemble.feature_names
    if len(names) < 2:
        return
    words: dict[str, Any] = {"sensitive": names[0], "where_from": [f"{names[0]} >= 0"]}
    if seed % 2:
        words["where_to"] = [f"{names[0]} < 1"]
    if seed % 3 == 0:
        words["where"] = [f"{names[1]} >= -1"]
    direction = ("any", "up", "down")[seed % 3]
    try:
        found = xcount.worst(ensemble, direction=direction, **words)
    except QueryError:  # the sensitive feature cannot change
        return
    assert found.exact

    def n_sensitive(gap: float) -> int | None:
        return xcount.count(ensemble, gap=gap, direction=direction, method="brute", **words).count

    assert n_sensitive(found.largest) == 0
    if found.largest > 0:
        assert n_sensitive(found.largest - 0.25)


def test_a_short_search_proves_that_no_change_exceeds_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says so at the largest change, and not below it."""
    monkeypatch.setattr(worst_search, "_LEAST_MASKS", 2)
    n_asked = 0
    for seed in range(60):
        ensemble, sensitive, _, direction = asked(seed)
        largest = by_definition(ensemble, sensitive, None, direction, "margin")
        grid = xcount.Grid.of(ensemble)
        if largest == 0 or grid.n_regions > 10**5:
            continue
        for gap, expected in ((largest, True), (largest * Fraction(999, 1000), False)):
            query = xcount.Query.of(ensemble, sensitive, gap, direction=direction)
            problem = Problem(ensemble, grid, query)
            assert no_change_exceeds_gap(problem, Settings(jobs=1)) is expected
        n_asked += 1
    assert n_asked > 30


def test_a_gap_above_the_largest_change_is_an_exact_zero_at_once() -> None:
    """For any change of two features with thousands of masks, too."""
    found = xcount.worst(adult_model_path(), sensitive="age,sex")
    counted = xcount.count(adult_model_path(), sensitive="age,sex", gap=found.largest + 0.001)
    assert (counted.count, counted.exact) == (0, True)
    assert "n_steps" not in counted.details
