"""``xcount inspect``: what a model is made of, and which questions make sense for it."""

from __future__ import annotations

from typing import Any

import click

from xcount.cli import parameters


@click.command(
    "inspect",
    short_help="Describe a model: its trees, cells, and gaps to ask about.",
    epilog=parameters.examples(
        "xcount inspect model.json",
        "xcount inspect model.json --domain-template domain.toml --data people.csv",
        "xcount inspect model.json --domain domain.toml",
    ),
)
@parameters.model_argument
@parameters.missing_option
@parameters.domain_options
@click.option(
    "--domain-template",
    "template",
    metavar="FILE",
    help="Write a TOML file for --domain, with the features and the one-hot groups that their "
    "names suggest; '-' prints it.",
)
@click.option(
    "--data",
    metavar="FILE",
    help="CSV or Parquet file: check the groups of --domain-template on its rows.",
)
@click.option("--all", "show_all", is_flag=True, help="List every feature, used or not.")
@parameters.json_option
def command(
    model: str,
    trust_pickle: bool,
    missing: str,
    template: str | None,
    data: str | None,
    show_all: bool,
    as_json: bool,
    **domain: Any,
) -> int:
    """Describe MODEL: its trees, guards, cells and regions, and gaps to ask about."""
    from xcount.answers.inspection import inspect
    from xcount.answers.result import ANSWERED
    from xcount.cli.output import print_json, print_tables

    if data is not None and template is None:
        raise click.UsageError("--data checks the groups of --domain-template; give that, too")
    if template is not None:
        return _write_template(model, template, data, trust_pickle)
    inspection = inspect(
        model, missing="cell" if missing == "cell" else "none", trust_pickle=trust_pickle, **domain
    )
    if as_json:
        print_json(inspection.to_dict())
    else:
        from xcount.report.text import inspection_tables

        print_tables(*inspection_tables(inspection, show_all=show_all))
    return ANSWERED


def _write_template(model: str, path: str, data: str | None, trust_pickle: bool) -> int:
    from xcount.answers.result import ANSWERED
    from xcount.answers.template import domain_template
    from xcount.cli.output import print_text
    from xcount.report.files import check_writable, write_atomically

    if path != "-":
        check_writable(path)
    text = domain_template(model, data, trust_pickle=trust_pickle)
    if path == "-":
        print_text(text)
    else:
        write_atomically(path, text)
    return ANSWERED
