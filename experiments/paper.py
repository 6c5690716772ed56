"""Runs the paper's suite: ten data sets, 10..100 trees of depth 3..6, 8 features of each model.

Distance 1, gap 2 (0.05 for Higgs and Supersymmetry), leaves rounded to 3 decimals. Writes JSON
lines as it goes, goes on where it was stopped, prints a summary at the end.

    python -m experiments.paper --method exact
    python -m experiments.paper --method cnf-ganak --isolated --sample 100 --limit-seconds 60
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.harness.instances import Instance, paper_instances
from benchmarks.harness.options import run_command, suite_parser


def instances(options: Namespace) -> list[Instance]:
    return paper_instances(
        options.only, options.cache, options.data, options.all_features, options.gap
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("paper", __doc__, limit_seconds=1800, isolated=False)
    parser.add_argument(
        "--all-features", action="store_true", help="every used feature instead of 8 (ablations)"
    )
    parser.add_argument("--gap", help="a gap instead of the paper's 2 or 0.05 (gap sweep)")
    return run_command(parser.parse_args(arguments), instances)


if __name__ == "__main__":
    sys.exit(main())
