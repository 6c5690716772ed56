"""The original columns of a pipeline: numbers, or categories under their own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble, Feature
from xcount.model.loaders.hist_gradient_boosting import is_code
from xcount.model.loaders.pipelines.stages import Imputer, Indicator, Values, is_missing
from xcount.model.loaders.pipelines.trace import Column, Layer, Trace

OTHER = "(other)"
"""How values that are no category are called, where the pipeline takes them."""


@dataclass(frozen=True, eq=False)
class Origin:
    """An original column, and how it is written as a feature.

    Attributes:
        feature: the feature; its codes and labels are those of ``values``.
        values: the value of each category, in the order of the codes; empty for numbers.
        missing: what a missing value is to the encoders: NaN, or None.
    """

    feature: Feature
    values: tuple[Any, ...] = ()
    missing: Any = np.nan

    def values_of(self, column: NDArray[np.float64]) -> Values:
        """Return a column of category codes as the values they stand for; numbers as they are."""
        if not self.feature.is_categorical:
            return column
        known = dict(zip(self.feature.categories or (), self.values, strict=True))
        return as_values([known.get(code, self.missing) for code in column.tolist()])

    @property
    def all_values(self) -> Values:
        return as_values(self.values)


def as_values(values: Sequence[Any]) -> Values:
    """Return a column: numbers as floats, anything else as objects."""
    is_number = all(isinstance(v, bool | int | float | np.number | np.bool_) for v in values)
    column = np.empty(len(values), dtype=np.float64 if is_number else object)
    column[:] = values
    return column


@dataclass(frozen=True, eq=False)
class Origins:
    """Finds out what the original columns are.

    Attributes:
        trace: what the steps take.
        final: what the model takes.
        model: the model over those columns.
    """

    trace: Trace
    final: Layer
    model: Ensemble

    def origin(self, source: int, name: str) -> Origin:
        """Return what one original column is."""
        listed = self._listed(source)
        if listed is None:
            return Origin(Feature(name, can_be_missing=self._takes(source, [np.nan])))
        missing = (
            None
            if None in listed and not any(is_missing(v) for v in listed if v is not None)
            else np.nan
        )
        known = self._taken(source, [v for v in listed if not is_missing(v)])
        takes_missing = self._takes(source, [missing])
        stand_in = [v for v in self._stand_ins(source) if v in known]
        if takes_missing:
            alike = [v for v in stand_in if self._alike(source, v, missing)]
            known = [v for v in known if v not in alike]
            stand_in = [label_of(v) for v in alike]
        feature = Feature(
            name,
            can_be_missing=takes_missing,
            missing_labels=tuple(stand_in) if takes_missing else (),
        )
        other = _no_category(listed)
        takes_other = self._forgets(source) and self._takes(source, [other])
        return _coded(feature, known, missing, [other] if takes_other else [])

    def _listed(self, source: int) -> list[Any] | None:
        """Return the categories of a column, from every encoder that sees them; None if none."""
        lists = [
            stage.categories(column)
            for used, stage, column in self.trace.uses
            if used.source == source and used.holds_categories
        ]
        for column, feature in zip(self.final.columns, self.model.features, strict=True):
            if column.source == source and column.holds_categories and feature.is_categorical:
                lists.append(feature.labels or feature.categories)
        found = [categories for categories in lists if categories is not None]
        if not found:
            return None
        found.append(self._missing_values(source))
        unique: dict[Any, Any] = {}
        for value in (v for categories in found for v in categories):
            unique.setdefault(
                (value,) if value is None or not is_missing(value) else "missing", value
            )
        return list(unique.values())

    def _missing_values(self, source: int) -> list[Any]:
        """Return the values, other than NaN and None, that some step takes for a missing one."""
        given = [
            stage.transformer.missing_values
            for used, stage, _ in self.trace.uses
            if used.source == source
            and isinstance(stage, Imputer | Indicator)
            and used.holds_categories
        ]
        return [value for value in given if not is_missing(value)]

    def _finals(self, source: int) -> list[tuple[int, Column]]:
        return [(i, c) for i, c in enumerate(self.final.columns) if c.source == source]

    def _taken(self, source: int, values: list[Any]) -> list[Any]:
        """Return the values that the pipeline accepts."""
        if not values or self._takes(source, values):
            return values
        middle = len(values) // 2
        halves = (values[:middle], values[middle:]) if middle else ()
        return [value for half in halves for value in self._taken(source, half)]

    def _takes(self, source: int, values: Sequence[Any]) -> bool:
        """Tell whether the whole pipeline accepts values of a column."""
        column = as_values(values)
        try:
            for used, stage, index in self.trace.uses:
                if used.source == source:
                    stage.outputs(index, used.of_values(column))
        except (ValueError, TypeError):
            return False
        for i, final in self._finals(source):
            feature = self.model.features[i]
            if feature.is_categorical and final.holds_categories:
                encoded = codes_of(feature, column)
            else:
                encoded = final.of_values(column).astype(np.float64)
            if np.isnan(self.model.as_input(i, encoded)).any() and not feature.takes_missing:
                return False
        return True

    def _stand_ins(self, source: int) -> list[Any]:
        """Return the categories that an imputer puts in the place of missing values."""
        return [
            stage.constant
            for used, stage, _ in self.trace.uses
            if used.source == source
            and isinstance(stage, Imputer)
            and used.holds_categories
            and isinstance(stage.constant, str)
        ]

    def _alike(self, source: int, value: Any, other: Any) -> bool:
        """Tell whether the model cannot tell two values of a column apart."""
        for _, final in self._finals(source):
            a, b = final.of_values(as_values([value])), final.of_values(as_values([other]))
            if not (a == b).all():
                return False
        return True

    def _forgets(self, source: int) -> bool:
        """Tell whether all values that are no category are one and the same to the model."""
        return all(column.forgets_categories for _, column in self._finals(source))


def codes_of(feature: Feature, values: Values) -> NDArray[np.float64]:
    """Return the model's own codes of categories that reach it as they are."""
    names = feature.labels or feature.categories or ()
    known = dict(zip(names, feature.categories or (), strict=True))
    codes = [known.get(value, known.get(label_of(value), np.nan)) for value in values]
    return np.array(codes, dtype=np.float64)


def _coded(feature: Feature, known: list[Any], missing: Any, other: list[Any]) -> Origin:
    """Number the categories: by their own values if those are codes, else in their order."""
    are_codes = all(is_code(value) for value in known)
    codes = [int(v) for v in known] if are_codes else list(range(len(known)))
    labels = None if are_codes and not other else [label_of(value) for value in known]
    if other and labels is not None:
        codes.append(max(codes, default=-1) + 1)
        name = OTHER
        while name in labels:
            name = f"({name})"
        labels.append(name)
        feature = replace(feature, other=codes[-1], other_is_unknown=True)
    coded = replace(
        feature, categories=tuple(codes), labels=None if labels is None else tuple(labels)
    )
    return Origin(coded, (*known, *other), missing)


def label_of(value: Any) -> str:
    """Return what a category is called; a whole number without its decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return f"{value:.0f}"
    return str(value)


def _no_category(known: Sequence[Any]) -> Any:
    """Return a value of the kind of the categories that is none of them."""
    texts = [value for value in known if isinstance(value, str)]
    if texts:
        return max(texts, key=len) + "*"
    return max((float(v) for v in known if not is_missing(v)), default=0.0) + 1.0
