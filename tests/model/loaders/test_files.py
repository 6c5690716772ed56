"""Reading files within limits, telling formats apart, and finding the right loader."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.examples import figure_1
from xcount.model.loaders import files

LEAF = {"nodeid": 0, "leaf": 1.5}
STUMP = {
    "nodeid": 0,
    "split": "f1",
    "split_condition": 0.5,
    "yes": 1,
    "no": 2,
    "missing": 2,
    "children": [{"nodeid": 1, "leaf": -1.0}, {"nodeid": 2, "leaf": 2.0}],
}
OLD_XGBOOST = struct.pack("<fIiii", 0.5, 2, 0, 0, 0).ljust(136, b"\0")
OLD_XGBOOST += struct.pack("<Q15sQ6s", 15, b"binary:logistic", 6, b"gbtree") + bytes(200)
"""The start of what XGBoost's ``save_model("x.model")`` wrote before version 2."""
LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=0
feature_names=age
feature_infos=[0:1]

Tree=0
num_leaves=2
num_cat=0
split_feature=0
threshold=0.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=1 2

end of trees
"""


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"learner": {}}', "json"),
        (b'\n  [ {"nodeid": 0} ]', "json"),
        (b"\xef\xbb\xbf[]", "json"),
        (b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner{}}", "ubjson"),
        (b"{i\x07learner{}}", "ubjson"),
        (LIGHTGBM.encode(), "lightgbm-text"),
        (LIGHTGBM.replace("\n", "\r\n").encode(), "lightgbm-text"),
        (b"CBM1\x00\x00", "catboost-binary"),
        (b"PK\x03\x04rest", "skops"),
        (b"binf\x00\x00\x00?", "xgboost-binary"),
        (OLD_XGBOOST, "xgboost-binary"),
        (OLD_XGBOOST.replace(b"gbtree", b"gbshrb"), "unknown"),
        (pickle.dumps([1], protocol=2), "pickle"),
        (pickle.dumps([1], protocol=5), "pickle"),
        (b"id,age\n1,2\n", "unknown"),
        (b"\x00\x01\x02", "unknown"),
    ],
)
def test_formats_are_told_by_content(data: bytes, expected: str) -> None:
    """A name says nothing, the first bytes do."""
    assert files.recognise(data) == expected


@pytest.mark.parametrize("name", ["dump.json", "dump.txt", "dump", "model.pkl"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_whatever_it_is_called(name: str, packed: bool, tmp_path: Path) -> None:
    """Path and hash are those of the file on disk; gzip is unpacked on the way."""
    path = tmp_path / name
    data = json.dumps([STUMP]).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    for model in (path, str(path)):
        ensemble = xcount.load(model)
        assert ensemble.feature_names == ("f0", "f1")
        assert ensemble.path == str(path)
        assert ensemble.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert ensemble.predict([[0, 0.5], [0, 0.25], [0, float("nan")]])[:, 0].tolist() == [2, -1, 2]


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    """Files that were packed piece by piece are one file, as for gunzip; zeros may follow."""
    path = tmp_path / "dump.json.gz"
    data = json.dumps([STUMP, STUMP]).encode()
    middle = len(data) // 2
    pieces = [gzip.compress(piece) for piece in (data[:middle], b"", data[middle:])]
    path.write_bytes(b"".join(pieces) + b"\0" * 100)
    assert xcount.load(path).n_trees == 2


def test_lightgbm_text_with_windows_line_ends(tmp_path: Path) -> None:
    """Line ends do not matter."""
    path = tmp_path / "model.txt"
    path.write_bytes(LIGHTGBM.replace("\n", "\r\n").encode())
    assert xcount.load(path).predict([[0.5], [0.6]])[:, 0].tolist() == [1, 2]


def test_a_dump_may_hold_its_trees_as_strings(tmp_path: Path) -> None:
    """``json.dump(booster.get_dump(dump_format="json"))`` writes an array of strings."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([json.dumps(STUMP), json.dumps(LEAF)]))
    assert xcount.load(path).predict([[0, 0]])[0, 0] == 0.5


def test_named_features_of_a_dump_are_numbered_as_they_occur(tmp_path: Path) -> None:
    """The order of first occurrence, tree by tree."""
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([STUMP | {"split": "wage"}, STUMP | {"split": "age"}]))
    assert xcount.load(path).feature_names == ("wage", "age")


def test_an_ensemble_is_loaded_as_it_is() -> None:
    """What is loaded already needs no loading."""
    ensemble = figure_1()
    assert xcount.load(ensemble) is ensemble


def bad_file(tmp_path: Path, kind: str) -> Path:
    """Make a path that holds no model."""
    path = tmp_path / "model.json"
    contents: dict[str, bytes] = {
        "empty": b"",
        "blank": b" \n\n ",
        "table": b"age,sex\n1,2\n",
        "truncated gzip": gzip.compress(b"[" + b" " * 10_000 + b"]")[:-12],
        "broken gzip": b"\x1f\x8b\x08\x00" + b"\xff" * 50,
        "more after gzip": gzip.compress(b"[]") + b"rubbish",
        "truncated member": gzip.compress(b"[") + gzip.compress(b"]" * 100)[:-5],
        "other JSON": b'{"a": 1}',
        "large": b"[" + b" " * 2000 + b"]",
        "large unpacked": gzip.compress(b"[" + b" " * 2000 + b"]"),
        "large together": gzip.compress(b"[" + b" " * 600) + gzip.compress(b" " * 600 + b"]"),
    }
    if kind == "directory":
        path.mkdir()
    elif kind in contents:
        path.write_bytes(contents[kind])
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absent", "no such file"),
        ("directory", "is a directory"),
        ("empty", "the file is empty"),
        ("blank", "the file is empty"),
        ("table", "not a model file"),
        ("truncated gzip", "the gzip'd file is truncated"),
        ("broken gzip", "broken gzip data"),
        ("more after gzip", "7 bytes after the gzip'd data"),
        ("truncated member", "the gzip'd file is truncated"),
        ("other JSON", "JSON, but not a model"),
        ("large", "at most 1000 are read"),
        ("large unpacked", "unpacks to more than 1000 bytes"),
        ("large together", "unpacks to more than 1000 bytes"),
    ],
)
def test_what_is_no_model_file_is_refused_in_one_line(
    kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line begins with the path."""
    path = bad_file(tmp_path, kind)
    if kind.startswith("large"):
        defaults = {**(files.read.__kwdefaults__ or {}), "max_bytes": 1000}
        monkeypatch.setattr(files.read, "__kwdefaults__", defaults)
    with pytest.raises(ModelFormatError, match=message) as caught:
        xcount.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_path_with_a_null_byte_is_refused() -> None:
    """An operating system's complaint becomes ours."""
    with pytest.raises(ModelFormatError, match="cannot be read"):
        xcount.load("a\0b")


def test_a_pickle_is_not_opened_without_trust(tmp_path: Path) -> None:
    """Its code does not run, and the message names the option."""
    path = tmp_path / "model.pkl"
    marker = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return (marker.write_text, ("ran",))

    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(UnsupportedModelError, match="pass --trust-pickle"):
        xcount.load(path)
    assert not marker.exists()


def test_old_binary_models_are_refused_by_name(tmp_path: Path) -> None:
    """The message says how to convert them."""
    path = tmp_path / "old.model"
    for data in (b"binf" + bytes(100), OLD_XGBOOST):
        path.write_bytes(data)
        with pytest.raises(UnsupportedModelError, match=r"old binary format.*save it as JSON"):
            xcount.load(path)


def test_a_trusted_pickle_of_another_library_is_checked_too(tmp_path: Path) -> None:
    """A pickled XGBoost model loads and is compared with itself."""
    xgb = pytest.importorskip("xgboost")
    rows = np.random.default_rng(0).normal(size=(50, 2))
    model = xgb.XGBRegressor(n_estimators=2, n_jobs=1).fit(rows, rows[:, 0])
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(model))
    ensemble = xcount.load(path, trust_pickle=True, check=rows)
    assert ensemble.n_trees == 2
    assert ensemble.path == str(path)


def test_a_zip_that_is_no_skops_file_is_refused(tmp_path: Path) -> None:
    """Any zip archive begins like a skops file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hello")
    path = tmp_path / "model.skops"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(xcount.XCountError, match=r"^.*model\.skops"):
        xcount.load(path)


@pytest.mark.parametrize("model", [7, None, [figure_1()], object(), {"a": 1}, len])
def test_what_is_no_model_is_refused(model: object) -> None:
    """The message names the type."""
    with pytest.raises(UnsupportedModelError, match=r"cannot load a builtins\."):
        xcount.load(model)


def test_reading_a_file_imports_no_machine_learning_library(tmp_path: Path) -> None:
    """Start-up time matters: XGBoost and LightGBM files are read with numpy alone."""
    (tmp_path / "dump.json").write_text(json.dumps([STUMP]))
    (tmp_path / "lightgbm.txt").write_text(LIGHTGBM)
    code = f"""
import sys, xcount
for name in ("dump.json", "lightgbm.txt"):
    xcount.load({str(tmp_path)!r} + "/" + name)
heavy = {{"xgboost", "lightgbm", "sklearn", "catboost", "pandas", "scipy", "treelite"}}
print(sorted(heavy & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
