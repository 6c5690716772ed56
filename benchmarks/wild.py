"""Ask questions about models as people really have them, 10 s each.

Usual gaps, rare gaps and flips; distances 1 and any; one to five sensitive features. Every question
is a command of its own, as a user would type it, with a limit of time and of memory:

    python -m benchmarks.wild [--before OTHER/src] [--only adult] [--sample 42]
    python -m benchmarks.wild --restart --output benchmarks/results/wild_all.jsonl

``OTHER/src`` is the ``src`` folder of another checkout with its native core built into it; both
states are asked in turns. A run continues where it ended; ``--table`` only prints what is there.
``--sample`` takes so many of the 102 questions, evenly from every change, distance and model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import processes
from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.options import memory_size, parser_of
from benchmarks.harness.records import RUNS, RecordFile, Run, Runs, RunSettings, read_run
from benchmarks.harness.tables import joined, made_on, markdown
from benchmarks.wild_models import WILD_MODELS, model_file, notes_file

CHANGES = ("usual", "rare", "flip")
DISTANCES = ("1", "any")
SIZES = (1, 2, 3, 5)
FILE, FILE_OF_ALL = "wild.jsonl", "wild_all.jsonl"
"""Two states on a sample, and this one on all questions."""
GRACE_SECONDS = 6
"""How long after its limit a command is killed."""


@dataclass(frozen=True, slots=True)
class Question:
    """One command of the suite."""

    name: str
    model: str
    n_regions: str
    change: str
    distance: str
    n_sensitive: int
    words: tuple[str, ...]


def questions(options: argparse.Namespace) -> Iterator[Question]:
    """Yield the questions; the number of features rotates over the changes and distances."""
    for place, model in enumerate(WILD_MODELS):
        if options.only and model.dataset not in options.only:
            continue
        path = model_file(model, options.cache, options.data)
        notes = json.loads(notes_file(path).read_text())
        for turn, change in enumerate(CHANGES):
            for shift, distance in enumerate(DISTANCES):
                size = SIZES[(place + turn + 2 * shift) % len(SIZES)]
                features = ",".join(f"f{f}" for f in notes["order"][:size])
                name = f"{model.name}-{change}-{distance}-{size}"
                asked = _change_words(change, notes, size)
                words = (str(path), "--sensitive", features, "--distance", distance, *asked)
                yield Question(name, model.name, notes["n_regions"], change, distance, size, words)


def sample(asked: Sequence[Question], size: int | None) -> list[Question]:
    """Return some questions: as many of each change and distance, spread over the models."""
    if size is None or size >= len(asked):
        return list(asked)
    strata: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in asked:
        strata[question.change, question.distance].append(question)
    chosen = set()
    for number, each in enumerate(strata.values()):
        n = size // len(strata) + (number < size % len(strata))
        # A stratum starts behind the last one's first model, so that all models have their turn.
        chosen |= {each[(number + i * len(each) // max(1, n)) % len(each)].name for i in range(n)}
    return [question for question in asked if question.name in chosen]


def _change_words(change: str, notes: Mapping[str, Any], size: int) -> tuple[str, ...]:
    if change == "flip":
        return ("--flip", *(("--cutoff", notes["cutoff"]) if notes["cutoff"] else ()))
    of_class = ("--class", "0") if notes["has_classes"] else ()
    return ("--gap", notes["gaps"][str(size)][change], *of_class)


def ask(question: Question, source: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Ask one state of the package; return what it said, and what that took."""
    limits = ("--timeout", f"{options.limit_seconds:g}", "--memory", options.memory)
    command = [sys.executable, "-m", "xcount", "count", *question.words, *limits, "--json"]
    environment = {"PYTHONPATH": str(source)}
    done = processes.run(command, options.limit_seconds + GRACE_SECONDS, environment=environment)
    found: dict[str, Any] = {"wall_seconds": round(done.wall_seconds, 3)}
    if not done.output or done.status < 0:
        errors = done.errors.strip().splitlines() or ["no output"]
        return found | {"error": "killed" if done.status < 0 else errors[-1]}
    result = json.loads(done.output)
    n_regions = max(1, int(result["n_regions"]))
    return found | {
        "exact": result["exact"],
        "stop_reason": result["stop_reason"],
        "low": int(result["low"]) / n_regions,
        "high": int(result["high"]) / n_regions,
        "memory_bytes": result["peak_memory_bytes"],
    }


def kind_of(found: Mapping[str, Any]) -> str:
    """Return what an answer is worth."""
    if "error" in found:
        return "error"
    if found["exact"]:
        return "exact"
    if found["stop_reason"] in ("complete", "decided"):
        return "within epsilon"
    width = found["high"] - found["low"]
    if width >= 0.99:
        return "nothing"
    return "at most" if found["low"] <= 0.01 * found["high"] else "bounds"


KINDS = ("exact", "within epsilon", "bounds", "at most", "nothing", "error")


def table(records: Sequence[Mapping[str, Any]], limit_seconds: float) -> str:
    """Return how the questions ended, by their change and distance, as Markdown."""
    rows = []
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        for state in ("before", "now"):
            if state in record:
                groups[state, record["change"], record["distance"]].append(record[state])
                groups[state, "all", "all"].append(record[state])
    for (state, change, distance), found in sorted(groups.items()):
        ends = [kind_of(each) for each in found]
        seconds = [each["wall_seconds"] for each in found]
        late = sum(s > limit_seconds * 1.1 + 0.5 for s in seconds)
        numbers = [str(ends.count(kind)) for kind in KINDS]
        numbers[0] += f" ({sum(bool(each.get('exact')) and each['high'] == 0 for each in found)})"
        middle = f"{statistics.median(seconds):.2f}"
        rows.append([state, change, distance, len(found), *numbers, middle, late])
    header = ["state", "change", "distance", "questions", "exact (zeros)", *KINDS[1:]]
    return markdown([*header, "median s", "late"], rows)


def contradictions(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the questions whose two answers exclude each other."""
    found = []
    for record in records:
        sides = [record[s] for s in ("before", "now") if "low" in record.get(s, {})]
        if len(sides) == 2 and max(s["low"] for s in sides) > min(s["high"] for s in sides):
            found.append(record["name"])
    return found


def report(run: Run) -> str:
    """Return the table, the machine it was made on, and contradictions."""
    limit, memory = run.settings.limit_seconds, run.settings.memory_bytes >> 20
    wrong = contradictions(run.records)
    return joined(
        table(run.records, limit),
        f"{len(run.records)} questions, {limit:g} s and {memory} MiB each; {made_on(run.header)} "
        "*Late* ended more than 10 % + 0.5 s after the limit. Answers of the two states that "
        f"exclude each other: {', '.join(wrong) or 'none'}.",
    )


def section(runs: Runs, folder: Path) -> str:
    """Return an earlier state beside a later one."""
    return report(read_run(folder / FILE))


def section_of_all(runs: Runs, folder: Path) -> str:
    """Return all questions, put to one state."""
    return report(read_run(folder / FILE_OF_ALL))


def _run(options: argparse.Namespace) -> None:
    memory_bytes = memory_size(options.memory)
    settings = RunSettings("wild", limit_seconds=options.limit_seconds, memory_bytes=memory_bytes)
    file = RecordFile(options.output, settings, options.restart)
    states = {"now": PROJECT / "src"}
    if options.before:
        states["before"] = options.before
    for number, question in enumerate(sample(list(questions(options)), options.sample)):
        if question.name in file.done:
            continue
        order = sorted(states, reverse=bool(number % 2))
        answers = {state: ask(question, states[state], options) for state in order}
        data = asdict(question)
        del data["words"]  # a path of this machine
        file.add({**data, **answers})
        said = ", ".join(f"{s}: {kind_of(a)} {a['wall_seconds']:.1f} s" for s, a in answers.items())
        print(f"{question.name}: {said}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.wild", __doc__, RUNS / FILE, limit_seconds=10.0)
    parser.add_argument("--before", type=Path, help="src of another checkout")
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--restart", action="store_true", help="forget what the file holds")
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of the questions")
    options = parser.parse_args(arguments)
    if not options.table:
        _run(options)
    print(report(read_run(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
