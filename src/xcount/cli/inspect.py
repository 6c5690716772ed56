"""``xcount inspect``: what a model is made of, and which questions make sense for it."""

from __future__ import annotations

import click

from xcount.cli import parameters


@click.command(
    "inspect",
    short_help="Describe a model: its trees, cells, and gaps to ask about.",
    epilog=parameters.examples("xcount inspect model.json"),
)
@parameters.model_argument
@parameters.missing_option
@click.option("--all", "show_all", is_flag=True, help="List every feature, used or not.")
@parameters.json_option
def command(model: str, trust_pickle: bool, missing: str, show_all: bool, as_json: bool) -> int:
    """Describe MODEL: its trees, guards, cells and regions, and gaps to ask about."""
    from xcount.answers.inspection import inspect
    from xcount.answers.result import ANSWERED
    from xcount.cli.output import print_json, print_tables

    inspection = inspect(
        model, missing="cell" if missing == "cell" else "none", trust_pickle=trust_pickle
    )
    if as_json:
        print_json(inspection.to_dict())
    else:
        from xcount.report.text import inspection_tables

        print_tables(*inspection_tables(inspection, show_all=show_all))
    return ANSWERED
