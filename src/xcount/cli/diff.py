"""``xcount diff``: where do two models disagree?"""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.diff import DiffOptions, diff
from xcount.cli import batch, parameters


@click.command(
    "diff",
    cls=parameters.OneValueCommand,
    short_help="Count the regions in which two models disagree.",
    epilog=parameters.examples(
        "xcount diff old.json new.json --flip",
        "xcount diff old.json new.json --probability-gap 0.1 --data people.csv --explain",
        "xcount diff model.json model.json --gap 0 --max-share 0",
        "xcount diff old.json new.json --flip --judge rows --data people.csv --max-share 1%",
        "xcount diff old.json new.json --gap 0.5 --html diff.html",
    ),
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@parameters.declared(DiffOptions)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML report.")
@parameters.json_option
@parameters.progress_option
def command(
    first: str, second: str, as_json: bool, progress: str, html: str | None, **options: Any
) -> int:
    """Count the regions in which the models A and B disagree.

    The regions are those of the joint grid, with the thresholds of both models. Features are
    matched by name; a feature of only one model is one that the other ignores. Two models disagree
    where their margins differ by more than G, their predicted probabilities by more than P, or,
    with --flip, where their decisions differ. An exact 0 is a proof that they agree everywhere.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.support.files import write_atomically

    if html == "-":
        raise click.UsageError("--html needs a file: standard output is for the answer")
    batch.check_outputs({"html": html}, as_json)
    with stoppable(), ProgressLine(progress) as line:
        result = diff(first, second, on_progress=line.show_count, **parameters.given(options))
    if html is not None:
        write_atomically(html, result.to_html())
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.diff_text import diff_tables

        print_tables(*diff_tables(result), *batch.written([html]))
    return result.exit_status
