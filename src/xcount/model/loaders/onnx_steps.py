"""The operators in front of the trees of an ONNX graph, as stages to pull tests back through.

These are scalers, imputers, encoders, casts and arithmetic with constants, in ONNX's number types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.loaders.pipelines.stages import Stage, Values

Function = Callable[[int, Values], Values]


class Elementwise(Stage):
    """A monotone function of each column.

    Args:
        place: what to call it in messages.
        n_inputs: how many columns it takes.
        function: what it makes of values of a column, by the column's number.
        turns: numbers at which a new monotone piece begins.
        keeps: whether the values that an encoder behind it knows come out as they went in.
    """

    def __init__(
        self,
        place: str,
        n_inputs: int,
        function: Function,
        turns: Sequence[float] = (),
        *,
        keeps: bool = False,
    ) -> None:
        super().__init__(None, place, n_inputs, is_sparse=False)
        self._function = function
        self._turns = turns
        self._keeps = keeps

    def keeps_categories(self, output: int) -> bool:
        return self._keeps

    def turns(self, column: int) -> Sequence[float]:
        return self._turns

    def _made(self, column: int, values: Values) -> Values:
        with np.errstate(all="ignore"):
            made = self._function(column, values)
        return np.asarray(made, dtype=np.float64)[:, np.newaxis]


class Encoder(Stage):
    """OneHotEncoder and LabelEncoder: a category becomes numbers.

    Args:
        place: what to call it in messages.
        keys: the categories; texts or numbers.
        table: the numbers of each category, one row each.
        default: the numbers of a value that is no category; None if it is refused.
    """

    def __init__(
        self,
        place: str,
        keys: Sequence[Any],
        table: NDArray[np.float64],
        default: NDArray[np.float64] | None,
    ) -> None:
        self._rows = dict(zip(keys, table, strict=True))
        self._default = default
        self._width = table.shape[1]
        super().__init__(None, place, 1, is_sparse=False)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        width: int = self._width
        return (0,) * width

    def forgets_categories(self, output: int) -> bool:
        return True

    def categories(self, column: int) -> Sequence[Any]:
        return list(self._rows)

    @cached_property
    def _is_text(self) -> bool:
        return any(isinstance(key, str) for key in self._rows)

    @cached_property
    def _is_whole(self) -> bool:
        return all(isinstance(key, int) for key in self._rows)

    def _made(self, column: int, values: Values) -> Values:
        rows = [self._row(value) for value in values.tolist()]
        return np.array(rows, dtype=np.float64).reshape(len(values), self._width)

    def _row(self, value: Any) -> NDArray[np.float64]:
        is_text = isinstance(value, str)
        if is_text != self._is_text or (not is_text and np.isnan(value)):
            raise ValueError("a missing value, or one of another kind")
        known_as = int(value) if self._is_whole else value
        found = self._rows.get(known_as, self._default)
        if found is None:
            raise ValueError("no category")
        return np.asarray(found, dtype=np.float64)


def cast(place: str, n_inputs: int, dtype: str) -> Stage:
    """Return a stage that rounds numbers to a number type."""

    def rounded(_: int, values: Values) -> Values:
        numbers = _numbers(values, place)
        if dtype != "int64":
            return numbers.astype(dtype)
        if np.isnan(numbers).any():
            raise ValueError("a missing value is no integer")
        return np.trunc(numbers)

    return Elementwise(place, n_inputs, rounded, keeps=True)


def _numbers(values: Values, place: str) -> NDArray[np.float64]:
    if values.dtype == object and any(isinstance(value, str) for value in values.tolist()):
        raise UnsupportedModelError(f"{place}: texts become numbers")
    return np.asarray(values, dtype=np.float64)


def scaler(place: str, offset: NDArray[Any], scale: NDArray[Any], n_inputs: int) -> Stage:
    """Return ``(x - offset) * scale`` in float32, as the operator Scaler computes it."""
    offsets, scales = (np.broadcast_to(a.astype(np.float32), n_inputs) for a in (offset, scale))

    def scaled(column: int, values: Values) -> Values:
        return np.asarray((values.astype(np.float32) - offsets[column]) * scales[column])

    return Elementwise(place, n_inputs, scaled)


def arithmetic(place: str, operator: str, other: NDArray[Any], n_inputs: int, dtype: str) -> Stage:
    """Return a stage that adds, subtracts, multiplies by or divides by constants."""
    if operator == "Div" and dtype == "int64":
        raise UnsupportedModelError(f"{place} of integers, which drops the remainder, is not read")
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[operator]
    constants = np.broadcast_to(np.ravel(other).astype(dtype), n_inputs)

    def computed(column: int, values: Values) -> Values:
        return np.asarray(function(values.astype(dtype), constants[column]))

    return Elementwise(place, n_inputs, computed)


def clip(place: str, low: float, high: float, n_inputs: int) -> Stage:
    """Return a stage that keeps numbers between two ends."""
    return Elementwise(place, n_inputs, lambda _, values: np.clip(values, low, high))


def binarizer(place: str, threshold: float, n_inputs: int) -> Stage:
    """Return a stage that is 1 above a threshold, 0 up to it."""

    def above(_: int, values: Values) -> Values:
        return (values > np.float32(threshold)).astype(np.float64)

    return Elementwise(place, n_inputs, above)


def imputer(place: str, imputed: NDArray[Any], replaced: float, n_inputs: int) -> Stage:
    """Return a stage that puts a number in the place of missing values."""
    fills = np.broadcast_to(imputed.astype(np.float32), n_inputs)

    def filled(column: int, values: Values) -> Values:
        is_missing = np.isnan(values) if np.isnan(replaced) else values == replaced
        return np.where(is_missing, fills[column], values)

    around = () if np.isnan(replaced) else (replaced, float(np.nextafter(replaced, np.inf)))
    return Elementwise(place, n_inputs, filled, around, keeps=bool(np.isnan(replaced)))
