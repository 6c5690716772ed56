"""A mixture in words: for each component, the conditions that set its people apart from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from xcount.question.cell_words import cells_text
from xcount.question.grid import Axis
from xcount.support.records import Json, record

N_TRAITS = 4
"""Conditions that describe a component, each on a different column."""
_LEAST_TOLD = 0.05
"""Least divergence, in nats, of a condition that sets people apart."""
_MAX_ENDS = 128
"""Most cells at which ranges may start and end; cells of a longer column are merged by weight."""
_MAX_LISTED = 3
"""Most categories listed, or excluded, in a condition."""
_SHARE = {"minimum": 0, "maximum": 1}

Flags = NDArray[np.bool_]
Table = NDArray[np.float64]
"""The weight of each cell of a column (rows) in each component (columns)."""


@record("check", "How often two conditions hold together.")
@dataclass(frozen=True, slots=True)
class Check:
    """How often two conditions both hold: in held-out rows, in the population, if independent."""

    text: Annotated[str, Json("The two conditions.")]
    rows: Annotated[float, Json("The share of the held-out rows in which both hold.", _SHARE)]
    population: Annotated[float, Json("The share of the population.", _SHARE)]
    marginals: Annotated[float, Json("The share if the columns were independent.", _SHARE)]


@record("realism", "How well a population fits held-out rows.")
@dataclass(frozen=True, slots=True)
class Realism:
    """How well the population fits held-out rows.

    Attributes:
        n_rows: rows that it was fitted to.
        n_held_out: held-out rows, which choose the number of components.
        log_likelihood: mean over the held-out rows, in nats.
        marginals_log_likelihood: the same under the product of the marginals.
        checks: shares of pairs of conditions.
    """

    n_rows: Annotated[int, Json("Rows that it was fitted to.", {"minimum": 0})]
    n_held_out: Annotated[
        int, Json("Rows held out to choose the number of components.", {"minimum": 0})
    ]
    log_likelihood: Annotated[float, Json("Mean log-likelihood of a held-out row, in nats.")]
    marginals_log_likelihood: Annotated[float, Json("The same under the product of the marginals.")]
    checks: Annotated[
        tuple[Check, ...],
        Json("The most dependent pairs of conditions, among the rows and in the population."),
    ] = ()


@record("trait", "What sets a component apart.")
@dataclass(frozen=True, slots=True)
class Trait:
    """A condition that holds more often in a component than in the whole population."""

    text: Annotated[str, Json("The condition, such as `age < 29`.")]
    share: Annotated[float, Json("The share of the component in which it holds.", _SHARE)]
    of_all: Annotated[float, Json("The share of the whole population.", _SHARE)]


@record("component", "A part of a population, within which columns are independent.")
@dataclass(frozen=True, slots=True)
class ComponentPortrait:
    """A component in words."""

    weight: Annotated[float, Json("Its part of the population.", _SHARE)]
    traits: Annotated[
        tuple[Trait, ...],
        Json(
            "What sets it apart, the most distinctive first; empty if it resembles the "
            "whole population."
        ),
    ]


def component_portraits(
    weights: NDArray[np.float64], axes: Sequence[Axis], tables: Sequence[Table]
) -> tuple[ComponentPortrait, ...]:
    """Return the components in words, the heaviest first."""
    told = [_traits(axis, table, table @ weights) for axis, table in zip(axes, tables, strict=True)]
    found = []
    for k in np.argsort(-weights, kind="stable").tolist():
        own = sorted((column[k] for column in told), key=lambda each: -each[0])
        traits = tuple(trait for gain, trait in own[:N_TRAITS] if gain >= _LEAST_TOLD)
        found.append(ComponentPortrait(float(weights[k]), traits))
    return tuple(found)


def _traits(axis: Axis, table: Table, of_all: NDArray[np.float64]) -> list[tuple[float, Trait]]:
    """Return each component's most informative condition on the column, and its divergence."""
    n_values = axis.n_cells - (axis.missing_cell is not None)
    found = []
    for own in table.T:
        candidates = []
        if n_values > 1 and axis.feature.is_categorical:
            sizes = np.array([len(codes) for codes in axis.classes])
            candidates.append(_likelier(own[:n_values], of_all[:n_values], sizes))
        elif n_values > 1:
            candidates.append(_best_range(own[:n_values], of_all[:n_values]))
        if axis.missing_cell is not None:
            candidates.append(np.arange(axis.n_cells) == axis.missing_cell)
        padded = [
            np.append(each, np.zeros(axis.n_cells - len(each), np.bool_)) for each in candidates
        ]
        scored = [(float(divergence(own[c].sum(), of_all[c].sum())), c) for c in padded if c.any()]
        gain, inside = max(scored, key=lambda each: each[0], default=(0.0, None))
        text = "" if inside is None else cells_text(axis, inside)
        shares = (0.0, 0.0) if inside is None else (own[inside].sum(), of_all[inside].sum())
        found.append((gain, Trait(text, *(min(1.0, float(share)) for share in shares))))
    return found


def divergence(share: Table | float, of_all: Table | float) -> NDArray[np.float64]:
    """Return the divergence of a component's share from that of all, in nats; 0 if not larger."""
    p, q = (np.clip(np.asarray(each, dtype=np.float64), 0.0, 1.0) for each in (share, of_all))
    tiny = np.finfo(np.float64).tiny
    inside = p * np.log(np.maximum(p, tiny) / np.maximum(q, tiny))
    outside = (1 - p) * np.log(np.maximum(1 - p, tiny) / np.maximum(1 - q, tiny))
    told: NDArray[np.float64] = np.where(p > q, inside + outside, 0.0)
    return told


def _likelier(
    own: NDArray[np.float64], of_all: NDArray[np.float64], sizes: NDArray[np.int64]
) -> Flags:
    """Return the most informative categories: the best prefix of the list sorted by ratio.

    The prefix, or its complement, must be short; if none is, only the likeliest cell is returned.
    """
    order = np.argsort(-own / np.maximum(of_all, np.finfo(np.float64).tiny), kind="stable")
    told = divergence(np.cumsum(own[order]), np.cumsum(of_all[order]))[:-1]
    listed = np.cumsum(sizes[order])[:-1]
    told[np.minimum(listed, sizes.sum() - listed) > _MAX_LISTED] = 0.0
    inside = np.zeros(len(own), dtype=np.bool_)
    inside[order[: int(told.argmax()) + 1]] = True
    return inside


def _best_range(own: NDArray[np.float64], of_all: NDArray[np.float64]) -> Flags:
    """Return the most informative range of neighbouring cells."""
    ends = np.arange(len(own) + 1)
    up_to = np.append(0.0, np.cumsum(own)), np.append(0.0, np.cumsum(of_all))
    if len(ends) > _MAX_ENDS:
        inner = np.searchsorted(up_to[1], np.linspace(0, up_to[1][-1], _MAX_ENDS)[1:-1])
        ends = np.unique(np.concatenate([[0], inner, [len(own)]]))
    shares = [at[ends][np.newaxis, :] - at[ends][:, np.newaxis] for at in up_to]
    told = np.triu(divergence(*shares), 1)
    told[0, -1] = 0.0  # all cells together are not informative
    first, last = np.unravel_index(int(told.argmax()), told.shape)
    inside = np.zeros(len(own), dtype=np.bool_)
    inside[ends[first] : ends[last]] = True
    return inside
