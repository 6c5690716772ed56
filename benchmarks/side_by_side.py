"""`auto` beside `exact` and `sample`: what it costs in units of the cheaper of the two.

    python -m benchmarks.side_by_side [--limit-seconds 60] [--output benchmarks/results]

Questions about gaps, rare gaps and flips, of models of the paper's suite and of larger ones, are
asked of the three methods in turns, in one process and on one thread, and timed in processor
seconds. A method that reaches its limit has no time: the ratio is to the cheaper one of those that
answered. `auto` gives exact counting a tenth of a second before it asks what sampling would cost;
the table says, too, what is above twice the cheaper one, in seconds. With ``--only``, what an
earlier run found about other models stays in the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.datasets import BY_KEY, PLAIN
from benchmarks.models import Training, models_of
from benchmarks.summary import markdown
from xcount import Ensemble, Grid, count, load

METHODS = ("auto", "exact", "sample")
RESULTS = Path(__file__).parent / "results"


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

    @property
    def text(self) -> str:
        options = ", ".join(f"{name} {value}" for name, value in self.options.items())
        return f"f{self.feature}: {options}".replace("flip True", "flip")


def gaps(kind: str, *pairs: tuple[int, str]) -> list[Asked]:
    return [Asked(kind, feature, {"gap": gap}) for feature, gap in pairs]


def flips(*features: int) -> list[Asked]:
    distances: tuple[int | str, ...] = (1, "any")
    return [
        Asked("flip", feature, {"flip": True, "distance": distance})
        for feature, distance in itertools.product(features, distances)
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
}


def ask(model: Ensemble, grid: Grid, asked: Asked, method: str, limit: float) -> dict[str, Any]:
    """Ask once; return what it cost and what came out."""
    began = time.process_time()
    result = count(
        model,
        grid=grid,
        sensitive=[asked.feature],
        method=method,
        timeout_seconds=limit,
        jobs=1,
        **asked.options,
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
        grid = Grid.of(ensemble)
        for asked in questions:
            number += 1
            order = METHODS[number % 3 :] + METHODS[: number % 3]
            answers = {m: ask(ensemble, grid, asked, m, options.limit_seconds) for m in order}
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
        rows.append([record["model"], record["kind"], record["text"], *cells, *judged])
    head = ["model", "kind", "question", *METHODS, "auto / cheaper", "above twice, s"]
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
        (options.output / "side_by_side.md").write_text(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
