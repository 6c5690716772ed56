"""``xcount compare``: several models, the same questions, one grid."""

from __future__ import annotations

from typing import Any

import click

from xcount.cli import batch, parameters
from xcount.runs.compare import CompareOptions, CompareResult, compare


@click.command(
    "compare",
    cls=parameters.OneValueCommand,
    short_help="Compare models on a shared grid.",
    epilog=parameters.examples(
        "xcount compare old.json new.json --sensitive age --html comparison.html",
        "xcount compare old.json new.json --sensitive sex --gap 0.5 --max-ratio 1",
        "xcount compare old.json new.json --sensitive age --gap 1 --distance 1,any",
        "xcount compare old.json new.json --flip --judge rows --data people.csv --max-ratio 1",
    ),
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@parameters.declared(CompareOptions)
@batch.report_options
@batch.rows_option
@parameters.progress_option
def command(
    models: tuple[str, ...],
    as_json: bool,
    progress: str,
    html: str | None,
    csv: str | None,
    plot: str | None,
    rows_out: str | None,
    **options: Any,
) -> int:
    """Ask every MODEL the same questions, on one grid of all their thresholds.

    The first model is the baseline: C/C0 is a model's count divided by the baseline's. Measures
    weigh all models by the same rows, bounds or population.
    """
    from xcount.cli.progress import ProgressLine, stoppable

    paths = {"html": html, "csv": csv, "plot": plot}
    batch.check_rows_out(rows_out, options)
    batch.check_outputs({**paths, "rows_out": rows_out}, as_json, options["journal"])
    with stoppable(), ProgressLine(progress) as line:
        result = compare(models, on_progress=line.show_batch, **parameters.given(options))
        parts = result.affected_parts()
        notes = [] if rows_out is None else [batch.write_rows(parts, rows_out)]
    batch.write_outputs(outputs_of(result), paths, as_json, notes)
    batch.name_resume(result, options["journal"])
    return result.exit_status


def outputs_of(result: CompareResult) -> batch.Outputs:
    """Return the ways to render a comparison."""
    from xcount.report import csv_comparison
    from xcount.report.batch_text import comparison_tables

    return batch.Outputs(
        to_dict=result.to_dict,
        tables=lambda: comparison_tables(result),
        plot=result.plot,
        texts={"html": result.to_html, "csv": lambda: csv_comparison(result)},
    )
