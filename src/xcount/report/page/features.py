"""The section that goes through the features: for each, all that is known about it in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Witness
from xcount.counters.tally import MaskCount, PairCount
from xcount.question.cell import CellRange
from xcount.report.lead import answer
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.charts import Layer, profile_chart, shades
from xcount.report.page.explained import explained
from xcount.report.page.shell import BADGES
from xcount.report.page.tables import number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.page.witness_pairs import witness_pair
from xcount.report.sentences import panel_label
from xcount.report.words.numbers import distance_text, percent, plural, short_share
from xcount.runs.ranked import Ranked

Row = TypeVar("Row", MaskCount, PairCount)

_TOP_CELLS = 5
_MAX_WITNESSES = 5


def features(view: View) -> Markup | None:
    """Return a part of the page for each feature of which there is more to say than a share."""
    if not view.described:
        return None
    leading = view.lead.result.sensitive if view.lead is not None else None
    opened = leading if leading in view.keys else view.described[0].sensitive
    blocks = [_feature(view, each, each.sensitive == opened) for each in view.described]
    left_out = len(view.audit.ranking) - len(blocks)
    return element(
        "section",
        element("h2", "Feature by feature"),
        blocks,
        element(
            "p",
            f"{plural(left_out, 'feature')} with smaller shares or no further details: "
            "see the table above.",
            class_="note",
        )
        if left_out
        else None,
        id="features",
    )


def _feature(view: View, ranked: Ranked, is_open: bool) -> Markup:
    result = view.leading(ranked)
    share = view.share(result)
    kind, symbol, word = BADGES[result.verdict]
    mark = element("span", symbol, title=word, class_=f"mini {kind}") if kind != "none" else None
    summary = element(
        "summary",
        element("h3", name(ranked.label)),
        element("span", short_share(share.interval), mark, class_="value"),
    )
    return element(
        "details",
        summary,
        element("p", f"{answer(view.audit, result, share)}.", class_="answer"),
        explained(result, view.measure),
        _profile(ranked),
        _witnesses(view, ranked),
        class_="feature",
        id=view.keys[ranked.sensitive],
        data_sensitive=ranked.label,
        data_verdict=None if result.verdict is None else str(result.verdict),
        open=is_open,
    )


def _witnesses(view: View, ranked: Ranked) -> list[Child]:
    """Return pairs of inputs: those of the leading question, and folded those of the others."""
    blocks: list[Child] = []
    leading = view.leading(ranked)
    for result in sorted(ranked.results, key=lambda each: each is not leading):
        found = result.witnesses or ()
        pairs: list[Child] = [
            witness_pair(witness, n, result) for n, witness in enumerate(found[:_MAX_WITNESSES], 1)
        ]
        if not pairs:
            continue
        title = f"Examples: {panel_label(result.distance, result.change)}"
        if blocks:
            blocks.append(element("details", element("summary", title), pairs))
        else:
            about = element("p", _about_examples(found[0]), class_="note")
            blocks += [element("h4", title), about, pairs]
    return blocks


def _about_examples(first: Witness) -> str:
    if first.row is None:
        return "Pairs that differ only in the marked cells, the most typical first."
    return (
        "Pairs that differ only in the marked cells, closest to real rows first. Rows are "
        "numbered from 0."
    )


def _profile(ranked: Ranked) -> list[Child]:
    """Return where along a feature the sensitive regions lie, at the smallest distance."""
    with_profile = [r for r in ranked.results if r.profile is not None and r.profile.masks]
    if not with_profile:
        return []
    results = [r for r in with_profile if r.distance == with_profile[0].distance]
    shown = [r for r in results if _says_something(r)]
    if not shown:
        return []
    first, masks = shown[0], _masks(shown[0])
    chart: Child = None
    if len(first.sensitive) == 1 and len(masks) > 1:
        layers = [
            Layer(r.change.brief, tuple(_mask_bounds(mask) for mask in _masks(r))) for r in shown
        ]
        title = f"Where along {ranked.label}, {distance_text(first.distance)}"
        texts = [mask.description for mask in masks]
        chart = [
            profile_chart(layers, _edges(masks), texts, title),
            shades([r.change.label for r in shown]),
            [element("p", said, class_="note") for r in shown if (said := _left_blank(r))],
        ]
    sharpest = shown[-1]
    return [
        element("h4", "Where along the feature"),
        element(
            "p",
            f"For each of its {plural(len(masks), 'cell')}: the share of all combinations of the "
            f"other features that is sensitive there; {_peak(sharpest)}.",
            class_="note",
        ),
        chart,
        element("div", _top_masks(sharpest), _top_pairs(sharpest), class_="columns"),
    ]


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
    return f"{plural(n_open, what)} left out: nothing is known so far"


def _mask_bounds(mask: MaskCount) -> tuple[float, float] | None:
    whole = mask.n_combinations
    return None if mask.is_open else (mask.low / whole, mask.high / whole)


def _peak(result: CountResult) -> str:
    known = _known(_masks(result))
    if len(known) > 1 and len({(mask.low, mask.high) for mask in known}) == 1:
        return "the same in all of them"
    return f"highest where {_shortened(known[0].description)}"


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


def _top_masks(result: CountResult) -> Markup:
    masks = _masks(result)
    rows = [
        row(text_cell(mask.description), number_cell(_row_share(mask)))
        for mask in _known(masks)[:_TOP_CELLS]
        if mask.high > 0
    ]
    title = f"Most sensitive cells at {result.change.label}"
    caption = _caption(title, _left_out(masks, "cell"))
    return table(("Cell", "Sensitive"), rows, caption, can_sort=False)


def _caption(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _row_share(each: MaskCount | PairCount) -> str:
    low = percent(each.low, each.n_combinations)
    return low if each.exact else f"{low} to {percent(each.high, each.n_combinations)}"


def _top_pairs(result: CountResult) -> Markup | None:
    pairs = result.profile.pairs if result.profile is not None else ()
    rows = [
        row(text_cell(_step(pair)), number_cell(_row_share(pair)))
        for pair in _known(pairs)[:_TOP_CELLS]
        if pair.high > 0
    ]
    if not rows:
        return None
    title = f"Steepest steps at {result.change.label}"
    caption = _caption(title, _left_out(pairs, "step"))
    return table(("Step", "Jumps"), rows, caption, can_sort=False)


def _step(pair: PairCount) -> str:
    """Return what lies between two cells: a threshold, where they are neighbours."""
    if len(pair.ranges) == 1:
        (lower,), (upper,) = pair.ranges, pair.other_ranges
        if lower.high is not None and lower.high == upper.low:
            return f"{lower.feature} crosses {lower.edge_text(lower.high)}"
    return pair.description
