"""Direction, size and curve from samples and searches: intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from strategies import random_ensemble
from swings_oracle import CLASSIFIERS, between, explanation_of, questions, random_rows, swings

import xcount
from xcount.answers.explain import exact_curve, explorer, searched, spectrum
from xcount.answers.explanation import Explanation
from xcount.counters.sampling.intervals import mean_interval, quantile_ranks, share_intervals
from xcount.model.examples import adult_model_path, figure_1
from xcount.support.interval import Interval, Number


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_many_masks_are_searched(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Direction, size and curve come from searches, with intervals that hold the truth."""
    for ensemble, sensitive, distance, question in questions(seed):
        how = {"distance": "any" if distance is None else distance, "delta": 1e-3, **question}
        truth = explanation_of(ensemble, sensitive, **how)
        with monkeypatch.context() as patch:
            patch.setattr("xcount.counters.swings.MAX_MASKS", 0)
            patch.setattr(searched, "MAX_SAMPLES", 256)
            found = explanation_of(ensemble, sensitive, **how)
        (effect,), (exact,) = found.effects, truth.effects
        assert effect.n_samples == 256
        assert effect.unit == exact.unit
        for share, known in ((effect.up, exact.up), (effect.down, exact.down)):
            assert between(share.low, known.least, share.high)
        curve = {point.gap_text: point for point in truth.curves[0].points}
        for point in found.curves[0].points:
            if (same := curve.get(point.gap_text)) is not None:  # floats may leave a tie open
                assert point.share.low - 1e-9 <= same.share.high
                assert same.share.low <= point.share.high + 1e-9
        if effect.mean is not None and exact.mean is not None:
            assert effect.mean.low <= exact.mean.least <= effect.mean.high
            for own, true in zip(effect.quantiles, exact.quantiles, strict=True):
                low, true_size, high = (
                    float(n) for n in (own.size.low, true.size.least, own.size.high)
                )
                assert low <= true_size * (1 + 1e-12) <= high * (1 + 1e-9) + 1e-12


def test_too_many_masks_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be searched is counted all the same."""
    monkeypatch.setattr("xcount.counters.swings.MAX_MASKS", 2)
    monkeypatch.setattr("xcount.counters.swings.MANY_MASKS", 2)
    result = xcount.count(
        figure_1(), sensitive="f0", gap=80, explain=True, rule=["f1 < 3 -> f0 < 4"]
    )
    assert result.count is not None
    assert result.explanation is not None
    assert "masks are too many" in result.explanation.notes[0]


def _with_few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every question one whose masks are many, and every region one that takes long."""
    monkeypatch.setattr("xcount.counters.swings.MAX_MASKS", 0)
    monkeypatch.setattr(explorer, "MAX_REGIONS", 0)
    monkeypatch.setattr(explorer, "MAX_ROWS_SECONDS", 0.0)
    monkeypatch.setattr(explorer, "LONG_SECONDS", 1e-9)
    monkeypatch.setattr(exact_curve, "MAX_SECONDS", 0)


def _by_measure(*both: Explanation) -> list[list[Explanation]]:
    """Return what both say of each measure."""
    parts = [slice(number, number + 1) for number in range(len(both[0].effects))]
    return [[Explanation(effects=e.effects[i], curves=e.curves[i]) for e in both] for i in parts]


SOFTMAX = {"probability_gap": "0.1", "class_": "1", "distance": "any"}


@pytest.mark.filterwarnings("ignore:no tree of the model tests")
@pytest.mark.parametrize("question", [{"flip": True, "distance": "any"}, SOFTMAX])
@pytest.mark.parametrize("number", range(3))
def test_many_masks_of_several_classes_are_sampled(
    number: int, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be searched is evaluated in a few regions, and in a few of the rows."""
    model = replace(CLASSIFIERS[number], probability="softmax")
    rows = random_rows(model, 50, number)
    how: dict[str, Any] = {"measures": "rows", "data": rows, "delta": 1e-3, **question}
    truth = explanation_of(model, [0], **how)
    with monkeypatch.context() as patch:
        _with_few_samples(patch)
        found = explanation_of(model, [0], **how)
    assert found.notes == truth.notes
    for one, exact in zip(found.effects, truth.effects, strict=True):
        assert (one.n_samples, exact.n_samples) == (explorer.FEW_SAMPLES, None)
    assert all(_covers(*pair) for pair in _by_measure(found, truth))


@pytest.mark.parametrize("seed", range(5, 8))
def test_many_masks_within_rules_are_sampled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules leave no interval to search in: a few of the regions that exist are evaluated."""
    ensemble = random_ensemble(seed, max_features=3, categorical=False, scale="ties")
    rows = np.random.default_rng(seed).normal(0, 3, (60, ensemble.n_features))
    how: dict[str, Any] = {"gap": "0.5", "distance": "any", "delta": 1e-3, "data": rows}
    how |= {"rule": ["f0 < 0 -> f1 >= 0"], "measures": ("marginals", "rows")}
    truth = explanation_of(ensemble, [0], **how)
    _with_few_samples(monkeypatch)
    found = explanation_of(ensemble, [0], **how)
    assert [effect.n_samples for effect in found.effects] == [explorer.FEW_SAMPLES] * 3
    assert all(_covers(*pair) for pair in _by_measure(found, truth))


def test_samples_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """All intervals hold together at least as often as the confidence says."""
    model = random_ensemble(3, max_features=4, max_trees=5)
    truth = explanation_of(model, [0], gap="0.5", distance="any")
    assert truth.effects[0].exact
    monkeypatch.setattr(explorer, "MAX_REGIONS", 0)
    monkeypatch.setattr(exact_curve, "MAX_SECONDS", 0)
    monkeypatch.setattr(explorer, "MAX_SAMPLES", explorer.LEAST_SAMPLES)
    wrong, runs = 0, 12
    for seed in range(runs):
        found = xcount.count(
            model, sensitive=[0], gap="0.5", distance="any", explain=True, seed=seed, delta=0.5
        ).explanation
        assert found is not None
        assert found.effects[0].n_samples == explorer.LEAST_SAMPLES
        wrong += not _covers(found, truth)
    assert wrong <= 0.5 * runs


def test_all_intervals_share_one_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all intervals may be wrong by adds up to delta: neither twice as much, nor half."""
    spent: list[float] = []

    def shares(hits: Any, n: int, delta: float) -> Any:
        ways = 1 if len(spent) % n_calls else 2  # of a curve: what is surely above, and what may be
        spent.append(len(hits) * delta / ways)
        return share_intervals(hits, n, delta)

    def ranks(level: float, n: int, delta: float) -> tuple[int, int]:
        spent.append(delta)
        return quantile_ranks(level, n, delta)

    def mean(values: Any, most: float, delta: float) -> tuple[float, float]:
        spent.append(delta)
        return mean_interval(values, most, delta)

    n_calls = 1 + 1 + (len(spectrum.LEVELS) - 1) + 1  # shares, mean, quantiles, cells
    monkeypatch.setattr(explorer, "MAX_REGIONS", 0)
    monkeypatch.setattr(exact_curve, "MAX_SECONDS", 0)
    monkeypatch.setattr(spectrum, "share_intervals", shares)
    monkeypatch.setattr(spectrum, "quantile_ranks", ranks)
    monkeypatch.setattr(spectrum, "mean_interval", mean)
    model = random_ensemble(3, max_features=4, max_trees=5)
    bounds = dict.fromkeys(model.feature_names, (0.0, 1.0))
    for measures in ((), ("volume",)):
        spent.clear()
        explanation_of(
            model, [0], gap="0.5", delta=0.3, measures=measures, bounds=bounds if measures else None
        )
        assert len(spent) == n_calls * (1 + len(measures))
        assert sum(spent) == pytest.approx(0.3)


@pytest.mark.parametrize("seed", range(12))
def test_a_visit_makes_shares_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where regions are sampled but soon visited, curve and directions are those of enumeration."""
    monkeypatch.setattr(explorer, "MAX_REGIONS", 0)
    monkeypatch.setattr(explorer, "MAX_SAMPLES", explorer.LEAST_SAMPLES)
    for ensemble, sensitive, distance, question in questions(seed):
        if "gap" not in question:
            continue
        expected = swings(ensemble, sensitive, distance, question)
        found = explanation_of(
            ensemble, sensitive, distance="any" if distance is None else distance, **question
        )
        (effect,), (curve,) = found.effects, found.curves
        places: dict[str, Any] = {"any": max, "up": itemgetter(0), "down": itemgetter(1)}
        sizes = [places[question["direction"]](swing) for swing in expected]
        assert curve.exact
        assert effect.n_samples == explorer.LEAST_SAMPLES
        for point in curve.points:
            exceeding = sum(size > Fraction(point.gap_text) for size in sizes)
            assert point.share.least == exceeding / len(expected)
        assert effect.up.value == sum(up > Fraction(1, 2) for up, _ in expected) / len(expected)


def _covers(found: Explanation, truth: Explanation) -> bool:
    sampled, exact = found.effects[0], truth.effects[0]
    known = {point.gap: point.share.least for point in truth.curves[0].points}
    pairs: list[tuple[Interval, Number]] = [
        (sampled.up, exact.up.least),
        (sampled.down, exact.down.least),
        *((s.size, e.size.least) for s, e in zip(sampled.quantiles, exact.quantiles, strict=False)),
        *((p.share, known[p.gap]) for p in found.curves[0].points if p.gap in known),
    ]
    if sampled.mean is not None and exact.mean is not None:  # neither of a flip that is not there
        pairs.append((sampled.mean, exact.mean.least))
    shares = {(cell.cells, cell.class_label): cell.share.least for cell in exact.cells}
    listed = [(cell, (cell.cells, cell.class_label)) for cell in sampled.cells]
    pairs += [(cell.share, shares[key]) for cell, key in listed if key in shares]
    return all(between(interval.low, true, interval.high) for interval, true in pairs)


def test_answers_do_not_depend_on_threads() -> None:
    """The same seed gives the same samples, however many threads there are."""
    asked: dict[str, Any] = {"sensitive": "sex", "gap": "0.5", "explain": True}
    one, two = (xcount.count(adult_model_path(), jobs=jobs, **asked) for jobs in (1, 2))
    assert one.explanation == two.explanation


def test_rules_are_kept_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are drawn from the regions that exist, each as often as any other."""
    ensemble = random_ensemble(5, max_features=3, categorical=False, scale="ties")
    asked: dict[str, Any] = {"sensitive": [0], "distance": "any", "rule": ["f0 < 0 -> f1 >= 0"]}
    exact = explanation_of(ensemble, gap="0.5", **asked)
    monkeypatch.setattr(explorer, "MAX_REGIONS", 0)
    sampled = explanation_of(ensemble, gap="0.5", **asked)
    assert sampled.effects[0].n_samples is not None
    assert _covers(sampled, exact)
