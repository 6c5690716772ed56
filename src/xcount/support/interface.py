"""What the public functions have in common: other names of their arguments, progress in notebooks.

An argument has one name in a signature. Where people may know it by another one (the plural in an
audit, the unit in older versions), that is accepted as well: :data:`SYNONYMS`
(and ``other_names.py``, for type checkers).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from xcount.support.nearest import nearest

SYNONYMS = (
    ("gap", "gaps"),
    ("probability_gap", "probability_gaps"),
    ("distance", "distances"),
    ("class_", "output"),
    ("timeout", "timeout_seconds"),
    ("memory", "memory_bytes"),
    ("measure", "measures"),
    ("rule", "rules"),
    ("witnesses", "n_witnesses"),
)
"""Names of one argument: a function has one of them in its signature and accepts them all."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def public(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function accept other names of its arguments, and show progress in notebooks."""

    @functools.wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        __tracebackhide__ = True
        arguments = in_own_names(function, given)
        show_progress = arguments.get("on_progress")
        if show_progress is not None and not callable(show_progress):
            message = (
                f"{function.__name__}() calls on_progress with the progress: give it a function, "
                f"not {show_progress!r}"
            )
            raise TypeError(message)
        if show_progress is None and _in_a_notebook():
            from xcount.report.notebook.live import progress_bar

            with progress_bar() as show:
                return function(*args, **{**arguments, "on_progress": show})
        return function(*args, **arguments)

    return called


def in_own_names(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by the names of the signature; refuse two names of one argument."""
    own, renamed = _names_of(function)
    arguments: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        chosen = renamed.get(name, name)
        if chosen not in own:
            message = f"{function.__name__}() has no argument {name!r}{_hint(name, own)}"
            raise TypeError(message)
        if chosen in arguments:
            message = (
                f"{function.__name__}() got {spelled[chosen]!r} and {name!r}; give one of them"
            )
            raise TypeError(message)
        arguments[chosen], spelled[chosen] = value, name
    return arguments


@functools.cache
def _names_of(function: Callable[..., Any]) -> tuple[frozenset[str], dict[str, str]]:
    """Return the names in a signature, and those that mean one of them."""
    code = getattr(function, "__wrapped__", function).__code__  # inspect takes long to import
    own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    groups = [(names, [name for name in names if name in own]) for names in SYNONYMS]
    return own, {other: name for names, found in groups for name in found for other in names}


def _hint(name: str, own: frozenset[str]) -> str:
    near = nearest(name, sorted(own), cutoff=0.7)
    return f"; did you mean {near!r}?" if near else ""


def _in_a_notebook() -> bool:
    """Tell whether a Jupyter kernel runs this; a script or a plain shell is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
