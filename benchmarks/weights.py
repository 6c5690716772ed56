"""Measure one model of Adult in four ways, feature by feature.

Every used feature of the model of 50 trees of depth 5, gap 0.5, distance 1: the share of sensitive
regions, of the volume between the least and the largest value, of inputs drawn from the features'
marginals, and of the test rows. Spearman's rho says how alike the features' ranks are.

    python -m benchmarks.weights
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import BY_KEY, load_dataset
from benchmarks.harness.models import PAPER_TREES, Training, models_of
from benchmarks.harness.options import parser_of
from benchmarks.harness.plots import COLOURS, MARKERS, figure, legend_beside
from benchmarks.harness.records import RUNS, Runs, surroundings
from benchmarks.harness.tables import joined, made_on, markdown, picture
from xcount import Grid, count, load

DATASET, DEPTH, N_TREES, GAP = "adult", 5, 50, "0.5"
MEASURES = ("regions", "volume", "marginals", "rows")
FILE = "weights.json"
LIMIT_SECONDS = 60.0


def measured(
    cache: str | Path | None, data: str | Path | None, limit_seconds: float
) -> dict[str, Any]:
    """Return the shares of every used feature by measure, and under which circumstances."""
    training = Training(DATASET, DEPTH, PAPER_TREES, recipe=BY_KEY[DATASET].recipe)
    models = models_of(training, cache, data)
    model = next(model for model in models if model.n_trees == N_TREES)
    ensemble, dataset = load(model.path), load_dataset(DATASET, data)
    about = {"limit_seconds": limit_seconds, "gap": GAP, "model": model.path.name}
    grid, rows = Grid.of(ensemble), dataset.test_rows.astype(np.float64)
    features = []
    for feature in model.used:
        result = count(
            ensemble,
            sensitive=feature,
            gap=GAP,
            distance=1,
            grid=grid,
            measures=MEASURES[1:],
            data=rows,
            timeout=limit_seconds,
        )
        shares: dict[str, Any] = {"regions": {"share": result.share, "exact": result.exact}}
        for name, measured in result.measures.items():
            shares[name] = {"share": measured.share, "exact": measured.exact}
        if any(entry["share"] is None for entry in shares.values()):
            raise SystemExit(f"no estimate for feature {feature}; raise the limit of time")
        name = dataset.feature_names[feature]
        features.append({"name": name, "seconds": round(result.seconds, 3), "shares": shares})
    return {**surroundings(), **about, "n_rows": len(rows), "features": features}


def ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks of values, the mean rank for equal ones."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) - 1) / 2 for v in values]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rho; NaN where one of them is constant."""
    a, b = np.array(ranks(first)), np.array(ranks(second))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


def report(found: Mapping[str, Any]) -> str:
    """Return the shares as Markdown."""
    features = sorted(found["features"], key=lambda f: -f["shares"]["regions"]["share"])
    rows = [
        [f["name"], *(_cell(f["shares"][name]) for name in MEASURES), f"{f['seconds']:.2f}"]
        for f in features
    ]
    columns = {name: [f["shares"][name]["share"] for f in features] for name in MEASURES}
    rhos = [f"{rank_correlation(columns['regions'], columns[name]):.2f}" for name in MEASURES]
    rows.append(["rank correlation with regions", *rhos, ""])
    about = (
        f"Model {found['model']}, gap {found['gap']}, distance 1, leaves as stored, "
        f"{found['n_rows']} test rows; at most {found['limit_seconds']:g} s a measure. "
        f"{made_on(found)} Shares in %; ~ marks an estimate."
    )
    return joined(about, markdown(["feature", *MEASURES, "seconds"], rows))


def _cell(entry: Mapping[str, Any]) -> str:
    return f"{'' if entry['exact'] else '~'}{100 * entry['share']:.3g}"


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Draw the four shares of every feature."""
    features = sorted(found["features"], key=lambda f: f["shares"]["regions"]["share"])
    with figure(path, size=(6.5, 0.3 * len(features) + 1.4)) as axes:
        for i, name in enumerate(MEASURES):
            values = [100 * f["shares"][name]["share"] for f in features]
            style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none"}
            axes.plot(values, range(len(values)), label=name, markersize=6, alpha=0.85, **style)
        axes.set_yticks(range(len(features)), [f["name"] for f in features])
        axes.set_xscale("symlog", linthresh=0.01)
        axes.set_xlim(-0.001, 100)
        axes.set_xlabel("% sensitive")
        axes.set_title("Regions, volume, marginals and rows (Adult)")
        legend_beside(axes)


def section(runs: Runs, folder: Path) -> str:
    """Return the shares that a folder holds."""
    found, path = json.loads((folder / FILE).read_text()), folder / "weights.svg"
    draw(found, path)
    return joined(report(found), picture(path, "four measures of sensitivity"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.weights", __doc__, RUNS / FILE, LIMIT_SECONDS)
    options = parser.parse_args(arguments)
    found = measured(options.cache, options.data, options.limit_seconds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found) + "\n")
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
