"""The result of a repair: the questions before and after, and what it did to the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from xcount.answers.result import ANSWERED, LIMITED, CountResult, Versions
from xcount.repairs.effect import Moves, Quality
from xcount.support.display import DisplayMixin
from xcount.support.files import written_to
from xcount.support.numerals import to_json
from xcount.support.records import Json, from_dict, record, to_dict, written

_AT_LEAST_0 = {"minimum": 0}


@record("repair_question", "One more question of a repair.")
@dataclass(frozen=True, slots=True)
class Repaired:
    """One question, counted before and after."""

    before: Annotated[CountResult, Json("The count of the model as it was.")]
    after: Annotated[CountResult, Json("The count of the repaired model.")]

    @property
    def is_proved(self) -> bool:
        """Whether the repaired model is proved to have no sensitive region."""
        return self.after.exact and self.after.count == 0


@record("repair_test", "How well the models predict labelled rows.")
@dataclass(frozen=True, slots=True)
class Tested:
    """How well the model and its alternatives predict labelled rows."""

    n_rows: Annotated[int, Json("Number of rows.", _AT_LEAST_0)]
    before: Annotated[Quality, Json("The model as it was.")]
    after: Annotated[Quality, Json("The repaired model.")]
    shrunk: Annotated[
        Quality | None,
        Json(
            "The model with all differences shrunk by one factor and other leaves moved to make "
            "up for it, with the same limits; null if there is none.",
        ),
    ] = None
    retrained: Annotated[
        Quality | None,
        Json(
            "The library's model of the same size, trained on the data anew; null if labels of "
            "the data or the library are missing.",
        ),
    ] = None
    dropped: Annotated[
        Quality | None,
        Json("The same without the sensitive features; compare it with `retrained`."),
    ] = None
    retraining: Annotated[
        str | None, Json("How those were trained, or why they were not, in words.")
    ] = None


@record("repair", "`xcount repair --json`.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RepairResult(DisplayMixin):
    """A model with other leaf values, and the proof of its limits.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import adult_held_out_path, adult_one_hot_paths
        >>> model, domain = adult_one_hot_paths()
        >>> people = adult_held_out_path()
        >>> result = xcount.repair(model, domain=domain, sensitive="sex", gap=0.5, data=people)
        >>> result.before.count, result.after.count, result.after.exact
        (154770, 0, True)
    """

    before: Annotated[CountResult, Json("The count of the model as it was.")]
    after: Annotated[
        CountResult, Json("The count of the repaired model: an exact 0 if the limit is proved.")
    ]
    also: Annotated[
        tuple[Repaired, ...], Json("The other questions (`--also`).", is_optional=True)
    ] = ()
    output: Annotated[
        str | None,
        Json("The file of the repaired model; null if it was not proved, or not to be written."),
    ] = None
    method: Annotated[
        str,
        Json(
            "`program`: the smallest change of leaf values that keeps the bounds; `shrink`: all "
            "differences multiplied by `factor`; `unchanged`: the limit was met before.",
            {"enum": ["program", "shrink", "unchanged"]},
        ),
    ]
    factor: Annotated[
        float,
        Json("What differences were multiplied by; 1 unless they were shrunk.", _AT_LEAST_0),
    ] = 1.0
    margin_gap: Annotated[
        float | None,
        Json(
            "The gap in margin that was kept; with `--probability-gap` one that is enough for the "
            "probability. null with `--flip`.",
        ),
    ] = None
    n_leaves: Annotated[int, Json("Leaves of the model.", _AT_LEAST_0)] = 0
    n_moved: Annotated[int, Json("Leaves that have another value now.", _AT_LEAST_0)] = 0
    largest_move: Annotated[float, Json("Largest change of a leaf's value.", _AT_LEAST_0)] = 0.0
    mean_move: Annotated[
        float, Json("Mean absolute change of the leaves that moved.", _AT_LEAST_0)
    ] = 0.0
    moves: Annotated[
        Moves | None, Json("How the predictions of the rows of the test, or of the data, change.")
    ] = None
    test: Annotated[
        Tested | None,
        Json("How good the predictions are (`--test`, `--target`).", is_optional=True),
    ] = None
    notes: Annotated[tuple[str, ...], Json("What else to know.")] = ()
    seconds: Annotated[float, Json("How long the repair took, counts included.", _AT_LEAST_0)] = 0.0
    peak_memory_bytes: Annotated[int, Json("Peak memory of the process.", _AT_LEAST_0)] = 0
    versions: Versions = field(default_factory=dict)
    model: Any = field(default=None, compare=False)
    """The repaired model, live, if a live model was repaired; not part of the JSON."""

    @property
    def questions(self) -> tuple[Repaired, ...]:
        """All questions, each before and after."""
        return (Repaired(self.before, self.after), *self.also)

    @property
    @written(Json("Whether every count of the repaired model is proved to be 0.", after="also"))
    def proved(self) -> bool:
        return all(question.is_proved for question in self.questions)

    @property
    def exit_status(self) -> int:
        """0 if the limit is proved, 3 if the limits of time or memory did not allow that."""
        return ANSWERED if self.proved else LIMITED

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``xcount repair --json``."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as one JSON object."""
        return to_json(self.to_dict(), indent)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as a self-contained HTML page; with a path, write it there as well."""
        from xcount.report import html_repair

        return written_to(path, html_repair(self))

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a section for a model card; with a path, write it there as well."""
        from xcount.report import markdown_repair

        return written_to(path, markdown_repair(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RepairResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)
