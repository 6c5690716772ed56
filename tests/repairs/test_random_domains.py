"""Repairs of random models on random domains: no change that is allowed breaks the limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import effort
import numpy as np
import pytest
from allowed_worlds import ChangingWorld, random_change, random_changing_world

import xcount
from xcount.errors import QueryError
from xcount.repairs import pair_bounds

pytest.importorskip("clarabel")
SEEDS = range(effort.FIRST_SEED, effort.FIRST_SEED + effort.n_examples(40))


def repaired(seed: int) -> tuple[ChangingWorld, dict[str, Any], xcount.RepairResult | None]:
    """Repair a random model: return its world, the question, and the result if it has regions."""
    world, sensitive = random_changing_world(seed, n_rules=seed % 3)
    change, rng = random_change(seed, world), np.random.default_rng(seed)
    points = list(world.regions().values())
    asked = {"sensitive": sensitive, "distance": None if rng.random() < 0.5 else 1, **change}
    if not points:
        return world, asked, None
    words = {
        **world.words,
        **{key: str(v) if isinstance(v, Fraction) else v for key, v in asked.items()},
        "sensitive": sensitive,
        "distance": asked["distance"],
        "missing": "none" if not world.missing else "auto" if world.closed_missing else "cell",
        "data": np.array([points[i] for i in rng.integers(len(points), size=20)], dtype=float),
    }
    try:
        return world, asked, xcount.repair(world.ensemble, **words)
    except QueryError:  # the domain leaves nothing to change
        return world, asked, None


@pytest.mark.parametrize("seed", SEEDS)
def test_no_allowed_change_breaks_the_limit(seed: int) -> None:
    """Conditions on both ends or one, rules, features that move along, directions, classes."""
    world, asked, result = repaired(seed)
    if result is None:
        return
    assert result.proved
    own = replace(world, ensemble=result.model)
    assert not any(own.sensitive_regions(**asked).values())


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_one_bound_for_all_changes_is_enough(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many pairs of masks, every tree is bounded by its largest difference."""
    monkeypatch.setattr(pair_bounds, "MOST_PAIRS", 0)
    world, asked, result = repaired(seed)
    if result is None:
        return
    assert result.proved
    own = replace(world, ensemble=result.model)
    assert not any(own.sensitive_regions(**asked).values())
    if result.method == "program":
        assert any("one bound stands for all of them" in note for note in result.notes)


def test_fewer_changes_cost_less() -> None:
    """A limit on some starts, or in one direction, changes predictions less than everywhere."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 8, size=(300, 3)).astype(float)
    labels = rows[:, 0] * rows[:, 1] - 3 * rows[:, 2] + rng.normal(size=300)
    parameters = {"max_depth": 3, "eta": 0.5, "nthread": 1}
    model = xgboost.train(parameters, xgboost.DMatrix(rows, labels), 5)
    asked: dict[str, Any] = {"sensitive": [0], "gap": 1, "data": rows}
    ends: dict[str, Any] = {"where_from": "f0 >= 5", "where_to": "f0 < 5"}
    results = [xcount.repair(model, **asked, **ends, direction="up")]
    results += [xcount.repair(model, **asked, **ends), xcount.repair(model, **asked)]
    assert all(result.proved for result in results)
    costs = [r.moves.root_mean_square for r in results if r.moves is not None]
    assert costs[0] < 0.5 * costs[1]
    assert costs[1] <= costs[2] * (1 + 1e-6)
