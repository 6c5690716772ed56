"""Measure what a domain costs: the same questions with and without one, on one-hot models of Adult.

    python -m benchmarks.domains [--data FOLDER] [--limit-seconds SECONDS] [--output FILE]

Workclass, marital status, race and sex are one-hot columns, as many pipelines make them. Every
question is asked of all combinations of columns, of the valid ones, within conditions, and with
rules. Times are processor time of the count alone, the least of a few turns, as a multiple of that
of all combinations of the same features; shares show what the domain changes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xcount
from benchmarks.harness.adult import adult_table
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import joined, markdown

NUMBERS = ("age", "education_num", "hours_per_week")
GROUPS = ("workclass", "marital_status", "race", "sex")
WHERE = ("25 <= age < 65", "workclass != Never-worked")
RULES = (
    "marital_status == Widowed -> age >= 30",
    "workclass == Without-pay -> hours_per_week < 40",
)
TREES, DEPTH, GAP = 100, 4, "1"
TURNS = 5


def table_of(folder: str | None) -> tuple[Any, Any]:
    """Return Adult with one-hot columns, and its target."""
    import pandas as pd

    table, target = adult_table(folder)
    words = table[list(GROUPS)].astype(str)
    return pd.concat([table[list(NUMBERS)], pd.get_dummies(words, dtype=int)], axis=1), target


def trained(columns: Any, target: Any) -> Any:
    """Return a model of the one-hot columns."""
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=TREES, max_depth=DEPTH, n_jobs=1, random_state=0)
    return model.fit(columns, target)


def domains(columns: Any) -> dict[str, dict[str, Any]]:
    """Return the domains by name."""
    groups = {g: [c for c in columns.columns if c.startswith(f"{g}_")] for g in GROUPS}
    one_hot = {"one_hot": groups}
    return {
        "all combinations": {},
        "one-hot": one_hot,
        "one-hot, where": {**one_hot, "where": WHERE},
        "one-hot, rules": {**one_hot, "rule": RULES},
        "one-hot, where, rules": {**one_hot, "where": WHERE, "rule": RULES},
    }


def ask(
    model: Any, sensitive: str, domain: dict[str, Any], timeout: float
) -> tuple[xcount.CountResult, float]:
    """Count a few times; return the answer and the least time."""
    seconds = []
    for _ in range(TURNS):
        started = time.process_time()
        result = xcount.count(
            model,
            sensitive=sensitive,
            gap=GAP,
            distance="any",
            timeout=timeout,
            jobs=1,
            **domain,
        )
        seconds.append(time.process_time() - started)
    return result, min(seconds)


def row_of(result: xcount.CountResult, ratio: float) -> list[str]:
    """Return a row of the table."""
    share = f"{result.share_low:.4f} to {result.share_high:.4f}"
    if result.exact:
        share = f"{result.share:.4f} (exact)"
    return [f"{result.n_regions:.3g}", share, f"{ratio:.2f}", str(result.stop_reason)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.domains", __doc__, limit_seconds=30.0)
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    options = parser.parse_args(arguments)
    columns, target = table_of(options.data)
    model = trained(columns, target)
    about = (
        f"XGBoost, {TREES} trees of depth {DEPTH}, {columns.shape[1]} columns of Adult; gap {GAP}, "
        f"any distance, `auto`, one thread, at most {options.limit_seconds:g} s a count. Time: "
        "that of all combinations is 1."
    )
    rows = []
    groups = domains(columns)["one-hot"]["one_hot"]
    for sensitive in ("age", "race", "sex,race"):
        own = [column for name in sensitive.split(",") for column in groups.get(name, [name])]
        whole = None
        for name, domain in domains(columns).items():
            asked = sensitive if domain else ",".join(own)
            result, seconds = ask(model, asked, domain, options.limit_seconds)
            whole = whole or seconds
            rows.append([sensitive, name, *row_of(result, seconds / whole)])
            print(rows[-1], file=sys.stderr)
    header = ["sensitive", "domain", "regions", "share", "time", "ended"]
    text = joined("# What a domain costs", about, markdown(header, rows))
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
