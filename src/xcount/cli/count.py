"""``xcount count``: one question, one number."""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.count import CountOptions, count
from xcount.cli import batch, parameters


@click.command(
    "count",
    cls=parameters.OneValueCommand,
    short_help="Count the regions sensitive to chosen features.",
    epilog=parameters.examples(
        "xcount count model.json --sensitive age --gap 2",
        "xcount count model.json --sensitive sex,race --gap 1 --max-share 1%",
        "xcount count model.json --sensitive age --distance 1 --flip",
        "xcount count model.json --sensitive age --probability-gap 0.1 --direction down",
        "xcount count model.json --sensitive age --gap 2 --measure volume,rows --data people.csv",
        "xcount count model.json --sensitive sex --flip --judge rows --data people.csv "
        "--max-share 1%",
        "xcount count model.json --sensitive age --gap 0 --direction up --where-from 'age >= 62' "
        "--where-to 'age < 62'",
        "xcount count model.json --sensitive sex --flip --data people.csv --rows-out affected.csv",
        "xcount count model.json --sensitive sex --gap 0.5 --explain",
        "xcount count model.json --sensitive age --flip --data people.csv --group sex --group race",
        "xcount count model.json --sensitive age --gap 2 --question age.question",
        "xcount count model.json --sensitive age --gap 2 --cluster tcp://scheduler:8786",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(CountOptions)
@batch.rows_option
@parameters.json_option
@parameters.progress_option
def command(model: str, as_json: bool, progress: str, rows_out: str | None, **options: Any) -> int:
    """Count the regions of MODEL that are sensitive to chosen features.

    A region is sensitive if changing only those features, by at most the distance, changes the
    margin by more than G, or the predicted probability by more than P; or, with --flip, if it
    changes the decision. A count that is stopped by Ctrl-C or by a limit still gives a valid
    interval.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable

    path: str | None = options["question"]
    if path == "-":
        raise click.UsageError("--question needs a file: standard output is for the answer")
    batch.check_rows_out(rows_out, options)
    batch.check_outputs({"question": path, "rows_out": rows_out}, as_json)
    with stoppable(), ProgressLine(progress) as line:
        result = count(model, on_progress=line.show_count, **parameters.given(options))
        notes = [] if rows_out is None else [batch.write_rows([({}, result)], rows_out)]
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.text import count_tables

        print_tables(*count_tables(result), *batch.written([path]), *notes)
    return result.exit_status
