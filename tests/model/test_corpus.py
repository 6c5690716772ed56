"""The model files that a fuzz damages, as they are: seeds are answered, findings stay found."""

from __future__ import annotations

from pathlib import Path

import pytest

import xcount
from tools.corpus import CORPUS
from tools.fuzz import try_file
from xcount.errors import MissingExtraError, ModelFormatError

SEEDS = sorted((CORPUS / "seeds").iterdir())
FINDINGS = sorted((CORPUS / "findings").iterdir())
MESSAGES = {
    "catboost-count-beyond-32-bits.json": "is not in 0 .. 2147483647",
    "catboost-leaf-true.json": "expected numbers, found true or false",
    "base-score-beyond-float32.json": "a base score of 1e+308 is impossible",
    "deep-nesting.json": "nested",
    "second-gzip-member-cut.json.gz": "the gzip'd file is truncated",
}
"""What refused findings say; the others are models."""


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_seeds_are_models(path: Path) -> None:
    """Each format is recognised, read and counted."""
    try:
        ensemble = xcount.load(path)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert ensemble.n_trees >= 1
    output = 0 if ensemble.n_outputs > 1 else None
    assert xcount.count(ensemble, sensitive=0, gap="0.01", class_=output).exact


def test_every_format_has_a_seed() -> None:
    """By the names that loaders give."""
    formats = set()
    for path in SEEDS:
        try:
            formats.add(xcount.load(path).format.split()[0].split("-")[0].lower())
        except MissingExtraError as error:
            pytest.skip(str(error))
    assert formats >= {
        "xgboost",
        "lightgbm",
        "catboost",
        "interpret",
        "sklearn",
        "table",
        "treelite",
    }


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.name)
def test_findings_stay_found(path: Path, tmp_path: Path) -> None:
    """An answer, or one clear line."""
    try_file(path.read_bytes(), tmp_path / "case")
    message = MESSAGES.get(path.name)
    if message is not None:
        with pytest.raises(ModelFormatError) as caught:
            xcount.load(path)
        assert message in str(caught.value)
    else:
        assert xcount.load(path).n_trees >= 1
