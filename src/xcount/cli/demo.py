"""``xcount demo``: the main job on a model that ships with the package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from xcount.cli import batch, parameters
from xcount.runs.options import BatchLimits

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from xcount.runs.audit import AuditResult

FEATURES = ("sex", "race", "age")
PROBABILITY_GAPS = ("0.05", "0.1", "0.2")
REPORT = "xcount-demo.html"

WITNESSES = 2
TITLE = "For whom does the predicted probability move if only sex, race or age changes?"
ABOUT = """\
The model (XGBoost, Adult census data) predicts who earns more than 50,000 dollars a year. It was
trained on one-hot columns; the domain turns them back into single features and keeps only people
aged 25 to 64. The people are rows of the data that the model was not trained on.
"""


@click.command(
    "demo",
    cls=parameters.OneValueCommand,
    short_help="Audit the model that ships with XCount.",
    epilog=parameters.examples("xcount demo", "xcount demo --save-one-hot income.json"),
)
@click.option(
    "--html", metavar="FILE", default=REPORT, show_default=True, help="Where to write the report."
)
@click.option(
    "--save-model",
    metavar="FILE",
    help="Save another model of the same data to experiment with; it has native categories.",
)
@click.option(
    "--save-one-hot",
    metavar="FILE",
    help="Save the audited model and, beside it, its domain (FILE with .toml) and the people "
    "(FILE with .csv.gz).",
)
@parameters.declared(BatchLimits, only=("timeout", "memory", "jobs"))
@parameters.json_option
@parameters.progress_option
def command(
    html: str,
    save_model: str | None,
    save_one_hot: str | None,
    as_json: bool,
    progress: str,
    **limits: Any,
) -> int:
    """Audit a model of the Adult census data for its dependence on sex, race and age.

    For how many people does the predicted probability of a high income move by more than 0.05, 0.1
    or 0.2 if only their sex, race or age changes? The model was trained on one-hot columns; the
    questions are about the features they encode, among people aged 25 to 64. The answers are for
    people the model was not trained on (--judge rows); they are printed, and written as a report
    for the browser.
    """
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.model.examples import adult_held_out_path, adult_model_path, adult_one_hot_paths
    from xcount.runs.audit import audit

    names = _one_hot_names(save_one_hot)
    copies = {f"copy {i}": name for i, name in enumerate([*names, save_model])}
    batch.check_outputs({"html": html, **copies}, as_json)
    model, domain = adult_one_hot_paths()
    people = adult_held_out_path()
    saved = []
    if save_model is not None:
        saved.append(_copied(adult_model_path(), save_model))
    if names:
        model, domain, people = map(_copied, (model, domain, people), names)
        saved += [model, domain, people]
    with stoppable(), ProgressLine(progress) as line:
        result = audit(
            model,
            sensitive=FEATURES,
            probability_gaps=PROBABILITY_GAPS,
            domain=domain,
            data=people,
            judge="rows",
            n_witnesses=WITNESSES,
            on_progress=line.show_batch,
            **parameters.given(limits),
        )
    outputs = batch.Outputs(
        to_dict=result.to_dict,
        tables=lambda: _tables(result, saved, save_model),
        plot=result.plot,
        texts={"html": result.to_html},
    )
    batch.write_outputs(outputs, {"html": html}, as_json)
    return result.exit_status


def _one_hot_names(model: str | None) -> list[str]:
    """Return the paths where the audited model, its domain and the people are saved."""
    if model is None:
        return []
    stem = os.path.splitext(model)[0]
    return [model, f"{stem}.toml", f"{stem}.csv.gz"]


def _copied(path: Path, target: str) -> Path:
    from xcount.support.files import write_atomically

    write_atomically(target, path.read_bytes())
    return path.__class__(target)


def _tables(result: AuditResult, saved: list[Path], model: str | None) -> list[RenderableType]:
    from xcount.report.batch_text import audit_tables
    from xcount.report.terminal import escaped

    name = "adult.json" if model is None else escaped(model)
    return [
        *audit_tables(result, TITLE),
        ABOUT,
        "Try next, on a model of the same data with categories of its own:",
        *(["  xcount demo --save-model adult.json"] if model is None else []),
        f"  xcount inspect {name}",
        f"  xcount count {name} --sensitive sex,race --flip --max-share 1%",
        f"  xcount audit {name} --html report.html",
        "",
        *(f"Wrote {escaped(str(path))}" for path in saved),
    ]
