"""``xcount witness``: example pairs of inputs."""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.witness.witnesses import WitnessOptions, witnesses
from xcount.cli import parameters


@click.command(
    "witness",
    cls=parameters.OneValueCommand,
    short_help="Show pairs of inputs that get different outputs.",
    epilog=parameters.examples(
        "xcount witness model.json --sensitive age --gap 1",
        "xcount witness model.json --sensitive sex --flip -n 3 --verify --csv",
        "xcount witness model.json --sensitive age --gap 1 --near people.csv",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(WitnessOptions)
@click.option("--csv", "as_csv", is_flag=True, help="Print the inputs as CSV, two lines per pair.")
@parameters.json_option
@parameters.progress_option
def command(
    model: str,
    as_csv: bool,
    as_json: bool,
    progress: str,
    **options: Any,
) -> int:
    """Show pairs of inputs that differ only in the sensitive features, yet get different outputs.

    The pairs are drawn uniformly from all sensitive regions of MODEL. With --near they are as
    close as possible to the given rows: the fewest features in a different cell, then the fewest
    cells in between. The table shows both margins, the guards crossed and the trees responsible.
    """
    from xcount.answers.result import ANSWERED, LIMITED
    from xcount.cli.output import INTERRUPTED, print_error, print_json, print_tables, print_text
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.errors import OutOfLimitsError
    from xcount.report.witness_text import witness_csv, witness_tables

    if as_csv and as_json:
        raise click.UsageError("--json and --csv both print to standard output; choose one")
    try:
        with stoppable(), ProgressLine(progress) as line:
            asked = parameters.given(options)
            found = witnesses(model, on_progress=line.show_search, **asked)
    except KeyboardInterrupt:
        print_error("interrupted before the witnesses were found")
        return INTERRUPTED
    except OutOfLimitsError as error:
        print_error(str(error))
        return LIMITED
    if as_json:
        print_json(found.to_dict())
    elif as_csv:
        print_text(witness_csv(found))
        if not found:
            print_error(f"there are none: {found.why_none}")
    else:
        print_tables(*witness_tables(found, f"Witnesses of {model}"))
    return ANSWERED
