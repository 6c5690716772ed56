"""Group rates: how often each group of the sensitive features gets a favourable decision.

The *rate* of a group is ``P(favourable decision | group)`` under a measure: people as they are. The
adverse impact ratio is the lowest rate over the highest. *If all* is the share of all people who
would get the decision if everyone were moved to the group's cell and nothing else changed. Under a
product measure (regions, volume, marginals) the two are the same; among rows and in a population
they differ, because features depend on each other there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.decided import Decision, problem_of_not_deciding
from xcount.answers.explain.evaluate import BLOCK, Evaluator
from xcount.answers.explain.groups import EVERYBODY, Group, groups_of
from xcount.answers.explanation import GroupRate, GroupRates, ratio_of
from xcount.counters.sampling.intervals import share_intervals
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import QueryError
from xcount.measures.exact_shares import Budget
from xcount.measures.measure import Box, Measure
from xcount.measures.mixture import Mixture
from xcount.measures.products import refuse_without_room
from xcount.measures.rows import Rows
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change, shown_decimal
from xcount.question.flip import Flip
from xcount.question.query import resolve_flip
from xcount.support.interval import Interval
from xcount.support.workspace import Slot

MAX_DRAWS, LEAST_DRAWS = 40_000, 4_000
"""People drawn for all rates of a measure together, and at least for each rate."""
VISIT_SECONDS, MAX_STEPS = 0.5, 200_000
"""Budget of exact weighing for all rates of a measure together."""
LATE_BLOCK = 256
"""People drawn if time runs out before the first draw."""
_STREAM = 7
"""Random stream: separates these draws from other parts of a run."""


def decision_of(ensemble: Ensemble, change: Change, favourable: object = None) -> Decision:
    """Return the favourable decision.

    Args:
        ensemble: the model.
        change: the change in question; a flip says where the decision changes.
        favourable: a class, or ``above`` or ``below`` for a side of the cut-off; by default the
            class in question, or ``above``.

    Raises:
        QueryError: the model makes no decision, or it is unclear which one is favourable.
    """
    flip = change if isinstance(change, Flip) else resolve_flip(ensemble)
    names = decision_names(ensemble, flip)
    if favourable is not None:
        word = str(favourable).strip()
        known = {name: value for value, name in enumerate(names)}
        if flip.cutoff is not None:
            known = {**_classes(ensemble), **known, "above": 1, "below": 0}
        if word not in known:
            listed = ", ".join(known)
            raise QueryError(f"the model has no decision {word!r}; its decisions are {listed}")
        value = known[word]
    elif flip.cutoff is not None:
        value = 1
    elif change.names_class:
        value = change.output_index
    else:
        raise QueryError(
            f"which of the classes {', '.join(names)} is the favourable decision? say it with "
            "--favourable"
        )
    return Decision(flip, value, names[value], is_assumed=favourable is None)


def _classes(ensemble: Ensemble) -> dict[str, int]:
    """Return the classes of a binary model, by number and by name: sides of any cut-off."""
    labels = ensemble.class_labels or ()
    named = {label: value for value, label in enumerate(labels)} if len(labels) == 2 else {}
    return {"0": 0, "1": 1, **named} if named or ensemble.task == "binary" else {}


def decision_names(ensemble: Ensemble, flip: Flip) -> list[str]:
    """Return the names of the decisions: of both sides of a cut-off, or of the classes."""
    labels = list(ensemble.class_labels or ())
    if flip.cutoff is None:
        return labels or [str(k) for k in range(ensemble.n_outputs)]
    if ensemble.decision == "cutoff" and flip.cutoff == Fraction(ensemble.decides_at or 0.0):
        if len(labels) == 2:
            return labels
        if ensemble.task == "binary":
            return ["0", "1"]
    cutoff = shown_decimal(flip.cutoff)
    return [f"not above {cutoff}", f"above {cutoff}"]


def group_rates(
    problem: Problem,
    measure: Measure,
    decision: Decision,
    settings: Settings,
    groups: Sequence[Group] | None = None,
) -> GroupRates:
    """Return the rates of favourable decisions of all groups that have any weight.

    Args:
        problem: the question; its sensitive features define the groups.
        measure: the weights.
        decision: the favourable decision.
        settings: limits, confidence and seed.
        groups: the groups; by default those of the measure.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> problem = Problem(model, Grid.of(model), Query.of(model, "f0", flip=True, cutoff=0))
        >>> decision = decision_of(model, problem.query.change)
        >>> rates = group_rates(problem, Mixture.uniform(problem.grid), decision, Settings())
        >>> [(group.text, round(group.rate.value, 3)) for group in rates.cells]
        [('f0 < 3', 0.333), ('3 <= f0 < 4', 0.0), ('f0 >= 4', 0.0)]
    """
    given = groups_of(problem, measure) if groups is None else groups
    weights = [group.weight_among(measure) for group in given]
    groups = [group for group, weight in zip(given, weights, strict=True) if weight > 0]
    finder = _RateFinder(problem, measure, decision, settings, groups)
    rates = finder.rates(groups)
    others = finder.rates_if_all(groups, rates)
    is_exact = all(rate.exact for rate in [*rates, *others] if rate is not None)
    entries = [
        GroupRate(
            cells=tuple(tuple(np.flatnonzero(own).tolist()) for own in group.box.values()),
            text=group.text,
            weight=weight,
            rate=rate,
            if_all=if_all,
        )
        for group, weight, rate, if_all in zip(
            groups, filter(None, weights), rates, others, strict=True
        )
    ]
    return GroupRates(
        measure=measure.name,
        favourable=decision.label,
        is_assumed=decision.is_assumed,
        cells=tuple(entries),
        ratio=ratio_of(rates),
        exact=is_exact,
        confidence=1.0 if is_exact else 1 - settings.delta,
        n_samples=finder.n_samples or None,
    )


def favourable_rows(
    problem: Problem, rows: Rows, decision: Decision, settings: Settings
) -> NDArray[np.bool_]:
    """Return which rows get the favourable decision, shared by all questions about the rows.

    Raises:
        BudgetError: there was not enough time or memory.
    """
    question = _shared_question(problem, decision, settings)

    def decide() -> NDArray[np.bool_]:
        regions = rows.extended(question.grid, [np.array([1.0, 0.0])]).regions
        return ~Evaluator(question).are_rows_sensitive(regions, settings, "group rates")

    return question.grid.workspace.once(_FAVOURABLE, rows.fingerprint, decide)


_FAVOURABLE: Slot[str, NDArray[np.bool_]] = Slot("rows that get the favourable decision")


class _Tries(NamedTuple):
    """The number of draws, and of those that got the decision."""

    hits: int
    n: int


class _RateFinder:
    """Finds rates: by visiting all regions, by checking each row, or by random draws."""

    def __init__(
        self,
        problem: Problem,
        measure: Measure,
        decision: Decision,
        settings: Settings,
        groups: Sequence[Group],
    ) -> None:
        self._question = _shared_question(problem, decision, settings)
        switch = np.array([1.0, 0.0])  # the switch is off: see problem_of_not_deciding
        self._measure = measure.extended(self._question.grid, [switch])
        self._evaluator = Evaluator(self._question)
        self._settings = settings
        self._has_if_all = not problem.is_split and all(g.cell is not None for g in groups)
        self._differs = not (isinstance(measure, Mixture) and len(measure.components) == 1)
        self._n_rates = len(groups) * (1 + (self._has_if_all and self._differs))
        self._random = np.random.default_rng([settings.seed, _STREAM])
        self._takes_long = False
        self.n_samples = 0

    def rates(self, groups: Sequence[Group]) -> list[Interval]:
        """Return the rate of each group."""
        return self._intervals([self._found(self._measure, group) for group in groups])

    def rates_if_all(
        self, groups: Sequence[Group], rates: Sequence[Interval]
    ) -> Sequence[Interval | None]:
        """Return the *if all* rate of each group, given the groups' own rates."""
        if not self._has_if_all:
            return [None] * len(groups)
        if not self._differs:
            return rates
        moved = (self._measure.moved(group.cell or {}) for group in groups)
        return self._intervals([self._found(each, EVERYBODY) for each in moved])

    def _found(self, measure: Measure, group: Group) -> float | _Tries:
        """Return a rate exactly, or the outcome of random draws."""
        self._note()
        if isinstance(measure, Rows):
            rows = measure.regions[group.among(measure.regions)]
            flags = self._evaluator.are_rows_sensitive(rows, self._settings, "group rates")
            return int(np.count_nonzero(~flags)) / len(rows)
        assert isinstance(measure, Mixture)
        if self._takes_long or self._settings.expired():
            return self._tries(measure, group.box)
        budget = Budget(VISIT_SECONDS / self._n_rates, MAX_STEPS // self._n_rates)
        share = measure.exact_share(self._question, group.box, self._settings, budget)
        self._takes_long = share is None  # for one group, hence for the others as well
        return self._tries(measure, group.box) if share is None else 1 - share

    def _tries(self, measure: Measure, box: Box) -> _Tries:
        most = max(LEAST_DRAWS, MAX_DRAWS // self._n_rates)
        hits = n = 0
        while n < most and not (n and self._settings.expired()):
            size = min(LATE_BLOCK if self._settings.expired() else BLOCK, most - n)
            hits += size - self._undecided(measure.draw(self._random, size, box))
            n += size
            self._settings.report(
                Progress(1.0, 0, self._question.n_regions, "explaining: group rates")
            )
        self.n_samples += n
        return _Tries(hits, n)

    def _note(self) -> None:
        """Report progress; the listener may interrupt the run."""
        n_regions = self._question.n_regions
        self._settings.report(Progress(1.0, 0, n_regions, "explaining: group rates"))

    def _undecided(self, regions: NDArray[np.int64]) -> int:
        """Return how many of the regions do not get the decision."""
        return int(np.count_nonzero(self._evaluator.is_sensitive(regions)))

    def _intervals(self, found: Sequence[float | _Tries]) -> list[Interval]:
        """Return rates with their intervals, which hold together."""
        tries = sorted(
            {each for each in found if isinstance(each, _Tries)}, key=lambda t: (t.n, t.hits)
        )
        known: dict[float | _Tries, Interval] = {}
        for n in sorted({each.n for each in tries}):
            hits = [each.hits for each in tries if each.n == n]
            lows, highs = share_intervals(hits, n, self._settings.delta / self._n_rates)
            for number, low, high in zip(hits, lows.tolist(), highs.tolist(), strict=True):
                known[_Tries(number, n)] = Interval(number / n, low, high)
        return [
            known[each] if isinstance(each, _Tries) else Interval(each, each, each)
            for each in found
        ]


_NOT_DECIDING: Slot[tuple[object, ...], Problem] = Slot("questions of not deciding")


def _shared_question(problem: Problem, decision: Decision, settings: Settings) -> Problem:
    """Return the question of which regions do not get the decision, shared by all features.

    Raises:
        BudgetError: its trees do not fit the memory.
    """
    flip = replace(decision.flip, direction="any", sureness=None)
    key = (problem.ensemble, flip, decision.value, problem.query.precision)

    def ask() -> Problem:
        refuse_without_room(problem, settings)
        return problem_of_not_deciding(problem, decision)

    return problem.grid.workspace.once(_NOT_DECIDING, key, ask)
