"""Direction, size and curve of a question: against enumeration, exact and sampled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_classifier, random_ensemble

import xcount
from xcount.answers import effects
from xcount.answers.explanation import Explanation
from xcount.model.ensemble import Ensemble
from xcount.model.examples import adult_model_path, figure_1

Swing = tuple[Fraction, Fraction]


def swings(
    ensemble: Ensemble, sensitive: list[int], distance: int | None, question: dict[str, Any]
) -> list[Swing]:
    """Return how far every region can rise and fall, by definition."""
    flip, output = question.get("flip", False), 0
    in_probability = "probability_gap" in question or (flip and ensemble.probability == "sigmoid")

    def size(before: list[Fraction], after: list[Fraction]) -> Fraction:
        if in_probability:
            low, high = (oracle.probability(ensemble, v, output) for v in (before, after))
            return high - low
        return after[output] - before[output]

    found = oracle.neighbourhoods(
        ensemble,
        sensitive,
        distance,
        False,
        lambda point: oracle.margins(ensemble, point, None),
    )
    pairs = []
    for own, others in found.values():
        counted = [o for o in others if not flip or (o[0] > 0) != (own[0] > 0)]
        moves = [Fraction(0), *(size(own, other) for other in counted)]
        pairs.append((max(moves), -min(moves)))
    return pairs


def questions(seed: int) -> Iterator[tuple[Ensemble, list[int], int | None, dict[str, Any]]]:
    """Yield questions of every kind to a small model."""
    rng = np.random.default_rng([seed, 16])
    ensemble = random_ensemble(seed, max_features=3)
    some = sorted(
        rng.choice(
            ensemble.n_features, int(rng.integers(1, ensemble.n_features + 1)), replace=False
        ).tolist()
    )
    distance = [1, 2, None][int(rng.integers(3))]
    direction = str(rng.choice(["any", "up", "down"]))
    common = {"direction": direction}
    yield ensemble, some, distance, {"gap": "0.5", **common}
    binary = replace(ensemble, task="binary", probability="sigmoid", decides_at=0.0)
    yield binary, some, distance, {"probability_gap": "0.1", **common}
    yield binary, some, distance, {"flip": True, **common}


def explanation_of(ensemble: Ensemble, sensitive: list[int], **question: Any) -> Explanation:
    """Return the explanation of a count."""
    found = xcount.count(ensemble, sensitive=sensitive, explain=True, **question).explanation
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(40))
def test_small_domains_are_explained_as_by_definition(seed: int) -> None:
    """Shares, mean, quantiles and every point of the curve are those of enumeration."""
    for ensemble, sensitive, distance, question in questions(seed):
        expected = swings(ensemble, sensitive, distance, question)
        found = explanation_of(
            ensemble, sensitive, distance="any" if distance is None else distance, **question
        )
        (effect,), (curve,) = found.effects, found.curves
        n, direction = len(expected), question["direction"]
        sizes = sorted(
            {"any": max(up, down), "up": up, "down": down}[direction] for up, down in expected
        )
        gap = Fraction(question.get("gap", question.get("probability_gap", 0)))
        for place, share in ((0, effect.up), (1, effect.down)):
            assert between(share.low, sum(s[place] > gap for s in expected) / n, share.high)
        for point in curve.points:
            exceeding = sum(size > Fraction(point.gap_text) for size in sizes)
            assert between(point.low, exceeding / n, point.high)
        if question.get("flip"):
            sizes = [size for size in sizes if size > 0]
        assert (effect.mean is None) == (not sizes)
        if effect.mean is not None:
            assert effect.mean.value == pytest.approx(float(sum(sizes) / len(sizes)), rel=1e-9)
            for quantile in effect.quantiles:
                place = math.ceil(Fraction(str(quantile.level)) * len(sizes)) - 1
                assert quantile.value == pytest.approx(float(sizes[place]), rel=1e-9, abs=1e-12)


def between(low: float, value: float, high: float) -> bool:
    """Tell whether a share is in its interval, which floats may round; ties may leave it open."""
    return low - 1e-9 <= value <= high + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_whole_numbers_leave_nothing_open(seed: int) -> None:
    """Where sums fit 64 bits, every share is exact, ties with a gap included."""
    ensemble = random_ensemble(seed, max_features=3, scale="ties")
    found = explanation_of(ensemble, [0], gap="0.5", distance="any")
    expected = swings(ensemble, [0], None, {"gap": "0.5"})
    (curve,), (effect,) = found.curves, found.effects
    assert curve.exact
    assert effect.exact
    assert curve.confidence == effect.confidence == 1
    for point in curve.points:
        assert point.share == sum(max(s) > Fraction(point.gap_text) for s in expected) / len(
            expected
        )


def test_the_curve_agrees_with_the_count() -> None:
    """At the gap that was asked about, the curve is the count."""
    for gap in ("0", "0.3", "1"):
        for way in ("any", "up"):
            result = xcount.count(figure_1(), sensitive="f0", gap=gap, direction=way, explain=True)
            assert result.explanation is not None
            (curve,) = result.explanation.curves
            (point,) = [p for p in curve.points if p.gap == float(gap)]
            assert (point.low, point.high) == (result.share_low, result.share_high)
            shares = [p.share for p in curve.points]
            assert shares == sorted(shares, reverse=True)


def test_several_classes_are_noted() -> None:
    """A flip between several classes has no size: a note says so, and the count is there."""
    model = next(e for e in map(random_classifier, range(50)) if e.n_outputs > 1)
    result = xcount.count(model, sensitive=[0], flip=True, explain=True)
    assert result.count is not None
    assert result.explanation is not None
    assert "several classes" in result.explanation.notes[0]
    assert result.explanation.effects == ()


def test_too_many_masks_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide groups are counted all the same."""
    monkeypatch.setattr("xcount.counters.swings.MAX_MASKS", 2)
    result = xcount.count(figure_1(), sensitive="f0", gap=80, explain=True)
    assert result.count == 2
    assert result.explanation is not None
    assert "3 masks" in result.explanation.notes[0]


def test_samples_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """All intervals hold together at least as often as the confidence says."""
    model = random_ensemble(3, max_features=4, max_trees=5)
    truth = explanation_of(model, [0], gap="0.5", distance="any")
    assert truth.effects[0].exact
    monkeypatch.setattr(effects, "MAX_REGIONS", 0)
    monkeypatch.setattr(effects, "MAX_SAMPLES", effects.LEAST_SAMPLES)
    wrong, runs = 0, 60
    for seed in range(runs):
        found = xcount.count(
            model, sensitive=[0], gap="0.5", distance="any", explain=True, seed=seed, delta=0.5
        ).explanation
        assert found is not None
        assert found.effects[0].n_samples == effects.LEAST_SAMPLES
        wrong += not _covers(found, truth)
    assert wrong <= 0.5 * runs


def _covers(found: Explanation, truth: Explanation) -> bool:
    sampled, exact = found.effects[0], truth.effects[0]
    known = {point.gap: point.share for point in truth.curves[0].points}
    pairs: list[tuple[Any, float]] = [
        (sampled.up, exact.up.share),
        (sampled.down, exact.down.share),
        (sampled.mean, exact.mean.value if exact.mean else 0.0),
        *((s, e.value) for s, e in zip(sampled.quantiles, exact.quantiles, strict=True)),
        *((p, known[p.gap]) for p in found.curves[0].points if p.gap in known),
    ]
    shares = {cell.cells: cell.share for cell in exact.cells}
    pairs += [(cell, shares[cell.cells]) for cell in sampled.cells]
    return all(
        interval is not None and between(interval.low, t, interval.high) for interval, t in pairs
    )


def test_answers_do_not_depend_on_threads() -> None:
    """The same seed gives the same samples, however many threads there are."""
    asked: dict[str, Any] = {"sensitive": "sex", "gap": "0.5", "explain": True}
    one, two = (xcount.count(adult_model_path(), jobs=jobs, **asked) for jobs in (1, 2))
    assert one.explanation == two.explanation
