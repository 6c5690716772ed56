"""A table of affected rows: what they get, and the best and the worst they could get.

Results import this module, so it must import fast; :mod:`~xcount.answers.people.affected` fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xcount.counters.settings import Settings

Columns = dict[str, NDArray[Any]]


class HasAffectedRows(Protocol):
    """The sensitive rows of one count.

    Attributes:
        settings: the limits of the count.
    """

    @property
    def settings(self) -> Settings: ...

    def table(self, settings: Settings | None = None) -> AffectedTable:
        """Return what the rows get and could get."""
        ...


@dataclass(frozen=True, eq=False)
class AffectedTable:
    """A table of affected rows.

    Attributes:
        columns: by name, of equal length.
        notes: what is not known, and why.
        n_left_out: how many rows have no place, by the reason.
    """

    columns: Columns
    notes: tuple[str, ...] = ()
    n_left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def said(self) -> str:
        """What the table holds and lacks, in words."""
        own = f"{self.n_rows:,} sensitive row{'' if self.n_rows == 1 else 's'}"
        left_out = [f"{reason} ({number:,})" for reason, number in self.n_left_out.items()]
        more = [f"rows left out: {', '.join(left_out)}"] if left_out else []
        return "; ".join([own, *more, *self.notes])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame; without pandas, a mapping of names to lists."""
        try:
            import pandas
        except ImportError:
            return {name: column.tolist() for name, column in self.columns.items()}
        return pandas.DataFrame(self.columns)

    @staticmethod
    def joined(tables: Iterable[tuple[Mapping[str, str], AffectedTable]]) -> AffectedTable:
        """Return several tables as one, each with columns that say what it is about."""
        parts = list(tables)
        names = dict.fromkeys(
            name for about, part in parts for name in ("row", *about, *part.columns)
        )
        columns = {
            name: np.concatenate([_column_of(part, about, name) for about, part in parts])
            for name in names
        }
        notes = dict.fromkeys(note for _, part in parts for note in part.notes)
        left_out = parts[0][1].n_left_out if parts else {}
        return AffectedTable(columns, tuple(notes), left_out)


def _column_of(part: AffectedTable, about: Mapping[str, str], name: str) -> NDArray[Any]:
    if name in part.columns:
        return part.columns[name]
    found = np.empty(part.n_rows, dtype=object)
    found[:] = about.get(name)
    return found
