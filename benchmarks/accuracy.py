"""Compares the counts of approximate runs with the exact counts of another run.

python -m benchmarks.accuracy --exact runs/paper-exact.jsonl runs/paper-sample.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plots import COLOURS, INK, figure, legend_beside
from benchmarks.records import Run, Status, read_run
from benchmarks.summary import is_solved, markdown


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a run's answers are from the exact counts.

    Attributes:
        method: the run's method.
        epsilon: the relative error that the run was asked to keep.
        delta: how often it may miss.
        relative: |answer - C| / C of each solved instance, where C is known and not 0.
        n_wrong_zeros: answers other than 0 where C is 0, and 0 where it is not.
        n_outside: answers further than epsilon from C.
        n_missed: intervals that do not hold C.
    """

    method: str
    epsilon: float
    delta: float
    relative: tuple[float, ...]
    n_compared: int
    n_wrong_zeros: int
    n_outside: int
    n_missed: int


def exact_counts(runs: Sequence[Run]) -> dict[str, int]:
    """Return the exact counts that runs found; raises where two of them disagree."""
    counts: dict[str, int] = {}
    for run in runs:
        for record in run.records:
            if record["status"] == Status.EXACT:
                known = counts.setdefault(record["name"], record["count"])
                if known != record["count"]:
                    raise ValueError(f"{record['name']}: {known} or {record['count']}?")
    return counts


def errors_of(run: Run, exact: Mapping[str, int]) -> Errors:
    """Return the errors of the instances that a run solved and whose count is known."""
    solved = [r for r in run.records if is_solved(r) and r["name"] in exact]
    pairs = [(r["count"], exact[r["name"]]) for r in solved]
    epsilon = run.settings.epsilon
    return Errors(
        method=run.settings.method,
        epsilon=epsilon,
        delta=run.settings.delta,
        relative=tuple(abs(found - true) / true for found, true in pairs if true),
        n_compared=len(pairs),
        n_wrong_zeros=sum((found == 0) != (true == 0) for found, true in pairs),
        n_outside=sum(abs(found - true) > epsilon * true for found, true in pairs),
        n_missed=sum(not r["low"] <= exact[r["name"]] <= r["high"] for r in solved),
    )


def error_table(errors: Sequence[Errors]) -> str:
    """Return the errors as Markdown."""
    header = ["method", "compared", "not exact", "max error", "beyond epsilon", "interval missed"]
    rows = [
        [
            e.method,
            str(e.n_compared),
            str(sum(value > 0 for value in e.relative)),
            f"{max(e.relative, default=0.0):.4f}",
            str(e.n_outside),
            str(e.n_missed),
        ]
        for e in errors
    ]
    return markdown(header, rows)


def histogram(errors: Sequence[Errors], path: Path) -> None:
    """Draw how the relative errors are spread."""
    limit = max((max(e.relative, default=0.0) for e in errors), default=0.0)
    edge = max(limit, *(e.epsilon for e in errors)) * 1.2
    bins = [edge * i / 30 for i in range(31)]
    with figure(path, size=(7, 3.6)) as axes:
        labels = [f"{e.method} ({len(e.relative)} instances)" for e in errors]
        axes.hist(
            [e.relative for e in errors],
            bins=bins,
            label=labels,
            color=[COLOURS[i % len(COLOURS)] for i in range(len(errors))],
        )
        axes.set_yscale("log")
        for epsilon in {e.epsilon for e in errors}:
            axes.axvline(epsilon, color=INK, linewidth=1, linestyle="--")
            axes.annotate(
                f" epsilon {epsilon:g}", (epsilon, 1), xycoords=("data", "axes fraction"), va="top"
            )
        axes.set_title("Relative error against the exact counts")
        axes.set_xlabel("|answer - C| / C")
        axes.set_ylabel("instances")
        legend_beside(axes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="runs to judge")
    parser.add_argument("--exact", nargs="+", type=Path, required=True, help="runs to believe")
    parser.add_argument("--output", type=Path, help="picture to write")
    options = parser.parse_args(arguments)
    exact = exact_counts([read_run(path) for path in options.exact])
    errors = [errors_of(read_run(path), exact) for path in options.runs]
    print(error_table(errors))
    if options.output is not None:
        histogram(errors, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
