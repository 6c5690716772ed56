"""Witnesses hold: by the definition, by the cells, and by the libraries themselves."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from conftest import Command
from model_files import FIGURE_1, write_model
from strategies import random_classifier, random_ensemble

import xcount
from xcount.answers.witness import search as finding
from xcount.answers.witness.points import friendly_value
from xcount.answers.witness.search import NearestSearch, RegionFinder
from xcount.answers.witness.witness import Witness
from xcount.answers.witness.witnesses import _typical, witnesses
from xcount.counters.costs import MAX_LISTED
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import adult_model_path, ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.report.witness_text import summary


def sums_at(ensemble: Ensemble, point: tuple[float, ...]) -> Fraction:
    """Return the exact sum of the only output, without the base."""
    return oracle.margin(ensemble, point, None)


def check_pair(witness: Witness, sensitive: set[int]) -> None:
    """Assert that the two inputs differ in sensitive features alone."""
    for index, (a, b) in enumerate(zip(witness.point, witness.other, strict=True)):
        assert index in sensitive or a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("seed", range(60))
def test_witnesses_of_gaps_hold_by_definition(seed: int) -> None:
    """Both inputs, the margins, the distance and the trees' parts, in exact arithmetic."""
    ensemble = random_ensemble(seed)
    missing = seed % 2 == 1
    options: dict[str, Any] = {
        "gap": "0.4",
        "distance": [1, 2, "any"][seed % 3],
        "missing": "cell" if missing else "none",
    }
    found = witnesses(ensemble, sensitive=0, n=5, seed=seed, **options)
    count = xcount.count(ensemble, sensitive=0, method="brute", jobs=1, **options).count
    assert len(found) == (5 if count else 0)
    axis = Grid.of(ensemble, missing=options["missing"]).axes[0]
    for witness in found:
        check_pair(witness, {0})
        change = sums_at(ensemble, witness.other) - sums_at(ensemble, witness.point)
        assert abs(change) > Fraction("0.4")
        parts = math.fsum(tree.change for tree in witness.trees)
        assert witness.change == pytest.approx(float(change))
        assert parts == pytest.approx(float(change))
        cells = axis.cells_of(np.array([witness.point[0], witness.other[0]]))
        assert witness.distance == axis.distance(*cells.tolist())


@pytest.mark.parametrize("seed", range(40))
def test_witnesses_of_flips_hold_by_definition(seed: int) -> None:
    """The decisions at both inputs differ, and are the ones that are named."""
    ensemble = random_classifier(seed)
    count = xcount.count(ensemble, sensitive=0, flip=True, distance="any", method="brute").count
    if not count:
        return
    for witness in witnesses(ensemble, sensitive=0, flip=True, distance="any", n=4):
        check_pair(witness, {0})
        points = (witness.point, witness.other)
        sides = [oracle.decision(ensemble, point, Fraction(0), None) for point in points]
        assert sides[0] != sides[1]
        words = ["not above", "above"] if ensemble.n_outputs == 1 else [str(k) for k in range(3)]
        assert [witness.decision, witness.other_decision] == [words[k] for k in sides]


@pytest.mark.parametrize("by_solutions", [False, True])
def test_flips_are_drawn_uniformly(by_solutions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for flips, by chance and from the solutions."""
    ensemble = replace(random_ensemble(32), base=(0.05,))
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], flip=True, distance=2))
    regions = oracle.flipping_regions(ensemble, [0], Fraction(0), 2)
    expected = {region for region, flips in regions.items() if flips}
    assert len(expected) > 3
    if by_solutions:
        monkeypatch.setattr(RegionFinder, "_draw_by_chance", lambda self, n: [])
    n = 40 * len(expected)
    drawn = Counter(tuple(r.tolist()) for r in RegionFinder(problem, Settings(seed=1)).draw(n))
    assert set(drawn) <= expected
    statistic = sum((drawn[region] - 40) ** 2 / 40 for region in expected)
    freedom = len(expected) - 1
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 10


@pytest.mark.parametrize("by_solutions", [False, True])
def test_regions_are_drawn_uniformly(by_solutions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sensitive region about as often as every other (chi-square at 1e-4)."""
    ensemble = random_ensemble(32)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], "0.1", distance=2))
    regions = oracle.sensitive_regions(ensemble, [0], Fraction(1, 10), 2)
    expected = {region for region, is_sensitive in regions.items() if is_sensitive}
    assert 5 < len(expected) < 200
    if by_solutions:
        monkeypatch.setattr(RegionFinder, "_draw_by_chance", lambda self, n: [])
    n = 40 * len(expected)
    drawn = Counter(tuple(r.tolist()) for r in RegionFinder(problem, Settings(seed=1)).draw(n))
    assert set(drawn) <= expected
    statistic = sum((drawn[region] - 40) ** 2 / 40 for region in expected)
    freedom = len(expected) - 1
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 10


@pytest.mark.parametrize("seed", range(30))
def test_the_nearest_is_the_nearest(seed: int) -> None:
    """Against a look at all regions: the fewest features moved, then the fewest cells."""
    ensemble = random_ensemble(seed, max_features=3)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], "0.3", distance=1))
    axes = problem.grid.axes
    regions = oracle.sensitive_regions(ensemble, [0], Fraction(3, 10), 1)
    hits = [region for region, is_sensitive in regions.items() if is_sensitive]
    finder = RegionFinder(problem)
    for start in itertools.islice(regions, 0, None, max(1, len(regions) // 5)):
        nearest, proved = NearestSearch(finder, np.array(start)).run()
        assert proved
        costs = []
        for hit in hits:
            steps = [axis.distance(a, b) for axis, a, b in zip(axes, start, hit, strict=True)]
            costs.append((sum(s > 0 for s in steps), sum(steps), hit))
        if not costs:
            assert nearest is None
            continue
        assert nearest is not None
        cost = next(c[:2] for c in costs if c[2] == tuple(nearest.tolist()))
        assert cost == min(c[:2] for c in costs)


def test_a_row_that_is_sensitive_itself_is_its_own_witness() -> None:
    """Nothing moves, the row's own numbers stay, and that is proved to be nearest."""
    rows = {"f0": [1.23, 5.0], "f1": [0.77, 9.0]}
    first, second = witnesses(figure_1(), sensitive="f0", gap=80, near=rows)
    assert (first.point, first.moved, first.proved, first.row) == ((1.23, 0.77), (), True, 0)
    assert second.row == 1
    assert set(second.moved or ()) == {"f0", "f1"}
    missing = {"f0": [math.nan], "f1": [0.0]}
    with pytest.raises(QueryError, match="no cell holds f0"):
        witnesses(figure_1(), sensitive="f0", gap=80, near=missing)


def test_too_far_to_search_is_found_but_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no room for candidates, drawn regions are brought as near as they go."""
    monkeypatch.setattr(finding, "MAX_CANDIDATES", 1)
    (found,) = witnesses(figure_1(), sensitive="f0", gap=80, near={"f0": [0.0], "f1": [9.0]})
    assert found.proved is False
    assert found.moved == ("f1",)


@pytest.mark.slow
def test_rare_regions_are_drawn_from_the_solutions() -> None:
    """One region in 10^8: no random draw finds it, the counted solutions do."""
    stumps = ((f, float(t), 0.0, 0.0) for f in range(1, 9) for t in range(9))
    ensemble = ensemble_of(_needle(1), *stumps)
    found = witnesses(ensemble, sensitive=0, gap=5, n=2)
    assert len(found) == 2
    for witness in found:
        assert abs(sums_at(ensemble, witness.other) - sums_at(ensemble, witness.point)) > 5
    for cutoff in (5, "-0.5"):
        shifted = replace(ensemble, base=(0.0 if cutoff == 5 else -9.0,))
        (flipped,) = witnesses(shifted, sensitive=0, flip=True, cutoff=cutoff, n=1)
        assert {flipped.decision, flipped.other_decision} == {"above", "not above"}
    assert witnesses(ensemble, sensitive=0, flip=True, cutoff=50) == ()
    two = replace(ensemble, base=(0.0, 5.0))
    (between,) = witnesses(two, sensitive=0, flip=True, n=1)
    assert {between.decision, between.other_decision} == {"0", "1"}


def test_decisions_have_the_names_of_their_classes() -> None:
    """Of both sides of a cut-off, and of several classes, whose margin is named, too."""
    ensemble = replace(ensemble_of((0, 1.0, -1.0, 1.0)), class_labels=("no", "yes"))
    (flipped,) = witnesses(ensemble, sensitive=0, flip=True, cutoff=0, n=1)
    words = {False: "no", True: "yes"}
    assert flipped.decision == words[flipped.margin > 0]
    assert flipped.other_decision == words[flipped.other_margin > 0]
    assert flipped.class_label is None
    three = replace(ensemble, base=(0.0, 0.5, -5.0), class_labels=("ash", "birch", "elm"))
    (between,) = witnesses(three, sensitive=0, flip=True, n=1)
    assert {between.decision, between.other_decision} == {"ash", "birch"}
    assert between.class_label == between.decision
    assert summary(between)["Margin"].startswith(f"{between.decision}: ")
    (gap,) = witnesses(three, sensitive=0, gap=1, class_="ash", n=1)
    assert (gap.class_label, gap.decision) == ("ash", None)
    assert Witness.from_dict(gap.to_dict()) == gap


def _needle(feature: int) -> Any:
    """Return a tree in which feature 0 matters only in the first cell of all others."""
    if feature == 9:
        return (0, 1.0, 0.0, 9.0)
    return (feature, 0.0, _needle(feature + 1), 0.0)


def test_numbers_are_short() -> None:
    """Few digits, inside the cell, also for float32 and open ends."""
    ensemble = ensemble_of((0, 30.5, (0, 0.1234567, 1.0, 2.0), (0, 42.25, 3.0, 4.0)))
    axis = Grid.of(ensemble).axes[0]
    values = [friendly_value(axis, cell, "float32") for cell in range(axis.n_cells)]
    assert axis.cells_of(np.array(values)).tolist() == [0, 1, 2, 3]
    assert all(len(f"{value:g}") <= 4 for value in values)
    tiny = ensemble_of((0, 1.0, (0, float(np.nextafter(1.0, 0)), 1.0, 2.0), 3.0))
    axis = Grid.of(tiny).axes[0]
    values = [friendly_value(axis, cell, "float64") for cell in range(axis.n_cells)]
    assert axis.cells_of(np.array(values)).tolist() == [0, 1, 2]


def test_many_inputs_can_be_read_in_a_terminal(xcount_command: Command) -> None:
    """Ten inputs are some beside each other, and nothing of them is cut off."""
    run = xcount_command("witness", adult_model_path(), "--sensitive", "sex", "--gap", "0.5")
    assert run.out.count("native_country") == 3
    assert "#10 " in run.out
    assert "…" not in run.out


def test_csv_has_no_formula(xcount_command: Command, tmp_path: Path) -> None:
    """A name that a spreadsheet would run gets an apostrophe in front; numbers stay numbers."""
    model = write_model(tmp_path / "m.json", FIGURE_1, ["=cmd()", "@b"])
    question = ("--sensitive", "0", "--gap", "80", "-n", "1", "--csv")
    run = xcount_command("witness", model, *question)
    head, *lines = csv.reader(io.StringIO(run.out))
    assert head[-2:] == ["'=cmd()", "'@b"]
    assert all(math.isfinite(float(line[2])) for line in lines)


def test_csv_is_a_table_for_a_model_with_any_names(xcount_command: Command, tmp_path: Path) -> None:
    """Features keep their names; columns beside them that have the same get another."""
    model = write_model(tmp_path / "m.json", FIGURE_1, ["margin", "xcount side"])
    run = xcount_command("witness", model, "--sensitive", "0", "--gap", "80", "-n", "1", "--csv")
    head = run.out.splitlines()[0]
    assert head == "witness,side,xcount margin,decision,margin,xcount side"
    table = tmp_path / "rows.csv"
    table.write_text(run.out)
    asked = ("--sensitive", "0", "--gap", "80", "--data", table, "--json")
    rows = json.loads(xcount_command("count", model, *asked).out)["details"]["measures"]["rows"]
    assert (rows["n_sensitive"], rows["n_rows"]) == (2, 2)


def test_csv_of_no_pair_says_so(xcount_command: Command, figure_1_file: str) -> None:
    """On standard error; the table has all columns, and no row."""
    run = xcount_command("witness", figure_1_file, "--sensitive", "age", "--gap", "900", "--csv")
    assert (run.status, run.out) == (0, "witness,side,margin,decision,age,sex\n")
    assert run.err == "xcount: there are none: no region is sensitive\n"


def test_guards_that_six_digits_do_not_tell_apart_are_crossed() -> None:
    """Which cells differ is asked of the cells; texts have the digits that they need."""
    guards = (1000000.25, 1000000.5, 1000000.75)
    trees = [(0, guard, 0.0, float(2**i)) for i, guard in enumerate(guards)]
    ensemble = ensemble_of(*trees)
    for witness in witnesses(ensemble, sensitive="f0", gap=0.5, n=8):
        (crossing,) = witness.crossed
        assert len(crossing.guards) == 1
        assert crossing.before != crossing.after
        assert summary(witness)["Guards crossed"] == f"f0: {crossing.guards[0]:.8g}"
        assert " -> " in summary(witness)["Change"]


def test_values_that_nine_digits_do_not_tell_apart_are_shown_in_full() -> None:
    """The table says what changes."""
    ensemble = ensemble_of((0, 1 + 2**-50, 0.0, 1.0), (0, 1 + 2**-51, 0.0, 1.0))
    for witness in witnesses(ensemble, sensitive="f0", gap=0.5, n=8):
        assert " -> " in summary(witness)["Change"]


def test_the_command_line_prints_tables_csv_and_json(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Whole inputs in every form, drawn and near."""
    command = ["witness", figure_1_file, "--sensitive", "age", "--gap", "80", "-n", "3"]
    run = xcount_command(*command)
    assert (run.status, run.err) == (0, "")
    for words in ("Guards crossed", "age: 3", "Inputs"):
        assert words in run.out
    rows = list(csv.DictReader(io.StringIO(xcount_command(*command, "--csv").out)))
    assert [row["side"] for row in rows] == ["point", "other"] * 3
    assert abs(float(rows[0]["margin"]) - float(rows[1]["margin"])) > 80
    data = json.loads(xcount_command(*command, "--json").out)
    assert len(data["witnesses"]) == 3
    assert set(data["witnesses"][0]["point"]) == {"age", "sex"}
    table = tmp_path / "rows.csv"
    table.write_text("sex,age\n9,9\n")
    near = xcount_command(*command, "--near", table, "--json")
    assert json.loads(near.out)["witnesses"][0]["proved_nearest"] is True
    none = xcount_command("witness", figure_1_file, "--sensitive", "age", "--gap", "1000")
    assert "no region is sensitive" in none.out
    assert xcount_command("witness", figure_1_file, "--sensitive", "age").status == 2


def test_an_audit_shows_witnesses() -> None:
    """With n_witnesses every count that has sensitive regions has examples in the report."""
    result = xcount.audit(figure_1(), gaps=80, distances=1, n_witnesses=2)
    rows = {r.sensitive: r.witnesses or () for r in result.results}
    assert [len(rows["f0",]), len(rows["f1",])] == [2, 0]
    (crossing,) = rows["f0",][0].crossed
    assert crossing.guards == (3.0,)
    assert {crossing.before_cell.high, crossing.after_cell.high} == {3.0, 4.0}
    assert "thresholds crossed: f0: 3" in result.to_html()
    assert xcount.AuditResult.from_dict(result.to_dict()).to_html() == result.to_html()


def test_witnesses_of_an_audit_are_rows_where_rows_are_sensitive() -> None:
    """Rows that are sensitive themselves come first, then what is nearest to a row."""
    rows = [[1.0, 1.0], [2.5, 1.0], [3.5, 1.0], [5.0, 5.0]]
    asked = {"sensitive": "f0", "gaps": 80, "measures": "rows", "data": np.array(rows)}
    (result,) = xcount.audit(figure_1(), n_witnesses=3, **asked).results  # type: ignore[arg-type]
    found = result.witnesses or ()
    hits = result.measures["rows"].details["sensitive_rows"]
    assert hits
    assert [w.row for w in found[: len(hits)]] == hits
    assert all(w.moved == () and list(w.point) == rows[w.row or 0] for w in found[: len(hits)])
    apart = [len(w.moved or ()) for w in found]
    assert len(found) == 3
    assert apart == sorted(apart)


def test_typical_witnesses_come_first() -> None:
    """Without data, those that share the most cells with the others."""
    drawn = [np.array(cells) for cells in ([9, 9, 9], [1, 2, 3], [1, 2, 4], [1, 2, 3])]
    assert [cells.tolist() for cells in _typical(drawn)] == [
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 4],
        [9, 9, 9],
    ]


def _rare() -> Problem:
    """Return a problem whose sensitive regions chance does not find."""
    model = ensemble_of(
        (0, 1.0, (1, 1.0, 0.5, 0.0), 0.0), (0, 1.0, (1, 1.0, 0.0, 0.5), 0.0), n_features=3
    )
    return Problem(model, Grid.of(model), Query.of(model, "f0", "0.75"))


def test_drawing_keeps_to_its_limits() -> None:
    """Time that is over ends the drawing; an interrupt is heard in it."""
    with pytest.raises(BudgetError, match="time limit"):
        RegionFinder(_rare(), settings=Settings(timeout_seconds=0.0)).draw(1)

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RegionFinder(_rare(), settings=Settings(on_progress=interrupt)).draw(1)


@pytest.mark.parametrize("flip", [False, True])
def test_an_interrupted_exact_run_is_no_lack_of_budget(
    monkeypatch: pytest.MonkeyPatch, flip: bool
) -> None:
    """Ctrl-C while solutions are counted ends the drawing, and nothing else is said."""

    def be_interrupted(run: ExactRun, budgets: object) -> bool:
        run.stop_reason = StopReason.INTERRUPTED
        return False

    monkeypatch.setattr(RegionFinder, "_draw_by_chance", lambda finder, n: [])
    monkeypatch.setattr(finding, "MAX_LISTED", 0)  # a small grid would be listed
    monkeypatch.setattr(finding, "VISIT_SECONDS", -1.0)  # or visited
    monkeypatch.setattr(ExactRun, "solve", be_interrupted)
    query = Query.of(figure_1(), "f0", None if flip else 80, flip=flip)
    with pytest.raises(KeyboardInterrupt):
        RegionFinder(Problem(figure_1(), Grid.of(figure_1()), query)).draw(1)


def test_witnesses_of_an_audit_have_the_limits_of_their_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads, memory and what is left of the time; none are drawn after an interrupt."""
    seen: list[Settings] = []

    def note(problem: Problem, n: int, settings: Settings, rows: object) -> tuple[Witness, ...]:
        seen.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("xcount.runs.task.drawn_witnesses", note)
    asked = {"sensitive": "f0", "gaps": 80, "n_witnesses": 1, "jobs": 1}
    limits = {"timeout": 50.0, "memory": 2**31}
    result = xcount.audit(figure_1(), **asked, **limits)  # type: ignore[arg-type]  # several kinds
    (given,) = seen
    assert (given.jobs, given.timeout_seconds, given.memory_bytes) == (1, 50.0, 2**31)
    assert given.seconds_left() != 50.0
    assert result.results[0].count == 2
    stopped = replace(result.results[0], low=0, stop_reason=StopReason.INTERRUPTED)
    monkeypatch.setattr("xcount.runs.task.solve", lambda *arguments: stopped)
    xcount.audit(figure_1(), **asked)  # type: ignore[arg-type]  # several kinds
    assert len(seen) == 1


@pytest.mark.parametrize("limit", [MAX_LISTED, 0])
def test_where_a_visit_proves_zero_there_are_none(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for changes that only a visit of all regions counts, on small and large grids."""
    small = ensemble_of((0, 4.0, (1, 3.0, 0.3, -0.3), 0.1), (0, 3.0, (1, 2.0, 0.4, -0.4), 0.0))
    first, second = small.trees
    ensemble = replace(
        small,
        trees=(first, replace(second, output=1)),
        base=(0.0, 0.0),
        task="multiclass",
        probability="softmax",
    )
    asked: dict[str, Any] = {"sensitive": "f0", "probability_gap": 0.5, "class_": 1}
    monkeypatch.setattr(finding, "MAX_LISTED", limit)
    monkeypatch.setattr(finding, "MAX_DRAWS", 1)
    assert xcount.count(ensemble, **asked).high == 0
    assert not list(witnesses(ensemble, **asked))


def test_witnesses_say_which_regions_exist() -> None:
    """Where that was said, and what is printed as JSON keeps to its schema."""
    found = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=1, where="f1 < 3")
    assert found.domain == xcount.Domain.of(where="f1 < 3")
    assert found.to_dict()["domain"]["where"] == ["f1 < 3"]
    anywhere = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=1)
    assert anywhere.domain is None
    assert "domain" not in anywhere.to_dict()
