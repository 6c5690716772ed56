"""Exact points of a curve by one visit of all regions, if that is fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from xcount.answers.explain.spectrum import SIDES, Spectrum
from xcount.counters.settings import Companions, Settings
from xcount.counters.visit import completed_visit, visiting_seconds
from xcount.problem.corner_question import CornerChange
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.support.interval import Interval

MAX_SECONDS = 0.5
"""Longest estimated visit that is made, on one core."""

Place = tuple[Direction, Fraction]


def with_exact_shares(spectrum: Spectrum, problem: Problem, settings: Settings) -> Spectrum:
    """Return a sampled spectrum of all regions with exact shares, if counting them is fast."""
    direction: Direction = problem.query.change.direction
    sides = (direction, *SIDES)
    places = [(direction, gap) for gap in spectrum.curve]
    places += [(side, gap) for gap in spectrum.asked for side in sides]
    found = _counted(problem, settings, list(dict.fromkeys(places)))
    if found is None:
        return spectrum
    curve = {gap: found[direction, gap] for gap in spectrum.curve}
    asked = {gap: tuple(found[side, gap] for side in sides) for gap in spectrum.asked}
    return replace(spectrum, curve=curve, asked=asked)


def _counted(
    problem: Problem, settings: Settings, places: Sequence[Place]
) -> Mapping[Place, Interval] | None:
    """Return the share that changes by more than each gap; None if that would take too long."""
    if problem.is_split or problem.n_regions > 2**62:
        return None
    question = problem.form.corner_question
    if question.kind != "gap":
        return None  # probabilities are compared with one gap at a time, and flips have no size
    threshold = question.outputs[0].threshold
    changes = {place: CornerChange("gap", threshold(place[1]), place[0]) for place in places}
    wanted = replace(question, changes=tuple(dict.fromkeys(changes.values())))
    if visiting_seconds(wanted) > MAX_SECONDS:
        return None
    companions = Companions([problem.query])
    asking = replace(settings, companions=companions)
    if completed_visit(problem, asking, along=[wanted]) is None:
        return None
    counts = {c: int(companions.counts[wanted.key, c].sum()) for c in changes.values()}
    shares = {place: counts[change] / problem.n_regions for place, change in changes.items()}
    return {place: Interval(share, share, share) for place, share in shares.items()}
