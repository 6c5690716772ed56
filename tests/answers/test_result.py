"""Results: shares, verdicts, and JSON that reads back."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from json_contract import CONTRACT, MODEL_CONTRACT
from oracle import known

import xcount
from xcount.answers.result import CountResult, Verdict
from xcount.counters.tally import StopReason
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import Nested, ensemble_of, figure_1, tree_of
from xcount.question.share import Limit
from xcount.support.numerals import scientific_text


@pytest.fixture
def result() -> CountResult:
    """Return the result of the paper's example."""
    return xcount.count(figure_1(), sensitive="f0", gap="80.5", distance=1, profile=True)


@pytest.fixture
def any_number_of_digits() -> Iterator[None]:
    """Lift Python's limit on the digits of an integer, as the command line does."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


def test_json_has_every_promised_field(result: CountResult) -> None:
    """The contract of ``xcount count --json``."""
    data = json.loads(result.to_json())
    assert data.keys() >= CONTRACT
    assert data["model"].keys() == MODEL_CONTRACT
    assert type(data["count"]) is int
    assert data["exact"] is True
    assert (data["verdict"], data["gap"], data["distance"]) == (None, 80.5, 1)
    assert (data["precision"], data["confidence"]) == ("exact", 1.0)


def test_json_reads_back(result: CountResult) -> None:
    """Nothing is lost on the way, the profile included."""
    assert CountResult.from_dict(json.loads(result.to_json())) == result


@pytest.mark.usefixtures("any_number_of_digits")
def test_counts_of_any_size_survive_json(result: CountResult) -> None:
    """Beyond floats, and beyond the digits that Python prints by default."""
    huge = replace(result, count=10**5000, low=10**5000, high=10**5000, n_regions=4 * 10**5000)
    assert huge.share == 0.25
    assert CountResult.from_dict(json.loads(huge.to_json())) == huge


@pytest.mark.parametrize(
    ("low", "high", "max_share", "verdict"),
    [
        (3, 3, 0.3, Verdict.PASS),  # 0.3 as a float lies below 3/10, and still means 3 of 10
        (3, 3, 0.29, Verdict.FAIL),
        (3, 4, 0.3, Verdict.UNDECIDED),
        (2, 3, 0.3, Verdict.PASS),
        (4, 9, 0.3, Verdict.FAIL),
        (0, 0, 0.0, Verdict.PASS),
        (10, 10, 1.0, Verdict.PASS),
        (3, 3, None, None),
    ],
)
def test_verdicts_follow_the_interval(
    result: CountResult, low: int, high: int, max_share: float | None, verdict: Verdict | None
) -> None:
    """PASS and FAIL only where the whole interval says so."""
    limit = None if max_share is None else Limit.share(max_share)
    judged = replace(result, low=low, high=high, n_regions=10, max_share=limit)
    assert judged.verdict is verdict


@pytest.mark.parametrize(
    ("max_share", "verdict"),
    [
        ("2/9", Verdict.PASS),
        (Fraction(2, 9), Verdict.PASS),
        (2 / 9, Verdict.PASS),
        ("0.2222", Verdict.FAIL),
        ("5%", Verdict.FAIL),
        ("22.3%", Verdict.PASS),
        (1, Verdict.PASS),
    ],
)
def test_a_limit_is_given_in_many_ways(max_share: object, verdict: Verdict) -> None:
    """Two of nine are sensitive; a fraction, a percentage and a float survive JSON."""
    found = xcount.count(figure_1(), sensitive="f0", gap=80, max_share=max_share)
    assert found.verdict is verdict
    read = CountResult.from_dict(json.loads(found.to_json()))
    assert (read.max_share, read.verdict) == (found.max_share, verdict)


def test_a_share_that_was_read_off_a_result_passes(result: CountResult) -> None:
    """Although the float is not the fraction: it stands for all that rounds to it."""
    again = xcount.count(figure_1(), sensitive="f0", gap="80.5", max_share=result.share)
    assert again.verdict is Verdict.PASS


def test_details_are_numbers() -> None:
    """Counts of any size among them; nobody has to parse them."""
    model = ensemble_of(*((f, float(t), 0.0, 1.0) for f in range(70) for t in range(9)))
    found = xcount.count(model, sensitive="f0", gap="0.5", method="auto")
    sampled = xcount.count(model, sensitive="f0", gap="0.5", method="sample")
    assert found.details["count_solved"] == known(found.count) > 2**63
    for name in ("certain", "undecided", "samples"):
        assert type(sampled.details[name]) is int
    texts = {name for r in (found, sampled) for name, v in r.details.items() if type(v) is str}
    assert texts == set()


def test_cells_are_numbers() -> None:
    """A profile says which numbers and categories a cell holds; the words follow from them."""
    features = (Feature("age"), Feature("job", (0, 1, 2), ("clerk", "cook", "judge")))
    tree = replace(
        tree_of((1, math.nan, (0, 30.5, 0.0, 2.0), 5.0)), left_categories={0: frozenset({0, 2})}
    )
    found = xcount.count(Ensemble(features, (tree,)), sensitive="age,job", gap=1, profile=True)
    assert found.profile is not None
    first = json.loads(found.to_json())["profile"]["masks"][0]
    assert first["ranges"] == [
        {"feature": "age", "high": 30.5},
        {"feature": "job", "categories": [0, 2], "labels": ["clerk", "judge"]},
    ]
    assert first["description"] == "age < 30.5, job in {clerk, judge}"
    assert CountResult.from_dict(json.loads(found.to_json())) == found


def test_shares_are_compared_without_rounding() -> None:
    """One region too many in 10^30 is one too many."""
    percent = Limit.share("1%")
    assert percent.allows(10**28, 10**30)
    assert not percent.allows(10**28 + 1, 10**30)


def test_an_interval_is_exact_only_with_certainty(result: CountResult) -> None:
    """A point estimate with a confidence below 1 is an estimate."""
    assert result.exact
    assert not replace(result, confidence=0.9).exact
    assert not replace(result, high=result.high + 1).exact


def test_a_decided_verdict_is_why_a_run_stopped() -> None:
    """With a limit reached but the verdict certain, the run says decided."""
    decided = xcount.count(figure_1(), sensitive="f0", gap=80, max_share=1.0, timeout=1e-9)
    assert (decided.stop_reason, decided.verdict) == (StopReason.DECIDED, Verdict.PASS)
    open_ = xcount.count(figure_1(), sensitive="f0", gap=80, max_share=0.5, timeout=1e-9)
    assert (open_.stop_reason, open_.verdict) == (StopReason.TIMEOUT, Verdict.UNDECIDED)


@pytest.mark.parametrize(
    ("number", "text"),
    [(7, "7.000e+0"), (1234567, "1.235e+6"), (10**5000, "1.000e+5000"), (-(10**30), "-1.000e+30")],
    ids=["small", "large", "beyond floats", "negative"],
)
def test_numbers_of_any_size_have_a_short_form(number: int, text: str) -> None:
    """Without a float, which ends at 1e308."""
    assert scientific_text(number) == text


@pytest.mark.slow
def test_counts_of_thousands_of_digits_are_written_as_json() -> None:
    """Python refuses to write integers of more than 4,300 digits unless it is told otherwise."""
    trees: list[Nested] = [(f, 0.5, 0.0, 1.0) for f in range(14_500)]
    result = xcount.count(ensemble_of(*trees), sensitive="f0", gap="0.5")
    assert result.count == 2**14_500
    assert len(result.to_json()) > 2 * 4_300
