"""An audit as a page shows it: its measure, its questions and features in order, links to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xcount.answers.result import CountResult
from xcount.measures.measured import Measured
from xcount.report.lead import (
    Lead,
    answer_to,
    first_groups,
    in_order,
    lead,
    measure_of,
    panels,
    ranking_shown,
    share_shown,
)
from xcount.report.markup import Markup, element, name
from xcount.runs.audit import AuditResult, Panel
from xcount.runs.ranked import Ranked

MAX_DESCRIBED = 12
"""So many features get a part of their own; those that come first do in any case."""


@dataclass(frozen=True)
class View:
    """What the sections of a page have in common.

    Attributes:
        audit: what is shown.
        measure: what the shares in front are of.
        lead: the result that leads; None without any.
        panels: the questions, the leading one first.
        ranking: the features in the order of the leading question: those that come first, then by
            their shares.
        described: the features that have a part of their own, in their order.
    """

    audit: AuditResult
    measure: str
    lead: Lead | None
    panels: tuple[Panel, ...]
    ranking: tuple[Ranked, ...]
    described: tuple[Ranked, ...]
    keys: Mapping[tuple[str, ...], str]
    first: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, audit: AuditResult) -> View:
        """Decide what is shown, and in which order."""
        first, measure, asked = first_groups(audit), measure_of(audit), tuple(panels(audit))
        ranking = ranking_shown(audit)
        described = _described(ranking, first)
        keys = {ranked.sensitive: f"feature-{index}" for index, ranked in enumerate(described)}
        return cls(audit, measure, lead(audit), asked, ranking, described, keys, first)

    def share(self, result: CountResult) -> Measured:
        """Return the share of a result that the page shows."""
        return share_shown(result, self.measure)

    def comes_first(self, sensitive: tuple[str, ...]) -> bool:
        """Tell whether a group is never left out."""
        return sensitive in self.first

    def in_order(self, results: Iterable[CountResult]) -> list[CountResult]:
        """Return results, those that come first first, then by share."""
        return in_order(self.audit, results, self.measure)

    def link(self, sensitive: tuple[str, ...]) -> Markup:
        """Return the name of a group, which leads to its part of the page if there is one."""
        label, key = name(" + ".join(sensitive)), self.keys.get(sensitive)
        return label if key is None else element("a", label, href=f"#{key}")

    def leading(self, ranked: Ranked) -> CountResult:
        """Return a group's answer to the leading question, or to the first one it has."""
        return answer_to(self.panels, ranked)


def _described(ranking: Sequence[Ranked], first: frozenset[tuple[str, ...]]) -> tuple[Ranked, ...]:
    """Return the groups of which there is more to say than a share, in the order of the page."""
    telling = [ranked for ranked in ranking if any(map(_tells_more, ranked.results))]
    n_first = sum(ranked.sensitive in first for ranked in telling)
    return tuple(telling[: max(n_first, MAX_DESCRIBED)])


def _tells_more(result: CountResult) -> bool:
    has_profile = result.profile is not None and any(
        not mask.is_open and mask.high > 0 for mask in result.profile.masks
    )
    return has_profile or result.explanation is not None or bool(result.witnesses)
