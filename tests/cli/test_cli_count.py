"""``xcount count`` from the command line to its exit status."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import question_oracle
from conftest import Command
from json_contract import CONTRACT, MODEL_CONTRACT
from model_files import Nested, write_model
from terminal import stopped_when

import xcount
from xcount.answers.options import METHODS, PAPER_METHODS
from xcount.model.examples import adult_model_path
from xcount.question.share import Limit


def comb(n_features: int, n_guards: int) -> list[Nested]:
    """Return one stump per guard: ``(n_guards + 1) ** n_features`` regions."""
    return [(f, float(t), 1.0, -1.0) for f in range(n_features) for t in range(n_guards)]


def linked(n_features: int, n_guards: int) -> list[Nested]:
    """Return as many regions, none of which can be left out: each guard matters to the first."""
    rest = [
        (0, 0.0, (f, float(t), 1.0, -1.0), 0.0)
        for f in range(1, n_features)
        for t in range(n_guards)
    ]
    return [*comb(1, n_guards), *rest]


def all_tested(first: int, depth: int) -> Nested:
    """Return a full tree of that depth in which every test has a feature of its own."""
    if depth == 0:
        return 0.0
    right = first + 2 ** (depth - 1)
    return (first, 0.0, all_tested(first + 1, depth - 1), all_tested(right, depth - 1))


def names(n_features: int) -> list[str]:
    """Return that many names."""
    return [f"x{i}" for i in range(n_features)]


def test_a_count_is_a_table(xcount_command: Command, figure_1_file: str) -> None:
    """The question in words, the count, its share, and how it was found."""
    run = xcount_command("count", figure_1_file, "--sensitive", "age", "--gap", "80")
    assert (run.status, run.err) == (0, "")
    assert "move by more than 80 if only age changes, to any value?" in " ".join(run.out.split())
    for words in ("2 (exact)", "22.2 %", "4 guards"):
        assert words in run.out


def test_json_is_one_object_and_nothing_else(xcount_command: Command, figure_1_file: str) -> None:
    """Every promised field, with the promised types."""
    run = xcount_command("count", figure_1_file, "--sensitive", "age", "--gap", "80", "--json")
    assert (run.status, run.err) == (0, "")
    data = json.loads(run.out)
    assert data.keys() >= CONTRACT
    assert data["model"].keys() == MODEL_CONTRACT
    assert (data["count"], data["n_regions"], data["exact"]) == (2, 9, True)
    assert data["model"]["path"] == figure_1_file
    assert data["model"]["format"] == "xgboost-json"
    assert data["versions"]["xcount"] == xcount.__version__


@pytest.mark.parametrize("name", ["age", "f0", "0"])
def test_features_go_by_name_letter_and_index(
    xcount_command: Command, figure_1_file: str, name: str
) -> None:
    """Three ways to say the same."""
    run = xcount_command("count", figure_1_file, "--sensitive", name, "--gap", "80", "--json")
    data = json.loads(run.out)
    assert (data["count"], data["sensitive"]) == (2, ["age"])


@pytest.mark.parametrize(
    "words", [["--sensitive", "age,sex"], ["--sensitive", "sex", "--sensitive", "age"]]
)
def test_several_features_are_a_list_or_several_options(
    xcount_command: Command, figure_1_file: str, words: list[str]
) -> None:
    """All features may be sensitive: a valid question."""
    run = xcount_command("count", figure_1_file, *words, "--gap", "80", "--json")
    data = json.loads(run.out)
    assert (run.status, data["sensitive"], data["exact"]) == (0, ["age", "sex"], True)


def test_options_reach_the_count(xcount_command: Command, figure_1_file: str) -> None:
    """Each option shows up in the result."""
    words = "--gap 60 --distance any --precision 3 --epsilon 0.2 --delta 0.05 --seed 7"
    limits = "--timeout 1m --memory 1GiB --jobs 1 --method brute --missing cell --class 0"
    run = xcount_command(
        "count", figure_1_file, "--sensitive", "age", *words.split(), *limits.split(), "--json"
    )
    data = json.loads(run.out)
    assert run.status == 0
    assert (data["gap"], data["distance"], data["precision"]) == (60.0, "any", 3)
    assert (data["epsilon"], data["delta"], data["seed"]) == (0.2, 0.05, 7)
    assert (data["method"], data["class"]) == ("brute", 0)
    assert data["n_regions"] == 16  # each feature has a missing cell


@pytest.mark.parametrize(
    ("max_share", "status", "verdict"), [("50%", 0, "PASS"), ("0.2", 1, "FAIL")]
)
def test_the_exit_status_is_the_verdict(
    xcount_command: Command, figure_1_file: str, max_share: str, status: int, verdict: str
) -> None:
    """2 of 9 is at most a half, and more than a fifth."""
    question = ("count", figure_1_file, "--sensitive", "age", "--gap", "80")
    run = xcount_command(*question, "--max-share", max_share, "--json")
    assert (run.status, json.loads(run.out)["verdict"]) == (status, verdict)
    table = xcount_command(*question, "--max-share", max_share)
    assert table.status == status
    assert verdict in table.out


@pytest.mark.parametrize("extra", [[], ["--max-share", "10%"]])
def test_a_limit_leaves_bounds_and_status_3(
    xcount_command: Command, tmp_path: Path, extra: list[str]
) -> None:
    """Stopped before the asked accuracy, or UNDECIDED."""
    # Large enough that one slice of the enumeration, begun just in time, is but a small part.
    model = write_model(tmp_path / "m.json", comb(11, 4), names(11))
    question = ("--sensitive", "x0", "--gap", "1", "--method", "brute", "--timeout", "1ms")
    run = xcount_command("count", model, *question, *extra, "--json")
    data = json.loads(run.out)
    assert run.status == 3
    assert data["low"] < data["high"]
    assert data["stop_reason"] == "timeout"
    assert data["verdict"] == ("UNDECIDED" if extra else None)
    table = xcount_command("count", model, *question, *extra)
    assert table.status == 3
    assert "between" in table.out


def test_the_profile_lists_every_mask(xcount_command: Command, figure_1_file: str) -> None:
    """In words on the screen, as numbers in JSON."""
    question = ("count", figure_1_file, "--sensitive", "age", "--gap", "80", "--profile")
    assert "3 <= age < 4" in xcount_command(*question).out
    masks = json.loads(xcount_command(*question, "--json").out)["profile"]["masks"]
    assert sum(mask["low"] for mask in masks) == 2


@pytest.mark.slow
def test_counts_may_have_thousands_of_digits(xcount_command: Command, tmp_path: Path) -> None:
    """More digits than Python prints by default: every integer is there in full."""
    n_features = 1 + 2 * (2**13 - 1)
    trees = [(0, 0.0, 5.0, 0.0), all_tested(1, 13), all_tested(2**13, 13)]
    model = write_model(tmp_path / "wide.json", trees, names(n_features))
    question = ("count", model, "--sensitive", "0", "--gap", "1", "--method", "exact")
    run = xcount_command(*question, "--json")
    assert run.status == 0, run.err
    data = json.loads(run.out)
    assert data["count"] == data["n_regions"] == 2**n_features
    assert data["share"] == 1.0
    assert "e+4931 (exact)" in xcount_command(*question).out


def test_help_offers_every_method(xcount_command: Command) -> None:
    """The methods that exist are among those that are offered."""
    from xcount import counters

    text = xcount_command("count", "--help").out
    assert {*METHODS, *PAPER_METHODS} == set(counters.METHODS)
    assert all(method in re.sub(r"-\s+", "-", text) for method in counters.METHODS)


@pytest.mark.parametrize("text", ["", "%", "-1%", "101%", "1.01", "nan", "inf", "1/0", "much"])
def test_what_is_no_share(text: str) -> None:
    """A share lies between 0 and 1."""
    with pytest.raises(ValueError, match=r"share|between"):
        Limit.share(text)


def test_memory_that_is_held_already_is_noted(xcount_command: Command, figure_1_file: str) -> None:
    """In one line; a limit above it says nothing."""
    question = ("count", figure_1_file, "--sensitive", "age", "--gap", "80")
    run = xcount_command(*question, "--memory", "1MB")
    assert run.err.count("\n") == 1
    assert "MB already, model included, more than the 1 MB of --memory" in run.err
    assert xcount_command(*question, "--memory", "1000GB").err == ""


def test_help_says_what_a_time_limit_is_of(xcount_command: Command) -> None:
    """Of one count with its model, or of each of many counts."""
    single = " ".join(xcount_command("count", "--help").out.split())
    assert "Stop after this long, including reading the model" in single
    many = " ".join(xcount_command("audit", "--help").out.split())
    assert "Stop each count after this long, not including reading the model" in many


@pytest.mark.parametrize(("limit", "status"), [("2/9", 0), ("22.3%", 0), ("0.2222", 1)])
def test_a_limit_is_compared_exactly(
    xcount_command: Command, figure_1_file: str, limit: str, status: int
) -> None:
    """Two of nine regions are sensitive: at most two ninths."""
    asked = ("--sensitive", "age", "--gap", "80", "--max-share", limit, "--json")
    run = xcount_command("count", figure_1_file, *asked)
    assert run.status == status
    assert json.loads(run.out)["verdict"] == ("PASS" if status == 0 else "FAIL")


@pytest.fixture
def endless(tmp_path: Path) -> list[str]:
    """Return a command that enumerates for minutes."""
    model = write_model(tmp_path / "endless.json", linked(13, 7), names(13))
    words = ["--sensitive", "x0", "--gap", "1", "--method", "brute", "--jobs", "1", "--json"]
    return [sys.executable, "-m", "xcount", "count", model, *words]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_count_gives_its_bounds(endless: list[str], stop: signal.Signals) -> None:
    """Progress shows on a terminal; Ctrl-C then ends the run with an interval and status 3."""
    run = stopped_when("regions visited", endless[3:], stop)
    data = json.loads(run.out)
    assert "%" in run.shown
    assert run.status == 3
    assert data["stop_reason"] == "interrupted"
    assert 0 < data["low"] < data["high"]


def test_no_progress_without_a_terminal(endless: list[str]) -> None:
    """Two seconds into a run, standard error is still empty."""
    process = subprocess.run([*endless, "--timeout", "2s"], capture_output=True, check=False)
    assert (process.returncode, process.stderr) == (3, b"")
    assert json.loads(process.stdout)["stop_reason"] == "timeout"


def test_a_reader_that_leaves_early_is_no_error(figure_1_file: str) -> None:
    """``xcount ... | head -0``: no traceback, and no status that means a verdict."""
    for words in (["count", figure_1_file, "--sensitive", "age", "--gap", "80"], ["--version"]):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "xcount", *words]
        process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        assert (process.returncode, process.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("asks", ["count", "version"])
def test_a_full_disk_is_an_error(figure_1_file: str, asks: str) -> None:
    """An answer that could not be written is none."""
    count = ["count", figure_1_file, "--sensitive", "age", "--gap", "80", "--json"]
    words = count if asks == "count" else ["--version"]
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "xcount", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert process.returncode == 2
    assert process.stderr == "xcount: standard output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(("feature", "status"), [("sex", 0), ("nobody", 2)])
def test_notes_that_cannot_be_written_cost_no_answer(feature: str, status: int) -> None:
    """There is a note about the cut-off; where it goes nowhere, status and answer are the same."""
    words = ["count", str(adult_model_path()), "--sensitive", feature, "--flip", "--cutoff", "0.5"]
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "xcount", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert process.returncode == status
    assert process.stdout.startswith(b'{"sensitive": ') == (status == 0)


@pytest.mark.parametrize(
    ("closed", "status", "said"),
    [
        ("2>&-", 0, '"count": '),
        (">&-", 2, "xcount: standard output is closed"),
        (">&- 2>&-", 2, ""),
    ],
)
def test_a_closed_stream_is_never_a_verdict(
    figure_1_file: str, closed: str, status: int, said: str
) -> None:
    """Without standard error there is still the answer; without standard output, an error."""
    words = [sys.executable, "-m", "xcount", "count", figure_1_file, "--sensitive", "age"]
    process = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *words, "--gap", "80", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == status
    assert said in process.stdout + process.stderr
    assert (process.stdout + process.stderr).count("\n") == bool(said)


def test_names_of_any_script_print_on_any_terminal(tmp_path: Path) -> None:
    """An ASCII terminal gets escapes, not a traceback."""
    model = write_model(tmp_path / "m.json", [(0, 0.0, 1.0, 0.0)], ["âge [年]"])
    process = subprocess.run(
        [sys.executable, "-m", "xcount", "inspect", model],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert b"\\xe2ge [\\u5e74]" in process.stdout


def test_boxes_are_drawn_in_any_encoding(figure_1_file: str) -> None:
    """Where there are no lines for boxes, they are made of ASCII."""
    command = [sys.executable, "-m", "xcount", "count", figure_1_file, "--sensitive", "age"]
    printed = subprocess.check_output(
        [*command, "--gap", "80"], env={**os.environ, "PYTHONIOENCODING": "latin-1"}
    )
    assert b"| Regions " in printed
    assert b"\\u25" not in printed


def test_the_question_is_written(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Beside the answer; counted from the file, it is the same."""
    path = tmp_path / "age.question"
    asked = ["count", figure_1_file, "--sensitive", "age", "--gap", "80", "--distance", "1"]
    run = xcount_command(*asked, "--question", path)
    assert (run.status, run.err) == (0, "")
    assert run.out.endswith(f"Wrote {path}\n")
    assert question_oracle.count(path.read_text()) == 2
    run = xcount_command(*asked, "--question", path, "--json")
    assert json.loads(run.out)["count"] == 2


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("-", [], "--question needs a file: standard output is for the answer"),
        ("model.json", [], "is an input of this command"),
        ("nowhere/age.question", [], "there is no folder"),
        ("age.question", ["--probability-gap", "0.1"], "no question in integers"),
    ],
)
def test_a_question_that_cannot_be_written_is_refused(
    xcount_command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    options: list[str],
    message: str,
) -> None:
    """In one line, before anything is counted or written."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(adult_model_path(), "model.json")
    asked = options or ["--gap", "2"]
    run = xcount_command("count", "model.json", "--sensitive", "sex", *asked, "--question", path)
    assert (run.status, run.out) == (2, "")
    assert message in run.err
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]
