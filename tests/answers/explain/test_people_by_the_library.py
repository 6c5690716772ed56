"""Rows by the libraries' predictions: shares, direction, size, curve and group rates.

Nothing here knows cells, leaves or regions: every row is predicted as it is and with every other
value of the sensitive feature, by the library that trained the model.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trained import MAKERS, Floats, Trained, moved

import xcount
from xcount.answers.result import CountResult


def asked(trained: Trained, name: str, kind: str, **question: Any) -> CountResult:
    """Ask about all rows, with an explanation."""
    if kind == "regression" and question.get("flip"):
        question["cutoff"] = "0.05"
    return xcount.count(
        trained.model,
        sensitive=name,
        distance="any",
        measures="rows",
        data=trained.rows,
        explain=True,
        favourable="1" if kind == "three classes" else None,
        **question,
    )


def quantile(sizes: Floats, level: float) -> float:
    """Return the least size that such a share does not exceed."""
    return float(np.sort(sizes)[math.ceil(Fraction(str(level)) * len(sizes)) - 1])


@pytest.mark.parametrize("name", ["a", "k"])
@pytest.mark.parametrize("kind", MAKERS)
def test_sizes_and_curves_are_those_of_the_predictions(kind: str, name: str) -> None:
    """Of a gap: the share, up and down, mean, quantiles, and every point of the curve."""
    trained = MAKERS[kind]()
    own = trained.output(trained.rows).astype(np.float64)
    others = np.array([trained.output(t).astype(np.float64) for t in moved(trained.rows, name)])
    up, down = others.max(axis=0) - own, own - others.min(axis=0)
    size = np.maximum(up, down)
    gap = f"{0.9 * np.median(size[size > 1e-6]):.4f}"  # some rows are beyond it, others are not
    change = {"gap" if kind in ("regression", "forest") else "probability_gap": gap}
    change |= {"class_": "1"} if kind == "three classes" else {}
    result = asked(trained, name, kind, **change)
    assert result.explanation is not None
    effect, curve = result.explanation.effects[1], result.explanation.curves[1]
    assert (effect.measure, effect.exact, curve.confidence) == ("rows", True, 1)
    assert result.measures["rows"].share == (size > float(gap)).mean()
    assert effect.up.value == (up > float(gap)).mean()
    assert effect.down.value == (down > float(gap)).mean()
    assert effect.mean is not None
    assert effect.mean.value == pytest.approx(size.mean(), abs=1e-6)
    for found in effect.quantiles:
        assert found.size.value == pytest.approx(quantile(size, found.level), abs=1e-6)
    for point in curve.points:
        unsure = (np.abs(size - point.gap) < 1e-6).mean()  # XGBoost predicts in 32 bits
        assert point.share.least == pytest.approx((size > point.gap).mean(), abs=unsure)


@pytest.mark.parametrize("name", ["a", "k"])
@pytest.mark.parametrize("kind", MAKERS)
def test_flips_and_rates_are_those_of_the_decisions(kind: str, name: str) -> None:
    """Of a flip: the share, to which side, and how often each group gets the decision."""
    trained = MAKERS[kind]()
    result = asked(trained, name, kind, flip=True)
    own = trained.decide(trained.rows)
    others = np.array([trained.decide(t) for t in moved(trained.rows, name)])
    assert result.measures["rows"].share == (others != own).any(axis=0).mean()
    assert result.explanation is not None
    effect, rates = result.explanation.effects[1], result.explanation.rates[-1]
    assert effect.up.value == (others > own).any(axis=0).mean()
    assert effect.down.value == (others < own).any(axis=0).mean()
    assert (rates.measure, rates.exact) == ("rows", True)
    values = trained.rows[name].to_numpy()
    expected = {value: (own == 1)[values == value].mean() for value in sorted(set(values))}
    assert sorted(group.rate.least for group in rates.cells) == sorted(expected.values())
    assert rates.ratio.value == min(expected.values()) / max(expected.values())
