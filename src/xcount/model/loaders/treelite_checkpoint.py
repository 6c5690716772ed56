"""treelite's checkpoints (``Model.serialize``), format 4, and live treelite models.

A checkpoint is a header and one record for each tree, without marks between fields: numbers in
little endian, and arrays and texts behind their length (64 bits). It is read here, field by field,
and not by treelite, whose reader trusts the file.

A test says its own operator: ``<``, ``<=``, ``>`` or ``>=``, in the number type of the thresholds,
or a list of categories that go left, or right. What the sums mean is told by the *postprocessor*. A
model has no names of features.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.loaders import meaning, splits
from xcount.model.loaders.meaning import Meaning
from xcount.model.loaders.splits import Dtype

_VERSION = 4
_FLOATS: dict[int, Dtype] = {2: "float32", 3: "float64"}
_TASKS = {0: "binary", 1: "regression", 2: "multiclass", 3: "ranking", 4: "isolation"}
_LEAF, _NUMERIC, _CATEGORICAL = 0, 1, 2
_LESS, _LESS_OR_EQUAL, _GREATER, _GREATER_OR_EQUAL = 2, 3, 4, 5


def from_bytes(data: bytes, where: str) -> Ensemble:
    """Read a checkpoint."""
    return _read(_Stream(data, where), where, "treelite-checkpoint")


def from_live(model: Any) -> Ensemble:
    """Return the ensemble of a live treelite model."""
    name = f"treelite.{type(model).__name__}"
    if not hasattr(model, "serialize_bytes"):
        raise UnsupportedModelError(f"{name} is not supported; give a treelite.Model")
    return _read(_Stream(model.serialize_bytes(), name), name, "treelite")


class _Stream:
    """The fields of a file, one after the other."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data, self._at, self._where = data, 0, where

    def one(self, kind: str) -> Any:
        """Return the next number, of one of the kinds of :mod:`struct`."""
        (value,) = struct.unpack("<" + kind, self._take(struct.calcsize("<" + kind), kind))
        return value

    def many(self, dtype: str, size: int | None = None, what: str = "an array") -> NDArray[Any]:
        """Return the next array; refuse one of another size than expected."""
        n = self.one("Q")
        if size is not None and n not in (size, 0):
            raise ModelFormatError(
                f"{self._where}: byte {self._at}: {what} of {n} entries, expected {size}"
            )
        bytes_each = np.dtype(dtype).itemsize
        kind = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self._take(n * bytes_each, what), dtype=kind)

    def text(self) -> str:
        """Return the next text."""
        return self._take(self.one("Q"), "a text").decode("utf-8", "replace")

    def skip_optional(self) -> None:
        """Skip fields of later versions: a name, a size of entries, and entries each."""
        for _ in range(self.one("i")):
            self.text()
            self._take(self.one("Q") * self.one("Q"), "an optional field")

    def check_end(self) -> None:
        """Refuse a file that goes on."""
        if self._at != len(self._data):
            n = len(self._data) - self._at
            raise ModelFormatError(f"{self._where}: {n} bytes after the last tree")

    def _take(self, n: int, what: str) -> bytes:
        if n > len(self._data) - self._at:
            raise ModelFormatError(
                f"{self._where}: ends at byte {len(self._data)}, inside {what} that starts at "
                f"{self._at}"
            )
        self._at += n
        return self._data[self._at - n : self._at]


@dataclass(frozen=True, eq=False)
class _Header:
    """What a model says before its trees."""

    threshold_type: Dtype
    leaf_type: Dtype
    n_trees: int
    n_features: int
    task: str
    averages: bool
    n_classes: int
    class_of: NDArray[np.int64]
    postprocessor: str
    alpha: float
    base: NDArray[np.float64]

    @property
    def are_votes(self) -> bool:
        """Whether two sums are the shares of two classes, so that one says all."""
        is_share = self.postprocessor == "identity_multiclass" and self.n_classes == 2
        return is_share and bool((self.class_of < 0).all())


def _read(stream: _Stream, where: str, format_name: str) -> Ensemble:
    header = _read_header(stream, where)
    trees = [
        tree
        for i in range(header.n_trees)
        for tree in _read_tree(stream, header, int(header.class_of[i]), f"{where}: tree {i}")
    ]
    stream.check_end()
    names = splits.default_names(header.n_features)
    sets = splits.category_sets(where, trees, names)
    codes = {feature: splits.codes_of(found, where) for feature, found in sets.items()}
    ensemble = Ensemble(
        features=splits.make_features(
            where,
            names,
            categories=codes,
            others={f: splits.other_code(codes[f], found) for f, found in sets.items()},
        ),
        trees=tuple(trees),
        base=tuple(header.base[1:].tolist() if header.are_votes else header.base.tolist()),
        divisor=_divisor(header, where),
        input_dtype=header.threshold_type,
        format=format_name,
    )
    return _meaning(header).put_on(ensemble)


def _read_header(stream: _Stream, where: str) -> _Header:
    version = [stream.one("i") for _ in range(3)]
    if version[0] != _VERSION:
        raise UnsupportedModelError(
            f"{where}: treelite's format {version[0]}; of these, {_VERSION} is read: load it with "
            "treelite 4 and serialize it again"
        )
    types = stream.one("B"), stream.one("B")
    if types[0] not in _FLOATS or types[1] not in _FLOATS:
        raise UnsupportedModelError(f"{where}: thresholds or leaves that are no floats")
    n_trees = stream.one("Q")
    n_features = splits.check_feature_count(where, stream.one("i"))
    task = _TASKS.get(stream.one("B"), "unknown")
    averages, n_targets = bool(stream.one("B")), stream.one("i")
    if n_targets != 1 or task == "isolation":
        what = f"{n_targets} targets" if n_targets != 1 else "an isolation forest"
        raise UnsupportedModelError(f"{where}: treelite model of {what}; that is not supported")
    (n_classes,) = stream.many("i4", 1, "numbers of classes").tolist() or (0,)
    shape = stream.many("i4", 2, "the shape of leaves").tolist()
    stream.many("i4", n_trees, "targets of trees")
    class_of = stream.many("i4", n_trees, "classes of trees").astype(np.int64)
    if len(class_of) != n_trees or shape not in ([1, 1], [1, n_classes]) or n_classes < 1:
        raise ModelFormatError(f"{where}: the header does not say which class each tree adds to")
    if not ((class_of >= -1) & (class_of < n_classes)).all():
        raise ModelFormatError(f"{where}: a tree adds to a class that the model does not have")
    postprocessor, alpha = stream.text(), stream.one("f")
    stream.one("f")
    base = stream.many("f8", n_classes, "base scores")
    stream.text()
    stream.skip_optional()
    if len(base) != n_classes or not np.isfinite(base).all():
        raise ModelFormatError(f"{where}: expected {n_classes} finite base scores")
    if alpha <= 0 and postprocessor in ("sigmoid", "multiclass_ova"):
        raise UnsupportedModelError(
            f"{where}: sigmoid_alpha is {alpha:g}, so that probabilities fall as sums grow"
        )
    return _Header(
        _FLOATS[types[0]],
        _FLOATS[types[1]],
        n_trees,
        n_features,
        task,
        averages,
        n_classes,
        class_of,
        postprocessor,
        splits.finite(alpha, where, "sigmoid_alpha"),
        base,
    )


def _meaning(header: _Header) -> Meaning:
    """Return what the sums mean, by what treelite makes of them."""
    several = {
        "softmax": meaning.SOFTMAX,
        "multiclass_ova": replace(meaning.ONE_VERSUS_ALL, slope=header.alpha),
        "identity_multiclass": replace(meaning.SOFTMAX, probability="margin"),
    }
    if header.are_votes:
        return meaning.VOTES
    if header.n_classes > 1:
        return several.get(header.postprocessor, meaning.UNKNOWN)
    if header.postprocessor == "sigmoid":
        return replace(meaning.LOG_ODDS, slope=header.alpha)
    if header.task == "ranking":
        return meaning.RANKING
    return meaning.numbers(1) if header.task == "regression" else meaning.UNKNOWN


def _divisor(header: _Header, where: str) -> int:
    """Return what sums are divided by: the trees of each class, if the model averages."""
    if not header.averages:
        return 1
    if (header.class_of < 0).all() or header.n_classes == 1:
        return max(1, header.n_trees)
    counts = np.bincount(header.class_of[header.class_of >= 0], minlength=header.n_classes)
    if (header.class_of < 0).any() or len({*counts.tolist()}) > 1:
        raise UnsupportedModelError(f"{where}: an average over another number of trees per class")
    return int(counts[0])


def _read_tree(stream: _Stream, header: _Header, class_of: int, where: str) -> list[Tree]:
    """Return the trees of a record: one, or one for each class if leaves hold a number for each."""
    n = stream.one("i")
    if n < 1:
        raise ModelFormatError(f"{where}: {n} nodes")
    stream.one("B")
    kind = stream.many("i1", n, "kinds of nodes")
    left, right = stream.many("i4", n, "left children"), stream.many("i4", n, "right children")
    feature = stream.many("i4", n, "features")
    default_left = stream.many("u1", n, "default directions") != 0
    leaf = stream.many(_letters(header.leaf_type), n, "leaves").astype(np.float64)
    threshold = stream.many(_letters(header.threshold_type), n, "thresholds").astype(np.float64)
    operator = stream.many("i1", n, "operators")
    to_right = stream.many("u1", n, "sides of categories") != 0
    vectors = stream.many(_letters(header.leaf_type)).astype(np.float64)
    ends = stream.many("u8", n), stream.many("u8", n)
    listed = stream.many("u4")
    list_ends = stream.many("u8", n), stream.many("u8", n)
    _check_shared(ends, len(vectors), where)
    _check_shared(list_ends, len(listed), where)
    for dtype in ("u8", "u1", "f8", "u1", "f8", "u1"):  # counts, sums of Hessians, gains
        stream.many(dtype)
    stream.skip_optional()
    stream.skip_optional()
    if min(map(len, (kind, left, right, feature, default_left, leaf, threshold, operator))) < n:
        raise ModelFormatError(f"{where}: an array of its nodes is empty")
    inner, categorical = kind != _LEAF, kind == _CATEGORICAL
    known = np.isin(kind, (_LEAF, _NUMERIC, _CATEGORICAL))
    asked = np.isin(operator, (_LESS, _LESS_OR_EQUAL, _GREATER, _GREATER_OR_EQUAL))
    if not (known & (asked | (kind != _NUMERIC))).all():
        raise UnsupportedModelError(f"{where}: a test that is neither <, <=, > nor >=, nor a list")
    # x > t is not x <= t, and categories that go right are not those that go left.
    turned = np.where(categorical, to_right, np.isin(operator, (_GREATER, _GREATER_OR_EQUAL)))
    is_strict = np.isin(operator, (_LESS, _GREATER_OR_EQUAL))
    # x <= inf only tells numbers from missing values: the other side of x < -inf.
    only_missing = (kind == _NUMERIC) & ~is_strict & (threshold == np.inf)
    turned = (turned ^ only_missing) & inner
    dtype = header.threshold_type
    thresholds = np.where(
        is_strict,
        splits.as_strict_thresholds(threshold, "<", dtype),
        splits.as_strict_thresholds(threshold, "<=", dtype),
    )
    return splits.trees_from_arrays(
        where,
        values=_values(header, class_of, leaf, vectors, ends, inner, where),
        first_output=0 if class_of < 0 or header.are_votes else class_of,
        n_features=header.n_features,
        feature=feature,
        threshold=np.where(only_missing, -np.inf, thresholds),
        left=np.where(inner, np.where(turned, right, left), -1),
        right=np.where(inner, np.where(turned, left, right), -1),
        missing_left=(default_left ^ turned) & inner,
        operator="<",
        dtype=dtype,
        left_categories={
            int(node): _slice(listed, list_ends, int(node), where).tolist()
            for node in np.flatnonzero(categorical)
        },
    )


def _letters(dtype: Dtype) -> str:
    return "f4" if dtype == "float32" else "f8"


Ends = tuple[NDArray[Any], NDArray[Any]]


def _check_shared(ends: Ends, n: int, where: str) -> None:
    """Refuse nodes whose parts of a list overlap: they may be far more than the file holds."""
    firsts, lasts = (each.astype(np.float64) for each in ends)
    if len(firsts) == len(lasts) and np.maximum(lasts - firsts, 0.0).sum() > n:
        raise ModelFormatError(f"{where}: the lists of its nodes overlap")


def _slice(values: NDArray[Any], ends: Ends, node: int, where: str) -> NDArray[Any]:
    """Return the part of a list that belongs to a node."""
    if min(map(len, ends)) <= node:
        return values[:0]
    first, last = int(ends[0][node]), int(ends[1][node])
    if not first <= last <= len(values):
        raise ModelFormatError(f"{where}, node {node}: its list ends behind the end of all lists")
    return values[first:last]


def _values(
    header: _Header,
    class_of: int,
    leaf: NDArray[np.float64],
    vectors: NDArray[np.float64],
    ends: Ends,
    inner: NDArray[np.bool_],
    where: str,
) -> NDArray[np.float64]:
    """Return what each node would add to each sum of its tree."""
    if class_of >= 0 or header.n_classes == 1:
        return leaf[:, np.newaxis]
    if len(vectors) < header.n_classes * np.count_nonzero(~inner):
        raise ModelFormatError(f"{where}: not {header.n_classes} numbers for each leaf")
    found = np.zeros((len(leaf), header.n_classes))
    for node in range(len(leaf)):
        own = _slice(vectors, ends, node, where)
        if len(own) != header.n_classes and not (inner[node] and not len(own)):
            raise ModelFormatError(
                f"{where}, node {node}: a leaf of {len(own)} numbers, expected {header.n_classes}"
            )
        found[node] = own if len(own) else 0.0
    return found[:, 1:] if header.are_votes else found
