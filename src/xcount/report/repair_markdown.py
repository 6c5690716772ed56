"""A repair as a section of a model card, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.result import CountResult
from xcount.repairs.result import RepairResult
from xcount.report.markdown import escaped
from xcount.report.repair_text import (
    change_facts,
    quality_rows,
    quality_text,
    repair_headline,
    share_lines,
)
from xcount.report.text import question_text


def markdown_repair(result: RepairResult) -> str:
    """Return the section.

    Example:
        >>> import numpy, xcount
        >>> from xcount.model.examples import figure_1
        >>> rows = numpy.zeros((1, 2))
        >>> result = xcount.repair(figure_1(), sensitive="f0", gap=80, data=rows)
        >>> print(markdown_repair(result).splitlines()[2])
        The limit is proved: no region is sensitive any more.
    """
    lines = ["## Repair", "", f"{escaped(repair_headline(result))}.", ""]
    counts = [
        (question_text(each.before), _joined(each.before), _joined(each.after))
        for each in result.questions
    ]
    lines += _table(("Question", "Before", "After"), counts)
    lines += [f"- {escaped(what)}: {escaped(text)}" for what, text in change_facts(result)]
    lines += [f"- Note: {escaped(note)}" for note in result.notes]
    if result.test is not None:
        rows = [(label, quality_text(own, base)) for label, own, base in quality_rows(result.test)]
        lines += ["", *_table((f"On {result.test.n_rows:,} labelled rows", "Quality"), rows)]
    return "\n".join(lines).rstrip() + "\n"


def _joined(count: CountResult) -> str:
    return "; ".join(share_lines(count))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *([escaped(cell) for cell in line] for line in rows)]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]
