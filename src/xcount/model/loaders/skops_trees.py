"""Plain trees and forests straight from a skops file, without skops or scikit-learn.

Importing those two takes longer than reading most models, and skops copies every array several
times. A file whose every type is one of a short list, and that was written by a scikit-learn whose
trees are known here, holds nothing but numbers, texts and arrays: they are taken as they are, and
nothing is ever built by a name that the file gives. Any other file, and anything unexpected in it,
is left to skops (:func:`opened` returns None).
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FORESTS = frozenset(
    {
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
    }
)
_SPLITTERS = {
    "DecisionTreeClassifier": "best",
    "DecisionTreeRegressor": "best",
    "ExtraTreeClassifier": "random",
    "ExtraTreeRegressor": "random",
}
_HOMES = {
    **dict.fromkeys(_FORESTS, "sklearn.ensemble._forest"),
    **dict.fromkeys(_SPLITTERS, "sklearn.tree._classes"),
}
_TYPES = {(home, name) for name, home in _HOMES.items()} | {
    *(("builtins", name) for name in ("bool", "dict", "float", "int", "list", "str", "tuple")),
    *(("numpy", name) for name in ("float64", "int32", "int64", "ndarray")),
    ("sklearn.tree._tree", "Tree"),
}
_LOADERS = {
    "DictNode",
    "JsonNode",
    "ListNode",
    "NdArrayNode",
    "ObjectNode",
    "TreeNode",
    "TupleNode",
    "TypeNode",
}
_PROTOCOL = 2
_VERSIONS = re.compile(r"1\.[6-9]\.\d+")
"""Of scikit-learn. Trees of these with the criteria and splitters below accept missing values."""
_CRITERIA = frozenset({"gini", "log_loss", "entropy", "squared_error", "friedman_mse", "poisson"})
_NODE_FIELDS = {
    "left_child": "<i8",
    "right_child": "<i8",
    "feature": "<i8",
    "threshold": "<f8",
    "missing_go_to_left": "|u1",
}
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_NPY_1 = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': (?P<type>.{1,999}), 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]{1,99})\), \}\s*"
)
_DAMAGES = (
    AttributeError,
    IndexError,
    KeyError,
    LookupError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class _NotPlainError(Exception):
    """The file is not as plain as it would have to be; skops knows what to say about it."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredTree:
    """The arrays of a tree, by the names that scikit-learn's own object has for them."""

    nodes: NDArray[np.void]
    value: NDArray[np.float64]

    @property
    def feature(self) -> NDArray[np.int64]:
        return self.nodes["feature"]

    @property
    def threshold(self) -> NDArray[np.float64]:
        return self.nodes["threshold"]

    @property
    def children_left(self) -> NDArray[np.int64]:
        return self.nodes["left_child"]

    @property
    def children_right(self) -> NDArray[np.int64]:
        return self.nodes["right_child"]

    @property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        return self.nodes["missing_go_to_left"]


@dataclass(frozen=True, eq=False)
class StoredEstimator:
    """A fitted tree or forest, as far as a reader asks for it.

    Attributes:
        kind: the name of its class.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if it has seen any.
        tree_: of a tree, its nodes.
        estimators_: of a forest, its trees.
    """

    kind: str
    n_features_in_: int
    feature_names_in_: list[str] | None
    tree_: StoredTree | None = None
    estimators_: tuple[StoredEstimator, ...] = ()


@dataclass(frozen=True, eq=False)
class StoredClassifier(StoredEstimator):
    """A fitted classifier, and what it calls its classes."""

    classes_: tuple[str, ...] = ()


def opened(data: bytes, max_bytes: int) -> StoredEstimator | None:
    """Return the tree or forest in a skops file; None if the file is for skops to open."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            if sum(entry.file_size for entry in archive.infolist()) > max_bytes:
                return None
            stored = _Archive(archive, memoryview(data), entries)
            schema = json.loads(bytes(stored.content("schema.json")))
            if schema["protocol"] != _PROTOCOL or not _is_plain(schema):
                return None
            return _Reader(stored).estimator(schema)
    except (_NotPlainError, *_DAMAGES):
        return None


def _is_plain(schema: Any) -> bool:
    """Tell whether every type and every loader in the schema is one of those known here."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "__class__" in node and (node["__module__"], node["__class__"]) not in _TYPES:
                return False
            if node.get("__loader__", "JsonNode") not in _LOADERS:
                return False
            pending += [each for each in node.values() if isinstance(each, dict | list)]
        else:
            pending += [each for each in node if isinstance(each, dict | list)]
    return True


class _Archive:
    """The files in a zip archive; those that are not packed are read where they lie."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        data: memoryview,
        entries: Mapping[str, zipfile.ZipInfo],
    ) -> None:
        self._archive, self._data, self._entries = archive, data, entries

    def content(self, name: str) -> memoryview:
        entry = self._entries[name]
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            return memoryview(self._archive.read(entry))
        at = entry.header_offset
        magic, n_name, n_extra = _LOCAL_HEADER.unpack_from(self._data, at)
        start = at + _LOCAL_HEADER.size + n_name + n_extra
        found = self._data[start : start + entry.file_size]
        if magic != b"PK\x03\x04" or len(found) != entry.file_size:
            raise _NotPlainError
        if zlib.crc32(found) != entry.CRC:
            raise _NotPlainError
        return found

    def array(self, name: str) -> NDArray[Any]:
        """Return an array in numpy's format; its elements are numbers, flags or texts."""
        data = self.content(name)
        if data[:8] != _NPY_1:
            raise _NotPlainError
        start = 10 + int.from_bytes(data[8:10], "little")
        dtype, shape = _header(bytes(data[10:start]))
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if len(data) - start != n_bytes:
            raise _NotPlainError
        return np.frombuffer(data[start:], dtype).reshape(shape)


def _header(text: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the type and the shape that an array's header tells."""
    found = _NPY_HEADER.fullmatch(text)
    if found is None:
        raise _NotPlainError
    sizes = found["shape"].decode("ascii").split(",")
    return _dtype(found["type"]), tuple(int(size) for size in sizes if size.strip())


@lru_cache(maxsize=16)
def _dtype(text: bytes) -> np.dtype[Any]:
    """Return the type of an array's elements; trees have few types, and hundreds of arrays."""
    found = np.lib.format.descr_to_dtype(literal_eval(text.decode("latin-1")))
    if found.hasobject:
        raise _NotPlainError
    return found


class _Reader:
    """Takes an estimator out of its schema."""

    def __init__(self, archive: _Archive) -> None:
        self._archive = archive

    def estimator(self, node: Mapping[str, Any]) -> StoredEstimator:
        kind, fields = node["__class__"], self._fields(node)
        if node["__module__"] != _HOMES[kind] or not _VERSIONS.fullmatch(
            self._json(fields["_sklearn_version"])
        ):
            raise _NotPlainError
        if self._json(fields["n_outputs_"]) != 1:
            raise _NotPlainError
        is_classifier = kind.endswith("Classifier")
        if is_classifier != ("classes_" in fields):
            raise _NotPlainError
        names = fields.get("feature_names_in_")
        own: dict[str, Any] = self._trees(fields) if kind in _FORESTS else self._tree(kind, fields)
        if is_classifier:
            own["classes_"] = tuple(self._texts(fields["classes_"]))
        return (StoredClassifier if is_classifier else StoredEstimator)(
            kind=kind,
            n_features_in_=self._whole_number(fields["n_features_in_"]),
            feature_names_in_=None if names is None else self._texts(names),
            **own,
        )

    def _trees(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        members = fields["estimators_"]
        if members["__loader__"] != "ListNode" or not members["content"]:
            raise _NotPlainError
        trees = tuple(self.estimator(each) for each in members["content"])
        if any(tree.tree_ is None for tree in trees):
            raise _NotPlainError
        return {"estimators_": trees}

    def _tree(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        accepts_missing = (
            self._json(fields["splitter"]) == _SPLITTERS[kind]
            and self._json(fields["criterion"]) in _CRITERIA
            and self._json(fields["monotonic_cst"]) is None
        )
        tree = fields["tree_"]
        if not accepts_missing or tree["__loader__"] != "TreeNode":
            raise _NotPlainError
        state = self._content(tree["content"], "DictNode")
        nodes, value = self._array(state["nodes"]), self._array(state["values"])
        formats = {name: nodes.dtype[name].str for name in _NODE_FIELDS}
        if formats != _NODE_FIELDS or nodes.ndim != 1 or value.dtype != np.float64:
            raise _NotPlainError
        n_values = len(self._texts(fields["classes_"])) if "classes_" in fields else 1
        if value.shape != (len(nodes), 1, n_values):
            raise _NotPlainError
        return {"tree_": StoredTree(nodes, value)}

    def _fields(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        if node["__loader__"] != "ObjectNode":
            raise _NotPlainError
        found: Mapping[str, Any] = self._content(node["content"], "DictNode")
        return found

    def _content(self, node: Mapping[str, Any], loader: str) -> Any:
        if node["__loader__"] != loader:
            raise _NotPlainError
        return node["content"]

    def _json(self, node: Mapping[str, Any]) -> Any:
        return json.loads(self._content(node, "JsonNode"))

    def _whole_number(self, node: Mapping[str, Any]) -> int:
        found = self._json(node)
        if type(found) is not int:
            raise _NotPlainError
        return found

    def _array(self, node: Mapping[str, Any]) -> NDArray[Any]:
        if node["__loader__"] != "NdArrayNode" or node["type"] != "numpy":
            raise _NotPlainError
        return self._archive.array(node["file"])

    def _texts(self, node: Mapping[str, Any]) -> list[str]:
        """Return the elements of a row as texts."""
        if node["__loader__"] == "NdArrayNode" and node["type"] == "json":
            return [str(self._json(each)) for each in node["content"]]
        found = self._array(node)
        if found.ndim != 1:
            raise _NotPlainError
        return [str(each) for each in found]
