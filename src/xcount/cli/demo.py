"""``xcount demo``: the main job on the model that ships with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xcount.cli import batch, parameters

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from xcount.runs.audit import AuditResult

FEATURES = ("sex", "race", "age")
GAPS = ("0.2", "0.5", "1")
DISTANCES = (1, "any")
REPORT = "xcount-demo.html"

TITLE = "How sensitive is an income model (XGBoost, Adult census data) to sex, race and age?"


@click.command(
    "demo",
    short_help="Audit the model that ships with XCount.",
    epilog=parameters.examples("xcount demo"),
)
@click.option(
    "--html", metavar="FILE", default=REPORT, show_default=True, help="Where to write the report."
)
@click.option("--save-model", metavar="FILE", help="Save a copy of the model, to ask it more.")
@parameters.batch_limit_options
@parameters.json_option
def command(
    html: str,
    save_model: str | None,
    timeout: float | None,
    memory: int | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Ask a model of the Adult census data how sensitive it is to sex, race and age.

    A gap of 0.5 in log-odds multiplies or divides the odds of a high income by 1.65. The answers
    are printed, and written as a report for the browser.
    """
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS
    from xcount.model.examples import adult_model_path
    from xcount.runs.audit import audit

    batch.check_outputs({"html": html}, as_json)
    path = adult_model_path()
    if save_model is not None:
        path = _copied(path, save_model)
    with stoppable(), ProgressLine() as line:
        result = audit(
            path,
            sensitive=FEATURES,
            gaps=GAPS,
            distances=DISTANCES,
            timeout=timeout or DEFAULT_TIMEOUT_SECONDS,
            memory=memory,
            jobs=jobs,
            on_progress=line.show_batch,
        )
    outputs = batch.Outputs(
        to_dict=result.to_dict,
        tables=lambda: _tables(result, path),
        plot=result.plot,
        texts={"html": result.to_html},
    )
    batch.write_outputs(outputs, {"html": html}, as_json)
    return result.exit_status


def _copied(path: Path, target: str) -> Path:
    from xcount.report.files import write_atomically

    write_atomically(target, path.read_bytes())
    return path.__class__(target)


def _tables(result: AuditResult, path: Path) -> list[RenderableType]:
    from xcount.model.examples import adult_model_path
    from xcount.report.batch_text import audit_tables
    from xcount.report.terminal import escaped

    shipped = path == adult_model_path()
    model = "adult.json" if shipped else escaped(str(path))
    return [
        *audit_tables(result, TITLE),
        "\nTry next:",
        *(["  xcount demo --save-model adult.json"] if shipped else []),
        f"  xcount inspect {model}",
        f"  xcount count {model} --sensitive sex,race --gap 0.5 --distance any --max-share 1%",
        f"  xcount audit {model} --html report.html",
        "",
    ]
