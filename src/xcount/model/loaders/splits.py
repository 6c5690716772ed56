"""The one place where a library's splits become ours, and where node arrays are checked.

Every numeric split leaves here in one form, *left iff* ``x < threshold``; every tree has its root
at node 0 and its children behind their parents. A loader only says what its file says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Feature, Tree

Operator = Literal["<", "<="]
Dtype = Literal["float32", "float64"]
_T = TypeVar("_T", bound=np.generic)

MAX_FEATURES = 2_000_000
"""More columns than this are refused: a file of a few bytes must not ask for all memory."""
MAX_CATEGORY = 2**24
"""XGBoost and LightGBM keep category codes in floats and bitsets; no valid code is larger."""
MAX_LISTED_CATEGORIES = 2**16
"""Categories that no split mentions are listed one by one only up to this many."""


def as_strict_threshold(threshold: float, operator: Operator, dtype: Dtype) -> float:
    """Return the ``s`` for which ``x < s`` decides exactly like the split, for x of ``dtype``.

    The result is itself a number of ``dtype`` (or +inf, where every finite x goes left)::

        "<":   s is the smallest number of dtype with s >= threshold
        "<=":  s is the smallest number of dtype with s >  threshold

    Example:
        >>> as_strict_threshold(0.5, "<", "float64")
        0.5
        >>> as_strict_threshold(0.5, "<=", "float32") - 0.5 == 2.0**-24
        True
    """
    return float(as_strict_thresholds(np.array([threshold]), operator, dtype)[0])


def as_strict_thresholds(
    thresholds: ArrayLike, operator: Operator, dtype: Dtype
) -> NDArray[np.float64]:
    """Return :func:`as_strict_threshold` of every element; NaN stays NaN."""
    exact = np.asarray(thresholds, dtype=np.float64)
    infinity = np.dtype(dtype).type(np.inf)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded = exact.astype(dtype)
        widened = rounded.astype(np.float64)
        too_low = widened < exact if operator == "<" else widened <= exact
        strict = np.where(too_low, np.nextafter(rounded, infinity), rounded)
    return strict.astype(np.float64)


def tree_from_arrays(
    where: str,
    *,
    n_features: int,
    feature: ArrayLike,
    threshold: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    value: ArrayLike,
    missing_left: ArrayLike,
    operator: Operator,
    dtype: Dtype,
    zero_side: ArrayLike | None = None,
    left_categories: Mapping[int, Iterable[int]] | None = None,
    output: int = 0,
) -> Tree:
    """Check the node arrays of one tree and return it in the neutral form.

    A node is a leaf iff ``left`` and ``right`` are both negative; node 0 is the root. Nodes that
    the root does not reach are dropped (XGBoost leaves pruned nodes in its files). The tests
    ``x < -inf`` and ``x <= inf`` tell only missing values from numbers; they come out as
    ``x < -inf``. Any other threshold that is not finite is refused.

    Args:
        where: the place for error messages, e.g. ``"model.json: tree 3"``.
        n_features: features must lie in ``0 <= feature < n_features``.
        feature: tested feature; ignored at leaves.
        threshold: as the library stores it; ignored at leaves and categorical nodes.
        left: child when the library's test holds.
        right: child when it does not.
        value: what a leaf adds; ignored at inner nodes.
        missing_left: whether NaN goes left; ignored at leaves.
        operator: the library's test: left iff ``x operator threshold``.
        dtype: the number type that the library rounds x to before it compares.
        zero_side: see :class:`~xcount.model.ensemble.Tree`.
        left_categories: node -> codes that go left; such a node is categorical.
        output: index of the sum this tree adds to.

    Raises:
        ModelFormatError: the arrays are no tree; the message names the node.
    """
    lefts, rights = _ints(left), _ints(right)
    n_nodes = len(lefts)
    inner = _check_children(where, lefts, rights)
    zeros = np.zeros(n_nodes, np.int8) if zero_side is None else np.asarray(zero_side, np.int8)
    categories = dict(left_categories or {})
    numeric = _numeric(where, inner, categories)
    nodes = _Nodes(
        feature=np.where(inner, _sized(where, "feature", _ints(feature), n_nodes), -1),
        threshold=np.where(
            numeric, _sized(where, "threshold", _floats(threshold), n_nodes), np.nan
        ),
        left=lefts,
        right=rights,
        missing_left=inner
        & _sized(where, "default direction", np.asarray(missing_left, bool), n_nodes),
        zero_side=np.where(numeric, _sized(where, "zero side", zeros, n_nodes), 0),
        value=np.where(inner, 0.0, _sized(where, "value", _floats(value), n_nodes)),
    )
    order = _order(where, inner, lefts, rights)
    only_missing = numeric & (nodes.threshold == (-np.inf if operator == "<" else np.inf))
    unknown = inner & ((nodes.feature < 0) | (nodes.feature >= n_features))
    infinite = numeric & ~np.isfinite(nodes.threshold) & ~only_missing
    _refuse(where, order, unknown, nodes.feature, "feature")
    _refuse(where, order, infinite, nodes.threshold, "threshold")
    _refuse(where, order, ~inner & ~np.isfinite(nodes.value), nodes.value, "leaf value")
    nodes.threshold = as_strict_thresholds(nodes.threshold, operator, dtype)
    nodes.keep_numbers_right(only_missing, turn=operator == "<=")
    return nodes.in_order(order, categories, output)


@dataclass
class _Nodes:
    """The columns of :class:`~xcount.model.ensemble.Tree`, in the file's order."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    zero_side: NDArray[np.int8]
    value: NDArray[np.float64]

    def keep_numbers_right(self, only_missing: NDArray[np.bool_], *, turn: bool) -> None:
        """Write tests that only tell missing values from numbers as ``x < -inf``.

        ``x <= inf`` holds for every number, so there the children change places (``turn``).
        """
        self.threshold = np.where(only_missing, -np.inf, self.threshold)
        if turn and only_missing.any():
            left, right = self.left, self.right
            self.left = np.where(only_missing, right, left)
            self.right = np.where(only_missing, left, right)
            self.missing_left = self.missing_left ^ only_missing
            self.zero_side = np.where(only_missing, -self.zero_side, self.zero_side)

    def in_order(
        self, order: NDArray[np.int64], categories: Mapping[int, Iterable[int]], output: int
    ) -> Tree:
        """Return the tree of the given nodes, numbered in the given order."""
        new_index = np.full(len(self.left) + 1, -1, dtype=np.int32)  # [-1] answers for child -1
        new_index[order] = np.arange(len(order), dtype=np.int32)
        return Tree(
            feature=self.feature[order].astype(np.int32),
            threshold=self.threshold[order],
            left=new_index[self.left[order]],
            right=new_index[self.right[order]],
            missing_left=self.missing_left[order],
            zero_side=self.zero_side[order].astype(np.int8),
            value=self.value[order] + 0.0,
            left_categories={
                int(new_index[node]): frozenset(int(code) for code in codes)
                for node, codes in categories.items()
                if new_index[node] >= 0
            },
            output=output,
        )


def _numeric(where: str, inner: NDArray[np.bool_], categorical: Iterable[int]) -> NDArray[np.bool_]:
    """Return which nodes are numeric splits."""
    numeric = inner.copy()
    for node in categorical:
        if not 0 <= node < len(inner) or not inner[node]:
            raise ModelFormatError(f"{where}: categories are given for node {node}, no split")
        numeric[node] = False
    return numeric


def trees_from_arrays(
    where: str, *, values: NDArray[np.float64], first_output: int = 0, **arrays: Any
) -> list[Tree]:
    """Return one tree per column of ``values``: the same tests (and arrays), other leaves.

    Args:
        where: the place for error messages.
        values: what a leaf adds to each output, shape ``(n_nodes, n_outputs)``.
        first_output: the sum that the first column belongs to.
        arrays: the other arguments of :func:`tree_from_arrays`.
    """
    # Leaves that hold their own index show where checking has put each node.
    shape = tree_from_arrays(where, value=np.arange(len(values)), **arrays)
    leaf = shape.feature < 0
    moved = np.where(leaf[:, np.newaxis], values[shape.value.astype(np.int64)], 0.0) + 0.0
    for node, column in np.argwhere(~np.isfinite(moved)):
        raise ModelFormatError(
            f"{where}, node {int(shape.value[node])}: the leaf value is {moved[node, column]}, "
            "not a finite number"
        )
    return [
        replace(shape, value=np.ascontiguousarray(column), output=first_output + output)
        for output, column in enumerate(moved.T)
    ]


def _ints(values: ArrayLike) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)  # a copy: children are normalised in place


def _floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _sized(where: str, what: str, values: NDArray[_T], n_nodes: int) -> NDArray[_T]:
    if values.shape != (n_nodes,):
        raise ModelFormatError(
            f"{where}: {n_nodes} nodes but {values.size} entries in the {what} array"
        )
    return values


def _check_children(
    where: str, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which nodes are inner ones; set every negative child to -1."""
    n_nodes = len(left)
    if n_nodes == 0:
        raise ModelFormatError(f"{where}: the tree has no nodes")
    _sized(where, "right child", right, n_nodes)
    for bad in np.flatnonzero((left < 0) != (right < 0)):
        raise ModelFormatError(f"{where}, node {bad}: one child is missing")
    for side, children in (("left", left), ("right", right)):
        for bad in np.flatnonzero(children >= n_nodes):
            raise ModelFormatError(
                f"{where}, node {bad}: {side} child {children[bad]} does not exist, "
                f"the tree has {n_nodes} nodes"
            )
        children[children < 0] = -1
    return left >= 0


def _order(
    where: str, inner: NDArray[np.bool_], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the reachable nodes, parents before children; the file's own order if it is one."""
    nodes = np.arange(len(left))
    parents = nodes[inner]
    children = np.concatenate([left[inner], right[inner]])
    in_order = bool(np.all(children > np.concatenate([parents, parents])))
    if in_order and len(children) == len(left) - 1 and np.bincount(children, minlength=1).max() < 2:
        return nodes
    seen = np.zeros(len(left), dtype=np.bool_)
    seen[0] = True
    levels = [np.zeros(1, dtype=np.int64)]
    while levels[-1].size:
        parents = levels[-1][inner[levels[-1]]]
        below = np.stack([left[parents], right[parents]], axis=1).ravel()
        counts = np.bincount(below, minlength=1)
        for bad in np.flatnonzero(seen[below] | (counts[below] > 1) if below.size else below):
            raise ModelFormatError(
                f"{where}, node {parents[bad // 2]}: child {below[bad]} was reached before "
                "(a cycle, or a node with two parents)"
            )
        seen[below] = True
        levels.append(below)
    return np.concatenate(levels)


def _refuse(
    where: str,
    order: NDArray[np.int64],
    bad: NDArray[np.bool_],
    values: NDArray[np.generic],
    what: str,
) -> None:
    """Raise for the first reachable node that is marked bad."""
    for node in order[bad[order]]:
        found = values[node]
        if what == "feature":
            raise ModelFormatError(f"{where}, node {node}: no such feature: index {found}")
        raise ModelFormatError(f"{where}, node {node}: the {what} is {found}, not a finite number")


def check_feature_count(where: str, n_features: int) -> int:
    """Return the number of features if it is one that memory can hold."""
    if n_features < 0:
        raise ModelFormatError(f"{where}: the number of features is {n_features}")
    if n_features > MAX_FEATURES:
        raise UnsupportedModelError(
            f"{where}: {n_features} features; at most {MAX_FEATURES} are supported"
        )
    return n_features


def make_features(
    where: str,
    names: Sequence[str],
    *,
    categories: Mapping[int, Sequence[int]] | None = None,
    labels: Mapping[int, Sequence[str]] | None = None,
    others: Mapping[int, int | None] | None = None,
    can_be_missing: Sequence[bool] | bool = True,
    missing_as: float | None = None,
    unknown_is_missing: bool = False,
) -> tuple[Feature, ...]:
    """Return the input columns; refuse names that occur twice.

    Args:
        where: the place for error messages.
        names: one name per feature.
        categories: feature -> the codes an input can hold; such a feature is categorical.
        labels: feature -> a label per code.
        others: feature -> the code that stands for all that no split mentions, if there is one.
        can_be_missing: one flag per feature, or one for all.
        missing_as: what a missing value is to numeric features that cannot be missing.
        unknown_is_missing: whether an unknown category is routed like a missing value.
    """
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ModelFormatError(f"{where}: two features are called {twice!r}; names must differ")
    codes, code_labels = categories or {}, labels or {}
    missing = [can_be_missing] * len(names) if isinstance(can_be_missing, bool) else can_be_missing
    return tuple(
        Feature(
            name,
            categories=tuple(int(code) for code in codes[i]) if i in codes else None,
            labels=tuple(code_labels[i]) if i in code_labels else None,
            can_be_missing=bool(missing[i]),
            missing_as=None if missing[i] else missing_as,
            unknown_is_missing=unknown_is_missing and i in codes,
            other=(others or {}).get(i),
        )
        for i, name in enumerate(names)
    )


def default_names(n_features: int) -> list[str]:
    """Return ``f0``, ``f1``, ...: how features without a name are called."""
    return [f"f{i}" for i in range(n_features)]


def category_sets(
    where: str, trees: Iterable[Tree], names: Sequence[str]
) -> dict[int, set[frozenset[int]]]:
    """Return, for every feature with categorical splits, the codes that stay left at or above each.

    At a split whose right side only codes beyond these reach, someone must have such a code. None
    of these features may have numeric splits too: its cells would be neither.
    """
    sets: dict[int, set[frozenset[int]]] = {}
    numeric: set[int] = set()
    for tree in trees:
        tested = (tree.feature >= 0) & ~np.isnan(tree.threshold)
        numeric.update(tree.feature[tested].tolist())
        for feature, codes in _left_behind(tree):
            sets.setdefault(feature, set()).add(codes)
    for feature in sorted(sets.keys() & numeric):
        raise UnsupportedModelError(
            f"{where}: feature {names[feature]!r} has both numeric and categorical splits"
        )
    return sets


def _left_behind(tree: Tree) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield each categorical split's feature, and its left codes with those of splits above it.

    Only splits that the path leaves to the right take part. Below the left side of one, nobody has
    a code beyond its set: a split there adds its own codes alone.
    """
    if not tree.left_categories:
        return
    pending: list[tuple[int, dict[int, frozenset[int] | None]]] = [(0, {})]
    while pending:
        node, above = pending.pop()
        if tree.left[node] < 0:
            continue
        low, high = int(tree.left[node]), int(tree.right[node])
        if node not in tree.left_categories:
            pending += [(low, above), (high, above)]
            continue
        feature, own = int(tree.feature[node]), frozenset(tree.left_categories[node])
        behind = above.get(feature, frozenset())
        yield feature, own if behind is None else own | behind
        beyond = None if behind is None else own | behind
        pending += [(low, {**above, feature: None}), (high, {**above, feature: beyond})]


def codes_of(sets: Iterable[frozenset[int]], where: str) -> Sequence[int]:
    """Return the codes of a feature whose model does not store how many categories there are.

    These are ``0 .. n-1`` with the smallest n that puts someone on both sides of every split: a
    trained split separates something, so a set that covers all known codes (of one split, or of
    those on a path, see :func:`category_sets`) shows that there is one more. Where n is huge, one
    code stands for all that no split mentions: none tells them apart.
    """
    distinct = set(sets)
    mentioned = frozenset[int]().union(*distinct)
    n_codes = max(mentioned, default=0) + 1
    if min(mentioned, default=0) < 0 or n_codes > MAX_CATEGORY:
        raise ModelFormatError(f"{where}: a category code is outside 0 .. {MAX_CATEGORY - 1}")
    n_codes += any(len(codes) == n_codes for codes in distinct)
    if n_codes <= MAX_LISTED_CATEGORIES or len(mentioned) == n_codes:
        return range(n_codes)
    other = next(code for code in range(n_codes) if code not in mentioned)
    return sorted(mentioned | {other})


def other_code(codes: Iterable[int], sets: Iterable[frozenset[int]]) -> int | None:
    """Return the first code that no split mentions, which all such codes are like; or None."""
    mentioned = frozenset[int]().union(*sets)
    return next((code for code in codes if code not in mentioned), None)


def finite(value: float, where: str, what: str) -> float:
    """Return the number, or refuse NaN and infinity."""
    if not math.isfinite(value):
        raise ModelFormatError(f"{where}: {what} is {value}, not a finite number")
    return value
