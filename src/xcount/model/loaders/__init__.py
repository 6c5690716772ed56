"""Model file or live model -> :class:`~xcount.model.ensemble.Ensemble`.

A file is recognised by its content, a live model by the package that its class comes from. No
library is imported to read a file of XGBoost, LightGBM or CatBoost.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import files
from xcount.support.process import ended_by_signals

__all__ = ["load", "parse_model"]

_LIVE_HOMES = {
    "xgboost": "xcount.model.loaders.xgboost_json",
    "lightgbm": "xcount.model.loaders.lightgbm_text",
    "sklearn": "xcount.model.loaders.sklearn_models",
    "catboost": "xcount.model.loaders.catboost_models",
    "onnx": "xcount.model.loaders.onnx_models",
    "onnxruntime": "xcount.model.loaders.onnx_models",
    "interpret": "xcount.model.loaders.explainable_boosting",
    "treelite": "xcount.model.loaders.treelite_checkpoint",
    "pandas": "xcount.model.loaders.node_tables",
    "polars": "xcount.model.loaders.node_tables",
    "pyarrow": "xcount.model.loaders.node_tables",
}


def load(model: Any, *, check: Any = None, trust_pickle: bool = False) -> Ensemble:
    """Return the ensemble of a model file or a live model.

    Args:
        model: a path, a live model of XGBoost, LightGBM, scikit-learn, CatBoost or interpret, a
            scikit-learn pipeline around one, or an Ensemble.
        check: rows that the original library predicts too; a mismatch is refused.
        trust_pickle: whether a pickle or joblib file may be opened, which runs its code, or a
            skops file with a model of another library.

    Raises:
        ModelFormatError: the file is malformed, or ``check`` found a mismatch.
        UnsupportedModelError: the model cannot be represented; the message names the construct.

    Example:
        >>> from xcount.model.examples import adult_model_path
        >>> ensemble = load(adult_model_path())
        >>> ensemble.n_trees, ensemble.feature_names[:3]
        (50, ('age', 'workclass', 'education_num'))
    """
    if isinstance(model, Ensemble):
        ensemble = model
    elif isinstance(model, str | os.PathLike):
        ensemble = _load_file(model, trust_pickle)
    else:
        ensemble = _load_live(model)
    if check is not None:
        from xcount.model.loaders.check import check as check_rows

        check_rows(ensemble, model, check, trust_pickle=trust_pickle)
    return ensemble


def _load_file(path: str | os.PathLike[str], trust_pickle: bool) -> Ensemble:
    if os.path.isdir(path):
        _refuse_folder(path)
    try:
        with ended_by_signals(), _without_collecting():
            file = files.read(path)
            ensemble = parse_model(file.data, file.path, trust_pickle=trust_pickle)
    except MemoryError:
        where = os.fspath(path)
        raise ModelFormatError(f"{where}: too large for the memory of this machine") from None
    return replace(ensemble, path=file.path, sha256=file.sha256)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Put off looking for garbage: a document is millions of objects, and none of them is."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_model(data: bytes, where: str, *, trust_pickle: bool = False) -> Ensemble:
    """Return the ensemble of a model file's content; ``where`` is its name in messages."""
    kind = files.recognise(data)
    if kind in ("skops", "json", "unknown"):
        _refuse_other_systems(data, where)
    if kind == "json":
        return _parse_json(data, where)
    if kind == "skops":
        home = import_module("xcount.model.loaders.sklearn_models")
        ensemble: Ensemble = home.from_skops(data, where, trust=trust_pickle)
        return ensemble
    if kind == "pickle":
        if not trust_pickle:
            raise UnsupportedModelError(
                f"{where}: a pickle file runs code when it is opened; "
                "pass --trust-pickle (trust_pickle) if you trust where it comes from"
            )
        return _call("xcount.model.loaders.sklearn_models", "from_pickle", data, where)
    if kind == "xgboost-binary":
        raise UnsupportedModelError(
            f"{where}: XGBoost's old binary format; load it with an XGBoost that reads it "
            "and save it as JSON (Booster.save_model('model.json'))"
        )
    if kind == "catboost-binary":
        raise UnsupportedModelError(
            f"{where}: a binary CatBoost model (cbm); save it with "
            'model.save_model(path, format="json"), or pass the live model'
        )
    if kind in ("node-table", "parquet"):
        function = "from_csv" if kind == "node-table" else "from_parquet"
        return _call("xcount.model.loaders.node_tables", function, data, where)
    homes = {
        "treelite": "xcount.model.loaders.treelite_checkpoint",
        "ubjson": "xcount.model.loaders.ubjson",
        "lightgbm-text": "xcount.model.loaders.lightgbm_text",
        "onnx": "xcount.model.loaders.onnx_models",
    }
    if kind not in homes:
        _refuse_other_kinds(data, where)
        raise ModelFormatError(
            f"{where}: not a model file; expected XGBoost JSON or UBJSON, a LightGBM text model, "
            "CatBoost JSON or a skops file"
        )
    return _call(homes[kind], "from_bytes", data, where)


def _parse_json(data: bytes, where: str) -> Ensemble:
    """Read one of the JSON formats; the document is parsed once and told apart by its keys."""
    from xcount.model.loaders import xgboost_json

    try:
        document = xgboost_json.parse_json(data, where)
    except ModelFormatError:
        _refuse_other_kinds(data, where)  # a journal is no JSON as a whole
        raise
    if isinstance(document, list):
        return _call("xcount.model.loaders.xgboost_dump", "from_document", document, where)
    if "learner" in document:
        return xgboost_json.from_document(document, where, "xgboost-json")
    if "oblivious_trees" in document or "features_info" in document or "trees" in document:
        home = "xcount.model.loaders.catboost_models"
        return _call(home, "from_document", document, where, "catboost-json")
    if "ebm" in document:
        home = "xcount.model.loaders.explainable_boosting"
        return _call(home, "from_document", document, where, "interpret-ebm-json")
    if "tree_info" in document:
        raise UnsupportedModelError(
            f"{where}: LightGBM's JSON dump; save the model as text instead (Booster.save_model)"
        )
    _refuse_other_kinds(data, where)
    raise ModelFormatError(
        f"{where}: JSON, but not a model: expected XGBoost's 'learner', an array of trees, "
        "CatBoost's 'oblivious_trees' or the 'ebm' of interpret"
    )


def _refuse_other_kinds(data: bytes, where: str) -> None:
    """Refuse the files that other arguments take, with a word of what they are."""
    from xcount.model.loaders import kinds  # only for this message

    message = kinds.mistaken(where, data, kinds.MODEL)
    if message is not None:
        raise ModelFormatError(message)


def _refuse_other_systems(data: bytes, where: str) -> None:
    """Refuse models of other systems by their name."""
    from xcount.model.loaders import kinds

    message = kinds.of_another_system(where, data)
    if message is not None:
        raise UnsupportedModelError(message)


def _refuse_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that another system has saved as a model."""
    from xcount.model.loaders import kinds

    message = kinds.folder_of_another_system(path)
    if message is not None:
        raise UnsupportedModelError(message)


def _load_live(model: Any) -> Ensemble:
    for base in type(model).__mro__:
        home = _LIVE_HOMES.get(base.__module__.partition(".")[0])
        if home is not None:
            return _call(home, "from_live", model)
    raise UnsupportedModelError(
        f"cannot load a {type(model).__module__}.{type(model).__qualname__}; expected a path or a "
        "live model of XGBoost, LightGBM, scikit-learn, CatBoost or interpret (EBM)"
    )


def _call(module: str, function: str, *arguments: Any) -> Ensemble:
    """Call a loader, importing its module only now."""
    ensemble: Ensemble = getattr(import_module(module), function)(*arguments)
    return ensemble
