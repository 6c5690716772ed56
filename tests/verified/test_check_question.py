"""``check_question.py``: a question is about a model file, or the difference is found."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import question_oracle

import xcount
from xcount.errors import VerificationError
from xcount.verified import check_question
from xcount.verified.model_check import check_model

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "src" / "xcount" / "verified" / "check_question.py"


def rows(seed: int, n_classes: int = 2) -> tuple[Any, Any]:
    """Return a frame of numbers, zeros, missing values and categories, and labels."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "gain": np.where(rng.random(n) < 0.4, 0.0, rng.normal(size=n)),
            "race": pd.Categorical(rng.choice(["White", "Black", "Other", "None"], n)),
            "sex": rng.integers(0, 2, n).astype(float),
        }
    )
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    score = frame["age"].fillna(40) / 20 + frame["gain"] + (frame["race"] == "Black") * 2
    score += frame["sex"] + rng.normal(size=n) * 0.3
    return frame, pd.qcut(score, n_classes, labels=False)


def xgboost_model(path: Path, **options: Any) -> str:
    """Train and save a model of XGBoost."""
    import xgboost

    frame, labels = rows(1, 3 if "num_class" in options else 2)
    data = xgboost.DMatrix(frame, labels, enable_categorical=True)
    options = {"objective": "binary:logistic", "max_depth": 3, **options}
    file = str(path / "model.json")
    xgboost.train(options, data, num_boost_round=4).save_model(file)
    return file


def lightgbm_model(path: Path, **options: Any) -> str:
    """Train and save a model of LightGBM."""
    import lightgbm

    frame, labels = rows(2, 3 if "num_class" in options else 2)
    options = {
        "objective": "binary",
        "num_leaves": 6,
        "verbose": -1,
        "min_data_in_leaf": 5,
    } | options
    options |= {"min_data_per_group": 5, "cat_smooth": 1}
    file = str(path / "model.txt")
    lightgbm.train(options, lightgbm.Dataset(frame, labels), 4).save_model(file)
    return file


MODELS: dict[str, tuple[Callable[..., str], dict[str, Any]]] = {
    "xgboost": (xgboost_model, {}),
    "xgboost regression": (xgboost_model, {"objective": "reg:squarederror"}),
    "xgboost classes": (xgboost_model, {"objective": "multi:softprob", "num_class": 3}),
    "lightgbm": (lightgbm_model, {}),
    "lightgbm zero is missing": (lightgbm_model, {"zero_as_missing": True}),
    "lightgbm without missing": (lightgbm_model, {"use_missing": False}),
    "lightgbm forest": (
        lightgbm_model,
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    ),
    "lightgbm classes": (lightgbm_model, {"objective": "multiclass", "num_class": 3}),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "gap": {"gap": "0.1", "distance": 1},
    "gap up": {"gap": "0.1", "direction": "up", "precision": 3},
    "flip": {"flip": True, "cutoff": "0.05", "direction": "down"},
    "missing": {"gap": "0.1", "missing": "cell", "distance": 2},
    "domain": {"gap": "0.1", "where": "age >= 30.5", "rule": "sex == 1 -> race != Black"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the files of all models."""
    found = {}
    for name, (train, options) in MODELS.items():
        folder = tmp_path_factory.mktemp("model")
        found[name] = train(folder, **options)
    return found


def write(model: str, path: Path, **asked: Any) -> Path:
    """Write a question about a model."""
    ensemble = xcount.load(model)
    if ensemble.n_outputs > 1 and "flip" in asked:
        asked = {"flip": True}
    elif ensemble.n_outputs > 1:
        asked = {**asked, "class_": 1}
    if ensemble.task == "regression" and "flip" in asked:
        asked = {**asked, "cutoff": "0.6"}
    question = path / "asked.question"
    xcount.count(ensemble, sensitive="age,race", question=question, timeout=1, **asked)
    return question


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the cut-off .* is a margin:xcount.errors.QueryWarning")
@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("name", MODELS)
def test_a_question_is_about_its_model(
    name: str, kind: str, files: dict[str, str], tmp_path: Path
) -> None:
    """Libraries' own files: categories, missing values, zero as missing, classes, forests."""
    question = write(files[name], tmp_path, **QUESTIONS[kind])
    status, found = check_question.compare(str(question), files[name])
    assert (status, found.partition(":")[0]) == (0, "same"), found
    assert ("not checked: the domain" in found) == (kind == "domain")
    other = files["xgboost" if name.startswith("lightgbm") else "lightgbm"]
    assert check_question.compare(str(question), other)[0] == 1


def is_question(text: str) -> bool:
    """Tell whether a text follows the grammar of question files."""
    try:
        question_oracle.read(text)
    except (AssertionError, ValueError, StopIteration):
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xgboost", "lightgbm zero is missing"])
def test_a_changed_number_is_found(name: str, files: dict[str, str], tmp_path: Path) -> None:
    """In a leaf, a test, a place, the threshold or the features that are asked about."""
    question = write(files[name], tmp_path, gap="0.1", missing="cell", distance=2)
    text = question.read_text()
    lines = text.split("\n")
    places = [
        (row, column)
        for row, line in enumerate(lines)
        if not line.startswith(("#", "xcount", "closed", "along", "rules", "from", "to"))
        for column, word in enumerate(line.split(" "))
        if word.lstrip("-").isdigit()
    ]
    changed = tmp_path / "changed.question"
    for row, column in random.Random(1).sample(places, min(150, len(places))):
        words = lines[row].split(" ")
        words[column] = str(int(words[column]) + 1)
        changed.write_text("\n".join([*lines[:row], " ".join(words), *lines[row + 1 :]]))
        if not is_question(changed.read_text()):
            continue  # no counter reads it
        status, found = check_question.compare(str(changed), files[name])
        assert status in (1, 2), (lines[row], " ".join(words), found)


def test_names_and_cells_are_those_of_the_model(tmp_path: Path, figure_1_file: str) -> None:
    """A comment that says something else than the model is a difference, too."""
    question = tmp_path / "age.question"
    xcount.count(figure_1_file, sensitive="age", gap=80, distance=1, question=question)
    text = question.read_text()
    assert check_question.compare(str(question), figure_1_file)[0] == 0
    changes = {
        '"name": "age"': '"name": "sex"',
        "[[3.0, 4.0]]": "[[3.0, 3.5]]",
        "[[4.0, null]]": "[[4.0, 99.0]]",
        '"gap_text": "80"': '"gap_text": "81"',
        '"sensitive": ["age"]': '"sensitive": ["sex"]',
        "# outputs [0]": "# outputs [1]",
        '# scale "1"': '# scale "2"',
        "rules 0": "rules 1\nn 0 1 0 1 l 0 l 1",
    }
    for old, new in changes.items():
        assert old in text
        question.write_text(text.replace(old, new, 1))
        assert (old, check_question.compare(str(question), figure_1_file)[0]) != (old, 0)


def test_the_program_stands_alone(tmp_path: Path, figure_1_file: str) -> None:
    """It needs nothing but Python, and its source is short enough to be read."""
    question = tmp_path / "age.question"
    xcount.count(figure_1_file, sensitive="age", gap=80, distance=1, question=question)
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(question), figure_1_file]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "same: 6 leaves, 2 features\n", "")
    source = PROGRAM.read_text()
    assert len(source.splitlines()) <= 400
    assert "xcount." not in source
    link = ROOT / "verified" / "check_question.py"
    assert link.read_text() == source
    command[-1] = "absent.json"
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (2, "")
    assert run.stdout.startswith("cannot be read")


SEEDS = ROOT / "tests" / "corpus" / "seeds"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["catboost-symmetrictree.json", "sklearn-forest.skops", "xgboost.ubj"]
)
def test_other_formats_are_checked_by_predictions(name: str, tmp_path: Path) -> None:
    """By the library's own margins at random points; the contents are not compared, and said so."""
    pytest.importorskip(name.partition("-")[0].partition(".")[0])
    path, model = tmp_path / "asked.question", SEEDS / name
    first = xcount.load(model).feature_names[0]
    for asked in ({"gap": "0.05"}, {"gap": "0.05", "precision": 3}):
        xcount.count(model, sensitive=first, question=path, timeout=2, **asked)
        (found,) = check_model(path, model)
        assert found.startswith("same predictions at 500 random points, up to rounding")
        assert found.endswith("files are not compared")
    lines = path.read_text().splitlines(keepends=True)
    trees = [number for number, line in enumerate(lines) if line.startswith("n ")]
    words = lines[trees[0]].split(" ")
    leaves = [i + 1 for i, word in enumerate(words) if word == "l"]
    for leaf in leaves:
        words[leaf] = str(int(words[leaf]) + 10**6) + "\n" * words[leaf].endswith("\n")
    lines[trees[0]] = " ".join(words)
    path.write_text("".join(lines))
    with pytest.raises(VerificationError, match="the library predicts"):
        check_model(path, model)
