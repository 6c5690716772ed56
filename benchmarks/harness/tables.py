"""Tables of a run, as Markdown.

PAR-2 is the paper's score: the mean of the instances' seconds, where one that was not solved
counts as twice the time limit. *Zero* counts the instances proved to have no sensitive region,
*open* is the mean of (high - low) / regions, in per cent.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.records import Run, RunSettings, Status

Record = Mapping[str, Any]
MIB = 1 << 20
ALL = "**all**"
TITLES = {key: spec.title for key, spec in BY_KEY.items()}

COLUMNS = (
    "instances",
    "exact",
    "within guarantee",
    "given up",
    "zero",
    "open %",
    "total s",
    "median s",
    "max s",
    "peak MiB",
    "PAR-2 s",
)


def summary_row(records: Sequence[Record], settings: RunSettings) -> list[str]:
    """Return one row of the summary, in the order of ``COLUMNS``."""
    by_status = [Status(record["status"]) for record in records]
    seconds = [float(record["seconds"]) for record in records]
    peak = max((int(record.get("peak_memory_bytes", 0)) for record in records), default=0)
    return [
        str(len(records)),
        str(by_status.count(Status.EXACT)),
        str(by_status.count(Status.GUARANTEE)),
        str(sum(not status.solved for status in by_status)),
        str(sum(record.get("high") == 0 for record in records)),
        f"{100 * statistics.fmean(map(open_share, records)):.2f}" if records else "-",
        f"{sum(seconds):.2f}",
        f"{statistics.median(seconds):.4f}" if seconds else "-",
        f"{max(seconds, default=0.0):.2f}",
        f"{peak / MIB:.0f}",
        f"{par2(records, settings):.3f}",
    ]


def par2(records: Sequence[Record], settings: RunSettings) -> float:
    """Return the penalised mean time."""
    times = [
        float(record["seconds"]) if is_solved(record) else 2 * settings.limit_seconds
        for record in records
    ]
    return statistics.fmean(times) if times else 0.0


def solved_share(records: Sequence[Record]) -> str:
    """Return the per cent that is solved, with Wilson's interval of 95 % for the sampled suite."""
    n = len(records)
    if not n:
        return "-"
    z, share = 1.96, sum(map(is_solved, records)) / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = (100 * max(0.0, middle - spread), 100 * min(1.0, middle + spread))
    return f"{100 * share:.0f} ({low:.0f} to {high:.0f})"


def is_solved(record: Record) -> bool:
    """Tell whether a record holds an answer with a guarantee."""
    return Status(record["status"]).solved


def open_share(record: Record) -> float:
    """Return the part of the input space that a record leaves undecided: high - low."""
    if "low" not in record:
        return 1.0
    return float((record["high"] - record["low"]) / record["n_regions"])


def grouped_table(
    run: Run, title: str, key: Callable[[Record], Any], names: Mapping[Any, str] | None = None
) -> str:
    """Return the summary of a run with one row for each value of ``key``, and the total."""
    groups = _groups(run.records, key, names) | {ALL: list(run.records)}
    rows = [[name, *summary_row(records, run.settings)] for name, records in groups.items()]
    return markdown([title, *COLUMNS], rows)


def without_zeros_table(
    runs: Sequence[Run],
    zeros: Container[str],
    title: str,
    trait: str,
    names: Mapping[Any, str] | None = None,
) -> str:
    """Return what is left of runs without the counts of zero, which bounds alone often prove.

    ``zeros`` holds the names of the instances whose count is 0; rows are by ``trait``.
    """
    rows = []
    for run in runs:
        groups = _groups(run.records, lambda record: record[trait], names)
        for name, records in (groups | {ALL: list(run.records)}).items():
            others = [record for record in records if record["name"] not in zeros]
            seconds = [float(record["seconds"]) for record in others]
            numbers = [len(records), len(records) - len(others), len(others)]
            numbers += [sum(map(is_solved, others))]
            score = f"{par2(others, run.settings):.3f}" if others else "-"
            median = f"{statistics.median(seconds):.4f}" if seconds else "-"
            limit = f"{run.settings.limit_seconds:g}"
            rows.append([name, f"`{run.settings.method}`", limit, *numbers, score, median])
    header = [title, "method", "limit s", "instances", "zero", "not zero"]
    return markdown([*header, "of these solved", "PAR-2 s", "median s"], rows)


def _groups(
    records: Iterable[Record], key: Callable[[Record], Any], names: Mapping[Any, str] | None
) -> dict[str, list[Record]]:
    """Return the records for each value of ``key``, by its name, in the order of the names."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    ordered = sorted(groups.items(), key=lambda item: _place(item[0], names))
    return {(names or {}).get(value, str(value)): found for value, found in ordered}


def _place(value: Any, names: Mapping[Any, str] | None) -> tuple[int, bool, Any]:
    """Return where a row belongs: in the order of the names, numbers upwards, words last."""
    order = list(names or {}).index(value) if names and value in names else 0
    return (order, isinstance(value, str), value)


def markdown(
    header: Sequence[str], rows: Iterable[Sequence[object]], are_numbers: bool = True
) -> str:
    """Return a table as Markdown; columns of numbers, all but the first, are aligned right."""
    lines = [header, ["---"] + ["--:" if are_numbers else "---"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def picture(path: Path, title: str) -> str:
    """Return the Markdown of a picture in the same folder."""
    return f"![{title}]({path.name})"


def joined(*parts: str) -> str:
    """Return the parts of a page that are not empty, as paragraphs."""
    return "\n\n".join(part for part in parts if part)


def replace_parts(page: Path, parts: Mapping[str, str]) -> None:
    """Put texts into the places of a page that are marked with their names."""

    def place(match: re.Match[str]) -> str:
        text = parts.get(match[1], match[2].strip("\n"))
        return f"<!-- begin {match[1]} -->\n\n{text}\n\n<!-- end {match[1]} -->"

    marked = r"<!-- begin (\w+) -->(.*?)<!-- end \1 -->"
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(marked, place, text, flags=re.DOTALL), encoding="utf-8")


def dataset_table(run: Run) -> str:
    """Return the summary of a run by data set."""
    return grouped_table(run, "data set", lambda record: record["dataset"], TITLES)


def method_table(runs: Sequence[Run]) -> str:
    """Return one row for each run: the paper's table of solved instances and PAR-2."""
    rows = [[run.settings.method, *summary_row(run.records, run.settings)] for run in runs]
    return markdown(["method", *COLUMNS], rows)


def limits_table(
    runs: Sequence[Run],
    zeros: Container[str],
    limits: Sequence[float] = (1, 5, 10, 60, 300, 1800),
) -> str:
    """Return what shorter limits would have solved and cost, judging by the recorded seconds.

    ``zeros`` holds the names of the instances whose count is 0.
    """
    rows = []
    for run in runs:
        for limit in limits:
            if limit > run.settings.limit_seconds:
                continue
            times = [float(record["seconds"]) for record in run.records]
            solved = [
                record["name"]
                for record, time in zip(run.records, times, strict=True)
                if is_solved(record) and time <= limit
            ]
            n_others = sum(name not in zeros for name in solved)
            percent = f"{100 * len(solved) / len(times):.2f}"
            total = f"{sum(min(time, limit) for time in times):.1f}"
            numbers = [str(len(solved)), str(n_others), percent, total]
            rows.append([run.settings.method, f"{limit:g}", *numbers])
    header = ["method", "limit s", "solved within it", "of these not 0", "%"]
    return markdown([*header, "seconds of all together"], rows)


def growth_tables(run: Run) -> str:
    """Return how solving and time depend on trees, depth, distance and number of features."""
    keys: dict[str, Callable[[Record], Any]] = {
        "trees": lambda record: record["n_trees"],
        "depth": lambda record: record["depth"],
        "distance": lambda record: record["distance"],
        "features": lambda record: len(record["sensitive"]),
    }
    tables = [grouped_table(run, title, key) for title, key in keys.items()]
    return "\n\n".join(tables)


def made_on(about: Mapping[str, Any]) -> str:
    """Return the machine, revision, date and load of a result in a few words."""
    machine = about["machine"]
    parts = [machine["processor"], f"{machine['cores']} cores", machine["system"]]
    made = f"{', '.join(parts)}; revision {about['revision']}; {about['date']}"
    load = f", load {about['load']:g} at the start" if "load" in about else ""
    placement = f"; {about['placement']}" if about.get("placement") else ""
    return f"{made}{load}{placement}."


def conditions(run: Run) -> str:
    """Return the conditions of a run in one paragraph."""
    settings, header = run.settings, run.header
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    mode = f"each in its own process, {settings.workers} at a time"
    kind = " of processor time" * settings.processor_time
    memory = f"{header['machine']['memory_bytes'] / (1 << 30):.0f} GiB"
    return (
        f"Suite `{settings.suite}`, method `{settings.method}`, "
        f"{settings.limit_seconds:g} s{kind} and {settings.memory_bytes / MIB:.0f} MiB "
        "an instance, "
        f"epsilon {settings.epsilon:g}, delta {settings.delta:g}, seed {settings.seed}; "
        f"{mode if settings.isolated else 'in one process'}, {settings.n_threads} thread(s) a "
        f"count. {versions}; {memory}, {made_on(header)}"
    )


def loads(runs: Sequence[Run]) -> str:
    """Say of several runs from which revision each is, which cores it had, and the load then."""
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[str(run.header["revision"]), _placement(run)].append(run)
    sentences = []
    for (revision, placement), members in groups.items():
        names = ", ".join(run.settings.method for run in members)
        load = [run.header["load"] for run in members if "load" in run.header]
        least_most = f"{min(load):g}" if len(set(load)) == 1 else f"{min(load):g} to {max(load):g}"
        text = f", load {least_most} at the start" if load else ""
        sentences.append(f"{names}: revision {revision}{text}{placement}.")
    return " ".join(sentences)


def _placement(run: Run) -> str:
    """Say which cores a run had to itself."""
    placement = run.header.get("placement")
    return f"; {placement}" if placement else ""


def unsolved_table(run: Run, limit: int = 20) -> str:
    """Return the instances that were given up, those with the largest models first."""
    records = [record for record in run.records if not is_solved(record)]
    records.sort(key=lambda record: (-record["n_guards"], record["name"]))
    rows = [
        [r["name"], r["status"], r.get("message") or r.get("stop_reason") or "", _bounds(r)]
        for r in records[:limit]
    ]
    return markdown(["given up", "status", "reason", "share, low..high"], rows) if rows else ""


def _bounds(record: Record) -> str:
    if "low" not in record:
        return ""
    regions = record["n_regions"]
    return f"{record['low'] / regions:.3g}..{record['high'] / regions:.3g}"
