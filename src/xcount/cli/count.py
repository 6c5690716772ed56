"""``xcount count``: one question, one number."""

from __future__ import annotations

from typing import Any

import click

from xcount.cli import parameters


@click.command(
    "count",
    cls=parameters.OneValueCommand,
    short_help="Count the regions sensitive to chosen features.",
    epilog=parameters.examples(
        "xcount count model.json --sensitive age --gap 2",
        "xcount count model.json --sensitive sex,race --gap 1 --distance any --max-share 1%",
        "xcount count model.json --sensitive sex --distance any --flip",
        "xcount count model.json --sensitive age --probability-gap 0.1 --direction down",
        "xcount count model.json --sensitive age --gap 2 --measure volume,rows --data people.csv",
        "xcount count model.json --sensitive sex --flip --judge rows --data people.csv "
        "--max-share 1%",
        "xcount count model.json --sensitive sex --gap 0.5 --distance any --explain",
        "xcount count model.json --sensitive age --gap 2 --cluster tcp://scheduler:8786",
    ),
)
@parameters.model_argument
@parameters.question_options
@parameters.accuracy_options
@parameters.limit_options
@parameters.cluster_option
@parameters.max_share_option
@parameters.measure_options
@click.option(
    "--profile",
    is_flag=True,
    help="Also show where: the count of each mask, and the jumps between masks.",
)
@parameters.explain_option
@parameters.favourable_option
@parameters.json_option
def command(
    model: str, trust_pickle: bool, sensitive: tuple[str, ...], as_json: bool, **question: Any
) -> int:
    """Count the regions of MODEL that are sensitive to chosen features.

    A region is sensitive if changing only those features, by at most the distance, changes the
    margin by more than G, or the predicted probability by more than P; or, with --flip, if it
    changes the decision. A count that is stopped by Ctrl-C or by a limit still gives a valid
    interval.
    """
    from xcount.answers.count import count
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.counters import counter

    parameters.check_change(question)
    counter(question["method"])  # report a wrong name before reading a large model
    with stoppable(), ProgressLine() as line:
        result = count(
            model,
            sensitive=sensitive,
            trust_pickle=trust_pickle,
            on_progress=line.show_count,
            **question,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.text import count_tables

        print_tables(*count_tables(result))
    return result.exit_status
