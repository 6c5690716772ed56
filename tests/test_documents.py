"""What the documents show runs, and comes out as they say."""

from __future__ import annotations

import doctest
import gzip
import importlib
import os
import re
from pathlib import Path

import pytest

import xcount
from tools import commands_page, examples, python_page, reference, schema_page
from tools.examples import blocks_of, matches, run_page, updated
from xcount.verified.counter import NATIVE, find_node

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
EXTRACT = "../examples/adult-extract.csv.gz"
MODULES = {"interpret-core": "interpret", "xgboost-cpu": "xgboost", "scikit-learn": "sklearn"}
"""Packages that are imported by another name."""


def name_of(page: Path) -> str:
    """Return a page's place in the repository."""
    return str(page.relative_to(ROOT))


def shared_adult() -> Path:
    """Return the whole Adult data, or skip."""
    path = Path(os.environ.get("XCOUNT_SHARED", ROOT.parent / "shared"), "data", "adult.csv.gz")
    if not path.exists():
        pytest.skip(f"the whole Adult data is not there: {path}")
    return path


def with_examples() -> list[Path]:
    """Return the pages that show something to run."""
    return [page for page in PAGES if any(block.is_run for block in blocks_of(page.read_text()))]


@pytest.mark.slow
@pytest.mark.parametrize("page", with_examples(), ids=name_of)
def test_what_a_page_shows_is_what_comes_out(page: Path, tmp_path: Path) -> None:
    """Commands and code of a page work one after the other, with the outputs shown."""
    text = page.read_text()
    for package in examples.packages_of(text):
        pytest.importorskip(MODULES.get(package, package))
    if "people.parquet" in text:
        pytest.importorskip("pyarrow")
    if "xcount verify " in text and find_node() is None and not NATIVE.exists():
        pytest.skip("node is not installed, which runs the verified counter")
    assert "\n\n".join(run_page(text, tmp_path).differences) == ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_example_is_left_out_in_silence(page: Path) -> None:
    """What looks like a command runs, or a comment above it says why not."""
    silent = [
        (block.line, block.lines[0])
        for block in blocks_of(page.read_text())
        if block.has_commands and not block.is_run and block.not_run is None
    ]
    assert silent == []


def test_most_pages_have_examples() -> None:
    """The search for blocks finds them."""
    names = [name_of(page) for page in with_examples()]
    assert {"README.md", "docs/index.md", "docs/tutorial.md", "docs/audit.md"} <= {*names}
    assert len(names) >= 10


@pytest.mark.scheduled
def test_the_tutorial_works_with_the_whole_data(tmp_path: Path) -> None:
    """As it says; the numbers are others, and so may be the verdicts."""
    pytest.importorskip("skops")
    text = (ROOT / "docs" / "tutorial.md").read_text()
    assert EXTRACT in text
    text = text.replace(EXTRACT, str(shared_adult()))
    text = re.sub(r"^\$ echo .*\n\d$", "", text, flags=re.MULTILINE)
    assert run_page(text, tmp_path, compare=False).differences == []


def test_the_extract_is_what_its_script_draws() -> None:
    """Rows of Adult, drawn with a fixed seed."""
    pytest.importorskip("pandas")
    path = ROOT / "examples" / "adult_extract.py"
    spec = importlib.util.spec_from_file_location("adult_extract", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert gzip.decompress(module.EXTRACT.read_bytes()).decode() == module.extract(shared_adult())


@pytest.mark.parametrize("name", reference.PAGES)
def test_what_is_made_from_the_code_is_current(name: str) -> None:
    """``python -m tools.reference`` makes it so."""
    text = (ROOT / name).read_text()
    assert "<!-- begin " in text
    assert reference.current(text) == text


def test_the_python_page_has_everything_that_is_public() -> None:
    """Each name of the package that is a function or a result."""
    shown = {name.rpartition(".")[2] for name in python_page.NAMES} | {"XCountError"}
    inner = {"Ensemble", "Grid", "Query", "__version__"}  # for those who know the code
    assert {*xcount.__all__} - inner <= shown


@pytest.mark.parametrize("module", [commands_page, examples, python_page, reference, schema_page])
def test_the_tools_own_examples_hold(module: object) -> None:
    """Docstrings of the tools that make and run the documents."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


PAGE = """
<!-- beside: model.json -->

```console
$ echo one; echo two
one
two
$ false
$ echo $?
1
```

```python title="made.py"
print("made in 3.5 s")
```

```console
$ python made.py && ls \\
> made.py
made in 7 s
made.py
```

```python
x = 1
```

<!-- not run: it would end everything -->

```console
$ exit 7
```

```python
def test_that_holds():
    print(x + 1)
```

<!-- output -->

```text
2
```
"""


def test_a_page_is_one_session(tmp_path: Path) -> None:
    """Statuses, files, names and outputs go from block to block; times do not matter."""
    assert run_page(PAGE, tmp_path).differences == []
    assert (tmp_path / "model.json").exists()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("\none\n", "\nONE\n"),
        ("\n1\n", "\n0\n"),
        ("$ echo $?\n1\n", ""),
        ("made.py\n```\n", "another.py\n```\n"),
        ("x + 1", "x + 2"),
        ("x = 1", "x = y"),
        ("print(x + 1)", "raise AssertionError"),
    ],
)
def test_a_page_that_errs_is_found_out(tmp_path: Path, right: str, wrong: str) -> None:
    """A wrong output, a status that nobody expects, an exception, a test that fails."""
    assert right in PAGE
    assert run_page(PAGE.replace(right, wrong, 1), tmp_path).differences != []


def test_outputs_can_be_put_in_place(tmp_path: Path) -> None:
    """A page with other outputs becomes the page with the real ones."""
    changed = PAGE.replace("one\ntwo", "(output)", 1).replace("\n2\n", "\n(output)\n")
    assert updated(changed, run_page(changed, tmp_path, compare=False)) == PAGE.replace(
        "7 s", "3.5 s"
    )


def test_outputs_are_compared_line_by_line() -> None:
    """But for what changes from run to run; dots stand for whatever comes."""
    assert matches(["│ < 0.01 s, 41.5 MB   │"], ["│ 12 s, 7 MB │"])
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not matches(["a", "...", "d"], ["a", "b", "c"])
    assert not matches(["12 regions"], ["13 regions"])
    assert matches(["│ 2.0 % │ 1.8 to 2.2 % │"], ["│ 1.9 % │ 1.7 to 2.1 % │"])
    assert not matches(["│ 2.0 % │ 1.8 to 2.2 % │"], ["│ 1.9 % │ exact │"])
