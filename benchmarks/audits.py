"""An audit of Adult: every feature, four gaps, 48,842 rows, with explanations and the HTML report.

    python -m benchmarks.audits [--data FOLDER] [--cache FOLDER] [--before PYTHON]
        [--models NAMES] [--output FILE]

XCount's command line on an XGBoost model of 500 trees of depth 6 and a LightGBM model of 1,000
trees of 63 leaves, both trained here on all rows and kept in the cache. Reading the files and
starting up are included. `--before` names the Python of an environment with another state of the
package: it is asked first, and the exact counts and rows of both are compared. The time of each
question is of the clock.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import processes
from benchmarks.harness.adult import adult_table
from benchmarks.harness.models import cache_folder
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown

OUTPUT = Path("benchmarks/results/audits.md")
LIMIT_SECONDS = 60
UNDECIDED = 3
"""The exit status if some questions were open at the limit."""
SECONDS_OVER = 1.0
"""By how much a question may miss its limit: the time to notice it."""


def prepare(folder: Path, data: str | None) -> Mapping[str, tuple[str, str]]:
    """Train the models unless the folder has them; return the model and the table of each."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "XGBoost 500 x 6": folder / "xgboost-500-6.json",
        "LightGBM 1000 x 63": folder / "lightgbm-1000-63.txt",
    }
    rows = folder / "rows.csv"
    if not rows.exists() or not all(file.exists() for file in files.values()):
        table, target = adult_table(data)
        for name in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
            table[name] = table[name].astype("category").cat.codes
        _train_xgboost(table, target, files["XGBoost 500 x 6"])
        _train_lightgbm(table, target, files["LightGBM 1000 x 63"])
        table.to_csv(rows, index=False)
    return {name: (str(file), str(rows)) for name, file in files.items()}


def _train_xgboost(table: Any, target: Any, file: Path) -> None:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=500, max_depth=6, learning_rate=0.1, n_jobs=2)
    model.fit(table, target)
    model.save_model(file)


def _train_lightgbm(table: Any, target: Any, file: Path) -> None:
    import lightgbm

    model = lightgbm.LGBMClassifier(
        n_estimators=1000, num_leaves=63, learning_rate=0.05, n_jobs=2, verbose=-1
    )
    model.fit(table, target)
    model.booster_.save_model(str(file))


def audit(model: str, table: str, python: str) -> tuple[processes.Finished, dict[str, Any]]:
    """Audit a model with the package of a Python."""
    with tempfile.TemporaryDirectory() as folder:
        page = str(Path(folder) / "page.html")
        command = [python, "-m", "xcount", "audit", model, "--data", table, "--html", page]
        command += ["--timeout", f"{LIMIT_SECONDS}s", "--json", "--progress", "none"]
        finished = processes.run(command, kill_seconds=3600)
        assert finished.status in (0, UNDECIDED), finished.errors
        assert Path(page).stat().st_size > 0
    found: dict[str, Any] = json.loads(finished.output)
    return finished, found


def differences(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> tuple[int, int]:
    """Return how many exact answers two audits have in common, and how many of those differ."""
    n_common = n_different = 0
    for ours, theirs in zip(one, other, strict=True):
        asked = [(each["sensitive"], each["gap_text"]) for each in (ours, theirs)]
        assert asked[0] == asked[1], asked
        if ours["exact"] and theirs["exact"]:
            n_common += 1
            n_different += ours["count"] != theirs["count"]
        rows = [result["details"]["measures"]["rows"] for result in (ours, theirs)]
        if all(each["exact"] for each in rows):
            n_common += 1
            n_different += rows[0]["sensitive_rows"] != rows[1]["sensitive_rows"]
    return n_common, n_different


def line(name: str, finished: processes.Finished, found: Mapping[str, Any]) -> list[str]:
    """Return a line of the table."""
    results = found["results"]
    slowest = max(result["seconds"] for result in results)
    exact = sum(result["exact"] for result in results)
    closed = sum(
        result["exact"] or result["stop_reason"] in ("complete", "decided") for result in results
    )
    return [
        name,
        str(len(results)),
        f"{finished.cpu_seconds:.1f}",
        f"{finished.wall_seconds:.1f}",
        f"{finished.peak_bytes / 1e6:.0f}",
        f"{slowest:.1f}",
        str(sum(result["seconds"] > LIMIT_SECONDS + SECONDS_OVER for result in results)),
        str(exact),
        str(closed),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.audits", __doc__, OUTPUT)
    parser.add_argument(
        "--before", metavar="PYTHON", help="Python with another state of the package"
    )
    parser.add_argument("--models", help="names of models, or parts of them, separated by commas")
    options = parser.parse_args(arguments)
    models = prepare(cache_folder(options.cache) / "audits", options.data)
    wanted = (options.models or "").split(",")
    lines: list[list[str]] = []
    notes: list[str] = []
    for name, (model, table) in models.items():
        if not any(part.lower() in name.lower() for part in wanted):
            continue
        before = None
        if options.before:
            finished, before = audit(model, table, options.before)
            lines.append(line(f"{name}, before", finished, before))
        finished, found = audit(model, table, sys.executable)
        lines.append(line(name, finished, found))
        if before is not None:
            n_common, n_different = differences(before["results"], found["results"])
            notes.append(
                f"{name}: {n_common} exact answers of both checkouts, {n_different} of them differ."
            )
            assert n_different == 0, notes[-1]
    head = ["model", "questions", "processor s", "wall s", "MB"]
    head += ["slowest question s", "over the limit", "exact", "answered"]
    text = "\n\n".join(
        [
            f"Audits of Adult's 48,842 rows, {LIMIT_SECONDS} s a question, {os.cpu_count()} "
            "processors, which others may have used at the same time.",
            markdown(head, lines),
            *notes,
        ]
    )
    options.output.write_text(f"{text}\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
