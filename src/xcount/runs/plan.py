"""What an audit or a comparison counts: groups of features x gaps x distances, as tasks.

Gaps are margins. One given as a change of probability is converted at a base rate p0::

    gap = logit(p0 + dp) - logit(p0),   logit(p) = ln(p / (1 - p))

that is, the margin by which a binary classifier that says p0 must move to say p0 + dp.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from xcount.answers.count import solve
from xcount.answers.inspection import gap_ladder, leaf_scale, max_changes
from xcount.answers.measure import Weighing
from xcount.answers.result import CountResult
from xcount.answers.witness.witnesses import drawn_witnesses
from xcount.counters.base import Helpers, Progress, Settings
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, QueryError
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.grid import Grid, Missing
from xcount.question.query import (
    Query,
    decimal_text,
    parse_distance,
    parse_gap,
    parse_precision,
    resolve_cutoff,
    resolve_features,
    resolve_output,
)
from xcount.question.share import Limit

Group = str | int | Iterable[str | int]
"""Features that change together: a name, an index, names with commas, or a list of those."""

MaxShare = float | str | Fraction | Mapping[str, float | str | Fraction]

MAX_PROFILE_MASKS = 2000
MAX_PROFILE_MASKS_FAR = 12
_GAP_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Options:
    """How every count of a run is made; what is counted is the task's query."""

    method: str = "auto"
    epsilon: float = 0.1
    delta: float = 0.1
    seed: int = 0
    missing: Missing = "none"
    timeout_seconds: float | None = 60.0
    memory_bytes: int | None = None
    profile: bool = True

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise QueryError(f"{name} must lie strictly between 0 and 1, not {value!r}")

    def limits(self) -> dict[str, float | int | None]:
        """Return what stops a count before it is done; a rerun with more room may do better."""
        return {"timeout_seconds": self.timeout_seconds, "memory_bytes": self.memory_bytes}


@dataclass(frozen=True, eq=False)
class Task:
    """One count of a run.

    Attributes:
        base: a problem of the same model and grid, whose native trees all tasks share.
        scope: fingerprints of the model and of all models whose guards the grid holds.
        weighing: the measures to take along with the count, if any.
        n_witnesses: how many examples to add, where they can be drawn.
    """

    base: Problem
    query: Query
    options: Options
    scope: tuple[str, ...]
    max_share: Limit | None = None
    weighing: Weighing | None = None
    n_witnesses: int = 0

    @property
    def label(self) -> str:
        names = self.base.ensemble.feature_names
        return " + ".join(names[f] for f in self.query.sensitive)

    @cached_property
    def key(self) -> str:
        """What the answer depends on, hashed: model, grid, query, accuracy, seed; no limits."""
        settings = asdict(self.options)
        for name in (*self.options.limits(), "profile"):
            del settings[name]
        exact = {"gap": str(self.query.gap), "cutoff": str(self.query.cutoff)}
        query = asdict(self.query) | exact
        parts: list[object] = [
            self.scope,
            query,
            settings,
            None if self.max_share is None else str(self.max_share.value),
        ]
        if self.weighing is not None:
            parts.append(self.weighing.fingerprint)
        if self.n_witnesses:
            parts.append(self.n_witnesses)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def _max_profile_masks(self) -> int:
        """A profile counts every pair of masks: many at a large distance."""
        return MAX_PROFILE_MASKS if self.query.distance == 1 else MAX_PROFILE_MASKS_FAR

    def run(
        self,
        jobs: int = 0,
        on_progress: Callable[[Progress], None] | None = None,
        helpers: Helpers | None = None,
    ) -> CountResult:
        """Count."""
        options = self.options
        problem = Problem(self.base.ensemble, self.base.grid, self.query)
        settings = Settings(
            epsilon=options.epsilon,
            delta=options.delta,
            seed=options.seed,
            timeout_seconds=options.timeout_seconds,
            memory_bytes=options.memory_bytes,
            jobs=jobs,
            max_share=self.max_share,
            want_profile=options.profile and problem.n_masks <= self._max_profile_masks,
            on_progress=on_progress,
            helpers=helpers,
        )
        result = solve(problem, settings, options.method, self.weighing)
        is_over = result.high == 0 or result.stop_reason is StopReason.INTERRUPTED
        if not self.n_witnesses or is_over:
            return result
        left = replace(settings, want_profile=False, max_share=None, helpers=None)
        try:
            found = drawn_witnesses(problem, self.n_witnesses, left)
        except (BudgetError, KeyboardInterrupt):  # the count itself is done
            return result
        rows = [{**witness.summary(), "Other features": witness.inputs()} for witness in found]
        return replace(result, details={**result.details, "witnesses": rows})


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a run, ascending, and a sentence on where they come from."""

    values: tuple[Fraction, ...]
    origin: str


def choose_change(
    ensemble: Ensemble,
    *,
    gaps: object = None,
    probability_gaps: object = None,
    base_rate: float | None = None,
    flip: bool = False,
    cutoff: object = None,
    output: object = None,
    precision: object = "exact",
) -> tuple[Query, Gaps]:
    """Return what all questions of a run have in common, and the gaps in which they differ."""
    decimals = parse_precision(precision)
    if not flip:
        if cutoff is not None:
            raise QueryError("a cut-off is for flips; give --flip, too")
        index = resolve_output(ensemble, output)
        chosen = choose_gaps(ensemble, index, gaps, probability_gaps, base_rate)
        return Query((), Fraction(0), output=index, precision=decimals), chosen
    threshold = resolve_cutoff(ensemble, output, cutoff)
    if any(given is not None for given in (gaps, probability_gaps, base_rate)):
        raise QueryError("questions are about gaps or about flips, not both")
    template = Query((), Fraction(0), precision=decimals, flip=True, cutoff=threshold)
    return template, flip_gaps(ensemble, threshold)


def questions(
    template: Query, gaps: Gaps, groups: Sequence[tuple[int, ...]], distances: object
) -> list[Query]:
    """Return every group at every gap and distance, the distances outermost."""
    reaches = list(dict.fromkeys(parse_distance(d) for d in as_list(distances)))
    if not reaches:
        raise QueryError("no distance given; name at least one")
    return [
        replace(template, sensitive=group, gap=gap, distance=distance)
        for distance in reaches
        for gap in gaps.values
        for group in groups
    ]


def flip_gaps(ensemble: Ensemble, cutoff: Fraction) -> Gaps:
    """Return what stands for the gaps of a run about flips: none, and what counts instead."""
    if ensemble.n_outputs > 1:
        return Gaps((Fraction(0),), "none; what counts is that another class wins")
    text = f"none; what counts is that the margin crosses {decimal_text(cutoff)} (a tie is below)"
    return Gaps((Fraction(0),), text)


def choose_gaps(
    ensemble: Ensemble,
    output: int,
    gaps: object = None,
    probability_gaps: object = None,
    base_rate: float | None = None,
) -> Gaps:
    """Return the given gaps, or a ladder that fits the leaves."""
    if probability_gaps is not None:
        if gaps is not None:
            raise QueryError("give gaps in margin or in probability, not both")
        return _gaps_of_probability(ensemble, as_list(probability_gaps), base_rate)
    if base_rate is not None:
        raise QueryError("a base rate converts gaps in probability; give --probability-gap, too")
    if gaps is None:
        return _ladder(ensemble, output)
    values = sorted({parse_gap(gap) for gap in as_list(gaps)})
    if not values:
        raise QueryError("no gap given; name at least one, or none for the default ladder")
    return Gaps(tuple(values), "given, in margin")


def probability_gap(change: float, base_rate: float) -> Fraction:
    """Return the margin gap from ``p0`` to ``p0 + dp``: ``logit(p0 + dp) - logit(p0)``.

    Example:
        >>> float(probability_gap(0.1, 0.3))
        0.441833
    """
    raised = base_rate + change
    if not (change > 0 and 0 < base_rate < 1 and raised < 1):
        raise QueryError(
            f"a probability gap dp at a base rate p0 needs dp > 0 and 0 < p0 < p0 + dp < 1; "
            f"got dp={change!r}, p0={base_rate!r}"
        )
    margin = math.log(raised / (1 - raised)) - math.log(base_rate / (1 - base_rate))
    return Fraction(round(margin * 10**_GAP_DECIMALS), 10**_GAP_DECIMALS)


def choose_groups(
    ensemble: Ensemble, grid: Grid, sensitive: Iterable[Group] | str | int | None
) -> tuple[tuple[int, ...], ...]:
    """Return the groups to audit; without any, each used feature by itself."""
    if sensitive is None:
        used = tuple((f,) for f, axis in enumerate(grid.axes) if axis.n_cells > 1)
        if not used:
            raise QueryError("no tree tests any feature: there is nothing to audit")
        return used
    groups = [sensitive] if isinstance(sensitive, str | int) else list(sensitive)
    resolved = [resolve_features(ensemble, group) for group in groups]
    if not resolved:
        raise QueryError("no sensitive feature given; name at least one")
    return tuple(dict.fromkeys(resolved))


def choose_max_shares(
    ensemble: Ensemble, groups: Sequence[tuple[int, ...]], max_share: MaxShare | None
) -> tuple[Limit | None, ...]:
    """Return the largest share that each group may have.

    One number is for all; ``"age=0.01,sex=0"`` is per feature; ``"0.05,age=0.01"`` is both. The
    features of a group are joined by ``+``.
    """
    if max_share is None:
        return (None,) * len(groups)
    default, named = _split_max_share(max_share)
    by_group: dict[tuple[int, ...], Limit] = {}
    for name, share in named.items():
        whole = name in ensemble.feature_names
        group = resolve_features(ensemble, [name] if whole else name.split("+"))
        if group not in groups:
            raise QueryError(f"a maximum share is given for {name!r}, which is not audited")
        by_group[group] = share
    return tuple(by_group.get(group, default) for group in groups)


def fingerprint(ensemble: Ensemble) -> str:
    """Return the hash of the model's file, or of the trees of a live model."""
    if ensemble.sha256 is not None:
        return ensemble.sha256
    digest = hashlib.sha256()
    digest.update(repr((ensemble.features, ensemble.base, ensemble.divisor)).encode())
    for tree in ensemble.trees:
        structure = (tree.feature, tree.threshold, tree.left, tree.right, tree.value)
        for part in (*structure, tree.missing_left, tree.zero_side):
            digest.update(np.ascontiguousarray(part).tobytes())
        categories = sorted((node, sorted(left)) for node, left in tree.left_categories.items())
        digest.update(repr((tree.output, categories)).encode())
    return digest.hexdigest()


def as_list(value: object) -> list[object]:
    """Return a list of one or several values; text may list several with commas."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    return list(value) if isinstance(value, Iterable) else [value]


def margin_is_probability(ensemble: Ensemble) -> bool:
    """Tell whether the margin is a probability already: scikit-learn's trees and forests vote."""
    return ensemble.task == "binary" and ensemble.decides_at == 0.5


def _gaps_of_probability(
    ensemble: Ensemble, changes: list[object], base_rate: float | None
) -> Gaps:
    if not changes:
        raise QueryError("no gap given; name at least one")
    if ensemble.task not in ("binary", "unknown"):
        raise QueryError(
            f"a gap in probability is for binary classifiers, and this model is "
            f"{ensemble.task}; give the gap in margin"
        )
    if margin_is_probability(ensemble):
        values = sorted({parse_gap(change) for change in changes})
        return Gaps(
            tuple(values), "given as probability, which is what this model's trees add up to"
        )
    if ensemble.divisor != 1:
        raise QueryError(
            "this model averages its trees, so its margin is no log-odds; give the gap in margin"
        )
    return _gaps_at_base_rate(changes, base_rate)


def _gaps_at_base_rate(changes: list[object], base_rate: float | None) -> Gaps:
    if base_rate is None:
        raise QueryError("a gap in probability needs a base rate, e.g. --base-rate 0.3")
    pairs = sorted((probability_gap(_number(c), base_rate), _number(c)) for c in changes)
    steps = ", ".join(
        f"{change:g} -> {decimal_text(gap)} (from {base_rate:g} to {base_rate + change:g})"
        for gap, change in pairs
    )
    origin = (
        f"converted from a change dp of the probability at the base rate p0 = {base_rate:g} by "
        f"gap = logit(p0 + dp) - logit(p0), rounded to {_GAP_DECIMALS} decimals: {steps}"
    )
    return Gaps(tuple(dict.fromkeys(gap for gap, _ in pairs)), origin)


def _ladder(ensemble: Ensemble, output: int) -> Gaps:
    """Return round gaps around the scale of the leaves."""
    scale = leaf_scale(ensemble, output)
    values = gap_ladder(scale, max(max_changes(ensemble).values(), default=0.0))
    if not values:
        raise QueryError("the leaves suggest no gap (their scale is 0 or infinite); give one")
    origin = (
        f"a ladder of round numbers around the leaf scale {scale:.3g} (the square root of the sum "
        "of the variances of each tree's leaf values)"
    )
    return Gaps(values, origin)


def _split_max_share(max_share: MaxShare) -> tuple[Limit | None, dict[str, Limit]]:
    if isinstance(max_share, Mapping):
        return None, {name: Limit.share(share) for name, share in max_share.items()}
    if not isinstance(max_share, str):
        return Limit.share(max_share), {}
    default: Limit | None = None
    named: dict[str, Limit] = {}
    for part in max_share.split(","):
        name, equals, share = part.rpartition("=")
        if equals:
            named[name.strip()] = Limit.share(share)
        else:
            default = Limit.share(share)
    return default, named


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise QueryError(f"expected a number, not {value!r}") from None
