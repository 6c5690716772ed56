"""Options that are declared once: arguments in Python, options of commands, reference pages.

An option is a field of a frozen dataclass; :func:`option` says in its metadata what it means::

    seed: int = field(default=0, metadata=option("Seed of all random choices.", least=0))

A function that :func:`takes` such a class is called with its fields as keyword arguments. The
command line makes its options from the same fields (:mod:`xcount.cli.parameters`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from xcount.support.nearest import nearest

Arguments = ParamSpec("Arguments")
Model = TypeVar("Model")
Options = TypeVar("Options")
Result = TypeVar("Result")

_OPTION = "option"
_LINE = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The meaning of an option, and its form on the command line.

    Attributes:
        help: its meaning, for the command line.
        python: its meaning in Python; the same unless given.
        flag: its name on the command line; None for an option of Python only.
        metavar: the placeholder for its value in a help text.
        choices: its values, if they are few.
        least: its smallest value, if it is a whole number.
        most: its largest value, if it is a whole number.
        shown_default: the text for its default in a help text, if not the value itself.
        repeated: whether the command line may repeat it: as a list of values, or as one text with
            commas.
        is_required: whether a command needs it.
    """

    help: str
    python: str
    flag: str | None = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    shown_default: str | None = None
    repeated: Literal["", "list", "text"] = ""
    is_required: bool = False


def option(help: str, python: str = "", **more: Any) -> dict[str, Option]:
    """Return the metadata of a dataclass field that is an option.

    Args:
        help: its meaning, for the command line.
        python: its meaning in Python, if other words are needed there.
        more: other attributes of the :class:`Option`.
    """
    return {_OPTION: Option(help=help, python=python or help, **more)}


def python_option(meaning: str) -> dict[str, Option]:
    """Return the metadata of a field that is an argument in Python but no command-line option."""
    return {_OPTION: Option(help=meaning, python=meaning, flag=None)}


def options_of(cls: Any) -> list[tuple[Field[Any], Option]]:
    """Return the fields of a class of options, each with its :class:`Option`."""
    return [(each, each.metadata[_OPTION]) for each in fields(cls)]


def takes_two(
    options: Callable[Arguments, Options],
) -> Callable[
    [Callable[[Model, Model, Options], Result]],
    Callable[Concatenate[Model, Model, Arguments], Result],
]:
    """Return the decorator :func:`takes` for a function of two models and options."""
    return takes(options)  # type: ignore[arg-type, return-value]  # it takes any number of models


def takes(
    options: Callable[Arguments, Options],
    *,
    gathers: bool = False,
) -> Callable[
    [Callable[[Model, Options], Result]], Callable[Concatenate[Model, Arguments], Result]
]:
    """Return a decorator that lets a function of a model and options be called with keywords.

    With ``gathers``, several positional arguments are the same as one list of them.

    The function's signature and docstring list the options. If they include ``on_progress`` and
    the caller does not pass it, a notebook shows the progress.
    """

    def decorate(
        function: Callable[[Model, Options], Result],
    ) -> Callable[Concatenate[Model, Arguments], Result]:
        signature = _signature(function, options)
        models = list(inspect.signature(function).parameters)[:-1]
        make: Callable[..., Options] = options
        call: Callable[..., Result] = function

        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Result:
            __tracebackhide__ = True
            _check_names(function.__name__, given, list(signature.parameters))
            several = ([*args],) if gathers and len(args) > 1 else args
            arguments = signature.bind(*several, **given).arguments
            given_models = [arguments.pop(name) for name in models]
            with _shown(function.__name__, make(**arguments)) as made:
                return call(*given_models, made)

        called.__doc__ = _documented(function.__doc__ or "", options)
        called.__signature__ = signature  # type: ignore[attr-defined]  # which inspect reads
        return called

    return decorate


@contextmanager
def _shown(function: str, options: Options) -> Iterator[Options]:
    """Yield the options; in a notebook, show progress unless the caller does."""
    show: object = getattr(options, "on_progress", None)
    if show is not None and not callable(show):
        message = (
            f"{function}() calls on_progress with the progress: give it a function, not {show!r}"
        )
        raise TypeError(message)
    if show is not None or not _in_a_notebook():
        yield options
        return
    from xcount.report.notebook.live import progress_bar

    with progress_bar() as bar:
        yield replace(options, on_progress=bar)  # type: ignore[type-var]  # a dataclass


def _check_names(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Reject an argument that a function does not have, and suggest the closest one."""
    for name in given:
        if name not in known:
            near = nearest(name, known, cutoff=0.7)
            hint = f"; did you mean {near!r}?" if near else ""
            raise TypeError(f"{function}() has no argument {name!r}{hint}")


def _signature(function: Callable[..., Any], options: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature with one keyword argument for each option."""
    own = inspect.signature(function)
    models = list(own.parameters.values())[:-1]
    keywords = inspect.signature(options).parameters.values()
    return own.replace(parameters=[*models, *keywords])


def _documented(docstring: str, options: Any) -> str:
    """Return a docstring whose line about ``options`` is replaced by a line for each of them."""
    text = inspect.cleandoc(docstring)  # as Python 3.13 and later store it
    start = text.index("    options: ")
    end = text.index("\n", start) + 1
    listed = [
        textwrap.fill(
            f"{each.name}: {about.python}",
            _LINE,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for each, about in options_of(options)
    ]
    return text[:start] + "\n".join(listed) + "\n" + text[end:]


def _in_a_notebook() -> bool:
    """Return whether this runs in a Jupyter kernel, rather than a script or a plain shell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
