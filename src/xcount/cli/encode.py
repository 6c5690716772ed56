"""``xcount encode``: the question as a formula for model counters."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from xcount.answers.options import QuestionOptions, TrustOption
from xcount.cli import batch, parameters

if TYPE_CHECKING:
    from xcount.baselines.cnf.formula import Formula

NO_FORMULA = (
    "probability_gap",
    "flip",
    "cutoff",
    "cutoff_probability",
    "from_probability",
    "direction",
)
"""Options about changes that the formula cannot express."""


@click.command(
    "encode",
    cls=parameters.OneValueCommand,
    short_help="Write the question as DIMACS for model counters.",
    epilog=parameters.examples(
        "xcount encode model.json --sensitive age --gap 2 --distance 1 --precision 3 "
        "--output age.cnf",
        "xcount encode model.json --sensitive sex,race --gap 1 --distance 1 --precision 3",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(TrustOption)
@parameters.declared(QuestionOptions, without=NO_FORMULA)
@click.option(
    "--output",
    "path",
    metavar="FILE",
    help="Where to write the formula. Default: standard output.",
)
def command(model: str, trust_pickle: bool, path: str | None, **options: Any) -> int:
    """Write the question about MODEL as a DIMACS formula with a projection set.

    The models of the formula, projected onto the variables of `c p show`, are the sensitive
    regions. Comments say which guard each variable stands for. Rounding the leaves (--precision)
    makes formulas much smaller.
    """
    from xcount.answers.result import ANSWERED
    from xcount.baselines.cnf.encode import encode
    from xcount.model.loaders import load
    from xcount.problem.problem import Problem
    from xcount.question.grid import Grid

    batch.check_outputs({"output": path}, as_json=False)
    asked = QuestionOptions(**parameters.given(options))
    asked.check_change()
    regions = asked.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=trust_pickle))
    query = asked.query(ensemble)
    grid = Grid.of(ensemble, missing=asked.missing, domain=regions)
    problem = Problem(ensemble, grid, query)
    if problem.is_split:
        has_words = grid.rules or grid.allowed
        remedy = "give conditions with --where" if has_words else "add --unknown"
        raise click.UsageError(f"a formula knows no {grid.split_by}; {remedy}")
    _write(encode(problem), path or "-")
    return ANSWERED


def _write(formula: Formula, path: str) -> None:
    from xcount.support.files import write_atomically

    if path == "-":
        with click.open_file("-", "w", encoding="ascii", errors="backslashreplace") as stream:
            formula.write(stream)
        return
    content = BytesIO()
    with TextIOWrapper(content, encoding="ascii", errors="backslashreplace") as text:
        formula.write(text)
        text.flush()
        write_atomically(path, content.getvalue())
