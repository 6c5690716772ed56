"""``xcount merge``: join the journals of the shards of one run."""

from __future__ import annotations

import click

from xcount.cli import batch, parameters


@click.command(
    "merge",
    cls=parameters.OneValueCommand,
    short_help="Join the journals of a run's shards.",
    epilog=parameters.examples(
        "xcount merge s1.jsonl s2.jsonl --html report.html",
        "xcount merge s1.jsonl s2.jsonl --json",
    ),
)
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True)
@batch.report_options
@batch.markdown_option
def command(
    journals: tuple[str, ...],
    as_json: bool,
    html: str | None,
    csv: str | None,
    plot: str | None,
    markdown: str | None,
) -> int:
    """Join the JOURNALs that `xcount audit --shard` or `xcount compare --shard` wrote.

    The answer is the one that a single run would have given. Shards that are missing or unfinished
    are named, and the exit status is 3 as long as their counts are missing, unless another count
    fails already. A journal that is named twice, or two of the same shard, make no difference.
    """
    from xcount.runs.shards import merged_run

    paths = {"html": html, "csv": csv, "markdown": markdown, "plot": plot}
    batch.check_outputs(paths, as_json)
    return batch.write_kept(merged_run(journals), paths, as_json)
