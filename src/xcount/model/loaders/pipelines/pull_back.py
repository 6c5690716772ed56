"""Tests of what a pipeline's model sees -> tests of the original columns.

A test of an encoded column sends some values of its original column left and the others right.
Which ones, the fitted transformers say themselves: at every category, at a missing value, and, for
numbers, between the crossings (:mod:`crossings`) of all numbers at which the test may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import ZERO_RANGE, Ensemble, Tree
from xcount.model.loaders.pipelines.crossings import LARGEST, Numbers, crossings
from xcount.model.loaders.pipelines.origins import Origin, as_values, codes_of
from xcount.model.loaders.pipelines.trace import Column

_ZERO_ITSELF = (0.0, float(np.nextafter(0.0, 1.0)))
_ZERO_ENDS = (-ZERO_RANGE, float(np.nextafter(ZERO_RANGE, np.inf)))


@dataclass(frozen=True)
class Split:
    """A test of an original column.

    Attributes:
        threshold: left iff ``x < threshold``; NaN if one of the next two says it.
        ranges: see :attr:`~xcount.model.ensemble.Tree.left_ranges`.
        codes: the categories that go left.
        missing_left: whether a missing value goes left.
        turned: whether the children change places.
        always: the side that everything takes: True for the left child; None if there are two.
    """

    threshold: float = np.nan
    ranges: tuple[float, ...] = ()
    codes: frozenset[int] | None = None
    missing_left: bool = False
    turned: bool = False
    always: bool | None = None


@dataclass(frozen=True, eq=False)
class Encoded:
    """One column of the model, as a function of its original column.

    Attributes:
        model: the model.
        index: the column's number in the model.
        column: how it is made of the original one.
        origin: the original one.
        cuts: all numbers at which one of the model's tests of it may change.
        zero_is_missing: see :func:`pulled_back`.
    """

    model: Ensemble
    index: int
    column: Column
    origin: Origin
    cuts: tuple[float, ...]
    zero_is_missing: bool

    def split(self, tree: Tree, node: int) -> Split:
        """Return a node's test as a test of the original column."""
        left = tree.goes_left(np.full(len(self._inputs), node), self._inputs)
        if self.origin.feature.can_be_missing:
            missing_left = bool(tree.goes_left(np.array([node]), self._missing_input)[0])
        else:
            missing_left = bool(left[0])
        if left.all() or not left.any():
            return _constant(bool(left[0]), missing_left)
        if self.origin.feature.is_categorical:
            chosen = np.array(self.origin.feature.categories)[left]
            return Split(codes=frozenset(chosen.tolist()), missing_left=missing_left)
        changes = np.flatnonzero(left[1:] != left[:-1])
        ends = tuple(self._ends[changes].tolist())
        if len(ends) == 1:
            turned = not left[0]
            return Split(ends[0], missing_left=missing_left != turned, turned=turned)
        turned = bool(left[0])
        return Split(ranges=ends, missing_left=missing_left != turned, turned=turned)

    @cached_property
    def _ends(self) -> Numbers:
        """The numbers of the original column at which a test of this one may change."""
        turns = self.column.turns

        def rounded(values: Numbers) -> Numbers:
            return self.model.rounded(self.index, self.column.of_numbers(values))

        found = [np.array(turns), crossings(rounded, turns, self.cuts)]
        if self.zero_is_missing:
            found.append(crossings(self.column.of_numbers, turns, _ZERO_ITSELF))
        return np.unique(np.concatenate(found)) + 0.0

    @cached_property
    def _inputs(self) -> Numbers:
        """What the model sees: at each category, or in each interval between the ends."""
        if self.origin.feature.is_categorical:
            return self._as_input(self._of_values(self.origin.all_values))
        starts = np.concatenate([[-LARGEST], self._ends])
        inputs = self._as_input(self.column.of_numbers(starts))
        refused = np.isnan(inputs)
        refused[refused] = [not self._is_taken(number) for number in starts[refused]]
        return _filled(inputs, refused)

    def _is_taken(self, number: float) -> bool:
        """Tell whether the pipeline takes a number that reaches the model as NaN."""
        try:
            self.column.of_values(np.array([number]))
        except ValueError:
            return False
        return self.model.features[self.index].takes_missing

    @cached_property
    def _missing_input(self) -> Numbers:
        return self._as_input(self._of_values(as_values([self.origin.missing])))

    def _of_values(self, values: NDArray[np.generic]) -> Numbers:
        feature = self.model.features[self.index]
        if feature.is_categorical and self.column.holds_categories:
            return codes_of(feature, values)
        return self.column.of_values(values).astype(np.float64)

    def _as_input(self, values: Numbers) -> Numbers:
        if self.zero_is_missing:
            values = np.where(values == 0.0, np.nan, values)
        inputs = self.model.as_input(self.index, values)
        known = self.model.features[self.index].categories
        if known is not None and self.model.format.startswith("sklearn"):
            # HistGradientBoosting takes a category that it never saw for a missing value.
            inputs = np.where(np.isin(inputs, known), inputs, np.nan)
        return inputs


def _filled(inputs: Numbers, refused: NDArray[np.bool_]) -> Numbers:
    """Return the inputs, those that the pipeline refuses like the nearest one that it takes.

    The logarithm of a negative number is one: such numbers are part of the outer cell.
    """
    taken = np.flatnonzero(~refused)
    if len(taken) in (0, len(inputs)):
        return inputs
    nearest = np.abs(taken - np.arange(len(inputs))[:, np.newaxis]).argmin(axis=1)
    filled: Numbers = inputs[taken[nearest]]
    return filled


def _constant(numbers_left: bool, missing_left: bool) -> Split:
    """Return a test that gives all values but a missing one the same answer."""
    if numbers_left == missing_left:
        return Split(always=numbers_left)
    # x < -inf sends nothing left but a missing value.
    return Split(-np.inf, missing_left=True, turned=numbers_left)


def cuts_of(model: Ensemble) -> list[tuple[float, ...]]:
    """Return, for each column of a model, the numbers at which one of its tests may change."""
    cuts: list[set[float]] = [set() for _ in model.features]
    for tree in model.trees:
        numeric = (tree.feature >= 0) & np.isfinite(tree.threshold)
        for node in np.flatnonzero(numeric).tolist():
            cuts[tree.feature[node]].add(float(tree.threshold[node]))
        for node in np.flatnonzero(tree.zero_side).tolist():
            cuts[tree.feature[node]].update(_ZERO_ENDS)
        for node, ends in tree.left_ranges.items():
            cuts[tree.feature[node]].update(ends)
        for node, codes in tree.left_categories.items():
            # A code reaches to the next one; where codes are truncated, 0 from just above -1.
            below = float(np.nextafter(-1.0, 0.0))
            cuts[tree.feature[node]].update((below, *codes, *(code + 1 for code in codes)))
    for column, feature in enumerate(model.features):
        for number in feature.like_missing:
            cuts[column].update((number, float(np.nextafter(number, np.inf))))
        if feature.is_categorical:
            cuts[column].update(float(e) for c in feature.categories or () for e in (c, c + 1))
    return [tuple(sorted(filter(np.isfinite, found))) for found in cuts]


def pulled_back(
    model: Ensemble,
    columns: Sequence[Column],
    origins: Mapping[int, Origin],
    *,
    zero_is_missing: bool,
) -> Ensemble:
    """Return the model over the original columns.

    Args:
        model: the model over encoded columns.
        columns: how each of them is made.
        origins: the original columns, by their number in the pipeline's input.
        zero_is_missing: whether the model takes an encoded 0 for a missing value.
    """
    cuts = cuts_of(model)
    encoded = [
        Encoded(model, i, column, origins[column.source], cuts[i], zero_is_missing)
        for i, column in enumerate(columns)
    ]
    place = {source: i for i, source in enumerate(origins)}
    features = [place[column.source] for column in columns]
    trees = [_Rewriter(tree, encoded, features).tree() for tree in model.trees]
    return replace(
        model,
        features=tuple(origin.feature for origin in origins.values()),
        trees=tuple(trees),
        input_dtype="float64",
        category_rounding="down",
    )


class _Rewriter:
    """Writes a tree with tests of the original columns; tests that decide nothing are left out."""

    def __init__(self, tree: Tree, encoded: Sequence[Encoded], features: Sequence[int]) -> None:
        self._tree = tree
        self._encoded = encoded
        self._features = features

    def tree(self) -> Tree:
        old = self._tree
        splits = {
            int(node): self._encoded[old.feature[node]].split(old, int(node))
            for node in np.flatnonzero(old.feature >= 0)
        }
        target = self._targets(splits)
        kept = self._reached(splits, target)
        new = {node: i for i, node in enumerate(kept)}
        inner = [(i, node, splits[node]) for i, node in enumerate(kept) if node in splits]
        left, right = (np.full(len(kept), -1, dtype=np.int32) for _ in range(2))
        feature, threshold = left.copy(), np.full(len(kept), np.nan)
        missing_left = np.zeros(len(kept), dtype=np.bool_)
        for i, node, split in inner:
            children = (target[int(old.left[node])], target[int(old.right[node])])
            left[i], right[i] = (new[child] for child in children[:: -1 if split.turned else 1])
            feature[i] = self._features[old.feature[node]]
            threshold[i], missing_left[i] = split.threshold, split.missing_left
        return Tree(
            feature=feature,
            threshold=threshold,
            left=left,
            right=right,
            missing_left=missing_left,
            zero_side=np.zeros(len(kept), dtype=np.int8),
            value=np.where(feature >= 0, 0.0, old.value[kept]),
            left_categories={i: s.codes for i, _, s in inner if s.codes is not None},
            left_ranges={i: s.ranges for i, _, s in inner if s.ranges},
            output=old.output,
        )

    def _targets(self, splits: Mapping[int, Split]) -> dict[int, int]:
        """Return the node that stands in the place of each: itself, unless it always goes on."""
        old = self._tree
        target: dict[int, int] = {}
        for node in reversed(range(old.n_nodes)):
            always = splits[node].always if node in splits else None
            child = node if always is None else int((old.right, old.left)[always][node])
            target[node] = node if child == node else target[child]
        return target

    def _reached(self, splits: Mapping[int, Split], target: Mapping[int, int]) -> list[int]:
        """Return the nodes that stay, parents before children."""
        reached = {target[0]}
        for node in range(self._tree.n_nodes):
            if node in reached and node in splits:
                reached.update(target[int(c[node])] for c in (self._tree.left, self._tree.right))
        return sorted(reached)
