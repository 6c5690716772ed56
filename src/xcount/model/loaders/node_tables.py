"""Trees as a table with a row for each node: CSV, Parquet or a data frame, in one of four forms.

- **XGBoost**: what ``Booster.trees_to_dataframe`` and R's ``xgb.model.dt.tree`` return.
- **LightGBM**: what ``Booster.trees_to_dataframe`` returns.
- **treeshap**: the ``model`` of what R's ``treeshap::unify`` returns.
- **plain**: the form of this project for all else; see docs/howto/tables-of-trees.md.

The form is told by the names of the columns; a column ``output`` may be added to each of them. A
table says neither what the sum starts from nor what it means: no decision without a cut-off.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xcount.errors import MissingExtraError, ModelFormatError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.loaders import fields, lightgbm_text, meaning, splits
from xcount.model.loaders.files import NODE_TABLES
from xcount.model.loaders.splits import Dtype, Operator
from xcount.model.loaders.xgboost_dump import feature_names
from xcount.support.parse import plain_float

_NOTHING = frozenset({"", "NA", "NaN", "nan", "None", "null"})
_INTEGER = re.compile(r"0|[1-9][0-9]{0,8}")
_WRITTEN_AS_FLOAT = re.compile(r"[0-9]{1,15}\.0")
MAX_NODES = 20_000_000
"""More rows of a Parquet file are refused: a file of a few bytes must not ask for all memory."""
OTHER_LABEL = "(other)"
_NEEDED = frozenset[str]().union(*NODE_TABLES.values()) | {"output"}

Columns = Mapping[str, Sequence[Any]]


def from_csv(data: bytes, where: str) -> Ensemble:
    """Read a CSV file of nodes."""
    try:
        records = list(csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ModelFormatError(f"{where}: no readable CSV file: {error}") from None
    head, rows = records[0], [record for record in records[1:] if record]
    twice = [name for name, n in Counter(head).items() if n > 1 and name in _NEEDED]
    if twice:
        raise ModelFormatError(f"{where}: two columns are called {twice[0]!r}")
    for number, row in enumerate(rows):
        if len(row) != len(head):
            raise ModelFormatError(
                f"{where}: row {number} (counted from 0) has {len(row)} fields, the first line "
                f"has {len(head)}"
            )
    return _read({name: [row[i] for row in rows] for i, name in enumerate(head)}, where)


def from_parquet(data: bytes, where: str) -> Ensemble:
    """Read a Parquet file of nodes."""
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(
            f"reading {where} needs pyarrow; install it with: pip install 'xcount[parquet]'"
        ) from None
    try:
        n_rows = parquet.read_metadata(io.BytesIO(data)).num_rows
        if n_rows > MAX_NODES:
            raise ModelFormatError(f"{where}: {n_rows:,} nodes; at most {MAX_NODES:,} are read")
        table = parquet.read_table(io.BytesIO(data))
    except (ArrowException, OSError) as error:
        raise ModelFormatError(f"{where}: no readable Parquet file: {error}") from None
    return _read({name: table[name].to_pylist() for name in table.column_names}, where)


def from_live(table: Any) -> Ensemble:
    """Read a data frame of nodes: of pandas, polars or pyarrow."""
    names = [str(name) for name in getattr(table, "column_names", table.columns)]
    return _read({name: list(table[name]) for name in names}, f"the {type(table).__name__}")


@dataclass(eq=False)
class _Row:
    """A node, as a form of tables says it.

    Attributes:
        place: where it stands, for messages.
        tree: the name of its tree.
        key: its name, which children are called by; None if children are numbers of rows.
        feature: the feature that it tests; None at a leaf.
        categories: those that go left, if it asks for categories.
        missing: the child that a missing value goes to; None if the table does not say so.
        kind: LightGBM's bits of direction and missing type.
    """

    place: str
    tree: str
    key: str
    feature: str | None = None
    operator: Operator = "<="
    threshold: float = math.nan
    categories: tuple[str, ...] | None = None
    left: str = ""
    right: str = ""
    missing: str | None = None
    value: float = 0.0
    output: int = 0
    kind: int = 0


class _Cells:
    """The cells of one row of the table."""

    def __init__(self, columns: Columns, row: int, place: str) -> None:
        self._columns, self._row, self.place = columns, row, place

    def text(self, name: str) -> str | None:
        """Return what a cell says; None if it is empty, or if there is no such column."""
        value = self._columns[name][self._row] if name in self._columns else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        text = str(value).strip()
        # The name of a child, in a column of numbers that has empty cells.
        text = text[:-2] if _WRITTEN_AS_FLOAT.fullmatch(text) else text
        return None if text in _NOTHING else text

    def word(self, name: str) -> str:
        """Return the text of a cell, also one that usually stands for a missing value."""
        value = self._columns[name][self._row] if name in self._columns else None
        if not isinstance(value, str) or not value:
            raise ModelFormatError(
                f"{self.place}: {name!r} is empty; if pandas has read the words None and NaN as "
                "missing values, read the file with keep_default_na=False"
            )
        return value

    def need(self, name: str) -> str:
        """Return what a cell says; refuse an empty one."""
        text = self.text(name)
        if text is None:
            raise ModelFormatError(f"{self.place}: {name!r} is empty")
        return text

    def number(self, name: str) -> float:
        """Return the number in a cell; infinity passes."""
        value = self._columns[name][self._row]
        if isinstance(value, float | np.floating):
            number = float(value)
        else:
            text = self.need(name)
            try:
                number = plain_float(text)
            except ValueError:
                raise ModelFormatError(
                    f"{self.place}: {name!r} is {fields.shown(text)}, not a number"
                ) from None
        if math.isnan(number):
            raise ModelFormatError(f"{self.place}: {name!r} is empty")
        return number

    def integer(self, name: str, default: int | None = None) -> int:
        """Return the integer in a cell."""
        text = self.text(name)
        if text is None and default is not None:
            return default
        return fields.as_int(self.need(name), f"{self.place}: {name!r}", high=10**6)

    def items(self, name: str) -> list[Any] | None:
        """Return the list in a cell, or None if it has none; lists come as such, or as text."""
        value = self._columns[name][self._row] if name in self._columns else None
        if isinstance(value, list | tuple | np.ndarray):
            return list(value)
        text = self.text(name)
        if text is None or not (text.startswith("[") and text.endswith("]")):
            return None
        return [item.strip().strip("'\"") for item in text[1:-1].split(",") if item.strip()]


def _xgboost_row(cells: _Cells, row: int) -> _Row:
    node = _Row(cells.place, cells.need("Tree"), cells.need("ID"), operator="<")
    if cells.need("Feature") == "Leaf":
        node.value = cells.number("Gain" if cells.text("Gain") is not None else "Quality")
        return node
    node.feature = cells.need("Feature")
    codes = cells.items("Category")
    if codes is None:
        node.threshold = cells.number("Split")
    else:
        node.categories = tuple(_code(str(code), cells.place) for code in codes)
    node.left, node.right, node.missing = map(cells.need, ("Yes", "No", "Missing"))
    return node


def _lightgbm_row(cells: _Cells, row: int) -> _Row:
    node = _Row(cells.place, cells.need("tree_index"), cells.need("node_index"))
    if cells.text("split_feature") is None:
        node.value = cells.number("value")
        return node
    node.feature = cells.need("split_feature")
    node.left, node.right = cells.need("left_child"), cells.need("right_child")
    decision = cells.need("decision_type")
    if decision == "==":
        node.categories = tuple(cells.need("threshold").split("||"))
        return node
    if decision != "<=":
        raise ModelFormatError(
            f"{cells.place}: 'decision_type' is {fields.shown(decision)}, expected <= or =="
        )
    node.threshold = cells.number("threshold")
    goes_left = cells.text("missing_direction") == "left"
    node.kind = lightgbm_text.kind_of(cells.word("missing_type"), goes_left, cells.place)
    return node


def _treeshap_row(cells: _Cells, row: int) -> _Row:
    # Children are numbers of rows of the whole table, from 1.
    node = _Row(cells.place, cells.need("Tree"), str(row + 1))
    if cells.text("Feature") is None:
        node.value = cells.number("Prediction")
        return node
    node.feature, node.threshold = cells.need("Feature"), cells.number("Split")
    node.operator = _operator(cells.text("Decision.type") or "<=", cells.place)
    node.left, node.right, node.missing = cells.need("Yes"), cells.need("No"), cells.text("Missing")
    return node


def _plain_row(cells: _Cells, row: int) -> _Row:
    node = _Row(cells.place, cells.need("tree"), cells.need("node"))
    if cells.text("feature") is None:
        node.value = cells.number("value")
        return node
    node.feature = cells.need("feature")
    node.left, node.right = cells.need("left"), cells.need("right")
    test = cells.text("test") or "<="
    if test == "in":
        node.categories = tuple(cells.need("split").split("|"))
    else:
        node.operator, node.threshold = _operator(test, cells.place), cells.number("split")
    side = cells.text("missing")
    if side not in (None, "left", "right"):
        raise ModelFormatError(
            f"{cells.place}: 'missing' is {fields.shown(side)}, expected left, right or nothing"
        )
    node.missing = {None: None, "left": node.left, "right": node.right}[side]
    return node


def _code(text: str, place: str) -> str:
    """Return the code of a category, which a table of numbers may hold as a float."""
    code = text[:-2] if _WRITTEN_AS_FLOAT.fullmatch(text) else text
    if not _INTEGER.fullmatch(code):
        raise ModelFormatError(f"{place}: the category {fields.shown(text)} is no code")
    return code


def _operator(text: str, place: str) -> Operator:
    if text == "<":
        return "<"
    if text == "<=":
        return "<="
    raise ModelFormatError(f"{place}: the test is {fields.shown(text)}, expected <, <= or in")


_ROWS: dict[str, Callable[[_Cells, int], _Row]] = {
    "xgboost": _xgboost_row,
    "lightgbm": _lightgbm_row,
    "treeshap": _treeshap_row,
    "plain": _plain_row,
}


def _read(columns: Columns, where: str) -> Ensemble:
    """Return the ensemble of a table of nodes, in the form that its columns have."""
    form = next((form for form, names in NODE_TABLES.items() if names <= {*columns}), None)
    if form is None:
        raise ModelFormatError(
            f"{where} is a table, but not of trees: none of the known forms has its columns; give "
            f"a table of rows as --data {where}"
        )
    n_rows = len(next(iter(columns.values())))
    if not n_rows:
        raise ModelFormatError(f"{where}: the table has no rows")
    rows = []
    for number in range(n_rows):
        cells = _Cells(columns, number, f"{where}: row {number} (counted from 0)")
        node = _ROWS[form](cells, number)
        node.output = cells.integer("output", 0)
        rows.append(node)
    return _ensemble(rows, form, where)


def _ensemble(rows: Sequence[_Row], form: str, where: str) -> Ensemble:
    names = feature_names([row.feature for row in rows if row.feature is not None], where)
    dtype: Dtype = "float32" if form == "xgboost" else "float64"
    codings = _codings(rows, where)
    by_tree: dict[str, list[_Row]] = {}
    for row in rows:
        by_tree.setdefault(row.tree, []).append(row)
    place_of = {name: place for place, name in enumerate(names)}
    trees = [
        _Builder(nodes, place_of, codings, dtype, form, f"{where}: tree {tree}").build()
        for tree, nodes in by_tree.items()
    ]
    ensemble = Ensemble(
        features=tuple(
            _feature(name, rows_of, codings.get(name), form, where)
            for name, rows_of in _by_feature(rows, names).items()
        ),
        trees=tuple(trees),
        base=(0.0,) * (1 + max(tree.output for tree in trees)),
        input_dtype=dtype,
        format=f"table-{form}",
    )
    return meaning.UNKNOWN.put_on(ensemble)


def _by_feature(rows: Sequence[_Row], names: Sequence[str]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {name: [] for name in names}
    for row in rows:
        if row.feature is not None:
            found[row.feature].append(row)
    return found


@dataclass(frozen=True, eq=False)
class _Coding:
    """The categories of a feature: what they are called, and their codes."""

    code_of: Mapping[str, int]
    codes: tuple[int, ...]
    labels: tuple[str, ...] | None
    other: int | None


def _codings(rows: Sequence[_Row], where: str) -> dict[str, _Coding]:
    """Return the categories of the features that are asked for some."""
    sets: dict[str, set[frozenset[str]]] = {}
    numeric: set[str] = set()
    for row in rows:
        if row.categories is not None and row.feature is not None:
            sets.setdefault(row.feature, set()).add(frozenset(row.categories))
        elif row.feature is not None:
            numeric.add(row.feature)
    for name in sorted(sets.keys() & numeric):
        raise ModelFormatError(f"{where}: feature {name!r} has both numbers and categories")
    return {name: _coding(found, where) for name, found in sets.items()}


def _coding(sets: set[frozenset[str]], where: str) -> _Coding:
    """Return codes: the categories' own numbers if all have one, else in the order of names."""
    known = sorted(frozenset[str]().union(*sets))
    if all(_INTEGER.fullmatch(name) for name in known):
        of_codes = {frozenset(map(int, names)) for names in sets}
        codes = tuple(splits.codes_of(of_codes, where))
        other = splits.other_code(codes, of_codes)
        return _Coding({name: int(name) for name in known}, codes, None, other)
    label = OTHER_LABEL
    while label in known:
        label += "."
    every = (*known, label)
    code_of = {name: code for code, name in enumerate(every)}
    return _Coding(code_of, tuple(range(len(every))), every, len(known))


def _feature(
    name: str, rows: Sequence[_Row], coding: _Coding | None, form: str, where: str
) -> Feature:
    """Return a feature with what its tests say about missing values."""
    if form == "lightgbm":
        kinds = np.array([row.kind for row in rows], dtype=np.int64)
        can_be_missing = coding is not None or lightgbm_text.asks_for_missing(kinds)
    else:
        told = {row.missing is not None for row in rows}
        if len(told) > 1:
            raise ModelFormatError(
                f"{where}: of feature {name!r}, some nodes say where missing values go and some "
                "do not"
            )
        can_be_missing = told == {True}
    return Feature(
        name,
        categories=None if coding is None else coding.codes,
        labels=None if coding is None else coding.labels,
        can_be_missing=can_be_missing,
        missing_as=0.0 if form == "lightgbm" and not can_be_missing else None,
        unknown_is_missing=form == "lightgbm" and coding is not None,
        other=None if coding is None else coding.other,
    )


@dataclass(frozen=True, eq=False)
class _Builder:
    """The rows of one tree, on the way to a tree."""

    rows: Sequence[_Row]
    place_of: Mapping[str, int]
    codings: Mapping[str, _Coding]
    dtype: Dtype
    form: str
    where: str

    def build(self) -> Tree:
        rows = self._root_first()
        index = {row.key: place for place, row in enumerate(rows)}
        if len(index) < len(rows):
            raise ModelFormatError(f"{self.where}: two nodes have the same name")
        outputs = {row.output for row in rows}
        if len(outputs) > 1:
            raise ModelFormatError(f"{self.where}: its nodes add to different outputs")
        thresholds = [self._threshold(row) for row in rows]
        missing_left = [row.missing is not None and row.missing == row.left for row in rows]
        zero_side = np.zeros(len(rows), dtype=np.int64)
        if self.form == "lightgbm":
            kinds = np.array([row.kind for row in rows], dtype=np.int64)
            moved, lefts, zero_side = lightgbm_text.directions(np.array(thresholds), kinds)
            numeric = np.array([row.feature is not None and row.categories is None for row in rows])
            thresholds, missing_left = moved.tolist(), (lefts & numeric).tolist()
        tree = splits.tree_from_arrays(
            self.where,
            n_features=len(self.place_of),
            feature=[-1 if row.feature is None else self.place_of[row.feature] for row in rows],
            threshold=thresholds,
            left=[self._child(row, row.left, index) for row in rows],
            right=[self._child(row, row.right, index) for row in rows],
            value=np.array([row.value for row in rows], dtype=self.dtype).astype(np.float64),
            missing_left=missing_left,
            operator=self._operator,
            dtype=self.dtype,
            zero_side=zero_side,
            left_categories=self._sets(rows),
            output=outputs.pop(),
        )
        if len(tree.feature) < len(rows):
            n_lost = len(rows) - len(tree.feature)
            raise ModelFormatError(
                f"{self.where}: {n_lost} nodes cannot be reached from the root (a cycle)"
            )
        return tree

    @cached_property
    def _operator(self) -> Operator:
        """The test of all nodes; ``<`` if they differ (see :meth:`_threshold`)."""
        found = {row.operator for row in self.rows if row.feature is not None}
        return found.pop() if len(found) == 1 else "<"

    def _threshold(self, row: _Row) -> float:
        if self.dtype == "float32":
            with np.errstate(over="ignore"):
                return float(np.float32(row.threshold))
        if row.operator != self._operator:
            return splits.as_strict_threshold(row.threshold, row.operator, self.dtype)
        return row.threshold

    def _root_first(self) -> list[_Row]:
        """Return the rows with the one in front that is nobody's child."""
        children = {
            key for row in self.rows if row.feature is not None for key in (row.left, row.right)
        }
        roots = [row for row in self.rows if row.key not in children]
        if len(roots) != 1:
            raise ModelFormatError(
                f"{self.where}: {len(roots)} nodes are no node's child, expected one, the root"
            )
        return [roots[0], *(row for row in self.rows if row is not roots[0])]

    def _child(self, row: _Row, key: str, index: Mapping[str, int]) -> int:
        if row.feature is None:
            return -1
        if key not in index:
            raise ModelFormatError(
                f"{row.place}: its child {fields.shown(key)} is no node of its tree"
            )
        if row.missing not in (None, row.left, row.right):
            raise ModelFormatError(
                f"{row.place}: missing values go to {fields.shown(row.missing)}, none of its "
                "children"
            )
        return index[key]

    def _sets(self, rows: Sequence[_Row]) -> dict[int, list[int]]:
        return {
            node: [self.codings[row.feature].code_of[name] for name in row.categories]
            for node, row in enumerate(rows)
            if row.categories is not None and row.feature is not None
        }
