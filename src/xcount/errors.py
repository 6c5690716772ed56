"""Every exception that XCount raises on purpose.

    XCountError
    ├── ModelFormatError       the file is not what it claims to be, and where
    ├── UnsupportedModelError  a construct that an additive tree ensemble cannot express
    ├── QueryError             the question does not fit the model (also a ValueError)
    │   └── UnknownFeatureError  the model has no such feature
    ├── BudgetError            too large for the requested method
    │   └── OutOfLimitsError   time or memory ran out before there was an answer
    ├── TableError             a data table does not fit the model (also a ValueError)
    ├── JournalError           a journal of results cannot be read, written or shared
    ├── QuestionFileError      a question file cannot be read
    ├── VerificationError      the verified counter disagrees, or a question is about another model
    ├── ClusterError           a cluster cannot be reached, was lost, or runs other versions
    └── MissingExtraError      an optional library is not installed (also an ImportError)

If a limit is reached but there are usable bounds, they are a result, not an exception. A
:class:`QueryWarning` says that a question was answered but may not be the one that was meant, or
that one of many questions was left out because it is too large for the method. A
:class:`JournalWarning` says that lines of a journal are damaged and were not used.

Messages name an option as the command line spells it (``--gap``). If the argument in Python is
another word, it follows in brackets: ``--max-share (max_share)``.
"""

from __future__ import annotations


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


class ModelFormatError(XCountError):
    """A model file is malformed; the message says where."""


class UnsupportedModelError(XCountError):
    """A model uses a construct that XCount does not represent; the message names it."""


class QueryError(XCountError, ValueError):
    """A question that does not fit the model."""


class UnknownFeatureError(QueryError):
    """The model has no feature of a name; ``name`` is the name."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class QueryWarning(UserWarning):
    """A question may not be the one that was meant, or was left out of a series."""


class BudgetError(XCountError):
    """The work is too large for the chosen method; ``code`` is the reason, for programs."""

    def __init__(self, message: str, code: str = "too_large") -> None:
        super().__init__(message)
        self.code = code


class OutOfLimitsError(BudgetError):
    """Time or memory ran out before there was any answer."""


class TableError(XCountError, ValueError):
    """A data table does not fit the model; the message names columns, rows and types."""


class JournalError(XCountError):
    """A journal cannot be used: damaged, in use, not writable; the message says what is safe."""


class JournalWarning(UserWarning):
    """Lines of a journal are not as a run wrote them, and were not used."""


class QuestionFileError(XCountError):
    """A question file is malformed; the message says where."""


class VerificationError(XCountError):
    """The verified counter found another number, or a question is not about the model."""


class ClusterError(XCountError):
    """A cluster cannot be used; the message says what is safe and what to do."""


class MissingExtraError(XCountError, ImportError):
    """An optional library is needed; the message names the extra to install."""
