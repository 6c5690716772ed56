"""Runs the frontier suite: 200 to 1000 trees of depth 6 to 8 on Adult, Covtype and Higgs.

Distances 1, 3 and any; one to three sensitive features; 10 s an instance. The summary tells how
time grows with trees, depth, distance and number of features.

    python -m experiments.frontier --method exact
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from benchmarks.harness.instances import Instance, frontier_instances
from benchmarks.harness.options import run_command, suite_parser


def instances(options: Namespace) -> list[Instance]:
    return frontier_instances(options.only, options.cache, options.data)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("frontier", __doc__, limit_seconds=10, isolated=True)
    return run_command(parser.parse_args(arguments), instances)


if __name__ == "__main__":
    sys.exit(main())
