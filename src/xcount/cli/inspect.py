"""``xcount inspect``: what a model or a population is made of, and which questions make sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from xcount.answers.options import DomainOptions, TrustOption
from xcount.cli import batch, parameters

if TYPE_CHECKING:
    from xcount.measures.population import Population

OF_REGIONS = ("missing", "one_hot", "where", "rule", "domain")
"""The options that define the domain of a model."""


@click.command(
    "inspect",
    cls=parameters.OneValueCommand,
    short_help="Describe a model: its trees, cells, and gaps to ask about.",
    epilog=parameters.examples(
        "xcount inspect model.json",
        "xcount inspect model.json --domain-template domain.toml --data people.csv",
        "xcount inspect model.json --domain domain.toml",
        "xcount inspect model.json --population kept.json",
        "xcount inspect kept.json",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(TrustOption)
@parameters.declared(DomainOptions, without=("unknown", "where_from", "where_to", "along"))
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
    help="CSV or Parquet file: check the groups of --domain-template on its rows, or fit a "
    "--population to them.",
)
@click.option(
    "--population",
    metavar="FILE",
    help="Also show a fitted population. If the file does not exist, a population is fitted to "
    "the data and saved there. A population file in place of MODEL is shown by itself.",
)
@click.option(
    "--all", "show_all", is_flag=True, help="List every feature, used or not, and every component."
)
@parameters.json_option
def command(
    model: str,
    trust_pickle: bool,
    template: str | None,
    data: str | None,
    population: str | None,
    show_all: bool,
    as_json: bool,
    **domain: Any,
) -> int:
    """Describe MODEL: its trees, guards, cells and regions, and gaps to ask about.

    A saved population is described as well: what sets its components apart, and how
    realistic it is.
    """
    from xcount.answers.inspection import inspect
    from xcount.answers.result import ANSWERED
    from xcount.cli.output import print_json, print_tables
    from xcount.measures.population import Population, is_saved_population

    if data is not None and template is None and population is None:
        raise click.UsageError(
            "--data checks the groups of --domain-template, or is what a --population is fitted "
            "to; give one of them, too"
        )
    if template is not None:
        return _write_template(model, template, data, trust_pickle)
    if population is None and is_saved_population(model):
        return _show_population(Population.load(model), model, show_all, as_json)
    inspection = inspect(
        model,
        data=data,
        population=population,
        trust_pickle=trust_pickle,
        **parameters.given(domain),
    )
    if as_json:
        print_json(inspection.to_dict())
    else:
        from xcount.report.text import inspection_tables

        print_tables(*inspection_tables(inspection, show_all=show_all))
    return ANSWERED


def _show_population(population: Population, path: str, show_all: bool, as_json: bool) -> int:
    from xcount.answers.result import ANSWERED
    from xcount.cli.output import print_json, print_tables

    _refuse(OF_REGIONS, "for a saved population without a model")
    portrait = population.portrait
    if as_json:
        print_json(portrait.to_dict())
    else:
        from xcount.report.text import population_tables

        print_tables(*population_tables(portrait, path, show_all=show_all))
    return ANSWERED


def _refuse(names: tuple[str, ...], where: str) -> None:
    """Reject options that would be silently ignored."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} has no meaning {where}")


def _write_template(model: str, path: str, data: str | None, trust_pickle: bool) -> int:
    from xcount.answers.result import ANSWERED
    from xcount.answers.template import domain_template
    from xcount.cli.output import print_text
    from xcount.support.files import write_atomically

    _refuse((*OF_REGIONS, "population", "show_all", "as_json"), "beside --domain-template")
    batch.check_outputs({"template": path}, as_json=False)
    text = domain_template(model, data, trust_pickle=trust_pickle)
    if path == "-":
        print_text(text)
    else:
        write_atomically(path, text)
    return ANSWERED
