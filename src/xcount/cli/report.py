"""``xcount report``: render a journal again, without counting."""

from __future__ import annotations

import click

from xcount.cli import batch, parameters


@click.command(
    "report",
    cls=parameters.OneValueCommand,
    short_help="Render a journal again, without counting.",
    epilog=parameters.examples("xcount report results.jsonl --html report.html"),
)
@click.argument("journal", metavar="JOURNAL")
@batch.report_options
@batch.markdown_option
def command(
    journal: str,
    as_json: bool,
    html: str | None,
    csv: str | None,
    plot: str | None,
    markdown: str | None,
) -> int:
    """Render the JOURNAL of an audit or a comparison, finished or not."""
    from xcount.runs.journal_lines import RunLine, last_run, read_lines

    paths = {"html": html, "csv": csv, "markdown": markdown, "plot": plot}
    batch.check_outputs(paths, as_json, journal)
    lines = read_lines(journal)
    commands = {line.command for line in lines if isinstance(line, RunLine)}
    kept = last_run(lines, journal, "compare" if "compare" in commands else "audit")
    return batch.write_kept(kept, paths, as_json)
