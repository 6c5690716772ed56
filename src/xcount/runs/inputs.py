"""The files that a run reads besides its models, as recorded in its result."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Annotated, Any

from xcount.measures.weighting import Weighing
from xcount.support.records import Json, record


@record("input", "An input of a run other than its model.")
@dataclass(frozen=True, slots=True)
class Input:
    """A table or a fitted population that a run was given."""

    role: Annotated[str, Json("What it is.", {"enum": ["data", "population"]})]
    path: Annotated[str | None, Json("The file as given; null for data in memory.")]
    sha256: Annotated[
        str | None,
        Json("Hash of the file's bytes; null without a file.", {"pattern": "^[0-9a-f]{64}$"}),
    ]
    n_rows: Annotated[
        int | None, Json("Rows of a table; null for a population.", {"minimum": 0})
    ] = None


Inputs = Annotated[
    tuple[Input, ...],
    Json("The data and the population that were given.", is_optional=True),
]


def inputs_of(weighing: Weighing | None, data: Any, population: Any) -> tuple[Input, ...]:
    """Return the input files of a weighing; a newly fitted population was written to its file."""
    if weighing is None:
        return ()
    found = []
    if data is not None:
        n_rows = None if weighing.inputs is None else len(weighing.inputs)
        found.append(Input("data", *_file(data), n_rows))
    if population is not None:
        found.append(Input("population", *_file(population)))
    return tuple(found)


def _file(given: Any) -> tuple[str | None, str | None]:
    """Return the path and the hash of an input given as a file."""
    if not isinstance(given, str | os.PathLike) or not os.path.isfile(given):
        return None, None
    with open(given, "rb") as file:
        return str(os.fspath(given)), hashlib.file_digest(file, "sha256").hexdigest()
