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

PMML = Kind(
    "a PMML document",
    "XML",
    "XCount reads the model that it was written from: pass the fitted model, or save it in the "
    "format of its own library",
)
R_FILE = Kind(
    "an R file (RDS or RData)",
    "what saveRDS or save has written",
    "in R, save the model in its library's format: xgb.save(model, 'model.json'), "
    "lgb.save(model, 'model.txt') or "
    "catboost.save_model(model, 'model.json', file_format = 'json'); write the trees of other "
    "models as a table (docs/howto/tables-of-trees.md)",
)
H2O = Kind(
    "an H2O model (MOJO or POJO)",
    "what download_mojo or download_pojo has written",
    "write its trees as a table (docs/howto/tables-of-trees.md), which XCount reads",
)
SPARK = Kind(
    "a model of Spark ML",
    "what save of a pipeline or model has written",
    "of XGBoost on Spark, save model.get_booster() as JSON, of SynapseML's LightGBM call "
    "saveNativeModel; write the trees of others as a table (docs/howto/tables-of-trees.md)",
)
NETWORK = Kind(
    "a neural network (Keras, PyTorch or TensorFlow)",
    "weights of layers",
    "XCount counts regions of tree ensembles; a network has none that can be listed",
)
ML_MODEL = Kind(
    "the MLmodel file of an MLflow model",
    "YAML that lists its flavors",
    "give the folder that it is in",
)
OTHER_SYSTEMS = (PMML, R_FILE, H2O, SPARK, NETWORK, ML_MODEL)
"""Models that exist, but that XCount does not read."""

_START_BYTES = 2**16
_OTHER_SYSTEMS_MARKS: tuple[tuple[re.Pattern[bytes], Kind], ...] = (
    (re.compile(rb"(?s)(<\?xml.{0,200}?\?>)?\s*(<!--.{0,2000}?-->\s*)*<PMML\b"), PMML),
    (re.compile(rb"RD[AX][23]\n|X\n\0\0\0[\2\3]\0|A\n[23]\n"), R_FILE),
    (re.compile(rb"(?s)PK\x03\x04.{0,4000}?(model\.ini|experimental/modelDetails\.json)"), H2O),
    (re.compile(rb"(?s).{0,4000}?\bimport hex\.genmodel\."), H2O),
    (re.compile(rb'(?s)\{.{0,400}?"class":\s*"org\.apache\.spark\.ml\.'), SPARK),
    (re.compile(rb"\x89HDF\r\n"), NETWORK),
    (
        re.compile(
            rb"(?s)PK\x03\x04.{26}[^/]{0,80}(/data\.pkl|/\.format_version|model\.weights\.h5)"
        ),
        NETWORK,
    ),
    (re.compile(rb"(?s)PK\x03\x04.{26}metadata\.json.{0,4000}?config\.json"), NETWORK),
    (re.compile(rb"(?s)(?:[a-z_]+:[^\n]*\n|[ \t]+[^\n]*\n)*?flavors:\s*\n"), ML_MODEL),
)
_FOLDER_MARKS: tuple[tuple[tuple[str, ...], Kind], ...] = (
    (("metadata", "data"), SPARK),
    (("metadata", "stages"), SPARK),
    (("saved_model.pb",), NETWORK),
)
_JSON_MARKS: tuple[tuple[re.Pattern[bytes], Kind], ...] = (
    (re.compile(rb'\{\s*"kind":\s*"(run|result)"'), JOURNAL),
    (re.compile(rb'\{\s*"format":\s*"xcount-population'), POPULATION),
    (re.compile(rb'\{\s*"kind":\s*"(audit|compare|witnesses)"'), RESULT),
    (re.compile(rb'\{\s*"sensitive":[^\n]*"n_regions":'), RESULT),
    (re.compile(rb'\{\s*"model":\s*\{\s*"path":'), RESULT),
    (
        re.compile(
            rb'(?s).{0,400}?"(learner|oblivious_trees|features_info|model_info|nodeid|ebm)":'
        ),
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
    (
        "ubjson",
        "catboost-binary",
        "skops",
        "pickle",
        "xgboost-binary",
        "node-table",
        "treelite",
        "onnx",
    ),
    MODEL,
)


def kind_of(data: bytes) -> Kind | None:
    """Tell a file by how it begins; None if that is nothing known."""
    start = data[:_START_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PAR1"):
        return TABLE
    for mark, kind in _OTHER_SYSTEMS_MARKS:
        if mark.match(start):
            return kind
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


def of_another_system(path: str | os.PathLike[str], data: bytes) -> str | None:
    """Say what model of another system a file holds, and what to do; None for other files."""
    return _not_read(path, kind_of(data))


def folder_of_another_system(path: str | os.PathLike[str]) -> str | None:
    """Say what model of another system a folder holds, and what to do; None for other folders."""
    held = {entry.name for entry in os.scandir(path)}
    kind = next((kind for names, kind in _FOLDER_MARKS if held.issuperset(names)), None)
    return _not_read(path, kind)


def _not_read(path: str | os.PathLike[str], kind: Kind | None) -> str | None:
    if kind not in OTHER_SYSTEMS:
        return None
    return f"{os.fspath(path)} is {kind.words}, which XCount does not read; {kind.use}"


def unreadable(path: str | os.PathLike[str], error: OSError, expected: Kind) -> str:
    """Say why a file cannot be read."""
    name = os.fspath(path)
    if isinstance(error, IsADirectoryError):
        return f"{name}: is a directory, expected {expected.expected}; name a file in it"
    return f"cannot read {name}: {error.strerror or error}"
