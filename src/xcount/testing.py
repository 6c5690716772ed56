"""Limits of sensitivity as tests: an assertion for pytest, or for any other runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcount.answers.result import CountResult
    from xcount.support.parse import Duration

__all__ = ["assert_share"]

WITNESS_SECONDS = 5.0
"""A failure comes with an example if one is found within this time."""
MOST_ROWS_BEFORE = 50
"""The example is a row of the data if one of the first rows, this many, is sensitive."""


def assert_share(
    model: Any,
    *,
    sensitive: str | int | Iterable[str | int],
    max_share: object,
    timeout: Duration | None = 60.0,
    **question: Any,
) -> CountResult:
    """Raise an AssertionError unless at most a share of the regions, or people, is sensitive.

    The message states the question, the answer and the limit. It starts with ``FAIL`` if the share
    is above the limit, and shows a witness if one is found quickly; it starts with ``UNDECIDED``
    if the count stopped, at a limit of time or memory or at the requested accuracy, before the
    share was known to lie on one side of the limit.

    Args:
        model: a model file, a live model, or an ensemble.
        sensitive: the features that change, by name or index; text may list several with commas.
        max_share: the largest share allowed: 0.05, ``"5%"`` or ``"1/20"``; 0 asks for a proof that
            no region is sensitive.
        timeout: when to give up, which is UNDECIDED: seconds, or ``"5m"``; None for never.
        **question: ``gap`` or ``flip``, ``distance`` and whatever else
            :func:`~xcount.count` takes, by the same names; ``judge="rows", data="people.csv"``
            limits the share of those people instead of that of the regions.

    Returns:
        The result of the count, if it passes.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.testing import assert_share
        >>> assert_share(figure_1(), sensitive="f0", gap=80, max_share="2/9").count
        2
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    from xcount.answers.count import count
    from xcount.answers.result import Verdict
    from xcount.counters.tally import StopReason
    from xcount.support.visible import visible

    if max_share is None:
        raise TypeError("assert_share needs a limit, such as max_share='1%'")
    names = sensitive
    if isinstance(sensitive, Iterable) and not isinstance(sensitive, str):
        names = tuple(sensitive)  # they are asked about twice
    result = count(model, sensitive=names, max_share=max_share, timeout=timeout, **question)
    if result.verdict is Verdict.PASS:
        return result
    if result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt  # who presses Ctrl-C means the whole test run
    lines = _message(result)
    if result.verdict is Verdict.FAIL:
        lines += _example(model, {"sensitive": names, **question}, result)
    raise AssertionError("\n".join(map(visible, lines)))


def _message(result: CountResult) -> list[str]:
    """Return the verdict with its reason, the question and the answer, by lines."""
    from xcount.report.sentences import judgement
    from xcount.report.text import answer_text, count_text, measured_text, question_text

    model = result.model
    what = f"{model.path or 'a live model'} ({model.format}, {model.n_trees} trees)"
    return [
        f"{result.verdict}: the share is {judgement(result)}",
        question_text(result),
        f"  sensitive: {answer_text(result)}",
        *(
            f"  by {name}: {measured_text(m, result.sensitive)}"
            for name, m in result.measures.items()
        ),
        f"  regions: {count_text(result.n_regions)}",
        f"  model: {what}",
        f"  run: {result.method}, {_ending(result)}, seed {result.seed}",
    ]


def _ending(result: CountResult) -> str:
    """Return why the count stopped and, if it was undecided, what may help."""
    from xcount.answers.result import Verdict
    from xcount.counters.tally import StopReason
    from xcount.report.words.shares import why_rows_undecided

    if result.verdict is not Verdict.UNDECIDED or why_rows_undecided(result) is not None:
        return str(result.stop_reason)
    if result.stop_reason is StopReason.TIMEOUT:
        return "stopped by the time limit: a longer timeout may decide it"
    if result.stop_reason is StopReason.MEMORY:
        return "stopped by the memory limit: a larger limit of memory may decide it"
    return f"{result.stop_reason}: a smaller epsilon or method='exact' may decide it"


def _example(model: Any, question: Mapping[str, Any], result: CountResult) -> list[str]:
    """Return a witness by lines, a row of the data if it is one; nothing if none is soon found."""
    from xcount.answers.witness.witnesses import witnesses
    from xcount.errors import XCountError
    from xcount.report.witness_text import same_inputs, summary

    asked = _of_witnesses(question)
    if asked is None:
        return []
    rows = _sensitive_rows(result)
    if rows and rows[0] < MOST_ROWS_BEFORE:
        asked = {"near": question["data"], "n": rows[0] + 1, **asked}
    else:
        asked = {"n": 1, **asked}
    try:
        found = witnesses(model, timeout=WITNESS_SECONDS, **asked)
    except XCountError:  # too rare to be drawn, or the time was up
        return []
    if not found:
        return []
    first = found[-1]
    row = summary(first)
    shown = [f"{name.lower()} {row[name]}" for name in ("Margin", "Decision") if name in row]
    of_data = "" if first.row is None else f"row {first.row} of the data (from 0), "
    return [
        f"  for example {of_data}{row['Change']}: {', '.join(shown)}",
        f"  where {same_inputs(first)}",
    ]


def _sensitive_rows(result: CountResult) -> Sequence[int]:
    """Return the numbers of the rows of the data that are sensitive, where they are known."""
    found: Sequence[int] = ()
    if "rows" in result.measures:
        found = result.measures["rows"].details.get("sensitive_rows", ())
    return found


def _of_witnesses(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what of a count's arguments a witness is asked for; None if that is another question.

    How to count, to weigh and to judge is no part of it: a witness is the same with other values.
    """
    from dataclasses import fields

    from xcount.answers.witness.witnesses import WitnessOptions

    if "grid" in question:
        return None
    known = {each.name for each in fields(WitnessOptions)}
    return {name: value for name, value in question.items() if name in known}
