"""Who is affected, by every measure: Adult, 40,000 rows to learn from and all others held out.

    python -m benchmarks.people [--data FOLDER] [--trees N] [--depth N]
        [--output FILE] [--page FILE]

The model and all weights come from the rows to learn from: volumes take their bounds, marginals
their frequencies, the population is fitted to them. What is true of people is what holds for the
held-out rows (`rows`), which neither has seen. Group rates of those are compared with Fairlearn's.
Times are seconds of processor time, one thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import xcount
from benchmarks.harness.datasets import data_folder
from benchmarks.harness.tables import replace_parts
from xcount.answers.explanation import GroupRates, Place, ShareInterval
from xcount.counters.settings import Settings
from xcount.measures.population import Population
from xcount.measures.shares import with_population
from xcount.measures.weighting import Weighing
from xcount.question.grid import Grid

COMMAND = "python -m benchmarks.people --output benchmarks/results/people.md --page docs/people.md"
N_TRAINING = 40_000
MEASURES = ("regions", "volume", "marginals", "population", "rows")
QUESTIONS: Sequence[tuple[str, dict[str, Any]]] = (
    ("sex", {"flip": True}),
    ("sex", {"probability_gap": "0.05"}),
    ("race", {"flip": True}),
    ("age", {"flip": True}),
    ("marital_status", {"flip": True}),
)


@dataclass(frozen=True)
class World:
    """A model, the rows it learnt from, and others."""

    model: Any
    training: Any
    held_out: Any


def world_of(folder: str | None, n_trees: int, depth: int) -> World:
    """Train on 40,000 rows of Adult; categories keep their names."""
    import pandas as pd
    import xgboost

    table = pd.read_csv(data_folder(folder) / "adult.csv.gz", keep_default_na=False)
    table = table.rename(columns=lambda name: name.replace("-", "_"))
    target = table.pop("target").to_numpy().astype(int)
    for name in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
        table[name] = table[name].astype("category")
    order = np.random.default_rng(0).permutation(len(table))
    learnt, others = order[:N_TRAINING], order[N_TRAINING:]
    model = xgboost.XGBClassifier(
        n_estimators=n_trees,
        max_depth=depth,
        learning_rate=0.1,
        enable_categorical=True,
        tree_method="hist",
        n_jobs=1,
        random_state=0,
    )
    model.fit(table.iloc[learnt], target[learnt])
    return World(model, table.iloc[learnt], table.iloc[others])


@dataclass(frozen=True)
class Asked:
    """One question by one measure, and what it took."""

    share: ShareInterval
    is_exact: bool
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
    if measure == "regions":
        share = ShareInterval(result.share or 0.0, result.share_low, result.share_high)
        is_exact = result.exact
    else:
        entry = result.details["measures"][measure]
        share = ShareInterval(entry["share"] or 0.0, entry["low"], entry["high"])
        is_exact = entry["exact"]
    seconds = counted - started
    return Asked(share, is_exact, seconds, explained - counted - seconds, result.explanation)


def percent(share: ShareInterval, is_exact: bool) -> str:
    """Return a share in per cent with its interval."""
    if is_exact:
        return f"{share.share:.2%}"
    return f"{share.share:.2%} ({share.low * 100:.2f} to {share.high * 100:.2f})"


def change_text(change: Mapping[str, Any]) -> str:
    """Return the change in words."""
    if "flip" in change:
        return "the decision flips"
    return f"the probability moves by more than {change['probability_gap']}"


def shares_table(found: Mapping[tuple[int, str], Asked]) -> list[str]:
    """Return the shares side by side, and how far each measure is from the held-out rows."""
    lines = [
        f"| sensitive to | when | {' | '.join(MEASURES)} |",
        f"|---|---|{'---|' * len(MEASURES)}",
    ]
    for number, (sensitive, change) in enumerate(QUESTIONS):
        cells = [percent(found[number, m].share, found[number, m].is_exact) for m in MEASURES]
        lines.append(f"| {sensitive} | {change_text(change)} | {' | '.join(cells)} |")
    errors = []
    for measure in MEASURES:
        away = [
            abs(found[n, measure].share.share - found[n, "rows"].share.share)
            for n in range(len(QUESTIONS))
        ]
        errors.append(f"{100 * np.mean(away):.2f}")
    lines.append(f"| | mean distance from the rows, points | {' | '.join(errors)} |")
    return lines


def direction_table(found: Mapping[tuple[int, str], Asked]) -> list[str]:
    """Return for what share the output can rise and fall, by measure."""
    lines = [
        "| sensitive to | when | measure | up | down | mean change |",
        "|---|---|---|---|---|---|",
    ]
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            effects = found[number, measure].explanation.effects
            effect = next(e for e in effects if e.measure == measure)
            mean = "" if effect.mean is None else f"{effect.mean.value:.3f}"
            row = [
                sensitive,
                change_text(change),
                measure,
                percent(effect.up, effect.exact),
                percent(effect.down, effect.exact),
                mean,
            ]
            lines.append(f"| {' | '.join(row)} |")
    return lines


def fairlearn_rates(world: World, rates: GroupRates, sensitive: str) -> tuple[float, float]:
    """Return Fairlearn's ratio on the held-out rows, and the largest difference of a rate."""
    from fairlearn.metrics import (  # type: ignore[import-untyped]  # it has no types
        MetricFrame,
        demographic_parity_ratio,
        selection_rate,
    )

    ensemble = xcount.load(world.model)
    weighing = Weighing.of(ensemble, "rows", world.held_out)
    assert weighing.rows is not None
    cells = Grid.of(ensemble).cells_of(weighing.rows)[:, ensemble.feature_names.index(sensitive)]
    group = np.full(len(cells), -1)
    for number, own in enumerate(rates.cells):
        group[np.isin(cells, own.cells[0])] = number
    predicted = world.model.predict(world.held_out)
    frame = MetricFrame(
        metrics=selection_rate, y_true=predicted, y_pred=predicted, sensitive_features=group
    )
    away = max(abs(frame.by_group[n] - own.rate) for n, own in enumerate(rates.cells))
    ratio = demographic_parity_ratio(predicted, predicted, sensitive_features=group)
    return float(ratio), float(away)


def rates_table(world: World, found: Mapping[tuple[int, str], Asked]) -> list[str]:
    """Return group rates and their ratios by measure, and Fairlearn's on the same rows."""
    lines = [
        "| sensitive | measure | lowest rate | highest rate | ratio | if all were: ratio |",
        "|---|---|---|---|---|---|",
    ]
    for number, (sensitive, change) in enumerate(QUESTIONS):
        if "flip" not in change:
            continue
        for measure in MEASURES:
            every = found[number, measure].explanation.rates
            rates = next(r for r in every if r.measure == measure)
            low = min(rates.cells, key=lambda g: g.rate)
            high = max(rates.cells, key=lambda g: g.rate)
            ratio = rates.ratio
            interval = "" if rates.exact else f" ({ratio.low:.3f} to {ratio.high:.3f})"
            moved = [g.if_all.rate for g in rates.cells if g.if_all is not None]
            row = [
                sensitive,
                measure,
                f"{low.rate:.1%} ({low.text})",
                f"{high.rate:.1%} ({high.text})",
                f"{ratio.value:.3f}{interval}",
                f"{min(moved) / max(moved):.3f}" if moved else "",
            ]
            lines.append(f"| {' | '.join(row)} |")
        ratio_there, away = fairlearn_rates(world, rates, sensitive)
        lines.append(f"| {sensitive} | rows, Fairlearn | | | {ratio_there:.3f} | |")
        assert away == 0, f"a rate of {sensitive} differs by {away}"
    return lines


def places_table(found: Mapping[tuple[int, str], Asked]) -> list[str]:
    """Return the first two places of each question by measure."""
    lines = [
        "| sensitive to | when | measure | where | of the box | of all that is sensitive |",
        "|---|---|---|---|---|---|",
    ]
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            places: list[Place] = list(found[number, measure].explanation.places)
            own = [place for place in places if place.measure == measure]
            for place in own[:2]:
                row = [
                    sensitive,
                    change_text(change),
                    measure,
                    place.text,
                    percent(place.within, place.exact),
                    percent(place.part, place.exact),
                ]
                lines.append(f"| {' | '.join(row)} |")
    return lines


def cost_table(found: Mapping[tuple[int, str], Asked], fitting: float) -> list[str]:
    """Return what each measure costs."""
    lines = [
        "| measure | prepared once | count, mean | count, most | explanation, mean |",
        "|---|---|---|---|---|",
    ]
    for measure in MEASURES:
        every = [found[n, measure] for n in range(len(QUESTIONS))]
        row = [
            measure,
            f"{fitting:.1f}" if measure == "population" else "",
            f"{np.mean([a.seconds for a in every]):.2f}",
            f"{max(a.seconds for a in every):.2f}",
            f"{np.mean([a.explanation_seconds for a in every]):.2f}",
        ]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def report(folder: str | None, trees: int, depth: int) -> dict[str, list[str]]:
    """Ask everything; return the tables by their titles, and first what was asked."""
    world = world_of(folder, trees, depth)
    population, fitting = fitted(world)
    found: dict[tuple[int, str], Asked] = {}
    for number, (sensitive, change) in enumerate(QUESTIONS):
        for measure in MEASURES:
            found[number, measure] = ask(world, population, sensitive, change, measure)
            asked = found[number, measure]
            click.echo(
                f"{sensitive}, {change_text(change)}, {measure}: "
                f"{percent(asked.share, asked.is_exact)}, {asked.seconds:.2f} s"
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
        "About": [about],
        "Shares": shares_table(found),
        "Direction and size": direction_table(found),
        "Group rates": rates_table(world, found),
        "Places": places_table(found),
        "What it costs": cost_table(found, fitting),
    }


def as_text(sections: Mapping[str, Sequence[str]]) -> str:
    """Return the whole of a report."""
    lines = ["# Who is affected, by every measure", "", *sections["About"], "", f"    {COMMAND}"]
    for title, table in sections.items():
        if title != "About":
            lines += ["", f"## {title}", "", *table]
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--data", "folder", default=None, help="Folder of the data sets.")
@click.option("--trees", default=50, help="Trees of the model.")
@click.option("--depth", default=5, help="Depth of the trees.")
@click.option("--output", type=click.Path(path_type=Path), help="Markdown file to write.")
@click.option("--page", type=click.Path(path_type=Path), help="Page whose tables to replace.")
def main(
    folder: str | None, trees: int, depth: int, output: Path | None, page: Path | None
) -> None:
    """Ask who is affected, by every measure."""
    sections = report(folder, trees, depth)
    if output is None:
        click.echo(as_text(sections))
    else:
        output.write_text(as_text(sections), encoding="utf-8")
    if page is not None:
        parts = {f"people_{title.split()[-1].lower()}": lines for title, lines in sections.items()}
        replace_parts(page, parts)


if __name__ == "__main__":
    main()
