"""``xcount audit``: every feature, ranked and judged, with a report."""

from __future__ import annotations

from typing import Any

import click

from xcount.cli import batch, parameters
from xcount.runs.audit import AuditOptions, AuditResult, audit


@click.command(
    "audit",
    cls=parameters.OneValueCommand,
    short_help="Rank all features, give a verdict, write a report.",
    epilog=parameters.examples(
        "xcount audit model.json --gap 2 --html report.html",
        "xcount audit model.json --sensitive sex --sensitive age --gap 1 --max-share age=2%",
        "xcount audit model.json --flip --max-share 5%",
        "xcount audit model.json --flip --judge population --data people.csv --max-share sex=1%",
        "xcount audit model.json --sensitive sex --journal audit.jsonl --resume",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(AuditOptions)
@batch.report_options
@batch.rows_option
@parameters.progress_option
@batch.markdown_option
def command(
    model: str,
    as_json: bool,
    progress: str,
    html: str | None,
    csv: str | None,
    plot: str | None,
    rows_out: str | None,
    markdown: str | None,
    **options: Any,
) -> int:
    """Count for every used feature of MODEL (or --sensitive group), gap and distance.

    The features are ranked by the mean of their shares under the --judge measure. Each count stops
    after --timeout (60s by default) with the bounds found so far. With --journal, an audit that is
    stopped or killed keeps every finished count, and --resume continues it.
    """
    from xcount.cli.progress import ProgressLine, stoppable

    paths = {"html": html, "csv": csv, "markdown": markdown, "plot": plot}
    batch.check_rows_out(rows_out, options)
    batch.check_outputs({**paths, "rows_out": rows_out}, as_json, options["journal"])
    with stoppable(), ProgressLine(progress) as line:
        result = audit(model, on_progress=line.show_batch, **parameters.given(options))
        parts = result.affected_parts()
        notes = [] if rows_out is None else [batch.write_rows(parts, rows_out)]
    batch.write_outputs(outputs_of(result), paths, as_json, notes)
    batch.name_resume(result, options["journal"])
    return result.exit_status


def outputs_of(result: AuditResult) -> batch.Outputs:
    """Return the ways to render an audit."""
    from xcount.report.batch_text import audit_tables

    return batch.Outputs(
        to_dict=result.to_dict,
        tables=lambda: audit_tables(result),
        plot=result.plot,
        texts={"html": result.to_html, "csv": result.to_csv, "markdown": result.to_markdown},
    )
