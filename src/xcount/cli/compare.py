"""``xcount compare``: several models, the same questions, one grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from xcount.cli import batch, parameters

if TYPE_CHECKING:
    from xcount.runs.compare import CompareResult


@click.command(
    "compare",
    cls=parameters.OneValueCommand,
    short_help="Compare models on a shared grid.",
    epilog=parameters.examples(
        "xcount compare old.json new.json --sensitive age --html comparison.html",
        "xcount compare old.json new.json --sensitive sex --gap 0.5 --max-ratio 1",
        "xcount compare old.json new.json --flip --distance any",
        "xcount compare old.json new.json --flip --judge rows --data people.csv --max-ratio 1",
    ),
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@parameters.trust_option
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="A name for each model, in order; repeat it.",
)
@batch.question_options
@parameters.accuracy_options
@parameters.batch_limit_options
@click.option(
    "--max-ratio",
    metavar="R",
    callback=parameters.parsed_by(parameters.parse_ratio),
    help="Give a verdict: PASS if no count, or share of the --judge measure, is more than R times "
    "the first model's (1.05, 105% or 1/3).",
)
@parameters.cluster_option
@parameters.measure_options
@parameters.explain_option
@parameters.favourable_option
@batch.journal_options
@batch.report_options
def command(
    models: tuple[str, ...],
    trust_pickle: bool,
    names: tuple[str, ...],
    as_json: bool,
    html: str | None,
    csv: str | None,
    plot: str | None,
    **question: Any,
) -> int:
    """Ask every MODEL the same questions, on one grid of all their thresholds.

    The first model is the baseline: C/C0 is a model's count divided by the baseline's. Measures
    weigh all models by the same rows, bounds or population.
    """
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.counters import counter
    from xcount.runs.compare import compare

    paths = {"html": html, "csv": csv, "plot": plot}
    batch.check_outputs(paths, as_json, question["journal"], question["resume"])
    counter(question["method"])
    with stoppable(), ProgressLine() as line:
        result = compare(
            models,
            names=names or None,
            trust_pickle=trust_pickle,
            on_progress=line.show_batch,
            **batch.asked(question),
        )
    batch.write_outputs(outputs_of(result), paths, as_json)
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
