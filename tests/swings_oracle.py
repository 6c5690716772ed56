"""Direction and size by definition: how far every region of a small model can rise and fall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
from numpy.typing import NDArray
from strategies import random_classifier, random_ensemble

import xcount
from xcount.answers.explanation import Explanation
from xcount.model.ensemble import Ensemble
from xcount.support.interval import Number

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


def between(low: Number, value: Number, high: Number) -> bool:
    """Tell whether a share is in its interval, which floats may round; ties may leave it open."""
    return low - 1e-9 <= value <= high + 1e-9


CLASSIFIERS = [e for e in map(random_classifier, range(60)) if e.n_outputs > 1]


def random_rows(ensemble: Ensemble, n: int, seed: int) -> NDArray[np.float64]:
    """Return rows of numbers and categories that the model knows."""
    rng = np.random.default_rng([seed, 17])
    columns = [
        rng.integers(0, len(f.categories), n).astype(float)
        if f.categories is not None
        else rng.normal(0, 3, n)
        for f in ensemble.features
    ]
    return np.stack(columns, axis=1)
