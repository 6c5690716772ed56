"""What the paper's algorithm answers: |X| / p, also in results that were kept with bounds instead.

``xcount`` knows bounds that the paper does not have. Earlier results have, as the count, the value
within these bounds that is nearest to |X| / p; the sample itself was noted beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.harness.records import Run, Runs, Status
from benchmarks.harness.tables import is_solved

Record = Mapping[str, Any]


def with_paper_answers(runs: Runs) -> Runs:
    """Return runs in which every sampled count is |X| / p."""
    return {suite: [_changed(run, paper_answer) for run in each] for suite, each in runs.items()}


def clipped(run: Run) -> Run:
    """Return a run in which every sampled count is as near to |X| / p as the bounds allow."""
    return _changed(run, _clipped_answer)


def is_sampled(record: Record) -> bool:
    """Tell whether a record's count comes from a part of the regions: p is below 1."""
    return is_solved(record) and bool(record.get("details", {}).get("halvings"))


def paper_answer(record: Record) -> Record:
    """Return a record whose count, if it is sampled, is |X| / p, and no exact one."""
    if not is_sampled(record):
        return record
    details = record["details"]
    estimate = details["sample_size"] << details["halvings"]
    return {
        **record,
        "status": Status.GUARANTEE,
        "count": estimate,
        "low": min(record["low"], estimate),
        "high": max(record["high"], estimate),
        "details": {"clipped": record["count"], **details},
    }


def _clipped_answer(record: Record) -> Record:
    if not is_sampled(record):
        return record
    return {**record, "count": record["details"].get("clipped", record["count"])}


def _changed(run: Run, change: Any) -> Run:
    return replace(run, records=tuple(map(change, run.records)))
