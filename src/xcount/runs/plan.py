"""Plan of an audit or a comparison: groups of features x changes x distances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from xcount.answers.inspection import gap_ladder, leaf_scale, max_changes
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.question.change import Change, shown_decimal
from xcount.question.flip import Flip
from xcount.question.gap import Gap
from xcount.question.grid import Grid
from xcount.question.query import (
    Query,
    parse_direction,
    parse_distance,
    parse_gap,
    parse_precision,
    refuse_without_flip,
    resolve_features,
    resolve_flip,
    resolve_output,
    resolve_probability_gap,
)
from xcount.question.share import Limit

Group = str | int | Iterable[str | int]
"""Features that change together: a name, an index, names with commas, or a list of those."""

MAX_SHARE = "--max-share (max_share)"
MaxShare = float | str | Fraction | Mapping[Any, float | str | Fraction]


class Gaps(NamedTuple):
    """Gaps, ascending, and a sentence on where they come from."""

    values: tuple[Fraction, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a run, in order, and a sentence on where they come from."""

    values: tuple[Change, ...]
    origin: str


def choose_changes(
    ensemble: Ensemble,
    *,
    gaps: object = None,
    probability_gaps: object = None,
    flip: bool = False,
    cutoff: object = None,
    from_probability: object = None,
    direction: object = "any",
    class_: object = None,
) -> Changes:
    """Return the changes of a run's questions."""
    if flip:
        if gaps is not None or probability_gaps is not None:
            raise QueryError("use either --flip or gaps, not both")
        change = resolve_flip(ensemble, class_, cutoff, direction, from_probability)
        return Changes((change,), _flip_origin(change))
    refuse_without_flip(cutoff, from_probability)
    if probability_gaps is not None:
        if gaps is not None:
            raise QueryError("give gaps in the margin or in the probability, not both")
        return _probability_changes(ensemble, probability_gaps, class_, direction)
    index, way = resolve_output(ensemble, class_), parse_direction(direction)
    values, origin = choose_gaps(ensemble, index, gaps)
    return Changes(tuple(Gap(gap, index, way) for gap in values), origin)


def _probability_changes(
    ensemble: Ensemble, gaps: object, class_: object, direction: object
) -> Changes:
    values = {resolve_probability_gap(ensemble, gap, class_, direction) for gap in as_list(gaps)}
    if not values:
        raise QueryError("no gap given; name at least one")
    origin = "given, as a change of the predicted probability"
    return Changes(tuple(sorted(values, key=lambda change: change.order)), origin)


def questions(
    changes: Sequence[Change],
    groups: Sequence[tuple[int, ...]],
    distances: object,
    precision: object = "exact",
) -> list[Query]:
    """Return every group at every change and distance, the distances outermost."""
    reaches = list(dict.fromkeys(parse_distance(d) for d in as_list(distances)))
    if not reaches:
        raise QueryError("no distance given; name at least one")
    decimals = parse_precision(precision)
    return [
        Query(group, change, distance, decimals)
        for distance in reaches
        for change in changes
        for group in groups
    ]


def _flip_origin(change: Flip) -> str:
    """Return a sentence on what counts in a run about flips, which has no gaps."""
    if change.cutoff is None:
        return "none; what counts is that another class wins"
    cutoff = shown_decimal(change.cutoff)
    tie = "above" if change.tie_is_above else "below"
    return f"none; what counts is that the margin crosses {cutoff} (a tie is {tie})"


def choose_gaps(ensemble: Ensemble, output: int, gaps: object = None) -> Gaps:
    """Return the given gaps, ascending, or a ladder that fits the leaves; and their origin."""
    if gaps is None:
        return _ladder(ensemble, output)
    values = sorted({parse_gap(gap) for gap in as_list(gaps)})
    if not values:
        raise QueryError("no gap given; name at least one, or none for the default ladder")
    return Gaps(tuple(values), "given, in margin")


def choose_groups(
    ensemble: Ensemble,
    grid: Grid,
    sensitive: Iterable[Group] | str | int | None,
    named: Iterable[tuple[int, ...]] = (),
) -> tuple[tuple[int, ...], ...]:
    """Return the groups to audit; by default, each used feature by itself.

    By default, features with a limit are audited, too, even if no tree tests them: a model that
    drops a feature keeps the feature's limit.
    """
    used: list[tuple[int, ...]] = []
    if sensitive is None:
        used = [
            (f,)
            for f, axis in enumerate(grid.axes)
            if axis.n_cells > 1 and not grid.rules_fix(f, (f,))
        ]
        given = list(named)
        if not used and not given:
            which = " that can change in the domain" if grid.domain else ""
            raise QueryError(f"no tree tests any feature{which}: there is nothing to audit")
    else:
        words = [sensitive] if isinstance(sensitive, str | int | np.integer) else list(sensitive)
        given = [resolve_features(ensemble, group) for group in words]
        if not given:
            raise QueryError("no sensitive feature given; name at least one")
    for group in given:
        grid.check_can_change(group, ensemble)
    return tuple(dict.fromkeys((*used, *given)))


def choose_max_shares(
    ensemble: Ensemble, groups: Sequence[tuple[int, ...]], max_share: MaxShare | None
) -> tuple[Limit | None, ...]:
    """Return the maximum share of each group.

    One number applies to all groups; ``"age=0.01,sex=0"`` is per feature; ``"0.05,age=0.01"`` is
    both. The features of a group are joined by ``+``.
    """
    if max_share is None:
        return (None,) * len(groups)
    default, _ = _split_max_share(max_share)
    by_group = named_limits(ensemble, max_share)
    for group in by_group:
        if group not in groups:
            name = "+".join(ensemble.feature_names[f] for f in group)
            raise QueryError(
                f"a maximum share is given for {name!r}, which is not audited: name it in "
                "--sensitive, too, or drop its share"
            )
    return tuple(by_group.get(group, default) for group in groups)


def named_limits(ensemble: Ensemble, max_share: MaxShare | None) -> dict[tuple[int, ...], Limit]:
    """Return the groups named in a maximum share, each with its own maximum."""
    limits: dict[tuple[int, ...], Limit] = {}
    for name, share in _split_max_share(max_share)[1].items() if max_share is not None else ():
        group = _limited_group(ensemble, name)
        if group in limits:
            raise QueryError(f"{MAX_SHARE} names {name!r} twice; give it one share")
        limits[group] = share
    return limits


def _limited_group(ensemble: Ensemble, name: str | int | Sequence[str | int]) -> tuple[int, ...]:
    """Return the features that a limit names; an unknown one may have been removed on purpose."""
    if not isinstance(name, str):
        return resolve_features(ensemble, name)
    parts = [name] if name in ensemble.feature_names else name.split("+")
    try:
        return resolve_features(ensemble, parts)
    except QueryError as error:
        if all(part.strip() in ensemble.feature_names for part in parts):
            raise
        said = str(error) if str(error).endswith("?") else f"{error}."
        raise QueryError(
            f"{said} It is named in {MAX_SHARE}; if the column was removed from the model, nothing "
            "can be sensitive to it: drop its limit"
        ) from None


def as_list(value: object) -> list[object]:
    """Return one or several values as a list; each text may list several with commas."""
    values = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    found: list[object] = []
    for each in values:
        if isinstance(each, str):
            found += [word.strip() for word in each.split(",") if word.strip()]
        else:
            found.append(each)
    return found


def margin_is_probability(ensemble: Ensemble) -> bool:
    """Return whether the margin is a probability, as the votes of scikit-learn's trees are."""
    return ensemble.task == "binary" and ensemble.probability == "margin"


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


def _split_max_share(max_share: MaxShare) -> tuple[Limit | None, dict[Any, Limit]]:
    if isinstance(max_share, Mapping):
        return None, {name: Limit.share(share, MAX_SHARE) for name, share in max_share.items()}
    if not isinstance(max_share, str):
        return Limit.share(max_share, MAX_SHARE), {}
    default: Limit | None = None
    named: dict[str, Limit] = {}
    for part in max_share.split(","):
        name, equals, share = part.rpartition("=")
        if equals and name.strip() in named:
            raise QueryError(f"{MAX_SHARE} names {name.strip()!r} twice; give it one share")
        if not equals and default is not None:
            raise QueryError(f"{MAX_SHARE} has two shares for all features; give one")
        if equals:
            named[name.strip()] = Limit.share(share, MAX_SHARE)
        else:
            default = _share_for_all(share.strip(), "=" in max_share)
    return default, named


def _share_for_all(text: str, others_are_named: bool) -> Limit:
    """Return a share without a name; if others have names, it may be a mistyped group."""
    try:
        return Limit.share(text, MAX_SHARE)
    except QueryError:
        if not others_are_named:
            raise
        raise QueryError(
            f"{MAX_SHARE} has no share for {text!r}: give {text}=1%, or join the features of a "
            "group by +, as in age+sex=1%"
        ) from None
