"""The contents of a feature's cell, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from xcount.support.numerals import DIGITS
from xcount.support.records import Json, record


@record("cell", "What a cell of a feature holds: numbers, categories, or missing values.")
@dataclass(frozen=True, slots=True)
class CellRange:
    """A cell of a feature: ``low <= x < high``, or some categories, or missing values.

    If a domain cuts a cell, its bounds may also be ``low < x`` or ``x <= high``.

    Example:
        >>> CellRange("age", low=30.5, high=42.0).description
        '30.5 <= age < 42'
    """

    feature: Annotated[str, Json("Its feature.")]
    low: Annotated[
        float | None,
        Json("Its numbers are at least this; absent if there is no lower bound.", is_optional=True),
    ] = None
    high: Annotated[
        float | None,
        Json(
            "Its numbers are less than this; absent if there is no upper bound.", is_optional=True
        ),
    ] = None
    categories: Annotated[
        tuple[int, ...], Json("The codes of its categories.", is_optional=True)
    ] = ()
    labels: Annotated[
        tuple[str, ...],
        Json("The names of its categories, if known.", is_optional=True),
    ] = ()
    is_missing: Annotated[
        bool, Json("Whether it is the cell of missing values.", name="missing", is_optional=True)
    ] = False
    digits: Annotated[
        int | None,
        Json(
            "Number of digits that distinguish its ends from other guards; absent if six "
            "are enough.",
            {"minimum": 1},
            is_optional=True,
        ),
    ] = None
    low_is_out: Annotated[
        bool, Json("Whether its numbers are more than `low`, never equal.", is_optional=True)
    ] = False
    high_is_in: Annotated[
        bool, Json("Whether its numbers may also be equal to `high`.", is_optional=True)
    ] = False

    @property
    def description(self) -> str:
        """The cell in words."""
        if self.is_missing:
            return f"{self.feature} is missing"
        if self.categories:
            if len(self.categories) == 1:
                return f"{self.feature} = {self.values_text}"
            return f"{self.feature} in {{{self.values_text}}}"
        if self.high_is_in and self.low == self.high is not None:
            return f"{self.feature} = {self.edge_text(self.high)}"
        below, above = "<" if self.low_is_out else "<=", "<=" if self.high_is_in else "<"
        low = "" if self.low is None else f"{self.edge_text(self.low)} {below} "
        high = "" if self.high is None else f" {above} {self.edge_text(self.high)}"
        return f"{low}{self.feature}{high}" if low or high else f"any {self.feature}"

    @property
    def values_text(self) -> str:
        """The categories by name, or by code if they have none."""
        return ", ".join(self.labels or map(str, self.categories))

    def edge_text(self, edge: float) -> str:
        """Return a guard with as many digits as it needs."""
        return f"{edge:.{self.digits or DIGITS}g}"


def mask_text(ranges: tuple[CellRange, ...]) -> str:
    """Return a mask in words: one cell of each sensitive feature."""
    return ", ".join(cell.description for cell in ranges)
