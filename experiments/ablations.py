"""The paper's ablations on Adult: what each of its ideas is worth, and what ours add.

Every used feature of the 40 Adult models is asked about (509 instances in the paper); the slow
methods need a sample and a short limit. Two thirds of the counts are 0, which some methods see at
once; so a sample has one with a count for each without, as far as they are known.

    python -m experiments.ablations --sample 40 --limit-seconds 10 --jobs 1
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.harness.datasets import BY_KEY, PROJECT
from benchmarks.harness.instances import Instance, alternating_order, paper_instances
from benchmarks.harness.options import suite_parser
from benchmarks.harness.records import Run, Status, read_run
from benchmarks.harness.tables import conditions, is_solved, loads, markdown, par2
from experiments.methods import comparison, run_methods, zero_names

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
PAPER = {
    "add-baseline-plain": (68, "3122.31"),
    "xcount-sum-first": (197, "2275.374"),
    "xcount-exact-union": (289, "1635.355"),
    "subproblems-cnf": (33, "3408.22"),
    "xcount": (345, "1304.486"),
}
PAPER_INSTANCES = 509
DATASET = "adult"


def suite(options: Namespace) -> list[Instance]:
    return paper_instances([DATASET], options.cache, options.data, all_features=True)


def ordered(instances: Sequence[Instance]) -> list[Instance]:
    """Return the instances in turns: one with a count, one without, going by the gap sweep."""
    path = PROJECT / "benchmarks" / "results" / "gaps-auto.jsonl.gz"
    known = read_run(path).records if path.exists() else ()
    suffix = f"-g{BY_KEY[DATASET].gap}"
    zeros = {
        record["name"].removesuffix(suffix)
        for record in known
        if record["name"].endswith(suffix) and record.get("high") == 0
    }
    return alternating_order(instances, zeros)


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
        solved, score = PAPER.get(method, (None, "-"))
        paper = "-" if solved is None else f"{solved} ({100 * solved / PAPER_INSTANCES:.0f}%)"
        limit = f"{run.settings.limit_seconds:g}"
        here = f"{n_solved} of {len(run.records)} ({percent:.0f}%)"
        others = [record for record in run.records if record["name"] not in zeros]
        rest = f"{sum(map(is_solved, others))} of {len(others)}"
        kinds = f"{n_exact} / {n_solved - n_exact}"
        scores = [
            f"{par2(records, run.settings):.3f}" if records else "-"
            for records in (run.records, others)
        ]
        rows.append([f"`{method}`", label, here, kinds, rest, limit, *scores, paper, score])
    header = ["method", "what it is", "solved", "exact / estimated", "solved where not 0"]
    header += ["limit s", "PAR-2 s", "PAR-2 s where not 0", "paper: solved", "PAR-2 s"]
    return markdown(header, rows)


def report(runs: Sequence[Run]) -> str:
    """Return the ablations as Markdown."""
    _, contradictions = comparison(runs)
    found = "\n".join(f"- {line}" for line in contradictions)
    agreement = found or "No two exact counts differ, and no interval misses an exact count."
    return "\n\n".join([conditions(runs[0]), loads(runs), ablation_table(runs), agreement])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("ablations", __doc__, limit_seconds=10, isolated=True)
    parser.add_argument("--methods", nargs="+", default=list(LABELS), metavar="METHOD")
    parser.set_defaults(sample=40)
    return run_methods(parser.parse_args(arguments), suite, report, ordered)


if __name__ == "__main__":
    sys.exit(main())
