"""Types what docs/newcomer.md says, row by row, and times it.

    python -m tools.newcomer_tasks           # in a fresh clone, with a fresh installation
    python -m tools.newcomer_tasks --here    # in a temporary folder, with what is installed

prints a table of tasks and seconds. What is committed is what is tried; installing needs the
network, and compiles.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.examples import blocks_of
from tools.sessions import Python, Shell

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "newcomer.md"
EXTRAS = "xgboost,lightgbm,catboost,sklearn,plots,cluster"
_ROW = re.compile(r"^\| (?P<task>[^|]+) \| (?P<place>shell|Python) \| `(?P<code>[^`]+)` \|$", re.M)


@dataclass(frozen=True, slots=True)
class Task:
    """A row of the page."""

    task: str
    place: str
    code: str


@dataclass(frozen=True, slots=True)
class Done:
    """A row that was typed: its status (1 for an exception in Python), and what was printed."""

    task: Task
    status: int
    printed: str
    seconds: float


def tasks_of(text: str) -> list[Task]:
    """Return what a page says to type; its blocks of Python come first.

    Example:
        >>> tasks_of("| look | shell | `ls` |")
        [Task(task='look', place='shell', code='ls')]
    """
    blocks = [Task("imports", "Python", b.text) for b in blocks_of(text) if b.language == "python"]
    return blocks + [Task(**found.groupdict()) for found in _ROW.finditer(text)]


def typed(tasks: list[Task], folder: Path) -> Iterator[Done]:
    """Type tasks in one folder: one shell, one interpreter."""
    with Shell(folder) as shell, Python(folder) as python:
        for task in tasks:
            started = time.monotonic()
            if task.place == "shell":
                status, printed = shell.run(task.code)
            else:
                status, printed = python.run(task.code, folder)
            yield Done(task, status, printed, time.monotonic() - started)


def report(done: Done) -> str:
    """Return a row of the table of times."""
    return f"| {done.task.task} | {done.task.place} | {done.seconds:.1f} |"


def here() -> int:
    """Type everything in a temporary folder; stop at the first thing that fails."""
    with tempfile.TemporaryDirectory() as folder:
        for done in typed(tasks_of(PAGE.read_text()), Path(folder)):
            print(report(done), flush=True)
            if done.status:
                print(f"{done.task.code}\nends with {done.status}:\n{done.printed}")
                return 1
    return 0


def in_a_clone() -> int:
    """Clone, install, and type everything there."""
    print("| task | in | seconds |\n|---|---|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "xcount"
        python = clone / ".venv" / "bin" / "python"
        steps = {
            "clone": ["git", "clone", "--quiet", str(ROOT), str(clone)],
            "make an environment": [sys.executable, "-m", "venv", str(clone / ".venv")],
            "install": [str(python), "-m", "pip", "install", "--quiet", f"{clone}[{EXTRAS}]"],
        }
        for name, command in steps.items():
            started = time.monotonic()
            subprocess.run(command, check=True)
            print(report(Done(Task(name, "shell", ""), 0, "", time.monotonic() - started)))
        command = [str(python), "-m", "tools.newcomer_tasks", "--here"]
        status = subprocess.run(command, cwd=clone, check=False).returncode
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end,", end=" ")
    print(f"Python {platform.python_version()}")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer_tasks", description=__doc__)
    parser.add_argument("--here", action="store_true", help="with what is installed")
    return here() if parser.parse_args().here else in_a_clone()


if __name__ == "__main__":
    sys.exit(main())
