"""The paper's ablations on Adult: what each of its ideas is worth, and what ours add."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.records import Run, Runs, Status
from benchmarks.harness.tables import (
    conditions,
    is_solved,
    joined,
    loads,
    markdown,
    par2,
    picture,
)
from experiments import paper, plots
from experiments.methods import common, comparison, in_order, zero_names

LABELS = {
    "add-baseline-plain": "Opt 1 as printed: the whole ensemble as one ADD",
    "add-baseline": "Opt 1, leaving out what no region reaches",
    "xcount-sum-first": "Opt 1+3: subproblems, sums before differences",
    "xcount-exact-union": "Opt 1+2: subproblems, union counted exactly",
    "subproblems-cnf": "Subp + CNF: subproblems counted by Ganak",
    "xcount": "XCount: all of the paper's ideas",
    "exact": "ours, exact",
    "auto": "ours, exact where cheap, sampled where not",
}


def ablation_table(runs: Sequence[Run]) -> str:
    """Return one row for each configuration, beside the paper's numbers."""
    by_method = {run.settings.method: run for run in runs}
    zeros = zero_names(runs)
    rows = []
    for method, label in LABELS.items():
        if method not in by_method:
            continue
        run = by_method[method]
        n_exact = sum(record["status"] == Status.EXACT for record in run.records)
        n_solved = sum(map(is_solved, run.records))
        percent = 100 * n_solved / len(run.records) if run.records else 0.0
        solved, score = paper.ABLATIONS.get(method, (None, "-"))
        theirs = "-" if solved is None else f"{solved} ({100 * solved / paper.N_ABLATED:.0f}%)"
        limit = f"{run.settings.limit_seconds:g}"
        here = f"{n_solved} of {len(run.records)} ({percent:.0f}%)"
        others = [record for record in run.records if record["name"] not in zeros]
        rest = f"{sum(map(is_solved, others))} of {len(others)}"
        kinds = f"{n_exact} / {n_solved - n_exact}"
        scores = [
            f"{par2(records, run.settings):.3f}" if records else "-"
            for records in (run.records, others)
        ]
        rows.append([f"`{method}`", label, here, kinds, rest, limit, *scores, theirs, score])
    header = ["method", "what it is", "solved", "exact / estimated", "solved where not 0"]
    header += ["limit s", "PAR-2 s", "PAR-2 s where not 0", "paper: solved", "PAR-2 s"]
    return markdown(header, rows)


def section(runs: Runs, folder: Path) -> str:
    """Return the ablations on what all were asked, and what contradicts what."""
    ordered = common(in_order(runs["ablations"], tuple(LABELS)))
    _, contradictions = comparison(ordered)
    found = "\n".join(f"- {line}" for line in contradictions)
    path = folder / "ablations-cactus.svg"
    shares = {name: solved / paper.N_ABLATED for name, (solved, _) in paper.ABLATIONS.items()}
    plots.cactus(ordered, path, "Ablations on Adult", shares)
    return joined(
        conditions(ordered[0]),
        loads(ordered),
        ablation_table(ordered),
        found or "No two exact counts differ, and no interval misses an exact count.",
        picture(path, "ablations on Adult"),
    )
