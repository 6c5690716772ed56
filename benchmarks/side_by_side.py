"""Compare `auto` with `exact` and `sample`: its cost in units of the cheaper of the two.

    python -m benchmarks.side_by_side [--limit-seconds 60] [--output benchmarks/results]

Questions about gaps, rare gaps and flips, of models of the paper's suite and of larger ones, are
asked of the three methods in turns, in one process and on one thread, and timed in processor
seconds; and so are shares under measures, which are weighed exactly, sampled, or both side by side.
A method that reaches its limit has no time: the ratio is to the cheaper one of those that answered.
`auto` gives exact work a tenth of a second before it asks what sampling would cost; the table says,
too, what is above twice the cheaper one, in seconds. With ``--only``, what an earlier run found
about other models stays in the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import BY_KEY, PLAIN, load_dataset
from benchmarks.harness.models import Training, models_of
from benchmarks.harness.tables import markdown
from xcount import Ensemble, Grid, count, load
from xcount.answers.options import fitted
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason
from xcount.measures.exact_shares import UNITS
from xcount.measures.measured import REGIONS
from xcount.measures.mixture import Mixture
from xcount.measures.products import weighed_parts
from xcount.measures.shares import measure_of, weighing_of
from xcount.measures.weigh import Weight
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.query import Query

METHODS = ("auto", "exact", "sample")
RESULTS = Path(__file__).parent / "results"
Asker = Callable[["Asked", str, float], dict[str, Any]]
"""Asks a question of a method within some seconds."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model by its training: the last of the sizes."""

    dataset: str
    depth: int
    n_trees: int
    suite: str = "side"

    @property
    def name(self) -> str:
        return f"{self.dataset}-d{self.depth}-t{self.n_trees}"

    def path(self, cache: str | None, data: str | None) -> Path:
        """Return the model's file, from the cache or trained now."""
        sizes = tuple(range(10, 101, 10)) if self.suite == "paper" else (self.n_trees,)
        recipe = BY_KEY[self.dataset].recipe if self.suite == "paper" else PLAIN
        training = Training(self.dataset, self.depth, sizes, self.suite, recipe)
        found = models_of(training, cache, data)
        return next(model.path for model in found if model.n_trees == self.n_trees)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: of which kind, about which feature, and the rest as `count` takes it."""

    kind: str
    feature: int
    options: dict[str, Any] = field(default_factory=dict)
    measure: str = "regions"
    rule: str | None = None

    @property
    def text(self) -> str:
        said = {**self.options, **({} if self.rule is None else {"rule": self.rule})}
        options = ", ".join(f"{name} {value}" for name, value in said.items())
        return f"f{self.feature}: {options}".replace("flip True", "flip")


def gaps(kind: str, *pairs: tuple[int, str]) -> list[Asked]:
    return [Asked(kind, feature, {"gap": gap}) for feature, gap in pairs]


def flips(*features: int) -> list[Asked]:
    distances: tuple[int | str, ...] = (1, "any")
    return [
        Asked("flip", feature, {"flip": True, "distance": distance})
        for feature, distance in itertools.product(features, distances)
    ]


def weighed(features: Sequence[int], gaps_asked: Sequence[str], rule: str) -> list[Asked]:
    """Return flips and gaps in margin and probability under each measure, some within a rule."""
    changes: list[dict[str, Any]] = [{"flip": True}, {"probability_gap": "0.05"}]
    changes += [{"gap": gap} for gap in gaps_asked]
    return [
        Asked(next(iter(change)).replace("_", " "), feature, change, measure, within)
        for measure in ("volume", "marginals", "population")
        for feature in features
        for change in changes
        for within in ((None, rule) if feature == features[0] else (None,))
    ]


QUESTIONS: dict[Model, list[Asked]] = {
    Model("higgs", 6, 100, "paper"): [
        *gaps("rare gap", (20, "1.4"), (20, "1.5"), (20, "1.7"), (25, "1.4"), (5, "1.1")),
        *gaps("gap", (25, "1.1"), (5, "0.8"), (3, "0.05"), (20, "0.3")),
    ],
    Model("adult", 6, 100, "paper"): [*gaps("gap", (0, "2"), (9, "0.5"), (9, "2")), *flips(9, 0)],
    Model("protein", 6, 100, "paper"): gaps("gap", (0, "2"), (4, "2"), (4, "6")),
    Model("covtype", 6, 100, "paper"): gaps("gap", (0, "2"), (9, "1")),
    Model("adult", 6, 400): [*flips(0, 3, 5, 8, 9), *gaps("gap", (0, "1"), (9, "1"))],
    Model("adult", 6, 800): [*flips(9), *gaps("gap", (0, "1"), (0, "4"), (9, "1"))],
    Model("higgs", 6, 300): gaps("gap", (3, "0.5"), (20, "0.5"), (5, "2")),
    Model("protein", 6, 300): gaps("gap", (0, "2"), (4, "8")),
    Model("adult", 4, 50): weighed((0, 9), ("0.5", "2"), "f0 < 30 -> f4 < 14"),
    Model("adult", 6, 300): weighed((0, 9), ("0.5", "2"), "f0 < 30 -> f4 < 14"),
}


class Weights:
    """A model with what its regions weigh: by the rows that it was not trained on."""

    def __init__(self, model: Ensemble, rows: NDArray[np.float64], rule: str | None) -> None:
        self.model = model
        self.grid = Grid.of(model, domain=Domain.of(rule=() if rule is None else rule))
        names = ("volume", "marginals", "population")
        weighing = weighing_of(model, REGIONS, names, rows, None, None, Settings())
        self.weighing = fitted(weighing, self.grid, Settings())

    def ask(self, asked: Asked, method: str, limit: float) -> dict[str, Any]:
        """Ask once; return what it cost and what came out."""
        assert self.weighing is not None
        query = Query.of(self.model, [asked.feature], **{"distance": 1, **asked.options})
        problem = Problem(self.model, self.grid, query)
        mixture = measure_of(asked.measure, problem.grid, self.weighing)
        assert isinstance(mixture, Mixture)
        settings = Settings(timeout_seconds=limit, jobs=1)
        began = time.process_time()
        products = mixture.products(problem)
        parts = weighed_parts(problem, products)
        weight = Weight(asked.measure, problem, products, parts, settings, {})
        low, high, answered = _weighed(weight, method, settings)
        return {
            "seconds": round(time.process_time() - began, 4),
            "answered": answered,
            "exact": low == high,
            "share_low": low,
            "share_high": high,
        }


def _weighed(weight: Weight, method: str, settings: Settings) -> tuple[float, float, bool]:
    """Return bounds of a share, and whether they are as near as was asked."""
    if method == "auto":
        found = weight.run()
        return found.low, found.high, found.stop_reason is StopReason.COMPLETE
    if method == "exact":
        shares = weight.shares
        for _ in shares.slices():
            if settings.expired():
                break
        low, high = shares.bounds()
        return low / UNITS, high / UNITS, not shares.open_size
    tally = weight.estimate(settings, Bounds(0, UNITS), 0).run("sample", {})
    return tally.low / UNITS, tally.high / UNITS, tally.stop_reason is StopReason.COMPLETE


def ask(model: Ensemble, grid: Grid, asked: Asked, method: str, limit: float) -> dict[str, Any]:
    """Ask for a count once; return what it cost and what came out."""
    began = time.process_time()
    result = count(
        model,
        grid=grid,
        sensitive=[asked.feature],
        method=method,
        timeout=limit,
        jobs=1,
        **{"distance": 1, **asked.options},
    )
    return {
        "seconds": round(time.process_time() - began, 4),
        "answered": str(result.stop_reason) == "complete",
        "exact": result.exact,
        "share_low": result.share_low,
        "share_high": result.share_high,
    }


def records(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ask everything; the method that begins changes from question to question."""
    number = 0
    for model, questions in QUESTIONS.items():
        if options.only and model.name not in options.only:
            continue
        ensemble = load(model.path(options.cache, options.data))
        grid, weights = Grid.of(ensemble), dict[str | None, Weights]()
        for asked in questions:
            number += 1
            asker: Asker = partial(ask, ensemble, grid)
            if asked.measure != "regions":
                if asked.rule not in weights:
                    rows = load_dataset(model.dataset, options.data).test_rows.astype(np.float64)
                    weights[asked.rule] = Weights(ensemble, rows, asked.rule)
                asker = weights[asked.rule].ask
            order = METHODS[number % 3 :] + METHODS[: number % 3]
            answers = {m: asker(asked, m, options.limit_seconds) for m in order}
            about = {"model": model.name, "limit_seconds": options.limit_seconds}
            yield {**about, **asdict(asked), "text": asked.text, "answers": answers}


def kept(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the records of an earlier run about the models that are not asked about now."""
    path = options.output / "side_by_side.jsonl"
    if not options.only or not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [r for r in map(json.loads, lines) if r["model"] not in options.only]


def cheapest(record: dict[str, Any]) -> float:
    """Return the time of the cheaper of the two that answered; infinite if none did."""
    answers = [record["answers"][m] for m in METHODS[1:]]
    return min((a["seconds"] for a in answers if a["answered"]), default=math.inf)


def _cell(answer: dict[str, Any]) -> str:
    if not answer["answered"]:
        return f"> {answer['seconds']:.2f}"
    return f"{answer['seconds']:.2f}" + (" exact" if answer["exact"] else "")


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return what was found as Markdown."""
    rows, ratios = [], []
    for record in found:
        answers, best = record["answers"], cheapest(record)
        auto = answers["auto"]
        ratio = auto["seconds"] / best
        over = max(0.0, auto["seconds"] - 2 * best)
        if math.isfinite(best):
            ratios.append(ratio)
        cells = [_cell(answers[m]) for m in METHODS]
        judged = [f"{ratio:.2f}", f"{over:.2f}"] if math.isfinite(best) else ["-", "-"]
        measure = record.get("measure", "regions")
        about = [record["model"], measure, record["kind"], record["text"]]
        rows.append([*about, *cells, *judged])
    head = ["model", "share of", "kind", "question", *METHODS, "auto / cheaper", "above twice, s"]
    answered = sum(r["answers"]["auto"]["answered"] for r in found)
    unanswered = sum(
        math.isfinite(cheapest(r)) and not r["answers"]["auto"]["answered"] for r in found
    )
    summary = (
        f"{len(found)} questions; `auto` answered {answered}, and left open {unanswered} that "
        f"another answered. Ratio of `auto` to the cheaper one: median "
        f"{statistics.median(ratios):.2f}, of the sums {_ratio_of_sums(found):.2f}."
    )
    return f"{summary} Processor seconds, one thread.\n\n{markdown(head, rows)}\n"


def tables(found: Sequence[dict[str, Any]]) -> str:
    """Return a table of the counts, and one of the measures."""
    kinds = itertools.groupby(found, lambda record: record.get("measure", "regions") == "regions")
    parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for are_counts, records_of in kinds:
        parts[are_counts] += records_of
    return "\n".join(table(part) for part in parts.values() if part)


def _ratio_of_sums(found: Sequence[dict[str, Any]]) -> float:
    known = [r for r in found if math.isfinite(cheapest(r))]
    seconds = [float(r["answers"]["auto"]["seconds"]) for r in known]
    return sum(seconds) / sum(map(cheapest, known))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("--limit-seconds", type=float, default=60.0)
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--only", nargs="*", help="models (default: all)")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found = kept(options)
    for record in records(options):
        found.append(record)
        times = {m: _cell(a) for m, a in record["answers"].items()}
        print(record["model"], record["text"], times, file=sys.stderr, flush=True)
        options.output.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(r) + "\n" for r in found)
        (options.output / "side_by_side.jsonl").write_text(lines)
        (options.output / "side_by_side.md").write_text(tables(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
