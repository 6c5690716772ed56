"""A witness: two inputs that differ only in the sensitive features, and the model's outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from xcount.question.cell import CellRange
from xcount.question.domain import Domain
from xcount.support.display import DisplayMixin
from xcount.support.numerals import to_json
from xcount.support.records import Json, Spread, from_dict, record, to_dict, written

_AT_LEAST_0 = {"minimum": 0}


@record("crossing", "A sensitive feature that changes.")
@dataclass(frozen=True, slots=True)
class Crossing:
    """A sensitive feature that changes: its cells, and the guards in between."""

    feature: Annotated[str, Json("Its name.")]
    before_cell: Annotated[CellRange, Json("Its cell before.")]
    after_cell: Annotated[CellRange, Json("Its cell after.")]
    guards: Annotated[
        tuple[float, ...], Json("The thresholds in between; none for categories.")
    ] = ()

    @property
    @written(Json("Its cell before, in words.", after="feature"))
    def before(self) -> str:
        return self.before_cell.description

    @property
    @written(Json("Its cell after, in words.", after="before"))
    def after(self) -> str:
        return self.after_cell.description


@record("contribution", "The contribution of one tree to the change.")
@dataclass(frozen=True, slots=True)
class Contribution:
    """How much one tree adds to the change."""

    tree: Annotated[int, Json("Its number, from 0.", _AT_LEAST_0)]
    output: Annotated[int, Json("The output it adds to.", _AT_LEAST_0, name="class")]
    change: Annotated[float, Json("How much it adds.")]


def _values_of(side: str) -> Json:
    """Return a field that is read from the JSON object with an input's values by feature name."""

    def read(data: Mapping[str, Any]) -> tuple[float, ...]:
        return tuple(math.nan if value is None else value for value in data[side].values())

    return Json("Its values, in the order of the features.", form=Spread.nowhere(read))


_NAMES = Json("Its features.", form=Spread.nowhere(lambda data: tuple(data["point"])))


@record("witness", "Two inputs that differ only in the sensitive features.")
@dataclass(frozen=True, slots=True, repr=False)
class Witness(DisplayMixin):
    """Two inputs that differ only in the sensitive features, and the model's outputs for both.

    Attributes:
        features: names of the inputs' columns.
        point: an input in a sensitive region.
        other: the same input with other sensitive features.
        margin: the margin at ``point``: of the class in question, or of the class that wins there.
        other_margin: the same class's margin at ``other``.
        change: ``other_margin - margin``, subtracted before it is rounded to a float.
        distance: how far the sensitive cells are apart.
        crossed: the sensitive features that change.
        trees: the trees that make the difference, the largest contribution first.
        class_label: the class whose margins these are; None if the model has one margin.
        decision: the class that wins at ``point``, or the side of the cut-off; None for a gap.
        other_decision: the same at ``other``.
        probability: the predicted probability at ``point``; None if the model has none.
        other_probability: the same at ``other``.
        row: the row that it is near, counted from 0; None if drawn.
        moved: names of the features in another cell than the row's; None if drawn.
        proved: whether it is proved that nothing nearer to the row exists.
        library_margins: the library's own margins at both, if they were checked.
        labels: the names of the categories at ``point``, by feature, if known.
        other_labels: the same at ``other``.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> witness = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=1)[0]
        >>> abs(witness.change), [crossing.feature for crossing in witness.crossed]
        (85.0, ['f0'])
    """

    features: Annotated[tuple[str, ...], _NAMES]
    point: Annotated[tuple[float, ...], _values_of("point")]
    other: Annotated[tuple[float, ...], _values_of("other")]
    margin: Annotated[float, Json("The margin at `point`.")]
    other_margin: Annotated[float, Json("The margin at `other`.")]
    change: Annotated[
        float, Json("`other_margin` - `margin`, subtracted before it is rounded to a float.")
    ]
    distance: Annotated[int, Json("Distance between the sensitive cells.", {"minimum": 1})]
    crossed: Annotated[tuple[Crossing, ...], Json("The sensitive features that change.")]
    trees: Annotated[
        tuple[Contribution, ...],
        Json("The trees that make the difference, the largest contribution first."),
    ]
    class_label: Annotated[
        str | None,
        Json(
            "The class whose margins these are; only if the model has several.",
            is_optional=True,
        ),
    ] = None
    decision: Annotated[
        str | None,
        Json(
            "Only with `--flip`: the class that wins at `point`, or the side of the "
            "cut-off (`above`, `not above`) if the two classes have no names.",
            is_optional=True,
        ),
    ] = None
    other_decision: Annotated[
        str | None,
        Json("Only with `--flip`: the same at `other`.", is_optional=True),
    ] = None
    probability: Annotated[
        float | None,
        Json(
            "Only if the model has a probability: the one at `point`.",
            {"minimum": 0, "maximum": 1},
            is_optional=True,
        ),
    ] = None
    other_probability: Annotated[
        float | None,
        Json(
            "Only if the model has a probability: the one at `other`.",
            {"minimum": 0, "maximum": 1},
            is_optional=True,
        ),
    ] = None
    row: Annotated[
        int | None,
        Json(
            "Only with `--near`: the number of the row it is close to, from 0.",
            _AT_LEAST_0,
            is_optional=True,
        ),
    ] = None
    moved: Annotated[
        tuple[str, ...] | None,
        Json(
            "Only with `--near`: number of features in a different cell from the row's.",
            is_optional=True,
        ),
    ] = None
    proved: Annotated[
        bool | None,
        Json(
            "Only with `--near`: whether it is proved that nothing closer exists.",
            name="proved_nearest",
            is_optional=True,
        ),
    ] = None
    library_margins: Annotated[
        tuple[float, float] | None,
        Json(
            "Only with `--verify`: the library's own predictions at both.",
            is_optional=True,
        ),
    ] = None
    labels: Annotated[
        Mapping[str, str],
        Json("Names of the categories at `point`, if known.", is_optional=True),
    ] = field(default_factory=dict)
    other_labels: Annotated[
        Mapping[str, str],
        Json("Names of the categories at `other`, if known.", is_optional=True),
    ] = field(default_factory=dict)

    @property
    @written(
        Json(
            "An input in a sensitive region, by feature; a category is its code, a missing value "
            "null.",
            name="point",
            after="other",
        )
    )
    def named_point(self) -> Mapping[str, float | None]:
        """The values at ``point`` by feature; None for a missing one."""
        return _named(self.features, self.point)

    @property
    @written(
        Json("The same input with other sensitive features.", name="other", after="named_point")
    )
    def named_other(self) -> Mapping[str, float | None]:
        """The values at ``other`` by feature."""
        return _named(self.features, self.other)

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as a JSON object; a missing value is null."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as JSON text."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Witness:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)


class Witnesses(DisplayMixin, tuple[Witness, ...]):
    """A tuple of witnesses that can be displayed.

    Attributes:
        features: the names of all features of the model, even if there is no witness.
        domain: which regions exist, if a domain was given.
        n_unconfirmed: pairs left out because the library does not confirm them.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> found = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=2)
        >>> len(found), found[0].distance
        (2, 1)
    """

    features: Sequence[str] = ()
    domain: Domain | None = None
    n_unconfirmed: int = 0

    @classmethod
    def within(
        cls,
        domain: Domain,
        found: Iterable[Witness],
        features: Sequence[str],
        n_unconfirmed: int = 0,
    ) -> Witnesses:
        """Return witnesses of a domain."""
        witnesses = cls(found)
        witnesses.features = features
        witnesses.domain = domain or None
        witnesses.n_unconfirmed = n_unconfirmed
        return witnesses

    @property
    def why_none(self) -> str:
        """Why there are no witnesses, if there are none."""
        return "the library confirms no pair" if self.n_unconfirmed else "no region is sensitive"

    def to_dict(self) -> dict[str, Any]:
        """Return what ``xcount witness --json`` prints."""
        asked = {} if self.domain is None else {"domain": self.domain.to_dict()}
        listed = [witness.to_dict() for witness in self]
        left_out = {"unconfirmed": self.n_unconfirmed} if self.n_unconfirmed else {}
        return {"kind": "witnesses", **asked, **left_out, "witnesses": listed}

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as JSON text."""
        return to_json(self.to_dict(), indent)


def _named(names: Sequence[str], values: Sequence[float]) -> dict[str, float | None]:
    return {
        name: None if math.isnan(value) else value
        for name, value in zip(names, values, strict=True)
    }
