"""Bad input: always one clear line and exit status 2, or a right answer.

The table in ``docs/bad-input.md`` lists the cases; each row is a test here, and a test compares
the two.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Command, Run
from model_files import FIGURE_1, xgboost_document

from xcount.cli.app import application

DOCUMENT = Path(__file__).parents[2] / "docs" / "bad-input.md"
NAMES = ["age", "sex"]
QUESTION = ["--sensitive", "age", "--gap", "80"]

Change = Callable[[dict[str, Any]], None]


def document() -> dict[str, Any]:
    """Return the model that the cases damage: the paper's example."""
    return xgboost_document(FIGURE_1, NAMES)


def first_tree(model: dict[str, Any]) -> dict[str, Any]:
    """Return the first tree of a model document."""
    tree: dict[str, Any] = model["learner"]["gradient_booster"]["model"]["trees"][0]
    return tree


def in_tree(key: str, node: int, value: object) -> Change:
    """Return a change of one entry of the first tree."""

    def change(model: dict[str, Any]) -> None:
        first_tree(model)[key][node] = value

    return change


def in_learner(key: str, value: object) -> Change:
    """Return a change of one entry of the learner."""

    def change(model: dict[str, Any]) -> None:
        model["learner"][key] = value

    return change


def without_trees(model: dict[str, Any]) -> None:
    """Leave no tree."""
    booster = model["learner"]["gradient_booster"]["model"]
    booster["trees"], booster["tree_info"], booster["iteration_indptr"] = [], [], [0]


def only_a_leaf(model: dict[str, Any]) -> None:
    """Leave a single leaf."""
    leaf = xgboost_document([1.5], NAMES)
    model["learner"]["gradient_booster"] = leaf["learner"]["gradient_booster"]


def with_a_third_feature(model: dict[str, Any]) -> None:
    """Add a feature that no tree tests."""
    model["learner"]["feature_names"].append("shoe size")
    model["learner"]["feature_types"].append("float")
    model["learner"]["learner_model_param"]["num_feature"] = "3"


# Case -> (what happens to the model, the question or None for the usual one, what the line says).
BROKEN_MODELS: dict[str, tuple[Change, str]] = {
    "wrong type": (in_learner("gradient_booster", 7), "expected an object"),
    "cycle": (in_tree("left_children", 1, 0), "tree 0"),
    "missing child": (in_tree("left_children", 0, -1), "tree 0"),
    "child out of range": (in_tree("right_children", 0, 99), "tree 0"),
    "NaN threshold": (in_tree("split_conditions", 0, math.nan), "tree 0, node 0"),
    "infinite threshold": (in_tree("split_conditions", 0, math.inf), "tree 0, node 0"),
    "NaN leaf": (in_tree("split_conditions", 2, math.nan), "tree 0, node 2"),
    "infinite leaf": (in_tree("split_conditions", 2, -math.inf), "tree 0, node 2"),
    "feature index out of range": (in_tree("split_indices", 0, 2), "tree 0, node 0"),
    "negative feature index": (in_tree("split_indices", 0, -1), "tree 0, node 0"),
    "duplicate names": (in_learner("feature_names", ["age", "age"]), "'age'"),
    "too few names": (in_learner("feature_names", ["age"]), "1 names for 2 features"),
}

BAD_QUESTIONS: dict[str, tuple[list[str], str]] = {
    "unknown feature": (["--sensitive", "agee", "--gap", "1"], "did you mean 'age'?"),
    "feature named twice": (["--sensitive", "age,f0", "--gap", "1"], "named twice"),
    "index beyond the last feature": (["--sensitive", "2", "--gap", "1"], "the model has 2"),
    "negative gap": (["--sensitive", "age", "--gap", "-1"], "must not be negative"),
    "gap NaN": (["--sensitive", "age", "--gap", "nan"], "must be a finite number"),
    "gap that is no number": (
        ["--sensitive", "age", "--gap", "big"],
        "must be a number such as",
    ),
    "gap in percent": (["--sensitive", "age", "--gap", "5%"], "give --probability-gap"),
    "distance 0": ([*QUESTION, "--distance", "0"], "whole number >= 1 or 'any'"),
    "unknown method": ([*QUESTION, "--method", "magic"], "unknown method 'magic'"),
    "epsilon 0": ([*QUESTION, "--epsilon", "0"], "epsilon must lie strictly between 0 and 1"),
    "delta that floats cannot hold": ([*QUESTION, "--delta", "1e-17"], "at least 1e-12"),
    "gap given twice": ([*QUESTION, "--gap", "2"], "--gap takes one value, but is given twice"),
    "bounds given twice": (
        [*QUESTION, "--bounds", "age=0:1", "--bounds", "f0=0:2,sex=0:1"],
        "bounds of 'f0' are given twice",
    ),
    "domain given twice": (
        [*QUESTION, "--domain", "one.toml", "--domain", "two.toml"],
        "--domain takes one value, but is given twice",
    ),
    "limit given twice": (
        [*QUESTION, "--max-share", "1%", "--max-share", "50%"],
        "--max-share takes one value, but is given twice",
    ),
    "limit that is a number only to Python": ([*QUESTION, "--max-share", "1_2%"], "not a share"),
    "gap that is a number only to Python": (
        ["--sensitive", "age", "--gap", "1_0"],
        "must be a number such as",
    ),
    "seed that is a number only to Python": ([*QUESTION, "--seed", "1_0"], "not a whole number"),
    "jobs in other digits": ([*QUESTION, "--jobs", "\uff12"], "not a whole number"),
    "condition with a number only to Python": (
        [*QUESTION, "--where", "age < 1_0"],
        "'1_0' is not a number",
    ),
    "class of a model with one": ([*QUESTION, "--class", "1"], "the model has one margin"),
    "unknown option": ([*QUESTION, "--frob"], "No such option '--frob'"),
    "data that is not there": ([*QUESTION, "--data", "nope.csv"], "cannot read nope.csv"),
    "bounds of one feature alone": ([*QUESTION, "--bounds", "age=0:1"], "needs bounds of 'sex'"),
    "no question": ([], "Missing option '--sensitive'"),
    "time limit without a unit that exists": ([*QUESTION, "--timeout", "5 weeks"], "a duration"),
}

RIGHT_ANSWERS: dict[str, tuple[Change, list[str], tuple[int, int]]] = {
    "no trees": (without_trees, QUESTION, (0, 1)),
    "single leaf": (only_a_leaf, QUESTION, (0, 1)),
    "sensitive feature that no tree tests": (
        with_a_third_feature,
        ["--sensitive", "shoe size", "--gap", "0"],
        (0, 9),
    ),
    "all features sensitive": (
        lambda model: None,
        ["--sensitive", "age,sex", "--gap", "80", "--distance", "any"],
        (5, 9),
    ),
}


def not_a_model(content: bytes) -> Callable[[Path], object]:
    """Return a way to make a file with that content."""
    return lambda path: path.write_bytes(content)


def gigantic(path: Path) -> None:
    """Make a file of 3 GB that takes no room on the disk."""
    with path.open("wb") as stream:
        stream.write(b"{")
        stream.truncate(3 * 10**9)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such file": (lambda path: None, "no such file"),
    "directory": (lambda path: path.mkdir(), "is a directory"),
    "empty file": (not_a_model(b""), "the file is empty"),
    "text that is no model": (not_a_model(b"once upon a time\n"), "not a model file"),
    "binary data": (not_a_model(bytes(range(256)) * 10), "not a model file"),
    "JSON that is no model": (not_a_model(b'{"a": 1}'), "JSON, but not a model"),
    "pickle without leave": (not_a_model(b"\x80\x04N."), "--trust-pickle"),
    "truncated gzip": (not_a_model(gzip.compress(b"{}" * 999)[:-9]), "gzip"),
    "deeply nested JSON": (not_a_model(b"[" * 10**6), "nested too deeply"),
    "gigantic file": (gigantic, "3000000000 bytes"),
}

TRUNCATED = "truncated JSON"


def is_one_clear_line(run: Run) -> bool:
    """Tell whether a command failed as it should: one line, no internal error, status 2."""
    one_line = run.err.endswith("\n") and run.err.count("\n") == 1
    return run.status == 2 and run.out == "" and one_line and "internal error" not in run.err


def written(path: Path, model: object) -> Path:
    """Write a model document, NaN and infinities as Python spells them."""
    path.write_text(json.dumps(model))
    return path


@pytest.mark.parametrize("case", BROKEN_MODELS)
def test_a_broken_model_is_refused(xcount_command: Command, tmp_path: Path, case: str) -> None:
    """The line names the file, and where in it."""
    change, message = BROKEN_MODELS[case]
    model = document()
    change(model)
    path = written(tmp_path / "model.json", model)
    for command in (["count", str(path), *QUESTION], ["inspect", str(path)]):
        run = xcount_command(*command)
        assert is_one_clear_line(run), run
        assert message in run.err
        assert str(path) in run.err


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_a_bad_question_is_refused(xcount_command: Command, figure_1_file: str, case: str) -> None:
    """The line says what is wrong with it, and what to do."""
    words, message = BAD_QUESTIONS[case]
    run = xcount_command("count", figure_1_file, *words)
    assert is_one_clear_line(run), run
    assert message in run.err


@pytest.mark.parametrize("case", RIGHT_ANSWERS)
def test_odd_but_valid_input_gets_a_right_answer(
    xcount_command: Command, tmp_path: Path, case: str
) -> None:
    """Exactly, with status 0."""
    change, words, expected = RIGHT_ANSWERS[case]
    model = document()
    change(model)
    run = xcount_command("count", written(tmp_path / "m.json", model), *words, "--json")
    assert run.status == 0, run.err
    data = json.loads(run.out)
    assert (data["count"], data["n_regions"]) == expected
    assert data["exact"]


@pytest.mark.parametrize("case", FILES)
def test_what_is_no_model_file_is_refused(
    xcount_command: Command, tmp_path: Path, case: str
) -> None:
    """Without reading more than is needed."""
    make, message = FILES[case]
    path = tmp_path / "model"
    make(path)
    run = xcount_command("count", path, *QUESTION)
    assert is_one_clear_line(run), run
    assert message in run.err
    assert str(path) in run.err


def test_truncated_json_is_refused_wherever_it_ends(
    xcount_command: Command, tmp_path: Path
) -> None:
    """A download that broke off, at any place."""
    text = json.dumps(document())
    path = tmp_path / "model.json"
    for length in range(1, len(text), 37):
        path.write_text(text[:length])
        run = xcount_command("count", path, *QUESTION)
        assert is_one_clear_line(run), (length, run)


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every value inside a document."""
    if path:
        yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


WRONG_VALUES: list[object] = [
    None,
    True,
    -1,
    1.5,
    10**30,
    "x",
    "-1",
    [],
    [[]],
    {},
    {"a": 0},
    math.nan,
    math.inf,
]


@pytest.mark.parametrize("wrong", WRONG_VALUES, ids=repr)
def test_no_wrong_value_anywhere_is_more_than_one_line(
    xcount_command: Command, tmp_path: Path, wrong: object
) -> None:
    """Each value of a model file in turn is replaced: it is refused in one line, or answered."""
    path = tmp_path / "model.json"
    for place in places(document()):
        model: Any = document()
        target = model
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = wrong
        run = xcount_command("count", written(path, model), *QUESTION, "--json")
        answered = run.status == 0 and run.err == "" and "count" in json.loads(run.out)
        assert answered or is_one_clear_line(run), (place, run)


@pytest.mark.parametrize(
    "removed", [place for place in places(document()) if isinstance(place[-1], str)], ids=str
)
def test_no_field_left_out_is_more_than_one_line(
    xcount_command: Command, tmp_path: Path, removed: tuple[str | int, ...]
) -> None:
    """Each field in turn is left out: the model is refused in one line, or answered."""
    model: Any = document()
    target = model
    for key in removed[:-1]:
        target = target[key]
    del target[removed[-1]]
    run = xcount_command("count", written(tmp_path / "m.json", model), *QUESTION, "--json")
    assert run.status == 0 or is_one_clear_line(run), run


def test_the_documented_cases_are_the_tested_ones() -> None:
    """Each row of the table is a test, and each test a row."""
    rows = re.findall(r"^\| (.+?) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    tested = {*BROKEN_MODELS, *BAD_QUESTIONS, *RIGHT_ANSWERS, *FILES, TRUNCATED}
    assert {row for row in rows if row != "case"} == tested


def test_an_unexpected_error_is_one_line_too(
    xcount_command: Command, figure_1_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of ours says that it is one; XCOUNT_DEBUG=1 shows where."""

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("one\ntwo")

    monkeypatch.setattr("xcount.answers.count.solve", fail)
    run = xcount_command("count", figure_1_file, *QUESTION)
    assert (run.status, run.out) == (2, "")
    assert run.err == (
        "xcount: internal error: ZeroDivisionError: one two; "
        "please report it (XCOUNT_DEBUG=1 shows where)\n"
    )
    monkeypatch.setenv("XCOUNT_DEBUG", "1")
    run = xcount_command("count", figure_1_file, *QUESTION)
    assert run.status == 2
    assert "Traceback" in run.err
    assert "in fail" in run.err


def test_a_warning_is_a_line_on_standard_error(figure_1_file: str) -> None:
    """The answer is there all the same, and standard output is JSON and nothing else."""
    program = """
import sys, warnings
import xcount.answers.count as counting
from xcount.cli import main
solve = counting.solve
def warn_and_solve(*arguments):
    warnings.warn("two\\nlines")
    return solve(*arguments)
counting.solve = warn_and_solve
sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", program, "count", figure_1_file, *QUESTION, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["count"] == 2
    assert run.stderr == "xcount: note: two lines\n"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (MemoryError(), 2, "out of memory"),
        (RecursionError(), 2, "nested too deeply"),
        (PermissionError(13, "Permission denied", "model.json"), 2, "model.json: Permission"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exhaustion_and_interrupts_are_quiet(
    xcount_command: Command,
    figure_1_file: str,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    message: str,
) -> None:
    """One line, or none at all for Ctrl-C."""

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("xcount.answers.count.solve", fail)
    run = xcount_command("count", figure_1_file, *QUESTION)
    assert (run.status, run.out) == (status, "")
    assert run.err.count("\n") == (1 if message else 0)
    assert message in run.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "--gap", ""], "no gap given"),
        (["audit", "--distance", ","], "no distance given"),
        (["audit", "--witnesses", "9" * 20], "is not in the range"),
        (["witness", "--gap", "1", "--sensitive", "age", "-n", "9" * 20], "is not in the range"),
        (["count", "--gap", "1", "--sensitive", "age", "--domain", "/dev/zero"], "characters"),
        (["audit", "--jobs", "9" * 20], "at most 1,024"),
    ],
)
def test_what_names_nothing_or_has_no_end_is_refused(
    words: list[str], message: str, figure_1_file: str, xcount_command: Command
) -> None:
    """An unset variable of a script is no choice of the defaults."""
    run = xcount_command(words[0], figure_1_file, *words[1:])
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1


def test_no_option_with_one_value_may_be_given_twice() -> None:
    """The last one does not win silently, in any command."""
    context = click.Context(application, **application.context_settings)
    n_checked = 0
    for name in application.list_commands(context):
        command = application.get_command(context, name)
        assert command is not None
        for option in command.params:
            if not isinstance(option, click.Option) or option.multiple:
                continue
            if option.is_flag and not option.secondary_opts:
                continue
            words = [option.opts[0], *([] if option.is_flag else ["1"])]
            again = [option.secondary_opts[0]] if option.is_flag else [option.opts[0], "2"]
            with pytest.raises(click.UsageError, match=r"is given twice|once"):
                command.make_context(name, [*words, *again], parent=context)
            n_checked += 1
    assert n_checked > 100
