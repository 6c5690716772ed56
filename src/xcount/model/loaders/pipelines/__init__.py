"""scikit-learn pipelines: an ordinary ensemble over the pipeline's *original* columns.

The steps in front of the model are followed column by column (:mod:`trace`); every test of the
model becomes a test of an original column (:mod:`pull_back`) that sends a row just where the
pipeline itself does. Numbers are float64, as tables hold them. Searches, frozen and calibrated
models, and those with a threshold of their own, are opened (:mod:`wrappers`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import QueryWarning, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.loaders import splits
from xcount.model.loaders.pipelines.crossings import crossings
from xcount.model.loaders.pipelines.origins import Origin, Origins, codes_of
from xcount.model.loaders.pipelines.pull_back import pulled_back
from xcount.model.loaders.pipelines.trace import Column, Layer, Trace
from xcount.model.loaders.pipelines.wrappers import Opened, Threshold, is_wrapper, opened

__all__ = ["from_live", "inside", "is_wrapper", "opened", "raw_predictions"]


def from_live(wrapper: Any) -> Ensemble:
    """Return the ensemble of a pipeline, a search or a calibrated model, over original columns."""
    from sklearn.exceptions import NotFittedError

    try:
        with _quietly():
            ensemble = _Reading(wrapper).ensemble
    except NotFittedError as error:
        first_line = str(error).splitlines()[0]
        raise UnsupportedModelError(f"{type(wrapper).__name__}: {first_line}") from None
    library = ensemble.format.removesuffix("-pipeline")
    return replace(ensemble, format=f"{library}-pipeline")


def raw_predictions(wrapper: Any, rows: ArrayLike) -> NDArray[np.float64]:
    """Return the library's own margins of rows that hold the ensemble's category codes."""
    from xcount.model.loaders.check import library_margins

    with _quietly():
        reading = _Reading(wrapper)
        encoded = reading.encoded(np.atleast_2d(np.asarray(rows, dtype=np.float64)))
        return library_margins(reading.model, reading.opened.model, encoded)


def inside(
    wrapper: Any, rows: NDArray[np.float64]
) -> tuple[Ensemble, Any, NDArray[np.float64]] | None:
    """Return the model inside, as read and as it is, and the rows as it gets them.

    None where the wrapper calibrates: its decisions and probabilities are its own.
    """
    with _quietly():
        reading = _Reading(wrapper)
        if reading.opened.calibrator is not None:
            return None
        return reading.model, reading.opened.model, reading.encoded(rows)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence what transformers say about values that no user would give them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        for category in (UserWarning, RuntimeWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module=r"(sklearn|numpy|xcount)\b")
        warnings.filterwarnings("always", category=QueryWarning)
        yield


@dataclass(frozen=True, eq=False)
class _Reading:
    """A wrapper on its way to an ensemble."""

    wrapper: Any

    @cached_property
    def opened(self) -> Opened:
        return opened(self.wrapper)

    @cached_property
    def model(self) -> Ensemble:
        """The model inside, over the columns that the steps put out."""
        from xcount.model.loaders import load

        model = load(self.opened.model)
        if not (self._takes_sparse and model.format.startswith("sklearn")):
            return model
        # Missing values, which scikit-learn's trees take, they refuse in a sparse matrix.
        features = tuple(replace(feature, can_be_missing=False) for feature in model.features)
        return replace(model, features=features)

    @property
    def zero_is_missing(self) -> bool:
        """Whether a 0 is missing to XGBoost: it is what a sparse matrix leaves out."""
        return self._takes_sparse and self.model.format.startswith("xgboost")

    @property
    def _takes_sparse(self) -> bool:
        """Whether the steps hand a sparse matrix to the model."""
        return bool(self.opened.steps) and self.final.is_sparse

    @cached_property
    def names(self) -> tuple[str, ...]:
        found = getattr(self.wrapper, "feature_names_in_", None)
        if found is not None:
            return tuple(str(name) for name in found)
        return tuple(splits.default_names(self._n_columns))

    @property
    def _n_columns(self) -> int:
        """The number of original columns: what the first step takes that counts its columns."""
        for member in (self.wrapper, *(step for _, step in self.opened.steps), self.opened.model):
            try:
                return int(member.n_features_in_)
            except AttributeError:
                continue
        raise UnsupportedModelError(f"{type(self.wrapper).__name__}: the model is not fitted")

    @cached_property
    def traced(self) -> tuple[Trace, Layer]:
        trace = Trace()
        first = Layer(tuple(map(Column, range(len(self.names)))), self.names)
        return trace, trace.through_steps(self.opened.steps, first, "")

    @property
    def final(self) -> Layer:
        return self.traced[1]

    @cached_property
    def origins(self) -> dict[int, Origin]:
        """The original columns that anything is made of; all of them if they have no names."""
        trace, final = self.traced
        finder = Origins(trace, final, self.model)
        used = {column.source for column, _, _ in trace.uses}
        used |= {column.source for column in final.columns}
        has_names = getattr(self.wrapper, "feature_names_in_", None) is not None
        return {
            source: finder.origin(source, name) if source in used else Origin(Feature(name))
            for source, name in enumerate(self.names)
            if source in used or not has_names
        }

    @property
    def ensemble(self) -> Ensemble:
        """The model inside, over the original columns."""
        ensemble = self.model
        if any(column.parent for column in self.final.columns) or not self._keeps_columns:
            self._check_columns()
            ensemble = pulled_back(
                self.model,
                self.final.columns,
                self.origins,
                zero_is_missing=self.zero_is_missing,
            )
        if self.opened.threshold is not None:
            return self._with_threshold(ensemble, self.opened.threshold)
        return ensemble if self.opened.calibrator is None else self._calibrated(ensemble)

    @property
    def _keeps_columns(self) -> bool:
        """Whether the steps put out the columns that they take, in the same order."""
        sources = [column.source for column in self.final.columns]
        return not self.opened.steps or sources == list(range(len(self.names)))

    def _check_columns(self) -> None:
        n_columns, n_taken = len(self.final.columns), self.model.n_features
        if n_columns != n_taken:
            raise UnsupportedModelError(
                f"{type(self.wrapper).__name__}: its steps put out {n_columns} columns, but its "
                f"model takes {n_taken}"
            )

    def _with_threshold(self, ensemble: Ensemble, threshold: Threshold) -> Ensemble:
        """Return the model with the decision of a classifier that has a threshold of its own."""
        if ensemble.task != "binary" or ensemble.probability == "unknown":
            raise UnsupportedModelError(
                f"{type(self.wrapper).__name__}: the scores of {type(self.opened.model).__name__} "
                "are not those of two classes of a known link; ask about that model, with --cutoff"
            )
        is_link = threshold.method == "predict_proba" and ensemble.probability == "sigmoid"

        def scores(margins: NDArray[np.float64]) -> NDArray[np.float64]:
            found = 1.0 / (1.0 + np.exp(-ensemble.slope * margins)) if is_link else margins
            return threshold.positive_scores(found)

        found = crossings(scores, (), (threshold.score,))
        decides_at = float(found[0]) if len(found) == 1 else None
        return replace(ensemble, decides_at=decides_at, tie_is_above=True)

    def _calibrated(self, ensemble: Ensemble) -> Ensemble:
        """Return the model with the decision of the calibrated one; its margins stay its own."""
        warnings.warn(
            "CalibratedClassifierCV: margins, and gaps in them, are those of the model inside, "
            "before calibration; the decision (--flip) is the calibrated one",
            QueryWarning,
            stacklevel=2,
        )
        has_margin = hasattr(self.opened.model, "decision_function")

        def probability(margins: NDArray[np.float64]) -> NDArray[np.float64]:
            scores = margins
            if not has_margin and ensemble.probability == "sigmoid":
                scores = 1.0 / (1.0 + np.exp(-ensemble.slope * margins))
            found: NDArray[np.float64] = self.opened.calibrator.predict(scores)
            return found

        # predict() takes class 1 iff its probability is above 1/2.
        above_half = float(np.nextafter(0.5, 1.0))
        found = crossings(probability, (), (above_half,))
        rises = len(found) == 1 and probability(found)[0] >= above_half
        return replace(
            ensemble,
            decides_at=float(found[0]) if rises else None,
            tie_is_above=True,
            probability="unknown",
        )

    def encoded(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the steps themselves make of rows of the ensemble, as the model takes it."""
        if not self.opened.steps or self.ensemble is self.model:
            return rows
        made = self.wrapper[:-1].transform(self._as_users_rows(rows))
        dense = np.array(made.toarray() if hasattr(made, "toarray") else made)
        place = {source: i for i, source in enumerate(self.origins)}
        for i, column in enumerate(self.final.columns):
            feature = self.model.features[i]
            if feature.is_categorical and column.holds_categories:
                codes = rows[:, place[column.source]]
                values = self.origins[column.source].values_of(codes)
                dense[:, i] = codes_of(feature, values)
        encoded = dense.astype(np.float64)
        return np.where(encoded == 0.0, np.nan, encoded) if self.zero_is_missing else encoded

    def _as_users_rows(self, rows: NDArray[np.float64]) -> Any:
        """Return the rows as the pipeline takes them: with the user's own categories."""
        columns = {
            self.names[source]: origin.values_of(rows[:, i])
            for i, (source, origin) in enumerate(self.origins.items())
        }
        if getattr(self.wrapper, "feature_names_in_", None) is not None:
            import pandas

            return pandas.DataFrame(columns)
        is_text = any(values.dtype == object for values in columns.values())
        table = np.empty((len(rows), len(columns)), dtype=object if is_text else np.float64)
        for i, values in enumerate(columns.values()):
            table[:, i] = values
        return table
