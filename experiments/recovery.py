"""Search for the settings that the paper's models were trained with.

The paper gives two numbers of guards for each data set: of its smallest models (10 trees of
depth 3) and of its largest (100 trees of depth 6). Both are trained here with every combination of
the settings that a person would choose without saying so, and compared with those numbers:

    python -m experiments.recovery [--only diabetes adult]

Trainings are noted one by one, and a search continues where it ended; ``--table`` only prints what
is there. The large model is trained only if the small one comes within a third of the paper's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import (
    BY_KEY,
    SPECS,
    as_numbers,
    as_target,
    load_table,
    read_table,
    training_part,
)
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import RUNS, Runs, append_line, read_lines
from benchmarks.harness.tables import markdown

SMALL, LARGE = (3, 10), (6, 100)
"""Depth and number of trees of the paper's smallest and largest models."""
NEAR = math.log(4 / 3)
N_BEST = 3
FILE = "recovery.jsonl"
HALF_WRONG = "1, all of the second part 0"
BY_APPEARANCE = "1, words coded in the order of appearance"
ADULT_FIRST_PART = 32561
"""Rows of Adult's first part; in the second, labels are written with a dot."""
UNSAID = (
    ("exact", 0.5),
    ("exact", None),
    ("approx", 0.5),
    ("approx", None),
    ("hist", 0.5),
    ("hist", None),
)
"""How splits are searched, and the base score: 0.5 in versions before 2, else estimated."""
IMAGES = ("mnist", "fashion")


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of one training, and its data.

    Attributes:
        tree_method: how XGBoost looks for splits.
        base_score: what the sum starts from; None where XGBoost estimates it.
        eta: the learning rate.
        objective: what XGBoost minimises.
        target: ``"number"``, or the class that is separated from the rest.
        part: ``"split"`` for 80 % of the rows, ``"all"`` for all of them.
    """

    tree_method: str
    base_score: float | None
    eta: float
    objective: str
    target: str
    part: str

    @property
    def text(self) -> str:
        start = "estimated" if self.base_score is None else f"{self.base_score:g}"
        rows = "80 % of the rows" if self.part == "split" else "all rows"
        learnt = "" if self.target in {"number", "1"} else f", target {self.target}"
        return (
            f"{self.tree_method}, base score {start}, eta {self.eta:g}, {self.objective}{learnt}, "
            f"{rows}"
        )


def settings_of(key: str) -> Iterator[Setting]:
    """Yield the settings worth a trial, the likely ones first."""
    targets = _targets(key)
    for part in ("split", "all"):
        for eta in (0.1, 0.3):
            for objective, target in targets:
                for method, base in UNSAID:
                    yield Setting(method, base, eta, objective, target, part)


def _targets(key: str) -> list[tuple[str, str]]:
    """Return what may have been learnt: objective and target."""
    if key == "adult":
        return [("binary:logistic", target) for target in ("1", HALF_WRONG, BY_APPEARANCE)]
    if BY_KEY[key].positive == ("1",):
        return [("binary:logistic", "1"), ("reg:squarederror", "1")]
    if key in {*IMAGES, "covtype"}:
        first = "1" if key == "covtype" else "0"
        return [("reg:squarederror", "number"), ("binary:logistic", f"class {first}")]
    return [("reg:squarederror", "number")]


@lru_cache(maxsize=1)
def readings(
    key: str, target: str, data: str | Path | None
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return all rows and targets of a set, with the target read in one of the possible ways."""
    spec = BY_KEY[key]
    if target == "1" or (target == "number" and not spec.positive):
        return load_table(spec, data)[1:]
    table, labels = read_table(spec, data)
    if target == BY_APPEARANCE:
        return as_numbers(table, _codes_by_appearance), as_target(spec, labels)
    rows = as_numbers(table)
    if target == HALF_WRONG:
        right = as_target(spec, labels)
        return rows, np.where(np.arange(len(right)) < ADULT_FIRST_PART, right, 0.0)
    numbers = np.asarray(labels.astype(str).astype(float), dtype=np.float64)
    if target == "number":
        return rows, numbers
    return rows, np.asarray(numbers == float(target.removeprefix("class ")), dtype=np.float64)


def _codes_by_appearance(column: Any) -> NDArray[np.int64]:
    import pandas as pd

    return np.asarray(pd.factorize(column)[0])


def n_guards(
    rows: NDArray[np.float32], target: NDArray[np.float64], setting: Setting, size: tuple[int, int]
) -> int:
    """Train, and return the number of guards."""
    import xgboost as xgb

    depth, n_trees = size
    parameters = {
        "tree_method": setting.tree_method,
        "objective": setting.objective,
        "eta": setting.eta,
        "max_depth": depth,
        "seed": 0,
        "nthread": 1,
        **({} if setting.base_score is None else {"base_score": setting.base_score}),
    }
    booster = xgb.train(parameters, xgb.DMatrix(rows, target), n_trees)
    nodes: Any = booster.trees_to_dataframe()
    splits = nodes[nodes["Feature"] != "Leaf"]
    return len(splits[["Feature", "Split"]].drop_duplicates())


def distance(found: Sequence[int | None], wanted: Sequence[int]) -> float:
    """Return how far numbers of guards are from the paper's: the sum of the logarithms' errors."""
    return sum(
        math.inf if number is None else abs(math.log(number / paper))
        for number, paper in zip(found, wanted, strict=True)
    )


def search(key: str, data: str | Path | None, notes: Path) -> None:
    """Try every setting on a data set that has not been tried."""
    done = {_identity(note) for note in read_lines(notes)}
    small, large = BY_KEY[key].paper_guards
    for setting in settings_of(key):
        note: dict[str, Any] = {"dataset": key, **asdict(setting)}
        if _identity(note) in done:
            continue
        everything = readings(key, setting.target, data)
        rows, target = training_part(*everything, setting.part == "split")
        note["small"] = n_guards(rows, target, setting, SMALL)
        is_near = distance([note["small"]], [small]) < NEAR
        note["large"] = n_guards(rows, target, setting, LARGE) if is_near else None
        append_line(notes, note)
        print(key, setting.text, note["small"], small, note["large"], large, file=sys.stderr)


def _identity(note: Mapping[str, Any]) -> tuple[Any, ...]:
    return (note["dataset"], *(note[name] for name in Setting.__slots__))


def table(notes: Sequence[Mapping[str, Any]]) -> str:
    """Return the nearest settings of each data set beside the paper's numbers."""
    rows = []
    for spec in SPECS:
        tried = [note for note in notes if note["dataset"] == spec.key]
        tried.sort(key=lambda note: distance((note["small"], note["large"]), spec.paper_guards))
        for note in tried[:N_BEST]:
            setting = Setting(**{name: note[name] for name in Setting.__slots__})
            numbers = [note["small"], note["large"]]
            is_exact = tuple(numbers) == spec.paper_guards
            rows.append(
                [
                    spec.title,
                    setting.text,
                    *(str(n) if n is not None else "" for n in numbers),
                    *map(str, spec.paper_guards),
                    "exactly" if is_exact else "",
                ]
            )
    header = ["data set", "setting", "guards, fewest", "most", "paper: fewest", "most", "the same"]
    return markdown(header, rows)


def section(runs: Runs, folder: Path) -> str:
    """Return the settings that come closest to the paper's models."""
    return table(read_lines(folder / FILE))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.recovery", __doc__, RUNS / FILE)
    parser.add_argument("--only", nargs="*", choices=list(BY_KEY), help="data sets (default: all)")
    parser.add_argument("--table", action="store_true", help="only print what has been found")
    options = parser.parse_args(arguments)
    if not options.table:
        for key in options.only or BY_KEY:
            search(key, options.data, options.output)
    print(table(read_lines(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
