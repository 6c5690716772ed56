"""What the regularisation study says: the paper's table beside ours, ratios, tests over splits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plots import COLOURS, INK, MUTED, figure
from benchmarks.summary import markdown

Line = Mapping[str, Any]
"""One split with one kind of labels, as :mod:`benchmarks.regularisation` writes it."""

ALPHAS = (0, 1, 5, 10)
METRICS = ("accuracy", "precision", "recall", "F1", "AUC")
MEASURES = {"regions": "regions", "rows": "people (test rows)"}
LABEL_WORDS = {"paper": "the paper's labels", "right": "the right labels"}
SIGNIFICANCE = 0.05
PAPER_SPLIT = 42
PAPER_SCORES = {
    (3, 20): (0.859, 0.671, 0.229, 0.341, 0.857),
    (3, 30): (0.858, 0.680, 0.213, 0.325, 0.863),
    (3, 40): (0.859, 0.684, 0.218, 0.330, 0.867),
    (4, 20): (0.859, 0.676, 0.227, 0.339, 0.864),
    (4, 30): (0.859, 0.677, 0.229, 0.342, 0.869),
    (4, 40): (0.859, 0.656, 0.254, 0.366, 0.872),
}
"""The paper's scores of its six models with alpha 0, by depth and number of trees."""


def report(lines: Sequence[Line]) -> str:
    """Return everything about the study as Markdown."""
    if not lines:
        return "Nothing has been run."
    first = [line for line in lines if line["seed"] == PAPER_SPLIT]
    parts = [_conditions(lines)]
    parts += [_scores_table(line) for line in first if line["labels"] == "paper"]
    for line in first:
        parts += [f"As in the paper, one split, {LABEL_WORDS[line['labels']]}:", ratio_table(line)]
    parts += ["Over all splits, one number for each:", split_table(lines), conclusion(lines)]
    return "\n\n".join(parts)


def _conditions(lines: Sequence[Line]) -> str:
    about = lines[0]
    machine = about["machine"]
    n_splits = len({line["seed"] for line in lines})
    return (
        f"{n_splits} splits of 80 % and 20 % of the rows, every count exact. "
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; revision "
        f"{about['revision']}; "
        f"{about['date']}, load {about['load']:g} at the start."
    )


def _scores_table(line: Line) -> str:
    """Return the scores with the paper's labels beside the paper's own, of alpha 0."""
    rows = []
    for note in line["scores"]:
        if note["alpha"] == 0:
            theirs = PAPER_SCORES[note["depth"], note["n_trees"]]
            cells = [
                f"{note[name]:.3f} / {paper:.3f}"
                for name, paper in zip(METRICS, theirs, strict=True)
            ]
            rows.append([str(note["depth"]), str(note["n_trees"]), *cells])
    return markdown(["depth", "trees", *(f"{name}: here / paper" for name in METRICS)], rows)


def kept(line: Line) -> list[Mapping[str, Any]]:
    """Return the configurations that the paper would keep: C_0 > 0, and the feature is used."""
    return [c for c in line["counts"] if c["is_used"] and c["regions"][0] > 0]


def ratio_table(line: Line) -> str:
    """Return how C_alpha / C_0 is spread over the configurations of one split."""
    rows = []
    found = kept(line)
    for place, alpha in enumerate(ALPHAS[1:], start=1):
        ratios = [c["regions"][place] / c["regions"][0] for c in found]
        low, middle, high = quartiles(ratios)
        below, above = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
        numbers = [len(ratios), f"{middle:.3f}", f"{low:.3f} to {high:.3f}"]
        numbers += [f"{min(ratios):.3g} to {max(ratios):.3g}"]
        rows.append([str(alpha), *map(str, numbers), str(below), str(above)])
    header = ["alpha", "configurations", "median C_alpha/C_0", "quartiles", "range"]
    return markdown([*header, "fewer regions", "more regions"], rows)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the three quartiles; a single value is all of them."""
    if len(values) < 2:
        return (values[0] if values else math.nan,) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def split_ratio(line: Line, measure: str, alpha: int) -> float:
    """Return one number for a split: how the mean share over features changes with alpha.

    For each size of the models, the mean of the shares over all features with alpha, over that
    without; then the geometric mean over the sizes.
    """
    place = ALPHAS.index(alpha)
    sizes: dict[tuple[int, int], list[list[float]]] = {}
    for entry in line["counts"]:
        sizes.setdefault((entry["depth"], entry["n_trees"]), []).append(entry[measure])
    logs = []
    for shares in sizes.values():
        with_alpha, without = (math.fsum(s[i] for s in shares) for i in (place, 0))
        logs.append(math.log(with_alpha / without))
    return math.exp(math.fsum(logs) / len(logs))


def sign_flip_test(values: Sequence[float], n_flips: int = 20_000) -> float:
    """Return how often random signs make the mean as far from 0 as it is: two-sided.

    Exact for up to 14 values, with 20,000 fixed random flips beyond.
    """
    found = np.array(values, dtype=np.float64)
    if len(found) <= 14:
        bits = np.arange(2 ** len(found))[:, None] >> np.arange(len(found)) & 1
        signs, extra = 1 - 2 * bits, 0
    else:
        signs = np.random.default_rng(0).choice([-1, 1], size=(n_flips, len(found)))
        extra = 1  # the signs as they are
    means = np.abs(signs @ found)
    n_far = int((means >= abs(found.sum()) * (1 - 1e-12)).sum())
    return (n_far + extra) / (len(means) + extra)


def split_table(lines: Sequence[Line]) -> str:
    """Return the ratios over splits, for each kind of labels and each measure."""
    rows = []
    for labels, words in LABEL_WORDS.items():
        asked = [line for line in lines if line["labels"] == labels]
        for measure, name in MEASURES.items():
            for alpha in ALPHAS[1:]:
                ratios = [split_ratio(line, measure, alpha) for line in asked]
                if ratios:
                    rows.append([words, name, str(alpha), *_spread(ratios)])
    header = ["labels", "measure", "alpha", "splits", "median ratio", "quartiles"]
    return markdown([*header, "below 1", "sign-flip test p"], rows)


def _spread(ratios: Sequence[float]) -> list[str]:
    low, middle, high = quartiles(ratios)
    p = sign_flip_test([math.log(ratio) for ratio in ratios])
    below = sum(ratio < 1 for ratio in ratios)
    return [
        str(len(ratios)), f"{middle:.3f}", f"{low:.3f} to {high:.3f}", str(below), f"{p:.2g}",
    ]  # fmt: skip


def conclusion(lines: Sequence[Line]) -> str:
    """Say for which alphas there are fewer sensitive regions, and people, by a fixed rule.

    *Fewer* when the geometric mean of the splits' ratios is below 1 and the test over splits
    rejects a mean of 1 at 5 %; *more* in the other direction; else *no clear change*.
    """
    sentences = []
    for labels, words in LABEL_WORDS.items():
        asked = [line for line in lines if line["labels"] == labels]
        for measure, name in MEASURES.items():
            told = [
                f"alpha {alpha}: {_direction([split_ratio(x, measure, alpha) for x in asked])}"
                for alpha in ALPHAS[1:]
                if asked
            ]
            sentences.append(f"- {words}, {name}: {'; '.join(told)}.")
    return "\n".join(sentences)


def _direction(ratios: Sequence[float]) -> str:
    logs = [math.log(ratio) for ratio in ratios]
    if sign_flip_test(logs) >= SIGNIFICANCE:
        return "no clear change"
    return "fewer" if math.fsum(logs) < 0 else "more"


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw one box for each alpha and measure, with every split as a dot; the right labels."""
    asked = [line for line in lines if line["labels"] == "right"]
    with figure(path, 1, 2, size=(8, 3.8)) as both:
        for axes, (measure, name) in zip(both, MEASURES.items(), strict=True):
            ratios = [[split_ratio(line, measure, a) for line in asked] for a in ALPHAS[1:]]
            line_style = {"color": COLOURS[2], "linewidth": 2.2}
            axes.boxplot(ratios, widths=0.5, showfliers=False, medianprops=line_style)
            for place, values in enumerate(ratios, 1):
                spots = [place + 0.2 * ((7 * i % 11) / 5 - 1) for i in range(len(values))]
                axes.plot(spots, values, "o", color=COLOURS[0], markersize=3.5, alpha=0.6)
            axes.axhline(1, color=INK, linewidth=1, linestyle="--")
            axes.set_xticks(range(1, len(ALPHAS)), [f"alpha {alpha}" for alpha in ALPHAS[1:]])
            axes.set_title(name)
        low, high = zip(*(axes.get_ylim() for axes in both), strict=True)
        for axes in both:
            axes.set_ylim(min(low), max(high))
        both[0].set_ylabel("share with alpha / share without")
        both[0].set_xlabel(f"{len(asked)} splits, the right labels", color=MUTED)
