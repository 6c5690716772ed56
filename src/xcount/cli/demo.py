"""``xcount demo``: the main job on the model that ships with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xcount.cli import parameters

if TYPE_CHECKING:
    from pathlib import Path

    from xcount.result import CountResult

GAP = "0.5"
QUESTIONS = (("sex", "any"), ("race", "any"), ("age", 1))
"""The sensitive feature and the distance of each question."""

TITLE = "How sensitive is an income model (XGBoost, Adult census data) to sex, race and age?"


@click.command(
    "demo",
    short_help="Count on the model that ships with XCount.",
    epilog=parameters.examples("xcount demo"),
)
@parameters.limit_options
@parameters.json_option
def command(
    timeout_seconds: float | None, memory_bytes: int | None, jobs: int, as_json: bool
) -> int:
    """Ask a model of the Adult census data how sensitive it is to sex, race and age.

    A gap of 0.5 in log-odds multiplies the odds of a high income by 1.65, or divides them.
    """
    from xcount.cli.output import exit_status, print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.counting import count
    from xcount.examples import adult_model_path
    from xcount.loaders import load

    path = adult_model_path()
    ensemble = load(path)
    results: list[CountResult] = []
    for name, distance in QUESTIONS:
        with stoppable(), ProgressLine(label=name) as line:
            results.append(
                count(
                    ensemble,
                    sensitive=name,
                    gap=GAP,
                    distance=distance,
                    timeout_seconds=timeout_seconds,
                    memory_bytes=memory_bytes,
                    jobs=jobs,
                    on_progress=line.show,
                )
            )
    if as_json:
        print_json({"results": [result.to_dict() for result in results]})
    else:
        from xcount.report.text import summary_table

        print_tables(summary_table(TITLE, results), *_try_next(path))
    return max(exit_status(result) for result in results)


def _try_next(path: Path) -> list[str]:
    from rich.markup import escape

    model = escape(str(path))
    return [
        "\nTry next:",
        f"  xcount inspect {model}",
        f"  xcount count {model} --sensitive sex,race --gap 0.5 --distance any --max-share 1%",
    ]
