"""XGBoost's JSON *dump*: an array of nested trees, the input form of the paper's tool.

``Booster.dump_model(path, dump_format="json")`` writes it. A dump has no base score, no objective
and no classes: the trees of a multiclass model would all add to one sum. Features are integers,
``"f12"``, or names; names are numbered in the order in which they first occur.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.loaders import fields, splits
from xcount.model.loaders.xgboost_json import parse_json

_USUAL_KINDS = (float, str, int, int, int)
_LAST_ID = 2**31 - 1
_NUMBERED = re.compile(r"f(0|[1-9][0-9]{0,8})")


def from_document(document: object, where: str) -> Ensemble:
    """Turn the parsed array of trees (objects, or strings that hold them) into an ensemble."""
    tables = [
        _flatten(
            parse_json(root.encode(), f"{where}: tree {i}") if isinstance(root, str) else root,
            f"{where}: tree {i}",
        )
        for i, root in enumerate(fields.as_list(document, where))
    ]
    names = feature_names([split for table in tables for split in table.splits], where)
    index_of = {name: i for i, name in enumerate(names)}
    trees = [table.build(index_of, f"{where}: tree {i}") for i, table in enumerate(tables)]
    sets = splits.category_sets(where, trees, names)
    categories = {f: splits.codes_of(s, where) for f, s in sets.items()}
    return Ensemble(
        features=splits.make_features(
            where,
            names,
            categories=categories,
            others={f: splits.other_code(categories[f], s) for f, s in sets.items()},
            can_be_missing=all(table.says_missing for table in tables),
        ),
        trees=tuple(trees),
        input_dtype="float32",
        decides_at=None,
        format="xgboost-dump",
    )


@dataclass
class _Table:
    """The nodes of one tree, parents before children; ``split`` is still what the file says."""

    split: list[int | str | None] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    categories: dict[int, frozenset[int]] = field(default_factory=dict)
    says_missing: bool = True

    @property
    def splits(self) -> list[int | str]:
        return [split for split in self.split if split is not None]

    def add(self, n: int = 1) -> int:
        """Append leaves of value 0 and return the index of the first."""
        first = len(self.split)
        self.split += [None] * n
        self.threshold += [0.0] * n
        self.left += [-1] * n
        self.right += [-1] * n
        self.missing_left += [False] * n
        self.value += [0.0] * n
        return first

    def build(self, index_of: dict[str, int], where: str) -> Tree:
        return splits.tree_from_arrays(
            where,
            n_features=len(index_of),
            feature=[-1 if s is None else index_of[_name_of(s)] for s in self.split],
            threshold=fields.float32_array(self.threshold, where),
            left=self.left,
            right=self.right,
            value=fields.float32_array(self.value, where),
            missing_left=self.missing_left,
            operator="<",
            dtype="float32",
            left_categories=self.categories,
        )


def _flatten(root: object, where: str) -> _Table:
    """Walk the nested nodes without recursion."""
    table = _Table()
    pending: list[tuple[object, int]] = [(root, table.add())]
    while pending:
        raw, index = pending.pop()
        if (children := _read_usual(table, raw, index)) is not None:
            pending += children
            continue
        node = fields.as_object(raw, where)
        place = f"{where}, node {fields.shown(node.get('nodeid', index))}"
        if "leaf" in node:
            if isinstance(node["leaf"], list):
                raise UnsupportedModelError(f"{place}: vector leaves in a dump are not supported")
            table.value[index] = fields.as_float(node["leaf"], place)
            continue
        pending += _read_split(table, node, index, place)
    return table


def _read_usual(table: _Table, node: object, index: int) -> list[tuple[object, int]] | None:
    """Read a node that is just as XGBoost writes it, quickly, and return its children.

    None for anything else, which is left to those who know what may be wrong with it.
    """
    if type(node) is not dict:
        return None
    if type(leaf := node.get("leaf")) is float:
        table.value[index] = leaf
        return []
    try:
        condition, split = node["split_condition"], node["split"]
        yes, no, missing = node["yes"], node["no"], node["missing"]
        low, high = node["children"]
        first, second = low["nodeid"], high["nodeid"]
    except (KeyError, TypeError, ValueError):
        return None
    kinds = type(condition), type(split), type(yes), type(no), type(missing)
    if kinds != _USUAL_KINDS or (yes, no) != (first, second) or missing not in (yes, no):
        return None
    if yes == no or not (0 <= yes <= _LAST_ID and 0 <= no <= _LAST_ID):
        return None
    table.split[index], table.threshold[index] = split, condition
    table.missing_left[index] = missing == yes
    left = table.add(2)
    table.left[index], table.right[index] = left, left + 1
    return [(high, left + 1), (low, left)]


def _read_split(
    table: _Table, node: dict[str, Any], index: int, place: str
) -> list[tuple[object, int]]:
    """Fill in an inner node and return its children with their new indices."""
    split = fields.member(node, "split", place)
    if isinstance(split, bool) or not isinstance(split, int | str):
        raise ModelFormatError(f"{place}: 'split' must be a name or an index")
    if isinstance(split, int):
        fields.as_int(split, f"{place}: split")
    if "split_condition" not in node:
        raise UnsupportedModelError(
            f"{place}: an indicator split (no 'split_condition'; feature map type 'i')"
        )
    condition = node["split_condition"]
    if isinstance(condition, list):
        codes = fields.int_array(condition, f"{place}: split_condition")
        table.categories[index] = frozenset(codes.tolist())
    else:
        table.threshold[index] = fields.as_float(condition, f"{place}: split_condition")
    children = {}
    for child in fields.as_list(fields.member(node, "children", place), place):
        children[_node_id(child, "nodeid", place)] = child
    yes, no = (_node_id(node, key, place) for key in ("yes", "no"))
    if len(children) != 2 or set(children) != {yes, no}:
        raise ModelFormatError(
            f"{place}: 'yes' {yes} and 'no' {no} are not its two children {sorted(children)[:4]}"
        )
    if "missing" in node:
        missing = _node_id(node, "missing", place)
        if missing not in children:
            raise ModelFormatError(f"{place}: 'missing' {missing} is none of its children")
        table.missing_left[index] = missing == yes
    else:
        table.says_missing = False
    table.split[index] = split
    left = table.add(2)
    table.left[index], table.right[index] = left, left + 1
    return [(children[no], table.right[index]), (children[yes], table.left[index])]


def _node_id(node: object, key: str, place: str) -> int:
    return fields.as_int(fields.member(node, key, place), f"{place}: {key}")


def _name_of(split: int | str) -> str:
    return split if isinstance(split, str) else f"f{split}"


def feature_names(found: Sequence[int | str], where: str) -> list[str]:
    """Return all feature names; numbered features also name those that no tree uses."""
    names = list(dict.fromkeys(_name_of(split) for split in found))
    numbers = [int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))]
    if len(numbers) == len(names):
        n_features = splits.check_feature_count(where, max(numbers, default=-1) + 1)
        return splits.default_names(n_features)
    for split in found:
        if isinstance(split, int):
            raise ModelFormatError(
                f"{where}: feature {split} is given by index, others by name; use one of the two"
            )
    return names
