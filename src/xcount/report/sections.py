"""The sections of the page behind its front: charts by gap and by cell, tables, the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Witness
from xcount.counters.tally import MaskCount, PairCount
from xcount.question.cell import CellRange
from xcount.report.charts import Layer, Line, legend, line_chart, profile_chart
from xcount.report.markup import Child, Markup, element, name
from xcount.report.numbers import (
    NONE,
    distance_text,
    how_sure,
    integer,
    limit_percent,
    percent,
    plural,
    seconds_text,
    share_text,
)
from xcount.report.sentences import label_of, measured_share, panel_label
from xcount.report.witness_text import same_inputs, summary
from xcount.runs.audit import AuditResult, Ranked

Row = TypeVar("Row", MaskCount, PairCount)

MAX_LINES = 6
MAX_PROFILES = 8
MAX_COUNT_ROWS = 400
_TOP_CELLS = 5


def table(head: Sequence[Child], rows: Sequence[Child], caption: str) -> Markup:
    """Return a table that scrolls sideways by itself on a narrow screen."""
    header = element("tr", (element("th", cell, scope="col") for cell in head))
    inside = element(
        "table",
        element("caption", caption),
        element("thead", header),
        element("tbody", rows),
    )
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def share_against_gap(audit: AuditResult) -> Markup | None:
    """Return a chart per distance, where several gaps were counted."""
    distances = list(dict.fromkeys(distance for distance, _ in audit.panels))
    charts = [_gap_chart(audit, distance) for distance in distances]
    if not any(charts):
        return None
    return element(
        "section",
        element("h2", "Share against gap"),
        element("p", "How the share falls as the gap grows."),
        charts,
        id="gaps",
    )


def _gap_chart(audit: AuditResult, distance: int | None) -> Markup | None:
    lines = []
    for ranked in audit.ranking[:MAX_LINES]:
        found = [r for r in ranked.results if r.distance == distance]
        points = tuple(
            (r.change.size, r.share_low, r.share, r.share_high)
            for r in found
            if r.change.size is not None
        )
        if len(points) > 1:
            lines.append(Line(ranked.label, points))
    if not lines:
        return None
    title = f"Share of sensitive regions against the gap, {distance_text(distance)}"
    more = "" if len(audit.ranking) <= MAX_LINES else f" (the {MAX_LINES} most sensitive)"
    return element(
        "figure",
        element("figcaption", title + more),
        line_chart(lines, f"{title}: {', '.join(line.label for line in lines)}", "gap"),
        legend([line.label for line in lines]),
    )


def profiles(audit: AuditResult) -> Markup | None:
    """Return where along each feature the sensitive regions lie."""
    shown = [
        found
        for ranked in audit.ranking
        if (found := _profiled(ranked)) and any(map(_says_something, found))
    ]
    blocks = [_profile(found, index == 0) for index, found in enumerate(shown[:MAX_PROFILES])]
    if not blocks:
        return None
    return element(
        "section",
        element("h2", "Profiles: where along a feature"),
        element(
            "p",
            "For each cell of the feature: the share of all combinations of the other features "
            "that is sensitive there. Stronger colours stand for larger gaps; where a count is "
            "not exact, the bar ends at its low bound and a thin line at its high bound.",
        ),
        blocks,
        id="profiles",
    )


def _profiled(ranked: Ranked) -> list[CountResult]:
    """Return the results with a profile at the smallest distance, the smallest gap first."""
    with_profile = [r for r in ranked.results if r.profile is not None and r.profile.masks]
    if not with_profile:
        return []
    first = with_profile[0].distance
    return [r for r in with_profile if r.distance == first]


def _profile(results: Sequence[CountResult], is_open: bool) -> Markup:
    first = results[0]
    label = label_of(first)
    shown = [r for r in results if _says_something(r)] or [first]
    masks = _masks(first)
    chart: Child = None
    if len(first.sensitive) == 1 and len(masks) > 1:
        layers = [
            Layer(r.change.text, tuple(_mask_bounds(mask) for mask in _masks(r))) for r in shown
        ]
        title = f"Profile of {label}, {distance_text(first.distance)}"
        chart = [
            profile_chart(layers, _edges(masks), title),
            _shades([r.change.label for r in shown]),
            [element("p", said, class_="note") for r in shown if (said := _left_blank(r))],
        ]
    sharpest = shown[-1]
    return element(
        "details",
        element(
            "summary",
            name(label),
            element("small", f"{plural(len(masks), 'cell')}; {_peak(sharpest)}"),
        ),
        chart,
        element("div", _top_masks(sharpest), _top_pairs(sharpest), class_="columns"),
        class_="profile",
        open=is_open,
    )


def _masks(result: CountResult) -> tuple[MaskCount, ...]:
    return result.profile.masks if result.profile is not None else ()


def _known(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of which something is known, the largest first: by low, then high bound."""
    return sorted((row for row in rows if not row.is_open), key=lambda row: (-row.low, -row.high))


def _says_something(result: CountResult) -> bool:
    """Tell whether a profile has a cell that may be sensitive, and of which something is known."""
    return any(mask.high > 0 for mask in _known(_masks(result)))


def _left_blank(result: CountResult) -> str:
    said = _left_out(_masks(result), "cell")
    return f"At {result.change.label}: {said}" if said else ""


def _left_out(rows: Sequence[Row], what: str) -> str:
    n_open = sum(row.is_open for row in rows)
    if not n_open:
        return ""
    which, are = (what, "is") if n_open == 1 else (f"{what}s", "are")
    return f"{integer(n_open)} {which} of which nothing is known {are} left out"


def _mask_bounds(mask: MaskCount) -> tuple[float, float] | None:
    whole = mask.n_combinations
    return None if mask.is_open else (mask.low / whole, mask.high / whole)


def _peak(result: CountResult) -> str:
    return f"highest where {_shortened(_known(_masks(result))[0].description)}"


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _edges(masks: Sequence[MaskCount]) -> list[str]:
    """Return the thresholds between the cells, or the categories in them."""
    ranges = [mask.ranges[0] for mask in masks]
    if all(cell.low is not None for cell in ranges[1:]):
        return [cell.edge_text(cell.low) for cell in ranges[1:] if cell.low is not None]
    return [_cell_text(cell) for cell in ranges]


def _cell_text(cell: CellRange) -> str:
    """Return a cell without its feature's name, where that leaves something to say."""
    return "missing" if cell.is_missing else cell.values_text or cell.description


def _shades(labels: Sequence[str]) -> Markup:
    last = max(1, len(labels) - 1)
    items = [
        element(
            "li",
            element(
                "svg",
                element(
                    "rect",
                    width="14",
                    height="14",
                    rx="3",
                    class_=f"layer l{3 if len(labels) == 1 else round(3 * index / last)}",
                ),
                width="14",
                height="14",
                aria_hidden="true",
            ),
            label,
        )
        for index, label in enumerate(labels)
    ]
    return element("ul", items, class_="legend")


def _top_masks(result: CountResult) -> Markup:
    masks = _masks(result)
    rows = [
        element("tr", element("td", mask.description), number_cell(_row_share(mask)))
        for mask in _known(masks)[:_TOP_CELLS]
        if mask.high > 0
    ]
    title = f"Most sensitive cells at {result.change.label}"
    return table(("Cell", "Sensitive"), rows, _caption(title, _left_out(masks, "cell")))


def _caption(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _row_share(row: MaskCount | PairCount) -> str:
    low = percent(row.low, row.n_combinations)
    return low if row.exact else f"{low} to {percent(row.high, row.n_combinations)}"


def _top_pairs(result: CountResult) -> Markup | None:
    pairs = result.profile.pairs if result.profile is not None else ()
    rows = [
        element("tr", element("td", _step(pair)), number_cell(_row_share(pair)))
        for pair in _known(pairs)[:_TOP_CELLS]
        if pair.high > 0
    ]
    if not rows:
        return None
    title = f"Steepest steps at {result.change.label}"
    return table(("Step", "Jumps"), rows, _caption(title, _left_out(pairs, "step")))


def _step(pair: PairCount) -> str:
    """Return what lies between two cells: a threshold, where they are neighbours."""
    if len(pair.ranges) == 1:
        (lower,), (upper,) = pair.ranges, pair.other_ranges
        if lower.high is not None and lower.high == upper.low:
            return f"{lower.feature} crosses {lower.edge_text(lower.high)}"
    return pair.description


def measures(audit: AuditResult) -> Markup | None:
    """Return other weights of the same regions side by side, where they were measured.

    A result's ``details["measures"]`` maps a measure's name to ``share`` (None without an estimate)
    and, where it is not exact, ``low`` and ``high``.
    """
    found = [r for r in audit.results if r.details.get("measures")]
    if not found:
        return None
    names = list(dict.fromkeys(m for r in found for m in r.details["measures"]))
    rows = [
        element(
            "tr",
            element("td", name(label_of(r))),
            element("td", panel_label(r.distance, r.change)),
            number_cell(share_text(r)),
            (number_cell(_measured(r, m)) for m in names),
        )
        for r in sorted(found, key=lambda r: r.order)[:MAX_COUNT_ROWS]
    ]
    return element(
        "section",
        element("h2", "Measures side by side"),
        element("p", "The same regions, with other weights than one each."),
        table(("Features", "Question", "regions", *names), rows, "Shares by measure"),
        id="measures",
    )


def _measured(result: CountResult, measure: str) -> str:
    entry = result.details["measures"].get(measure)
    return NONE if entry is None else measured_share(entry)


def witnesses(audit: AuditResult) -> Markup | None:
    """Return example pairs, where a result has them in ``details["witnesses"]``."""
    blocks = []
    for result in audit.results:
        found = [Witness.from_dict(row) for row in result.details.get("witnesses", ())]
        if not found:
            continue
        rows = [{**summary(witness), "Other features": same_inputs(witness)} for witness in found]
        body = [element("tr", (element("td", text) for text in row.values())) for row in rows]
        caption = f"{label_of(result)}: {panel_label(result.distance, result.change)}"
        shown = table(list(rows[0]), body, caption)
        blocks.append(element("details", element("summary", caption), shown))
    if not blocks:
        return None
    return element(
        "section",
        element("h2", "Witnesses"),
        element("p", "Pairs of inputs that differ only in the sensitive features."),
        blocks,
        id="witnesses",
    )


def whole_ranking(audit: AuditResult) -> Markup:
    """Return all groups by rank with all their shares; what is proved to be zero as a list."""
    zero = [r for r in audit.ranking if all(c.high == 0 for c in r.results)]
    rest = [r for r in audit.ranking if any(c.high > 0 for c in r.results)]
    head = ["Rank", "Features", *(panel_label(*panel) for panel in audit.panels)]
    rows = [_rank_row(ranked, audit) for ranked in rest]
    caption = "All features, by the mean of their shares"
    if any(ranked.score is None for ranked in audit.ranking):
        caption += " (of their low bounds where there is no estimate)"
    proved: Child = None
    if zero:
        parts: list[Child] = []
        for index, ranked in enumerate(zero):
            parts += [", " if index else None, name(ranked.label)]
        proved = element("p", element("b", "Proved to be 0 everywhere: "), parts, class_="names")
    return element(
        "details",
        element("summary", f"Show all {integer(len(audit.ranking))}, by rank"),
        table(head, rows, caption) if rows else None,
        proved,
        id="all",
    )


def _rank_row(ranked: Ranked, audit: AuditResult) -> Markup:
    shares = {(r.distance, r.change): share_text(r) for r in ranked.results}
    return element(
        "tr",
        number_cell(str(ranked.rank)),
        element("td", name(ranked.label)),
        (number_cell(shares.get(panel, NONE)) for panel in audit.panels),
    )


def number_cell(text: str) -> Markup:
    """Return a table cell with a number."""
    return element("td", text, class_="n")


def all_counts(audit: AuditResult) -> Markup:
    """Return every count with its bounds."""
    ordered = sorted(audit.results, key=lambda r: r.order)
    rows = [_count_row(result) for result in ordered[:MAX_COUNT_ROWS]]
    head = ["Features", "Gap", "Distance", "Count", "Low", "High", "Share", "How sure", "Limit"]
    head += ["Verdict", "Method", "Stopped", "Time"]
    more = len(ordered) - len(rows)
    note = element("p", f"{more} more: see --json or --csv.", class_="note") if more else None
    return element(
        "section",
        element("h2", "Every count"),
        element(
            "details",
            element("summary", f"Show {plural(len(rows), 'count')} with bounds"),
            table(head, rows, "Every count with its bounds"),
            note,
        ),
        id="counts",
    )


def _count_row(result: CountResult) -> Markup:
    return element(
        "tr",
        element("td", name(label_of(result))),
        number_cell(result.change.text),
        number_cell("any" if result.distance is None else str(result.distance)),
        number_cell(NONE if result.count is None else integer(result.count)),
        (number_cell(integer(number)) for number in (result.low, result.high)),
        number_cell(share_text(result)),
        element("td", how_sure(result)),
        number_cell(NONE if result.max_share is None else limit_percent(result.max_share)),
        element("td", NONE if result.verdict is None else str(result.verdict)),
        element("td", result.method),
        element("td", str(result.stop_reason)),
        number_cell(seconds_text(result.seconds)),
    )


def record(audit: AuditResult) -> Markup:
    """Return what is needed to repeat the audit."""
    model, results = audit.model, audit.results
    facts: list[tuple[str, Child]] = [
        ("Model file", name(model.path or "a live model")),
        ("SHA-256", element("code", model.sha256 or "none (not read from a file)")),
        ("Format", model.format),
        ("Features", integer(model.n_features)),
        *([("Domain", audit.domain.text)] if audit.domain else []),
        ("Regions", _whole(results[0].n_regions)),
        ("Gaps", f"{', '.join(_sorted_changes(results))} ({audit.gap_origin})"),
        ("Distances", ", ".join(dict.fromkeys(distance_text(r.distance) for r in results))),
        ("Leaf values", ", ".join(dict.fromkeys(_precision(r) for r in results))),
        ("Accuracy asked", ", ".join(dict.fromkeys(_accuracy(r) for r in results))),
        ("Seed", ", ".join(dict.fromkeys(str(r.seed) for r in results))),
        ("Methods", ", ".join(sorted({r.method for r in results}))),
        ("Computing time", seconds_text(sum(r.seconds for r in results))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in audit.versions.items())),
        ("Begun", audit.created),
    ]
    return fact_list(facts)


def fact_list(facts: Sequence[tuple[str, Child]]) -> Markup:
    """Return facts as a list of names and values."""
    rows = (element("div", element("dt", what), element("dd", value)) for what, value in facts)
    return element("dl", rows, class_="record")


def _whole(number: int) -> Child:
    """Return a number in all its digits, folded away when there are many."""
    if number < 10**60:
        return f"{number:,}".replace(",", "\u202f") if number < 10**15 else str(number)
    return integer(number)


def _sorted_changes(results: Sequence[CountResult]) -> list[str]:
    changes = sorted({r.change for r in results}, key=lambda change: change.order)
    return [change.text for change in changes]


def _precision(result: CountResult) -> str:
    return "as stored" if result.precision is None else f"rounded to {result.precision} decimals"


def _accuracy(result: CountResult) -> str:
    return f"epsilon {result.epsilon:g}, delta {result.delta:g}"
