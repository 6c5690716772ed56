"""How far a run is, in words."""

from __future__ import annotations

from xcount.counters.tally import Progress
from xcount.report.progress_text import progress_text
from xcount.runs.batch import BatchProgress


def test_texts_of_progress() -> None:
    """The bounds so far and what is being done; the counts that are done and that go on."""
    text = progress_text(Progress(0.42, 17, 10**20, "masks counted"))
    assert text == "17 .. 1.000e+20  masks counted"
    batch = BatchProgress(2, 40, 0.05, ("age", "sex", "age"))
    assert progress_text(batch) == "2 of 40 counts: age, sex"
    long = BatchProgress(2, 40, 0.05, ("x" * 100,))
    assert progress_text(long).endswith("xx…")
