"""A count in a domain with rules: the sum of the counts of its parts.

Every part is counted as a question of its own, to the same relative accuracy: so is their sum.
Where intervals may be wrong, each may be with a part of the probability that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from xcount.counters.profile import profile_of
from xcount.counters.settings import Counter, Settings
from xcount.counters.tally import PairCount, Profile, Progress, StopReason, Tally
from xcount.problem.parts import Part
from xcount.problem.problem import Problem

_ADDED = ("n_steps", "samples", "regions_visited")


def count_parts(
    problem: Problem, parts: Sequence[Part], settings: Settings, count: Counter, method: str
) -> Tally:
    """Count every part, and add up."""
    live = [part for part in parts if part.problem.n_masks > 1]  # nothing changes in the others
    own = replace(settings, max_share=None, delta=settings.delta / max(1, len(live)))
    tallies: list[Tally] = []
    for number, part in enumerate(live):
        if tallies and tallies[-1].stop_reason is StopReason.INTERRUPTED:
            tallies.append(_unknown(part, method, StopReason.INTERRUPTED))
            continue
        left = own.within(1 / (len(live) - number)) if settings.timeout_seconds else own
        shown = replace(left, on_progress=_listener(problem, settings, number, len(live)))
        try:
            tallies.append(count(part.problem, shown))
        except KeyboardInterrupt:
            tallies.append(_unknown(part, method, StopReason.INTERRUPTED))
    return _sum(problem, live, tallies, settings, method)


def _listener(
    problem: Problem, settings: Settings, number: int, n_parts: int
) -> Callable[[Progress], None] | None:
    """Return who hears of the progress of one part, if anybody listens."""
    if settings.on_progress is None:
        return None

    def show(progress: Progress) -> None:
        fraction = (number + progress.fraction) / n_parts
        message = f"part {number + 1} of {n_parts}"
        settings.report(Progress(fraction, 0, problem.n_regions, message))

    return show


def _unknown(part: Part, method: str, reason: StopReason) -> Tally:
    return Tally(None, 0, part.problem.n_regions, method, reason)


def _sum(
    problem: Problem,
    parts: Sequence[Part],
    tallies: Sequence[Tally],
    settings: Settings,
    method: str,
) -> Tally:
    low, high = sum(t.low for t in tallies), sum(t.high for t in tallies)
    counts = [t.count for t in tallies if t.count is not None]
    details = {
        name: sum(t.details.get(name, 0) for t in tallies)
        for name in _ADDED
        if any(name in t.details for t in tallies)
    }
    is_certain = all(t.confidence == 1.0 for t in tallies)
    return Tally(
        sum(counts) if len(counts) == len(tallies) else None,
        low,
        high,
        method,
        _reason(t.stop_reason for t in tallies),
        1.0 if is_certain else 1 - settings.delta,
        {"n_masks": problem.n_masks, "n_parts": len(parts), **details},
        _profile(problem, parts, tallies) if settings.want_profile else None,
    )


def _reason(reasons: Iterable[StopReason]) -> StopReason:
    """Return why the sum is not as accurate as asked, if it is not."""
    found = [reason for reason in reasons if reason is not StopReason.COMPLETE]
    if StopReason.INTERRUPTED in found:
        return StopReason.INTERRUPTED
    return found[0] if found else StopReason.COMPLETE


def _profile(problem: Problem, parts: Sequence[Part], tallies: Sequence[Tally]) -> Profile | None:
    """Return the counts of the whole's masks, and of its pairs where all parts have them."""
    bounds = [(0, 0)] * problem.n_masks
    sizes = [0] * problem.n_masks
    pairs: dict[tuple[int, int], tuple[int, int, int]] = {}
    for part, tally in zip(parts, tallies, strict=True):
        if tally.profile is None:
            return None
        numbers = part.masks.tolist()
        for mask, row in zip(numbers, tally.profile.masks, strict=True):
            bounds[mask] = (bounds[mask][0] + row.low, bounds[mask][1] + row.high)
            sizes[mask] += row.n_combinations
        for pair in tally.profile.pairs:
            both = tuple(
                numbers[part.problem.mask_number(c)] for c in (pair.cells, pair.other_cells)
            )
            key = (min(both), max(both))
            low, high, size = pairs.get(key, (0, 0, 0))
            pairs[key] = (low + pair.low, high + pair.high, size + pair.n_combinations)
    whole = profile_of(problem, bounds)
    rows = tuple(replace(m, n_combinations=n) for m, n in zip(whole.masks, sizes, strict=True))
    found = tuple(
        PairCount(rows[a].cells, rows[b].cells, rows[a].ranges, rows[b].ranges, *counts)
        for (a, b), counts in sorted(pairs.items())
    )
    return Profile(rows, found)
