"""Ask who is affected, by every measure: Adult, 40,000 rows to learn from, the others held out.

    python -m benchmarks.people [--data FOLDER] [--trees N] [--depth N]
        [--output FILE] [--page FILE]

The model and all weights come from the rows to learn from: volumes take their bounds, marginals
their frequencies, the population is fitted to them. The held-out rows (`rows`), which neither has
seen, show what is true of people. Group rates of those are compared with Fairlearn's. Times are
seconds of processor time, one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import xcount
from benchmarks.harness.adult import N_TRAINING, World, adult_world
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import joined, markdown, replace_parts
from xcount.answers.explanation import GroupRates, Place
from xcount.counters.settings import Settings
from xcount.measures.population import Population
from xcount.measures.shares import with_population
from xcount.measures.weighting import Weighing
from xcount.question.grid import Grid
from xcount.support.interval import Interval

COMMAND = "python -m benchmarks.people --output benchmarks/results/people.md --page docs/people.md"
MEASURES = ("regions", "volume", "marginals", "population", "rows")
QUESTIONS: Sequence[tuple[str, dict[str, Any]]] = (
    ("sex", {"flip": True}),
    ("sex", {"probability_gap": "0.05"}),
    ("race", {"flip": True}),
    ("age", {"flip": True}),
    ("marital_status", {"flip": True}),
)


Found = Mapping[tuple[int, str], "Asked"]
"""What was found, by the number of the question and the measure."""


@dataclass(frozen=True)
class Asked:
    """One question by one measure, and what it took."""

    share: Interval
    seconds: float
    explanation_seconds: float
    explanation: Any


def fitted(world: World) -> tuple[Population, float]:
    """Fit the population to the rows to learn from."""
    ensemble = xcount.load(world.model)
    weighing = Weighing.of(ensemble, "population", world.training)
    started = time.process_time()
    ready = with_population(weighing, Grid.of(ensemble), Settings(jobs=1))
    assert ready.population is not None
    return ready.population, time.process_time() - started


def ask(
    world: World, population: Population, sensitive: str, change: Mapping[str, Any], measure: str
) -> Asked:
    """Ask by one measure, without and with the explanation."""
    words: dict[str, Any] = {"sensitive": sensitive, "distance": "any", "jobs": 1, **change}
    if measure != "regions":
        words |= {"measures": measure}
        words |= {"data": world.held_out if measure == "rows" else world.training}
    if measure == "population":
        words |= {"population": population}
    started = time.process_time()
    xcount.count(world.model, **words)
    counted = time.process_time()
    result = xcount.count(world.model, **words, explain=True)
    explained = time.process_time()
    share = result.share_under(measure) or Interval.unknown_share()
    seconds = counted - started
    return Asked(share, seconds, explained - counted - seconds, result.explanation)


def percent(share: Interval) -> str:
    """Return a share in per cent with its interval."""
    value, low, high = (float(number) for number in (share.value or 0, share.low, share.high))
    return f"{value:.2%}" if share.exact else f"{value:.2%} ({low * 100:.2f} to {high * 100:.2f})"


def change_text(change: Mapping[str, Any]) -> str:
    """Return the change in words."""
    if "flip" in change:
        return "the decision flips"
    return f"the probability moves by more than {change['probability_gap']}"


def shares_table(found: Found) -> str:
    """Return the shares side by side, and how far each measure is from the held-out rows."""
    rows = []
    for number, (sensitive, change) in enumerate(QUESTIONS):
        cells = [percent(found[number, m].share) for m in MEASURES]
        rows.append([sensitive, change_text(change), *cells])
    errors = []
    for measure in MEASURES:
        away = [
            abs(
                float(found[n, measure].share.value or 0) - float(found[n, "rows"].share.value or 0)
            )
            for n in range(len(QUESTIONS))
        ]
        errors.append(f"{100 * np.mean(away):.2f}")
    rows.append(["", "mean distance from the rows, points", *errors])
    return markdown(["sensitive to", "when", *MEASURES], rows)


def direction_table(found: Found) -> str:
    """Return for what share the output can rise and fall, by measure."""
    rows = []
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            effects = found[number, measure].explanation.effects
            effect = next(e for e in effects if e.measure == measure)
            mean = "" if effect.mean is None else f"{effect.mean.value:.3f}"
            shares = [percent(share) for share in (effect.up, effect.down)]
            rows.append([sensitive, change_text(change), measure, *shares, mean])
    return markdown(["sensitive to", "when", "measure", "up", "down", "mean change"], rows)


def fairlearn_rates(world: World, rates: GroupRates, sensitive: str) -> tuple[float, float]:
    """Return Fairlearn's ratio on the held-out rows, and the largest difference of a rate."""
    from fairlearn.metrics import (  # type: ignore[import-untyped]  # it has no types
        MetricFrame,
        demographic_parity_ratio,
        selection_rate,
    )

    ensemble = xcount.load(world.model)
    weighing = Weighing.of(ensemble, "rows", world.held_out)
    assert weighing.inputs is not None
    cells = Grid.of(ensemble).cells_of(weighing.inputs)[:, ensemble.feature_names.index(sensitive)]
    group = np.full(len(cells), -1)
    for number, own in enumerate(rates.cells):
        group[np.isin(cells, own.cells[0])] = number
    predicted = world.model.predict(world.held_out)
    frame = MetricFrame(
        metrics=selection_rate, y_true=predicted, y_pred=predicted, sensitive_features=group
    )
    away = max(abs(frame.by_group[n] - own.rate.least) for n, own in enumerate(rates.cells))
    ratio = demographic_parity_ratio(predicted, predicted, sensitive_features=group)
    return float(ratio), float(away)


def rates_table(world: World, found: Found) -> str:
    """Return group rates and their ratios by measure, and Fairlearn's on the same rows."""
    rows = []
    for number, (sensitive, change) in enumerate(QUESTIONS):
        if "flip" not in change:
            continue
        for measure in MEASURES:
            every = found[number, measure].explanation.rates
            rates = next(r for r in every if r.measure == measure)
            ends = (f(rates.cells, key=lambda g: g.rate.least) for f in (min, max))
            lowest_highest = [f"{group.rate.least:.1%} ({group.text})" for group in ends]
            ratio = rates.ratio
            interval = "" if rates.exact else f" ({ratio.low:.3f} to {ratio.high:.3f})"
            moved = [g.if_all.least for g in rates.cells if g.if_all is not None]
            if_all = f"{min(moved) / max(moved):.3f}" if moved else ""
            rows.append(
                [sensitive, measure, *lowest_highest, f"{ratio.value:.3f}{interval}", if_all]
            )
        ratio_there, away = fairlearn_rates(world, rates, sensitive)
        rows.append([sensitive, "rows, Fairlearn", "", "", f"{ratio_there:.3f}", ""])
        assert away == 0, f"a rate of {sensitive} differs by {away}"
    header = ["sensitive", "measure", "lowest rate", "highest rate", "ratio"]
    return markdown([*header, "if all were: ratio"], rows)


def places_table(found: Found) -> str:
    """Return the first two places of each question by measure."""
    rows = []
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            places: list[Place] = list(found[number, measure].explanation.places)
            for place in [place for place in places if place.measure == measure][:2]:
                shares = [percent(share) for share in (place.within, place.part)]
                rows.append([sensitive, change_text(change), measure, place.text, *shares])
    header = ["sensitive to", "when", "measure", "where", "of the box"]
    return markdown([*header, "of all that is sensitive"], rows)


def cost_table(found: Found, fitting: float) -> str:
    """Return what each measure costs."""
    rows = []
    for measure in MEASURES:
        every = [found[n, measure] for n in range(len(QUESTIONS))]
        counted = [asked.seconds for asked in every]
        explained = [asked.explanation_seconds for asked in every]
        seconds = (np.mean(counted), max(counted), np.mean(explained))
        once = f"{fitting:.1f}" if measure == "population" else ""
        rows.append([measure, once, *(f"{each:.2f}" for each in seconds)])
    header = ["measure", "prepared once", "count, mean", "count, most", "explanation, mean"]
    return markdown(header, rows)


def report(folder: str | None, trees: int, depth: int) -> dict[str, str]:
    """Ask everything; return the tables by their titles, and first what was asked."""
    settings = {"n_estimators": trees, "max_depth": depth, "learning_rate": 0.1}
    world = adult_world(folder, tree_method="hist", **settings)
    population, fitting = fitted(world)
    found: dict[tuple[int, str], Asked] = {}
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            found[number, measure] = ask(world, population, sensitive, change, measure)
            asked = found[number, measure]
            print(
                f"{sensitive}, {change_text(change)}, {measure}: "
                f"{percent(asked.share)}, {asked.seconds:.2f} s"
            )
    realism = population.realism
    about = (
        f"XGBoost, {trees} trees of depth {depth}, on {N_TRAINING:,} rows of Adult; volume, "
        f"marginals and population come from the same rows, `rows` are {len(world.held_out):,} "
        "held-out rows. Any distance, `auto`, one thread, seconds of processor "
        f"time. The population has {population.n_components} components: "
        f"{realism.log_likelihood:.2f} nats a row that it was not fitted to, "
        f"{realism.marginals_log_likelihood:.2f} by the marginals."
    )
    return {
        "About": about,
        "Shares": shares_table(found),
        "Direction and size": direction_table(found),
        "Group rates": rates_table(world, found),
        "Places": places_table(found),
        "What it costs": cost_table(found, fitting),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.people", __doc__)
    parser.add_argument("--trees", type=int, default=50, help="trees of the model")
    parser.add_argument("--depth", type=int, default=5, help="depth of the trees")
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    parser.add_argument("--page", type=Path, help="page whose tables to replace")
    options = parser.parse_args(arguments)
    sections = report(options.data, options.trees, options.depth)
    tables = [f"## {title}\n\n{text}" for title, text in sections.items() if title != "About"]
    title = "# Who is affected, by every measure"
    text = joined(title, sections["About"], f"    {COMMAND}", *tables)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text + "\n", encoding="utf-8")
    if options.page is not None:
        parts = {f"people_{title.split()[-1].lower()}": text for title, text in sections.items()}
        replace_parts(options.page, parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
