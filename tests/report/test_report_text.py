"""Results in words, and tables that hold them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import xcount
from report.samples import audit_of, count_of, measured, shown
from xcount.answers.explanation import (
    CellShare,
    Effect,
    Explanation,
)
from xcount.answers.result import CountResult
from xcount.counters.tally import MaskCount, Profile, StopReason
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.cell import CellRange
from xcount.question.share import Limit
from xcount.report import html_report
from xcount.report.batch_text import audit_tables, comparison_tables
from xcount.report.explanation_words import highest, size_text
from xcount.report.lead import headline
from xcount.report.sentences import mean_share_text
from xcount.report.text import (
    MAX_ROWS,
    answer_text,
    bytes_text,
    count_tables,
    count_text,
    question_text,
)
from xcount.report.words.numbers import NONE
from xcount.support.interval import Interval


@pytest.fixture
def result() -> CountResult:
    """Return the result of the paper's example."""
    return xcount.count(figure_1(), sensitive="f0", gap=80, distance=1)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (1234567, "1,234,567"), (10**15 - 1, "999,999,999,999,999"), (10**15, "1.000e+15")],
)
def test_counts_are_grouped_or_scientific(count: int, text: str) -> None:
    """Digits while they can be read."""
    assert count_text(count) == text


@pytest.mark.parametrize(("size", "text"), [(120 * 10**6, "120 MB"), (25 * 10**8, "2.5 GB")])
def test_sizes_have_units(size: int, text: str) -> None:
    """Megabytes, then gigabytes."""
    assert bytes_text(size) == text


def test_the_question_is_said_in_words(result: CountResult) -> None:
    """Which features, how far, how much."""
    assert question_text(result) == (
        "In how many regions does the margin move by more than 80 "
        "if only f0 changes, by at most 1 cell?"
    )
    several = replace(
        result, sensitive=("a", "b", "c"), distance=None, precision=3, class_label="2"
    )
    assert question_text(several) == (
        "In how many regions does the margin of class 2 move by more than 80 "
        "(leaves at 3 decimals) if only a, b and c change, to any values?"
    )


def test_a_question_about_one_of_several_classes_names_it() -> None:
    """By its label, the first class like the others; where there are no labels, by its number."""
    ensemble = ensemble_of((0, 1.0, -1.0, 1.0))
    two = replace(ensemble, base=(0.0, 0.0))
    named = replace(two, class_labels=("low", "high"))
    for model, name in ((two, "0"), (named, "low")):
        found = xcount.count(model, sensitive="f0", gap=1, class_=0)
        assert f"the margin of class {name} move" in question_text(found)
        assert CountResult.from_dict(found.to_dict()).class_label == name
    assert xcount.count(ensemble, sensitive="f0", gap=1).class_label is None


def test_an_answer_says_how_sure_it_is(result: CountResult) -> None:
    """Exact, guaranteed bounds, or a confidence."""
    assert answer_text(result) == "2 (exact)"
    bounded = replace(result, count=None, low=1, high=4, stop_reason=StopReason.TIMEOUT)
    assert answer_text(bounded) == "between 1 and 4, guaranteed"
    estimated = replace(bounded, count=2, confidence=0.9)
    assert answer_text(estimated) == "about 2, between 1 and 4, with 90% confidence"


def test_names_are_not_markup(result: CountResult) -> None:
    """A feature may be called ``[bold]``."""
    odd = replace(result, sensitive=("[bold]x[/bold]",))
    assert "[bold]x[/bold]" in shown(*count_tables(odd))


@pytest.mark.parametrize("reason", StopReason)
def test_every_stop_reason_has_words(result: CountResult, reason: StopReason) -> None:
    """A table can show any result."""
    assert shown(*count_tables(replace(result, stop_reason=reason)))


def test_long_profiles_are_cut(result: CountResult) -> None:
    """The rest is in JSON, and the table says so."""
    rows = tuple(
        MaskCount((i,), (CellRange("f0", float(i), i + 1.0),), i, i + i % 2, 1000)
        for i in range(MAX_ROWS + 2)
    )
    text = shown(*count_tables(replace(result, profile=Profile(rows))))
    assert f"{MAX_ROWS - 1} <= f0 < {MAX_ROWS}" in text
    assert f"{MAX_ROWS} <= f0" not in text
    assert "2 more; --json lists them" in text
    assert "1 to 2" in text


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (StopReason.COMPLETE, 0),
        (StopReason.TIMEOUT, 3),
        (StopReason.MEMORY, 3),
        (StopReason.STEPS, 3),
        (StopReason.INTERRUPTED, 3),
    ],
)
def test_the_status_of_a_result_without_a_verdict(
    result: CountResult, reason: StopReason, status: int
) -> None:
    """0 when the asked accuracy was reached."""
    assert replace(result, low=0, high=9, stop_reason=reason).exit_status == status


@pytest.mark.parametrize(("max_share", "status"), [(0.5, 0), (0.1, 1), (0.3, 3)])
def test_the_status_of_a_verdict(result: CountResult, max_share: float, status: int) -> None:
    """PASS, FAIL, UNDECIDED, whatever stopped the run."""
    limit = Limit.share(max_share)
    limited = replace(result, low=2, high=4, max_share=limit, stop_reason=StopReason.TIMEOUT)
    assert limited.exit_status == status


def test_long_names_are_not_cut() -> None:
    """In a narrow terminal, features whose names begin alike can still be told apart."""
    results = [count_of(f"measurement_{n}_of_the_sensor", "1", 1000) for n in (1, 2)]
    console = Console(file=io.StringIO(), width=80)
    console.print(*audit_tables(audit_of(results)), sep="\n")
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    assert "…" not in text
    names = "".join(line.split("│")[2].strip() for line in text.splitlines() if "│" in line)
    assert names == "measurement_1_of_the_sensormeasurement_2_of_the_sensor"


def test_a_question_is_about_what_is_judged(result: CountResult) -> None:
    """Rows, regions or people: the question names what the limit is on."""
    assert question_text(result).startswith("In how many regions does the margin")
    judged = replace(result, judge="rows")
    assert question_text(judged).startswith("For how many rows does the margin")


def test_a_category_is_different_and_a_number_changes_by_a_step() -> None:
    """A distance that reaches every value is no condition; one that does not is said."""
    race, age = count_of("race", "0.5", 300_000), count_of("age", "0.5", 200_000)
    audit = audit_of([race, age], one_step_features=("race",))
    assert headline(audit).startswith("If only race were different, the model's score could move")
    assert headline(audit_of([age])).startswith("If only age changed by one step, the model's")
    pair = replace(race, sensitive=("race", "sex"))
    both = audit_of([pair], one_step_features=("race", "sex"))
    assert headline(both).startswith("If only race and sex changed by one step")
    two_steps = replace(both, results=(replace(pair, distance=2),))
    assert headline(two_steps).startswith("If only race and sex were different")


def test_probabilities_move_by_percentage_points() -> None:
    """In sentences; options and tables keep the number that was asked about."""
    asked = xcount.Query.of(log_odds_model(), 0, probability_gap="1/20").change
    said = asked.outcome("could", "", "")
    assert said == "the predicted probability could move by more than 5 percentage points"
    assert asked.label == "probability gap 0.05"
    assert size_text(0.2078, "probability") == "20.8 percentage points"
    assert size_text(0.01, "probability") == "1 percentage point"
    assert size_text(1.234, "margin") == "1.23"


def log_odds_model() -> xcount.Ensemble:
    """Return a model whose score is the logarithm of odds."""
    return replace(figure_1(), task="binary", probability="sigmoid")


def test_groups_in_a_list_keep_their_features_together() -> None:
    """Else one would not know where a group ends."""
    age_sex = replace(count_of("age", "0.5", 300_000, max_share=0.1), sensitive=("age", "sex"))
    race = count_of("race", "0.5", 200_000, max_share=0.1)
    said = headline(audit_of([age_sex, race]))
    assert said.endswith("age + sex (30.0 %) and race (20.0 %)")


def test_measures_side_by_side_have_the_intervals_of_estimates() -> None:
    """Of regions and of every other measure; an exact share has none, an unknown one a dash."""
    measures = {"volume": measured("volume", 0.25, 0.2, 0.3), "rows": measured("rows", 0.125)}
    sampled = count_of("age", "1", 81_700, low=52_700, high=119_000)
    exact = count_of("sex", "1", 250)
    unknown = {"rows": measured("rows", 0.5), "volume": measured("volume", None, 0.0, 1.0)}
    audit = audit_of(
        [
            replace(sampled, measures=measures),
            replace(exact, measures=unknown),
        ]
    )
    text = shown(*audit_tables(audit)).partition("Measures side by side")[2]
    (age,) = [line for line in text.splitlines() if "age" in line]
    (sex,) = [line for line in text.splitlines() if "sex" in line]
    assert "8.17 % (5.27 to 11.9 %)" in age
    assert "25.0 % (20.0 to 30.0 %)" in age
    assert "12.5 %" in age
    assert "1 in 4,000" in sex
    assert "about" not in text
    assert NONE in sex


def test_a_comparison_shows_intervals_in_the_terminal() -> None:
    """Of every share that is not exact."""
    compared = xcount.compare([figure_1(), figure_1()], gaps=80, sensitive="f0")
    (row,) = compared.rows
    sampled = replace(
        count_of("f0", "80", 81_700, low=52_700, high=119_000), model=compared.models[1]
    )
    compared = replace(compared, rows=(replace(row, results=(row.results[0], sampled)),))
    text = shown(*comparison_tables(compared))
    assert "22.2 %" in text
    assert "8.17 % (5.27 to 11.9 %)" in text


def cells_of(name: str, shares: Sequence[float], first: int = 0) -> tuple[CellShare, ...]:
    """Return neighbouring cells with these shares, the largest first."""
    found = [
        CellShare((k,), f"{k} <= {name} < {k + 1}", Interval(share, share, share))
        for k, share in enumerate(shares, first)
    ]
    return tuple(sorted(found, key=lambda cell: -cell.share.least))


def effect_of(cells: tuple[CellShare, ...], measure: str = "regions") -> Effect:
    """Return an effect that is highest there."""
    none = Interval(0.0, 0.0, 0.0)
    return Effect(measure, "margin", "all", none, none, None, (), cells, True, 1.0)


def test_neighbours_that_nearly_tie_are_one_range() -> None:
    """Where the output is highest, in the terminal and on the page."""
    effect = effect_of(cells_of("age", [0.5, 0.794, 0.792, 0.791, 0.5, 0.1, 0.789, 0.4]))
    found, more = highest(effect, ("age",))
    texts = [(each.label, each.text_in(effect)) for each in found]
    assert texts == [
        ("1 <= age < 4", "79.1 to 79.4 % each"),
        ("6 <= age < 7", "78.9 %"),
        ("0 <= age < 1", "50.0 %"),
    ]
    assert more == "1 more nearly as high"
    result = replace(count_of("age", "1", 9), explanation=Explanation(effects=(effect,)))
    for text in (shown(*count_tables(result)), html_report(audit_of([result]))):
        assert re.search(r"1 (<|&lt;)= age (<|&lt;) 4", text)
        assert "79.1 to 79.4 % each" in text
        assert "1 more nearly as high" in text
        assert "2 <= age" not in text


def test_only_ranges_of_one_feature_are_put_together() -> None:
    """Not categories, not cells of several features; other measures have shares of their own."""
    jobs = tuple(
        CellShare((k,), f"job = {name}", Interval(0.5, 0.5, 0.5)) for k, name in enumerate("abcd")
    )
    found, more = highest(effect_of(jobs), ("job",))
    assert [each.label for each in found] == ["job = a", "job = b", "job = c"]
    assert more == "1 more nearly as high"
    both = tuple(CellShare((k, 0), f"x < {k}, y < 1", Interval(0.5, 0.5, 0.5)) for k in range(2))
    assert len(highest(effect_of(both), ("x", "y"))[0]) == 2
    (first, *_), more = highest(effect_of(cells_of("x", [0.5, 0.0, 0.1])), ("x",))
    assert not more
    assert first.text_in(effect_of(cells_of("x", [0.2]), "rows")) == "20.0 %"
    assert first.text_in(effect_of(cells_of("y", [0.2], first=40), "rows")) == NONE
    apart = tuple(cells_of("x", [0.5], first=2 * k)[0] for k in range(12))
    assert highest(effect_of(apart), ("x",))[1] == "at least 9 more nearly as high"


def test_a_mean_of_estimates_says_so() -> None:
    """An exact one does not."""
    compared = xcount.compare([figure_1(), figure_1()], gaps=80, sensitive="f0")
    assert mean_share_text(compared.ranking[0]) == "22.2 %"
    (row,) = compared.rows
    sampled = replace(count_of("f0", "80", 200_000, low=100_000, high=300_000))
    compared = replace(compared, rows=(replace(row, results=(row.results[0], sampled)),))
    assert mean_share_text(compared.ranking[0]) == "about 20.0 %"


def test_rates_as_they_are_stand_beside_rates_if_all_were() -> None:
    """A model that looks at hours alone: groups differ as they are, and not by the feature."""
    # sex moves the score, never the decision
    model = ensemble_of((0, 0.5, 0.0, 0.1), (1, 40.0, -1.0, 1.0))
    hours = [50.0] * 2 + [30.0] * 8 + [50.0] * 8 + [30.0] * 2
    data = {"f0": [0.0] * 10 + [1.0] * 10, "f1": hours}
    asked: dict[str, Any] = {"sensitive": "f0", "flip": True, "cutoff": 0, "data": data}
    audit = xcount.audit(model, judge="rows", max_share="10%", explain=True, **asked)
    (result,) = audit.results
    assert str(audit.verdict) == "PASS"
    assert result.explanation is not None
    (rates,) = [own for own in result.explanation.rates if own.measure == "rows"]
    assert (rates.ratio.value, rates.differs) == (0.25, True)
    assert rates.ratio_if_all == Interval(1.0, 1.0, 1.0)
    page = re.sub("<[^>]+>", " ", html_report(audit)).replace("\N{NO-BREAK SPACE}", " ")
    assert "The lowest rate is 0.25 times the highest, below four fifths" in page
    assert (
        "the lowest rate would be 1 times the highest: that is the effect of the feature itself"
        in page
    )
    assert html_report(audit).count('class="if-all"') == 2
    table = " ".join(shown(*audit_tables(audit)).split())
    assert "0.25" in table
    assert "if all were │ 50.0 %, f0 < 0.5 │ 50.0 %, f0 >= 0.5 │ 1 │" in table
    assert "effect of the feature itself" in table
    one = " ".join(shown(*count_tables(result)).split())
    assert re.search(r"Lowest over highest │ [\d.]+ │ 0.25 │ │ if all were │ [\d.]+ │ 1 │", one)
