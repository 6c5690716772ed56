"""Types what docs/newcomer.md says, row by row, and times it.

    python -m tools.newcomer_tasks            # in a fresh clone, with a fresh installation
    python -m tools.newcomer_tasks --update   # the same, and writes the seconds into the page
    python -m tools.newcomer_tasks --here     # in a temporary folder, with what is installed

prints a line per task. What is committed is what is tried; installing needs the network, and
compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.examples import blocks_of
from tools.sessions import Python, Shell

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "newcomer.md"
INSTALLED = "[xgboost,lightgbm,catboost,sklearn,plots,tables,cluster]"
JUPYTER = ("nbclient", "ipykernel")
_ROW = re.compile(
    r"^\| (?P<task>[^|]+) \| (?P<place>shell|Python) \| `(?P<code>[^`]+)` \|[ 0-9.<]*\|$",
    re.MULTILINE,
)
_TIMES = re.compile(r"(<!-- begin times -->\n\n).*?(<!-- end times -->)", re.DOTALL)


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
        >>> tasks_of("| look | shell | `ls` | 0.1 |")
        [Task(task='look', place='shell', code='ls')]
    """
    blocks = [Task("imports", "Python", b.text) for b in blocks_of(text) if b.language == "python"]
    return blocks + [Task(**found.groupdict()) for found in _ROW.finditer(text)]


def typed(tasks: Sequence[Task], folder: Path) -> Iterator[Done]:
    """Type tasks in one folder, beside the examples: one shell, one interpreter."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    with Shell(folder) as shell, Python(folder) as python:
        for task in tasks:
            started = time.monotonic()
            if task.place == "shell":
                status, printed = shell.run(task.code)
            else:
                status, printed = python.run(task.code, folder)
            yield Done(task, status, printed, time.monotonic() - started)


def with_times(text: str, times: Sequence[tuple[str, float]], about: str) -> str:
    """Return a page with the seconds of its rows, and with those of the steps before them.

    Example:
        >>> with_times("| look | shell | `ls` | |", [("clone", 2.0), ("look", 0.123)], "")
        '| look | shell | `ls` | 0.1 |'
    """
    n_rows = len(_ROW.findall(text))
    before, rows = times[: len(times) - n_rows], iter(times[len(times) - n_rows :])
    said = ", ".join(f"{task} {seconds_text(seconds)} s" for task, seconds in before)
    text = _TIMES.sub(lambda found: f"{found[1]}{said}; {about}\n\n{found[2]}", text)
    return _ROW.sub(
        lambda row: (
            f"| {row['task']} | {row['place']} | `{row['code']}` | {seconds_text(next(rows)[1])} |"
        ),
        text,
    )


def seconds_text(seconds: float) -> str:
    """Return seconds as a table has room for.

    Example:
        >>> seconds_text(0.01), seconds_text(1.26), seconds_text(123.4)
        ('< 0.1', '1.3', '123')
    """
    if seconds < 0.05:
        return "< 0.1"
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.1f}"


def here() -> int:
    """Type everything in a temporary folder; stop at the first thing that fails."""
    with tempfile.TemporaryDirectory() as folder:
        for done in typed(tasks_of(PAGE.read_text()), Path(folder)):
            print(json.dumps([done.task.task, done.seconds]), flush=True)
            if done.status:
                print(f"{done.task.code}\nends with {done.status}:\n{done.printed}")
                return 1
    return 0


def in_a_clone() -> list[tuple[str, float]]:
    """Clone, install, and type everything there; return what took how long."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "xcount"
        python = str(clone / ".venv" / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet"]
        steps = {
            "Clone": ["git", "clone", "--quiet", str(ROOT), str(clone)],
            "make an environment": [sys.executable, "-m", "venv", str(clone / ".venv")],
            "install XCount and the libraries": [*pip, f"{clone}{INSTALLED}", *JUPYTER],
        }
        times = []
        for name, command in steps.items():
            started = time.monotonic()
            subprocess.run(command, check=True)
            times.append((name, time.monotonic() - started))
            print(json.dumps(times[-1]), flush=True)
        command = [python, "-m", "tools.newcomer_tasks", "--here"]
        run = subprocess.run(command, cwd=clone, check=False, capture_output=True, text=True)
    print(run.stdout, run.stderr)
    if run.returncode:
        raise SystemExit(run.returncode)
    return times + [tuple(json.loads(line)) for line in run.stdout.splitlines()]


def measure(update: bool) -> None:
    """Type everything in a clone, and write the seconds into the page if asked."""
    times = in_a_clone()
    about = (
        f"measured on {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f} at the end, "
        f"Python {platform.python_version()}."
    )
    if update:
        PAGE.write_text(with_times(PAGE.read_text(), times, about))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer_tasks", description=__doc__)
    parser.add_argument("--here", action="store_true", help="with what is installed")
    parser.add_argument("--update", action="store_true", help="write the seconds into the page")
    options = parser.parse_args()
    if options.here:
        return here()
    measure(options.update)
    return 0


if __name__ == "__main__":
    sys.exit(main())
