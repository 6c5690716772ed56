"""The way of each column through the steps of a pipeline.

A step either chooses and joins columns (Pipeline, ColumnTransformer, FeatureUnion), or it is a
:class:`~.stages.Stage`, each output of which depends on one input. So every column that reaches the
model is a function of one original column; a transformer that mixes columns is refused by name.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from xcount.errors import UnsupportedModelError
from xcount.model.loaders.pipelines import encoders, stages
from xcount.model.loaders.pipelines.crossings import Numbers, crossings
from xcount.model.loaders.pipelines.stages import Stage, Values

_STAGES: dict[str, type[Stage]] = {
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), stages.Columnwise
    ),
    "Binarizer": Stage,
    "PowerTransformer": stages.Power,
    "QuantileTransformer": stages.Quantiles,
    "KBinsDiscretizer": stages.Bins,
    "SimpleImputer": stages.Imputer,
    "MissingIndicator": stages.Indicator,
    "FunctionTransformer": stages.Function,
    "SelectorMixin": stages.Selection,
    "OneHotEncoder": encoders.OneHot,
    "OrdinalEncoder": encoders.Encoder,
    "TargetEncoder": encoders.Target,
}
_NOTHING = (None, "passthrough")


@dataclass(frozen=True, eq=False)
class Column:
    """A column somewhere in the pipeline: a function of one original column.

    Attributes:
        source: the original column.
        parent: the column that a stage made this one of; None for an original column.
        stage: that stage.
        output: which of the stage's outputs it is.
    """

    source: int
    parent: Column | None = None
    stage: Stage | None = None
    output: int = 0

    def of_values(self, values: Values) -> Values:
        """Return the column at values of the original one; ValueError if a stage refuses one."""
        if self.parent is None or self.stage is None:
            return values
        return self.stage.output(self.output, self.parent.of_values(values))

    def of_numbers(self, values: Numbers) -> Numbers:
        """Return the column at numbers of the original one."""
        if self.parent is None or self.stage is None:
            return values
        return self.stage.numbers(self.output, self.parent.of_numbers(values))

    @property
    def turns(self) -> tuple[float, ...]:
        """Numbers of the original column between which this one is monotone."""
        if self.parent is None or self.stage is None:
            return ()
        index, known = self.stage.sources[self.output], self.stage.original_turns
        if index not in known:
            before, own = self.parent.turns, self.stage.turns(index)
            found = crossings(self.parent.of_numbers, before, own) if len(own) else np.empty(0)
            known[index] = tuple(sorted({*before, *found.tolist()}))
        return known[index]

    @property
    def holds_categories(self) -> bool:
        """Whether a category of the original column is still one here."""
        if self.parent is None or self.stage is None:
            return True
        return self.parent.holds_categories and self.stage.keeps_categories(self.output)

    @property
    def forgets_categories(self) -> bool:
        """Whether all values without a category of their own are one and the same here."""
        if self.parent is None or self.stage is None:
            return False
        is_raw = self.parent.holds_categories
        return (
            self.stage.forgets_categories(self.output) if is_raw else self.parent.forgets_categories
        )


@dataclass(frozen=True, eq=False)
class Layer:
    """What goes from one step to the next.

    Attributes:
        columns: in order.
        names: what a frame of them would call them, where that is known.
        is_sparse: whether they come as a sparse matrix.
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...] | None = None
    is_sparse: bool = False

    def chosen(self, indices: Sequence[int]) -> Layer:
        """Return some of the columns."""
        names = None if self.names is None else tuple(self.names[i] for i in indices)
        return replace(self, columns=tuple(self.columns[i] for i in indices), names=names)


@dataclass(eq=False)
class Trace:
    """Follows columns through transformers.

    Attributes:
        uses: the columns that some stage takes, with the stage and the number of its input.
    """

    uses: list[tuple[Column, Stage, int]] = field(default_factory=list)

    def through(self, transformer: Any, layer: Layer, place: str) -> Layer:
        """Return what a fitted transformer, or the name of one, makes of a layer."""
        if isinstance(transformer, str | None):
            return self._through_word(transformer, layer, place)
        for kind in type(transformer).__mro__:
            if kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in self._containers:
                return self._containers[kind.__name__](transformer, layer, place)
        if hasattr(transformer, "fit_resample") and not hasattr(transformer, "transform"):
            return layer  # it draws training rows, and does nothing to rows that are predicted
        return self._through_stage(transformer, layer, place)

    @property
    def _containers(self) -> dict[str, Callable[[Any, Layer, str], Layer]]:
        return {
            "FrozenEstimator": lambda frozen, *where: self.through(frozen.estimator, *where),
            "Pipeline": lambda pipeline, *where: self.through_steps(pipeline.steps, *where),
            "ColumnTransformer": self._through_choice,
            "FeatureUnion": self._through_union,
        }

    def through_steps(self, steps: Sequence[Any], layer: Layer, place: str) -> Layer:
        """Return what the steps of a pipeline make of a layer, one after the other."""
        for name, transformer in steps:
            layer = self.through(transformer, layer, f"{place}{_word(name, transformer)}")
        return layer

    @staticmethod
    def _through_word(word: str | None, layer: Layer, place: str) -> Layer:
        if word in _NOTHING:
            return layer
        if word == "drop":
            return layer.chosen(())
        raise UnsupportedModelError(f"{place}: no transformer, but the text {word!r}")

    def _through_choice(self, transformer: Any, layer: Layer, place: str) -> Layer:
        parts = []
        for name, member, chosen in transformer.transformers_:
            indices = _indices(chosen, layer, f"{place}{_word(name, member)}")
            if indices:
                part = layer.chosen(indices)
                parts.append(self.through(member, part, f"{place}{_word(name, member)}"))
        joined = tuple(column for part in parts for column in part.columns)
        is_sparse = bool(getattr(transformer, "sparse_output_", False))  # none if all is dropped
        return Layer(joined, _names_out(transformer, layer), is_sparse)

    def _through_union(self, transformer: Any, layer: Layer, place: str) -> Layer:
        parts = [
            self.through(member, layer, f"{place}{_word(name, member)}")
            for name, member in transformer.transformer_list
        ]
        joined = tuple(column for part in parts for column in part.columns)
        is_sparse = any(part.is_sparse for part in parts if part.columns)
        return Layer(joined, _names_out(transformer, layer), is_sparse)

    def _through_stage(self, transformer: Any, layer: Layer, place: str) -> Layer:
        kind = _stage_of(transformer, place)
        expected = getattr(transformer, "n_features_in_", len(layer.columns))
        if expected != len(layer.columns):
            raise UnsupportedModelError(
                f"{place} takes {expected} columns, but gets {len(layer.columns)}"
            )
        stage = kind(transformer, place, len(layer.columns), is_sparse=layer.is_sparse)
        self.uses += [(column, stage, i) for i, column in enumerate(layer.columns)]
        made = [
            Column(layer.columns[source].source, layer.columns[source], stage, i)
            for i, source in enumerate(stage.sources)
        ]
        return Layer(tuple(made), _names_out(transformer, layer), stage.gives_sparse)


def _word(name: str, transformer: Any) -> str:
    kind = transformer if isinstance(transformer, str | None) else type(transformer).__name__
    return f"step {name!r} ({kind})" if kind not in _CONTAINERS else f"step {name!r}, "


_CONTAINERS = ("Pipeline", "ColumnTransformer", "FeatureUnion")


def _stage_of(transformer: Any, place: str) -> type[Stage]:
    """Return the class for a transformer, by its own class or the one it is derived from."""
    for kind in type(transformer).__mro__:
        if kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in _STAGES:
            if type(transformer).transform is kind.transform:  # type: ignore[attr-defined]
                return _STAGES[kind.__name__]
            raise UnsupportedModelError(
                f"{place} is a {kind.__name__} with a transform() of its own"
            )
    raise UnsupportedModelError(
        f"{place} cannot be pulled back to the original columns: only transformers of single "
        "columns are known (encoders, scalers, imputers, bins, monotone functions)"
    )


def _names_out(transformer: Any, layer: Layer) -> tuple[str, ...] | None:
    """Return the names of a transformer's outputs, if it tells them."""
    try:
        named = hasattr(transformer, "feature_names_in_") or layer.names is None
        found = transformer.get_feature_names_out(*([] if named else [np.array(layer.names)]))
    except (AttributeError, TypeError, ValueError):
        return None
    return tuple(str(name) for name in found)


def _indices(chosen: Any, layer: Layer, place: str) -> list[int]:
    """Return the numbers of the columns that a ColumnTransformer chose: by name, mask or number."""
    n_columns = len(layer.columns)
    if isinstance(chosen, slice) and not isinstance(chosen.start or chosen.stop, str):
        return list(range(n_columns))[chosen]
    if isinstance(chosen, slice):
        ends = [None if e is None else _place(e, layer, place) for e in (chosen.start, chosen.stop)]
        last = None if ends[1] is None else ends[1] + 1  # names name the last one, too
        return list(range(n_columns))[ends[0] : last : chosen.step]
    items = [chosen] if isinstance(chosen, str | numbers.Integral) else list(chosen)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        return [i for i, item in enumerate(items) if item]
    return [_place(item, layer, place) for item in items]


def _place(item: Any, layer: Layer, place: str) -> int:
    if isinstance(item, str):
        if layer.names is None or item not in layer.names:
            raise UnsupportedModelError(f"{place}: column {item!r} is not among those it gets")
        return layer.names.index(item)
    return range(len(layer.columns))[int(item)]
