"""What a repair costs on held-out rows, beside shrinking and dropping the feature and retraining.

    python -m benchmarks.repair [--data FOLDER] [--splits N]

XGBoost models (50 trees of depth 4) of three data sets, on random splits into 80 % to train and 20
% to test; the seeds of the splits are 0, 1, ... Each question is repaired, and the count of the
repaired model must be an exact 0. Losses are those of ``xcount repair --test``: log-loss for
classes, RMSE for numbers.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import xcount
from benchmarks.harness.datasets import BY_KEY, load_table
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown

OUTPUT = Path("benchmarks/results/repair.md")
TREES, DEPTH, TRAINED = 50, 4, 0.8


@dataclass(frozen=True)
class Question:
    """A data set and a limit."""

    dataset: str
    objective: str
    sensitive: str
    distance: str
    gap: str


QUESTIONS = (
    Question("adult", "binary:logistic", "sex", "any", "0.5"),
    Question("adult", "binary:logistic", "age", "1", "0.3"),
    Question("adult", "binary:logistic", "age", "any", "1"),
    Question("higgs", "binary:logistic", "0", "1", "0.2"),
    Question("protein", "reg:squarederror", "0", "1", "0.5"),
)


def measured(question: Question, split: int, folder: Path, data: str | None) -> list[float]:
    """Return share before, and losses: before, repaired, shrunk, without; and processor time."""
    import xgboost

    names, rows, target = load_table(BY_KEY[question.dataset], data)
    order = np.random.default_rng(split).permutation(len(rows))
    n_train = int(TRAINED * len(rows))
    parts = [
        {**dict(zip(names, rows[part].T, strict=True)), "target": target[part]}
        for part in (order[:n_train], order[n_train:])
    ]
    matrix = xgboost.DMatrix(rows[order[:n_train]], target[order[:n_train]], feature_names=[*names])
    parameters = {"objective": question.objective, "max_depth": DEPTH, "nthread": 1}
    model = folder / "model.json"
    xgboost.train(parameters, matrix, TREES).save_model(model)
    started = time.process_time()
    asked: dict[str, Any] = {"gap": question.gap, "distance": question.distance}
    repaired = folder / "repaired.json"
    xcount.repair(model, sensitive=question.sensitive, **asked, data=parts[0], output=repaired)
    seconds = time.process_time() - started
    again = xcount.repair(
        model,
        sensitive=question.sensitive,
        **asked,
        data=parts[0],
        test=parts[1],
        target="target",
        output=repaired,
    )
    assert again.proved
    assert again.test is not None
    test = again.test
    losses = [
        loss
        for quality in (test.before, test.after, test.shrunk, test.retrained, test.dropped)
        if quality is not None
        for loss in (quality.log_loss if quality.rmse is None else quality.rmse,)
        if loss is not None
    ]
    before, after, shrunk, retrained, dropped = losses
    share = again.before.share if again.before.share is not None else again.before.share_low
    return [share, before, after - before, shrunk - before, dropped - retrained, seconds]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.repair", __doc__, OUTPUT)
    parser.add_argument("--splits", type=int, default=2, metavar="N")
    options = parser.parse_args(arguments)
    lines = []
    for question in QUESTIONS:
        with tempfile.TemporaryDirectory() as folder:
            runs = [
                measured(question, split, Path(folder), options.data)
                for split in range(options.splits)
            ]
        share, loss, repaired, shrunk, dropped, seconds = map(mean, zip(*runs, strict=True))
        name = load_table(BY_KEY[question.dataset], options.data)[0]
        feature = question.sensitive
        feature = name[int(feature)] if feature.isdigit() else feature
        lines.append(
            [
                f"{question.dataset}, {feature}, distance {question.distance}, gap {question.gap}",
                f"{100 * share:.1f} %",
                f"{loss:.4f}",
                f"{dropped:+.4f}",
                f"{shrunk:+.4f}",
                f"{repaired:+.4f}",
                f"{seconds:.1f}",
            ]
        )
        print(lines[-1], file=sys.stderr, flush=True)
    header = [
        "question",
        "sensitive before",
        "loss before",
        "without the feature",
        "shrunk",
        "repaired",
        "processor s",
    ]
    title = (
        f"Means over {options.splits} splits, {TREES} trees of depth {DEPTH}; held-out rows. After "
        "the repair every count is an exact 0.\n\n"
    )
    text = title + markdown(header, lines)
    print(text)
    options.output.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
