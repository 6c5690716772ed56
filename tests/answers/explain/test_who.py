"""Places and group rates as part of a count, an audit and a comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from test_places import model_with_a_place

import xcount
from xcount.answers.explain import who
from xcount.answers.explain.rates import group_rates
from xcount.answers.explain.who import with_people
from xcount.answers.explanation import Explanation, GroupRates
from xcount.answers.result import CountResult
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import QueryError
from xcount.measures.weighting import Weighing
from xcount.model.examples import ensemble_of, figure_1
from xcount.model.inputs import Inputs
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.support.numerals import from_json


def people(n: int = 300) -> dict[str, np.ndarray]:
    """Return rows of the model with a place, in which f1 goes with f0."""
    rng = np.random.default_rng(4)
    f0 = rng.integers(0, 2, n).astype(float)
    f1 = np.where(f0 > 0, rng.uniform(20, 40, n), rng.uniform(25, 60, n))
    return {"f0": f0, "f1": f1, "f2": rng.uniform(20, 60, n), "f3": rng.uniform(20, 60, n)}


def test_a_count_that_explains_itself_has_places_and_rates() -> None:
    """An entry for each measure, regions first; JSON there and back."""
    result = xcount.count(
        model_with_a_place(),
        sensitive="f0",
        gap=1,
        explain=True,
        measures="volume,marginals,population,rows",
        data=people(),
    )
    found = result.explanation
    assert found is not None
    names = ["regions", "volume", "marginals", "population", "rows"]
    assert [rates.measure for rates in found.rates] == names
    assert list(dict.fromkeys(place.measure for place in found.places)) == names
    assert all(place.exact for place in found.places)
    shares = {name: measured.share for name, measured in result.measures.items()}
    shares["regions"] = result.share
    for place in found.places:
        share = shares[place.measure]
        assert place.part.least == pytest.approx(place.weight.least / (share or 0.0), abs=1e-9)
    assert CountResult.from_dict(from_json(result.to_json())).explanation == found


def test_a_measure_that_cannot_be_had_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody to speak of is no reason to fail."""

    def refuse(*arguments: object) -> None:
        raise QueryError("no such people")

    monkeypatch.setattr(who, "measure_of", refuse)
    found = xcount.count(figure_1(), sensitive="f0", flip=True, cutoff=0, explain=True).explanation
    assert found is not None
    assert (found.places, found.rates) == ((), ())
    assert found.notes == ("places are not known: no such people",)


def test_groups_are_the_same_under_all_measures() -> None:
    """So that rates can be compared: those of the most real measure."""
    model = ensemble_of(*((0, float(t), 0.01, 0.02) for t in range(40)), n_features=1)
    rows = {"f0": np.random.default_rng(0).uniform(0, 10, 500)}
    found = xcount.count(
        model, sensitive="f0", gap="0.005", explain=True, measures="rows", data=rows
    ).explanation
    assert found is not None
    regions, rates = found.rates
    assert [group.cells for group in regions.cells] == [group.cells for group in rates.cells]
    assert [group.weight for group in rates.cells] == pytest.approx([0.2] * 5, abs=0.05)
    assert regions.cells[-1].weight > 0.7


def test_no_decision_no_rates_and_a_word_about_it() -> None:
    """A regressor needs a cut-off."""
    regressor = replace(figure_1(), task="regression", decides_at=None)
    found = xcount.count(regressor, sensitive="f0", gap=80, explain=True).explanation
    assert found is not None
    assert not found.rates
    assert any("makes no decision" in note for note in found.notes)
    found = xcount.count(regressor, sensitive="f0", flip=True, cutoff=5, explain=True).explanation
    assert found is not None
    assert found.rates[0].favourable == "above 5"


def test_the_favourable_decision_can_be_chosen() -> None:
    """And must be one that the model takes."""
    ask = partial(xcount.count, figure_1(), sensitive="f0", gap=80)
    above, below = (ask(explain=True, favourable=side).explanation for side in ("above", "below"))
    assert above is not None
    assert below is not None
    pairs = zip(above.rates[0].cells, below.rates[0].cells, strict=True)
    assert all(a.rate.least + b.rate.least == pytest.approx(1) for a, b in pairs)
    with pytest.raises(QueryError, match="no decision 'yes'"):
        ask(explain=True, favourable="yes")
    with pytest.raises(QueryError, match="give --explain, or --group"):
        ask(favourable="above")


def test_rates_are_found_once_for_all_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not depend on the gap."""
    calls = []

    def counted(*arguments: Any) -> GroupRates:
        calls.append(arguments)
        return group_rates(*arguments)

    monkeypatch.setattr(who, "group_rates", counted)
    audit = xcount.audit(figure_1(), gaps=["80", "20"], sensitive=["f0", "f1"], jobs=1)
    assert len(audit.results) == 4
    assert all(result.explanation and result.explanation.rates for result in audit.results)
    assert len(calls) == 2
    xcount.audit(figure_1(), gaps=["80"], explain=False)
    assert len(calls) == 2


def test_an_interrupt_leaves_the_count() -> None:
    """Which is done, without an explanation."""

    def stop(progress: Progress) -> None:
        if progress.message in ("explaining: places", "explaining: group rates"):
            raise KeyboardInterrupt

    result = xcount.count(
        model_with_a_place(), sensitive="f0", gap=1, explain=True, on_progress=stop
    )
    assert result.exact
    assert result.explanation is None
    assert result.stop_reason is StopReason.COMPLETE


def test_no_time_is_no_error() -> None:
    """What is found in next to no time is what there is."""
    result = xcount.count(model_with_a_place(), sensitive="f0", gap=1, explain=True, timeout=0)
    assert result.explanation is not None


def test_the_command_shows_places_and_rates(tmp_path: Path, xcount_command: Command) -> None:
    """In a few lines, and in JSON."""
    from model_files import write_model

    trees = [
        (1, 29.0, (2, 40.0, 0.0, (0, 0.5, -1.0, 1.0)), 0.0),
        *((f, float(t), 0.01, 0.02) for f in (1, 2) for t in range(20, 60, 4)),
    ]
    model = write_model(tmp_path / "model.json", trees, ("sex", "age", "hours"))
    asked = ["count", model, "--sensitive", "sex", "--flip", "--cutoff", "0", "--explain"]
    shown = xcount_command(*asked).out
    assert "age < 29 and hours >= 40" in shown
    assert "% of all regions; 100 % of these are sensitive, 100 % of all sensitive regions" in shown
    assert "How often the decision is above 0" in shown
    assert "sex < 0.5" in shown
    assert "Lowest over highest" in shown
    data = json.loads(xcount_command(*asked, "--json").out)
    (place,) = data["explanation"]["places"]
    assert place["conditions"] == ["age < 29.0", "40.0 <= hours"]
    where = [word for text in place["conditions"] for word in ("--where", text)]
    counted = json.loads(xcount_command(*asked[:-1], *where, "--json").out)
    assert counted["share"] == place["within"]["share"]
    whole = json.loads(xcount_command(*asked[:-1], "--json").out)
    assert place["size"] == pytest.approx(counted["n_regions"] / whole["n_regions"])
    mistake = xcount_command(*asked, "--favourable", "rich")
    assert mistake.status == 2
    assert "the model has no decision 'rich'" in mistake.err


def test_rows_that_take_too_long_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not known in time is named, and the other measures stay."""
    model = ensemble_of((0, 0.5, (1, 2.0, -1.0, 1.0), (1, 4.0, 2.0, -2.0)))
    rows = np.random.default_rng(0).uniform(0, 5, (64, 2))
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 1))
    monkeypatch.setattr("xcount.answers.explain.evaluate.BLOCK", 16)
    late = Settings(timeout_seconds=0.0)
    monkeypatch.setattr("xcount.answers.explain.who.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("xcount.measures.products.LAYOUTS_PER_STAGE", 0)
    weighing = Weighing(("rows",), Inputs.of(rows), "rows")
    found = with_people(Explanation(), problem, late, weighing, {})
    assert any(note.startswith("places of rows are not known: the time") for note in found.notes)


def test_an_explanation_that_would_be_late_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A count that uses up its time is shown without it, and says so."""
    model = ensemble_of((0, 0.5, (1, 2.0, -1.0, 1.0), (1, 4.0, 2.0, -2.0)))
    monkeypatch.setattr("xcount.measures.products.SECONDS_PER_LAID_NODE", 1.0)
    result = xcount.count(model, sensitive="f0", gap=1, explain=True, timeout=10)
    assert result.exact
    explanation = result.explanation
    assert explanation is not None
    assert [*explanation.effects, *explanation.places, *explanation.rates] == []
    for what in ("direction and size", "group rates", "places"):
        assert f"{what} are not known: no time was left; raise --timeout" in explanation.notes
