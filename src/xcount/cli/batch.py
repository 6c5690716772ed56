"""Output of results, shared by audit, compare and report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from xcount.cli import parameters

if TYPE_CHECKING:
    from rich.console import RenderableType

    from xcount.answers.result import CountResult
    from xcount.runs.audit import AuditResult
    from xcount.runs.compare import CompareResult
    from xcount.runs.journal_lines import KeptRun

LEAST_ROWS_SECONDS = 2.0
"""Least time for what rows could get, even if the count has used up its limit."""

report_options = parameters.together(
    click.option("--html", metavar="FILE", help="Write a self-contained HTML report."),
    click.option("--csv", metavar="FILE", help="Write the counts as CSV; '-' prints them."),
    click.option("--plot", metavar="FILE", help="Write a plot: a .png, .svg or .pdf file."),
    parameters.json_option,
)

markdown_option = click.option(
    "--markdown",
    metavar="FILE",
    help="Write a section for a model card (Markdown); '-' prints it.",
)


rows_option = click.option(
    "--rows-out",
    metavar="FILE",
    help="Write the sensitive rows of --data to a .csv or .parquet file: what each gets, the best "
    "and the worst it could get, and by which change.",
)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The ways to render a result, each made only when it is asked for."""

    to_dict: Callable[[], Mapping[str, Any]]
    tables: Callable[[], list[RenderableType]]
    plot: Callable[[str], Any]
    texts: Mapping[str, Callable[[], str]]


def check_outputs(
    paths: Mapping[str, str | None], as_json: bool, journal: str | None = None
) -> None:
    """Reject outputs that cannot be written or printed, before anything is counted.

    Files that the command reads must not be overwritten, either.
    """
    from xcount.support.files import check_writable

    if list(paths.values()).count("-") + as_json > 1:
        raise click.UsageError("standard output can hold only one of --json and the outputs to '-'")
    files = [path for path in (*paths.values(), journal) if path is not None and path != "-"]
    if twice := [path for path in files if sum(map(_same_file(path), files)) > 1]:
        raise click.UsageError(f"{twice[0]} is named for two outputs; give each a file of its own")
    inputs = _inputs()
    if lost := [path for path in files if any(map(_same_file(path), inputs))]:
        raise click.UsageError(f"{lost[0]} is an input of this command; write to another file")
    for name, path in paths.items():
        if path is None or (path == "-" and name != "plot"):
            continue
        if name == "plot":
            from xcount.report.plots import check_plot

            check_plot(path)
        if name == "rows_out":
            from xcount.report.rows_file import check_rows_file

            check_rows_file(path)
        check_writable(path)


def check_rows_out(path: str | None, options: Mapping[str, Any]) -> None:
    """Reject a file of affected rows if no rows are counted."""
    if path is None:
        return
    if path == "-":
        raise click.UsageError("--rows-out needs a file: standard output is for the answer")
    if options["data"] is None:
        raise click.UsageError("--rows-out writes rows of a table; give --data FILE")
    from xcount.measures.measured import measures_meant

    names = ("measures", "judge", "data", "bounds", "population")
    measures = measures_meant(*(options[name] for name in names))
    if "rows" not in {*",".join(measures).split(","), options["judge"]}:
        raise click.UsageError("--rows-out needs the rows to be counted; add --measure rows")


def _inputs() -> list[str]:
    """Return the files that the command reads; not devices and pipes, which may be outputs, too."""
    given = click.get_current_context().params
    named = [
        given.get(name) for name in ("model", "first", "second", "data", "domain", "population")
    ]
    several = (*given.get("models", ()), *given.get("journals", ()))
    files = [path for path in (*named, *several) if path is not None]
    return [path for path in files if os.path.isfile(path) or not os.path.exists(path)]


def _same_file(path: str) -> Callable[[str], bool]:
    """Return a test for paths that lead to the same file, also by links."""
    place = os.path.realpath(path)

    def is_same(other: str) -> bool:
        if os.path.exists(path) and os.path.exists(other):
            return os.path.samefile(path, other)
        return os.path.realpath(other) == place

    return is_same


def write_outputs(
    outputs: Outputs, paths: Mapping[str, str | None], as_json: bool, notes: Sequence[str] = ()
) -> None:
    """Write the requested files; print JSON, a text requested with ``-``, or tables and notes."""
    from xcount.cli.output import print_json, print_tables, print_text
    from xcount.cli.progress import stoppable
    from xcount.support.files import write_atomically

    printed = [name for name, path in paths.items() if path == "-"]
    with stoppable():
        for name, path in paths.items():
            if path is None or path == "-":
                continue
            if name == "plot":
                outputs.plot(path)
            else:
                write_atomically(path, outputs.texts[name]())
    if as_json:
        print_json(outputs.to_dict())
    elif printed:
        print_text(outputs.texts[printed[0]]())
    else:
        print_tables(*outputs.tables(), *written(paths.values()), *notes)


def write_kept(kept: KeptRun, paths: Mapping[str, str | None], as_json: bool) -> int:
    """Write the outputs of a run that journals hold; return its exit status."""
    from xcount.cli import audit, compare
    from xcount.runs.audit import AuditResult
    from xcount.runs.compare import CompareResult

    if kept.header["command"] == "compare":
        if paths["markdown"] is not None:
            raise click.UsageError("--markdown is for audits; a comparison has --html and --csv")
        comparison = CompareResult.from_run(kept)
        write_outputs(compare.outputs_of(comparison), paths, as_json)
        return comparison.exit_status
    result = AuditResult.from_run(kept)
    write_outputs(audit.outputs_of(result), paths, as_json)
    return result.exit_status


def written(paths: Iterable[str | None]) -> list[str]:
    """Return a line for each file that was written."""
    from xcount.report.terminal import escaped

    return [f"Wrote {escaped(path)}" for path in paths if path is not None and path != "-"]


def write_rows(parts: Iterable[tuple[Mapping[str, str], CountResult]], path: str) -> str:
    """Write the sensitive rows of counts; return what the file holds and lacks.

    Each count comes with columns that say what it is about.
    """
    from xcount.answers.result import affected_table
    from xcount.report import rows_file
    from xcount.report.terminal import escaped

    table = affected_table(parts, LEAST_ROWS_SECONDS)
    rows_file.write_rows(table, path)
    return f"Wrote {escaped(path)}: {escaped(table.said)}"


def name_resume(result: AuditResult | CompareResult, journal: str | None) -> None:
    """Say how to continue a run that was interrupted."""
    from xcount.cli.output import print_error
    from xcount.counters.tally import StopReason

    if not any(each.stop_reason is StopReason.INTERRUPTED for each in result.results):
        return
    if journal is None:
        print_error(
            "interrupted; with --journal FILE, finished counts are kept, and --resume continues"
        )
    else:
        print_error(f"interrupted; run the same command with --resume to continue from {journal}")
