"""Estimates from regions that the proved program decides, and their transcripts."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import effort
import pytest
import question_oracle
from random_questions import question_text
from test_verify import ENGINES, engines, use

import xcount
from xcount.errors import QueryError, QuestionFileError, VerificationError
from xcount.model.examples import figure_1
from xcount.verified.counter import _run, find_engine
from xcount.verified.samples import Axes, hash_chain

BYTES = 64 * 2**20


@pytest.fixture
def question(tmp_path: Path) -> Path:
    """Figure 1 as a question: 2 of 9 regions are sensitive."""
    path = tmp_path / "f0.question"
    xcount.count(figure_1(), sensitive="f0", gap=80, distance=1, question=path)
    return path


@engines
def test_every_region_is_decided_as_defined(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All regions of random questions of all kinds, against the definition in Python."""
    use(monkeypatch, ENGINES[engine])
    path, drawn = tmp_path / "asked.question", tmp_path / "regions"
    n_sensitive = 0
    for seed in range(effort.n_examples(40)):
        path.write_text(question_text(seed))
        truth = question_oracle.sensitive_regions(path.read_text())
        sizes = [len(cells) for cells in question_oracle.read(path.read_text()).weights]
        regions = list(product(*map(range, sizes)))
        drawn.write_text("".join(" ".join(map(str, cells)) + "\n" for cells in regions))
        command = ENGINES[engine].command_for(str(path), BYTES, "-regions", str(drawn))
        found = _run([command], path, None, None)
        assert found is not None
        assert found[0] == "".join(str(int(truth.get(cells, False))) for cells in regions), seed
        n_sensitive += found[0].count("1")
    assert n_sensitive > 0


@engines
def test_a_region_outside_the_grid_is_refused(
    engine: str, monkeypatch: pytest.MonkeyPatch, question: Path
) -> None:
    """As is a line with too few cells, or too many."""
    use(monkeypatch, ENGINES[engine])
    for text in ("3 0\n", "0\n", "0 0 0\n", "0 -1\n", "0  0\n", "0 0"):
        drawn = question.with_suffix(".regions")
        drawn.write_text(text)
        command = find_engine().command_for(str(question), BYTES, "-regions", str(drawn))
        with pytest.raises(QuestionFileError):
            _run([command], question, None, None)


@engines
def test_intervals_hold(engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of random questions, with weights and without; 5 % may miss, and these seeds miss less."""
    use(monkeypatch, ENGINES[engine])
    path = tmp_path / "asked.question"
    n, missed = effort.n_examples(30), 0
    for seed in range(n):
        path.write_text(question_text(seed))
        expected = question_oracle.count(path.read_text())
        found = xcount.verify(path, samples=150, seed=seed)
        assert (found.count, found.verified, found.exit_status) == (None, None, 0)
        estimate = found.estimate
        assert estimate is not None
        missed += not estimate.low <= expected <= estimate.high
    assert missed <= 1 + 0.15 * n


def test_cells_are_drawn_by_their_weights() -> None:
    """Cells without weight never, the others in proportion; and always the same ones."""
    axes = Axes.of(
        "xcount-question 1\n# a\nfeatures 3\nordered cells 3\n"
        "unordered weights 3 0 3 1\nplaced 2 0 - weights 2 1 1\n"
    )
    assert axes.total == 3 * 4 * 2
    drawn = [axes.region(7, i) for i in range(4000)]
    assert drawn[:20] == [axes.region(7, i) for i in range(20)]
    for feature, cell, share in ((0, 0, 1 / 3), (1, 0, 0), (1, 1, 3 / 4), (2, 1, 1 / 2)):
        n = sum(cells[feature] == cell for cells in drawn)
        assert abs(n / 4000 - share) < 0.04
    assert all(cells[1] != 0 for cells in drawn)


@engines
def test_a_transcript_is_repeated(
    engine: str, monkeypatch: pytest.MonkeyPatch, question: Path, tmp_path: Path
) -> None:
    """The same outcomes and the same interval, or an error that names what differs."""
    use(monkeypatch, ENGINES[engine])
    told = xcount.verify(question, samples=100, seed=3).to_dict()
    path = tmp_path / "told.json"
    path.write_text(json.dumps(told))
    assert xcount.verify(question, transcript=path).estimate is not None
    for name, other in (("n_sensitive", 1), ("high", 8), ("outcomes", "0" * 64)):
        path.write_text(json.dumps({**told, "estimate": {**told["estimate"], name: other}}))
        with pytest.raises(VerificationError, match=f"does not fit the question: {name}"):
            xcount.verify(question, transcript=path)
    path.write_text(json.dumps({"estimate": {"n_samples": 5}}))
    with pytest.raises(QuestionFileError, match="no transcript"):
        xcount.verify(question, transcript=path)
    path.write_text(json.dumps(told))
    with pytest.raises(QueryError, match="its own number of samples"):
        xcount.verify(question, transcript=path, samples=5)


def test_the_chain_depends_on_every_outcome() -> None:
    """And on the question."""
    chains = {hash_chain(q, o) for q in (b"a", b"b") for o in ("", "0", "1", "01", "10")}
    assert len(chains) == 10
