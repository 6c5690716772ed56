"""What a domain costs: the same questions with and without one, on one-hot models of Adult.

    python -m benchmarks.domains [--data FOLDER] [--timeout SECONDS] [--output FILE]

Workclass, marital status, race and sex are one-hot columns, as many pipelines make them. Every
question is asked of all combinations of columns, of the valid ones, within conditions, and with
rules. Times are processor time of the count alone, the least of a few turns, as a multiple of that
of all combinations of the same features; shares show what the domain changes.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import xcount
from benchmarks.harness.datasets import data_folder

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

    table = pd.read_csv(data_folder(folder) / "adult.csv.gz", keep_default_na=False)
    table = table.rename(columns=lambda name: name.replace("-", "_"))
    words = table[list(GROUPS)].astype(str)
    return pd.concat([table[list(NUMBERS)], pd.get_dummies(words, dtype=int)], axis=1), table.target


def trained(columns: Any, target: Any) -> Any:
    """Return a model of the one-hot columns."""
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=TREES, max_depth=DEPTH, n_jobs=1, random_state=0)
    return model.fit(columns, (target == target.max()).astype(int))


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
            timeout_seconds=timeout,
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


@click.command()
@click.option("--data", "folder", default=None, help="Folder of the data sets.")
@click.option("--timeout", default=30.0, help="Seconds of each count.")
@click.option("--output", type=click.Path(path_type=Path), help="Markdown file to write.")
def main(folder: str | None, timeout: float, output: Path | None) -> None:
    """Measure what a domain costs."""
    columns, target = table_of(folder)
    model = trained(columns, target)
    lines = [
        f"XGBoost, {TREES} trees of depth {DEPTH}, {columns.shape[1]} columns of Adult; gap {GAP}, "
        f"any distance, `auto`, one thread, at most {timeout:g} s a count. Time: that of all "
        "combinations is 1.",
        "",
        "| sensitive | domain | regions | share | time | ended |",
        "|---|---|---|---|---|---|",
    ]
    groups = domains(columns)["one-hot"]["one_hot"]
    for sensitive in ("age", "race", "sex,race"):
        own = [column for name in sensitive.split(",") for column in groups.get(name, [name])]
        whole = None
        for name, domain in domains(columns).items():
            asked = sensitive if domain else ",".join(own)
            result, seconds = ask(model, asked, domain, timeout)
            whole = whole or seconds
            row = [sensitive, name, *row_of(result, seconds / whole)]
            lines.append(f"| {' | '.join(row)} |")
            click.echo(lines[-1])
    if output is not None:
        output.write_text("# What a domain costs\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
