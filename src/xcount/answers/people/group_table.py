"""How the groups of a table fare: rates of the favourable decision, and shares of sensitive rows.

Results import this module, so it must import fast; :mod:`~xcount.answers.people.groups` fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from xcount.support.records import Json, record, written

_AT_LEAST_0 = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}


@record("group_row", "The rows of one group.")
@dataclass(frozen=True, slots=True)
class GroupRow:
    """The rows of one group: how many get the favourable decision, and how many are sensitive."""

    values: Annotated[
        tuple[str, ...],
        Json("The group: a value for each column; empty for all rows, or those of no known group."),
    ]
    n_rows: Annotated[int, Json("Rows in the group.", _AT_LEAST_0)]
    n_favourable: Annotated[
        int | None,
        Json("How many get the favourable decision; null if there is none.", _AT_LEAST_0),
    ]
    n_sensitive: Annotated[
        int | None, Json("How many are sensitive; null if that is not known of all.", _AT_LEAST_0)
    ]
    impact_ratio: Annotated[
        float | None,
        Json(
            "`rate` divided by the highest rate of a known group; null if that is 0 or unknown.",
            _SHARE,
        ),
    ] = None

    @property
    @written(Json("`n_favourable` / `n_rows`; null without rows.", _SHARE, after="n_favourable"))
    def rate(self) -> float | None:
        return _share(self.n_favourable, self.n_rows)

    @property
    @written(Json("`n_sensitive` / `n_rows`; null without rows.", _SHARE, after="n_sensitive"))
    def share(self) -> float | None:
        """The share of the group's rows that are sensitive."""
        return _share(self.n_sensitive, self.n_rows)

    @property
    def label(self) -> str:
        """The group in words."""
        return " x ".join(self.values)


def _share(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole


@record("group_table", "The groups by one column, or by the combinations of several.")
@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups by some columns: those that have rows, and the rows of no known group."""

    columns: Annotated[tuple[str, ...], Json("The columns whose values make the groups.")]
    groups: Annotated[tuple[GroupRow, ...], Json("The known groups that have rows.")]
    unknown: Annotated[
        GroupRow, Json("The rows whose group is unknown: a value of one of the columns is missing.")
    ]

    @property
    @written(
        Json(
            "The adverse impact ratio: the lowest rate of a known group divided by the highest; "
            "null if it is 0 over 0, or unknown.",
            _SHARE,
        )
    )
    def ratio(self) -> float | None:
        found = [group.impact_ratio for group in self.groups if group.impact_ratio is not None]
        return min(found, default=None)

    @property
    def label(self) -> str:
        """The columns in words."""
        return " x ".join(self.columns)

    def by_rate(self) -> list[GroupRow]:
        """Return the known groups that have a rate, the lowest first."""
        return sorted((g for g in self.groups if g.rate is not None), key=lambda g: g.rate or 0.0)


@record("groups", "How the groups of the data fare (`--group`).")
@dataclass(frozen=True, slots=True)
class Groups:
    """How the groups of the rows of a table fare under a model.

    Only rows that are asked about and have a place are in the groups. No feature changes for the
    rates: they are of the rows as they are.
    """

    favourable: Annotated[
        str | None,
        Json("The favourable decision; null if the model makes none: then there are no rates."),
    ]
    is_assumed: Annotated[
        bool,
        Json(
            "Whether `favourable` is an assumption, because `--favourable` did not name it.",
            name="favourable_assumed",
        ),
    ]
    everyone: Annotated[GroupRow, Json("All rows of the tables.", name="all")]
    n_outside: Annotated[int, Json("Other rows: outside the domain.", _AT_LEAST_0)]
    n_left_out: Annotated[int, Json("Other rows: without a place in a region.", _AT_LEAST_0)]
    tables: Annotated[
        tuple[GroupTable, ...],
        Json("One table for each column; with several columns, one more for their combinations."),
    ]

    def without_sensitive(self, other: Groups) -> Groups:
        """Return the same groups, less the sensitive rows of another question about them."""

        def less(own: GroupRow, there: GroupRow) -> GroupRow:
            if own.n_sensitive is None or there.n_sensitive is None:
                return replace(own, n_sensitive=None)
            return replace(own, n_sensitive=own.n_sensitive - there.n_sensitive)

        tables = [
            replace(
                own,
                groups=tuple(map(less, own.groups, there.groups)),
                unknown=less(own.unknown, there.unknown),
            )
            for own, there in zip(self.tables, other.tables, strict=True)
        ]
        return replace(self, everyone=less(self.everyone, other.everyone), tables=tuple(tables))

    def table(self, *columns: str) -> GroupTable:
        """Return the table of the groups by some columns.

        Raises:
            KeyError: there is none.
        """
        for table in self.tables:
            if table.columns == columns:
                return table
        raise KeyError(f"no groups by {columns}; there are {[t.columns for t in self.tables]}")


def impact_ratios(rates: Sequence[float | None]) -> list[float | None]:
    """Return each rate divided by the highest one.

    Example:
        >>> impact_ratios([0.2, 0.4, None])
        [0.5, 1.0, None]
    """
    most = max((rate for rate in rates if rate is not None), default=0.0)
    return [None if rate is None or not most else rate / most for rate in rates]
