"""What several test files share."""

from __future__ import annotations

import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import effort
import pytest
from hypothesis import settings
from model_files import FIGURE_1, write_model

from xcount.cli import main
from xcount.counters import auto, exact
from xcount.errors import JournalWarning, QueryWarning
from xcount.measures import weigh

# Libraries that train models wait for their threads in busy loops: several tests at a time would
# take the cores from each other. One thread also trains the same model everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in the background with Ctrl-C ignored: tests that send it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(effort.PROFILE)


def pytest_report_header() -> str:
    """Say how much is tried, and with which seed to try it again."""
    return f"XCOUNT_TEST_PROFILE={effort.PROFILE} XCOUNT_TEST_SEED={effort.FIRST_SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose what the profile runs, and start with what takes long.

    At the end, no process is to wait for another's last test.
    """
    left_out = effort.left_out(items)
    config.hook.pytest_deselected(items=left_out)
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@dataclass(frozen=True)
class Run:
    """What a command left behind."""

    status: int
    out: str
    err: str


Command = Callable[..., Run]


@pytest.fixture(autouse=True)
def digits_as_they_were() -> Iterator[None]:
    """Leave the limit of an integer's digits as it was: commands in this process lift it."""
    digits = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(digits)


@pytest.fixture
def xcount_command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command line in this process; our warnings are its notes."""

    def run(*arguments: object) -> Run:
        with warnings.catch_warnings():
            for kind in (QueryWarning, JournalWarning):
                warnings.filterwarnings("always", category=kind)
            status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Run(status, captured.out, captured.err)

    return run


@pytest.fixture
def no_corner_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no count visit all regions by itself: for tests of what else there is."""
    for home in (auto, exact, weigh):
        monkeypatch.setattr(home, "corner_seconds", lambda problem, settings, **_: math.inf)


@pytest.fixture
def figure_1_file(tmp_path: Path) -> str:
    """Return a file with the paper's example; its features are called age and sex."""
    return write_model(tmp_path / "figure 1.json", FIGURE_1, ["age", "sex"])
