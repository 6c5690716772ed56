"""A million rows: would the decision flip if only sex, or only age, were different?

    python -m benchmarks.rows [--data FOLDER] [--rows N] [--repeats N] [--output FILE]

XCount's command line against the short script that people write instead: pandas, and XGBoost's own
``predict`` for every value of the feature. Both run in turns, as processes of their own, from the
files of the model and the table to the number of rows; processor time, start-up included. The
numbers of rows must be the same. For age, the script runs on every 50th row, and its time less that
for no rows is multiplied by 50: all of it would take about as long as all else together.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.harness import processes
from benchmarks.harness.adult import adult_table
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown

OUTPUT = Path("benchmarks/results/rows.md")
THIN = 50
SCRIPT = """
import sys
import pandas as pd
import xgboost

model, table, feature, values, step = sys.argv[1:]
booster = xgboost.Booster(model_file=model)
rows = pd.read_csv(table) if int(step) == 1 else pd.read_csv(
    table, skiprows=lambda i: i > 0 and (int(step) == 0 or i % int(step) != 0))

def decisions(changed):
    return booster.predict(xgboost.DMatrix(changed), output_margin=True) > 0

flips = pd.Series(False, index=rows.index)
if len(rows):
    now = decisions(rows)
    for value in values.split(","):
        flips |= decisions(rows.assign(**{feature: int(value)})) != now
print(flips.sum())
"""


def prepare(folder: Path, data: str | None, n_rows: int) -> tuple[str, str, dict[str, list[int]]]:
    """Train 500 trees of depth 6 on Adult, and draw rows; return both files and the values."""
    import pandas as pd
    import xgboost

    table, target = adult_table(data)
    for name in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
        table[name] = table[name].astype("category").cat.codes
    model = xgboost.XGBClassifier(n_estimators=500, max_depth=6, learning_rate=0.1, n_jobs=2)
    model.fit(table, target)
    model.save_model(folder / "model.json")
    random = np.random.default_rng(0)
    drawn = table.iloc[random.integers(0, len(table), n_rows)].copy()
    drawn["fnlwgt"] += random.integers(-500, 500, n_rows)
    drawn.to_csv(folder / "rows.csv", index=False)
    values = {name: sorted(set(table[name].tolist())) for name in ("sex", "age")}
    return str(folder / "model.json"), str(folder / "rows.csv"), values


def by_script(
    model: str, table: str, feature: str, values: Sequence[int], step: int
) -> processes.Finished:
    listed = ",".join(map(str, values))
    command = [sys.executable, "-c", SCRIPT, model, table, feature, listed, str(step)]
    return processes.run(command, kill_seconds=900)


def by_xcount(model: str, table: str, feature: str) -> processes.Finished:
    command = [sys.executable, "-m", "xcount", "count", model, "--sensitive", feature, "--flip"]
    command += ["--measure", "rows", "--data", table, "--json", "--timeout", "600"]
    return processes.run(command, kill_seconds=900)


def sensitive_rows(finished: processes.Finished) -> list[int]:
    """Return the numbers of the sensitive rows."""
    found = json.loads(finished.output)["details"]["measures"]["rows"]
    assert found["exact"], found["stop_reason"]
    assert not found["left_out"], found["stop_reason"]
    rows: list[int] = found["sensitive_rows"]
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.rows", __doc__, OUTPUT)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        model, table, values = prepare(Path(folder), options.data, options.rows)
        for feature, listed in values.items():
            step = 1 if feature == "sex" else THIN
            ours: list[processes.Finished] = []
            theirs: list[float] = []
            for _ in range(options.repeats):
                script = by_script(model, table, feature, listed, step)
                start = by_script(model, table, feature, listed, 0).cpu_seconds if step > 1 else 0.0
                theirs.append(start + step * (script.cpu_seconds - start))
                ours.append(by_xcount(model, table, feature))
                rows = sensitive_rows(ours[-1])
                same = sum(row % step == step - 1 for row in rows)  # rows count from 0
                assert same == int(script.output), (feature, same, script.output)
            seconds = median(each.cpu_seconds for each in ours)
            lines.append(
                [
                    feature,
                    str(len(listed)),
                    f"{len(rows):,}",
                    f"{median(theirs):.1f}",
                    f"{seconds:.2f}",
                    f"{median(theirs) / seconds:.0f}",
                    f"{max(each.peak_bytes for each in ours) / 1e6:.0f}",
                ]
            )
    head = ["feature", "values", "rows that flip", "script s", "xcount s", "ratio", "xcount MB"]
    runs = "one run of each" if options.repeats == 1 else f"medians of {options.repeats} in turns"
    text = f"{options.rows:,} rows, 500 trees of depth 6, processor time, {runs}.\n\n"
    text += f"{markdown(head, lines)}\n"
    options.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
