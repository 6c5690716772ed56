"""The verdict: each table and figure of the paper beside ours, in one line and one word."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import verified
from benchmarks.harness.datasets import SPECS
from benchmarks.harness.records import Run, Runs, read_lines
from benchmarks.harness.tables import is_solved, markdown, solved_share
from experiments import accuracy, gaps, paper, theorem
from experiments import regularisation_report as regularisation
from experiments.methods import common

Record = Mapping[str, Any]
HALF_GUARDS: int = paper.PAPER["half_solved_guards"]


def section(runs: Runs, folder: Path) -> str:
    """Return the table; a row is left out if its runs are not there."""
    lines = read_lines(folder / regularisation.FILE)
    header = ["in the paper", "the paper's result", "ours", "verdict"]
    rows = [*_of_suites(runs), *_of_regularisation(lines), *_of_counts(folder)]
    return markdown(header, rows, are_numbers=False)


def _of_suites(runs: Runs) -> Iterator[Sequence[str]]:
    suite = {run.settings.method: run for run in runs.get("paper", ())}
    share = f"{100 * paper.SHARES['xcount']:.1f} % with 1800 s"
    if "auto" in suite:
        yield ("Table 1: data sets", *_guards(suite["auto"].records), "partly")
        ours = "; ".join(
            f"`{method}` {_percent(run.records)} with {run.settings.limit_seconds:g} s"
            for method, run in suite.items()
        )
        yield "Table 2, figure 2: solved", f"XCount {share}", ours, "higher"
    for run in _with_method(runs, "methods", "xcount"):
        limit = f"{run.settings.limit_seconds:g} s"
        ours = f"`xcount`: {solved_share(run.records)} % of a sample of {len(run.records)}, {limit}"
        yield "the same, the paper's algorithm", f"XCount {share}", ours, "higher"
    for errors in accuracy.errors_of_all(runs):
        is_shown = (errors.method, errors.suite) in {("auto", "paper"), ("xcount", "methods")}
        if is_shown and errors.relative:
            near = statistics.fmean(error <= errors.epsilon for error in errors.relative)
            ours = f"`{errors.method}` ({errors.suite} suite): {100 * near:.1f} % within 10 %"
            yield "Figure 3: relative errors", "99 % within 10 %", ours, "same"
    if "auto" in suite:
        large = [r for r in suite["auto"].records if r["n_guards"] > HALF_GUARDS]
        theirs_there = f"less than half solved with more than {HALF_GUARDS} guards"
        yield "Figure 4: scalability", theirs_there, f"`auto` {_percent(large)}", "higher"
    ablated = {run.settings.method: run for run in common(runs.get("ablations", ()))}
    if set(paper.ABLATIONS) <= set(ablated):
        order = sorted(paper.ABLATIONS, key=lambda method: -paper.ABLATIONS[method][0])
        ours_order = sorted(order, key=lambda method: -_n_solved(ablated[method].records))
        words = (", ".join(f"`{m}`" for m in methods) for methods in (order, ours_order))
        yield ("Table 3, figure 5: ablations, most solved first", *words, "partly")
    for run in _with_method(runs, "gaps", "xcount"):
        for row in gaps.pace_table(run).splitlines()[2:3]:
            ours = f"`xcount` takes {row.split(' | ')[2]} times as long with gap 0.02 as with 20"
            yield "Figure 9: gaps", "small gaps are slower", ours, "same"


def _of_regularisation(lines: Sequence[Record]) -> Iterator[Sequence[str]]:
    first = [line for line in lines if line["seed"] == regularisation.SHOWN_SPLIT]
    for line in first:
        if line["labels"] == "paper":
            most = regularisation.largest_difference(line)
            text = f"with its labels, all within {most:.3f}"
            yield "Table 4: scores of 24 models", "120 scores", text, "close"
    right = [line for line in lines if line["labels"] == "right"]
    for measure, name in regularisation.MEASURES.items() if right else ():
        ratios = [
            statistics.median(regularisation.split_ratio(line, measure, alpha) for line in right)
            for alpha in regularisation.ALPHAS[1:]
        ]
        text = f"{name}: {', '.join(f'{ratio:.3f}' for ratio in ratios)} of those without"
        claim = "larger L1 penalties leave fewer regions"
        verdict = "confirmed" if measure == "regions" else "partly"
        yield "Figure 6: regularisation, alpha 1, 5, 10", claim, text, verdict


def _of_counts(folder: Path) -> Iterator[Sequence[str]]:
    """Return what is known of the counts themselves: theorem 1, published ones, verified ones."""
    path = folder / theorem.FILE
    if path.exists():
        found = json.loads(path.read_text())
        n_outside, n_all = theorem.outside(found)
        ours = f"{n_outside} of {n_all} estimates are further off than epsilon 0.1"
        yield "Theorem 1", "a tenth of the estimates, with delta 0.1", ours, "same"
        counts = [row["count"] for row in found["rows"]]
        n_same = sum(a == b for a, b in zip(counts, paper.PUBLISHED, strict=True))
        theirs = f"{len(counts)} counts with the authors' program"
        yield "no table: counts of their tests", theirs, f"{n_same} of {len(counts)} equal", "same"
    checked = read_lines(folder / verified.OUTPUT.name)
    if checked:
        done = [line for line in checked if line["seconds"] is not None]
        n_same = sum(line["same"] for line in done)
        ours = f"`exact` counts {len(checked)} of a sample; verified: {len(done)}, {n_same} equal"
        yield "no table: counts of the suite", "not published", ours, "confirmed"


def _with_method(runs: Runs, suite: str, method: str) -> list[Run]:
    return [run for run in runs.get(suite, ()) if run.settings.method == method]


def _n_solved(records: Sequence[Record]) -> int:
    return sum(map(is_solved, records))


def _percent(records: Sequence[Record]) -> str:
    return f"{100 * _n_solved(records) / len(records):.1f} % of {len(records)}" if records else "-"


def _guards(records: Sequence[Record]) -> tuple[str, str]:
    """Return the paper's numbers of instances and guards, and in how many sets ours are equal."""
    n_equal = 0
    for spec in SPECS:
        guards = [r["n_guards"] for r in records if r["dataset"] == spec.key]
        n_equal += bool(guards) and (min(guards), max(guards)) == spec.paper_guards
    theirs = f"{paper.N_INSTANCES} instances, fewest and most guards by data set"
    return (
        theirs,
        f"{len(records)} instances, the paper's guards in {n_equal} of {len(SPECS)} data sets",
    )
