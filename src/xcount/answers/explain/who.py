"""Who is affected: places and group rates of a question, under every measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from xcount.answers.explain.decided import Decision
from xcount.answers.explain.groups import groups_of
from xcount.answers.explain.places import PlaceFinder
from xcount.answers.explain.rates import decision_of, group_rates
from xcount.answers.explanation import Explanation, GroupRates, Place
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, QueryError
from xcount.measures.measure import Measure
from xcount.measures.products import refuse_without_time
from xcount.measures.rows import Rows
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.support.interval import Interval
from xcount.support.workspace import Slot

TIME_PART, LEAST_SECONDS = 0.5, 0.1
"""Share of the remaining time for the rates of all measures, and again for the places."""
_MOST_REAL = ("rows", "population", "marginals", "volume", "regions")
"""The first of these measures that is requested decides which cells form a group."""

Found = TypeVar("Found")


def with_people(
    explanation: Explanation,
    problem: Problem,
    settings: Settings,
    weighing: Weighing | None,
    known: Mapping[str, tuple[float, float]],
    favourable: object = None,
) -> Explanation:
    """Return an explanation with places and group rates.

    Args:
        explanation: the explanation of the same question so far.
        problem: the question.
        settings: limits, seed and confidence.
        weighing: the measures beside ``regions``.
        known: certain bounds on the counted shares, by measure.
        favourable: the favourable decision, as in
            :func:`~xcount.answers.explain.rates.decision_of`.
    """
    names = ("regions", *(weighing.names if weighing is not None else ()))
    notes = list(explanation.notes)

    def attempt(find: Callable[[], tuple[Found, ...]], what: str) -> tuple[Found, ...]:
        try:
            return find()
        except (BudgetError, QueryError) as error:
            notes.append(f"{what} are not known: {error}")
            return ()

    measures = attempt(
        lambda: tuple(measure_of(name, problem.grid, weighing) for name in names), "places"
    )
    limited = settings.within(TIME_PART, LEAST_SECONDS)
    may_start = partial(refuse_without_time, problem, settings)
    rates = attempt(
        lambda: _rates(problem, limited, measures, favourable, notes, may_start), "group rates"
    )
    if measures and not notes and len(rates) < len(measures):
        axes = (problem.grid.axes[feature] for feature in problem.query.sensitive)
        notes.append(
            "no test of the model tells values of "
            f"{' and '.join(axis.feature.name for axis in axes)} apart: only rows make groups"
        )
    limited = settings.within(TIME_PART, LEAST_SECONDS)
    places = attempt(lambda: _places(problem, limited, measures, known, notes, may_start), "places")
    return replace(explanation, places=places, rates=rates, notes=tuple(notes))


def _places(
    problem: Problem,
    settings: Settings,
    measures: Sequence[Measure],
    known: Mapping[str, tuple[float, float]],
    notes: list[str],
    may_start: Callable[[], None],
) -> tuple[Place, ...]:
    if measures:
        may_start()

    def find(own: Measure, limited: Settings) -> Sequence[Place]:
        low, high = known.get(own.name, (0.0, 1.0))
        share = (low + high) / 2 if Interval(None, low, high).is_settled else None
        return PlaceFinder(problem, own, limited, share).places()

    return tuple(_of_each(measures, settings, find, "places", notes))


def _of_each(
    measures: Sequence[Measure],
    settings: Settings,
    find: Callable[[Measure, Settings], Sequence[Found]],
    what: str,
    notes: list[str],
) -> Iterator[Found]:
    """Yield the findings for each measure, each within its share of the time."""
    for number, own in enumerate(measures):
        try:
            yield from find(own, settings.within(1 / (len(measures) - number), LEAST_SECONDS))
        except BudgetError as error:
            notes.append(f"{what} of {own.name} are not known: {error}")


_RATES: Slot[tuple[object, ...], tuple[GroupRates, ...]] = Slot("rates by group")


def _rates(
    problem: Problem,
    settings: Settings,
    measures: Sequence[Measure],
    favourable: object,
    notes: list[str],
    may_start: Callable[[], None],
) -> tuple[GroupRates, ...]:
    """Return the rates, shared by all questions about the same features."""
    if not measures:
        return ()
    decision = decision_of(problem.ensemble, problem.query.change, favourable)
    key = _key(problem, settings, measures, decision)
    kept = problem.grid.workspace.known(_RATES, key)
    if kept is not None:
        return kept
    may_start()
    real = min(measures, key=lambda own: _MOST_REAL.index(own.name))
    groups = groups_of(problem, real, by_value=False)

    def find(own: Measure, limited: Settings) -> Sequence[GroupRates]:
        if isinstance(own, Rows):  # groups by value
            return [group_rates(problem, own, decision, limited)]
        return [group_rates(problem, own, decision, limited, groups)] if len(groups) > 1 else []

    n_notes = len(notes)
    found = tuple(_of_each(measures, settings, find, "group rates", notes))
    if len(notes) == n_notes and not settings.expired():
        problem.grid.workspace.keep(_RATES, key, found)
    return found


def _key(
    problem: Problem, settings: Settings, measures: Sequence[Measure], decision: Decision
) -> tuple[object, ...]:
    query = problem.query
    return (
        problem.ensemble,
        query.sensitive,
        query.precision,
        replace(decision.flip, direction="any", sureness=None),
        decision.value,
        settings.seed,
        settings.delta,
        tuple(own.fingerprint for own in measures),
    )
