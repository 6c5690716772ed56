"""A question as text in integers, which the verified counter reads (docs/question-format.md).

Comments say which model, feature and cell each number stands for, so that the file can be checked
against the model (``check_question.py``). They do not matter to the count.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.model.one_hot import OneHotEncoding
from xcount.problem.integers import Integers
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.margins import IntegerMargins
from xcount.problem.problem import Problem
from xcount.question.allowed import Exchange
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.grid import Axis
from xcount.question.rules import CellCondition, CellRule
from xcount.support.files import write_atomically

MOST_DIGITS = 1000
"""The most digits of an integer in the format."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Sums:
    """The sums of a question in integers.

    Attributes:
        change: the words of the change, e.g. ``gap 80``.
        outputs: the index of each sum in the model.
        laid: the trees of each sum.
        bases: the constant of each sum; 0 if it does not matter.
        scale: one unit of margin in these integers.
    """

    change: str
    outputs: tuple[int, ...]
    laid: tuple[LaidTrees, ...]
    bases: tuple[int, ...]
    scale: Fraction


def question_text(problem: Problem) -> str:
    """Return a question as the text of a question file.

    Raises:
        QueryError: the question is not about integers, such as a gap in the sigmoid of a margin.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> model = figure_1()
        >>> query = xcount.Query.of(model, "f0", gap=80, distance=1)
        >>> text = question_text(Problem(model, xcount.Grid.of(model), query))
        >>> print(text.splitlines()[-4])
        trees 2
    """
    sums = _sums(problem)
    text = "\n".join(_lines(problem, sums)) + "\n"
    if any(len(word) > MOST_DIGITS and word.lstrip("-").isdigit() for word in text.split()):
        raise QueryError("the question has numbers of more than 1,000 digits; give --precision")
    return text


def write_question(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a question file, whole or not at all."""
    write_atomically(path, question_text(problem))


def _sums(problem: Problem) -> _Sums:
    change = problem.query.change
    if isinstance(change, Gap | ProbabilityGap):
        return _gap(problem, change)
    if isinstance(change, Flip):
        return _flip(problem, change)
    raise TypeError(f"no question file for a {type(change).__name__}")


def _gap(problem: Problem, change: Gap | ProbabilityGap) -> _Sums:
    if change.margin_gap is None:
        kind = "softmax" if len(problem.ensemble.base) > 1 else "sigmoid"
        raise QueryError(
            f"a gap in the {kind} of the margin is no question in integers, so it cannot be "
            "written to a file or verified; ask for --gap or --flip"
        )
    laid = LaidTrees.of_output(
        problem.ensemble, problem.grid, change.output, problem.query.precision
    )
    word = {"any": "gap", "up": "rise", "down": "fall"}[change.direction]
    threshold = math.floor(change.margin_gap * laid.scale)
    return _Sums(f"{word} {threshold}", (change.output,), (laid,), (0,), laid.scale)


def _flip(problem: Problem, change: Flip) -> _Sums:
    margins = IntegerMargins.of(problem)
    outputs = tuple(range(margins.n_outputs))
    return _Sums(
        _flip_words(margins, change), outputs, margins.outputs, margins.bases, margins.scale
    )


def _flip_words(margins: IntegerMargins, change: Flip) -> str:
    if change.cutoff is None:
        if change.sureness is not None:
            raise QueryError(
                "a flip between classes with --from-probability (from_probability) cannot be "
                "written to a file or verified; ask without it"
            )
        return "class"
    at, suffix = margins.cut(change.cutoff, change.tie_is_above), ""
    numbers = [at]
    if change.sureness is not None:
        found = margins.cutoffs(change)
        assert found is not None
        suffix = "-sure"
        numbers = [found.sure_below] if change.direction != "down" else []
        numbers += [found.at]
        numbers += [found.sure_above] if change.direction != "up" else []
    direction = "" if change.direction == "any" else f"-{change.direction}"
    return " ".join([f"flip{direction}{suffix}", *map(str, numbers)])


def _lines(problem: Problem, sums: _Sums) -> Iterator[str]:
    grid, query = problem.grid, problem.query
    if grid.allowed.rising or grid.allowed.falling:
        raise QueryError("a question file knows no order of changes, such as monotone asks about")
    yield "xcount-question 1"
    yield from _comments(problem, sums)
    yield f"features {len(grid.axes)}"
    for index, axis in enumerate(grid.axes):
        yield f"# feature {json.dumps(_feature(problem, index))}"
        yield f"{_order(axis)} cells {axis.n_cells}"
    yield _listed("sensitive", query.sensitive)
    yield f"distance {'any' if query.distance is None else query.distance}"
    yield f"change {sums.change}"
    closed = [(f, axis) for f, axis in enumerate(grid.axes) if axis.only_starts]
    yield f"closed {len(closed)}"
    for feature, axis in closed:
        yield f"{feature} {_ranges(np.isin(np.arange(axis.n_cells), list(axis.only_starts)))}"
    yield f"along {len(grid.allowed.along)}"
    yield from map(_exchange, grid.allowed.along)
    yield f"rules {len(grid.rules)}"
    yield from map(_rule, grid.rules)
    starts = (*grid.allowed.starts, *_that_can_move(grid.allowed.along))
    for word, conditions in (("from", starts), ("to", grid.allowed.targets)):
        yield f"{word} {len(conditions)}"
        yield from (_all_hold((condition,), "l 1", "l 0") for condition in conditions)
    yield f"outputs {len(sums.laid)}"
    for laid, base in zip(sums.laid, sums.bases, strict=True):
        constants = [f"l {base}"] if base else []
        yield f"trees {len(constants) + len(laid.trees)}"
        yield from constants
        yield from _trees(laid)
    yield "end"


def _comments(problem: Problem, sums: _Sums) -> Iterator[str]:
    """Yield what the numbers stand for, as far as it is not about one feature."""
    ensemble, query = problem.ensemble, problem.query
    names = ensemble.feature_names
    asked: dict[str, Any] = {
        "sensitive": [names[f] for f in query.sensitive],
        "distance": "any" if query.distance is None else query.distance,
        "precision": "exact" if query.precision is None else query.precision,
        **query.change.to_dict(),
    }
    yield f"# model {json.dumps({'format': ensemble.format, 'sha256': ensemble.source.sha256})}"
    yield f"# asked {json.dumps(asked)}"
    if problem.grid.domain:
        yield f"# domain {json.dumps(problem.grid.domain.to_dict())}"
    yield f"# scale {json.dumps(str(sums.scale))}"
    yield f"# outputs {json.dumps(sums.outputs)}"


def _feature(problem: Problem, index: int) -> dict[str, Any]:
    """Return the name of a feature and the contents of its cells."""
    axis, encoding = problem.grid.axes[index], problem.ensemble.encoding
    found: dict[str, Any] = {"name": axis.feature.name}
    if isinstance(encoding, OneHotEncoding) and (group := encoding.group_of(index)):
        columns = [*(encoding.source.feature_names[c] for c in group.columns), None]
        found["columns"] = [[columns[code] for code in codes] for codes in axis.classes]
    elif axis.feature.is_categorical:
        found["codes"] = [list(codes) for codes in axis.classes]
        labels = dict(zip(axis.feature.categories or (), axis.feature.labels or (), strict=False))
        if labels:
            found["labels"] = [[labels.get(code) for code in codes] for codes in axis.classes]
    else:
        found["numbers"] = [_pieces(axis, cell) for cell in range(axis.numbers.n_cells)]
    if axis.missing_cell is not None:
        found["missing"] = axis.missing_cell
    return found


def _pieces(axis: Axis, cell: int) -> list[list[float | None]]:
    """Return the numbers ``low <= x < high`` of a cell; null for no end."""
    return [
        [end if math.isfinite(end) else None for end in piece]
        for piece in axis.numbers.pieces(cell)
    ]


def _order(axis: Axis) -> str:
    if axis.feature.is_categorical:
        return "unordered"
    if axis.is_regular and axis.missing_cell is None:
        return "ordered"
    places = [*map(str, axis.numbers.positions.tolist())]
    places += [] if axis.missing_cell is None else ["-"]
    return f"placed {' '.join([str(axis.n_cells), *places])}"


def _listed(word: str, numbers: Sequence[int]) -> str:
    return " ".join([word, str(len(numbers)), *map(str, numbers)])


def _ranges(holds: Flags) -> str:
    """Return a set of cells as half-open ranges.

    Example:
        >>> _ranges(np.array([True, True, False, True]))
        '2 0 2 3 4'
    """
    padded = np.concatenate([[False], holds, [False]])
    ends = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return " ".join(map(str, [len(ends) // 2, *ends]))


def _exchange(exchange: Exchange) -> str:
    """Return the cells that the cells of a feature become; one that becomes none stays."""
    cells = np.where(exchange.cells < 0, np.arange(len(exchange.cells)), exchange.cells)
    return _listed(str(exchange.feature), cells.tolist())


def _that_can_move(along: Sequence[Exchange]) -> Iterator[CellCondition]:
    """Yield conditions that leave out starts which would move out of the domain."""
    for exchange in along:
        if (exchange.cells < 0).any():
            yield CellCondition(exchange.feature, exchange.cells >= 0)


def _rule(rule: CellRule) -> str:
    """Return a rule as a tree that is 1 where it is kept: supposed -> required."""
    text = _all_hold(rule.required, "l 1", "l 0")
    return _all_hold(rule.supposed, text, "l 1")


def _all_hold(conditions: Sequence[CellCondition], then: str, otherwise: str) -> str:
    for condition in reversed(conditions):
        then = f"n {condition.feature} {_ranges(condition.holds)} {then} {otherwise}"
    return then


def _trees(laid: LaidTrees) -> Iterator[str]:
    start = 0
    for tree, rows in zip(laid.trees, laid.left_cells(), strict=True):
        values: Integers = laid.values[start : start + tree.n_nodes]
        start += tree.n_nodes
        feature, left, right = tree.feature.tolist(), tree.left.tolist(), tree.right.tolist()
        words, stack = list[str](), [0]
        while stack:
            node = stack.pop()
            if feature[node] < 0:
                words.append(f"l {values[node]}")
            else:
                words.append(f"n {feature[node]} {_ranges(rows[node])}")
                stack += [right[node], left[node]]
        yield " ".join(words)
