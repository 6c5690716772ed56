"""The result of a diff: in how many regions two models disagree, and which way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from xcount.answers.people.group_table import Groups
from xcount.answers.result import CountResult, ModelInfo
from xcount.support.files import written_to
from xcount.support.records import FIRST, Json, from_dict, record, written

_AT_LEAST_0 = {"minimum": 0}
_NO_MODEL = ModelInfo(None, None, "two models", 0, 0, 0, 0)


@record("swap", "One way in which two models disagree.")
@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One way in which two models disagree: how many regions, and how many rows.

    ``low <= C <= high`` holds with probability at least ``confidence``.
    """

    direction: Annotated[
        str,
        Json(
            "`up` if the second model is above the first, `down` if it is below.",
            {"enum": ["up", "down"]},
        ),
    ]
    before: Annotated[
        str | None, Json("The first model's decision; null for a gap.", name="from")
    ] = None
    after: Annotated[
        str | None, Json("The second model's decision; null for a gap.", name="to")
    ] = None
    count: Annotated[
        int | None, Json("Regions, or an estimate; null if only bounds are known.", _AT_LEAST_0)
    ]
    low: Annotated[int, Json("At least this many.", _AT_LEAST_0)]
    high: Annotated[int, Json("At most this many.", _AT_LEAST_0)]
    confidence: Annotated[
        float, Json("1 for guaranteed bounds, otherwise 1 - delta.", {"minimum": 0, "maximum": 1})
    ]
    n_rows: Annotated[
        int | None, Json("Rows of the data; only with `rows`.", _AT_LEAST_0, is_optional=True)
    ] = None
    groups: Annotated[
        Groups | None,
        Json(
            "How many rows of each group of the data go this way (`n_sensitive`), and the first "
            "model's rates; with `--group`.",
            is_optional=True,
        ),
    ] = None

    @property
    @written(Json("Whether the bounds are equal and guaranteed.", after="confidence"))
    def exact(self) -> bool:
        return self.low == self.high and self.confidence == 1.0


@record("diff", "`xcount diff --json`: in how many regions two models disagree.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DiffResult(CountResult):
    """In how many regions of the joint grid two models disagree, and how certain that is.

    It is a count: a region is *sensitive* if the two models disagree there. ``low <= C <= high``
    holds with probability at least ``confidence``. A change goes from the first model's output to
    the second one's.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import ensemble_of
        >>> old, new = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 2.0, 0.0, 3.0))
        >>> result = xcount.diff(old, new, gap=1)
        >>> result.count, result.n_regions, result.exact
        (1, 3, True)
    """

    sensitive: Annotated[
        tuple[str, ...], Json("Empty: no feature changes, only the model does.", {"maxItems": 0})
    ] = ()
    model: ModelInfo = _NO_MODEL
    names: Annotated[tuple[str, str], Json("What the two models are called.")]
    models: Annotated[tuple[ModelInfo, ModelInfo], Json("The two models.")]
    swaps: Annotated[
        tuple[Swap, ...],
        Json(
            "How many regions and rows go which way; with `--flip`, the swap set. Only if changes "
            "in both directions count."
        ),
    ] = ()
    other_groups: Annotated[
        Groups | None,
        Json(
            "How the groups of the data fare under the second model; `groups` is about the first "
            "one. With `--group` and `--flip`.",
            is_optional=True,
        ),
    ] = None
    notes: Annotated[tuple[str, ...], Json("What could not be done, in words.")] = ()

    @property
    @written(Json("What this object is.", {"const": "diff"}, after=FIRST))
    def kind(self) -> str:
        return "diff"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DiffResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report, one self-contained HTML page; with a path, write it there, too."""
        from xcount.report import html_diff

        return written_to(path, html_diff(self))
