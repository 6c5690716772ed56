"""``xcount monotone``: does raising a feature ever move the output the wrong way?"""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.monotone import MonotoneOptions, monotone
from xcount.cli import batch, parameters


@click.command(
    "monotone",
    cls=parameters.OneValueCommand,
    short_help="Prove that a model is monotone, or count where it is not.",
    epilog=parameters.examples(
        "xcount monotone model.json --increasing education_num,hours_per_week",
        "xcount monotone model.json --increasing age --where '25 <= age < 65' --gap 0.01",
        "xcount monotone model.json --all",
        "xcount monotone model.json --decreasing capital_loss --html monotone.html",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(MonotoneOptions)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML report.")
@parameters.json_option
@parameters.progress_option
def command(model: str, as_json: bool, progress: str, html: str | None, **options: Any) -> int:
    """Count the regions of MODEL from which raising one feature moves the output the wrong way.

    0 is a proof that it never does. Exit status: 0 all named features keep their order, 1 one does
    not, 3 undecided within the limits.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.support.files import write_atomically

    if html == "-":
        raise click.UsageError("--html needs a file: standard output is for the answer")
    batch.check_outputs({"html": html}, as_json)
    with stoppable(), ProgressLine(progress) as line:
        result = monotone(model, on_progress=line.show_count, **parameters.given(options))
    if html is not None:
        write_atomically(html, result.to_html())
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.monotone_text import monotone_tables

        print_tables(*monotone_tables(result), *batch.written([html]))
    return result.exit_status
