"""``xcount verify``: count a question file with the verified counter."""

from __future__ import annotations

from typing import Any

import click

from xcount.answers.verify import VerifyOptions, verify
from xcount.cli import parameters


@click.command(
    "verify",
    cls=parameters.OneValueCommand,
    short_help="Count a question file with a counter that is proved correct.",
    epilog=parameters.examples(
        "xcount count model.json --sensitive age --gap 2 --question age.question",
        "xcount verify age.question",
        "xcount verify age.question --model model.json --timeout 5m",
        "xcount verify age.question --samples 1000 --json",
    ),
)
@click.argument("question", metavar="QUESTION")
@parameters.declared(VerifyOptions)
@parameters.json_option
@parameters.progress_option
def command(question: str, as_json: bool, progress: str, **options: Any) -> int:
    """Count a QUESTION file, which `xcount count --question` writes, with the verified counter.

    Its correctness is proved in Coq; it shares no code with the other counters. With --samples,
    random regions are decided instead, by a program that is proved as well. Exit status: 0 counted
    or estimated, 2 the file cannot be read or is not about the model, 3 not within the limits.
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable

    with stoppable(), ProgressLine(progress) as line:
        result = verify(question, on_progress=line.show_search, **parameters.given(options))
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.text import verified_tables

        print_tables(*verified_tables(result))
    return result.exit_status
