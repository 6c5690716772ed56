"""Transformers that take categories: one-hot, ordinal and target encoding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from xcount.model.loaders.pipelines.stages import Stage, is_missing


class Encoder(Stage):
    """An encoder with ``categories_``, one list for each input.

    Missing values and, where the encoder allows it, values that are no category go through it as it
    treats them itself.
    """

    def forgets_categories(self, output: int) -> bool:
        return True

    @cached_property
    def fillers(self) -> Sequence[Any]:
        return [categories[0] for categories in self.transformer.categories_]

    def categories(self, column: int) -> Sequence[Any]:
        return list(self.transformer.categories_[column])

    def turns(self, column: int) -> Sequence[float]:
        """Return where a number, of a step before, becomes a category, and stops being one."""
        known = [c for c in self.categories(column) if isinstance(c, int | float | np.number)]
        ends = {float(e) for c in known if not is_missing(c) for e in (c, np.nextafter(c, np.inf))}
        return sorted(ends)


class OneHot(Encoder):
    """OneHotEncoder: as many outputs as categories, less dropped and infrequent ones."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        counts = self.transformer._n_features_outs
        return tuple(np.repeat(np.arange(self.n_inputs), counts).tolist())


class Target(Encoder):
    """TargetEncoder: one output, or one for each of several classes."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        several = self.transformer.target_type_ == "multiclass"
        n_classes = len(self.transformer.classes_) if several else 1
        return tuple(np.repeat(np.arange(self.n_inputs), n_classes).tolist())
