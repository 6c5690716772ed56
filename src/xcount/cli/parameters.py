"""Options that several commands share, and the little languages of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from xcount.support.spellings import n_bytes, open_share, seconds

if TYPE_CHECKING:
    from xcount.question.share import Limit

METHODS = ("auto", "exact", "sample", "brute")
PAPER_METHODS = (
    "xcount",
    "xcount-sum-first",
    "xcount-exact-union",
    "add-baseline",
    "add-baseline-plain",
    "cnf-ganak",
    "cnf-approxmc",
    "subproblems-cnf",
)
MEASURES = ("regions", "volume", "marginals", "rows", "population")
MOST_WITNESSES = 1_000_000
"""Pairs that may be asked for."""


def parse_share(text: str) -> Limit:
    """Return the limit of a share, given as ``0.01``, ``1%`` or ``1/3``."""
    from xcount.question.share import Limit

    return Limit.share(text)


def parse_ratio(text: str) -> Limit:
    """Return the limit of a ratio, given as ``1.05``, ``105%`` or ``1/3``."""
    from xcount.question.share import Limit

    return Limit.of(text)


def examples(*lines: str) -> str:
    """Return an epilog for ``--help`` that keeps its line breaks."""
    return "\n".join(
        ["\b", "Example:" if len(lines) == 1 else "Examples:", *("  " + x for x in lines)]
    )


def parsed_by(
    parse: Callable[[str], Any],
) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return an option's callback that reads its value with one of the parsers above."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, parameter) from None

    return callback


def joined(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the values of an option that may be repeated as one list with commas."""
    return ",".join(values) if values else None


class OneValueCommand(click.Command):
    """A command that refuses an option given twice, unless the option may be repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line; the order of options tells which came twice."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            if not isinstance(option, click.Option) or option.multiple or option.is_flag:
                continue
            if given.count(option) > 1:
                raise click.UsageError(f"{option.opts[0]} takes one value, but is given twice", ctx)
        return super().parse_args(ctx, args)


Command = TypeVar("Command", bound=Callable[..., Any])


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that does what all of these do."""

    def decorate(function: Command) -> Command:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


trust_option = click.option(
    "--trust-pickle",
    is_flag=True,
    help="Read pickle and joblib files. They can run arbitrary code: use only files from a source "
    "you trust.",
)

model_argument = together(click.argument("model", metavar="MODEL"), trust_option)

missing_option = click.option(
    "--missing",
    type=click.Choice(["none", "cell"]),
    default="none",
    show_default=True,
    help="With 'cell', missing values have a cell of their own.",
)

domain_options = together(
    click.option(
        "--one-hot",
        "one_hot",
        metavar="NAME=COL,COL,...",
        multiple=True,
        help="Columns of which exactly one is 1: they are one feature, NAME, with a category per "
        "column. End the list with +none if all of them may be 0. May be repeated.",
    ),
    click.option(
        "--where",
        "where",
        metavar="COND",
        multiple=True,
        help="Keep only regions that satisfy a condition: 'age >= 25', '25 <= age < 65', 'sex == "
        "Male', 'race in {White, Black}', 'age is missing'. May be repeated.",
    ),
    click.option(
        "--rule",
        "rule",
        metavar="'COND -> COND'",
        multiple=True,
        help="Leave out regions in which the first condition holds and the second does not. "
        "May be repeated.",
    ),
    click.option(
        "--domain",
        metavar="FILE",
        help="Read one-hot groups, conditions and rules from a TOML file (xcount inspect "
        "--domain-template writes one).",
    ),
)

model_options = together(
    click.option(
        "--precision",
        metavar="exact|N",
        default="exact",
        show_default=True,
        help="Use leaf values as stored, or rounded to N decimals.",
    ),
    click.option(
        "--class",
        "class_",
        metavar="K",
        help="The class to ask about, for a model with several.",
    ),
    missing_option,
    domain_options,
)

change_options = together(
    click.option(
        "--flip",
        is_flag=True,
        help="Count changes of the decision instead of changes by more than a gap. With one "
        "margin, the decision is whether it is above the cut-off (a tie counts as below, unless "
        "the model itself decides otherwise); with several classes, which one wins (in a tie, the "
        "first).",
    ),
    click.option(
        "--cutoff",
        metavar="T",
        help="The margin at which the decision changes. Default: the model's own (0 for log-odds, "
        "0.5 for a forest's votes).",
    ),
    click.option(
        "--from-probability",
        metavar="P",
        help="With --flip: count only flips of decisions made with a probability of at least P.",
    ),
    click.option(
        "--direction",
        type=click.Choice(["up", "down", "any"]),
        default="any",
        show_default=True,
        help="Count only changes that raise (up) or lower (down) the margin, the probability or "
        "the decision.",
    ),
)

sensitive_option = click.option(
    "--sensitive",
    metavar="NAMES",
    multiple=True,
    required=True,
    help="The sensitive features: names, fN or indices, separated by commas.",
)


def _gap_option(*, required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--gap",
        metavar="G",
        required=required,
        help="Count changes of the margin by more than G (a decimal number).",
    )


distance_option = click.option(
    "--distance",
    metavar="N|any",
    default="1",
    show_default=True,
    help="How many cells the sensitive features may move in total.",
)

probability_gap_option = click.option(
    "--probability-gap",
    metavar="P",
    help="Count changes of the predicted probability by more than P (such as 0.1) instead.",
)

question_options = together(
    sensitive_option,
    _gap_option(required=False),
    probability_gap_option,
    change_options,
    distance_option,
    model_options,
)


def check_change(question: Mapping[str, Any]) -> None:
    """Refuse a question without a change, before a large model is read."""
    if question["gap"] is None and question["probability_gap"] is None and not question["flip"]:
        raise click.UsageError("Missing option '--gap' (or --probability-gap, or --flip).")


gap_question_options = together(
    sensitive_option, _gap_option(required=True), distance_option, model_options
)

judge_option = click.option(
    "--judge",
    metavar="MEASURE",
    type=click.Choice(MEASURES),
    default="regions",
    show_default=True,
    help="The measure that limits apply to and features are ranked by: regions, volume, "
    "marginals, rows or population. Need not be named by --measure.",
)

measure_options = together(
    judge_option,
    click.option(
        "--measure",
        "measures",
        metavar="NAMES",
        multiple=True,
        help="Also weigh the sensitive regions by volume, marginals, rows or population; repeat "
        "it, or separate them by commas. The count itself is 'regions'.",
    ),
    click.option(
        "--data",
        metavar="FILE",
        help="CSV or Parquet file with a column per feature: for rows, marginals, population, and "
        "the bounds of a volume. Without --measure and --judge, its rows are counted.",
    ),
    click.option(
        "--population",
        metavar="FILE",
        help="A fitted population to weigh by. If the file does not exist, a population is fitted "
        "to the data and saved there.",
    ),
    click.option(
        "--bounds",
        metavar="NAME=LOW:HIGH,...",
        multiple=True,
        callback=joined,
        help="Bounds of a volume; repeat it, or separate them by commas. Default: the smallest and "
        "largest values in the data.",
    ),
)


seed_option = click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Seed for all random choices.",
)

accuracy_options = together(
    click.option(
        "--method",
        metavar="NAME",
        default="auto",
        show_default=True,
        help=f"How to count: {', '.join(METHODS)}; or by the paper's algorithms: "
        f"{', '.join(PAPER_METHODS)}.",
    ),
    click.option(
        "--epsilon",
        metavar="X",
        default="0.1",
        callback=parsed_by(partial(open_share, what="epsilon")),
        show_default=True,
        help="Relative error allowed in an estimate.",
    ),
    click.option(
        "--delta",
        metavar="X",
        default="0.1",
        callback=parsed_by(partial(open_share, what="delta")),
        show_default=True,
        help="Allowed probability that an interval is wrong.",
    ),
    seed_option,
)


def _limits(timeout: str, memory: str) -> Callable[[Command], Command]:
    return together(
        click.option(
            "--timeout",
            "timeout",
            metavar="DURATION",
            callback=parsed_by(seconds),
            help=f"{timeout}: 60s, 5m, 1h.",
        ),
        click.option(
            "--memory",
            "memory",
            metavar="SIZE",
            callback=parsed_by(n_bytes),
            help=f"{memory}: 4GB, 500MB, 1GiB.",
        ),
        click.option(
            "--jobs",
            metavar="N",
            type=click.IntRange(0),
            default=0,
            show_default="all cores",
            help="Number of threads.",
        ),
    )


_MEMORY = "Stop at this much memory and report the bounds found so far"

limit_options = _limits(
    "Stop after this long, including reading the model, and report the bounds found so far",
    _MEMORY,
)
batch_limit_options = _limits(
    "Stop each count after this long, not including reading the model, and report the bounds "
    "found so far",
    _MEMORY,
)
search_limit_options = _limits(
    "Give up after this long, including reading the model", "Use at most this much memory"
)

cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Count on a Dask cluster, given the address of its scheduler: tcp://scheduler:8786.",
)

max_share_option = click.option(
    "--max-share",
    metavar="SHARE",
    callback=parsed_by(parse_share),
    help="Give a verdict: PASS if at most this share of the regions, or of the --judge measure, is "
    "sensitive (0.01, 1% or 2/9).",
)

EXPLAIN_HELP = (
    "Also say who is affected and by how much: the direction, mean and quantiles of the change, "
    "the share for other gaps, where the changes are, and how often each group gets the "
    "favourable decision."
)
explain_option = click.option("--explain", is_flag=True, help=EXPLAIN_HELP)

favourable_option = click.option(
    "--favourable",
    metavar="CLASS",
    help="With --explain: the decision whose rates are compared between groups: a class, or above "
    "or below the cut-off. Default: above, or the class given by --class.",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
