"""Comparisons: one grid, ratios to the baseline, models in any order of features."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import n_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_ensemble

import xcount
from xcount.answers.result import Verdict
from xcount.counters.tally import StopReason
from xcount.errors import JournalError, QueryError, QueryWarning
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.flip import Flip
from xcount.question.gap import Gap
from xcount.question.grid import Grid
from xcount.question.share import Limit
from xcount.runs.batch import BatchProgress
from xcount.runs.compare import CompareResult, compare
from xcount.runs.compared import Compared

ROUGH = ensemble_of((0, 1.0, 0.0, 4.0), (1, 1.0, 0.0, 1.0))
SMOOTH = ensemble_of((0, 1.0, 0.0, 1.0), (0, 2.0, 0.0, 3.0), (1, 1.0, 0.0, 1.0))


def permuted(ensemble: Ensemble, order: list[int]) -> Ensemble:
    """Return the same model with its features in another order."""
    place = np.array([*np.argsort(order), -1], dtype=np.int32)
    trees = tuple(replace(tree, feature=place[tree.feature]) for tree in ensemble.trees)
    return replace(ensemble, features=tuple(ensemble.features[i] for i in order), trees=trees)


@settings(max_examples=n_examples(25))
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_every_count_is_on_the_shared_grid(seed: int, other_seed: int) -> None:
    """Each count is that of xcount.count on the grid of both models."""
    models = [
        random_ensemble(s, max_features=1, categorical=False, scale="ties")
        for s in (seed, other_seed)
    ]
    grid = Grid.of(*models)
    if grid.n_regions == 1:
        return
    result = compare(models, gaps=[0, "0.5"], distances=[1, "any"], method="brute")
    assert result.n_regions == grid.n_regions
    assert len(result.rows) == 4
    for row in result.rows:
        for model, count in zip(models, row.results, strict=True):
            assert count is not None
            alone = xcount.count(
                model, sensitive="f0", gap=row.change.text, distance=row.distance, grid=grid
            )
            assert (count.count, count.n_regions) == (alone.count, grid.n_regions)


def test_ratios_are_to_the_first_model() -> None:
    """Relative sensitivity is C / C0; the baseline's own is 1; no baseline count, no ratio."""
    result = compare([ROUGH, SMOOTH], gaps=[2, 3.5], distances=1)
    by_question = {(row.label, row.change.text): row for row in result.rows}
    row = by_question["f0", "2"]
    assert [count and count.count for count in row.results] == [4, 4]
    assert row.ratio(0) == row.ratio(1)
    assert row.ratio(1) is not None
    assert by_question["f0", "3.5"].ratio(1) is not None
    assert getattr(by_question["f0", "3.5"].ratio(1), "value", None) == 0.0
    assert by_question["f1", "2"].ratio(1) is None


def test_the_least_sensitive_model_ranks_first() -> None:
    """Ranking is by mean share; quartiles are of the ratios."""
    result = compare([ROUGH, SMOOTH], gaps=[2, 3.5], distances=1, names=["rough", "smooth"])
    assert [(s.rank, s.name) for s in result.ranking] == [(1, "smooth"), (2, "rough")]
    assert result.ranking[0].n_ratios == 2
    assert result.ranking[0].quartiles == (0.25, 0.5, 0.75)
    assert result.ranking[1].quartiles == (1.0, 1.0, 1.0)


def test_intervals_widen_the_ratio() -> None:
    """The bounds of a ratio are those of the quotient of two intervals."""
    count = xcount.count(figure_1(), sensitive="f0", gap=80)
    base, other = replace(count, count=4, low=2, high=5), replace(count, count=6, low=4, high=8)
    row = Compared(("f0",), 1, Gap(Fraction(80)), (base, other))
    ratio = row.ratio(1)
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == (1.5, 0.8, 4.0)
    assert ratio.confidence == 1.0
    sampled = (replace(base, confidence=0.9), replace(other, confidence=0.9))
    unsure = Compared(("f0",), 1, Gap(Fraction(80)), sampled)
    assert [r.confidence for r in unsure.ratios if r] == pytest.approx([0.9, 0.8])
    unbounded = Compared(("f0",), 1, Gap(Fraction(80)), (replace(base, low=0), other)).ratio(1)
    assert unbounded is not None
    assert unbounded.high == math.inf


def test_ratios_beyond_every_float_are_judged_all_the_same() -> None:
    """A count may have hundreds of digits more than another."""
    base = xcount.count(figure_1(), sensitive="f0", gap=80)
    huge = replace(base, count=10**400, low=10**400, high=10**400, n_regions=10**401)
    few = replace(base, n_regions=10**401)
    row = Compared(("f0",), 1, Gap(Fraction(80)), (few, huge))
    ratio = row.ratio(1)
    assert ratio is not None
    assert (ratio.value, ratio.high) == (None, math.inf)
    assert ratio.low > 1e308
    assert row.verdict(1, Limit.of(10**10)) is Verdict.FAIL
    assert row.verdict(1, Limit.of(10**400)) is Verdict.PASS


@pytest.mark.parametrize(
    ("max_ratio", "verdict", "status"),
    [(None, None, 0), (1.0, Verdict.PASS, 0), (0.5, Verdict.FAIL, 1)],
)
def test_a_maximum_ratio_makes_a_verdict(
    max_ratio: float | None, verdict: Verdict | None, status: int
) -> None:
    """At gap 2 the second model has as many sensitive regions as the first."""
    result = compare([ROUGH, SMOOTH], gaps=2, max_ratio=max_ratio)
    assert (result.verdict, result.exit_status) == (verdict, status)


def test_open_intervals_are_undecided() -> None:
    """Intervals that reach across the maximum ratio are status 3."""
    result = compare([ROUGH, SMOOTH], gaps=2, distances=1, sensitive="f0", max_ratio=1.0)
    base, other = result.rows[0].results
    assert base is not None
    assert other is not None
    wide = replace(other, low=0, high=6, stop_reason=StopReason.TIMEOUT)
    row = replace(result.rows[0], results=(base, wide))
    assert replace(result, rows=(row,)).exit_status == 3
    assert replace(result, rows=(row,), max_ratio=None).exit_status == 3


def test_features_are_matched_by_name() -> None:
    """The same model with its features in another order compares as equal."""
    ensemble = random_ensemble(3)
    order = list(range(ensemble.n_features))[::-1]
    result = compare([ensemble, permuted(ensemble, order)], gaps=[0, 0.5])
    for row in result.rows:
        first, second = row.results
        assert first is not None
        assert second is not None
        assert first.count == second.count


def test_models_that_do_not_compare_are_refused() -> None:
    """No common feature, other meanings of a category, and no model at all are errors."""
    other = replace(ensemble_of((0, 1.0, 0.0, 1.0)), features=(Feature("x"),))
    with pytest.raises(QueryError, match=r"no feature in common .* matched by name"):
        compare([replace(SMOOTH, features=(Feature("a"), Feature("b"))), other], gaps=1)
    plain = ensemble_of((1, 1.0, 0.0, 1.0))
    first = replace(plain, features=(Feature("c", (0, 1), ("x", "y")), Feature("f1")))
    second = replace(plain, features=(Feature("c", (0, 1), ("y", "x")), Feature("f1")))
    with pytest.raises(QueryError, match="means 'x' in one model and 'y' in another"):
        compare([first, second], gaps=1)
    with pytest.raises(QueryError, match="at least two models, and none was given"):
        compare([], gaps=1)
    with pytest.raises(QueryError, match=r"at least two .* one was given; xcount audit asks one"):
        compare([ROUGH], gaps=1)
    with pytest.raises(QueryError, match="3 names"):
        compare([ROUGH, SMOOTH], names=["a", "b", "c"], gaps=1)
    with pytest.raises(QueryError, match="two models are called 'a'"):
        compare([ROUGH, SMOOTH, ROUGH], names=["a", "b", "a"], gaps=1)


def test_models_may_have_other_columns() -> None:
    """A model ignores the columns that only another one has."""
    wide = ensemble_of((0, 1.0, 0.0, 4.0), (2, 1.0, 0.0, 3.0), n_features=3)
    result = compare([ROUGH, wide], sensitive=["f0", "f2"], gaps=2)
    assert result.n_regions == 8
    counts = {row.label: [r.count for r in row.results if r is not None] for row in result.rows}
    assert counts == {"f0": [8, 8], "f2": [0, 8]}
    rows = {"f2": [0.0, 2.0], "f1": [0.0, 2.0], "f0": [0.0, 2.0]}
    weighed = compare([ROUGH, wide], sensitive="f2", gaps=2, data=rows).rows[0]
    assert [r.measures["rows"].share for r in weighed.results if r is not None] == [0.0, 1.0]


def test_guards_are_each_models_own(tmp_path: Path) -> None:
    """Those of the shared grid stand beside its regions; a journal keeps both."""
    path = tmp_path / "j.jsonl"
    result = compare([ROUGH, SMOOTH], gaps=2, journal=path)
    own = [Grid.of(model).n_guards for model in (ROUGH, SMOOTH)]
    assert own == [2, 3]
    assert result.n_guards == 3
    for each in (result, CompareResult.from_journal(path)):
        assert [model.n_guards for model in each.models] == own
        assert [[r.model.n_guards for r in row.results if r] for row in each.rows] == [own, own]
        assert each.to_dict()["n_guards"] == 3
        assert "3 guards" in each.to_html()


def test_decisions_are_compared(tmp_path: Path) -> None:
    """With flips, a region counts when the decision changes: at one cut-off for every model."""
    models = [ensemble_of((0, 1.0, -1.0, 1.0)), ensemble_of((0, 1.0, 1.0, 2.0))]
    result = compare(models, flip=True, journal=tmp_path / "j.jsonl")
    row = result.rows[0]
    assert row.change == Flip()
    assert [r.count for r in row.results if r is not None] == [2, 0]
    assert CompareResult.from_journal(tmp_path / "j.jsonl") == result
    assert "The decision changes at the cut-off 0" in result.to_html()
    assert compare(models, flip=True, cutoff=1.5).rows[0].results[1].count == 2  # type: ignore[union-attr]  # not interrupted
    with pytest.raises(QueryError, match="either --flip or gaps"):
        compare(models, flip=True, gaps=1)
    several = replace(models[1], base=(0.0, 0.0))
    with pytest.raises(QueryError, match="same classes; outputs are 1, 2"):
        compare([models[0], several], flip=True)


def several_classes(*sizes: float, labels: tuple[str, ...] | None) -> Ensemble:
    """Return a model in which each class has a step of its own at f0 < 1."""
    trees = [
        replace(ensemble_of((0, 1.0, 0.0, size)).trees[0], output=k) for k, size in enumerate(sizes)
    ]
    plain = ensemble_of((0, 1.0, 0.0, 1.0))
    return replace(plain, trees=tuple(trees), base=(0.0,) * len(sizes), class_labels=labels)


def test_a_class_is_the_same_in_every_model() -> None:
    """A class is found by its label wherever it stands; without labels, by its number."""
    first = several_classes(1.0, 5.0, 9.0, labels=("a", "b", "c"))
    turned = several_classes(9.0, 5.0, 1.0, labels=("c", "b", "a"))
    for label, expected in (("a", 0), ("c", 2)):
        row = compare([first, turned], gaps=2, class_=label).rows[0]
        assert [r.count for r in row.results if r is not None] == [expected, expected]
        assert [r.class_label for r in row.results if r is not None] == [label, label]
    unlabelled = several_classes(1.0, 5.0, 9.0, labels=None)
    row = compare([first, unlabelled], gaps=2, class_="c").rows[0]
    assert [r.count for r in row.results if r is not None] == [2, 2]


def test_other_classes_are_refused() -> None:
    """As many classes, and the same ones: for gaps as for flips."""
    first = several_classes(1.0, 5.0, labels=("a", "b"))
    with pytest.raises(QueryError, match="same classes; outputs are 2, 1"):
        compare([first, ensemble_of((0, 1.0, 0.0, 1.0))], gaps=2, class_="a")
    other = several_classes(1.0, 5.0, labels=("a", "x"))
    with pytest.raises(QueryError, match="one has a, b, another a, x"):
        compare([first, other], gaps=2, class_="a")
    with pytest.raises(QueryError, match="one has a, b, another a, x"):
        compare([first, other], flip=True)


def test_names_are_the_shortest_that_differ() -> None:
    """Paths are cut from the left as far as they still tell models apart."""
    paths = ["a/x/model.json", "a/y/model.json"]
    models = [replace(ROUGH, path=path) for path in paths]
    assert compare(models, gaps=1).names == ("x/model.json", "y/model.json")
    assert compare([ROUGH, SMOOTH], gaps=1).names == ("model 1", "model 2")
    assert len(set(compare([models[0], models[0]], gaps=1).names)) == 2


def test_a_comparison_survives_json_and_its_journal(tmp_path: Path) -> None:
    """to_json and from_dict are inverse; so are the journal and from_journal."""
    path = tmp_path / "j.jsonl"
    result = compare([ROUGH, SMOOTH], distances=[1, "any"], journal=path)
    assert CompareResult.from_dict(json.loads(result.to_json())) == result
    assert CompareResult.from_journal(path) == result
    before = path.read_bytes()
    assert compare([ROUGH, SMOOTH], distances=[1, "any"], journal=path, resume=True).rows
    assert path.read_bytes() == before
    with pytest.raises(JournalError, match="other models"):
        compare([SMOOTH, ROUGH], journal=path, resume=True)
    with pytest.raises(JournalError, match="not the journal of an audit"):
        xcount.AuditResult.from_journal(path)
    other = tmp_path / "audit.jsonl"
    xcount.audit(ROUGH, gaps=1, journal=other)
    with pytest.raises(JournalError, match=r"journal of another command \(audit\)"):
        compare([ROUGH, SMOOTH], gaps=1, journal=other, resume=True)


def test_an_interrupted_comparison_keeps_what_it_has() -> None:
    """Rows with a missing count have no ratio, and the page shows the others."""

    def interrupt(progress: BatchProgress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    result = compare([ROUGH, SMOOTH], gaps=[1, 2, 3], jobs=1, on_progress=interrupt)
    answers = [answer for row in result.rows for answer in row.results]
    assert None in answers
    assert result.exit_status == 3
    assert replace(result, max_ratio=Limit.of(1)).verdict in (Verdict.UNDECIDED, Verdict.FAIL)
    assert all(row.ratio(1) is None for row in result.rows if None in row.results)
    n_shown = result.to_html().count("data-count=")
    assert n_shown == sum(answer is not None for answer in answers)


STEEP = ensemble_of((0, 1.0, 0.0, 1.0), (1, 1.0, 0.0, 4.0))


@pytest.mark.parametrize("n_results", [0, 1, 2, 3])
def test_missing_counts_are_not_passed(tmp_path: Path, n_results: int) -> None:
    """A journal that ends early, as after SIGKILL, says nothing about what was not counted."""
    path = tmp_path / "j.jsonl"
    models = [ROUGH, STEEP]
    whole = compare(models, sensitive=["f0", "f1"], gaps=2, max_ratio=1, journal=path, jobs=1)
    assert (whole.verdict, whole.exit_status, whole.n_planned) == (Verdict.FAIL, 1, 4)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: 1 + n_results]))
    cut = CompareResult.from_journal(path)
    assert (cut.verdict, cut.exit_status) == (Verdict.UNDECIDED, 3)
    assert replace(cut, max_ratio=None).exit_status == 3
    assert CompareResult.from_dict(json.loads(cut.to_json())) == cut
    assert f"Not decided: only {n_results} of 4 counts" in cut.to_html()
    resumed = compare(
        models, sensitive=["f0", "f1"], gaps=2, max_ratio=1, journal=path, resume=True
    )
    assert resumed.verdict is CompareResult.from_journal(path).verdict is Verdict.FAIL


def test_a_comparison_stopped_between_counts_is_not_decided() -> None:
    """Whole rows that pass do not speak for the rows that were not counted."""

    def interrupt(progress: BatchProgress) -> None:
        if progress.done >= 2:
            raise KeyboardInterrupt

    asked = {"sensitive": ["f0", "f1"], "gaps": [2, 3], "max_ratio": 1}
    result = compare([ROUGH, STEEP], jobs=1, on_progress=interrupt, **asked)  # type: ignore[arg-type]  # three kinds of values
    assert 2 <= result.n_results < result.n_planned == 8
    assert (result.verdict, result.exit_status) == (Verdict.UNDECIDED, 3)


def test_one_model_has_no_ratio() -> None:
    """A verdict about nothing is refused."""
    with pytest.raises(QueryError, match="at least two models"):
        compare([ROUGH], gaps=2, max_ratio=0)


def test_the_last_run_of_a_journal_is_its_verdict(tmp_path: Path) -> None:
    """Another question, or another limit on the same counts, is another run; earlier ones rest."""
    path = tmp_path / "j.jsonl"
    compare([ROUGH, STEEP], gaps=5, max_ratio=1, journal=path)
    worse = compare([ROUGH, STEEP], gaps=2, max_ratio=1, journal=path, resume=True)
    assert CompareResult.from_journal(path) == worse
    assert (worse.exit_status, {row.change.text for row in worse.rows}) == (1, {"2"})
    again = compare([ROUGH, STEEP], gaps=5, max_ratio=1, journal=path, resume=True)
    assert CompareResult.from_journal(path) == again
    assert again.exit_status == 0


def test_every_model_flips_where_it_decides() -> None:
    """A forest's votes and a margin in log-odds have their own cut-offs."""
    votes = replace(ensemble_of((0, 1.0, 0.25, 0.75)), task="binary", decides_at=0.5)
    odds = replace(ensemble_of((0, 1.0, -1.0, 1.0)), task="binary", decides_at=0.0)
    for models in ([votes, odds], [odds, votes]):
        result = compare(models, flip=True, distances="any", max_ratio=1)
        (row,) = result.rows
        assert [r.count for r in row.results if r is not None] == [2, 2]
        assert row.change == Flip(None)
        assert result.verdict is Verdict.PASS
        assert CompareResult.from_dict(result.to_dict()) == result
    regressor = replace(odds, task="regression", decides_at=None)
    with pytest.raises(QueryError, match="makes no decision"):
        compare([odds, regressor], flip=True)


def test_margins_that_differ_in_kind_are_named() -> None:
    """One gap in two units is a warning; a gap in probability is each model's own."""
    votes = replace(ensemble_of((0, 1.0, 0.25, 0.75)), task="binary", probability="margin")
    odds = replace(ensemble_of((0, 1.0, -1.0, 1.0)), task="binary", probability="sigmoid")
    with pytest.warns(QueryWarning, match="differ in kind"):
        compare([votes, odds], gaps="0.1")
    result = compare([votes, odds], probability_gaps="0.48", direction="up")
    (row,) = result.rows
    assert [r.count for r in row.results if r is not None] == [1, 0]  # 0.5 and 0.4621
    assert row.change.text == "probability 0.48 up"
    assert CompareResult.from_dict(result.to_dict()) == result
