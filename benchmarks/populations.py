"""Measure how close a population comes to people: Adult, 40,000 rows to fit to, others held out.

    python -m benchmarks.populations [--data FOLDER] [--limit-seconds SECONDS]
        [--output FILE] [--page FILE]

Two tables. The fit: mixtures of more and more components, by the native expectation maximisation
and by a plain one in numpy that starts from random responsibilities; the likelihood of held-out
rows, and seconds of processor time. The shares: sixteen questions about one model, weighed in every
way, and how far each is from the held-out rows, which nothing has seen.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xcount
from benchmarks.harness.adult import N_TRAINING, World, adult_world
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import joined, markdown, replace_parts
from xcount.answers.count import solve
from xcount.counters.settings import Settings
from xcount.measures.fitting import STRENGTH, fit_mixture, fit_population
from xcount.measures.population import Population
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.support.interval import Interval

COMMAND = (
    "python -m benchmarks.populations --output benchmarks/results/populations.md "
    "--page docs/population.md"
)
TREES, DEPTH = 50, 5
FEATURES = (
    *("sex", "race", "age", "marital_status"),
    *("relationship", "workclass", "native_country", "hours_per_week"),
)
CHANGES: dict[str, dict[str, Any]] = {"gap 0.5": {"gap": "0.5"}, "flip": {"flip": True}}
WEIGHED = ("regions", "volume", "marginals", "population")
COMPONENTS = (1, 5, 20, 50)
PLAIN_STEPS, PLAIN_GAIN, EPSILON = 150, 1e-4, 0.02


def grid_of(world: World) -> Grid:
    return Grid.of(xcount.load(world.model))


def rows_of(world: World, table: Any) -> NDArray[np.float64]:
    """Return a table as rows of numbers."""
    from xcount.model.tables import read_table

    return read_table(table, xcount.load(world.model)).rows


@dataclass(frozen=True)
class Cells:
    """Rows as indicators of cells: all features' cells beside each other."""

    indicators: Any
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.integer], sizes: tuple[int, ...]) -> Cells:
        """Return rows of cells as a sparse matrix."""
        import scipy.sparse

        ends = np.concatenate([[0], np.cumsum(sizes)])
        columns = (cells + ends[:-1]).ravel()
        rows = np.repeat(np.arange(len(cells)), cells.shape[1])
        shape = (len(cells), int(ends[-1]))
        return cls(scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape), ends)


def joint(data: Cells, weights: NDArray[Any], tables: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log of (component and row), for each of both."""
    found: NDArray[np.float64] = data.indicators @ np.log(tables) + np.log(weights)
    return found


def mean_log_likelihood(data: Cells, weights: NDArray[Any], tables: NDArray[Any]) -> float:
    """Return the mean log-likelihood of a row."""
    return float(np.logaddexp.reduce(joint(data, weights, tables), axis=1).mean())


def plain_mixture(data: Cells, n_components: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Fit by plain expectation maximisation: the oracle of the native one."""
    n_rows = data.indicators.shape[0]
    marginals = np.asarray(data.indicators.sum(axis=0)).ravel() / n_rows
    parts = np.random.default_rng(0).dirichlet(np.full(n_components, 0.3), n_rows)
    before = -np.inf
    for _ in range(PLAIN_STEPS):
        weights = parts.mean(axis=0)
        tables = data.indicators.T @ parts + STRENGTH * marginals[:, None]
        for first, last in zip(data.ends, data.ends[1:], strict=False):
            tables[first:last] /= tables[first:last].sum(axis=0)
        tables = np.maximum(tables, 1e-300)
        logs = joint(data, weights, tables)
        whole = np.logaddexp.reduce(logs, axis=1)
        parts = np.exp(logs - whole[:, None])
        if whole.mean() - before < PLAIN_GAIN:
            break
        before = whole.mean()
    return weights, tables


def fit_rows(world: World) -> list[list[str]]:
    """Return the table of fits."""
    grid = grid_of(world)
    seen, others = (grid.cells_of(rows_of(world, t)) for t in (world.training, world.held_out))
    sizes = tuple(grid.cell_counts)
    data, unseen = Cells.of(seen, sizes), Cells.of(others, sizes)
    lines = []
    for n in COMPONENTS:
        started = time.process_time()
        native = fit_mixture(seen.astype(np.int32), sizes, n)
        middle = time.process_time()
        plain = plain_mixture(data, n)
        ended = time.process_time()
        found = native.log_likelihood(others.astype(np.int32).ravel())
        oracle = mean_log_likelihood(unseen, *plain)
        seconds = (f"{middle - started:.2f}", f"{ended - middle:.2f}")
        lines.append([str(n), f"{found:.2f}", seconds[0], f"{oracle:.2f}", seconds[1]])
        print(" ".join(lines[-1]))
    return lines


@dataclass(frozen=True)
class Weighed:
    """A share, whether it is exact, and seconds of processor time."""

    share: float
    exact: bool
    seconds: float

    @property
    def text(self) -> str:
        return f"{'' if self.exact else '~'}{100 * self.share:.3g}"


def ask(problem: Problem, ways: dict[str, Weighing], timeout: float) -> dict[str, Weighed]:
    """Ask one question in every way, each by itself."""
    started = time.process_time()
    counted = solve(problem, Settings(epsilon=EPSILON, timeout_seconds=timeout, jobs=1)).judged
    found = {"regions": _weighed(counted, started)}
    for name, weighing in ways.items():
        started = time.process_time()
        (measured,) = measure(
            problem, weighing, Settings(epsilon=EPSILON, timeout_seconds=timeout, jobs=1)
        ).values()
        found[name] = _weighed(measured.interval, started)
    return found


def _weighed(known: Interval, started: float) -> Weighed:
    share = (known.low + known.high) / 2 if known.value is None else known.value
    return Weighed(float(share), known.exact, time.process_time() - started)


def share_rows(world: World, population: Population, timeout: float) -> list[list[str]]:
    """Return the table of shares, with mean distances and times below."""
    ensemble, grid = xcount.load(world.model), grid_of(world)
    ways = {name: Weighing.of(ensemble, name, world.training) for name in ("volume", "marginals")}
    ways["population"] = Weighing.of(ensemble, "population", population=population)
    ways["training rows"] = Weighing.of(ensemble, "rows", world.training)
    ways["held-out rows"] = Weighing.of(ensemble, "rows", world.held_out)
    lines, every = [], []
    for feature in FEATURES:
        for words, change in CHANGES.items():
            query = Query.of(ensemble, feature, distance="any", **change)
            found = ask(Problem(ensemble, grid, query), ways, timeout)
            every.append(found)
            lines.append([f"{feature}, {words}", *(each.text for each in found.values())])
            print(" ".join(lines[-1]))
    away = [
        np.mean([abs(found[name].share - found["held-out rows"].share) for found in every])
        for name in every[0]
    ]
    seconds = [np.mean([found[name].seconds for found in every]) for name in every[0]]
    lines.append(["mean distance from the held-out rows", *(f"{100 * a:.2f}" for a in away)])
    lines.append(["mean seconds", *(f"{s:.2f}" for s in seconds)])
    return lines


def report(world: World, timeout: float) -> str:
    """Fit and ask everything; return the tables and what they say."""
    fits = fit_rows(world)
    started = time.process_time()
    population = fit_population(grid_of(world), rows_of(world, world.training), source="Adult")
    seconds, realism = time.process_time() - started, population.realism
    columns = [*WEIGHED, "training rows", "held-out rows"]
    return joined(
        *[
            f"XGBoost, {TREES} trees of depth {DEPTH}, and everything else from {N_TRAINING:,} "
            f"rows of Adult; {len(world.held_out):,} rows are held out. One thread, seconds of "
            "processor time. Log-likelihoods are means of a held-out row, in nats.",
            markdown(["components", "native", "seconds", "plain EM (numpy)", "seconds"], fits),
            f"`--measure population` chooses {population.n_components} components in "
            f"{seconds:.1f} s (all numbers that it tries together): {realism.log_likelihood:.2f} "
            "nats a row of its own held-out rows, "
            f"{realism.marginals_log_likelihood:.2f} by the marginals.",
            f"Shares in %, any distance, epsilon {EPSILON}, at most {timeout:g} s each; ~ marks an "
            "estimate.",
            markdown(["question", *columns], share_rows(world, population, timeout)),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.populations", __doc__, limit_seconds=1.5)
    parser.add_argument("--output", type=Path, help="Markdown file to write")
    parser.add_argument("--page", type=Path, help="page whose tables to replace")
    options = parser.parse_args(arguments)
    world = adult_world(options.data, n_estimators=TREES, max_depth=DEPTH)
    text = report(world, options.limit_seconds)
    print(text)
    if options.output is not None:
        title = "# How close a population comes to people"
        document = joined(title, f"    {COMMAND}", text)
        options.output.write_text(document + "\n", encoding="utf-8")
    if options.page is not None:
        replace_parts(options.page, {"populations": text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
