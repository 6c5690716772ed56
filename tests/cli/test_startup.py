"""Start-up: what a command imports. Times are measured by ``python -m benchmarks.startup``."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {"xgboost", "lightgbm", "sklearn", "pandas", "catboost", "matplotlib", "scipy"}

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


def test_help_imports_no_library_that_trains_models() -> None:
    """Options are declared beside the functions that take them; the libraries come later."""
    for arguments in (["--help"], ["count", "--help"], ["inspect", "--help"]):
        assert not packages(modules_of(*arguments)) & {"rich", *LIBRARIES}


@pytest.mark.parametrize("json", [["--json"], []], ids=["json", "table"])
def test_count_imports_no_library_that_trains_models(figure_1_file: str, json: list[str]) -> None:
    """XGBoost's file is read without XGBoost; what is piped is printed without rich."""
    modules = modules_of("count", figure_1_file, "--sensitive", "age", "--gap", "80", *json)
    assert not packages(modules) & LIBRARIES
    assert not packages(modules) & {"rich", "hashlib"}
