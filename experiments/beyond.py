"""Other libraries: the same data sets learnt by XGBoost, LightGBM, CatBoost and random forests.

The four models of a data set share one grid and are asked about the same features one at a time,
each with a gap of a tenth of the standard deviation of its own output (see ``libraries.py``), with
leaves as stored and distance 1. So the shares can be compared, and the models ranked by them.

    python -m experiments.beyond --method auto
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.instances import FEATURES_PER_MODEL, SEED, Instance
from benchmarks.harness.options import run_command, suite_parser
from benchmarks.harness.plots import COLOURS, figure, legend_beside
from benchmarks.harness.records import Run
from benchmarks.harness.tables import conditions, grouped_table, is_solved, markdown
from experiments.libraries import DEPTH, N_TREES, TRAINERS, LibraryModel, library_model

DATASETS = ("diabetes", "adult", "wine", "higgs", "protein")


def instances(options: Namespace) -> list[Instance]:
    found = []
    for key in DATASETS:
        if options.only and key not in options.only:
            continue
        models = [library_model(name, key, options.cache, options.data) for name in TRAINERS]
        for model in models:
            others = tuple(other.path for other in models if other is not model)
            found += [_instance(model, f, others) for f in common_features(models)]
    return found


def common_features(models: Sequence[LibraryModel]) -> tuple[int, ...]:
    """Return up to 8 of the features that all models of a data set use."""
    common = sorted(set.intersection(*(set(model.used) for model in models)))
    if len(common) <= FEATURES_PER_MODEL:
        return tuple(common)
    generator = np.random.default_rng([SEED, DATASETS.index(models[0].dataset)])
    drawn = generator.choice(common, FEATURES_PER_MODEL, replace=False)
    return tuple(sorted(int(feature) for feature in drawn))


def _instance(model: LibraryModel, feature: int, others: tuple[Path, ...]) -> Instance:
    return Instance(
        name=f"{model.path.stem}-f{feature}",
        model=model.path,
        dataset=model.dataset,
        depth=DEPTH,
        n_trees=N_TREES,
        n_guards=model.n_guards,
        sensitive=(feature,),
        gap=model.gap,
        precision=None,
        grid_with=others,
    )


def library_of(record_name: str) -> str:
    """Return the library of a record, by its name ``DATASET-LIBRARY-fN``."""
    return record_name.partition("-")[2].rpartition("-f")[0]


def mean_shares(run: Run) -> dict[str, dict[str, float]]:
    """Return, for each data set and library, the mean share over the features all have solved."""
    shares: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in run.records:
        if is_solved(record):
            mine = shares[record["dataset"]][library_of(record["name"])]
            mine[record["sensitive"][0]] = float(record["share"])
    means: dict[str, dict[str, float]] = {}
    for key, by_library in shares.items():
        solved = set.intersection(*(set(mine) for mine in by_library.values()))
        if solved and len(by_library) == len(TRAINERS):
            means[key] = {
                library: statistics.fmean(mine[feature] for feature in solved)
                for library, mine in by_library.items()
            }
    return means


def ranking_table(run: Run) -> str:
    """Return the mean shares and, in brackets, the places: 1 is the least sensitive model."""
    means = mean_shares(run)
    rows, places = [], defaultdict(list)
    for key, by_library in means.items():
        order = sorted(by_library, key=lambda library: by_library[library])
        for library in by_library:
            places[library].append(order.index(library) + 1)
        cells = [f"{by_library[name]:.3g} ({order.index(name) + 1})" for name in TRAINERS]
        rows.append([BY_KEY[key].title, *cells])
    if rows:
        rows.append(["mean place", *(f"{statistics.fmean(places[name]):.1f}" for name in TRAINERS)])
    return markdown(["data set", *TRAINERS], rows)


def model_table(run: Run) -> str:
    """Return the guards and the gap of each model."""
    models = {r["model"]: (r["dataset"], r["name"], r["n_guards"], r["gap"]) for r in run.records}
    rows = [
        [BY_KEY[key].title, library_of(name), str(n_guards), gap]
        for key, name, n_guards, gap in models.values()
    ]
    return markdown(["data set", "library", "guards", "gap"], rows)


def report(run: Run) -> str:
    """Return everything about the run as Markdown."""
    by_library = grouped_table(run, "library", lambda record: library_of(record["name"]))
    ranks = "Mean share of sensitive regions, and the place (1: the least sensitive):"
    tables = [by_library, ranks, ranking_table(run), model_table(run)]
    return "\n\n".join([conditions(run), *tables])


def draw(run: Run, path: Path) -> None:
    """Draw the mean shares of the models, a group of bars for each data set."""
    means = mean_shares(run)
    with figure(path, size=(6.5, 3.8)) as axes:
        for i, library in enumerate(TRAINERS):
            values = [100 * by_library[library] for by_library in means.values()]
            places = [place + 0.2 * (i - (len(TRAINERS) - 1) / 2) for place in range(len(values))]
            axes.bar(places, values, width=0.18, color=COLOURS[i], label=library)
        axes.set_xticks(range(len(means)), [BY_KEY[key].title for key in means])
        axes.set_ylabel("% of regions, mean over features")
        axes.set_title("Sensitivity of four libraries' models on shared grids")
        legend_beside(axes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("beyond", __doc__, limit_seconds=1800, isolated=False)
    return run_command(parser.parse_args(arguments), instances, report)


if __name__ == "__main__":
    sys.exit(main())
