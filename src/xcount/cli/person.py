"""``xcount person``: one person."""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.person import PersonOptions, person
from xcount.cli import batch, parameters


@click.command(
    "person",
    cls=parameters.OneValueCommand,
    short_help="Say what one person would get with other sensitive features.",
    epilog=parameters.examples(
        "xcount person model.json --data people.csv --row 0 --sensitive sex",
        "xcount person model.json --data people.csv --row 0 --sensitive sex,race --html one.html",
        "xcount person model.json --data people.csv --row 1 --sensitive age --probability-gap 0.1 "
        "--distance 3",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(PersonOptions)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML report.")
@parameters.json_option
@parameters.progress_option
def command(model: str, as_json: bool, progress: str, html: str | None, **options: Any) -> int:
    """Say what one person gets from MODEL, and would get if only the sensitive features changed.

    The person is a row of the table. Every combination of values of the sensitive features that the
    model tells apart is tried, all else equal; the nearest change that flips the decision (or, with
    a gap, moves the output by more) is named, and so is how many people of the table it concerns.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.support.files import write_atomically

    if html == "-":
        raise click.UsageError("--html needs a file: standard output is for the answer")
    batch.check_outputs({"html": html}, as_json)
    with stoppable(), ProgressLine(progress) as line:
        result = person(model, on_progress=line.show_count, **parameters.given(options))
    if html is not None:
        write_atomically(html, result.to_html())
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.person_text import person_tables

        print_tables(*person_tables(result), *batch.written([html]))
    return result.exit_status
