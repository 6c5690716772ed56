"""CatBoost's trees, in both forms that its JSON has, as node arrays.

A non-symmetric tree is nested objects. An oblivious tree asks the same question everywhere on a
level; bit i of a leaf's index is the answer to question i. It becomes a plain tree here, without
the tests that the path already decides (a missing value answers all questions about its feature
alike, like -inf or +inf, so they are decided for it too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.loaders import fields, splits
from xcount.model.loaders.catboost_categories import Categories

MAX_OBLIVIOUS_DEPTH = 24
"""CatBoost itself stops at 16; an oblivious tree of depth d has 2**d leaves."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """One tree as arrays; ``leaf`` is the row of ``values`` that a leaf holds, -1 elsewhere."""

    position: NDArray[np.int64]  # of the tested feature in float_features, -1 at a leaf; beyond
    # those come the tests of categories, each like a feature of its own with a border at 0.5
    border: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    leaf: NDArray[np.int64]
    values: NDArray[np.float64]  # n_leaves x n_outputs


@dataclass(frozen=True, eq=False)
class SplitReader:
    """Reads what a split asks.

    Attributes:
        borders: the borders of each numeric feature.
        categories: the categorical ones.
    """

    borders: Sequence[Sequence[float]]
    categories: Categories

    @property
    def n_floats(self) -> int:
        return len(self.borders)

    @cached_property
    def _tests(self) -> list[tuple[int, float]]:
        """Every numeric test that the file lists, as CatBoost numbers them."""
        return [(i, border) for i, listed in enumerate(self.borders) for border in listed]

    def read(self, split: object, where: str) -> tuple[int, float]:
        """Return the position of what is tested, and the border."""
        kind = fields.as_object(split, where).get("split_type", "FloatFeature")
        if kind in ("OneHotFeature", "OnlineCtr"):
            number = self.categories.test_number(fields.as_object(split, where), kind, where)
            return self.n_floats + number, 0.5
        if kind != "FloatFeature":
            raise UnsupportedModelError(
                f"{where}: a split of type {fields.shown(kind)}: of CatBoost models, those with "
                "numeric and categorical features only are supported"
            )
        position = fields.as_int(fields.member(split, "float_feature_index", where), where)
        if position >= self.n_floats:
            raise ModelFormatError(
                f"{where}: float_feature_index {position}, but there are {self.n_floats} float "
                "features"
            )
        border = as_border(fields.member(split, "border", where), where)
        index = fields.as_int(fields.member(split, "split_index", where), where)
        # CatBoost itself goes by the number alone.
        if index >= len(self._tests) or self._tests[index] != (position, border):
            raise ModelFormatError(
                f"{where}: float feature {position} at the border {border:g} is not the test with "
                f"the split_index {index}; the file contradicts itself"
            )
        return position, border


def as_border(value: object, where: str) -> float:
    """Return a border as CatBoost holds it, in 32 bits."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(fields.as_float(value, where)))
    return splits.finite(rounded, where, "the border")


def read_oblivious(tree: object, reader: SplitReader, where: str) -> Nodes:
    """Read an oblivious tree: a list of splits, and a leaf for every list of answers."""
    listed = fields.as_object(tree, where).get("splits")
    questions = [
        reader.read(split, f"{where}.splits[{i}]")
        for i, split in enumerate(fields.as_list(listed or [], f"{where}.splits"))
    ]
    if len(questions) > MAX_OBLIVIOUS_DEPTH:
        raise UnsupportedModelError(
            f"{where}: depth {len(questions)}; at most {MAX_OBLIVIOUS_DEPTH} is supported"
        )
    place = f"{where}.leaf_values"
    values = fields.float_array(fields.member(tree, "leaf_values", where), place)
    n_leaves = 2 ** len(questions)
    if len(values) == 0 or len(values) % n_leaves:
        raise ModelFormatError(
            f"{place}: {len(values)} values for {n_leaves} leaves (depth {len(questions)})"
        )
    return _expand(questions, values.reshape(n_leaves, -1))


def _expand(questions: Sequence[tuple[int, float]], values: NDArray[np.float64]) -> Nodes:
    """Unfold an oblivious tree level by level, all paths of a level at once.

    Of every path we keep the leaf index so far, the link that its next node hangs on, and per
    feature what its answers say: ``low < x <= high``.
    """
    rows = {position: row for row, position in enumerate(dict.fromkeys(p for p, _ in questions))}
    low, high = np.full((len(rows), 1), -np.inf), np.full((len(rows), 1), np.inf)
    leaf, link = np.zeros(1, dtype=np.int64), np.full(1, -1)
    links: list[NDArray[np.int64]] = []  # of the nodes made so far; 2 * parent + (1 if right)
    tested: list[tuple[int, float, int]] = []
    n_nodes = 0
    for bit, (position, border) in enumerate(questions):
        row = rows[position]
        leaf = leaf | np.where(border <= low[row], 1 << bit, 0)
        open_ = np.flatnonzero((low[row] < border) & (border < high[row]))
        rest = np.flatnonzero(~((low[row] < border) & (border < high[row])))
        nodes = n_nodes + np.arange(len(open_))
        links.append(link[open_])
        tested.append((position, border, len(open_)))
        n_nodes += len(open_)
        taken = np.concatenate([rest, open_, open_])
        low, high = low[:, taken], high[:, taken]
        lefts = slice(len(rest), len(rest) + len(open_))
        rights = slice(len(rest) + len(open_), None)
        high[row, lefts] = border
        low[row, rights] = border
        leaf = np.concatenate([leaf[rest], leaf[open_], leaf[open_] | 1 << bit])
        link = np.concatenate([link[rest], 2 * nodes, 2 * nodes + 1])
    return _linked(tested, [*links, link], leaf, values)


def _linked(
    tested: Sequence[tuple[int, float, int]],
    links: Sequence[NDArray[np.int64]],
    leaf: NDArray[np.int64],
    values: NDArray[np.float64],
) -> Nodes:
    """Number the nodes of all levels in a row, the leaves last, and turn links into children."""
    counts = [count for _, _, count in tested]
    none = np.full(len(leaf), -1, dtype=np.int64)
    children = np.full((sum(counts) + len(leaf), 2), -1, dtype=np.int64)
    hangs_on = np.concatenate(links)
    inner_links = hangs_on >= 0  # all but the root's
    children[hangs_on[inner_links] // 2, hangs_on[inner_links] % 2] = np.flatnonzero(inner_links)
    positions = np.repeat(np.array([p for p, _, _ in tested], dtype=np.int64), counts)
    borders = np.repeat(np.array([b for _, b, _ in tested], dtype=np.float64), counts)
    return Nodes(
        position=np.concatenate([positions, none]),
        border=np.concatenate([borders, np.full(len(leaf), np.nan)]),
        left=children[:, 0],
        right=children[:, 1],
        leaf=np.concatenate([np.full(len(positions), -1, dtype=np.int64), leaf]),
        values=values,
    )


def read_nested(tree: object, reader: SplitReader, where: str) -> Nodes:
    """Read a non-symmetric tree: nested objects with ``split``, ``left`` and ``right``."""
    table: list[tuple[int, float, int]] = []  # position, border, row of values
    children: list[list[int]] = []
    values: list[NDArray[np.float64]] = []
    waiting: list[tuple[object, int, int]] = [(tree, -1, 0)]
    while waiting:
        node, parent, side = waiting.pop()
        at = f"{where}, node {len(table)}"
        if parent >= 0:
            children[parent][side] = len(table)
        children.append([-1, -1])
        if "split" in fields.as_object(node, at):
            position, border = reader.read(fields.member(node, "split", at), f"{at}, split")
            waiting.append((fields.member(node, "right", at), len(table), 1))
            waiting.append((fields.member(node, "left", at), len(table), 0))
            table.append((position, border, -1))
        else:
            value = fields.member(node, "value", at)
            listed = value if isinstance(value, list) else [value]
            values.append(fields.float_array(listed, f"{at}, value"))
            table.append((-1, np.nan, len(values) - 1))
    if len({len(value) for value in values}) != 1 or not len(values[0]):
        raise ModelFormatError(f"{where}: the leaves differ in their number of values")
    position_row, border_row, leaf_row = zip(*table, strict=True)
    links = np.array(children, dtype=np.int64)
    return Nodes(
        position=np.array(position_row, dtype=np.int64),
        border=np.array(border_row, dtype=np.float64),
        left=links[:, 0],
        right=links[:, 1],
        leaf=np.array(leaf_row, dtype=np.int64),
        values=np.stack(values),
    )
