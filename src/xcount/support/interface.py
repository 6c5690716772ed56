"""What the public functions have in common: suggestions for typos, progress bars in notebooks."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from xcount.support.nearest import nearest

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def public(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Check the names of a function's arguments, and show its progress in notebooks."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        __tracebackhide__ = True
        check_names(function.__name__, given, known)
        show_progress = given.get("on_progress")
        if show_progress is not None and not callable(show_progress):
            message = (
                f"{function.__name__}() calls on_progress with the progress: give it a function, "
                f"not {show_progress!r}"
            )
            raise TypeError(message)
        if show_progress is None and _in_a_notebook():
            from xcount.report.notebook.live import progress_bar

            with progress_bar() as show:
                return function(*args, **{**given, "on_progress": show})
        return function(*args, **given)

    return called


def check_names(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse an argument that a function does not have, and suggest the closest one."""
    for name in given:
        if name not in known:
            near = nearest(name, known, cutoff=0.7)
            hint = f"; did you mean {near!r}?" if near else ""
            raise TypeError(f"{function}() has no argument {name!r}{hint}")


def _in_a_notebook() -> bool:
    """Tell whether a Jupyter kernel runs this; a script or a plain shell is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
