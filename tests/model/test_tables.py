"""Tables in every shape, and what is said when one does not fit."""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcount.errors import TableError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.model.loaders import files
from xcount.model.tables import read_table
from xcount.question.domain import Domain

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

MODEL = Ensemble(
    (
        Feature("age"),
        Feature("job", categories=(0, 1, 2), labels=("admin", "clerk", "3")),
        Feature("member"),
    ),
    (),
)
COLUMNS: dict[str, list[Any]] = {
    "income": [1, 2, 3],
    "member": [True, False, True],
    "job": ["clerk", "admin", "3"],
    "age": [20.5, None, 40.0],
}
ROWS = [[20.5, 1, 1], [np.nan, 0, 0], [40, 2, 1]]


def _csv(path: Path) -> Path:
    path.write_text("income,member,job,age\n1,True,clerk,20.5\n2,False, admin,\n3,1,3,4e1\n")
    return path


def _parquet(path: Path) -> Path:
    pl.DataFrame(COLUMNS).write_parquet(path)
    return path


def _feather(path: Path) -> Path:
    pl.DataFrame(COLUMNS).write_ipc(path)
    return path


def _gzip(path: Path) -> Path:
    path.write_bytes(gzip.compress(_csv(path).read_bytes()))
    return path


SHAPES = {
    "mapping": lambda path: COLUMNS,
    "pandas": lambda path: pd.DataFrame(COLUMNS),
    "pandas-category": lambda path: pd.DataFrame(COLUMNS).astype({"job": "category"}),
    "polars": lambda path: pl.DataFrame(COLUMNS),
    "polars-lazy": lambda path: pl.DataFrame(COLUMNS).lazy(),
    "polars-category": lambda path: pl.DataFrame(COLUMNS).with_columns(
        pl.col("job").cast(pl.Categorical)
    ),
    "pyarrow": lambda path: pa.table(COLUMNS),
    "csv": _csv,
    "csv.gz": _gzip,
    "parquet": _parquet,
    "feather": _feather,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_rows(shape: str, tmp_path: Path) -> None:
    """Columns are matched by name, labels become codes, empty is NaN."""
    table = read_table(SHAPES[shape](tmp_path / f"data.{shape}"), MODEL)
    np.testing.assert_array_equal(table.rows, ROWS)
    assert table.other_columns == ("income",)
    assert table.n_rows == 3


def test_arrays_are_matched_by_position() -> None:
    """An array has no names; its columns are the features in order."""
    np.testing.assert_array_equal(read_table(np.array(ROWS), MODEL).rows, ROWS)
    structured = np.array([(1.0, 2, 20.0)], dtype=[("member", "f8"), ("job", "i4"), ("age", "f4")])
    np.testing.assert_array_equal(read_table(structured, MODEL).rows, [[20, 2, 1]])


def test_a_csv_of_numbers_alone_has_no_header(tmp_path: Path) -> None:
    """Without names the columns are the features in order, and no row is lost."""
    path = tmp_path / "t.csv"
    path.write_text("1,0,5\n2,1,6\n")
    np.testing.assert_array_equal(read_table(path, MODEL).rows, [[1, 0, 5], [2, 1, 6]])


def test_pandas_categories_without_labels_are_codes() -> None:
    """A library that keeps no labels was trained on the codes that pandas assigns."""
    model = Ensemble((Feature("job", categories=(0, 1)),), ())
    frame = pd.DataFrame({"job": pd.Categorical(["b", "a", None], categories=["a", "b"])})
    np.testing.assert_array_equal(read_table(frame, model).rows[:, 0], [1, 0, np.nan])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": None, "Age ": [1, 2, 3]}, r"lacks column 'age'.*is 'Age ' meant to be 'age'"),
        ({"age": None}, r"lacks column 'age', which the model needs; .*unknown column 'income'"),
        (
            {"age": [1, 2, "old"]},
            r"column 'age', row 2 \(counted from 0\): 'old' is text, the model takes numbers",
        ),
        ({"age": [1, [2], 3]}, r"column 'age', row 1 \(counted from 0\): \[2\] is of type list"),
        (
            {"job": ["clerk", "king", "3"]},
            r"column 'job', row 1 \(counted from 0\): 'king' is no category.*'admin'",
        ),
        ({"job": [0, 1, 7]}, r"column 'job', row 2 \(counted from 0\): 7 is no category"),
        ({"age": [1, 2]}, "differ in length"),
        ({"age": [], "job": [], "member": [], "income": []}, "no rows"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    """The error names the column, the row, the value and what was expected."""
    columns = {name: values for name, values in (COLUMNS | change).items() if values is not None}
    with pytest.raises(TableError, match=message):
        read_table(columns, MODEL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (
            b"age,job,member\n1,2\n",
            r"row 0 \(counted from 0; line 2 of the file\): 2 fields, where the first line has 3",
        ),
        (b"1,2\n", "2 columns without names, the model has 3 features"),
        (b"\xff\xfe\x00", "neither Parquet nor CSV"),
        (b"PAR1garbage", "no readable Parquet"),
        (b"ARROW1garbage", "no readable Arrow"),
        (b"\x1f\x8bgarbage", "broken gzip"),
        (gzip.compress(b"", mtime=0)[:10] + b"\x07" + bytes(20), "broken gzip"),
        (gzip.compress(b"age,job,member\n1,2,3\n", mtime=0)[:-9], "truncated"),
        (b"age,age,job,member\n1,1,1,1\n", "has column 'age' more than once"),
        (b"age,job,member\n", "no rows"),
        (b"age;job;member\n1;2,5;3\n", "separated by semicolons; XCount reads .* commas"),
        (b"1\t2\t3\n", "separated by tabs"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    """A file that cannot be read says why, with its name."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message) as error:
        read_table(path, MODEL)
    assert str(path) in str(error.value)


def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables are read within the limits of model files."""
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1000)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"age,job,member\n" + b"1,2,3\n" * 1000))
    with pytest.raises(TableError, match="unpacks to more than 1000 bytes"):
        read_table(path, MODEL)


def test_names_that_are_numbers_are_names(tmp_path: Path) -> None:
    """A first line of the model's names is no row; other numbers are one."""
    model = Ensemble((Feature("0"), Feature("1")), ())
    path = tmp_path / "t.csv"
    path.write_text("0,1\n5,6\n")
    assert read_table(path, model).rows.tolist() == [[5, 6]]
    path.write_text("7,8\n5,6\n")
    assert read_table(path, model).rows.tolist() == [[7, 8], [5, 6]]
    path.write_text("1,0\n5,6\n")
    with pytest.raises(TableError, match="names in another order, or a row"):
        read_table(path, model)


def test_spaces_around_names_are_the_models(tmp_path: Path) -> None:
    """A name that the model has with spaces is found with them; others lose theirs."""
    path = tmp_path / "t.csv"
    path.write_text(" age, sex \n5,6\n")
    for names in ((" age", " sex "), ("age", "sex"), (" age", "sex")):
        model = Ensemble(tuple(map(Feature, names)), ())
        assert read_table(path, model).rows.tolist() == [[5, 6]]


@pytest.mark.parametrize("write", [_csv, _parquet, _feather, _gzip])
def test_a_pipe_is_read_once(write: Callable[[Path], Path], tmp_path: Path) -> None:
    """Nothing of it is lost, however much there is."""
    content, pipe = write(tmp_path / "t").read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    table = read_table(pipe, MODEL)
    writer.join()
    np.testing.assert_array_equal(table.rows, ROWS)


def test_columns_are_lists_and_large_integers_infinite() -> None:
    """A mapping of single values is no table; a number beyond floats is beyond any threshold."""
    model = Ensemble((Feature("a"),), ())
    for column in (1, "text"):
        with pytest.raises(TableError, match="not a list of values"):
            read_table({"a": column}, model)
    assert read_table({"a": [10**400, -(10**400)]}, model).rows.tolist() == [[np.inf], [-np.inf]]


def test_absent_files_and_foreign_objects(tmp_path: Path) -> None:
    """What is no table at all says what would be one."""
    with pytest.raises(TableError, match="No such file"):
        read_table(tmp_path / "none.csv", MODEL)
    with pytest.raises(TableError, match=r"from builtins\.int; give a CSV"):
        read_table(3, MODEL)
    with pytest.raises(TableError, match="two dimensions"):
        read_table(np.zeros(3), MODEL)


def test_rows_are_counted_from_0_in_messages_and_csv_has_lines(tmp_path: Path) -> None:
    """A line is that of a text editor: with blank lines, and with line ends inside quotes."""
    path = tmp_path / "t.csv"
    path.write_text('age,job,member,note\n\n1,clerk,1,"two\nlines"\n\n2,king,0,\n')
    expected = r"column 'job', row 1 \(counted from 0; line 6 of the file\): 'king' is no category"
    with pytest.raises(TableError, match=expected):
        read_table(path, MODEL)
    path.write_text("1,0,5\n2,1,x\n")
    with pytest.raises(TableError, match=r"row 1 \(counted from 0; line 2 of the file\): 'x'"):
        read_table(path, MODEL)


def test_rows_of_one_hot_groups_are_counted_alike(tmp_path: Path) -> None:
    """In a file with the line, in memory without."""
    model = ensemble_of((0, 0.5, 0.0, 1.0), (1, 0.5, 0.0, 2.0))
    grouped = Domain.of(one_hot="kind=f0,f1").pulled_back(model)
    path = tmp_path / "t.csv"
    path.write_text("f0,f1\n1,0\n1,1\n")
    with pytest.raises(TableError, match=r"first in row 1 \(counted from 0; line 3 of the file"):
        read_table(path, grouped)
    with pytest.raises(TableError, match=r"first in row 1 \(counted from 0\);"):
        read_table(np.array([[1.0, 0.0], [1.0, 1.0]]), grouped)


def test_rows_that_break_groups_are_left_out_for_their_first_reason() -> None:
    """A row counts once, whatever else is wrong with it; its categories are missing."""
    model = ensemble_of((0, 0.5, 0.0, 1.0), (1, 0.5, 0.0, 2.0), (2, 0.5, 0.0, 1.0), (3, 0.5, 0, 1))
    grouped = Domain.of(one_hot=["kind=f0,f1", "size=f2,f3"]).pulled_back(model)
    table = {
        "f0": [1, 0, 1, 0, 1],
        "f1": [0, 0, 1, 1, 0],
        "f2": [1, 1, 1, 1, 0],
        "f3": [0, 1, 1, "tall", 1],
    }
    found = read_table(table, grouped, leave_out=True)
    kind = "the one-hot group kind is broken: not exactly one of its columns is 1"
    assert found.left_out == {"f3 is no number": (3,), kind: (1, 2)}
    assert found.rows[[0, 4]].tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert np.isnan(found.rows[1:3]).all()


def test_csv_needs_no_data_library(tmp_path: Path) -> None:
    """Reading CSV imports neither pandas nor polars nor pyarrow."""
    path = tmp_path / "t.csv"
    path.write_text("f0,f1\n1,2\n")
    code = (
        "import sys; from xcount.model.tables import read_table;"
        "from xcount.model.examples import figure_1;"
        "read_table(sys.argv[1], figure_1());"
        "assert not {'pandas', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


@pytest.mark.parametrize("seed", range(30))
def test_csv_is_split_as_python_splits_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotes, line ends, blank lines, any size of blocks, any number of threads."""
    random = np.random.default_rng(seed)
    monkeypatch.setattr(files, "BLOCK_BYTES", int(random.integers(3, 60)))
    end = ("\n", "\r\n", "\r")[seed % 3]
    notes = ["", "plain", '"a, b"', '"two' + end + 'lines"', '"say ""x"""', 'in"side']
    lines = ["note,age,member"]
    for _ in range(20):
        number = random.choice(["", "NA", "1", "-2.5", "1e3", " 7 ", "1e400", "True", "inf"])
        lines.append(f"{random.choice(notes)},{number},{random.integers(3)}")
        lines += [""] * int(random.integers(2))
    text = end.join(lines)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    model = Ensemble((Feature("age"), Feature("member")), ())
    table = read_table(path, model, n_threads=1 + seed % 3)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records, ends = zip(*((fields, reader.line_num) for fields in reader if fields), strict=True)
    words = {"": np.nan, "NA": np.nan, "True": 1.0}
    expected = [[words[f] if f in words else float(f) for f in own] for _, *own in records[1:]]
    np.testing.assert_array_equal(table.rows, expected)
    assert [table.row_name(i) for i in range(20)] == [
        f"row {i} (counted from 0; line {ends[i + 1]} of the file)" for i in range(20)
    ]


def test_many_different_numbers_are_rounded_as_python_rounds_them(tmp_path: Path) -> None:
    """A column of 80,000 numbers, some of them missing or no number."""
    random = np.random.default_rng(3)
    sizes = 10.0 ** random.integers(-300, 300, 80_000)
    texts = [repr(x) for x in (random.normal(size=80_000) * sizes).tolist()]
    texts[7], texts[70_000], texts[79_999] = "NA", "", "1e999"
    path, model = tmp_path / "t.csv", Ensemble((Feature("a"),), ())
    path.write_text("a\n" + "\n".join(text or '""' for text in texts))
    words = {"NA": np.nan, "": np.nan}
    expected = [words.get(text) or float(text) for text in texts]
    np.testing.assert_array_equal(read_table(path, model).rows[:, 0], expected)
    texts[75_000] = texts[76_000] = "many"
    path.write_text("a\n" + "\n".join(text or '""' for text in texts))
    with pytest.raises(
        TableError, match=r"row 75000 \(counted from 0; line 75002 .*: 'many' is text"
    ):
        read_table(path, model)
    assert read_table(path, model, leave_out=True).left_out == {"a is no number": (75_000, 76_000)}


@pytest.mark.parametrize("number", ["1_2", "\uff11\uff12", "1 2", "0x10", "1,5", "--1"])
def test_what_only_python_takes_for_a_number_is_none(number: str, tmp_path: Path) -> None:
    """Alone in its column as beside others, in files and in lists."""
    path, model = tmp_path / "t.csv", Ensemble((Feature("a"),), ())
    path.write_text(f'a\n"{number}"\n', encoding="utf-8")
    for data in (path, {"a": [number]}):
        with pytest.raises(TableError, match=f"'{number}' is text, the model takes numbers"):
            read_table(data, model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('age,job,member\n1,clerk,"0\n', r"row 0 .*line 2 of .*: the file ends inside quotes"),
        ('age,job,member\n1,"clerk"s,0\n', r"row 0 .*line 2 of .*must follow a closing quote"),
        (
            'age,"job"x,member\n',
            "line 1: a comma or the end of the line must follow a closing quote",
        ),
        ("age,job,member\n1," + "x" * 131_073 + ",2\n", "row 0 .*more than 131,072 characters"),
        (
            "age,job,member\n1,clerk,0\n1,clerk,0,\n",
            "row 1 .*: 4 fields, where the first line has 3",
        ),
    ],
)
def test_broken_records_are_named(text: str, message: str, tmp_path: Path) -> None:
    """With the row and the line at which they end."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=message):
        read_table(path, MODEL)


def test_text_that_is_not_utf_8_is_named_by_its_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a character is cut by the end of a block."""
    path, content = tmp_path / "t.csv", "age,job,member,ö\n1,clerk,0,é\n".encode()
    for size in range(3, 40):
        monkeypatch.setattr(files, "BLOCK_BYTES", size)
        path.write_bytes(content)
        assert read_table(path, MODEL).other_columns == ("ö",)
        path.write_bytes(content + b"2,clerk,\xe9,\n")
        with pytest.raises(TableError, match=f"byte {len(content) + 8}: invalid"):
            read_table(path, MODEL)
