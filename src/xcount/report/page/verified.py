"""The section of verified counts: with the questions and the counter, the page proves itself.

Questions and counter are texts that no browser runs as they stand. The script unpacks them when
somebody presses a button, and counts in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from xcount.answers.result import CountResult
from xcount.report.markup import Child, Markup, element, trusted
from xcount.report.page.record import whole_number
from xcount.report.page.tables import Row, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.sentences import label_of, panel_label
from xcount.report.words.numbers import plural
from xcount.support.numerals import digits
from xcount.verified.counter import JAVASCRIPT
from xcount.verified.packing import packed

MOST_BYTES = 2_000_000
"""The largest page; questions that do not fit are left out, the largest first."""
MEANING = (
    "Verified means: a second counter, whose correctness is proved and which shares no code with "
    "the first one, found the same number for the same question."
)
MAX_ROWS = 400
"""More verified counts are not listed."""
_COUNTER = "verified-counter"
_ROW_BYTES = 800
"""About the size of a row of the table."""


@dataclass(frozen=True, eq=False)
class Carried:
    """What a page carries to prove its counts.

    Attributes:
        counter: the verified counter, packed.
        questions: the verified counts with their questions, packed; None if one does not fit.
        n_more: how many verified counts are not listed.
    """

    counter: str
    questions: tuple[tuple[CountResult, str | None], ...]
    n_more: int = 0

    @classmethod
    def of(cls, results: Sequence[CountResult], n_bytes: int) -> Carried | None:
        """Return what fits into so many bytes; None if nothing was verified."""
        verified = [(r, r.question) for r in results if r.verified and r.question is not None]
        if not verified:
            return None
        found = [(result, packed(text)) for result, text in verified[:MAX_ROWS]]
        counter = packed(JAVASCRIPT.read_text("utf-8"))
        left, kept = n_bytes - len(counter) - _ROW_BYTES * len(found), set[int]()
        for number in sorted(range(len(found)), key=lambda i: len(found[i][1])):
            left -= len(found[number][1])
            if left > 0:
                kept.add(number)
        questions = ((r, text if i in kept else None) for i, (r, text) in enumerate(found))
        return cls(counter, tuple(questions), len(verified) - len(found))

    def data(self) -> list[Markup]:
        """Return the counter and the questions as texts of the page."""
        texts = {_COUNTER: self.counter}
        for number, (_, text) in enumerate(self.questions):
            texts |= {} if text is None else {_key(number): text}
        return [
            element("script", trusted(text), type="text/plain", id=key)
            for key, text in texts.items()
        ]


def _key(number: int) -> str:
    return f"question-{number}"


def verified_section(view: View, carried: Carried) -> Markup:
    """Return the verified counts, each with a button that counts it again."""
    rows = [
        _row(view, number, result, text is not None)
        for number, (result, text) in enumerate(carried.questions)
    ]
    return element(
        "section",
        element("h2", "Verified counts"),
        element("p", MEANING),
        table(["Features", "Question", "Sensitive regions", "Verified"], rows, "Verified counts"),
        _left_out(carried),
        element("p", f"{carried.n_more} more: see --json or --csv.", class_="note")
        if carried.n_more
        else None,
        id="verified",
    )


def _row(view: View, number: int, result: CountResult, is_carried: bool) -> Row:
    assert result.count is not None
    again: list[Child] = []
    if is_carried:
        button = element(
            "button",
            "Count it again here",
            type="button",
            hidden=True,
            data_question=_key(number),
            data_count=digits(result.count),
        )
        again = [button, element("output")]
    return row(
        text_cell(view.link(result.sensitive)),
        text_cell(panel_label(result.distance, result.change)),
        number_cell(whole_number(result.count), Fraction(result.count, result.n_regions)),
        text_cell(["verified", *again]),
        data_sensitive=label_of(result),
        data_verdict=None if result.verdict is None else str(result.verdict),
    )


def _left_out(carried: Carried) -> Markup | None:
    names = [
        f"{label_of(result)} ({panel_label(result.distance, result.change)})"
        for result, text in carried.questions
        if text is None
    ]
    if not names:
        return None
    listed = "; ".join(names)
    return element(
        "p",
        f"{plural(len(names), 'question')} too large for this page, not to be counted again here: "
        f"{listed}. Write them with xcount count --question FILE, and count them with xcount "
        "verify FILE.",
        class_="note",
    )
