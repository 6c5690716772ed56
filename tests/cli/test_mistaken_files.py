"""Files that were given where others belong: one line says what they are and what to do."""

from __future__ import annotations

import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from conftest import Command, Run
from model_files import FIGURE_1, write_model

from xcount.cli import main
from xcount.model.loaders import kinds

QUESTION = ("--sensitive", "age", "--gap", "80")
MODEL_FIRST = {
    "count": QUESTION,
    "audit": QUESTION,
    "witness": QUESTION,
    "encode": QUESTION,
    "inspect": (),
    "compare": QUESTION,
}
"""The commands that take a model, and what follows it."""

USES = {
    "model.json": "xcount audit {} --html report.html",
    "journal.jsonl": "xcount report {}",
    "population.json": "xcount inspect {}",
    "domain.toml": "--domain {}",
    "people.csv": "--data {}",
    "report.html": "open it in a browser",
    "formula.cnf": "a model counter",
    "count.json": "--journal FILE",
    "audit.json": "--journal FILE",
    "compare.json": "--journal FILE",
    "witness.json": "--journal FILE",
    "inspect.json": "--journal FILE",
    "empty": "the file is empty, expected",
    "folder": "name a file in it",
}
"""Each file, and what the line says about what to do with it."""
NO_MODELS = [name for name in USES if name != "model.json"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of each kind, written by the commands themselves."""
    folder = tmp_path_factory.mktemp("made")
    model = write_model(folder / "model.json", FIGURE_1, ["age", "sex"])
    (folder / "domain.toml").write_text('# which inputs exist\nwhere = ["age < 50"]\n')
    rows = "".join(f"{30 + i % 20},{i % 2}\n" for i in range(400))
    (folder / "people.csv").write_text("age,sex\n" + rows)
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    data = ("--data", folder / "people.csv")
    population = ("--measure", "population", *data, "--population", folder / "population.json")
    saved = ("--journal", folder / "journal.jsonl", "--html", folder / "report.html")
    printed = {
        "count.json": ("count", model, *QUESTION, *population, "--json"),
        "audit.json": ("audit", model, *QUESTION, *saved, "--json"),
        "compare.json": ("compare", model, model, *QUESTION, "--json"),
        "witness.json": ("witness", model, *QUESTION, "--json"),
        "inspect.json": ("inspect", model, "--json"),
        "formula.cnf": ("encode", model, *QUESTION),
    }
    digits = sys.get_int_max_str_digits()
    for name, words in printed.items():
        with (folder / name).open("w") as file, redirect_stdout(file):
            assert main([str(word) for word in words]) == 0
    sys.set_int_max_str_digits(digits)  # commands lift the limit
    return folder


def refusal(run: Run) -> str:
    """Return the one line of a command that was given a wrong file."""
    assert run.status == 2, run
    assert run.out == ""
    assert run.err.count("\n") == 1, run.err
    return run.err


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_no_model_is_named(xcount_command: Command, made: Path, name: str) -> None:
    """Every command that takes a model says the same."""
    commands = [c for c in MODEL_FIRST if (c, name) != ("inspect", "population.json")]
    lines = {refusal(xcount_command(c, made / name, *MODEL_FIRST[c])) for c in commands}
    second = xcount_command("compare", made / "model.json", made / name, *QUESTION)
    assert lines == {refusal(second)}
    line = lines.pop()
    assert "a model file" in line
    assert USES[name].format(made / name) in line


@pytest.mark.parametrize("name", [name for name in USES if name != "journal.jsonl"])
def test_what_is_no_journal_is_named(
    xcount_command: Command, made: Path, tmp_path: Path, name: str
) -> None:
    """A report of a model is an audit; nothing is appended to a file that is no journal."""
    line = refusal(xcount_command("report", made / name))
    if name == "empty":
        assert "the journal is empty" in line
        return
    assert "a journal (what --journal of an audit or a comparison has saved)" in line
    assert USES[name].format(made / name) in line
    if name != "folder":
        copy = shutil.copy(made / name, tmp_path)
        arguments = ("audit", made / "model.json", *QUESTION, "--journal", copy, "--resume")
        assert "not a journal" in refusal(xcount_command(*arguments))
        assert Path(copy).read_bytes() == (made / name).read_bytes()


@pytest.mark.parametrize(
    ("option", "own", "measure"),
    [
        ("--data", "people.csv", "rows"),
        ("--population", "population.json", "population"),
        ("--domain", "domain.toml", "regions"),
    ],
)
def test_what_an_option_does_not_take_is_named(
    xcount_command: Command, made: Path, option: str, own: str, measure: str
) -> None:
    """Each option takes its own kind of file, and names the others; an empty domain is one."""
    asked = ("count", made / "model.json", *QUESTION, "--measure", measure, option)
    assert xcount_command(*asked, made / own).status == 0
    for name, use in USES.items():
        if name != own and (option, name) != ("--domain", "empty"):
            assert use.format(made / name) in refusal(xcount_command(*asked, made / name))


def test_other_text_is_no_kind_at_all() -> None:
    """What is not known is left to whoever wanted to read it; tables are told by their commas."""
    for text in (b"hello, world\n", b"{}", b"[1, 2]", b"tree\n1\n2\n", b"\0\1", b'{"a": 1}'):
        assert kinds.kind_of(text) is None
    assert kinds.kind_of(b"PAR1...") is kinds.TABLE
    assert kinds.kind_of(b"tree\nversion=v4\n") is kinds.MODEL
    assert kinds.kind_of(b'[\n{"nodeid": 0, "leaf": 1}]') is kinds.MODEL


def test_paths_are_quoted_for_the_shell() -> None:
    """What the line says to type can be typed."""
    line = kinds.mistaken("my model.json", b'{"learner": {}}', kinds.JOURNAL)
    assert line is not None
    assert "xcount audit 'my model.json' --html" in line
