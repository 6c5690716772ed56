"""Adult with its categories by name: a model, the rows it learnt from, and held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.datasets import BY_KEY, read_table

N_TRAINING = 40_000


@dataclass(frozen=True)
class World:
    """A model, the rows it learnt from, and held-out rows."""

    model: Any
    training: Any
    held_out: Any


def adult_table(folder: str | None) -> tuple[Any, Any]:
    """Return the columns of Adult, words as they are, and 1 for each row of the larger income."""
    table, target = read_table(BY_KEY["adult"], folder)
    return table.rename(columns=lambda name: name.replace("-", "_")), target.to_numpy().astype(int)


def adult_world(folder: str | None, **settings: Any) -> World:
    """Train XGBoost on 40,000 rows, with these settings and one thread."""
    import pandas as pd
    import xgboost

    table, target = adult_table(folder)
    for name in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
        table[name] = table[name].astype("category")
    order = np.random.default_rng(0).permutation(len(table))
    learnt, others = order[:N_TRAINING], order[N_TRAINING:]
    model = xgboost.XGBClassifier(enable_categorical=True, n_jobs=1, random_state=0, **settings)
    model.fit(table.iloc[learnt], target[learnt])
    return World(model, table.iloc[learnt], table.iloc[others])
