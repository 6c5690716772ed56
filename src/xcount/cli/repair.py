"""``xcount repair``: the same model with a proved limit on its sensitivity."""

from __future__ import annotations

from typing import Any

import click

from xcount.cli import batch, parameters
from xcount.repairs.repair import RepairOptions, repair


@click.command(
    "repair",
    cls=parameters.OneValueCommand,
    short_help="Change leaf values so that a limit is proved.",
    epilog=parameters.examples(
        "xcount repair model.json --sensitive age --distance 1 --gap 0.3 --data people.csv "
        "--output repaired.json",
        "xcount repair model.json --sensitive sex --gap 0.5 --also 'race: gap 0.5' "
        "--data people.csv --output repaired.json",
        "xcount repair model.json --sensitive sex --probability-gap 0.1 --data people.csv "
        "--output repaired.json",
        "xcount repair model.json --sensitive sex --flip --data people.csv --output repaired.json",
    ),
)
@click.argument("model", metavar="MODEL")
@parameters.declared(RepairOptions, without=["precision"])
@click.option("--html", metavar="FILE", help="Write a self-contained HTML report.")
@click.option("--markdown", metavar="FILE", help="Write a section for a model card (Markdown).")
@parameters.json_option
@parameters.progress_option
def command(
    model: str,
    as_json: bool,
    progress: str,
    html: str | None,
    markdown: str | None,
    **options: Any,
) -> int:
    """Write MODEL with other leaf values, for which no region is sensitive any more.

    Leaf values change as little as that allows: the predictions for the rows of --data stay as
    close to the model's own as they can. Trees, tests and features stay the same, and the library
    itself loads the result. The count of the file that is written is the proof.

    Exit status: 0 the limit is proved, 2 an error, 3 not proved within the limits (nothing is
    written).
    """
    from xcount.cli.output import print_json, print_tables
    from xcount.cli.progress import ProgressLine, stoppable
    from xcount.support.files import write_atomically

    path: str | None = options["output"]
    if path is None:
        raise click.UsageError("give --output FILE: where to write the repaired model")
    texts = {"html": html, "markdown": markdown}
    for name, given in {"output": path, **texts}.items():
        if given == "-":
            raise click.UsageError(f"--{name} needs a file: standard output is for the answer")
    batch.check_outputs({"output": path, **texts}, as_json)
    options["explain"] = options["explain"] or html is not None
    with stoppable(), ProgressLine(progress) as line:
        result = repair(model, on_progress=line.show_search, **parameters.given(options))
    if html is not None:
        write_atomically(html, result.to_html())
    if markdown is not None:
        write_atomically(markdown, result.to_markdown())
    if as_json:
        print_json(result.to_dict())
    else:
        from xcount.report.repair_text import repair_tables

        print_tables(*repair_tables(result), *batch.written([result.output, html, markdown]))
    return result.exit_status
