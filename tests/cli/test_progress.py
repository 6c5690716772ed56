"""Progress: on a terminal, after a while, and gone when the run is over."""

from __future__ import annotations

import errno
import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from model_files import write_model
from terminal import stopped_when

from xcount.cli.progress import QUIET_SECONDS, ProgressLine
from xcount.counters.tally import Progress
from xcount.model.examples import adult_model_path
from xcount.runs.batch import BatchProgress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture(autouse=True)
def a_usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the environment say what a terminal's does."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def test_progress_waits_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the first second; then a line that is wiped at the end."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = Terminal()
    with ProgressLine(stream=stream) as line:
        now += QUIET_SECONDS / 2
        line.show_count(Progress(0.1, 0, 9))
        assert stream.getvalue() == ""
        now += QUIET_SECONDS
        line.show_count(Progress(0.5, 0, 9))
        line.show_count(Progress(0.6, 0, 9))  # too soon after the last
        assert "50%" in stream.getvalue()
        assert "60%" not in stream.getvalue()
    assert stream.getvalue().rstrip("\n").endswith("\x1b[2K")  # the line is erased
    assert "\x1b[?25h" in stream.getvalue()  # and the cursor is there again


@pytest.mark.parametrize("kind", ["auto", "plain"])
def test_without_a_terminal_a_line_comes_every_ten_seconds(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of a log: how long, how far, what; ``plain`` writes them to a terminal, too."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = io.StringIO() if kind == "auto" else Terminal()
    with ProgressLine(kind, stream) as line:
        for _ in range(50):
            now += 0.5
            line.show_count(Progress((now - 100) / 50, 0, 9, "masks counted"))
    assert stream.getvalue().splitlines() == [
        "    10 s   20%  0 .. 9  masks counted",
        "    20 s   40%  0 .. 9  masks counted",
    ]


def test_no_progress_is_shown_if_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a bar nor a line."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = Terminal()
    with ProgressLine("none", stream) as line:
        now += 60
        line.show_count(Progress(0.5, 0, 9))
    assert stream.getvalue() == ""


def test_a_terminal_that_has_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be drawn is not; the run goes on, and ends."""

    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, text)

    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with ProgressLine(stream=Gone()) as line:
        for _ in range(2):
            now += 2 * QUIET_SECONDS
            line.show_count(Progress(0.5, 0, 9))


def test_an_interrupt_waits_for_the_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of the first drawing is heard after it, and the terminal is cleaned."""
    from rich.progress import Progress as Bar

    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    start = Bar.start

    def be_interrupted(bar: Bar) -> None:
        signal.raise_signal(signal.SIGINT)
        start(bar)

    monkeypatch.setattr(Bar, "start", be_interrupted)
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), ProgressLine(stream=stream) as line:  # noqa: PT012  # one drawing
        now += 2 * QUIET_SECONDS
        line.show_count(Progress(0.5, 0, 9))
    assert "50%" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_names_cannot_move_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control characters and markup in the names of features are shown, not obeyed."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = Terminal()
    with ProgressLine(stream=stream) as line:
        now += 2 * QUIET_SECONDS
        line.show_batch(BatchProgress(0, 1, 0.0, ("a\x1b[2Jb\r", "[red]c[/]")))
    assert "\x1b[2J" not in stream.getvalue()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert r"a\x1b[2Jb\r, [red]c[/]" in plain


def test_a_search_has_no_false_fraction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows how far a search is, no percentage is shown."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = Terminal()
    with ProgressLine(stream=stream) as line:
        now += 2 * QUIET_SECONDS
        line.show_search(Progress(1.0, 0, 9, "looking for witnesses"))
    assert "looking for witnesses" in stream.getvalue()
    assert "%" not in stream.getvalue()


def test_rich_is_not_imported_without_a_terminal() -> None:
    """A run whose errors go to a file does not pay for what it does not show."""
    program = """
import sys
from xcount.cli.progress import ProgressLine
from xcount.counters.tally import Progress
line = ProgressLine()
line._next_draw = 0.0
with line:
    line.show_count(Progress(0.5, 0, 9))
assert "rich" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=True)


COLUMNS = (
    "age,workclass,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,native_country"
)


@pytest.fixture
def long_search(tmp_path: Path) -> list[object]:
    """Return a command that looks for the witnesses nearest to thousands of rows."""
    table = tmp_path / "rows.csv"
    table.write_text("\n".join([COLUMNS, *["30,1,9,1,1,1,1,1,0,0,40,1"] * 9000]) + "\n")
    asked = ["--sensitive", "age", "--gap", "2.5", "-n", "9000", "--near", table]
    return ["witness", adult_model_path(), *asked]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_search_says_so(long_search: list[object], stop: signal.Signals) -> None:
    """Progress shows on a terminal; Ctrl-C then ends the search with one line and status 130."""
    run = stopped_when("looking for witnesses", long_search, stop)
    assert (run.status, run.out) == (130, "")
    assert run.left == "xcount: interrupted before the witnesses were found\r\n"


def test_a_search_keeps_to_its_time(long_search: list[object]) -> None:
    """When the time is over: one line, status 3, and no progress is left on the terminal."""
    run = stopped_when("nobody shows this", [*long_search, "--timeout", "1.5s"])
    assert (run.status, run.out) == (3, "")
    assert "time limit" in run.left
    assert run.left.count("\n") == 1


def test_an_audit_shows_progress(tmp_path: Path) -> None:
    """Stopped on a terminal, it leaves its table and how to continue, nothing of the progress."""
    # Every guard matters to the features asked about, so that no region can be left out.
    trees = [
        (s, 0.0, (f, float(t), 1.0, -1.0), 0.0)
        for s in (0, 1)
        for f in range(2, 13)
        for t in range(7)
    ]
    model = write_model(tmp_path / "endless.json", trees, [f"x{f}" for f in range(13)])
    asked = ["--sensitive", "x0", "--sensitive", "x1", "--gap", "1", "--method", "brute"]
    run = stopped_when("counts:", ["audit", model, *asked, "--jobs", "1"])
    assert "0 of 2 counts: x0" in run.shown
    assert run.status == 3
    resumed = "with --journal FILE, finished counts are kept, and --resume continues"
    assert run.left == f"xcount: interrupted; {resumed}\r\n"
    assert "Stopped after" in run.out
