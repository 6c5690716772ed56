"""Train models with four libraries, and save each as a file that XCount reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENDINGS = {"xgboost": "json", "lightgbm": "txt", "catboost": "json", "random-forest": "skops"}
"""The libraries, and the endings of their files."""

Margins = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Returns the (first) margin of rows, as the library itself computes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a model learns; ``is_classified`` if the target is a class rather than a number."""

    rows: NDArray[np.float32]
    target: NDArray[np.float64]
    names: Sequence[str]
    is_classified: bool

    def train(
        self, library: str, path: Path, seed: int, n_threads: int, **settings: Any
    ) -> Margins:
        """Train with a library, save the model, and return how it predicts."""
        train = {
            "xgboost": self._xgboost,
            "lightgbm": self._lightgbm,
            "catboost": self._catboost,
            "random-forest": self._forest,
        }[library]
        return train(path, seed, n_threads, settings)

    def _xgboost(self, path: Path, seed: int, n_threads: int, settings: Any) -> Margins:
        import xgboost

        kind = xgboost.XGBClassifier if self.is_classified else xgboost.XGBRegressor
        model = kind(n_jobs=n_threads, random_state=seed, **settings)
        booster = model.fit(self.rows, self.target).get_booster()
        booster.feature_names = names = list(self.names)
        booster.save_model(path)
        return lambda rows: _first(
            booster.predict(xgboost.DMatrix(rows, feature_names=names), output_margin=True)
        )

    def _lightgbm(self, path: Path, seed: int, n_threads: int, settings: Any) -> Margins:
        import lightgbm

        kind = lightgbm.LGBMClassifier if self.is_classified else lightgbm.LGBMRegressor
        model = kind(n_jobs=n_threads, random_state=seed, verbosity=-1, **settings)
        model.fit(self.rows, self.target, feature_name=list(self.names))
        model.booster_.save_model(str(path))
        return lambda rows: _first(model.booster_.predict(rows, raw_score=True))

    def _catboost(self, path: Path, seed: int, n_threads: int, settings: Any) -> Margins:
        import catboost

        kind = catboost.CatBoostClassifier if self.is_classified else catboost.CatBoostRegressor
        quiet = {"verbose": False, "allow_writing_files": False}
        model = kind(thread_count=n_threads, random_seed=seed, **quiet, **settings)
        model.fit(catboost.Pool(self.rows, self.target, feature_names=list(self.names)))
        model.save_model(str(path), format="json")
        return lambda rows: _first(model.predict(rows, prediction_type="RawFormulaVal"))

    def _forest(self, path: Path, seed: int, n_threads: int, settings: Any) -> Margins:
        import pandas as pd
        import skops.io
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestClassifier if self.is_classified else RandomForestRegressor
        names = list(self.names)
        model = kind(n_jobs=n_threads, random_state=seed, **settings)
        model.fit(pd.DataFrame(self.rows, columns=names), self.target)
        skops.io.dump(model, path)

        def margins(rows: NDArray[np.float32]) -> NDArray[np.float64]:
            table = pd.DataFrame(rows, columns=names)
            if not self.is_classified:
                return np.asarray(model.predict(table), dtype=np.float64)
            return np.asarray(model.predict_proba(table)[:, 1], dtype=np.float64)

        return margins


def _first(predicted: Any) -> NDArray[np.float64]:
    """Return the margins of the first class if there are several."""
    found = np.asarray(predicted, dtype=np.float64)
    return found if found.ndim == 1 else found[:, 0]
