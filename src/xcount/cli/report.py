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
    from xcount.cli import audit, compare
    from xcount.runs.audit import AuditResult
    from xcount.runs.compare import CompareResult
    from xcount.runs.journal_lines import RunLine, read_lines

    lines = read_lines(journal)
    commands = {line.command for line in lines if isinstance(line, RunLine)}
    paths = {"html": html, "csv": csv, "markdown": markdown, "plot": plot}
    batch.check_outputs(paths, as_json, journal)
    if "compare" in commands:
        if markdown is not None:
            raise click.UsageError("--markdown is for audits; a comparison has --html and --csv")
        comparison = CompareResult.from_lines(lines, journal)
        batch.write_outputs(compare.outputs_of(comparison), paths, as_json)
        return comparison.exit_status
    result = AuditResult.from_lines(lines, journal)
    batch.write_outputs(audit.outputs_of(result), paths, as_json)
    return result.exit_status
