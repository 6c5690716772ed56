"""The regularisation study: does a larger L1 penalty leave fewer sensitive regions?

Adult, depth 3 and 4, 20, 30 and 40 trees, alpha 0, 1, 5 and 10: 24 models, asked about 13 features
one at a time with gap 0.5 and distance 1. The four models of a configuration share one grid, so
their counts are about the same regions. The relative sensitivity of a model is C_alpha / C_0; as
in the paper, a configuration is left out where C_0 is 0 or one of the models lacks the feature.

    python -m benchmarks.regularisation --method exact
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.commands import run_command, suite_parser
from benchmarks.datasets import load_dataset
from benchmarks.instances import Instance
from benchmarks.models import ModelFile, Training, models_of
from benchmarks.plots import COLOURS, INK, MUTED, figure
from benchmarks.records import Run, Status
from benchmarks.summary import conditions, markdown, method_table

DATASET, GAP = "adult", "0.5"
ALPHAS = (0, 1, 5, 10)
DEPTHS = (3, 4)
TREES = (20, 30, 40)
FEATURES = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip
METRICS = ("accuracy", "precision", "recall", "F1", "AUC")
SIGNIFICANCE = 0.05
NOTES = "regularisation-models.json"

Models = dict[tuple[int, int, int], ModelFile]


def study_models(cache: str | Path | None = None, data: str | Path | None = None) -> Models:
    """Return the 24 models by depth, number of trees and alpha."""
    models: Models = {}
    for depth in DEPTHS:
        for alpha in ALPHAS:
            training = Training(DATASET, depth, TREES, "regularisation", float(alpha))
            for model in models_of(training, cache, data):
                models[depth, model.n_trees, alpha] = model
    return models


def feature_names(model: ModelFile) -> tuple[str, ...]:
    """Return the names of a model's features, in its own order."""
    from xcount import load

    return load(model.path).feature_names


def instances(options: Namespace) -> list[Instance]:
    models = study_models(options.cache, options.data)
    names = feature_names(next(iter(models.values())))
    asked = [names.index(feature) for feature in FEATURES]
    found = []
    # The four models of a size one after the other: whatever stops a run, whole sizes are done.
    for (depth, n_trees, alpha), model in sorted(models.items()):
        others = tuple(models[depth, n_trees, a].path for a in ALPHAS if a != alpha)
        found += [_instance(model, alpha, feature, others) for feature in asked]
    return found


def _instance(model: ModelFile, alpha: int, feature: int, others: tuple[Path, ...]) -> Instance:
    return Instance(
        name=f"{DATASET}-d{model.depth}-t{model.n_trees}-f{feature}-a{alpha}",
        model=model.path,
        dataset=DATASET,
        depth=model.depth,
        n_trees=model.n_trees,
        n_guards=model.n_guards,
        sensitive=(feature,),
        gap=GAP,
        grid_with=others,
    )


# ---- what the counts say ----


@dataclass(frozen=True, slots=True)
class Configuration:
    """One feature of the four models of one size: their counts by alpha."""

    depth: int
    n_trees: int
    feature: int
    counts: Mapping[int, int]

    def ratio(self, alpha: int) -> float:
        return self.counts[alpha] / self.counts[0]


@dataclass(frozen=True, slots=True)
class Study:
    """The configurations that can be compared, and how many cannot, by reason."""

    configurations: tuple[Configuration, ...]
    n_unsolved: int
    n_baseline_zero: int
    n_feature_missing: int

    @property
    def n_all(self) -> int:
        left_out = self.n_unsolved + self.n_baseline_zero + self.n_feature_missing
        return len(self.configurations) + left_out

    def ratios(self, alpha: int) -> list[float]:
        return [configuration.ratio(alpha) for configuration in self.configurations]


def study_of(run: Run, used: Mapping[str, Sequence[int]]) -> Study:
    """Group the counts of a run; ``used`` lists the used features of each model file."""
    groups: dict[tuple[int, int, int], dict[int, Any]] = {}
    for record in run.records:
        key = (record["depth"], record["n_trees"], record["sensitive"][0])
        groups.setdefault(key, {})[int(record["name"].rpartition("-a")[2])] = record
    kept: list[Configuration] = []
    left_out = {"unsolved": 0, "zero": 0, "missing": 0}
    for (depth, n_trees, feature), records in groups.items():
        if len(records) < len(ALPHAS) or any(
            record["status"] != Status.EXACT for record in records.values()
        ):
            left_out["unsolved"] += 1
        elif records[0]["count"] == 0:
            left_out["zero"] += 1
        elif any(feature not in used[record["model"]] for record in records.values()):
            left_out["missing"] += 1
        else:
            counts = {alpha: int(records[alpha]["count"]) for alpha in ALPHAS}
            kept.append(Configuration(depth, n_trees, feature, counts))
    return Study(tuple(kept), left_out["unsolved"], left_out["zero"], left_out["missing"])


def sign_test(n_below: int, n_above: int) -> float:
    """Return how likely so uneven a split is if both sides are as likely: two-sided, exact."""
    n, k = n_below + n_above, min(n_below, n_above)
    tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return min(1.0, float(2 * tail))


def ratio_table(study: Study) -> str:
    """Return how the relative sensitivities are spread, by alpha."""
    rows = []
    for alpha in ALPHAS[1:]:
        ratios = study.ratios(alpha)
        low, middle, high = quartiles(ratios)
        below, above = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
        rows.append(
            [
                str(alpha),
                str(len(ratios)),
                f"{middle:.3f}",
                f"{low:.3f} to {high:.3f}",
                f"{min(ratios):.3g} to {max(ratios):.3g}",
                str(below),
                str(len(ratios) - below - above),
                str(above),
                f"{sign_test(below, above):.2g}",
            ]
        )
    header = ["alpha", "configurations", "median C_alpha/C_0", "quartiles", "range"]
    header += ["fewer regions", "the same", "more regions", "sign test p"]
    return markdown(header, rows)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the three quartiles; a single value is all of them."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def conclusion(study: Study) -> str:
    """Say whether more regularisation went with fewer sensitive regions, by a fixed rule.

    It *holds* when the median falls with every step of alpha and, at each alpha, significantly
    more configurations have fewer regions than more; *in part* when the last alpha alone does so.
    """
    medians = [1.0, *(statistics.median(study.ratios(alpha)) for alpha in ALPHAS[1:])]
    falls = all(after < before for before, after in pairwise(medians))
    clear = [_clearly_fewer(study.ratios(alpha)) for alpha in ALPHAS[1:]]
    steps = sum(
        all(b <= a for a, b in pairwise(configuration.counts[alpha] for alpha in ALPHAS))
        for configuration in study.configurations
    )
    if falls and all(clear):
        verdict = "The paper's conclusion holds with exact counts"
    elif clear[-1]:
        verdict = "The paper's conclusion holds in part with exact counts"
    else:
        verdict = "The paper's conclusion does not hold with exact counts of these models"
    n_kept = len(study.configurations)
    return (
        f"**{verdict}**: the medians of C_alpha/C_0 at alpha {_listed(ALPHAS[1:])} are "
        f"{_listed([f'{median:.3f}' for median in medians[1:]])}; the number of regions never "
        f"rises from one alpha to the next in {steps} of {n_kept} configurations. "
        f"Of {study.n_all} configurations {study.n_baseline_zero} are left out because C_0 is 0, "
        f"another {study.n_feature_missing} because a model lacks the feature, "
        f"{study.n_unsolved} because a count is not exact."
    )


def _clearly_fewer(ratios: Sequence[float]) -> bool:
    below, above = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
    return below > above and sign_test(below, above) < SIGNIFICANCE


def _listed(values: Sequence[object]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}"


def draw(study: Study, path: Path) -> None:
    """Draw the paper's box plot of C_alpha / C_0, with every configuration as a dot."""
    with figure(path, size=(6, 4)) as axes:
        ratios = [study.ratios(alpha) for alpha in ALPHAS[1:]]
        line = {"color": COLOURS[2], "linewidth": 2.2}
        axes.boxplot(ratios, widths=0.5, showfliers=False, medianprops=line)
        for place, values in enumerate(ratios, 1):
            spots = [place + 0.2 * ((7 * i % 11) / 5 - 1) for i in range(len(values))]
            axes.plot(spots, values, "o", color=COLOURS[0], markersize=3, alpha=0.45)
        axes.axhline(1, color=INK, linewidth=1, linestyle="--")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(1, len(ALPHAS)), [f"alpha {alpha}" for alpha in ALPHAS[1:]])
        axes.set_ylabel("C_alpha / C_0")
        axes.set_title("Sensitive regions with and without L1 regularisation")
        text = f"{len(study.configurations)} configurations; linear up to 1, logarithmic above"
        axes.set_xlabel(text, color=MUTED)


# ---- what the models are worth ----


def metrics(models: Models, data: str | Path | None = None) -> list[dict[str, Any]]:
    """Return the five scores of each model on the test rows, threshold 0.5."""
    import xgboost as xgb
    from sklearn import metrics as scores

    dataset = load_dataset(DATASET, data)
    truth = dataset.test_target
    matrix = xgb.DMatrix(dataset.test_rows, feature_names=list(dataset.feature_names))
    found = []
    for (depth, n_trees, alpha), model in models.items():
        chance = xgb.Booster(model_file=str(model.path)).predict(matrix)
        says = chance >= 0.5
        values = (
            scores.accuracy_score(truth, says),
            scores.precision_score(truth, says),
            scores.recall_score(truth, says),
            scores.f1_score(truth, says),
            scores.roc_auc_score(truth, chance),
        )
        named = dict(zip(METRICS, (round(float(value), 4) for value in values), strict=True))
        about = {"depth": depth, "n_trees": n_trees, "alpha": alpha, "model": model.path.name}
        found.append(about | {"used": list(model.used), "n_guards": model.n_guards} | named)
    return found


def write_notes(options: Namespace, folder: Path) -> None:
    """Write the scores of the models where the page of results looks for them."""
    notes = metrics(study_models(options.cache, options.data), options.data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTES).write_text("".join(json.dumps(note) + "\n" for note in notes))


def read_notes(folder: Path) -> list[dict[str, Any]]:
    """Return the scores that were written; none where they were not."""
    path = folder / NOTES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def metrics_table(notes: Sequence[Mapping[str, Any]]) -> str:
    """Return the scores as Markdown, one row for each model."""
    rows = [
        [str(note["depth"]), str(note["n_trees"]), str(note["alpha"]), str(note["n_guards"])]
        + [f"{note[name]:.3f}" for name in METRICS]
        for note in sorted(notes, key=lambda n: (n["depth"], n["n_trees"], n["alpha"]))
    ]
    return markdown(["depth", "trees", "alpha", "guards", *METRICS], rows)


def report(run: Run, notes: Sequence[Mapping[str, Any]]) -> str:
    """Return everything about the study as Markdown."""
    study = study_of(run, {note["model"]: note["used"] for note in notes})
    if not study.configurations:
        return f"{conditions(run)}\n\nNo configuration can be compared."
    parts = [conditions(run), method_table([run]), conclusion(study), ratio_table(study)]
    return "\n\n".join([*parts, metrics_table(notes)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("regularisation", __doc__, limit_seconds=1800, isolated=False)
    parser.set_defaults(method="exact")
    options = parser.parse_args(arguments)

    def describe(run: Run) -> str:
        return report(run, metrics(study_models(options.cache, options.data), options.data))

    return run_command(options, instances, describe)


if __name__ == "__main__":
    sys.exit(main())
