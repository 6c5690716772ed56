"""The verified counter on the paper's suite: the same counts as ``exact``, and at what price.

    python -m benchmarks.verified [--limit-seconds 60] [--budget 10m] [--only KEYS]
        [--data FOLDER] [--cache FOLDER] [--output FILE] [--page FILE]

Instances of the suite in an order whose every beginning is a stratified sample, until the budget is
spent. ``exact`` counts each, with one thread, and the verified counter (the native program: ``make
verified``) what ``exact`` counted, both within the limit. Seconds are the processor's, without
reading the model; those of ``exact`` include writing the question's file. A different count
ends the program with status 1.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import xcount
from benchmarks.harness import processes
from benchmarks.harness.instances import Instance, Sources, paper_instances, stratified_order
from benchmarks.harness.options import budget_seconds, parser_of
from benchmarks.harness.tables import TITLES, markdown, replace_parts
from xcount.verified.counter import NATIVE

OUTPUT = Path("benchmarks/results/verified.jsonl")
SLOW_SECONDS = 0.02
"""Below, ratios say nothing."""
MEGABYTES = 4096


@dataclass(frozen=True, slots=True)
class Verified:
    """One instance that ``exact`` counted; ``seconds`` is None if the verified counter gave up."""

    name: str
    dataset: str
    exact_seconds: float
    seconds: float | None
    same: bool | None


def verify(instance: Instance, limit_seconds: float) -> Verified | None:
    """Count an instance twice; None if ``exact`` does not finish."""
    model = xcount.load(instance.model)
    with tempfile.TemporaryDirectory() as folder:
        question = Path(folder) / "question"
        began = time.process_time()
        asked = {**instance.question(), "method": "exact", "timeout": limit_seconds, "jobs": 1}
        result = xcount.count(model, question=str(question), **asked)
        spent = time.process_time() - began
        if not result.exact:
            return None
        limits = ["-seconds", f"{limit_seconds:g}", "-megabytes", str(MEGABYTES)]
        command = [str(NATIVE), *limits, str(question)]
        found = processes.run(command, kill_seconds=2 * limit_seconds + 10)
    if found.status != 0:
        return Verified(instance.name, instance.dataset, spent, None, None)
    same = int(found.output) == result.count
    return Verified(instance.name, instance.dataset, spent, found.cpu_seconds, same)


def summary(found: Sequence[Verified], limit_seconds: float) -> str:
    """Return the table of what was verified, by data set, and the names of what was not."""
    sets = list(dict.fromkeys(each.dataset for each in found))
    groups = [(TITLES.get(s, s), [each for each in found if each.dataset == s]) for s in sets]
    rows = [_row(title, group) for title, group in [*groups, ("all", list(found))]]
    heads = [
        "data set",
        "counted by exact",
        f"verified in {limit_seconds:g} s",
        "different",
        "median seconds: exact",
        "verified",
        f"median ratio, exact over {SLOW_SECONDS:g} s",
        "largest ratio",
    ]
    table = markdown(heads, rows)
    names = ", ".join(f"`{each.name}`" for each in found if each.seconds is None)
    return f"{table}\n\nNot verified in time: {names or 'none'}."


def _row(title: str, group: Sequence[Verified]) -> tuple[str, ...]:
    """Return the row of one data set."""
    done = [(each, each.seconds) for each in group if each.seconds is not None]
    slow = [s / each.exact_seconds for each, s in done if each.exact_seconds > SLOW_SECONDS]
    return (
        title,
        f"{len(group)}",
        f"{len(done)} ({len(done) / len(group):.1%})",
        f"{sum(not each.same for each, _ in done)}",
        f"{statistics.median(each.exact_seconds for each in group):.3f}",
        f"{statistics.median(s for _, s in done):.3f}" if done else "-",
        f"{statistics.median(slow):.1f}" if slow else "-",
        f"{max(slow):.1f}" if slow else "-",
    )


def surroundings_of(n_asked: int, n_all: int) -> str:
    """Return what the table is about, in a sentence."""
    which = f"{n_asked:,} of the {n_all:,} instances of the paper's suite, a stratified sample"
    return (
        f"{which if n_asked < n_all else f'All {n_all:,} instances of the paper suite'} (10 to "
        "100 trees of depth 3 to 6, distance 1, precision 3), one thread, processor seconds. Those "
        "of `exact` include laying out the question and writing its file."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.verified", __doc__, OUTPUT, limit_seconds=60.0)
    parser.add_argument("--page", type=Path, help="a page with a place for the table")
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    parser.add_argument("--budget", type=budget_seconds, default=600.0, help="such as 10m")
    options = parser.parse_args(arguments)
    every = paper_instances(Sources.of(options, options.only))
    end = time.monotonic() + options.budget
    found: list[Verified] = []
    n_asked = 0
    for instance in stratified_order(every):
        if time.monotonic() > end:
            break
        n_asked += 1
        each = verify(instance, options.limit_seconds)
        if each is not None:
            found.append(each)
            print(each, flush=True)
    lines = [json.dumps(asdict(each)) + "\n" for each in found]
    options.output.write_text("".join(lines))
    text = summary(found, options.limit_seconds)
    print(text)
    if options.page is not None:
        replace_parts(
            options.page, {"verified": f"{surroundings_of(n_asked, len(every))}\n\n{text}"}
        )
    return int(any(each.same is False for each in found))


if __name__ == "__main__":
    sys.exit(main())
