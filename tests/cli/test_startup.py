"""Start-up: what a command imports. Times are measured by ``benchmarks/startup.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {"xgboost", "lightgbm", "sklearn", "pandas", "catboost", "matplotlib", "scipy"}

MODULES_OF_A_COUNT = {
    "": {"_core", "_version", "errors"},
    "cli": {"app", "count", "output", "parameters", "progress"},
    "support": {
        *("dataclass", "interface", "nearest", "numerals", "process", "records", "shown"),
        *("spellings", "visible"),
    },
    "model": {"ensemble", "one_hot", "loaders"},
    "model.loaders": {"fields", "files", "meaning", "splits", "xgboost_json"},
    "question": {
        *("cell", "change", "change_fields", "domain", "flip", "gap", "grid", "guards"),
        *("probability", "query", "rules", "share", "values"),
    },
    "problem": {
        *("asked", "corner_question", "form", "gap_form", "integers", "laid_trees"),
        *("problem", "subproblem"),
    },
    "counters": {
        *("auto", "bounds", "corners", "cover", "engine", "exact", "known_counts", "profile"),
        *("settings", "side_by_side", "tally"),
    },
    "answers": {"count", "explanation", "measured", "result"},
}
"""What a small count of a gap may import, room by room: each module takes its time."""
MODULES_OF_A_TABLE = {"card", "numbers", "terminal", "text"}

PROGRAM = """
import sys
before = set(sys.modules)
from xcount.cli import main
status = main(sys.argv[1:])
print(*(set(sys.modules) - before), file=sys.stderr)
sys.exit(status)
"""


def modules_of(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return set(process.stderr.split())


def packages(modules: set[str]) -> set[str]:
    """Return the names of the packages that modules belong to."""
    return {name.partition(".")[0] for name in modules}


def test_version_imports_next_to_nothing() -> None:
    """Not even typing: three small modules of our own."""
    modules = modules_of("--version")
    assert {name for name in modules if name.startswith("xcount")} == {
        "xcount",
        "xcount.cli",
        "xcount._version",
    }
    assert not packages(modules) & {"numpy", "click", "rich", "typing", "re"}


def test_help_does_not_import_numpy() -> None:
    """What a command does is imported when it does it."""
    for arguments in (["--help"], ["count", "--help"], ["inspect", "--help"]):
        assert not packages(modules_of(*arguments)) & {"numpy", "rich", *LIBRARIES}


@pytest.mark.parametrize("json", [["--json"], []], ids=["json", "table"])
def test_count_imports_no_library_that_trains_models(figure_1_file: str, json: list[str]) -> None:
    """XGBoost's file is read without XGBoost; what is piped is printed without rich."""
    modules = modules_of("count", figure_1_file, "--sensitive", "age", "--gap", "80", *json)
    assert not packages(modules) & LIBRARIES
    assert not packages(modules) & {"rich", "hashlib"}
    used = {name for name in modules if name.partition(".")[0] == "xcount"}
    assert used <= modules_of_a_count(is_table=not json)


def test_a_command_imports_numpy_without_its_documentation(figure_1_file: str) -> None:
    """Docstrings that nobody reads take a twentieth of a count; the libraries do without them."""
    command = ["-m", "xcount", "count", figure_1_file, "--sensitive", "age", "--gap", "80"]
    process = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True
    )
    assert "numpy._core.numeric" in process.stderr
    assert "_add_newdocs" not in process.stderr
    program = "from xcount.cli import _leave_out_documentation\n_leave_out_documentation()\n"
    program += "".join(f"import {library}\n" for library in sorted(LIBRARIES))
    program += "import numpy\nassert not numpy.ndarray.sort.__doc__"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_whoever_imports_xcount_has_all_of_numpy() -> None:
    """Only a process that is the command's own leaves anything out."""
    program = """
import xcount.cli, xcount.answers.count, numpy
xcount.cli.main(["--version"])
assert "Sort an array" in numpy.ndarray.sort.__doc__
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def modules_of_a_count(*, is_table: bool) -> set[str]:
    """Return the names of the modules that a count may import."""
    rooms = MODULES_OF_A_COUNT | ({"report": MODULES_OF_A_TABLE} if is_table else {})
    packages = {room: f"xcount.{room}".rstrip(".") for room in rooms}
    return {*packages.values()}.union(
        f"{packages[room]}.{name}" for room, names in rooms.items() for name in names
    )
