"""What a file is that was given where another kind was expected, and what to do with it.

A file is told by how it begins, as far as one line of words needs it; nothing is read in full.
Whoever cannot read a file asks :func:`mistaken` for that line before saying what is wrong with its
content.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass

from xcount.model.loaders import files


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        words: what it is called.
        more: where it comes from, for those who expected one and got another.
        use: what to do with it; PATH stands for its path.
    """

    words: str
    more: str
    use: str

    @property
    def expected(self) -> str:
        return f"{self.words} ({self.more})"


MODEL = Kind(
    "a model file",
    "of XGBoost, LightGBM, CatBoost or scikit-learn",
    "to ask about it and write a report, type: xcount audit PATH --html report.html",
)
JOURNAL = Kind(
    "a journal",
    "what --journal of an audit or a comparison has saved",
    "to show it, type: xcount report PATH",
)
POPULATION = Kind(
    "a saved population",
    "what --population has saved",
    "to show it, type: xcount inspect PATH; to weigh by it, give --population PATH",
)
DOMAIN = Kind("a domain", "TOML with one-hot, where or rule", "give it as --domain PATH")
TABLE = Kind("a table", "CSV or Parquet with a column per feature", "give it as --data PATH")
RESULT = Kind(
    "a result",
    "what --json has printed",
    "no command reads it; a run that is to be shown again is kept with --journal FILE",
)
PAGE = Kind("an HTML page", "what --html has written", "open it in a browser")
FORMULA = Kind("a formula", "what xcount encode has written", "give it to a model counter")

_START_BYTES = 2**16
_JSON_MARKS: tuple[tuple[re.Pattern[bytes], Kind], ...] = (
    (re.compile(rb'\{\s*"kind":\s*"(run|result)"'), JOURNAL),
    (re.compile(rb'\{\s*"format":\s*"xcount-population'), POPULATION),
    (re.compile(rb'\{\s*"kind":\s*"(audit|compare|witnesses)"'), RESULT),
    (re.compile(rb'\{\s*"sensitive":[^\n]*"n_regions":'), RESULT),
    (re.compile(rb'\{\s*"model":\s*\{\s*"path":'), RESULT),
    (
        re.compile(rb'(?s).{0,400}?"(learner|oblivious_trees|features_info|model_info|nodeid)":'),
        MODEL,
    ),
)
_TEXT_MARKS: tuple[tuple[re.Pattern[bytes], Kind], ...] = (
    (re.compile(rb"<(!doctype\s+html|html)\b", re.IGNORECASE), PAGE),
    (re.compile(rb"(c [^\n]*\n)*p cnf |c XCount"), FORMULA),
    (re.compile(rb"tree\r?\nversion="), MODEL),
    (re.compile(rb'(#[^\n]*\n|\s)*(\[\[?)?"?(one-hot|where|rule)"?(\.[^\n=]*)?\s*(=|\])'), DOMAIN),
)
_BINARY: dict[str, Kind] = dict.fromkeys(
    ("ubjson", "catboost-binary", "skops", "pickle", "xgboost-binary"), MODEL
)


def kind_of(data: bytes) -> Kind | None:
    """Tell a file by how it begins; None if that is nothing known."""
    start = data[:_START_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PAR1"):
        return TABLE
    form = files.recognise(start)
    if form in _BINARY:
        return _BINARY[form]
    marks = _JSON_MARKS if form == "json" else _TEXT_MARKS
    found = next((kind for mark, kind in marks if mark.match(start)), None)
    return TABLE if found is None and form == "unknown" and _is_table(start) else found


def _is_table(start: bytes) -> bool:
    """Tell whether the first two lines have equally many commas, and some."""
    lines = start.split(b"\n", 2)
    return len(lines) > 1 and lines[0].count(b",") == lines[1].count(b",") > 0


def mistaken(path: str | os.PathLike[str], data: bytes, expected: Kind) -> str | None:
    """Say that a file is of another kind than expected; None where that is not known."""
    name = os.fspath(path)
    if not data.strip():
        return f"{name}: the file is empty, expected {expected.expected}"
    kind = kind_of(data)
    if kind is None or kind is expected:
        return None
    use = kind.use.replace("PATH", shlex.quote(name))
    return f"{name} is {kind.words}, not {expected.expected}; {use}"


def unreadable(path: str | os.PathLike[str], error: OSError, expected: Kind) -> str:
    """Say why a file cannot be read."""
    name = os.fspath(path)
    if isinstance(error, IsADirectoryError):
        return f"{name}: is a directory, expected {expected.expected}; name a file in it"
    return f"cannot read {name}: {error.strerror or error}"
