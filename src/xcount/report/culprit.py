"""What a comparison says first: which question got how much worse, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from xcount.answers.result import Verdict
from xcount.measures.measured import REGIONS, Measured
from xcount.report.lead import short_names
from xcount.report.words.numbers import NONE, confidence_of, distance_text, estimate_words, rounded
from xcount.report.words.shares import of_whom
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.runs.protected import is_protected
from xcount.support.interval import Interval, Number
from xcount.support.visible import visible


@dataclass(frozen=True, slots=True)
class Worsening:
    """A question that a model answers differently from the first one.

    Attributes:
        row: the question.
        index: the model.
        base: the first model's judged share.
        other: the model's.
        ratio: the one over the other; None where the first model's is zero.
    """

    row: Compared
    index: int
    base: Measured
    other: Measured
    ratio: Interval | None

    @property
    def is_certain(self) -> bool:
        """Whether the model is more sensitive there, as far as the intervals tell."""
        return self.other.interval.low > self.base.interval.high

    @property
    def order(self) -> tuple[bool, bool, float, float, str]:
        """Sorts the worst first: certain ones, protected features, then by the factor."""
        factor = math.inf if self.ratio is None else float(self.ratio.least)
        protected = any(map(is_protected, self.row.sensitive))
        return (
            not self.is_certain,
            not protected,
            -factor,
            -float(self.other.interval.least),
            self.row.label,
        )

    @property
    def _whole(self) -> str:
        """What the shares are shares of."""
        return of_whom(self.other) + " of the shared grid" * (self.other.name == REGIONS)

    def text(self, names: tuple[str, ...]) -> str:
        """Return who got how much worse where, in one sentence without its end."""
        factor = f"{times_text(self.ratio)}; " if self.ratio is not None else ""
        return (
            f"{short_names([names[self.index]])} is more sensitive to "
            f"{short_names(self.row.sensitive)} than {short_names([names[0]])}: "
            f"{estimate_words(self.other.interval)} instead of "
            f"{estimate_words(self.base.interval)} {self._whole} "
            f"({factor}{question_text(self.row)})"
        )


def worsenings(comparison: CompareResult) -> list[Worsening]:
    """Return every question that a model answers with certainly more than the first one."""
    found = []
    for row in comparison.rows:
        for index in range(1, comparison.n_models):
            base, other = (
                None if result is None else result.measured(comparison.judge)
                for result in (row.results[0], row.results[index])
            )
            if base is not None and other is not None:
                ratio = row.ratio(index, comparison.judge)
                found.append(Worsening(row, index, base, other, ratio))
    return sorted((each for each in found if each.is_certain), key=lambda each: each.order)


def comparison_headline(comparison: CompareResult) -> str:
    """Return the outcome in one line: the culprit, where there is one."""
    found = worsenings(comparison)
    if comparison.max_ratio is not None:
        return _judged_headline(comparison, found)
    return found[0].text(comparison.names) if found else _nothing_worse(comparison)


def _judged_headline(comparison: CompareResult, found: Sequence[Worsening]) -> str:
    assert comparison.max_ratio is not None
    than = f"{float(comparison.max_ratio):g} times that of {_first(comparison)}"
    if comparison.verdict is Verdict.PASS:
        return _within_ratio(comparison, than)
    if comparison.verdict is Verdict.FAIL:
        limit = comparison.max_ratio
        above = [each for each in found if each.row.verdict(each.index, limit) is Verdict.FAIL]
        if above:
            allowed = f"a ratio of at most {float(limit):g} is allowed"
            return f"{above[0].text(comparison.names)}; {allowed}"
        return f"Some shares are more than {than}"
    if not comparison.is_whole:
        done = f"only {comparison.n_results} of {comparison.n_planned} counts are done"
        return f"Not decided: {done}, and none shows more than {than}"
    return f"Not decided: some shares may or may not be more than {than}"


def _within_ratio(comparison: CompareResult, than: str) -> str:
    others = comparison.names[1:]
    if comparison.max_ratio is not None and comparison.max_ratio.value == 1 and others:
        return _no_more_sensitive(comparison)
    return f"No share is more than {than}"


def _no_more_sensitive(comparison: CompareResult) -> str:
    others = comparison.names[1:]
    who = f"{short_names([others[0]])} is no" if len(others) == 1 else "No model is"
    return f"{who} more sensitive than {_first(comparison)} on any question"


def _nothing_worse(comparison: CompareResult) -> str:
    others = comparison.names[1:]
    if not others:
        return f"Nothing to compare {_first(comparison)} with"
    known = [
        ratio.high <= 1
        for row in comparison.rows
        for index in range(1, comparison.n_models)
        if (ratio := row.ratio(index, comparison.judge)) is not None
    ]
    if known and all(known) and comparison.is_whole:
        return _no_more_sensitive(comparison)
    return f"On no question is a model certainly more sensitive than {_first(comparison)}"


def _first(comparison: CompareResult) -> str:
    return short_names([comparison.names[0]])


def question_text(row: Compared) -> str:
    """Return the question of a row in few words."""
    return f"{visible(row.change.label)}, {distance_text(row.distance)}"


def times_text(ratio: Interval) -> str:
    """Return a ratio in a sentence: ``1.75 times, 1.44 to 2.14``."""
    if ratio.is_settled:
        return f"{_factor(ratio.low)} times"
    if ratio.high == math.inf:
        interval = f"at least {_factor(ratio.low)}"
    else:
        interval = f"{_factor(ratio.low)} to {_factor(ratio.high)}"
    known = ratio.value
    said = f"{interval} times" if known is None else f"{_factor(known)} times, {interval}"
    return said if ratio.confidence == 1 else f"{said} with {confidence_of(ratio)}"


def ratio_text(ratio: Interval | None, infinity: str = "∞") -> str:
    """Return C_i / C_0 with its bounds."""
    if ratio is None:
        return NONE
    if ratio.is_settled:
        return _factor(ratio.low)
    high = infinity if ratio.high == math.inf else _factor(ratio.high)
    interval = f"{_factor(ratio.low)} to {high}"
    return interval if ratio.value is None else f"{_factor(ratio.value)} ({interval})"


def _factor(value: Number) -> str:
    """Return a factor with three digits, large ones without a power of ten."""
    return f"{value:.3g}" if value < 1000 else rounded(Fraction(value))


def sure_of_ratio(ratio: Interval | None) -> str:
    """Return how sure the bounds of a ratio are; both intervals have to hold."""
    if ratio is None:
        return ""
    return "exact" if ratio.exact else confidence_of(ratio)
