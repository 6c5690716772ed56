"""The ten data sets of the paper: where they come from, what is learnt on them, how to load them.

A set is looked for in a local folder first (``--data``, ``XCOUNT_DATA`` or ``../shared/data``),
then on OpenML through scikit-learn, which keeps a copy in its cache.

The paper does not say what its models learn, or how; each model must be one sum of n trees. A 0/1
target is learnt with ``binary:logistic``, any other target (classes included) as a number with
``reg:squarederror``. Fashion-MNIST as a number has nearly twice the paper's guards, so its class 0
is separated from the rest instead. ``datasets.toml`` has the recipe of each set: the closest to the
paper's numbers of guards that :mod:`experiments.recovery` found (exactly those numbers for Diabetes
and Protein structure). Adult's is nearly as close: its smallest model has the paper's guards, and
Diabetes has the same recipe.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

PROJECT = Path(__file__).resolve().parents[2]
TEST_SIZE = 0.2
SPLIT_SEED = 42

Objective = Literal["binary:logistic", "reg:squarederror"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How XGBoost is trained, where the defaults of its versions differ.

    Attributes:
        tree_method: how it looks for splits.
        base_score: what the sum starts from: 0.5 in versions before 2; None where it is estimated.
        eta: the learning rate.
        is_split: whether the first part of ``train_test_split(test_size=0.2, random_state=42)`` is
            trained on, or all rows.
    """

    tree_method: str = "hist"
    base_score: float | None = None
    eta: float = 0.1
    is_split: bool = True


PLAIN = Recipe()


class DataError(Exception):
    """A data set is neither in the local folder nor to be had from OpenML."""


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What is known about a data set before it is read.

    Attributes:
        key: short name, used in file names and on the command line.
        title: the paper's name.
        file: name in the local folder; None for a set that scikit-learn ships.
        objective: what XGBoost minimises on it.
        gap: the gap that the paper asks about, as a decimal.
        openml: name and version on OpenML; None where it is not needed.
        paper_guards: fewest and most guards of a model, in the paper's table 1.
        paper_instances: number of instances, in the same table.
        positive: spellings of the positive class; empty if the target is a number.
        openml_target: name of the target column, where OpenML does not say it.
        note: how our copy differs from the full set.
        sha256: the hash of our copy's file.
        recipe: how the models of the paper's suite are trained.
    """

    key: str
    title: str
    objective: Objective
    gap: str
    paper_guards: tuple[int, int]
    file: str | None = None
    openml: tuple[str, int] | None = None
    paper_instances: int = 320
    positive: tuple[str, ...] = ()
    openml_target: str | None = None
    note: str = ""
    sha256: str = ""
    recipe: Recipe = PLAIN


def _read_specs(path: Path) -> tuple[DatasetSpec, ...]:
    """Read the data sets from their TOML file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["dataset"]
    found = []
    for table in tables:
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in table.items()
        }
        found.append(DatasetSpec(**fields | {"recipe": Recipe(**table["recipe"])}))
    return tuple(found)


SPECS = _read_specs(Path(__file__).with_suffix(".toml"))
BY_KEY = {spec.key: spec for spec in SPECS}


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows and targets of one set, split once and for all."""

    spec: DatasetSpec
    feature_names: tuple[str, ...]
    train_rows: NDArray[np.float32]
    train_target: NDArray[np.float64]
    test_rows: NDArray[np.float32]
    test_target: NDArray[np.float64]


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder to look in: the given one, else ``XCOUNT_DATA``, else the default.

    The default is the folder ``data`` in ``XCOUNT_SHARED``, or in ``shared`` beside the project.
    """
    shared = Path(os.environ.get("XCOUNT_SHARED") or PROJECT.parent / "shared")
    return Path(folder or os.environ.get("XCOUNT_DATA") or shared / "data")


def is_local(spec: DatasetSpec, folder: str | Path | None = None) -> bool:
    """Tell whether a set can be had without the network."""
    return spec.file is None or (data_folder(folder) / spec.file).exists()


def load_dataset(key: str, folder: str | Path | None = None) -> Dataset:
    """Return a data set, split into training and test rows."""
    from sklearn.model_selection import train_test_split

    spec = BY_KEY[key]
    names, rows, target = load_table(spec, folder)
    train_rows, test_rows, train_target, test_target = train_test_split(
        rows, target, test_size=TEST_SIZE, random_state=SPLIT_SEED
    )
    return Dataset(spec, names, train_rows, train_target, test_rows, test_target)


def training_part(
    rows: NDArray[np.float32], target: NDArray[np.float64], is_split: bool
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return what is trained on: the first part of the split, or all rows in their own order.

    Histograms depend on the order of the rows.
    """
    if not is_split:
        return rows, target
    from sklearn.model_selection import train_test_split

    rows, _, target, _ = train_test_split(
        rows, target, test_size=TEST_SIZE, random_state=SPLIT_SEED
    )
    return rows, target


def load_table(
    spec: DatasetSpec, folder: str | Path | None = None
) -> tuple[tuple[str, ...], NDArray[np.float32], NDArray[np.float64]]:
    """Return the feature names, all rows and all targets of a set."""
    if spec.file is None:
        from sklearn.datasets import load_diabetes

        bunch: Any = load_diabetes()
        return tuple(bunch.feature_names), bunch.data.astype(np.float32), bunch.target
    table, labels = read_table(spec, folder)
    names = tuple(str(name).replace("-", "_") for name in table.columns)
    return names, as_numbers(table), as_target(spec, labels)


def read_table(spec: DatasetSpec, folder: str | Path | None = None) -> tuple[Any, Any]:
    """Return the rows and labels of a set as its file has them."""
    path = data_folder(folder) / str(spec.file)
    if not path.exists():
        return _from_openml(spec, path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != spec.sha256:
        print(
            f"{spec.title}: {path.name} is not our copy ({spec.note}; sha256 {spec.sha256}), so "
            "models and counts will differ",
            file=sys.stderr,
        )
    if path.suffix == ".npz":
        return _read_images(path)
    import pandas as pd

    table = pd.read_csv(path, keep_default_na=False)
    return table, table.pop("target")


def _read_images(path: Path) -> tuple[Any, Any]:
    import pandas as pd

    with np.load(path) as arrays:
        rows, labels = arrays["X"], arrays["y"]
    names = [f"pixel{i + 1}" for i in range(rows.shape[1])]
    return pd.DataFrame(rows, columns=names), pd.Series(labels)


def as_numbers(
    table: Any, codes_of: Callable[[Any], NDArray[np.int64]] | None = None
) -> NDArray[np.float32]:
    """Return a table as numbers; a column of words becomes codes, in alphabetical order."""
    import pandas as pd

    columns = [
        column if pd.api.types.is_numeric_dtype(column) else (codes_of or _codes)(column)
        for _, column in table.items()
    ]
    return np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def _codes(column: Any) -> NDArray[np.int64]:
    words = column.astype(object).where(column.notna(), "?").astype(str)
    return np.unique(words.to_numpy(str), return_inverse=True)[1]


def as_target(spec: DatasetSpec, labels: Any) -> NDArray[np.float64]:
    """Return what is learnt: a number, or 1 for the positive class and 0 for the rest."""
    if not spec.positive:
        return np.asarray(labels.astype(str).astype(float), dtype=np.float64)
    words = labels.astype(str).str.strip()
    same = words.isin([*spec.positive, *(f"{word}.0" for word in spec.positive)])
    if not 0 < same.sum() < len(same):
        raise DataError(
            f"{spec.title}: {same.sum()} of {len(same)} rows are of class {spec.positive[0]!r}"
        )
    return np.asarray(same, dtype=np.float64)


def _from_openml(spec: DatasetSpec, missing: Path) -> tuple[Any, Any]:
    """Fetch a set from OpenML, or say what to do."""
    from sklearn.datasets import fetch_openml

    if spec.openml is None:
        raise DataError(f"{spec.title}: {missing} does not exist")
    name, version = spec.openml
    try:
        bunch = fetch_openml(
            name,
            version=version,
            as_frame=True,
            parser="auto",
            target_column=spec.openml_target or "default-target",
        )
    except Exception as error:
        raise DataError(
            f"{spec.title}: {missing} does not exist, and OpenML's {name!r} (version {version}) "
            f"cannot be fetched ({error}); put the file there, or name its folder with --data or "
            "the environment variable XCOUNT_DATA"
        ) from error
    print(
        f"{spec.title}: the whole set, from OpenML; our copy is another ({spec.note}), so models "
        "and counts will differ",
        file=sys.stderr,
    )
    return bunch.data, bunch.target
