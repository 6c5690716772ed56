"""What docs/newcomer.md tells people to type works, row by row."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tools import newcomer_tasks
from tools.newcomer_tasks import Done, Task, tasks_of, typed

LIBRARIES = (
    *("xgboost", "lightgbm", "catboost", "sklearn", "skops", "distributed", "matplotlib"),
    *("pandas", "nbclient", "ipykernel"),
)
TASKS = tasks_of(newcomer_tasks.PAGE.read_text())

pytestmark = pytest.mark.xdist_group("newcomer")  # one session, typed once


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[Task, Done]:
    """Return what became of every row."""
    for library in LIBRARIES:
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("newcomer")
    return {each.task: each for each in typed(TASKS, folder)}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.place}: {task.code[:60]}")
def test_a_task_is_done_by_what_its_row_says(done: dict[Task, Done], task: Task) -> None:
    """Without an error, and without a warning from Python."""
    assert done[task].status == 0, done[task].printed
    assert "Traceback" not in done[task].printed
    assert "Warning" not in done[task].printed


def test_files_that_rows_speak_of_are_made(done: dict[Task, Done], tmp_path: Path) -> None:
    """The session goes on in one folder, from row to row."""
    assert len(done) == len(TASKS)
    rows = [
        Task("write", "shell", "echo 1 > a.txt"),
        Task("read", "Python", "print(open('a.txt').read())"),
    ]
    assert [each.printed.strip() for each in typed(rows, tmp_path)] == ["", "1"]


def test_a_row_that_fails_is_found_out(tmp_path: Path) -> None:
    """Of either kind."""
    rows = [Task("", "shell", "false"), Task("", "Python", "1 / 0"), Task("", "shell", "true")]
    assert [each.status for each in typed(rows, tmp_path)] == [1, 1, 0]


def test_every_row_of_the_page_is_typed() -> None:
    """A row in another form would not be noticed otherwise."""
    lines = newcomer_tasks.PAGE.read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| type | s |" not in line]
    assert len(rows) == len(TASKS) - 1  # the imports are no row
    assert "<!-- begin times -->" in newcomer_tasks.PAGE.read_text()
    assert doctest.testmod(newcomer_tasks).failed == 0
