"""Writers: the formats of models that can be written with other leaf values."""

from __future__ import annotations

import os
from typing import Any

from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import files, load
from xcount.repairs.writers.writer import ModelWriter

WRITABLE = "XGBoost JSON and UBJSON, LightGBM text, CatBoost JSON, scikit-learn as skops"
"""The formats of files that can be written, in words."""


def writer_of(model: Any, *, trust_pickle: bool = False) -> ModelWriter:
    """Return the writer of a model file or a live model.

    Raises:
        UnsupportedModelError: there is no writer for the format.
    """
    ensemble = load(model, trust_pickle=trust_pickle)
    if isinstance(model, str | os.PathLike):
        return _file_writer(model, ensemble, trust_pickle)
    return _live_writer(model, ensemble)


def _file_writer(
    path: str | os.PathLike[str], ensemble: Ensemble, trust_pickle: bool
) -> ModelWriter:
    data = files.read(path).data
    where = os.fspath(path)
    if ensemble.format == "xgboost-json":
        from xcount.model.loaders.xgboost_json import parse_json
        from xcount.repairs.writers.xgboost import XGBoostWriter

        return XGBoostWriter(parse_json(data, where), ensemble)
    if ensemble.format == "xgboost-ubjson":
        from xcount.model.loaders.ubjson import parse
        from xcount.repairs.writers.xgboost import XGBoostWriter

        return XGBoostWriter(parse(data, where), ensemble)
    if ensemble.format == "lightgbm-text":
        from xcount.repairs.writers.lightgbm import LightGBMWriter

        return LightGBMWriter(data.decode("utf-8-sig"), ensemble)
    if ensemble.format == "catboost-json":
        from xcount.model.loaders.xgboost_json import parse_json
        from xcount.repairs.writers.catboost import CatBoostWriter

        return CatBoostWriter(parse_json(data, where), ensemble)
    if ensemble.format.endswith("-skops"):
        from xcount.model.loaders.sklearn_models import open_skops
        from xcount.repairs.writers.sklearn import SklearnWriter

        return SklearnWriter(ensemble, open_skops(data, where, trust=trust_pickle))
    raise _no_writer(ensemble)


def _live_writer(model: Any, ensemble: Ensemble) -> ModelWriter:
    if isinstance(model, Ensemble):
        from xcount.repairs.writers.ensemble import EnsembleWriter

        return EnsembleWriter(ensemble)
    if ensemble.format == "xgboost":
        from xcount.model.loaders.xgboost_json import parse_json
        from xcount.repairs.writers.xgboost import XGBoostWriter

        booster = model.get_booster() if hasattr(model, "get_booster") else model
        document = parse_json(bytes(booster.save_raw("json")), "the live model")
        return XGBoostWriter(document, ensemble, model)
    if ensemble.format == "lightgbm":
        from xcount.repairs.writers.lightgbm import LightGBMWriter

        booster = model if hasattr(model, "model_to_string") else model.booster_
        return LightGBMWriter(booster.model_to_string(), ensemble, model)
    if ensemble.format == "catboost":
        from xcount.model.loaders.catboost_models import live_document
        from xcount.repairs.writers.catboost import CatBoostWriter

        return CatBoostWriter(live_document(model), ensemble, model)
    if ensemble.format == "sklearn" or ensemble.format.endswith("-pipeline"):
        from xcount.repairs.writers.sklearn import SklearnWriter

        return SklearnWriter(ensemble, model)
    raise _no_writer(ensemble)


def _no_writer(ensemble: Ensemble) -> UnsupportedModelError:
    where = f"{ensemble.path}: " if ensemble.path else ""
    return UnsupportedModelError(
        f"{where}a model of the format {ensemble.format} cannot be repaired: XCount writes "
        f"{WRITABLE}; save the model in one of these formats"
    )
