"""Proof that a loaded ensemble predicts like the library it came from."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import (
    MissingExtraError,
    ModelFormatError,
    QueryError,
    UnsupportedModelError,
    XCountError,
)
from xcount.model.ensemble import Ensemble, row_from_0
from xcount.model.loaders import files

_OTHER_HOMES = {
    "sklearn": "xcount.model.loaders.sklearn_models",
    "catboost": "xcount.model.loaders.catboost_models",
    "onnx": "xcount.model.loaders.onnx_models",
    "interpret": "xcount.model.loaders.explainable_boosting",
}
_BY_CODES = ("catboost", "interpret")
"""Libraries that take categories by name, so that codes need the features to say which."""


def check(ensemble: Ensemble, model: Any, rows: ArrayLike, *, trust_pickle: bool = False) -> None:
    """Predict the rows with the library and with the ensemble; refuse a mismatch.

    Args:
        ensemble: what was loaded.
        model: the path or live model that it was loaded from.
        rows: inputs, one column per feature; NaN is missing, a category is its code.
        trust_pickle: whether a pickle may be opened.

    Raises:
        ModelFormatError: a sum differs by more than rounding can explain.
        QueryError: the rows do not fit the model.
        UnsupportedModelError: there is no library that predicts with such a model.
    """
    matrix = _as_rows(rows, ensemble)
    expected = _library_margins(ensemble, model, matrix, trust_pickle)
    found = ensemble.predict(matrix)
    if expected.shape != found.shape:
        raise ModelFormatError(
            f"{_name(ensemble, model)}: the library predicts {expected.shape[1:]} values a row, "
            f"the loaded trees {found.shape[1:]}"
        )
    tolerance = rounding_bound(ensemble, matrix)
    wrong = ~(np.abs(expected - found) <= tolerance)
    for row, output in np.argwhere(wrong):
        raise ModelFormatError(
            f"{_name(ensemble, model)}: {row_from_0(row)}, output {output}: the library predicts "
            f"{expected[row, output]:.9g}, the loaded trees {found[row, output]:.9g}"
        )


def rounding_bound(ensemble: Ensemble, rows: ArrayLike) -> NDArray[np.float64]:
    """Return how far a sum in the library's floats can be from the exact one, for every row.

    Adding n numbers one by one is off by at most about ``n * u * sum of |number|`` with u the unit
    roundoff (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    positive = replace(
        ensemble,
        trees=tuple(replace(tree, value=np.abs(tree.value)) for tree in ensemble.trees),
        base=tuple(abs(base) for base in ensemble.base),
    )
    is_single = any(library in ensemble.format for library in ("xgboost", "onnx"))
    unit = 2.0**-23 if is_single else 2.0**-50
    return positive.predict(rows) * unit * (ensemble.n_trees + 4) + unit


def library_margins(
    ensemble: Ensemble, model: Any, rows: ArrayLike, *, trust_pickle: bool = False
) -> NDArray[np.float64]:
    """Return the margins that the library itself predicts, shape ``(n_rows, n_outputs)``."""
    return _library_margins(ensemble, model, _as_rows(rows, ensemble), trust_pickle)


def raw_predictions(
    ensemble: Ensemble, model: Any, rows: ArrayLike, *, are_margins: bool = True
) -> NDArray[np.float64]:
    """Return the margins of XGBoost or LightGBM themselves, shape ``(n_rows, n_outputs)``.

    Or what they make of margins, as their objective says.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    predict = _xgboost if ensemble.format.startswith("xgboost") else _lightgbm
    predicted = predict(ensemble, model, matrix, are_margins)
    return np.asarray(predicted, dtype=np.float64).reshape(len(matrix), -1)


def _as_rows(rows: ArrayLike, ensemble: Ensemble) -> NDArray[np.float64]:
    try:
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError):
        raise QueryError("the rows to check must be a table of numbers") from None
    if matrix.ndim != 2 or matrix.shape[1] != ensemble.n_features:
        raise QueryError(
            f"the rows to check must have {ensemble.n_features} columns, not {matrix.shape[1]}"
        )
    return matrix


def _name(ensemble: Ensemble, model: Any) -> str:
    return ensemble.path or f"live {type(model).__name__}"


def _library_margins(
    ensemble: Ensemble, model: Any, rows: NDArray[np.float64], trust_pickle: bool
) -> NDArray[np.float64]:
    library = ensemble.format.partition("-")[0]
    if "-pipeline" in ensemble.format:
        library = "sklearn"
    known = library in ("xgboost", "lightgbm") or library in _OTHER_HOMES
    if isinstance(model, Ensemble) or ensemble.format == "xgboost-dump" or not known:
        raise UnsupportedModelError(
            f"{_name(ensemble, model)}: no library predicts with this, so nothing can be checked"
        )
    try:
        source = unpickled(model) if trust_pickle else model
        if library not in _OTHER_HOMES:
            return raw_predictions(ensemble, source, rows)
        home = import_module(_OTHER_HOMES[library])
        features = (ensemble.features,) if library in _BY_CODES else ()
        margins: NDArray[np.float64] = home.raw_predictions(source, rows, *features)
        return margins
    except XCountError:
        raise
    except ImportError:
        raise MissingExtraError(
            f"checking needs {library}: pip install 'xcount[{library}]'"
        ) from None
    except Exception as error:  # whatever the library dislikes about the rows
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise QueryError(f"{library} cannot predict the rows to check: {reason[0]}") from None


def unpickled(model: Any) -> Any:
    """Return the live model in a file that the user trusts; any other model as it is."""
    if isinstance(model, str | os.PathLike):
        file, home = files.read(model), import_module(_OTHER_HOMES["sklearn"])
        kind = files.recognise(file.data)
        if kind == "pickle":
            return home.open_pickle(file.data, file.path)
        if kind == "skops":
            return home.open_skops(file.data, file.path, trust=True)
    return model


def _xgboost(ensemble: Ensemble, model: Any, rows: NDArray[np.float64], are_margins: bool) -> Any:
    import xgboost

    if isinstance(model, str | os.PathLike):
        booster = xgboost.Booster()
        booster.load_model(bytearray(files.read(model).data))
        is_wrapper = "scikit_learn" in booster.attributes()
    else:
        is_wrapper = hasattr(model, "get_booster")
        booster = model.get_booster() if is_wrapper else model
    matrix = xgboost.DMatrix(
        rows.astype(np.float32),
        feature_names=booster.feature_names,
        feature_types=booster.feature_types,
    )
    # A wrapper predicts up to its best iteration, a plain Booster with all trees.
    best = booster.attributes().get("best_iteration") if is_wrapper else None
    end = 0 if best is None else int(best) + 1
    return booster.predict(matrix, output_margin=are_margins, iteration_range=(0, end))


def _lightgbm(ensemble: Ensemble, model: Any, rows: NDArray[np.float64], are_margins: bool) -> Any:
    import lightgbm

    booster = model if hasattr(model, "model_to_string") else getattr(model, "booster_", None)
    if booster is None:
        booster = lightgbm.Booster(model_str=files.read(model).data.decode())
    if not are_margins:
        return booster.predict(rows)
    # LightGBM's raw score of a random forest is the sum, and its prediction the average.
    return np.asarray(booster.predict(rows, raw_score=True)) / ensemble.divisor
