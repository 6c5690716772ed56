"""Results as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xcount.answers.result import CountResult, ModelInfo
from xcount.counters.tally import MaskCount, PairCount, Profile, StopReason
from xcount.measures.measured import REGIONS, Measured
from xcount.model.ensemble import output_word
from xcount.question.change import Change
from xcount.report.card import Card
from xcount.report.terminal import escaped, style_of
from xcount.report.words.numbers import (
    OF_MEASURE,
    confidence_words,
    estimate_words,
    limit_percent,
    percent,
    seconds_text,
    share_words,
    sure_words,
)
from xcount.report.words.shares import (
    cut_short_words,
    has_rows,
    realism_words,
    rows_share,
    rows_words,
    share_of_changeable,
    why_rows_undecided,
)
from xcount.support.numerals import digits, scientific_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from xcount.answers.inspection import FeatureInfo, Inspection
    from xcount.measures.population import Portrait
    from xcount.measures.portrait import Realism, Trait
    from xcount.verified.counter import VerifiedCount

MAX_ROWS = 40
"""Longer lists are cut in the terminal; ``--json`` always has all of it."""

MAX_COMPONENTS = 12
"""Of a population, those that are listed, the heaviest ones."""

_GROUPED_BELOW = 10**15
_LONG = 10**1000
STOPPED = {
    StopReason.COMPLETE: "complete",
    StopReason.DECIDED: "stopped as soon as the verdict was certain",
    StopReason.TIMEOUT: "stopped by the time limit",
    StopReason.MEMORY: "stopped by the memory limit",
    StopReason.STEPS: "stopped by the step limit",
    StopReason.INTERRUPTED: "interrupted",
}

ASKED_OF = {
    REGIONS: "In how many regions",
    "volume": "In what share of the volume",
    "marginals": "For what share by marginals",
    "rows": "For how many rows",
    "population": "For what share of the population",
}


def count_text(count: int) -> str:
    """Return a count with grouped digits, or in scientific form where it is huge.

    Example:
        >>> count_text(1234567), count_text(7**100)
        ('1,234,567', '3.234e+84')
    """
    return f"{count:,}" if abs(count) < _GROUPED_BELOW else scientific_text(count)


def bytes_text(size: int) -> str:
    """Return a size, e.g. ``120 MB``."""
    unit, factor = ("GB", 10**9) if size >= 10**9 else ("MB", 10**6)
    return f"{size / factor:.3g} {unit}"


def question_text(result: CountResult, measure: str | None = None) -> str:
    """Return the question in words; of a measure, or of the judged one."""
    names = _listed(result.sensitive)
    several = len(result.sensitive) > 1
    many, values = ("change", "values") if several else ("changes", "value")
    any_value = f"to any {values}"
    how = any_value if result.distance is None else f"by at most {_cells(result.distance)}"
    rounded = "" if result.precision is None else f" (leaves at {result.precision} decimals)"
    of_class = f" of class {result.class_label}" if result.class_label else ""
    asked = result.change.asked(of_class, rounded)
    return f"{ASKED_OF[measure or result.judge]} does {asked} if only {names} {many}, {how}?"


def answer_text(result: CountResult) -> str:
    """Return the count with how sure it is."""
    if result.count is not None and result.exact:
        sure = "exact, verified" if result.verified else "exact"
        return f"{count_text(result.count)} ({sure})"
    interval = f"between {count_text(result.low)} and {count_text(result.high)}"
    about = "" if result.count is None else f"about {count_text(result.count)}, "
    return f"{about}{interval}, {_confidence(result)}"


def count_tables(result: CountResult) -> list[RenderableType]:
    """Return the result as a card, and its profile as more tables if there is one."""
    card = Card(question_text(result))
    card.add_row("Model", model_text(result.model))
    if result.domain:
        card.add_row("Domain", result.domain.text)
    card.add_row("Regions", f"{count_text(result.n_regions)} (the model's own grid)")
    add_answer(card, result, "Sensitive")
    tables: list[RenderableType] = [card]
    if result.profile is not None:
        tables.extend(_profile_tables(result.profile, result.change))
    if result.explanation is not None:
        from xcount.report.explanation_text import explanation_tables

        tables.extend(explanation_tables(result))
    if result.groups is not None:
        from xcount.report.group_text import group_tables
        from xcount.report.group_words import count_sheets

        tables.extend(group_tables(count_sheets(result)))
    return tables


def add_answer(
    card: Card, result: CountResult, what: str, more: Sequence[tuple[str, str]] = ()
) -> None:
    """Add the count, the shares, the verdict and the run to a card.

    Args:
        card: the card.
        result: the count.
        what: what was counted.
        more: rows that follow the shares.
    """
    card.add_row(what, (answer_text(result), "bold"))
    card.add_row("Share", share_interval(result))
    if result.judge == REGIONS:
        _add_verdict(card, result)
    for name, measured in result.measures.items():
        card.add_row(f"By {name}", measured_text(measured, result.sensitive))
    if (realism := realism_words([result])) is not None:
        card.add_row("Population", realism)
    for label, text in more:
        card.add_row(label, text)
    if result.judge != REGIONS:
        _add_verdict(card, result)
    card.add_row("Run", _run_text(result))


def _all_digits(count: int) -> str:
    """Return a number with all its digits, in groups unless there are thousands of them."""
    return f"{count:,}" if count < _LONG else digits(count)


def verified_tables(result: VerifiedCount) -> list[RenderableType]:
    """Return the count of a question file as a card."""
    card = Card(f"How many regions are sensitive in {result.question}?")
    found = "unknown: the counter did not finish within the limits"
    if result.count is not None:
        found = f"{_all_digits(result.count)} (verified)"
    estimate = result.estimate
    if estimate is not None:
        confidence = confidence_words(estimate.confidence)
        found = (
            f"between {_all_digits(estimate.low)} and {_all_digits(estimate.high)} of "
            f"{_all_digits(estimate.total)}, with {confidence} confidence"
        )
    card.add_row("Sensitive", (found, "bold"))
    if estimate is not None:
        share = f"{_all_digits(estimate.n_sensitive)} of {_all_digits(estimate.n_samples)}"
        card.add_row("Samples", f"{share} sensitive, seed {estimate.seed}")
        card.add_row("Outcomes", estimate.outcomes)
    if result.verified or estimate is not None:
        card.add_row("Proved", result.theorem)
    for sentence in result.model_check or ():
        card.add_row("Model", sentence)
    card.add_row("Run", f"{result.engine}, {seconds_text(result.seconds)}")
    card.add_row("SHA-256", result.sha256)
    return [card]


def _add_verdict(card: Card, result: CountResult) -> None:
    if result.verdict is None or result.max_share is None:
        return
    is_plain = result.judge == REGIONS and not result.measures
    of_what = "" if is_plain else f" {OF_MEASURE[result.judge]}"
    allowed = f"(at most {limit_percent(result.max_share)}{of_what} allowed)"
    why = why_rows_undecided(result)
    said = f" {allowed}" if why is None else f" {allowed}: {why}"
    card.add_row("Verdict", (str(result.verdict), style_of(result.verdict)), said)


def measured_text(measured: Measured, names: Sequence[str] = ()) -> str:
    """Return one measure of a result, e.g. ``12.5 % (exact)``."""
    share, details = measured.interval, measured.details
    low, high = share_words(share.low), share_words(share.high)
    interval = f"between {low} and {high}, with {confidence_words(measured.confidence)} confidence"
    if share.value is None:
        why = details.get("note") or STOPPED[measured.stop_reason]
        return interval if measured.is_known else f"unknown: {why}"
    if has_rows(measured):
        return f"{rows_share(share)}: {rows_words(measured, names)}"
    if share.is_settled:
        return f"{share_words(share.value)} ({sure_words(share)})"
    return f"{estimate_words(share)}, {interval}"


def inspection_tables(inspection: Inspection, show_all: bool = False) -> list[RenderableType]:
    """Return a model as a card and a table of its features, the most influential first."""
    model = inspection.model
    leaves = inspection.leaves
    card = Card(model.path or "model")
    if inspection.domain:
        card.add_row("Domain", inspection.domain.text)
    several = f", {inspection.n_outputs} {output_word(inspection.task)}"
    outputs = several if inspection.n_outputs > 1 else ""
    card.add_row("Format", f"{model.format} ({inspection.task}{outputs})")
    card.add_row(
        "Trees",
        f"{model.n_trees:,} of depth up to {model.max_depth}, {inspection.n_leaves:,} leaves",
    )
    used = sum(feature.n_trees > 0 for feature in inspection.features)
    card.add_row("Features", f"{model.n_features:,} ({used:,} tested by the trees)")
    card.add_row("Guards", f"{model.n_guards:,}")
    card.add_row("Regions", count_text(inspection.n_regions))
    card.add_row(
        "Leaves",
        f"{leaves.low:.4g} to {leaves.high:.4g}, median size {leaves.median_size:.3g}; "
        f"the margin spans at most {leaves.max_change:.4g}",
    )
    if inspection.gaps:
        card.add_row("Suggested gaps", _gaps_text(inspection))
    if inspection.one_hot:
        card.add_row("One-hot groups", _groups_text(inspection.one_hot))
    tables: list[RenderableType] = [card, _feature_table(inspection, show_all)]
    if inspection.population is not None:
        people, share = inspection.population, inspection.population_share
        tables += population_tables(people, "Population", share, show_all=show_all)
    return tables


def _gaps_text(inspection: Inspection) -> str:
    listed = ", ".join(f"{gap:g}" for gap in inspection.gaps)
    if inspection.task == "binary" and inspection.margin == "margin":
        return f"{listed} (in probability)"
    if inspection.task != "binary" or inspection.margin != "sigmoid":
        return listed
    factors = ", ".join(f"{math.exp(min(gap, 700)):.3g}" for gap in inspection.gaps)
    return f"{listed} (log-odds: the odds change by a factor of {factors})"


def _groups_text(groups: Mapping[str, Sequence[str]]) -> str:
    listed = ", ".join(f"{name} ({len(columns)} columns)" for name, columns in groups.items())
    return f"judging by column names: {listed}; --domain-template writes them to a file"


def _feature_table(inspection: Inspection, show_all: bool) -> RenderableType:
    from rich.table import Table

    table = Table(caption_justify="left")
    table.add_column("Feature")
    table.add_column("Index", justify="right")
    table.add_column("Kind")
    table.add_column("Guards", justify="right")
    table.add_column("Cells", justify="right")
    table.add_column("Trees", justify="right")
    table.add_column("Changes the margin by at most", justify="right")
    listed, left_out = _chosen(inspection.features, show_all)
    for feature in listed:
        table.add_row(
            escaped(feature.name),
            str(feature.index),
            feature.kind,
            str(feature.n_guards),
            str(feature.n_cells),
            str(feature.n_trees),
            f"{feature.max_change:.4g}",
        )
    if left_out:
        table.caption = f"{left_out:,} more; --all lists them"
    return table


def _chosen(features: tuple[FeatureInfo, ...], show_all: bool) -> tuple[list[FeatureInfo], int]:
    if show_all:
        return list(features), 0
    used = [feature for feature in features if feature.n_trees > 0]
    used.sort(key=lambda feature: (-feature.max_change, feature.index))
    return used[:MAX_ROWS], len(features) - len(used[:MAX_ROWS])


def population_tables(
    portrait: Portrait,
    title: str,
    share_in_domain: float | None = None,
    *,
    show_all: bool = False,
) -> list[RenderableType]:
    """Return a population as a card, a table of its components, and one of its checks."""
    card = Card(title)
    card.add_row("Fitted to", _data_text(portrait))
    if portrait.data_sha256 is not None:
        card.add_row("SHA-256", portrait.data_sha256)
    one = portrait.n_components == 1
    card.add_row(
        "Made of",
        f"{portrait.n_components} component{'' if one else 's'}, {portrait.n_columns} columns",
    )
    card.add_row("Held-out rows", _likelihood_text(portrait.realism))
    if share_in_domain is not None:
        card.add_row("In the domain", f"{share_words(share_in_domain)} of the population")
    tables = [card, _component_table(portrait, show_all)]
    if portrait.realism.checks:
        tables.append(_check_table(portrait.realism))
    return tables


def _data_text(portrait: Portrait) -> str:
    realism = portrait.realism
    rows = f"{realism.n_rows:,} rows, and {realism.n_held_out:,} held out"
    known = realism.n_rows + realism.n_held_out
    unknown = (portrait.n_data_rows or known) - known
    left_out = f"; {unknown:,} rows left out (values in no cell)" if unknown else ""
    return f"{portrait.source or 'rows without a name'}: {rows}{left_out}"


def _likelihood_text(realism: Realism) -> str:
    found, alone = realism.log_likelihood, realism.marginals_log_likelihood
    factor = math.exp(min(700.0, found - alone))
    return (
        f"log-likelihood {found:.2f} nats per row, against {alone:.2f} for the marginals: "
        f"{factor:.3g} times as likely"
    )


def _component_table(portrait: Portrait, show_all: bool) -> RenderableType:
    from rich.table import Table

    table = Table(title="Components", title_justify="left", caption_justify="left")
    table.add_column("Weight", justify="right")
    table.add_column("What sets it apart (share of the component, of all)")
    listed = portrait.components if show_all else portrait.components[:MAX_COMPONENTS]
    for component in listed:
        traits = (
            "; ".join(map(_trait_text, component.traits))
            or "nothing: it resembles the whole population"
        )
        table.add_row(share_words(component.weight), escaped(traits))
    if len(listed) < len(portrait.components):
        table.caption = f"{len(portrait.components) - len(listed)} more; --all lists them"
    return table


def _trait_text(trait: Trait) -> str:
    return f"{trait.text} ({share_words(trait.share)}, {share_words(trait.of_all)})"


def _check_table(realism: Realism) -> RenderableType:
    from rich.table import Table

    table = Table(title="How often both conditions hold", title_justify="left")
    table.add_column("Both")
    for name in ("Held-out rows", "Population", "If independent"):
        table.add_column(name, justify="right")
    for check in realism.checks:
        shares = (check.rows, check.population, check.marginals)
        table.add_row(escaped(check.text), *(share_words(share) for share in shares))
    return table


def _profile_tables(profile: Profile, change: Change) -> list[RenderableType]:
    """Return the count by mask, and where the model jumps: by pair of neighbouring masks."""
    tables = [_rows_table("By mask", ("Mask", "Sensitive regions", "Share"), profile.masks)]
    jumps = [pair for pair in profile.pairs if pair.high > 0]
    if jumps:
        columns = ("Between", "Combinations of the rest", "Share of the rest")
        is_sized = change.size is not None
        title = "Where it jumps by more than the gap" if is_sized else "Where the decision changes"
        tables.append(_rows_table(title, columns, jumps))
    return tables


def _rows_table(
    title: str, columns: tuple[str, str, str], rows: Sequence[MaskCount | PairCount]
) -> RenderableType:
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption_justify="left")
    for name in columns:
        table.add_column(name, justify="left" if name == columns[0] else "right")
    known = [row for row in rows if not row.is_open]
    for row in known[:MAX_ROWS]:
        exact = row.low == row.high
        interval = f"{count_text(row.low)} to {count_text(row.high)}"
        low, high = (percent(n, row.n_combinations) for n in (row.low, row.high))
        table.add_row(
            escaped(row.description),
            count_text(row.low) if exact else interval,
            low if exact else f"{low} to {high}",
        )
    said = []
    if len(known) > MAX_ROWS:
        said.append(f"{len(known) - MAX_ROWS:,} more; --json lists them")
    if len(known) < len(rows):
        n_open = len(rows) - len(known)
        rows_left_out = "1 row" if n_open == 1 else f"{n_open:,} rows"
        said.append(f"{rows_left_out} left out: nothing is known so far")
    table.caption = "\n".join(said) or None
    return table


def model_text(model: ModelInfo) -> str:
    """Return which model was asked: its file and its size."""
    what = f"{model.n_trees:,} trees, {model.n_features:,} features, {model.n_guards:,} guards"
    return f"{model.path} ({what})" if model.path else what


def share_interval(result: CountResult) -> str:
    """Return the share of the regions, with its bounds if it is not exact."""
    measured = result.measured(REGIONS)
    assert measured is not None
    changeable = share_of_changeable(measured, result.sensitive)
    among = "" if changeable is None else f"; {changeable}"
    share = measured.interval
    if share.exact:
        return f"{estimate_words(share)}{among}"
    interval = f"between {share_words(share.low)} and {share_words(share.high)}"
    estimate = "" if share.value is None else f"{estimate_words(share)}, "
    return f"{estimate}{interval}{among}"


def _run_text(result: CountResult) -> str:
    cut = cut_short_words(result.cut_short)
    why = "" if cut is None else f" ({cut})"
    return (
        f"{result.method}, {STOPPED[result.stop_reason]}{why}, {seconds_text(result.seconds)}, "
        f"{bytes_text(result.peak_memory_bytes)}"
    )


def _confidence(result: CountResult) -> str:
    return (
        "guaranteed"
        if result.confidence == 1
        else f"with {confidence_words(result.confidence)} confidence"
    )


def _cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number:,} cells"


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
