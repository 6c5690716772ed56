"""Direction, size and curve of a question: against enumeration, and the library on rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from measure_problems import mixture_of
from strategies import random_ensemble
from swings_oracle import CLASSIFIERS, between, explanation_of, questions, random_rows, swings

import xcount
from xcount.answers.explain import effects
from xcount.errors import QueryError
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.runs import task as tasks
from xcount.runs.audit import AuditResult
from xcount.support.interval import Interval


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
            assert between(point.share.low, exceeding / n, point.share.high)
        if question.get("flip"):
            sizes = [size for size in sizes if size > 0]
        assert (effect.mean is None) == (not sizes)
        if effect.mean is not None:
            assert effect.mean.value == pytest.approx(float(sum(sizes) / len(sizes)), rel=1e-9)
            for quantile in effect.quantiles:
                place = math.ceil(Fraction(str(quantile.level)) * len(sizes)) - 1
                assert quantile.size.value == pytest.approx(
                    float(sizes[place]), rel=1e-9, abs=1e-12
                )


def test_what_floats_leave_open_is_guaranteed() -> None:
    """Sums beyond 64 bits may leave a tie open: the bounds hold for certain, nothing is sampled."""
    ensemble = random_ensemble(8, max_features=3, scale="huge-and-tiny")
    for gap in ("0", "1e-31", "1"):
        found = explanation_of(ensemble, [0], gap=gap, distance="any")
        expected = swings(ensemble, [0], None, {"gap": gap})
        (effect,), (curve,) = found.effects, found.curves
        assert (effect.confidence, curve.confidence, effect.n_samples) == (1, 1, None)
        rises = sum(up > Fraction(gap) for up, _ in expected) / len(expected)
        assert between(effect.up.low, rises, effect.up.high)


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
        assert point.share.least == sum(max(s) > Fraction(point.gap_text) for s in expected) / len(
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
            assert (point.share.low, point.share.high) == (result.share_low, result.share_high)
            shares = [p.share.least for p in curve.points]
            assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("number", range(min(20, len(CLASSIFIERS))))
@pytest.mark.parametrize("distance", [1, None])
def test_flips_between_classes_are_those_of_enumeration(number: int, distance: int | None) -> None:
    """Up to a later class, down to an earlier one; which class is decided in which cells."""
    model = CLASSIFIERS[number]
    flip = Query.of(model, [0], flip=True).change
    found = explanation_of(model, [0], flip=True, distance="any" if distance is None else distance)
    (effect,), (curve,) = found.effects, found.curves
    near = oracle.neighbourhoods(
        model, [0], distance, False, lambda point: oracle.margins(model, point, None)
    )
    assert isinstance(flip, Flip)
    ways = [
        (flip.decision(own), {flip.decision(other) for other in others})
        for own, others in near.values()
    ]
    up = sum(max({before, *after}) > before for before, after in ways)
    down = sum(min({before, *after}) < before for before, after in ways)
    assert (effect.up.value, effect.down.value) == (up / len(ways), down / len(ways))
    flips = sum(before != each for before, after in ways for each in list(after - {before})[:1])
    assert curve.points[0].share.value == pytest.approx(flips / len(ways))
    assert all(cell.class_label is not None for cell in effect.cells)
    if distance is None and effect.mean is not None:
        rises = [
            lead
            for own, others in near.values()
            if (lead := _largest_lead(model, flip, own, others, effect.unit)) > 0
        ]
        assert effect.mean.value == pytest.approx(sum(rises) / len(rises), rel=1e-6, abs=1e-12)


def _largest_lead(model: Ensemble, flip: Flip, own: Any, others: Any, unit: str) -> float:
    """Return half of the largest change of a lead that flips the decision."""

    def value(margins: Any, k: int) -> float:
        return float(margins[k] if unit == "margin" else oracle.probability(model, margins, k))

    before, found = flip.decision(own), [0.0]
    for other in others:
        after = flip.decision(other)
        if after != before:
            leads = [value(m, after) - value(m, before) for m in (own, other)]
            found.append(max(5e-324, (leads[1] - leads[0]) / 2))
    return max(found)


def weighed(problem: Problem, weighing: Weighing, name: str) -> dict[tuple[int, ...], float]:
    """Return the weight of every region under a measure: the product of its cells' weights."""
    (component,) = mixture_of(name, problem, weighing).components
    regions = itertools.product(*(range(n) for n in problem.grid.cell_counts))
    return {
        r: math.prod(float(w[c]) for w, c in zip(component.cell_weights, r, strict=True))
        for r in regions
    }


@pytest.mark.filterwarnings("ignore:no tree of the model tests")
@pytest.mark.parametrize("seed", range(12))
def test_measures_are_explained_as_by_definition(seed: int) -> None:
    """Volume, marginals and rows: weighted sums over all regions, and over all rows."""
    ensemble = random_ensemble(seed, max_features=3, scale="ties")
    rows = random_rows(ensemble, 30, seed)
    names = ("volume", "marginals", "rows")
    asked: dict[str, Any] = {"sensitive": [0], "gap": "0.5", "distance": "any", "explain": True}
    result = xcount.count(ensemble, measures=names, data=rows, **asked)
    assert result.explanation is not None
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], "0.5", distance=None))
    weighing = Weighing.of(ensemble, names, rows)
    moves = dict(zip(_regions(problem), swings(ensemble, [0], None, {"gap": "0.5"}), strict=True))
    for effect, curve in zip(result.explanation.effects, result.explanation.curves, strict=True):
        weights = {region: 1 / len(moves) for region in moves}
        if effect.measure in ("volume", "marginals"):
            weights = weighed(problem, weighing, effect.measure)
        elif effect.measure == "rows":
            weights = dict.fromkeys(moves, 0.0)
            for cells in problem.grid.cells_of(rows).tolist():
                weights[tuple(cells)] += 1 / len(rows)
        sizes = [(max(moves[region]), weight) for region, weight in weights.items()]
        for point in curve.points:
            true = math.fsum(w for size, w in sizes if size > Fraction(point.gap_text))
            assert point.share.least == pytest.approx(true, abs=1e-9)
        up = math.fsum(w for r, w in weights.items() if moves[r][0] > Fraction(1, 2))
        assert effect.exact
        assert effect.up.value == pytest.approx(up, abs=1e-9)
        assert effect.mean is not None
        mean = math.fsum(float(size) * w for size, w in sizes)
        assert effect.mean.value == pytest.approx(mean, abs=1e-9)


def _regions(problem: Problem) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(n) for n in problem.grid.cell_counts)))


@pytest.mark.parametrize("seed", range(8))
def test_rules_are_kept(seed: int) -> None:
    """In a domain with rules the curve is that of the counts at its gaps, exact and sampled."""
    ensemble = random_ensemble(seed, max_features=3, categorical=False, scale="ties")
    if ensemble.n_features < 2:
        return
    asked: dict[str, Any] = {
        "sensitive": [0],
        "distance": "any",
        "rule": ["f0 < 0 -> f1 >= 0", "f1 < -1 -> f0 < 2"],
    }
    try:
        result = xcount.count(ensemble, gap="0.5", explain=True, **asked)
    except QueryError:  # the rules leave nothing that could change
        return
    assert result.explanation is not None
    (curve,) = result.explanation.curves
    assert curve.exact
    for point in curve.points[::5]:
        counted = xcount.count(ensemble, gap=point.gap_text, **asked)
        assert point.share.least == counted.share


def test_a_journal_keeps_explanations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a journal has is not explained again; what it lacks is, without a new count."""
    path = tmp_path / "j.jsonl"
    bare = xcount.audit(figure_1(), gaps=[1, 80], journal=path, explain=False)
    assert all(result.explanation is None for result in bare.results)
    monkeypatch.setattr(tasks, "solve", None)  # nothing can be counted any more
    full = xcount.audit(figure_1(), gaps=[1, 80], journal=path, resume=True)
    assert all(result.explanation is not None for result in full.results)
    monkeypatch.setattr(tasks, "explained", None)  # nor explained
    again = xcount.audit(figure_1(), gaps=[1, 80], journal=path, resume=True, max_share="50%")
    for result in again.results:
        assert result.explanation is not None
        assert result.explanation.curves[0].least_gap is not None
    assert AuditResult.from_journal(path).results == again.results


def test_a_journal_explains_what_is_asked_now(tmp_path: Path) -> None:
    """Another favourable decision, or places and rates that were not asked for, are looked for."""
    asked: dict[str, Any] = {"flip": True, "cutoff": 0, "explain": True}
    kept: dict[str, Any] = {"journal": tmp_path / "j.jsonl", "resume": True, **asked}
    xcount.audit(figure_1(), journal=kept["journal"], **asked)
    for favourable in (None, "below", "above"):
        more: dict[str, Any] = {"sensitive": "f0", "favourable": favourable}
        fresh = xcount.audit(figure_1(), **asked, **more).results[0].explanation
        resumed = xcount.audit(figure_1(), **kept, **more).results[0].explanation
        assert fresh is not None
        assert resumed is not None
        assert fresh.rates
        assert resumed == fresh


def test_gaps_of_a_group_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """One computation serves all gaps of a group and distance."""
    made = []
    spectra = effects._spectra

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return spectra(*arguments)

    monkeypatch.setattr(effects, "_spectra", counted)
    xcount.audit(figure_1(), gaps=[1, 40, 80], distances=[1, "any"], jobs=2)
    assert len(made) == 4


def test_the_least_gap_keeps_the_limit() -> None:
    """It is the first gap of the curve at which the share is at most the limit."""
    result = xcount.count(figure_1(), sensitive="f0", gap=1, max_share="25%", explain=True)
    assert result.explanation is not None
    (curve,) = result.explanation.curves
    assert curve.least_gap is not None
    for point in curve.points:
        assert (point.share.least <= 0.25) == (point.gap >= curve.least_gap.value)


def test_a_share_that_is_the_limit_keeps_it() -> None:
    """As a float, a fifth is a little more than 1/5."""
    ensemble = ensemble_of(
        (0, 1.0, 0.0, (1, 4.0, 0.0, 3.0)), *((1, t, 0.0, 1.0) for t in (1, 2, 3))
    )
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 2, "max_share": "1/5", "explain": True}
    result = xcount.count(ensemble, **asked)
    assert result.share == 1 / 5 > Fraction(1, 5)
    assert result.verdict == "PASS"
    assert result.explanation is not None
    (curve,) = result.explanation.curves
    assert curve.least_gap is not None
    assert curve.least_gap.value <= 2


@pytest.mark.parametrize("rows", [[[0, 0, 2], [2, 2, 2]], [[0, 0, 0], [2, 0, 0]]])
def test_parts_of_the_domain_may_weigh_nothing(rows: list[list[int]]) -> None:
    """Rules part the domain; nobody need be in all of its parts."""
    ensemble = ensemble_of((0, 1.0, 0.0, (2, 1.0, 0.0, 3.0)), (1, 1.0, 0.0, 1.0))
    data = np.array(rows, dtype=np.float64)
    result = xcount.count(
        ensemble,
        sensitive="f0",
        gap=2,
        rule="f1 >= 1 -> f2 >= 1",
        measures="marginals",
        data=data,
        explain=True,
    )
    assert result.explanation is not None
    effect = result.explanation.effects[1]
    share = float(data[0, 2] == 2)
    assert (effect.measure, effect.mean) == ("marginals", Interval(3 * share, 3 * share, 3 * share))
    assert effect.up.value == effect.down.value == share / 2


def test_rows_move_as_the_library_predicts() -> None:
    """Up and down of every row are those of XGBoost's own predictions on modified rows."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.integers(0, 3, 400), rng.normal(size=(400, 3))]).astype(np.float32)
    labels = (rows[:, 1] + 0.8 * (rows[:, 0] == 1) + rng.normal(size=400) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3).fit(rows, labels)
    result = xcount.count(
        model,
        sensitive=[0],
        probability_gap="0.1",
        distance="any",
        measures="rows",
        data=rows.astype(np.float64),
        explain=True,
    )
    assert result.explanation is not None
    effect, curve = result.explanation.effects[1], result.explanation.curves[1]
    predicted = []
    for value in (0, 1, 2):
        moved = rows.copy()
        moved[:, 0] = value
        predicted.append(model.predict_proba(moved)[:, 1].astype(np.float64))
    own = model.predict_proba(rows)[:, 1].astype(np.float64)
    up, down = np.max(predicted, axis=0) - own, own - np.min(predicted, axis=0)
    assert effect.measure == "rows"
    assert effect.mean is not None
    size = np.maximum(up, down)
    assert effect.up.value == pytest.approx((up > 0.1).mean(), abs=2 / 400)
    assert effect.down.value == pytest.approx((down > 0.1).mean(), abs=2 / 400)
    assert effect.mean.value == pytest.approx(size.mean(), abs=1e-5)
    for point in curve.points[5:]:
        assert point.share.least == pytest.approx((size > point.gap).mean(), abs=2 / 400)
    best = np.argmax(predicted, axis=0)
    shares = {cell.cells[0]: cell.share.least for cell in effect.cells}
    assert max(shares.values()) == pytest.approx(np.bincount(best).max() / 400, abs=0.05)
