"""``xcount audit``: every feature, ranked and judged, with a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from xcount.cli import batch, parameters

if TYPE_CHECKING:
    from xcount.runs.audit import AuditResult


@click.command(
    "audit",
    cls=parameters.OneValueCommand,
    short_help="Rank all features, give a verdict, write a report.",
    epilog=parameters.examples(
        "xcount audit model.json --gap 2 --html report.html",
        "xcount audit model.json --sensitive sex --sensitive age --gap 1 --max-share age=2%",
        "xcount audit model.json --flip --distance any --max-share 5%",
        "xcount audit model.json --flip --judge population --data people.csv --max-share sex=1%",
        "xcount audit model.json --sensitive sex --journal audit.jsonl --resume",
    ),
)
@parameters.model_argument
@batch.question_options
@parameters.accuracy_options
@parameters.batch_limit_options
@click.option(
    "--max-share",
    metavar="SHARES",
    multiple=True,
    callback=parameters.joined,
    help="Give a verdict: the largest share allowed, for all features (1%) or for each "
    "(age=1%,sex=0; age+sex=1% for both together). Repeat it, or separate them by commas.",
)
@parameters.cluster_option
@parameters.measure_options
@click.option(
    "--witnesses",
    "n_witnesses",
    metavar="N",
    type=click.IntRange(0, parameters.MOST_WITNESSES),
    default=0,
    show_default=True,
    help="Add N example pairs of inputs to each count.",
)
@click.option(
    "--explain/--no-explain",
    default=True,
    show_default=True,
    help=parameters.EXPLAIN_HELP,
)
@parameters.favourable_option
@batch.journal_options
@batch.report_options
@batch.markdown_option
def command(
    model: str,
    trust_pickle: bool,
    as_json: bool,
    html: str | None,
    csv: str | None,
    plot: str | None,
    markdown: str | None,
    **question: Any,
) -> int:
    """Count for every used feature of MODEL (or --sensitive group), gap and distance.

    The features are ranked by the mean of their shares under the --judge measure. Each count stops
    after --timeout (60s by default) with the bounds found so far. With --journal, an audit that is
    stopped or killed keeps every finished count, and --resume continues it.
    """
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.counters import counter
    from xcount.runs.audit import audit

    paths = {"html": html, "csv": csv, "markdown": markdown, "plot": plot}
    batch.check_outputs(paths, as_json, question["journal"], question["resume"])
    counter(question["method"])  # report a wrong name before reading a large model
    with stoppable(), ProgressLine() as line:
        asked = batch.asked(question)
        result = audit(model, trust_pickle=trust_pickle, on_progress=line.show_batch, **asked)
    batch.write_outputs(outputs_of(result), paths, as_json)
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
