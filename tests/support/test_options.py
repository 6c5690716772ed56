"""Arguments of the public functions: their names, their checks, and messages about them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import pytest

import xcount
from xcount.errors import JournalError, QueryError
from xcount.model.examples import figure_1
from xcount.testing import assert_share

ONE: tuple[Callable[..., Any], ...] = (xcount.count, xcount.witnesses)
MANY: tuple[Callable[..., Any], ...] = (xcount.audit, xcount.compare)


def asked(function: Callable[..., Any], **more: Any) -> Any:
    """Call a function about figure 1, or about twice the same."""
    model = [figure_1(), figure_1()] if function is xcount.compare else figure_1()
    return function(model, sensitive="f0", **more)


@pytest.mark.parametrize("function", [*ONE, *MANY])
def test_numbers_have_one_set_of_spellings(function: Callable[..., Any]) -> None:
    """Text, fractions, percentages."""
    name = "gap" if function in ONE else "gaps"
    found = {repr(asked(function, **{name: g})) for g in ("1/2", 0.5, "5e-1", Fraction(1, 2))}
    assert len(found) == 1


def test_an_unknown_argument_gets_a_suggestion() -> None:
    """As a command does."""
    with pytest.raises(TypeError, match=r"count\(\) has no argument 'distanc'; did you mean 'dist"):
        asked(xcount.count, gap=1, distanc=1)
    with pytest.raises(TypeError, match=r"audit\(\) has no argument 'gap'; did you mean 'gaps'"):
        asked(xcount.audit, gap=1)


def test_count_asks_one_question() -> None:
    """Several gaps are a matter of an audit, and the message says so."""
    with pytest.raises(QueryError, match=r"pass one gap, not \[1, 2\]; xcount.audit"):
        asked(xcount.count, gap=[1, 2])


def test_an_assertion_takes_the_same_names() -> None:
    """As count does."""
    result = assert_share(
        figure_1(), sensitive="f0", gap="80", max_share="2/9", class_=0, timeout="30s"
    )
    assert result.count == 2
    with pytest.raises(AssertionError, match="for example"):
        assert_share(figure_1(), sensitive="f0", gap=80, max_share=0, class_=0, epsilon="5%")


@pytest.mark.parametrize("function", [*ONE, *MANY, xcount.inspect, xcount.load])
def test_whatever_loads_takes_trust_pickle(function: Callable[..., Any]) -> None:
    """And asks for it by the argument's name."""
    assert "trust_pickle" in inspect.signature(function).parameters


OTHER_NAMES = {"--class": "class_", "--group": "groups", "--measure": "measures"}
"""Options whose argument in Python has another name than the option with underscores."""


def _messages() -> Iterator[str]:
    """Yield the source of every error and warning outside the rooms of the command line."""
    for path in Path(xcount.__file__).parent.rglob("*.py"):
        if "cli" in path.parts or "report" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_warning = isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
            if is_warning or isinstance(node, ast.Raise):
                yield ast.unparse(node)


def test_messages_name_options_in_both_interfaces() -> None:
    """As the command line spells them, then in brackets the argument if it is another word."""
    from xcount.cli.app import COMMANDS, application

    context = click.Context(application)
    commands = [application.get_command(context, name) for name in COMMANDS]
    options = {opt for c in commands if c for p in c.params for opt in p.opts}
    others: tuple[Any, ...] = (
        xcount.inspect,
        xcount.verify,
        xcount.monotone,
        xcount.repair,
        xcount.diff,
        xcount.worst,
        xcount.person,
    )
    functions = (*ONE, *MANY, *others)
    arguments = {name for f in functions for name in inspect.signature(f).parameters}
    for message in _messages():
        for found in re.finditer(r"(?<![\w-])(--[a-z][a-z-]*[a-z])( \((\w+)\))?", message):
            option, argument = found[1], found[3]
            if option in ("--force-reinstall", "--no-deps"):  # of pip
                continue
            assert option in options, message
            name = OTHER_NAMES.get(option, option.removeprefix("--").replace("-", "_"))
            assert name in arguments, message
            if name != option.removeprefix("--"):
                assert argument in (name, f"{name}s"), message


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"gap": 80, "missing": "maybe"}, "missing must be 'auto'"),
        ({"gap": 80, "jobs": "2"}, "the number of jobs must be a whole number"),
        ({"gap": 80, "timeout": "soon"}, "'soon' is not a duration such as 60s"),
        ({"gap": 80, "sensitive": None}, "no sensitive feature given"),
    ],
)
def test_what_would_be_ignored_is_refused(question: dict[str, Any], message: str) -> None:
    """In the words of the function that was called."""
    with pytest.raises(QueryError, match=re.escape(message)):
        xcount.count(figure_1(), **{"sensitive": "f0", **question})


def test_one_model_is_no_list_of_models() -> None:
    """A path would be read letter by letter."""
    for model in ("model.json", figure_1()):
        with pytest.raises(QueryError, match="give them as a list"):
            xcount.compare(model, gaps=80)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(QueryError, match="the number of witnesses must be a whole number"):
        xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=2.5)  # type: ignore[arg-type]


def test_resuming_needs_a_journal() -> None:
    """Which the message asks for by its argument."""
    with pytest.raises(JournalError, match="--resume continues a journal; name it with --journal"):
        xcount.audit(figure_1(), gaps=80, resume=True)


def test_data_alone_weighs_its_rows() -> None:
    """A table is given to learn about people; verdicts judge regions until told otherwise."""
    rows = {"f0": [3.5, 9.0], "f1": [1.0, 9.0]}
    found = xcount.count(figure_1(), sensitive="f0", gap=80, data=rows, max_share=1)
    assert list(found.measures) == ["rows"]
    assert found.judge == "regions"
    audit = xcount.audit(figure_1(), gaps=80, data=rows)
    assert {tuple(result.measures) for result in audit.results} == {("rows",)}
    compared = xcount.compare([figure_1(), figure_1()], gaps=80, data=rows)
    assert {tuple(result.measures) for result in compared.results} == {("rows",)}
    by_volume = xcount.count(figure_1(), sensitive="f0", gap=80, bounds="f0=0:10,f1=0:10")
    assert list(by_volume.measures) == ["volume"]


def test_a_number_of_examples_is_checked() -> None:
    """In an audit, too."""
    with pytest.raises(QueryError, match="the number of witnesses must be a whole number"):
        xcount.audit(figure_1(), gaps=80, n_witnesses=-1)


@pytest.mark.parametrize("function", [*ONE, *MANY])
def test_slips_are_refused_in_plain_words(function: Callable[..., Any]) -> None:
    """What is no function cannot be called; a size without its unit is a few bytes."""
    gap = {"gap": 80} if function in ONE else {"gaps": 80}
    name = function.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) calls on_progress .* function, not 3"):
        asked(function, **gap, on_progress=3)
    with pytest.raises(QueryError, match=r"--memory is 4 bytes, .* its unit, as in 4GB"):
        asked(function, **gap, memory=4)
    with pytest.raises(QueryError, match=r"--memory is 4,000 bytes"):
        asked(function, **gap, memory="4kB")
    for jobs in (None, "2", -1):
        with pytest.raises(QueryError, match=r"the number of jobs must be a whole number"):
            asked(function, **gap, jobs=jobs)
    with pytest.raises(QueryError, match=r"the number of jobs must be at most 1,024"):
        asked(function, **gap, jobs=1025)


@pytest.mark.parametrize("function", [xcount.count, *MANY])
@pytest.mark.parametrize("measures", [None, 3, [None]])
def test_measures_are_names(function: Callable[..., Any], measures: Any) -> None:
    """What is none is refused in plain words."""
    gap = {"gap": 80} if function in ONE else {"gaps": 80}
    with pytest.raises(QueryError, match=r"measures are names, such as 'rows' .*, not "):
        asked(function, **gap, measures=measures)


def test_limits_of_features_are_for_audits() -> None:
    """A count has one limit."""
    for limit in ({"f0": "5%"}, "f0=5%"):
        with pytest.raises(QueryError, match=r"one count has one limit, .* are for an audit"):
            xcount.count(figure_1(), sensitive="f0", gap=80, max_share=limit)
