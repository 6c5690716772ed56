"""Every exception that XCount raises on purpose.

    XCountError
    ├── ModelFormatError       the file is not what it claims to be, and where
    ├── UnsupportedModelError  a construct that an additive tree ensemble cannot express
    ├── QueryError             the question does not fit the model (also a ValueError)
    ├── BudgetError            too large for the method that was asked for
    │   └── OutOfLimitsError   a limit of time or memory was reached before there was an answer
    ├── TableError             a data table does not fit the model (also a ValueError)
    ├── JournalError           a journal of results cannot be read, written or shared
    ├── ClusterError           a cluster cannot be reached, was lost, or runs other versions
    └── MissingExtraError      an optional library is not installed (also an ImportError)

A limit that is reached while usable bounds exist is a result, not an exception. A question that is
answered, but may not be the one that was meant, gives a :class:`QueryWarning`; so does one of many
that is too large for the method, where others are answered.

Messages name options as the command line does (``--max-share``). Who reads one in Python sees the
argument of the same meaning (``max_share=``): see :func:`in_words_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

ARGUMENTS = {
    "bounds": "bounds=",
    "class": "class_=",
    "cutoff": "cutoff=",
    "data": "data=",
    "direction": "direction=",
    "distance": "distance=",
    "domain": "domain=",
    "explain": "explain=True",
    "favourable": "favourable=",
    "flip": "flip=True",
    "from-probability": "from_probability=",
    "gap": "gap=",
    "journal": "journal=",
    "judge": "judge=",
    "max-ratio": "max_ratio=",
    "max-share": "max_share=",
    "measure": "measures=",
    "memory": "memory=",
    "method": "method=",
    "missing": "missing=",
    "near": "near=",
    "one-hot": "one_hot=",
    "population": "population=",
    "probability-gap": "probability_gap=",
    "resume": "resume=True",
    "rule": "rule=",
    "sensitive": "sensitive=",
    "timeout": "timeout=",
    "trust-pickle": "trust_pickle=True",
    "where": "where=",
}
"""The options that messages name, and the Python arguments of the same meaning."""

_OPTION = r"(?<![\w-])--([a-z][a-z-]*[a-z])( [a-z]+\b(?: or [a-z]+\b)?| FILE| '[^']*')?"
_is_command_line = False


@contextmanager
def in_words_of(interface: str) -> Iterator[None]:
    """Let messages name what the ``"command line"`` calls options, or ``"python"`` arguments.

    Example:
        >>> with in_words_of("command line"):
        ...     print(QueryError("give --max-share"))
        give --max-share
        >>> print(QueryError("give --max-share, or --method exact"))
        give max_share=, or method='exact'
    """
    global _is_command_line  # noqa: PLW0603  # of the process: its threads say what it says
    before, _is_command_line = _is_command_line, interface == "command line"
    try:
        yield
    finally:
        _is_command_line = before


def _worded(message: str) -> str:
    """Return a message in the words of the interface in use."""
    return message if _is_command_line else re.sub(_OPTION, _argument, message)


def _argument(option: re.Match[str]) -> str:
    name, value = option[1], option[2] or ""
    if name not in ARGUMENTS:
        return option[0]
    if value and name in ("method", "missing"):
        return ARGUMENTS[name] + " or ".join(repr(word) for word in value.strip().split(" or "))
    return ARGUMENTS[name] + (value.strip() if value.endswith("'") else value.removesuffix(" FILE"))


class XCountError(Exception):
    """Base of all errors whose message is meant for the user.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> try:
        ...     xcount.count(figure_1(), sensitive="f7", gap=1)
        ... except xcount.XCountError as error:
        ...     print(error)
        feature index 7 is out of range: the model has 2 features, 0 to 1
    """

    def __str__(self) -> str:
        return _worded(super().__str__())


class ModelFormatError(XCountError):
    """A model file is malformed; the message says where."""


class UnsupportedModelError(XCountError):
    """A model uses a construct that XCount does not represent; the message names it."""


class QueryError(XCountError, ValueError):
    """A question that does not fit the model."""


class QueryWarning(UserWarning):
    """A question that may not be the one that was meant, or was left out of many."""

    def __str__(self) -> str:
        return _worded(super().__str__())


class BudgetError(XCountError):
    """The work is too large for the chosen method; ``code`` says why in a word, for programs."""

    def __init__(self, message: str, code: str = "too_large") -> None:
        super().__init__(message)
        self.code = code


class OutOfLimitsError(BudgetError):
    """A limit of time or memory was reached before anything could be said."""


class TableError(XCountError, ValueError):
    """A data table does not fit the model; the message names columns, rows and types."""


class JournalError(XCountError):
    """A journal cannot be used: damaged, in use, not writable; the message says what is safe."""


class ClusterError(XCountError):
    """A cluster cannot be used; the message says what is safe and what to do."""


class MissingExtraError(XCountError, ImportError):
    """An optional library is needed; the message names the extra to install."""
