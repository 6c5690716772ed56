"""MLflow models: the folder or address of one -> the file in it that holds the trees.

A folder has a file ``MLmodel``, YAML that lists *flavors*; each names its file. Reading it takes no
``mlflow``; an address such as ``models:/credit/3`` does, which fetches the folder.
"""

from __future__ import annotations

import os
import re

from xcount.errors import MissingExtraError, ModelFormatError, UnsupportedModelError

_ADDRESS = re.compile(r"(models|runs|mlflow-artifacts):/")
_FILES = {
    "xgboost": "data",
    "lightgbm": "data",
    "catboost": "data",
    "onnx": "data",
    "sklearn": "pickled_model",
}
"""The flavors that are read, and which of their entries names the file."""
_NAMED = re.compile(r"( *)([A-Za-z_][\w.]*): *(.*)")
_MOST_BYTES = 2**20


def model_file(path: str) -> str:
    """Return the path of the file that holds the model; other paths as they are."""
    folder = _fetched(path) if _ADDRESS.match(path) else path
    listing = os.path.join(folder, "MLmodel")
    if not os.path.isfile(listing):
        return folder
    with open(listing, "rb") as stream:
        flavors = flavors_of(stream.read(_MOST_BYTES).decode(errors="replace"))
    chosen = next((name for name in _FILES if name in flavors), None)
    if chosen is None:
        named = ", ".join(sorted(flavors)) or "none"
        raise UnsupportedModelError(
            f"{path} is an MLflow model of the flavors {named}; read are {', '.join(_FILES)}"
        )
    name = flavors[chosen].get(_FILES[chosen], "")
    found = os.path.realpath(os.path.join(folder, name))
    if not name or not found.startswith(os.path.join(os.path.realpath(folder), "")):
        raise ModelFormatError(
            f"{listing}: the flavor {chosen} names the file {name!r}; expected one in the folder"
        )
    if not os.path.isfile(found):
        raise ModelFormatError(f"{listing}: the flavor {chosen} names {name!r}, which is not there")
    return found


def flavors_of(text: str) -> dict[str, dict[str, str]]:
    r"""Return the plain entries of each flavor of an MLmodel file.

    Example:
        >>> flavors_of("flavors:\n  onnx:\n    data: model.onnx\nrun_id: 7\n")
        {'onnx': {'data': 'model.onnx'}}
    """
    flavors: dict[str, dict[str, str]] = {}
    is_inside = False
    for line in text.splitlines():
        match = _NAMED.fullmatch(line.rstrip())
        if match is None:
            continue
        depth, key, value = len(match[1]), match[2], match[3]
        if depth == 0:
            is_inside = key == "flavors"
        elif is_inside and depth == 2:
            flavors[key] = {}
        elif is_inside and depth == 4 and flavors:
            flavors[next(reversed(flavors))][key] = value.strip("'\"")
    return flavors


def _fetched(address: str) -> str:
    """Return the folder of an address, which mlflow fetches."""
    try:
        from mlflow.artifacts import download_artifacts
    except ImportError:
        raise MissingExtraError(
            f"{address}: fetching a model from MLflow needs mlflow: pip install mlflow; a folder "
            "with an MLmodel file is read without it"
        ) from None
    try:
        folder: str = download_artifacts(artifact_uri=address)
    except Exception as error:  # whatever the registry answers
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelFormatError(f"{address}: MLflow cannot fetch it: {reason}") from None
    return folder
