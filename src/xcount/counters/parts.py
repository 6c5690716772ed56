"""A count of a question that is a sum of parts.

Parts that can be counted exactly in a short time are counted first. Then one estimate draws from
all open parts at once, and one interval holds for their sum. If hits are too rare for that, every
part is counted as a question of its own, to the same relative accuracy, which then holds for the
sum, too. The intervals of parts share delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from xcount.counters.costs import BYTES_PER_LAID_NODE, MAX_FLAGS, SECONDS_PER_LAID_NODE
from xcount.counters.exact import ExactRun
from xcount.counters.profile import profile_of
from xcount.counters.settings import Counter, Settings
from xcount.counters.tally import Bounds, PairCount, Profile, Progress, StopReason, Tally
from xcount.counters.visit import corner_seconds, visited
from xcount.errors import BudgetError
from xcount.problem.parts import Part, by_masks
from xcount.problem.problem import Problem

_ADDED = ("n_steps", "samples", "regions_visited")
"""Details whose sum over the parts is a detail of the whole."""


def count_parts(
    problem: Problem, parts: Sequence[Part], settings: Settings, count: Counter, method: str
) -> Tally:
    """Count every part, and add up."""
    live = [part for part in parts if part.n_masks > 1]  # nothing changes in the others
    known = [_unknown(part, method, StopReason.COMPLETE) for part in live]
    if len(live) > 1 and method in ("auto", "sample") and not settings.want_profile:
        if method == "auto":
            known = _counted_soon(problem, live, settings)
            if any(tally.stop_reason is StopReason.INTERRUPTED for tally in known):
                return _sum(problem, live, known, settings, method)
        found = _estimate(problem, live, known, settings, method)
        if found is not None:
            return found
    is_open = [number for number, tally in enumerate(known) if tally.low < tally.high]
    own = replace(settings, max_share=None, delta=settings.delta / max(1, len(is_open)))
    for place, number in enumerate(is_open):
        if place and known[is_open[place - 1]].stop_reason is StopReason.INTERRUPTED:
            known[number] = replace(known[number], stop_reason=StopReason.INTERRUPTED)
            continue
        if reason := _refusal(live[number], settings):
            known[number] = replace(known[number], stop_reason=reason)
            continue
        left = own.within(1 / (len(is_open) - place)) if settings.timeout_seconds else own
        shown = replace(left, on_progress=_listener(problem, settings, place, len(is_open)))
        try:
            known[number] = _narrowed(count(live[number].apart().problem, shown), known[number])
        except KeyboardInterrupt:
            known[number] = replace(known[number], stop_reason=StopReason.INTERRUPTED)
    return _sum(problem, live, known, settings, method)


def _counted_soon(whole: Problem, parts: Sequence[Part], settings: Settings) -> list[Tally]:
    """Count exactly the parts that take next to no time, until interrupted."""
    limited = replace(settings.within(0.5), max_share=None)
    found: list[Tally] = []
    for number, part in enumerate(parts):
        if reason := _refusal(part, limited):
            return [*found, *(_unknown(p, "auto", reason) for p in parts[number:])]
        own = replace(limited, on_progress=_listener(whole, settings, number, len(parts)))
        try:
            found.append(_counted_part(part.apart(), own, len(parts)))
        except KeyboardInterrupt:
            found.append(_unknown(part, "auto", StopReason.INTERRUPTED))
        if found[-1].stop_reason is StopReason.INTERRUPTED:
            left = parts[number + 1 :]
            return [*found, *(_unknown(p, "auto", StopReason.INTERRUPTED) for p in left)]
    return found


def _refusal(part: Part, settings: Settings) -> StopReason | None:
    """Return the limit that lets no trees be laid out on the cells of a part, if one does not."""
    if settings.expired():
        return StopReason.TIMEOUT
    is_small = BYTES_PER_LAID_NODE * _n_nodes(part.whole) <= settings.free_bytes()
    return None if is_small else StopReason.MEMORY


def _fit_together(problem: Problem, parts: Sequence[Part], settings: Settings) -> bool:
    """Return whether the limits let the trees be laid out for all sets of masks of the parts."""
    n_laid = len(by_masks(problem, parts)) * _n_nodes(problem)
    is_small = BYTES_PER_LAID_NODE * n_laid <= settings.free_bytes()
    return is_small and SECONDS_PER_LAID_NODE * n_laid <= settings.search_seconds()


def _n_nodes(problem: Problem) -> int:
    return sum(tree.n_nodes for tree in problem.ensemble.trees)


def _counted_part(part: Part, settings: Settings, n_parts: int) -> Tally:
    """Count one of several parts: by a visit if that is short, else in a few steps."""
    problem, form, thresholds = part.problem, part.problem.form, settings.thresholds
    corner = corner_seconds(problem, settings)
    tally = visited(problem, settings, "auto") if corner <= thresholds.instant_seconds else None
    if tally is None and form.n_terms <= form.max_auto_terms:
        tally = _counted_exactly(problem, settings, thresholds.parts_steps // n_parts)
    is_open = tally is None or tally.low < tally.high
    is_interrupted = tally is not None and tally.stop_reason is StopReason.INTERRUPTED
    if is_open and not is_interrupted and corner <= thresholds.visit_seconds / n_parts:
        tally = visited(problem, settings, "auto") or tally
    return tally or _unknown(part, "auto", StopReason.STEPS)


def _counted_exactly(problem: Problem, settings: Settings, max_steps: int) -> Tally:
    """Count exactly, with so many steps for all subproblems together."""
    run = ExactRun(problem, settings)
    run.solve(())
    if run.n_open_subproblems and run.stop_reason is not StopReason.INTERRUPTED:
        run.solve((max(1, max_steps // run.n_open_subproblems),))
    return run.tally("auto")


def _estimate(
    problem: Problem,
    parts: Sequence[Part],
    known: Sequence[Tally],
    settings: Settings,
    method: str,
) -> Tally | None:
    """Estimate all open parts together; None if that costs too much, or fewer than two are open."""
    open_parts = [p for p, tally in zip(parts, known, strict=True) if tally.low < tally.high]
    if len(open_parts) < 2 or problem.n_masks > MAX_FLAGS:
        return None
    if not _fit_together(problem, open_parts, settings):
        return None
    from xcount.counters.sampling.box_draws import BoxDraws
    from xcount.counters.sampling.estimator import Estimator, KnownPart

    known_part = KnownPart(
        certain=sum(tally.low for tally in known if tally.low == tally.high),
        undecided=sum(part.n_regions for part in open_parts),
        known=Bounds(sum(t.low for t in known), sum(t.high for t in known)),
        n_regions=problem.n_regions,
    )
    try:
        estimator = Estimator(BoxDraws(problem, open_parts), known_part, settings)
        pilot = estimator.pilot()
    except BudgetError:
        return None
    except KeyboardInterrupt:
        stopped = [replace(tally, stop_reason=StopReason.INTERRUPTED) for tally in known]
        return _sum(problem, parts, stopped, settings, method)
    price = estimator.samples_needed(pilot) * estimator.seconds_per_sample
    if not price <= settings.thresholds.parts_seconds:
        return None
    details = {"n_masks": problem.n_masks, "n_parts": len(parts)}
    return estimator.run(method, details, pilot)


def _listener(
    problem: Problem, settings: Settings, number: int, n_parts: int
) -> Callable[[Progress], None] | None:
    """Return the listener of one part's progress, if the run has a listener."""
    if settings.on_progress is None:
        return None

    def show(progress: Progress) -> None:
        fraction = (number + progress.fraction) / n_parts
        message = f"part {number + 1} of {n_parts}"
        settings.report(Progress(fraction, 0, problem.n_regions, message))

    return show


def _narrowed(tally: Tally, known: Tally) -> Tally:
    """Return a tally within bounds that were certain before it."""
    low, high = (min(max(end, known.low), known.high) for end in (tally.low, tally.high))
    count = None if tally.count is None else min(max(tally.count, low), high)
    return replace(tally, count=count, low=low, high=high)


def _unknown(part: Part, method: str, reason: StopReason) -> Tally:
    return Tally(None, 0, part.n_regions, method, reason)


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
    """Return why the sum is less accurate than asked, if it is."""
    found = [reason for reason in reasons if reason is not StopReason.COMPLETE]
    if StopReason.INTERRUPTED in found:
        return StopReason.INTERRUPTED
    return found[0] if found else StopReason.COMPLETE


def _profile(problem: Problem, parts: Sequence[Part], tallies: Sequence[Tally]) -> Profile | None:
    """Return the counts of all masks, and of the pairs if all parts have them."""
    bounds = [(0, 0)] * problem.n_masks
    sizes = [0] * problem.n_masks
    pairs: dict[tuple[int, int], tuple[int, int, int]] = {}
    for part, tally in zip(parts, tallies, strict=True):
        if tally.profile is None:
            return None
        numbers = part.masks.tolist()
        for mask, row in zip(part.starts.tolist(), tally.profile.masks, strict=True):
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
