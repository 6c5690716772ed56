"""What the regularisation study says: the paper's table beside ours, ratios, tests over splits."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.plots import COLOURS, INK, MUTED, figure
from benchmarks.harness.records import Runs, read_lines
from benchmarks.harness.tables import joined, markdown, picture
from experiments.paper import PAPER

Line = Mapping[str, Any]
"""One split with one kind of labels, as :mod:`experiments.regularisation` writes it."""

FILE = "regularisation.jsonl"
ALPHAS = (0, 1, 5, 10)
METRICS = ("accuracy", "precision", "recall", "F1", "AUC")
MEASURES = {"regions": "regions", "rows": "people (test rows)"}
LABEL_WORDS = {"paper": "the paper's labels", "right": "the right labels"}
SIGNIFICANCE = 0.05
SHOWN_SPLIT = 42
"""The split that is shown alone, as the paper shows one: it does not name its own."""
N_NEAREST = 5
N_FLIPS = 20_000
PAPER_SCORES: dict[str, list[list[float]]] = PAPER["regularisation"]
"""The paper's scores of its 24 models: by depth and number of trees, one line for each alpha."""


def report(lines: Sequence[Line]) -> str:
    """Return everything about the study as Markdown."""
    if not lines:
        return "Nothing has been run."
    first = [line for line in lines if line["seed"] == SHOWN_SPLIT]
    parts = [_conditions(lines)]
    parts += [_scores_table(line) for line in first if line["labels"] == "paper"]
    parts += [difference_table(first), "The splits whose scores come nearest, the paper's labels:"]
    parts += [nearest_splits(lines)]
    for line in first:
        words = LABEL_WORDS[line["labels"]]
        parts += [f"As in the paper, configurations of one split, {words}:", ratio_table(line)]
    parts += ["The median of the configurations, over all splits:", configuration_table(lines)]
    parts += ["The ratio of mean shares, one number for each split:", split_table(lines)]
    return joined(*parts, conclusion(lines))


def section(runs: Runs, folder: Path) -> str:
    """Return the study that a folder holds."""
    lines = read_lines(folder / FILE)
    one_split = folder / "regularisation-configurations.svg"
    draw_configurations(lines, one_split)
    all_splits = folder / "regularisation.svg"
    draw(lines, all_splits)
    return joined(
        report(lines),
        picture(one_split, "relative sensitivity of the configurations of one split"),
        picture(all_splits, "relative sensitivity of each split"),
    )


def _conditions(lines: Sequence[Line]) -> str:
    """Say what was studied, and from which revisions, when, and under which load."""
    machine = lines[0]["machine"]
    n_splits = len({line["seed"] for line in lines})
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line["date"]):
        groups[line["revision"], line.get("placement", "")].append(line)
    states = "; ".join(_state(*state, members) for state, members in groups.items())
    return (
        f"{n_splits} splits of 80 % and 20 % of the rows, {len(lines)} studies of a split with one "
        f"kind of labels, every count exact. {machine['processor']}, {machine['cores']} cores, "
        f"{machine['system']}. Studies by revision, with dates and loads at their ends: {states}."
    )


def _state(revision: str, placement: str, members: Sequence[Line]) -> str:
    """Say what was noted at one revision: how much, when, and under which load."""
    dates = _from_to(sorted({line["date"][:16] for line in members}))
    load = _from_to([f"{value:g}" for value in sorted({line["load"] for line in members})])
    where = f", {placement}" if placement else ""
    return f"{len(members)} at {revision} ({dates}, load {load}{where})"


def _from_to(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _paper_scores(note: Mapping[str, Any]) -> dict[str, float]:
    """Return the paper's scores of the model that a note is about."""
    by_alpha = PAPER_SCORES[f"{note['depth']} {note['n_trees']}"]
    return dict(zip(METRICS, by_alpha[ALPHAS.index(note["alpha"])], strict=True))


def _scores_table(line: Line) -> str:
    """Return the scores of the 24 models beside the paper's own."""
    rows = []
    for note in sorted(line["scores"], key=_size_and_alpha):
        theirs = _paper_scores(note)
        cells = [f"{note[name]:.3f} / {theirs[name]:.3f}" for name in METRICS]
        rows.append([*map(str, _size_and_alpha(note)), *cells])
    header = ["depth", "trees", "alpha"]
    return markdown([*header, *(f"{name}: here / paper" for name in METRICS)], rows)


def _size_and_alpha(note: Mapping[str, Any]) -> tuple[int, int, int]:
    return note["depth"], note["n_trees"], note["alpha"]


def difference_table(lines: Sequence[Line]) -> str:
    """Return how far the scores are from the paper's, for each kind of labels and each metric."""
    rows = []
    for line in lines:
        notes = line["scores"]
        for name in METRICS if notes else ():
            found = [(abs(note[name] - _paper_scores(note)[name]), note) for note in notes]
            largest, note = max(found, key=lambda pair: pair[0])
            depth, n_trees, alpha = _size_and_alpha(note)
            where = f"depth {depth}, {n_trees} trees, alpha {alpha}"
            differences = [difference for difference, _ in found]
            numbers = [min(differences), statistics.fmean(differences), largest]
            cells = [str(len(found)), *(f"{number:.3f}" for number in numbers), where]
            rows.append([LABEL_WORDS[line["labels"]], name, *cells])
    header = ["labels", "metric", "models", "difference from the paper: least", "mean", "most"]
    return markdown([*header, "the model with most"], rows)


def largest_difference(line: Line) -> float:
    """Return how far the scores of a split are from the paper's at most."""
    notes = line["scores"]
    return max(
        (abs(n[name] - _paper_scores(n)[name]) for n in notes for name in METRICS), default=0
    )


def nearest_splits(lines: Sequence[Line]) -> str:
    """Return the splits with the paper's labels whose scores are nearest to the paper's."""
    by_seed = {
        line["seed"]: {
            name: [abs(note[name] - _paper_scores(note)[name]) for note in line["scores"]]
            for name in METRICS
        }
        for line in lines
        if line["labels"] == "paper" and line["scores"]
    }
    together = {seed: list(chain(*found.values())) for seed, found in by_seed.items()}
    largest = sorted(max(values) for values in together.values())
    rows = []
    for seed in sorted(together, key=lambda seed: statistics.fmean(together[seed]))[:N_NEAREST]:
        most = max(together[seed])
        alike = (together[seed], *(by_seed[seed][name] for name in ("accuracy", "AUC")))
        means = [f"{statistics.fmean(values):.4f}" for values in alike]
        rows.append([str(seed), *means, f"{most:.3f}", str(largest.index(most) + 1)])
    header = ["split", "mean difference of all scores", "accuracy", "AUC", "largest", "its place"]
    return markdown(header, rows)


def kept(line: Line) -> list[Mapping[str, Any]]:
    """Return the configurations that the paper would keep: C_0 > 0, and the feature is used."""
    return [c for c in line["counts"] if c["is_used"] and c["regions"][0] > 0]


def configuration_ratios(line: Line, alpha: int) -> list[float]:
    """Return C_alpha / C_0 of the configurations that the paper would keep."""
    place = ALPHAS.index(alpha)
    return [c["regions"][place] / c["regions"][0] for c in kept(line)]


def from_zero(line: Line, alpha: int) -> tuple[int, int]:
    """Count the configurations with C_0 = 0, and those of them with C_alpha > 0.

    The paper leaves them out, as no ratio can show such an increase.
    """
    place = ALPHAS.index(alpha)
    shares = [c["regions"][place] for c in line["counts"] if c["regions"][0] == 0]
    return len(shares), sum(share > 0 for share in shares)


def ratio_table(line: Line) -> str:
    """Return how C_alpha / C_0 is spread over the configurations of one split."""
    rows = []
    for alpha in ALPHAS[1:]:
        ratios = configuration_ratios(line, alpha)
        low, middle, high = quartiles(ratios)
        below, above = sum(r < 1 for r in ratios), sum(r > 1 for r in ratios)
        numbers = [len(ratios), f"{middle:.3f}", f"{low:.3f} to {high:.3f}"]
        numbers += [f"{min(ratios):.3g} to {max(ratios):.3g}", below, above]
        numbers += from_zero(line, alpha)
        rows.append([str(alpha), *map(str, numbers)])
    header = ["alpha", "configurations", "median C_alpha/C_0", "quartiles", "range"]
    header += ["fewer regions", "more regions", "left out: C_0 = 0", "of these C_alpha > 0"]
    return markdown(header, rows)


def configuration_table(lines: Sequence[Line]) -> str:
    """Return the median C_alpha / C_0 of one split beside that of all splits."""
    rows = []
    for labels, words in LABEL_WORDS.items():
        asked = [line for line in lines if line["labels"] == labels]
        for alpha in ALPHAS[1:] if asked else ():
            medians = [statistics.median(configuration_ratios(line, alpha)) for line in asked]
            low, middle, high = quartiles(medians)
            zeros, risen = map(sum, zip(*(from_zero(line, alpha) for line in asked), strict=True))
            numbers = [str(len(medians)), _of_shown_split(asked, medians), f"{middle:.3f}"]
            numbers += [f"{low:.3f} to {high:.3f}", str(sum(value < 1 for value in medians))]
            rows.append([words, str(alpha), *numbers, f"{risen} of {zeros}"])
    header = ["labels", "alpha", "splits", f"split {SHOWN_SPLIT}", "median of all", "quartiles"]
    return markdown([*header, "below 1", "C_0 = 0 and C_alpha > 0"], rows)


def _of_shown_split(lines: Sequence[Line], values: Sequence[float]) -> str:
    """Return the value that belongs to the split that is shown alone."""
    pairs = zip(lines, values, strict=True)
    return next((f"{value:.3f}" for line, value in pairs if line["seed"] == SHOWN_SPLIT), "-")


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


def sign_flip_test(values: Sequence[float], n_flips: int = N_FLIPS) -> float:
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
                    one = _of_shown_split(asked, ratios)
                    rows.append([words, name, str(alpha), str(len(ratios)), one, *_spread(ratios)])
    header = ["labels", "measure", "alpha", "splits", f"split {SHOWN_SPLIT}", "median of all"]
    return markdown([*header, "quartiles", "below 1", "sign-flip test p"], rows)


def _spread(ratios: Sequence[float]) -> list[str]:
    low, middle, high = quartiles(ratios)
    p = sign_flip_test([math.log(ratio) for ratio in ratios])
    below = sum(ratio < 1 for ratio in ratios)
    least = "at most " if p <= 1 / N_FLIPS else ""  # the least that so many flips can show
    return [f"{middle:.3f}", f"{low:.3f} to {high:.3f}", str(below), f"{least}{p:.2g}"]


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
            _boxes(axes, ratios)
            own = [place for place, line in enumerate(asked) if line["seed"] == SHOWN_SPLIT]
            spots = [(alpha, values[i]) for alpha, values in enumerate(ratios, 1) for i in own]
            style = {"color": COLOURS[1], "zorder": 4, "label": f"split {SHOWN_SPLIT}"}
            axes.plot([x for x, _ in spots], [y for _, y in spots], "D", **style)
            axes.set_title(name)
        _share_range(both)
        both[0].set_ylabel("share with alpha / share without")
        both[0].set_xlabel(f"{len(asked)} splits, the right labels", color=MUTED)
        both[1].legend(loc="lower left")


def draw_configurations(lines: Sequence[Line], path: Path) -> None:
    """Draw the paper's figure: C_alpha / C_0 of the configurations of one split, as boxes."""
    first = [line for line in lines if line["seed"] == SHOWN_SPLIT]
    with figure(path, 1, len(first), size=(4 * len(first), 3.8)) as cells:
        panels = list(getattr(cells, "flat", [cells]))
        for axes, line in zip(panels, first, strict=True):
            _boxes(axes, [configuration_ratios(line, alpha) for alpha in ALPHAS[1:]])
            axes.set_title(LABEL_WORDS[line["labels"]])
            shown, zeros = len(kept(line)), from_zero(line, ALPHAS[1])[0]
            axes.set_xlabel(f"{shown} configurations; C_0 = 0 in {zeros} others", color=MUTED)
        _share_range(panels)
        panels[0].set_ylabel("C_alpha / C_0")


def _boxes(axes: Any, by_alpha: Sequence[Sequence[float]]) -> None:
    """Draw one box for each alpha, all values as dots, and a line where nothing changes."""
    axes.boxplot(
        by_alpha, widths=0.5, showfliers=False, medianprops={"color": COLOURS[2], "linewidth": 2.2}
    )
    for place, values in enumerate(by_alpha, 1):
        spots = [place + 0.2 * ((7 * i % 11) / 5 - 1) for i in range(len(values))]
        axes.plot(spots, values, "o", color=COLOURS[0], markersize=3.5, alpha=0.6)
    axes.axhline(1, color=INK, linewidth=1, linestyle="--")
    axes.set_xticks(range(1, len(ALPHAS)), [f"alpha {alpha}" for alpha in ALPHAS[1:]])


def _share_range(panels: Sequence[Any]) -> None:
    """Give all panels the range of values that holds everything."""
    low, high = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_ylim(min(low), max(high))
