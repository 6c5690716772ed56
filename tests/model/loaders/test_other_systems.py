"""Models of systems that XCount does not read are called by their name, with what to do."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

import xcount
from xcount.errors import TableError, UnsupportedModelError
from xcount.model.examples import figure_1
from xcount.model.tables import read_table


def zipped(*names: str) -> bytes:
    """Return a zip archive with files of these names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return stream.getvalue()


FILES = {
    "PMML": b'<?xml version="1.0"?>\n<!-- R -->\n<PMML version="4.4" xmlns="http://x"></PMML>',
    "PMML without a declaration": b"<PMML version='4.2'><Header/></PMML>",
    "RDS": gzip.compress(b"X\n\0\0\0\x03\0\x04\x02\0" + bytes(40)),
    "RDS as text": b"A\n3\n262656\n197888\n",
    "RData": gzip.compress(b"RDX3\nX\n\0\0\0\x03" + bytes(40)),
    "H2O MOJO": zipped("model.ini", "domains/d000.txt", "trees/t00_000.bin"),
    "H2O POJO": b"/*\n  Licensed\n*/\nimport java.util.Map;\nimport hex.genmodel.GenModel;\n",
    "Spark": b'{"class":"org.apache.spark.ml.classification.RandomForestClassificationModel"}\n',
    "Keras": zipped("metadata.json", "config.json", "model.weights.h5"),
    "PyTorch": zipped("model/data.pkl", "model/version"),
    "MLmodel": b"artifact_path: model\nflavors:\n  sklearn:\n    pickled_model: model.pkl\n",
}
NAMES = {
    "PMML": "PMML document",
    "RDS": "R file",
    "RData": "R file",
    "H2O": "H2O model",
    "Spark": "Spark ML",
    "Keras": "neural network",
    "PyTorch": "neural network",
    "MLmodel": "MLmodel file of an MLflow model",
}


@pytest.mark.parametrize("case", FILES)
def test_the_line_names_the_system(case: str, tmp_path: Path) -> None:
    """One line, with the name of the file and what to do; never that it is no model."""
    path = tmp_path / "given"
    path.write_bytes(FILES[case])
    with pytest.raises(UnsupportedModelError) as caught:
        xcount.load(path)
    message = str(caught.value)
    assert NAMES[case.partition(" ")[0]] in message
    assert message.startswith(f"{path} is ")
    assert "; " in message
    assert "not a model file" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("names", "system"),
    [(("metadata", "data", "treesMetadata"), "Spark ML"), (("saved_model.pb",), "neural network")],
)
def test_folders_are_told_too(names: tuple[str, ...], system: str, tmp_path: Path) -> None:
    """Spark and TensorFlow save folders."""
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(UnsupportedModelError, match=system):
        xcount.load(tmp_path)


def test_a_table_that_is_a_model_of_another_system(tmp_path: Path) -> None:
    """The line says what the file is, also where a table was expected."""
    path = tmp_path / "data.csv"
    path.write_bytes(FILES["RDS"])
    with pytest.raises(TableError, match="is an R file"):
        read_table(path, figure_1())
