"""Is a question about a model file? By the file's contents, or by the library's own predictions.

``check_question.py`` compares the contents of XGBoost's JSON and LightGBM's text, in a process of
its own. Other formats are checked by predictions: the library's own margins at random points of
random cells must be the sums of the question's trees, up to rounding.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from xcount.errors import QuestionFileError, VerificationError
from xcount.model.ensemble import Ensemble
from xcount.question.domain import Domain
from xcount.verified import check_question

BY_CONTENTS = ("xgboost-json", "lightgbm-text")
"""Formats whose contents are compared."""
N_POINTS = 500
"""How many predictions are compared for other formats."""


def check_model(
    question: str | os.PathLike[str], model: str | os.PathLike[str], trust_pickle: bool = False
) -> tuple[str, ...]:
    """Return what was found, in sentences.

    Raises:
        VerificationError: the question is not about the model.
        QuestionFileError: the question does not say what its numbers stand for.
    """
    try:
        asked = check_question.read_question(Path(question).read_text("utf-8"))
        kind = asked.notes["model"]["format"]
    except (ValueError, LookupError, StopIteration, RecursionError, check_question.Difference):
        raise QuestionFileError(
            f"{os.fspath(question)}: no question file with comments that name a model"
        ) from None
    if kind in BY_CONTENTS:
        command = [sys.executable, "-I", check_question.__file__, question, model]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = tuple(run.stdout.split("\n")[:-1]) or ("cannot be read",)
        if run.returncode == 0:
            return lines
        if run.returncode == 1:
            raise VerificationError(f"{question} is not about {model}: {lines[0]}")
    return (_by_predictions(asked, model, trust_pickle),)


def _by_predictions(asked: Any, model: str | os.PathLike[str], trust_pickle: bool) -> str:
    from xcount.model.loaders import load
    from xcount.model.loaders.check import library_margins, rounding_bound

    ensemble = Domain.of(asked.notes["domain"]).pulled_back(load(model, trust_pickle=trust_pickle))
    if list(ensemble.feature_names) != [feature["name"] for feature in asked.features]:
        raise VerificationError(f"the model in {model} has other features than the question")
    chance = random.Random(0)
    regions = [[chance.randrange(len(p)) for p in asked.places] for _ in range(N_POINTS)]
    points = [
        [_point(asked, feature, cell, chance) for feature, cell in enumerate(region)]
        for region in regions
    ]
    rows = ensemble.columns_of(np.array(points, dtype=np.float64))
    source = ensemble.source
    expected = library_margins(source, model, rows, trust_pickle=trust_pickle)
    room = rounding_bound(source, rows)
    if asked.notes["asked"]["precision"] != "exact":
        room = room + (source.n_trees + 1) / float(Fraction(asked.notes["scale"]))
    for number, region in enumerate(regions):
        for output, found in zip(
            asked.notes["outputs"], _sums(asked, ensemble, region), strict=True
        ):
            if not abs(found - expected[number, output]) <= room[number, output]:
                raise VerificationError(
                    f"the question is not about {model}: at {points[number]} the library predicts "
                    f"{expected[number, output]:.9g}, the question's trees {found:.9g}"
                )
    return (
        f"same predictions at {N_POINTS} random points, up to rounding; the contents of "
        f"{ensemble.format} files are not compared"
    )


def _sums(asked: Any, ensemble: Ensemble, region: Sequence[int]) -> list[float]:
    """Return the sums of the question's trees in the library's unit, base scores included."""
    scale = Fraction(asked.notes["scale"])
    is_gap = asked.change[0] in ("gap", "rise", "fall")  # written without the base score
    found = []
    for output, trees in zip(asked.notes["outputs"], asked.outputs, strict=True):
        total = sum(_value(tree, region) for tree in trees) / scale
        found.append(float(total + Fraction(ensemble.base[output]) * is_gap))
    return found


def _value(tree: Any, region: Sequence[int]) -> int:
    while len(tree) > 1:
        tree = tree[2] if region[tree[0]] in tree[1] else tree[3]
    return int(tree[0])


def _point(asked: Any, feature: int, cell: int, chance: random.Random) -> float:
    """Return an input in a cell; of a one-hot group, the number of the column that is 1."""
    about = asked.features[feature]
    if cell == about.get("missing"):
        return float("nan")
    if "codes" in about:
        return float(chance.choice(about["codes"][cell]))
    if "columns" in about:
        columns = [c for c in asked.notes["domain"]["one_hot"][about["name"]] if c != "+none"]
        return float([*columns, None].index(chance.choice(about["columns"][cell])))
    low, high = chance.choice(about["numbers"][cell])
    if low is None:
        return 0.0 if high is None else float(high - max(1.0, abs(high) * 1e-3))
    if high is None:
        return float(chance.choice([low, low + max(1.0, abs(low))]))
    middle = float(np.float32(low + (high - low) * 0.5))
    return middle if low <= middle < high and chance.random() < 0.5 else float(low)
