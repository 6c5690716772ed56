"""Two models as one ensemble: a last feature, the *chooser*, says which of them answers.

The trees of the first model stand under the chooser's category 0, those of the second under 1::

    V(x, chooser = 0) = V_first(x)
    V(x, chooser = 1) = factor * V_second(x) + shift

exactly, so that the two models disagree at x iff a change of the chooser alone changes the output
there, and everything that counts, weighs or explains such changes is about disagreements. The
factor and the shift give both models one cut-off, or one link to probabilities.

Trees that have most tests in common share them: the chooser is tested only where the two differ. So
a tree that both models have cancels, and of a converted model only the thin cells are left in which
a threshold was rounded.

Inputs are float64 if one of the libraries compares float64. A library that rounds inputs to float32
first has a test of float64 inputs in the place of each of its own, with the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from xcount.errors import QueryError
from xcount.model.align import joint_feature
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.grafts import step, zero_under
from xcount.model.rounding import with_float64_inputs

CHOOSER = "(model)"
"""The name of the feature that says which model answers."""
FIRST, SECOND = 0, 1
_SAME_TESTS = 0.5
"""Two trees are walked together if they have at least this part of their tests in common."""
_CLOSE = 1e-4
"""Thresholds no further apart than this, relative to their size, count as the same test."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How the second model's margins become comparable with the first one's.

    Attributes:
        factors: what the margins of the two models are multiplied by; powers of two in their
            denominators.
        shift: what is added to the second model's margins, one number per output, after that.
        ties: what is added to each output of the second model beside that, in units so small that
            only ties notice; none if it decides ties like the first.
    """

    factors: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))
    shift: tuple[Fraction, ...] = ()
    ties: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class TwoModels:
    """Two models on the same features, and how to compare their margins.

    Attributes:
        models: the two, aligned (:mod:`xcount.model.align`), the second with the first's order of
            classes.
        names: what they are called.
        terms: how their margins become comparable.
    """

    models: tuple[Ensemble, Ensemble]
    names: tuple[str, str]
    terms: Terms = Terms()

    @property
    def chooser(self) -> int:
        """The index of the chooser, the last feature."""
        return self.models[0].n_features

    @cached_property
    def ensemble(self) -> Ensemble:
        """The joint ensemble; what its sums mean is what the first model's mean."""
        first, second = self._prepared
        features = tuple(map(joint_feature, zip(first.features, second.features, strict=True)))
        joint = replace(
            first,
            features=(*features, Feature(CHOOSER, (FIRST, SECOND), self.names)),
            trees=tuple(self._trees(first, second)),
            divisor=math.lcm(first.divisor, second.divisor),
            base=(0.0,) * first.n_outputs,
            slope=1.0 if self.terms.factors[0] != 1 else first.slope,
            format="two models",
            path=None,
            sha256=None,
            encoding=None,
        )
        return (
            joint
            if first.base != second.base or self._is_moved
            else replace(joint, base=first.base)
        )

    @property
    def can_be_rounded(self) -> bool:
        """Whether the joint leaves are the models' own, so that rounding them means the same."""
        first, second = self.models
        return first.divisor == second.divisor and not self._is_moved

    @property
    def _is_moved(self) -> bool:
        return self.terms != Terms()

    @cached_property
    def _prepared(self) -> tuple[Ensemble, Ensemble]:
        first, second = self.models
        if CHOOSER in first.feature_names:
            raise QueryError(f"a feature is called {CHOOSER!r}, which names the two models here")
        if first.input_dtype != second.input_dtype:
            return with_float64_inputs(first), with_float64_inputs(second)
        return first, second

    def _trees(self, first: Ensemble, second: Ensemble) -> Iterator[Tree]:
        """Yield the joint trees: those of both models, then the bases."""
        divisor = math.lcm(first.divisor, second.divisor)
        scaled = [
            [_scaled(tree, factor * divisor / own.divisor) for tree in own.trees]
            for own, factor in zip((first, second), self.terms.factors, strict=True)
        ]
        for output in range(first.n_outputs):
            yield from self._trees_of(
                *([parts for parts in own if parts[0].output == output] for own in scaled)
            )
        if first.base != second.base or self._is_moved:
            yield from self._bases(first, second, divisor, scaled[SECOND])

    def _trees_of(
        self, first: Sequence[Sequence[Tree]], second: Sequence[Sequence[Tree]]
    ) -> Iterator[Tree]:
        """Yield the joint trees of one output; trees at the same place may share their tests."""
        alone: tuple[list[Tree], list[Tree]] = ([], [])
        for place in range(max(len(first), len(second))):
            own, other = (list(t[place]) if place < len(t) else [] for t in (first, second))
            merged = None
            if len(own) == len(other) == 1:
                merged = merged_trees(own[0], other[0], self.chooser)
            if merged is not None:
                yield merged
            else:
                alone[FIRST].extend(own)
                alone[SECOND].extend(other)
        for side, trees in enumerate(alone):
            for tree in trees:
                yield zero_under(tree, self.chooser, SECOND if side == FIRST else FIRST)

    def _bases(
        self, first: Ensemble, second: Ensemble, divisor: int, trees: Sequence[Sequence[Tree]]
    ) -> Iterator[Tree]:
        """Yield trees that add each model's base, and what its cut-off needs."""
        (factor, other), shift = self.terms.factors, self.terms.shift
        bases = [Fraction(base) * factor * divisor for base in first.base]
        others = [Fraction(base) * other * divisor for base in second.base]
        if shift:
            others = [base + more * divisor for base, more in zip(others, shift, strict=True)]
        if self.terms.ties:
            # All sums are multiples of the unit: less than that moves nothing but ties.
            unit = _unit([tree for parts in trees for tree in parts], others)
            finer = unit / 2 ** (max(map(abs, self.terms.ties)).bit_length() + 1)
            both = zip(others, self.terms.ties, strict=True)
            others = [base + tie * finer for base, tie in both]
        for output, (a, b) in enumerate(zip(bases, others, strict=True)):
            yield from self._constants(a, b, output)

    def _constants(self, first: Fraction, second: Fraction, output: int) -> Iterator[Tree]:
        """Yield trees that together add one number for the first model, one for the second."""
        a, b = _as_floats(first), _as_floats(second)
        for place in range(max(len(a), len(b))):
            own, other = (f[place] if place < len(f) else 0.0 for f in (a, b))
            if own or other:
                yield step(self.chooser, own, other, output)


def _as_floats(number: Fraction) -> list[float]:
    """Return floats whose sum is exactly the number."""
    found: list[float] = []
    while number:
        found.append(float(number))
        if not found[-1]:
            raise QueryError("the two models' numbers are too different in size to be compared")
        number -= Fraction(found[-1])
    return found


def _scaled(tree: Tree, factor: Fraction) -> list[Tree]:
    """Return trees that add up to exactly the tree times a factor: one, unless leaves round."""
    if factor == 1:
        return [tree]
    parts = [_as_floats(Fraction(value) * factor) for value in tree.value.tolist()]
    n_parts = max(1, *map(len, parts))
    columns = np.zeros((n_parts, tree.n_nodes))
    for node, floats in enumerate(parts):
        columns[: len(floats), node] = floats
    return [replace(tree, value=column) for column in columns]


def _unit(trees: Sequence[Tree], numbers: Sequence[Fraction]) -> Fraction:
    """Return a power of two of which all leaves and the given numbers are multiples."""
    leaves = {value for tree in trees for value in tree.value.tolist()}
    return Fraction(1, max(number.denominator for number in (*map(Fraction, leaves), *numbers)))


class _Test(NamedTuple):
    """What a node tests; numbers and sets that do not apply are None."""

    feature: int
    threshold: float | None
    missing_left: bool
    zero_side: int
    categories: Set[int] | None
    ranges: tuple[float, ...] | None

    def is_like(self, other: _Test) -> bool:
        """Return whether two tests are the same but for a rounded threshold."""
        if self.threshold is None or other.threshold is None:
            return self == other
        size = max(abs(self.threshold), abs(other.threshold))
        is_close = self.threshold == other.threshold or (
            abs(self.threshold - other.threshold) <= _CLOSE * size
        )
        return self.feature == other.feature and is_close


class _Nodes(NamedTuple):
    """The nodes of a tree as lists: a test or None, the value of a leaf, the children."""

    tests: list[_Test | None]
    values: list[float]
    left: list[int]
    right: list[int]

    @classmethod
    def of(cls, tree: Tree) -> _Nodes:
        """Return the nodes of a tree."""
        columns = (tree.feature, tree.threshold, tree.missing_left, tree.zero_side)
        tests = [
            None
            if feature < 0
            else _Test(
                feature,
                None if math.isnan(threshold) else threshold,
                missing_left,
                zero_side,
                tree.left_categories.get(node),
                tree.left_ranges.get(node),
            )
            for node, (feature, threshold, missing_left, zero_side) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            )
        ]
        return cls(tests, tree.value.tolist(), tree.left.tolist(), tree.right.tolist())

    def children(self, node: int) -> tuple[int, int]:
        """Return the left and the right child of a node."""
        return self.left[node], self.right[node]


def merged_trees(first: Tree, second: Tree, chooser: int) -> Tree | None:
    """Return a tree that tests the chooser where two trees differ; None if they are not alike."""
    nodes = _Nodes.of(first), _Nodes.of(second)
    return _Merger(nodes, chooser).merged(first.output) if _are_alike(*nodes) else None


def _are_alike(first: _Nodes, second: _Nodes) -> bool:
    """Return whether most tests of two trees are the same, but for rounded thresholds."""
    most = max(sum(test is not None for test in tree.tests) for tree in (first, second))
    n_alike, pairs = 0, [(0, 0)]
    while pairs:
        a, b = pairs.pop()
        test, other = first.tests[a], second.tests[b]
        if test is not None and other is not None and test.is_like(other):
            n_alike += 1
            pairs += zip(first.children(a), second.children(b), strict=True)
    return n_alike >= _SAME_TESTS * most


class _Merger:
    """Merges two trees, from the root down.

    A merged node stands for a node of each tree, or for one of only one tree (the other is None),
    below a test of the chooser.
    """

    def __init__(self, trees: tuple[_Nodes, _Nodes], chooser: int) -> None:
        self._trees = trees
        self._chooser = _Test(chooser, None, False, 0, frozenset({FIRST}), None)
        self._known: dict[tuple[object, ...], int] = {}
        self._keys = [self._keys_of(tree) for tree in trees]

    def merged(self, output: int) -> Tree:
        """Return the tree that answers like the first, or like the second."""
        tests: list[_Test | None] = []
        values, children = list[float](), list[tuple[int, int]]()
        pairs: list[tuple[int | None, int | None]] = [(0, 0)]
        for a, b in pairs:  # which grows
            test, value = self._at(a, b)
            tests.append(test)
            values.append(value)
            children.append((-1, -1) if test is None else (len(pairs), len(pairs) + 1))
            if test is self._chooser:
                pairs += [(a, None), (None, b)]
            elif test is not None:
                both = (
                    (None, None) if node is None else tree.children(node)
                    for tree, node in zip(self._trees, (a, b), strict=True)
                )
                pairs += zip(*both, strict=True)
        return _tree(tests, values, children, output)

    def _at(self, a: int | None, b: int | None) -> tuple[_Test | None, float]:
        """Return the test of a merged node; of a leaf None, and its value."""
        first, second = self._trees
        if a is None:
            assert b is not None
            return second.tests[b], second.values[b]
        if b is None or self._keys[FIRST][a] == self._keys[SECOND][b]:
            return first.tests[a], first.values[a]
        test = first.tests[a]
        return (test if test is not None and test == second.tests[b] else self._chooser), 0.0

    def _keys_of(self, tree: _Nodes) -> list[int]:
        """Return a number for every node; equal for equal subtrees of both trees."""
        keys = [0] * len(tree.tests)
        for node in reversed(range(len(keys))):  # children have larger indices
            test = tree.tests[node]
            about: tuple[object, ...] = (tree.values[node],)
            if test is not None:
                about = (test, *(keys[child] for child in tree.children(node)))
            keys[node] = self._known.setdefault(about, len(self._known))
        return keys


def _tree(
    tests: Sequence[_Test | None],
    values: Sequence[float],
    children: Sequence[tuple[int, int]],
    output: int,
) -> Tree:
    """Return a tree of these nodes."""
    inner = [(node, test) for node, test in enumerate(tests) if test is not None]
    thresholds = np.full(len(tests), np.nan)
    for node, test in inner:
        thresholds[node] = math.nan if test.threshold is None else test.threshold
    sides = np.array(children, dtype=np.int32).reshape(len(tests), 2)
    return Tree(
        feature=np.array([-1 if t is None else t.feature for t in tests], dtype=np.int32),
        threshold=thresholds,
        left=sides[:, 0].copy(),
        right=sides[:, 1].copy(),
        missing_left=np.array([t is not None and t.missing_left for t in tests]),
        zero_side=np.array([0 if t is None else t.zero_side for t in tests], dtype=np.int8),
        value=np.array(values),
        left_categories={n: t.categories for n, t in inner if t.categories is not None},
        left_ranges={n: t.ranges for n, t in inner if t.ranges is not None},
        output=output,
    )
