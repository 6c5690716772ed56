"""``xcount worst``: the largest change."""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.worst import WorstOptions, worst
from xcount.cli import parameters


@click.command(
    "worst",
    cls=parameters.OneValueCommand,
    short_help="Find the largest change that chosen features can make.",
    epilog=parameters.examples(
        "xcount worst model.json --sensitive sex",
        "xcount worst model.json --sensitive age --probability --timeout 60s",
        "xcount worst model.json --sensitive age --distance 1 --where 'age >= 25'",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(WorstOptions)
@parameters.json_option
@parameters.progress_option
def command(model: str, as_json: bool, progress: str, **options: Any) -> int:
    """Find the largest change of MODEL's margin that a change of the sensitive features can make.

    No gap has to be chosen: the answer is the smallest gap that no pair of inputs exceeds, with a
    pair that attains it. A search that is stopped by Ctrl-C or by a limit still gives a lower and
    an upper bound. Exit status: 0 the largest change is known, 3 a limit came first.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable

    with stoppable(), ProgressLine(progress) as line:
        result = worst(model, on_progress=line.show_search, **parameters.given(options))
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.worst_text import worst_tables

        print_tables(*worst_tables(result))
    return result.exit_status
