"""Model files: read within limits, and recognised by their content, never by their name."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import BinaryIO, Literal

from xcount.errors import ModelFormatError
from xcount.model.loaders import mlflow_folder

MAX_FILE_BYTES = 2**30
"""Larger files (packed or unpacked) are refused before they are read."""

BLOCK_BYTES = 2**22
"""A file that is read in blocks is read in blocks of this size."""

_PIECE_BYTES = 2**24
_GZIP = b"\x1f\x8b"
_PACKED_BYTES = 2**14
_SMALL_BYTES = 2**20

FileFormat = Literal[
    "json",
    "ubjson",
    "lightgbm-text",
    "catboost-binary",
    "skops",
    "pickle",
    "xgboost-binary",
    "node-table",
    "parquet",
    "treelite",
    "onnx",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The bytes of a model file.

    Attributes:
        path: where it was read from.
        data: its content, unpacked if the file was gzip'd.
        sha256: hash of the bytes on disk.
    """

    path: str
    data: bytes
    sha256: str


def read(
    path: str | os.PathLike[str],
    *,
    max_bytes: int = MAX_FILE_BYTES,
    expected: str = "a model file",
) -> ModelFile:
    """Read a model file, unpacking gzip; or another that is so called in messages.

    Of an MLflow model, that is the file in its folder.
    """
    name = os.fspath(path)
    try:
        inner = located(name)
        size = _check_size(inner, max_bytes, expected)
        with open(inner, "rb") as stream:
            packed = _read_at_most(stream, max_bytes + 1, size)
    except FileNotFoundError:
        raise ModelFormatError(f"{name}: no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelFormatError(f"{name}: cannot be read: {reason}") from None
    if len(packed) > max_bytes:
        raise _too_long(name, max_bytes)
    data = _unpacked(packed, name, max_bytes)
    if not data or data.isspace():
        raise ModelFormatError(f"{name}: the file is empty, expected {expected}")
    return ModelFile(name, data, _sha256(packed))


def located(name: str) -> str:
    """Return the path of the file that a path or address stands for."""
    if os.path.isdir(name) or (":/" in name and not os.path.exists(name)):
        return mlflow_folder.model_file(name)
    return name


class BlockReader:
    """The content of a file in blocks, unpacked if it is gzip'd, within the limits of :func:`read`.

    A pipe is read once, and never held as a whole.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int | None = None,
        expected: str = "a model file",
    ) -> None:
        import hashlib

        self._name, self._expected = os.fspath(path), expected
        self._max_bytes = MAX_FILE_BYTES if max_bytes is None else max_bytes
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hash of the bytes on disk, of those that are read."""
        return self._digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Yield the content; all blocks but the last have one size."""
        packed = self._packed()
        first = next(packed, b"")
        whole = chain([first], packed)
        if not first.startswith(_GZIP):
            yield from whole
            return
        held = bytearray()
        for piece in _unpacked_pieces(whole, self._name, self._max_bytes):
            held += piece
            if len(held) >= BLOCK_BYTES:
                yield bytes(held)
                held.clear()
        yield bytes(held)

    def _packed(self) -> Iterator[bytes]:
        """Yield the bytes of the file itself."""
        _check_size(self._name, self._max_bytes, self._expected)
        n_left = self._max_bytes
        with open(self._name, "rb") as stream:
            while block := stream.read(BLOCK_BYTES):
                n_left -= len(block)
                if n_left < 0:
                    raise _too_long(self._name, self._max_bytes)
                self._digest.update(block)
                yield block


def _check_size(name: str, max_bytes: int, expected: str) -> int:
    """Return the size of a file; reject a directory, and a file that is too large."""
    if os.path.isdir(name):
        raise ModelFormatError(f"{name}: is a directory, expected {expected}; name a file in it")
    size = os.stat(name).st_size
    if size > max_bytes:
        raise ModelFormatError(f"{name}: {size} bytes; at most {max_bytes} are read")
    return size


def _too_long(name: str, max_bytes: int) -> ModelFormatError:
    return ModelFormatError(f"{name}: more than {max_bytes} bytes; at most that many are read")


def _sha256(data: bytes) -> str:
    """Return the hash of bytes, of few by Python's own code: OpenSSL is quick, but slow to load."""
    for home in ("_sha2", "_sha256") if len(data) < _SMALL_BYTES else ():  # in 3.12, in 3.11
        with suppress(ImportError):
            return str(import_module(home).sha256(data).hexdigest())
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _read_at_most(stream: BinaryIO, n_bytes: int, size: int) -> bytes:
    """Read a file of a known size in one go, so that nothing is copied.

    What has no size, or has grown, is read piece by piece: one large read would ask for all the
    memory at once.
    """
    pieces: list[bytes] = []
    next_bytes = size if 0 < size <= n_bytes else _PIECE_BYTES
    while n_bytes > 0 and (piece := stream.read(min(n_bytes, next_bytes))):
        pieces.append(piece)
        n_bytes -= len(piece)
        next_bytes = _PIECE_BYTES
    return b"".join(pieces)


def _unpacked(packed: bytes, name: str, max_bytes: int) -> bytes:
    """Return gzip'd data unpacked, all members of it; other data as it is."""
    if not packed.startswith(_GZIP):
        return packed
    return b"".join(_unpacked_pieces([packed], name, max_bytes))


def _unpacked_pieces(packed: Iterable[bytes], name: str, max_bytes: int) -> Iterator[bytes]:
    """Yield gzip'd data unpacked, all members of it."""
    unpacker, start, n_unpacked, n_behind = zlib.decompressobj(wbits=31), b"", 0, 0
    is_over, has_content = False, False
    for piece in _sliced(packed, _PACKED_BYTES):
        data = start + piece
        start = b""
        while data and not is_over:
            if unpacker.eof:
                if len(data) < len(_GZIP) and _GZIP.startswith(data):
                    start = data
                    break
                is_over = not data.startswith(_GZIP)
                unpacker = unpacker if is_over else zlib.decompressobj(wbits=31)
                continue
            try:
                unpacked = unpacker.decompress(data, max_bytes + 1 - n_unpacked)
            except zlib.error as error:
                raise ModelFormatError(f"{name}: broken gzip data: {error}") from None
            n_unpacked += len(unpacked)
            if n_unpacked > max_bytes:
                raise ModelFormatError(f"{name}: unpacks to more than {max_bytes} bytes")
            yield unpacked
            data = unpacker.unused_data
        if is_over:
            n_behind += len(data)
            has_content = has_content or bool(data.strip(b"\0"))  # tapes pad with zeros
    if not unpacker.eof:
        raise ModelFormatError(f"{name}: the gzip'd file is truncated")
    if has_content or start:
        raise ModelFormatError(f"{name}: {n_behind + len(start)} bytes after the gzip'd data")


def _sliced(blocks: Iterable[bytes], n_bytes: int) -> Iterator[bytes]:
    for block in blocks:
        for at in range(0, len(block), n_bytes):
            yield block[at : at + n_bytes]


_BEGINNINGS: tuple[tuple[FileFormat, tuple[bytes, ...]], ...] = (
    ("catboost-binary", (b"CBM1",)),
    ("skops", (b"PK\x03\x04",)),
    ("pickle", (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")),
    # What joblib packs with zlib, bz2 or xz; gzip'd files come unpacked.
    ("pickle", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ")),
    ("xgboost-binary", (b"binf", b"bs64")),
    ("parquet", (b"PAR1",)),
    # In UBJSON a key's length, or the mark of a typed container, follows the brace.
    ("ubjson", (b"{L", b"{l", b"{I", b"{i", b"{U", b"{$", b"{#")),
)
_OLD_XGBOOST = re.compile(rb"(?s).{136}.\0{7}[a-z_:]{4,60}.\0{7}(gbtree|gblinear|dart)")
"""Its parameters in 136 bytes, which begin with base score and number of features, and then the
names of objective and booster, each after its length; only buffers begin with ``binf``."""
_ONNX = re.compile(
    rb"(?s)\x08[\x01-\x20](\x12[\0-\x40]|[\x1a\x22\x2a\x32][\0-\x7f]|\x3a.|\x42[\0-\x40])"
)
"""A message of protocol buffers: field 1, the version of ONNX, is a small number; the name of the
producer follows, or what comes after it."""
_MARK = b"\xef\xbb\xbf"
"""Of UTF-8; some editors begin a file with it."""
_TREELITE = re.compile(rb"(?s)[\3-\x09]\0\0\0[\0-\x63]\0\0\0[\0-\x63]\0\0\0[\2\3][\2\3]")
"""The version of the checkpoint in three integers, and two number types."""
_PATTERNS: tuple[tuple[FileFormat, re.Pattern[bytes]], ...] = (
    ("treelite", _TREELITE),
    ("xgboost-binary", _OLD_XGBOOST),
    ("onnx", _ONNX),
)
NODE_TABLES: dict[str, frozenset[str]] = {
    "xgboost": frozenset({"Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing"}),
    "lightgbm": frozenset(
        {"tree_index", "node_index", "left_child", "right_child", "split_feature", "threshold"}
        | {"decision_type", "value"}
    ),
    "treeshap": frozenset({"Tree", "Node", "Feature", "Split", "Yes", "No", "Prediction"}),
    "plain": frozenset({"tree", "node", "feature", "split", "left", "right", "value"}),
}
"""Forms of tables of trees, and the columns by which they are known."""


def recognise(data: bytes) -> FileFormat:
    """Tell the format of a file by how it begins."""
    start = data[:4096]
    for name, beginnings in _BEGINNINGS:
        if start.startswith(beginnings):
            return name
    for name, pattern in _PATTERNS:
        if pattern.match(start):
            return name
    if start.removeprefix(_MARK).lstrip().startswith((b"{", b"[")):
        return "json"
    if _is_node_table(start):
        return "node-table"
    text = start.lstrip()
    return "lightgbm-text" if text.startswith((b"tree\n", b"tree\r\n", b"Tree=")) else "unknown"


def _is_node_table(start: bytes) -> bool:
    """Tell whether a file begins with the columns of a table of trees."""
    head = start.removeprefix(_MARK).split(b"\n", 1)[0].decode("utf-8", "replace")
    names = {word.strip().strip('"') for word in head.split(",")}
    return any(columns <= names for columns in NODE_TABLES.values())
