"""Diffs: in which regions two models disagree, by definition and by the libraries themselves."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_ensemble

import xcount
from xcount.answers.diff_result import DiffResult
from xcount.errors import QueryError, QueryWarning
from xcount.model.align import aligned
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import adult_model_path, ensemble_of
from xcount.question.grid import Grid

Margins = Sequence[Fraction]
MAX_REGIONS = 3000


def disagreements(
    first: Ensemble,
    second: Ensemble,
    differs: Callable[[Margins, Margins], bool],
    exists: Callable[[Any], bool] = lambda point: True,
) -> tuple[int, int]:
    """Return in how many regions of the joint grid two models differ, and how many there are."""
    both = aligned([first, second])
    grid = Grid.of(*both)
    n = n_all = 0
    for cells in itertools.product(*map(range, grid.cell_counts)):
        point = grid.point(cells)
        if exists(dict(zip(both[0].feature_names, point.tolist(), strict=True))):
            n_all += 1
            n += differs(*(oracle.margins(model, point.tolist(), None) for model in both))
    return n, n_all


def small_pair(seed: int, **more: Any) -> tuple[Ensemble, Ensemble] | None:
    """Return two random models whose joint grid is small; None if these are not."""
    pair = (
        random_ensemble(seed, scale="ties", **more),
        random_ensemble(seed + 7000, scale="ties", **more),
    )
    return pair if Grid.of(*aligned(pair)).n_regions <= MAX_REGIONS else None


def pairs(n: int, **more: Any) -> list[tuple[int, tuple[Ensemble, Ensemble]]]:
    """Return so many small pairs, with their seeds."""
    found = ((seed, small_pair(seed, categorical=False, **more)) for seed in range(10 * n))
    return list(itertools.islice(((s, pair) for s, pair in found if pair is not None), n))


@pytest.mark.parametrize("direction", ["any", "up", "down"])
def test_gaps_are_those_of_the_definition(direction: str) -> None:
    """Of every pair and gap; the two directions add up."""
    for seed, (first, second) in pairs(12):
        for gap in (0, "0.5", 2):

            def differs(a: Margins, b: Margins, gap: Fraction = Fraction(gap)) -> bool:
                rises, falls = b[0] - a[0] > gap, a[0] - b[0] > gap
                return {"any": rises or falls, "up": rises, "down": falls}[direction]

            found = xcount.diff(first, second, gap=gap, direction=direction, witnesses=0)
            truth = disagreements(first, second, differs)
            assert (seed, gap, found.count, found.n_regions) == (seed, gap, *truth)
            assert found.exact
            if direction == "any":
                assert sum(oracle.known(swap.count) for swap in found.swaps) == found.count


def test_decisions_have_each_models_own_cutoff_and_tie() -> None:
    """A margin of exactly the cut-off may be above in one model and not in the other."""
    n_ties = 0
    for seed, (a, b) in pairs(20):
        rng = np.random.default_rng(seed)
        cutoffs = [float(rng.choice([0.0, 0.5, 1.0])) for _ in range(2)]
        ties = [bool(rng.random() < 0.5) for _ in range(2)]
        first, second = (
            replace(model, task="binary", decides_at=cutoff, tie_is_above=tie, divisor=k)
            for model, cutoff, tie, k in zip((a, b), cutoffs, ties, (1, 3), strict=True)
        )

        def decides(margins: Margins, k: int, at: Any = cutoffs, above: Any = ties) -> bool:
            return bool(margins[0] > at[k] or (above[k] and margins[0] == at[k]))

        def differs(x: Margins, y: Margins, decides: Any = decides) -> bool:
            return bool(decides(x, 0) != decides(y, 1))

        found = xcount.diff(first, second, flip=True, witnesses=0)
        assert (seed, found.count) == (seed, disagreements(first, second, differs)[0])
        n_ties += ties[0] != ties[1]
    assert n_ties > 3


def test_classes_are_matched_by_name_and_ties_by_each_models_order() -> None:
    """The first of equal classes wins, in the order that the model itself has."""
    n_differ = 0
    for seed in range(20):
        first, other = (_with_three_classes(s) for s in (seed, seed + 3000))
        names = ("x", "y", "z")
        order = np.random.default_rng(seed).permutation(len(names)).tolist()
        first = replace(first, class_labels=names)
        second = replace(other, class_labels=tuple(names[k] for k in order))
        if Grid.of(*aligned([first, second])).n_regions > MAX_REGIONS:
            continue

        def differs(a: Margins, b: Margins, order: list[int] = order) -> bool:
            return a.index(max(a)) != order[b.index(max(b))]

        found = xcount.diff(first, second, flip=True, witnesses=0)
        truth = disagreements(first, second, differs)
        assert (seed, found.count, found.n_regions) == (seed, *truth)
        n_differ += truth[0] > 0
    assert n_differ >= 5


def _with_three_classes(seed: int) -> Ensemble:
    """Return a random model of three classes whose sums often tie."""
    model = random_ensemble(seed, max_features=2, max_trees=6, categorical=False, scale="ties")
    rng = np.random.default_rng(seed)
    trees = tuple(replace(tree, output=int(rng.integers(3))) for tree in model.trees)
    return replace(model, trees=trees, base=(0.0, 0.0, 0.0), task="multiclass")


def sigmoid(x: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + math.exp(-x))


def test_probabilities_have_each_models_own_slope() -> None:
    """The sigmoid of LightGBM has a parameter, which may differ."""
    for seed, (a, b) in pairs(10):
        first = replace(a, task="binary", probability="sigmoid", base=(0.25,))
        second = replace(b, task="binary", probability="sigmoid", slope=0.7)

        def differs(x: Margins, y: Margins) -> bool:
            return abs(sigmoid(float(x[0])) - sigmoid(0.7 * float(y[0]))) > 0.2

        found = xcount.diff(first, second, probability_gap="0.2", witnesses=0)
        assert (seed, found.count) == (seed, disagreements(first, second, differs)[0])
        same = replace(first, path=None)
        assert xcount.diff(first, same, probability_gap=0).count == 0


def test_other_links_are_refused() -> None:
    """Votes and log-odds cannot be compared as sums."""
    forest = replace(ensemble_of((0, 1.0, 0.0, 1.0)), task="binary", probability="margin")
    boosted = replace(forest, probability="sigmoid")
    with pytest.raises(QueryError, match=r"different ways \(margin and sigmoid\)"):
        xcount.diff(forest, boosted, probability_gap=0.1)
    with pytest.warns(QueryWarning, match="differ in kind"):
        xcount.diff(forest, boosted, gap=1)


def test_a_large_model_agrees_with_itself_at_once() -> None:
    """No decision needs to be counted if no test tells the two models apart."""
    path = adult_model_path()
    found = xcount.diff(path, path, flip=True, timeout=20)
    assert (found.count, found.exact) == (0, True)


@pytest.mark.parametrize("seed", range(15))
def test_a_model_agrees_with_itself(seed: int) -> None:
    """An exact 0, for every change; shifted leaves differ by just that everywhere."""
    model = random_ensemble(seed)
    changes: list[dict[str, Any]] = [{"gap": 0}, {"flip": True, "cutoff": 0}]
    for change in changes:
        found = xcount.diff(model, model, **change)
        assert (found.count, found.exact, found.n_fixed) == (0, True, 0)
        assert found.n_regions == Grid.of(model).n_regions
        assert found.witnesses == ()
    shifted = replace(model, base=(model.base[0] + 0.5,))
    above = xcount.diff(model, shifted, gap="0.499999", witnesses=0)
    assert above.count == above.n_regions
    assert xcount.diff(model, shifted, gap="0.500001", witnesses=0).count == 0


def test_a_feature_of_one_model_is_an_axis_of_both() -> None:
    """The other model ignores it."""
    old = replace(ensemble_of((0, 1.0, 0.0, 3.0)), features=(Feature("a"),))
    new = replace(
        ensemble_of((0, 1.0, 0.0, 3.0), (1, 5.0, 0.0, 1.0)), features=(Feature("a"), Feature("b"))
    )
    found = xcount.diff(old, new, gap="0.5")
    assert (found.count, found.n_regions) == (2, 4)
    assert found.witnesses
    assert {w.features for w in found.witnesses} == {("a", "b")}
    assert all(witness.point[1] >= 5 for witness in found.witnesses)
    assert any("not confirmed" in note for note in found.notes)
    assert "b" not in xcount.compare([old, new], gaps=1).rows[0].sensitive


def test_domains_keep_regions_out() -> None:
    """Conditions and rules, with and without groups of columns."""
    for seed, (first, second) in pairs(10, max_features=3):
        names = aligned([first, second])[0].feature_names
        if len(names) < 2:
            continue
        a, b = names[:2]
        found = xcount.diff(
            first, second, gap=0, where=f"{a} < 0.5", rule=f"{b} < 0 -> {a} < 0", witnesses=2
        )

        def exists(point: dict[str, float], a: str = a, b: str = b) -> bool:
            return point[a] < 0.5 and (point[b] >= 0 or point[a] < 0)

        grid = Grid.of(
            *aligned([first, second]),
            domain=xcount.Domain.of(where=f"{a} < 0.5", rule=f"{b} < 0 -> {a} < 0"),
        )
        n = n_all = 0
        for cells in itertools.product(*map(range, grid.cell_counts)):
            point = grid.point(cells)
            if exists(dict(zip(names, point.tolist(), strict=True))):
                n_all += 1
                sides = [oracle.margins(m, point.tolist(), None) for m in aligned([first, second])]
                n += sides[0] != sides[1]
        assert (seed, found.count, found.n_regions) == (seed, n, n_all)
        for witness in found.witnesses or ():
            assert exists(dict(zip(names, witness.point, strict=True)))


def test_measures_are_about_people_of_the_data(tmp_path: Path) -> None:
    """Rows, marginals, volume and population, none of which know of two models."""
    rng = np.random.default_rng(3)
    old, new = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 2.0, 0.0, 3.0))
    table = {"f0": rng.uniform(0, 4, size=400).round(2)}
    share = float(((table["f0"] >= 1) & (table["f0"] < 2)).mean())
    words = "rows,marginals,volume,population"
    found = xcount.diff(
        old,
        new,
        gap=1,
        data=table,
        measures=words,
        bounds="f0=0:4",
        judge="rows",
        max_share=0.5,
        population=tmp_path / "people.json",
        explain=True,
    )
    shares = {name: measured.share for name, measured in found.measures.items()}
    assert shares["rows"] == pytest.approx(share)
    assert shares["marginals"] == pytest.approx(share)
    assert shares["volume"] == pytest.approx(0.25)
    assert shares["population"] == pytest.approx(share, abs=0.02)
    assert str(found.verdict) == "PASS"
    assert [swap.n_rows for swap in found.swaps] == [0, round(share * 400)]
    assert found.explanation is not None
    for place in found.explanation.places:
        assert "(model)" not in place.text
    assert "(model)" not in (tmp_path / "people.json").read_text()
    assert "(model)" not in found.to_html()
    assert "(model)" not in json.dumps(found.to_dict())
    again = xcount.diff(old, new, gap=1, population=tmp_path / "people.json")
    assert again.measures["population"].share == pytest.approx(shares["population"])


def test_results_are_read_back() -> None:
    """JSON holds everything that equality compares."""
    old, new = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 2.0, 0.0, 3.0))
    found = xcount.diff(old, new, gap=1, names=["old", "new"], max_share=0, explain=True)
    assert DiffResult.from_dict(json.loads(found.to_json())) == found
    assert (found.exit_status, found.names) == (1, ("old", "new"))
    data = found.to_dict()
    assert "model" not in data
    assert len(data["models"]) == 2


def test_questions_that_mean_nothing_are_refused() -> None:
    """In one line each."""
    model = ensemble_of((0, 1.0, 0.0, 3.0))
    with pytest.raises(QueryError, match="no gap given"):
        xcount.diff(model, model)
    with pytest.raises(QueryError, match="none moves along"):
        xcount.diff(model, model, gap=1, along="f0: 1 <-> 2")
    several = replace(model, base=(0.0, 0.0), task="multiclass")
    with pytest.raises(QueryError, match="same classes; outputs are 1, 2"):
        xcount.diff(model, several, gap=1, class_=0)
    named = [
        replace(model, class_labels=labels, task="binary") for labels in (("n", "y"), ("y", "n"))
    ]
    with pytest.raises(QueryError, match="same classes in the same order"):
        xcount.diff(*named, flip=True)
    halves = replace(model, divisor=3, task="binary", decides_at=0.5)
    with pytest.raises(QueryError, match="--precision rounds leaves"):
        xcount.diff(model, halves, flip=True, cutoff=0, precision=3)
    odd = replace(model, features=(Feature("(model)"),))
    with pytest.raises(QueryError, match="called '\\(model\\)'"):
        xcount.diff(odd, odd, gap=1)
