"""In how many regions of their joint grid do two models disagree?

Both models become one ensemble whose last feature, the chooser, says which of them answers
(:mod:`xcount.model.two_models`). They disagree in a region iff a change of the chooser alone, from
the first model to the second, changes the output there as the question says. So a diff is a count,
by the same counters, measures, explanations and limits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from xcount.answers.count import (
    READING_PART,
    AnswerOptions,
    explanation_request,
    model_info,
    solve,
)
from xcount.answers.diff_result import DiffResult, Swap
from xcount.answers.diff_witnesses import BothModels, DiffWitnesses
from xcount.answers.explanation import Explanation
from xcount.answers.options import (
    MOST_WITNESSES,
    NO_CHANGE,
    ChangeOptions,
    ClusterOption,
    DomainOptions,
    ExplainOptions,
    GapOptions,
    TrustOption,
    fitted,
    missing_in,
)
from xcount.answers.people.group_table import Groups
from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Witness
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, QueryError
from xcount.measures.weighting import Weighing
from xcount.model.align import aligned, check_margins, distinct_names, with_classes_of
from xcount.model.ensemble import Ensemble
from xcount.model.two_models import CHOOSER, FIRST, SECOND, Terms, TwoModels
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap
from xcount.question.grid import Grid
from xcount.question.probability import Sigmoid
from xcount.question.query import Query, parse_precision, resolve_change
from xcount.support.options import option, takes_two

SWAP_PART = 0.5
"""Part of the time left, or of the time taken so far, for each direction of a disagreement."""
WITNESS_SECONDS = 5.0
"""Most time for witnesses, if there is no limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DiffOptions(
    AnswerOptions,
    TrustOption,
    ClusterOption,
    ExplainOptions,
    DomainOptions,
    ChangeOptions,
    GapOptions,
):
    """The options of a diff."""

    names: Sequence[str] | None = field(
        default=None,
        metadata=option(
            "A name for each model, in order; give it twice.",
            "a name for each of the two models.",
            flag="--name",
            metavar="NAME",
            repeated="list",
        ),
    )
    witnesses: int = field(
        default=3,
        metadata=option(
            "Number of inputs to show on which the models disagree; both libraries predict them.",
            "how many inputs to find on which the models disagree; both libraries predict them.",
            metavar="N",
            least=0,
            most=MOST_WITNESSES,
        ),
    )

    def change_of(self, ensemble: Ensemble) -> Change:
        """Return the change in one model's own terms."""
        return resolve_change(
            ensemble,
            self.gap,
            probability_gap=self.probability_gap,
            flip=self.flip,
            cutoff=self.decided_at,
            direction=self.direction,
            from_probability=self.from_probability,
            class_=self.class_,
        )


@takes_two(DiffOptions)
def diff(first: Any, second: Any, options: DiffOptions) -> DiffResult:
    """Count the regions in which two models disagree.

    Features are matched by name; a feature of only one model is one that the other ignores. The
    regions are those of the joint grid, which has the guards of both models. Two models disagree in
    a region if their margins differ by more than ``gap`` there, or their predicted probabilities by
    more than ``probability_gap``; or, with ``flip``, if their decisions differ.

    Args:
        first: a model file, a live model, or an ensemble.
        second: another one; changes go from the first to the second.
        options: the question, the accuracy, and what else to report.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import ensemble_of
        >>> old, new = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 2.0, 0.0, 3.0))
        >>> result = xcount.diff(old, new, gap=1)
        >>> result.count, result.n_regions
        (1, 3)
    """
    from xcount.model.loaders import load

    if not (options.has_gap or options.flip):
        raise QueryError(NO_CHANGE)
    if options.along:
        raise QueryError("no feature changes in a diff, so none moves along; leave out --along")
    cluster = options.workers()
    settings = options.count_settings()
    options.measure_names()  # reject unknown names before reading a large model
    given = (first, second)
    loaded = [load(model, trust_pickle=options.trust_pickle) for model in given]
    settings.check_memory()
    question = _Question.of(loaded, options)
    plain = question.on_columns
    weighing = options.weighing(plain, settings.within(READING_PART))
    problem = question.problem(options, missing_in(weighing))
    columns = weighing or Weighing(())
    weighing = columns.starting_in((FIRST,))
    weighing = fitted(weighing, problem.grid, settings) or weighing
    settings.check_time()
    request = explanation_request(problem.ensemble, (problem.query.change,), options)
    if cluster is not None:
        from xcount.cluster.client import Cluster

        with Cluster(cluster) as workers:
            counted = workers.count(problem, settings, options.method, weighing, request)
    else:
        counted = solve(problem, settings, options.method, weighing, request)
    notes: list[str] = []
    models = BothModels(given, loaded, question.own, question.changes, question.places)
    models = replace(models, trust_pickle=options.trust_pickle)
    found = _witnesses(
        DiffWitnesses(problem, models), counted, options.witnesses, settings, weighing, notes
    )
    swaps = _swaps(problem, counted, settings, options.method, weighing)
    counted = replace(counted, explanation=_about_inputs(counted.explanation))
    own = {each.name: getattr(counted, each.name) for each in fields(CountResult)}
    return DiffResult(
        **{name: value for name, value in own.items() if name not in ("sensitive", "model")}
        | {"witnesses": found, "n_fixed": 0, "seconds": time.monotonic() - settings.started},
        names=question.two.names,
        models=tuple(model_info(model, Grid.of(model)) for model in loaded),  # type: ignore[arg-type]  # two
        swaps=swaps,
        other_groups=_other_groups(problem, counted, columns, settings),
        notes=tuple(notes),
    )


def _other_groups(
    problem: Problem, counted: CountResult, columns: Weighing, settings: Settings
) -> Groups | None:
    """Return how the groups of the data fare under the second model, if decisions are compared."""
    if counted.groups is None or not isinstance(problem.query.change, Flip):
        return None
    from xcount.answers.people.groups import groups_of_rows

    return groups_of_rows(problem, counted.measures, columns.starting_in((SECOND,)), settings)


@dataclass(frozen=True, eq=False)
class _Question:
    """A disagreement of two models, as a question about one ensemble.

    Attributes:
        two: the two models as one ensemble.
        own: each model by itself, on the features of the question without the chooser.
        changes: the change in each model's own terms.
        places: the place that each class has in the second model's own order.
        change: the change in the terms of both.
        options: the domain and the precision.
    """

    two: TwoModels
    own: tuple[Ensemble, Ensemble]
    changes: tuple[Change, Change]
    places: tuple[int, ...]
    change: Change
    options: DiffOptions

    @classmethod
    def of(cls, loaded: Sequence[Ensemble], options: DiffOptions) -> _Question:
        """Return the question about two models as they were loaded."""
        first, other = aligned(loaded)
        second, places = with_classes_of(other, first)
        changes = options.change_of(first), options.change_of(second)
        change, terms = _common(changes, (first, second), places)
        names = distinct_names(loaded, options.names)
        two = TwoModels((first, second), (names[0], names[1]), terms)
        if parse_precision(options.precision) is not None and not two.can_be_rounded:
            raise QueryError(
                "--precision rounds leaves, but the cut-offs, links or numbers of trees of these "
                "models differ, so that their leaves are no longer the same numbers; leave it out"
            )
        regions = options.regions()
        own = regions.pulled_back(first), regions.pulled_back(second)
        return cls(two, own, changes, places, change, options)

    @property
    def on_columns(self) -> Ensemble:
        """An ensemble with all features but the chooser: tables have their columns."""
        joint, chooser = self.two.ensemble, self.two.chooser
        plain = replace(joint, features=joint.features[:chooser], trees=())
        return self.options.regions().pulled_back(plain)

    def problem(self, options: DiffOptions, lacking: Any) -> Problem:
        """Return the question: changes from the first model to the second."""
        regions = options.regions()
        ensemble = regions.pulled_back(self.two.ensemble)
        grid = Grid.of(ensemble, missing=options.missing, missing_in=lacking, domain=regions)
        chooser = ensemble.n_features - 1
        query = Query((chooser,), self.change, None, parse_precision(options.precision))
        return Problem(ensemble, grid, query, starts=(FIRST,))


def _common(
    changes: tuple[Change, Change],
    models: tuple[Ensemble, Ensemble],
    places: tuple[int, ...],
) -> tuple[Change, Terms]:
    """Return a change that means the same to both models, in the first one's terms."""
    change, other = changes
    if isinstance(change, ProbabilityGap) and isinstance(other, ProbabilityGap):
        return _same_link(change, other)
    if isinstance(change, Flip) and isinstance(other, Flip):
        return change, _same_cutoff(change, other, places)
    check_margins(models)
    return change, Terms()


def _same_link(change: ProbabilityGap, other: ProbabilityGap) -> tuple[Change, Terms]:
    """Return margins that one link makes probabilities of."""
    link, second = change.link, other.link
    if link == second:
        return change, Terms()
    if isinstance(link, Sigmoid) and isinstance(second, Sigmoid):
        return replace(change, link=Sigmoid()), Terms(factors=(link.slope, second.slope))
    raise QueryError(
        "the two models compute probabilities from their margins in different ways "
        f"({link.name} and {second.name}); ask about their decisions with --flip"
    )


def _same_cutoff(change: Flip, other: Flip, places: tuple[int, ...]) -> Terms:
    """Return margins of the second model that decide at the first one's cut-off, ties included."""
    if change.cutoff is None or other.cutoff is None:
        is_same = list(places) == sorted(places)
        return Terms() if is_same else Terms(ties=tuple(-place for place in places))
    shift = change.cutoff - other.cutoff
    ties: tuple[int, ...] = ()
    if change.tie_is_above != other.tie_is_above:
        ties = (1,) if other.tie_is_above else (-1,)
    return Terms(shift=(shift,) if shift else (), ties=ties)


def _about_inputs(explanation: Explanation | None) -> Explanation | None:
    """Return an explanation without the parts that compare values of the chooser."""
    if explanation is None:
        return None
    effects = tuple(replace(effect, cells=()) for effect in explanation.effects)
    notes = tuple(note for note in explanation.notes if CHOOSER not in note)
    return replace(explanation, effects=effects, rates=(), notes=notes)


def _witnesses(
    finder: DiffWitnesses,
    counted: CountResult,
    n: int,
    settings: Settings,
    weighing: Weighing,
    notes: list[str],
) -> tuple[Witness, ...] | None:
    """Return inputs on which both libraries confirm that the models disagree."""
    if not n:
        return None
    if counted.high == 0 or counted.stop_reason is StopReason.INTERRUPTED:
        return ()
    limited = settings.within(0.5, 0.5, WITNESS_SECONDS)
    try:
        return finder.found(n, limited, weighing.readable, notes)
    except (BudgetError, KeyboardInterrupt) as error:
        why = str(error) or "interrupted"
        notes.append(f"no input was found on which the models disagree: {why}")
        return ()


def _swaps(
    problem: Problem,
    counted: CountResult,
    settings: Settings,
    method: str,
    weighing: Weighing,
) -> tuple[Swap, ...]:
    """Return how many regions and rows go up, and how many down, if both count."""
    change = problem.query.change
    is_between_classes = isinstance(change, Flip) and change.cutoff is None
    if change.direction != "any" or is_between_classes:
        return ()
    if counted.stop_reason is StopReason.INTERRUPTED:
        return ()
    rows = weighing.of_names(["rows"])
    found: list[Swap] = []
    for direction in ("up", "down"):
        if found and counted.exact and found[0].exact:
            found.append(_rest(counted, found[0], problem))
            break
        query = replace(problem.query, change=replace(change, direction=direction))  # type: ignore[type-var]  # a dataclass
        asked = Problem(problem.ensemble, problem.grid, query, problem.starts)
        limited = replace(settings.within(SWAP_PART, 0.2, 10.0), max_share=None, judge="regions")
        found.append(_swap(solve(asked, limited, method, rows), direction, problem))
    return tuple(found)


def _rest(counted: CountResult, up: Swap, problem: Problem) -> Swap:
    """Return the other direction: a disagreement that does not go up goes down."""
    down = _swap(counted, "down", problem)
    rest = counted.low - up.low
    rows = None if down.n_rows is None or up.n_rows is None else down.n_rows - up.n_rows
    groups = None
    if down.groups is not None and up.groups is not None:
        groups = down.groups.without_sensitive(up.groups)
    return replace(down, count=rest, low=rest, high=rest, n_rows=rows, groups=groups)


def _swap(counted: CountResult, direction: str, problem: Problem) -> Swap:
    change = problem.query.change
    labels: tuple[str | None, str | None] = (None, None)
    if isinstance(change, Flip):
        known = problem.ensemble.class_labels
        labels = (known[0], known[1]) if known and len(known) == 2 else ("not above", "above")
    before, after = labels if direction == "up" else labels[::-1]
    rows = counted.measures.get("rows")
    return Swap(
        direction=direction,
        before=before,
        after=after,
        count=counted.count,
        low=counted.low,
        high=counted.high,
        confidence=counted.confidence,
        n_rows=None if rows is None else rows.details["n_sensitive"],
        groups=counted.groups,
    )
