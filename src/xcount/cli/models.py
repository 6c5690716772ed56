"""From the words on the command line to an ensemble and its features."""

from __future__ import annotations

from collections.abc import Iterable

from xcount.model.ensemble import Ensemble
from xcount.model.loaders import load


def load_model(path: str, trust_pickle: bool = False) -> Ensemble:
    """Read a model file."""
    return load(path, trust_pickle=trust_pickle)


def split_names(ensemble: Ensemble, texts: Iterable[str]) -> list[str]:
    """Split lists with commas into names; a name that has a comma itself stays whole."""
    names: list[str] = []
    for text in texts:
        whole = text in ensemble.feature_names
        names += [text] if whole else [word.strip() for word in text.split(",")]
    return names
