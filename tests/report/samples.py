"""Audits to render, with every kind of result in one of them, and a strict reader of pages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

from rich.console import Console, RenderableType

from xcount.answers.result import CountResult, ModelInfo
from xcount.counters.tally import MaskCount, PairCount, Profile, StopReason
from xcount.measures.measured import Measured
from xcount.question.cell import CellRange
from xcount.question.gap import Gap
from xcount.question.share import Limit
from xcount.runs.audit import AuditResult
from xcount.support.interval import Interval

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a'b&amp;c",
    "=cmd|' /C calc'!A0",
    "|pipe|`code`*b*[l](javascript:alert(1))",
    "\u202eesrever",
    "null\x00bell\x07",
    "日本語のとても長い名前" * 8,
    "$x^2$",
    " ",
)

MODEL = ModelInfo(
    path="models/<b>credit<b>.json",
    sha256="ab" * 32,
    format="xgboost-json",
    n_trees=50,
    max_depth=4,
    n_features=12,
    n_guards=208,
)


def profile_of(name: str, n_cells: int, scale: float) -> Profile:
    """Return a profile of a numeric feature with thresholds 1, 2, 3, ..."""
    masks: list[MaskCount] = []
    pairs = []
    for cell in range(n_cells):
        low = float(cell) if cell else None
        high = float(cell + 1) if cell < n_cells - 1 else None
        ranges = (CellRange(name, low, high),)
        count = int(scale * (1 + cell % 5) * 100)
        masks.append(MaskCount((cell,), ranges, count, count + cell % 2, 1000))
        if cell:
            before = masks[-2].ranges
            pairs.append(PairCount((cell - 1,), (cell,), before, ranges, count, count, 1000))
    return Profile(tuple(masks), tuple(pairs))


def count_of(
    name: str,
    gap: str,
    count: int,
    *,
    distance: int | None = 1,
    low: int | None = None,
    high: int | None = None,
    max_share: float | None = None,
    n_regions: int = 10**6,
    n_cells: int = 0,
) -> CountResult:
    """Return a result: exact, or with an interval of 90 % confidence."""
    exact = low is None
    return CountResult(
        count=count,
        low=count if low is None else low,
        high=count if high is None else high,
        confidence=1.0 if exact else 0.9,
        n_regions=n_regions,
        method="auto",
        stop_reason=StopReason.COMPLETE if exact else StopReason.TIMEOUT,
        sensitive=(name,),
        change=Gap(Fraction(gap)),
        distance=distance,
        precision=None,
        model=MODEL,
        max_share=None if max_share is None else Limit.share(max_share),
        seconds=0.25,
        versions={"xcount": "0.1.0"},
        profile=profile_of(name, n_cells, count / n_regions) if n_cells else None,
    )


def measured(
    name: str, share: float | None, low: float | None = None, high: float | None = None
) -> Measured:
    """Return a measure of a result: exact, or with an interval."""
    interval = Interval(share, low, high, 0.9) if low is not None and high is not None else None
    details = {"source": "/home/somebody/people.csv"}
    return Measured(name, interval or Interval.exactly(share or 0.0), details=details)


def audit_of(results: Sequence[CountResult], **changes: object) -> AuditResult:
    """Return an audit of these results."""
    audit = AuditResult(
        results=tuple(results),
        model=MODEL,
        n_planned=len(results),
        gap_origin="given, in margin",
        created="2026-03-01T12:30:00+00:00",
        unused_features=("unused one", "unused two"),
        task="binary",
        versions={"xcount": "0.1.0", "python": "3.11.7"},
    )
    return replace(audit, **changes)  # type: ignore[arg-type]  # names are checked by replace


def ordinary(max_share: float | None = None) -> AuditResult:
    """Return an audit with exact counts, intervals and zeros at two distances and three gaps."""
    results = []
    for distance in (1, None):
        for index, gap in enumerate(("0.2", "0.5", "1")):
            size = 3 - index
            for rank, name in enumerate(("age", "income", "sex", "zip code")):
                count = 100_000 * size // (rank + 1) if rank < 3 else 0
                low = count * 9 // 10 if rank == 1 else None
                high = count * 11 // 10 if rank == 1 else None
                results.append(
                    count_of(
                        name,
                        gap,
                        count,
                        distance=distance,
                        low=low,
                        high=high,
                        max_share=max_share,
                        n_cells=12 if distance else 0,
                    )
                )
    return audit_of(results)


def hostile() -> AuditResult:
    """Return an audit of features whose names want to be markup, formulas or paths."""
    results = [
        count_of(name, gap, 1000 * (index + 1), n_cells=3)
        for gap in ("0.5", "1")
        for index, name in enumerate(HOSTILE)
    ]
    return audit_of(results, gap_origin="<i>x</i>", unused_features=HOSTILE, output_label="<u>")


def huge(n_features: int) -> AuditResult:
    """Return an audit of many features at four gaps, a tenth of them not proved to be zero."""
    results = []
    for index in range(n_features):
        for gap in ("0.2", "0.5", "1", "2"):
            count = (index * 7919) % 100_000 if index % 10 == 0 else 0
            results.append(count_of(f"feature_{index}", gap, count))
    return audit_of(results)


VOID = {"meta", "link", "input", "br", "hr"}


class Page(HTMLParser):
    """A strict reader: every tag is closed in order; gathers tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an opening tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check a closing tag."""
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        """Gather what is shown."""
        if self.open_tags and self.open_tags[-1] not in ("style", "script"):
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")


def shown(*tables: RenderableType) -> str:
    """Return tables as a wide terminal shows them."""
    console = Console(file=io.StringIO(), width=200)
    for table in tables:
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
