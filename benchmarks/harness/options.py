"""What command lines of benchmarks and experiments have in common."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta
from pathlib import Path

SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
TIMES = {"s": 1, "m": 60, "h": 3600}
STOPPED = 130
"""The exit status of a command that Ctrl-C has ended."""


def parser_of(
    module: str,
    description: str | None,
    output: Path | None = None,
    limit_seconds: float | None = None,
) -> argparse.ArgumentParser:
    """Return a parser with the options that nearly every command has."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    if output is not None:
        parser.add_argument("--output", type=Path, default=output, help=f"default: {output}")
    if limit_seconds is not None:
        parser.add_argument("--limit-seconds", type=float, default=limit_seconds, metavar="S")
    return parser


def memory_size(text: str) -> int:
    """Return a number of bytes, given like ``4G``, ``500MB`` or ``1048576``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)i?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 4G, 500M or 1048576")
    return int(float(match[1]) * SIZES[match[2]])


def budget_seconds(text: str) -> float:
    """Return a number of seconds, given like ``10m``, ``90s`` or ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 10m, 90s or 2h")
    return float(match[1]) * TIMES[match[2]]


def seconds_until(text: str, now: datetime | None = None) -> float:
    """Return the seconds until the clock next shows a time, given like ``14:30``."""
    now = now or datetime.now()
    try:
        clock = datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time of day; write 14:30") from None
    end = datetime.combine(now.date(), clock)
    return (end - now if end > now else end + timedelta(days=1) - now).total_seconds()
