"""The regularisation study: does a larger L1 penalty leave fewer sensitive regions?

Adult, depth 3 and 4, 20, 30 and 40 trees, alpha 0, 1, 5 and 10: 24 models, asked about 13 features
one at a time with gap 0.5 and distance 1, as in the paper. The four models of a size share one
grid, so that their counts are about the same regions; all counts are exact. Beside the regions, the
test rows that are sensitive are counted.

The paper has one split of the rows, and labels that are wrong in the second part of the data (see
docs/errata.md). Here the study is made with those labels and with the right ones, over many splits.
Models of 20, 30 and 40 trees share their first trees, and the features of one model its trees: such
counts are not independent. So each split gives one number for each alpha, and the test is about
splits:

    python -m experiments.regularisation [--splits 20]

Splits are noted in ``benchmarks/runs/regularisation.jsonl`` one by one, and a run continues
where it ended; ``--table`` only prints what is there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import BY_KEY, TEST_SIZE, DataError, load_table
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import RUNS, append_line, read_lines, surroundings
from experiments.recovery import HALF_WRONG, readings
from experiments.regularisation_report import ALPHAS, FILE, SHOWN_SPLIT, report
from xcount import Ensemble, Grid, count, load

DATASET, GAP, PRECISION = "adult", "0.5", 3
DEPTHS = (3, 4)
TREES = (20, 30, 40)
FEATURES = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip
LABELS = {"paper": HALF_WRONG, "right": "1"}
"""Which labels: as in the paper's table, or as they are."""
N_SPLITS = 20
LIMIT_SECONDS = 60.0

Sizes = dict[int, dict[int, Ensemble]]
"""The models of one depth: by number of trees, then by alpha."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """One split of the rows, with one kind of labels."""

    labels: str
    seed: int
    train: tuple[NDArray[np.float32], NDArray[np.float64]]
    test: tuple[NDArray[np.float32], NDArray[np.float64]]

    @classmethod
    def of(cls, labels: str, seed: int, data: str | Path | None) -> Split:
        """Read the rows and split them."""
        from sklearn.model_selection import train_test_split

        rows, target = readings(DATASET, LABELS[labels], data)
        train_rows, test_rows, train_target, test_target = train_test_split(
            rows, target, test_size=TEST_SIZE, random_state=seed
        )
        return cls(labels, seed, (train_rows, train_target), (test_rows, test_target))

    def studied(self, names: Sequence[str]) -> dict[str, Any]:
        """Train the 24 models, count, and return what a line of the file says."""
        scores: list[dict[str, Any]] = []
        counts: list[dict[str, Any]] = []
        for depth in DEPTHS:
            sizes = self._models(depth, names, scores)
            for n_trees, by_alpha in sizes.items():
                grid = Grid.of(*by_alpha.values())
                for feature in FEATURES:
                    about = {"depth": depth, "n_trees": n_trees, "feature": feature}
                    counts.append(about | self._counted(by_alpha, grid, feature))
        return {"labels": self.labels, "seed": self.seed, "scores": scores, "counts": counts}

    def _models(self, depth: int, names: Sequence[str], scores: list[dict[str, Any]]) -> Sizes:
        """Train on the first part of the rows, score on the second; one training per alpha."""
        import xgboost as xgb

        matrix = xgb.DMatrix(*self.train, feature_names=list(names))
        unseen = xgb.DMatrix(self.test[0], feature_names=list(names))
        sizes: Sizes = {n_trees: {} for n_trees in TREES}
        for alpha in ALPHAS:
            parameters = {
                "tree_method": "exact", "base_score": 0.5, "eta": 0.1, "max_depth": depth,
                "objective": "binary:logistic", "alpha": alpha, "nthread": 1,
            }  # fmt: skip
            booster = xgb.train(parameters, matrix, max(TREES))
            for n_trees in TREES:
                part = booster[:n_trees]
                sizes[n_trees][alpha] = load(part)
                about = {"depth": depth, "n_trees": n_trees, "alpha": alpha}
                scores.append(about | _scores(part.predict(unseen), self.test[1]))
        return sizes

    def _counted(
        self, by_alpha: Mapping[int, Ensemble], grid: Grid, feature: str
    ) -> dict[str, Any]:
        """Count one feature of the models of one size."""
        shares: list[float] = []
        rows: list[float] = []
        for ensemble in by_alpha.values():
            result = count(
                ensemble,
                sensitive=feature,
                gap=GAP,
                distance=1,
                precision=PRECISION,
                grid=grid,
                method="exact",
                measures="rows",
                data=self.test[0].astype(np.float64),
                timeout=LIMIT_SECONDS,
                jobs=1,
            )
            if not result.exact or result.share is None:
                raise SystemExit(f"{feature}: not exact within {LIMIT_SECONDS:g} s")
            shares.append(result.share)
            rows.append(float(result.measures["rows"].interval.least))
        used = [feature in _used_names(ensemble) for ensemble in by_alpha.values()]
        return {"regions": shares, "rows": rows, "is_used": all(used)}


@lru_cache(maxsize=64)
def _used_names(ensemble: Ensemble) -> frozenset[str]:
    tested = {int(f) for tree in ensemble.trees for f in tree.feature if f >= 0}
    return frozenset(ensemble.feature_names[feature] for feature in tested)


def _scores(chance: NDArray[np.float32], truth: NDArray[np.float64]) -> dict[str, float]:
    """Return the five scores of the paper's table, at the threshold 0.5."""
    from sklearn import metrics

    says = chance >= 0.5
    found = {
        "accuracy": metrics.accuracy_score(truth, says),
        "precision": metrics.precision_score(truth, says),
        "recall": metrics.recall_score(truth, says),
        "F1": metrics.f1_score(truth, says),
        "AUC": metrics.roc_auc_score(truth, chance),
    }
    return {name: round(float(value), 4) for name, value in found.items()}


def run(path: Path, n_splits: int, data: str | Path | None) -> None:
    """Study every split that the file does not hold, the paper's own first."""
    names = load_table(BY_KEY[DATASET], data)[0]
    done = {(line["labels"], line["seed"]) for line in read_lines(path)}
    for seed in (SHOWN_SPLIT, *range(n_splits)):
        for labels in LABELS:
            if (labels, seed) in done:
                continue
            line = Split.of(labels, seed, data).studied(names) | surroundings()
            append_line(path, line)
            print(f"{labels} labels, split {seed}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.regularisation", __doc__, RUNS / FILE)
    parser.add_argument("--splits", type=int, default=N_SPLITS, metavar="N")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    try:
        if not options.table:
            run(options.output, options.splits, options.data)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(report(read_lines(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
