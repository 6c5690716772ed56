"""The verified counter: questions in, the numbers of the definition out; and ``--verify``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import oracle
import pytest
import question_oracle
from conftest import Command
from test_question_file import WRITTEN, domain_problem

import xcount
from xcount.errors import QueryWarning, QuestionFileError, VerificationError
from xcount.model.examples import adult_model_path, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.verified import counter
from xcount.verified.counter import JAVASCRIPT, Engine, find_engine, verified_count_of
from xcount.verified.packing import packed, unpacked
from xcount.verified.question_file import question_text

pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)
ORACLE = question_oracle.__file__
OTHER = "print(7)"
SLOW = "import time; time.sleep(600)"


def _engines() -> dict[str, Engine]:
    """Return the programs that can run here: the native one, and node with the JavaScript."""
    found = {}
    if counter.NATIVE.exists():
        found["native"] = Engine("native", (str(counter.NATIVE),))
    if (node := counter.find_node()) is not None and JAVASCRIPT.exists():
        found["javascript"] = Engine("javascript", (node, str(JAVASCRIPT)))
    return found


ENGINES = _engines()
engines = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(name not in ENGINES, reason=f"{why} is not there")
        )
        for name, why in (("native", "what `make verified` builds"), ("javascript", "node"))
    ],
)


def use(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """Choose the program that runs the counter."""
    for module in ("xcount.verified.counter", "xcount.runs.audit", "xcount.runs.compare"):
        monkeypatch.setattr(f"{module}.find_engine", lambda: engine)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests' own counter stand in for the verified one."""
    use(monkeypatch, Engine("stand-in", (sys.executable, ORACLE)))


@engines
@pytest.mark.parametrize("kind", WRITTEN)
def test_the_counter_has_the_answer_of_the_definition(
    engine: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every kind of question, with missing cells and without."""
    use(monkeypatch, ENGINES[engine])
    for seed in range(12):
        ensemble, words, change = WRITTEN[kind](seed)
        has_missing = seed % 2 == 1
        expected = oracle.changing_regions(ensemble, **words, missing=has_missing, **change)
        grid = Grid.of(ensemble, missing="cell" if has_missing else "none")
        text = question_text(Problem(ensemble, grid, Query.of(ensemble, **words, **change)))
        assert (seed, verified_count_of(text)) == (seed, sum(expected.values()))


@engines
def test_the_counter_knows_domains(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions, rules and one-hot groups."""
    use(monkeypatch, ENGINES[engine])
    for seed in range(24):
        asked = domain_problem(seed, n_rules=seed % 3)
        if asked is not None:
            problem, (count, _) = asked
            assert (seed, verified_count_of(question_text(problem))) == (seed, count)


@engines
def test_a_text_that_is_no_question_is_refused(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the line, in one line."""
    use(monkeypatch, ENGINES[engine])
    path = tmp_path / "age.question"
    xcount.count(figure_1(), sensitive="f0", gap=80, question=path)
    assert xcount.verify(path).count == 2
    path.write_text(path.read_text().replace("distance any", "distance few"))
    with pytest.raises(QuestionFileError, match=r"^[^\n]*age.question: line \d+: [^\n]*$"):
        xcount.verify(path)


def test_a_count_may_have_any_number_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, and more than Python reads unasked."""
    use(monkeypatch, Engine("large", (sys.executable, "-c", "print('9' * 100_000)")))
    assert verified_count_of("") == 10**100_000 - 1


@engines
def test_a_limit_of_memory_or_time_leaves_no_answer(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither does a question that takes too long."""
    use(monkeypatch, ENGINES[engine])
    path = tmp_path / "sex.question"
    xcount.count(adult_model_path(), sensitive="sex", flip=True, question=path, timeout=1)
    found = xcount.verify(path, timeout=1)
    assert (found.count, found.verified, found.exit_status) == (None, None, 3)
    assert xcount.verify(path, memory="1MB").count is None


@pytest.mark.usefixtures("stand_in")
def test_a_count_is_verified(xcount_command: Command, figure_1_file: str, tmp_path: Path) -> None:
    """In text and JSON; the question file is counted alone, too."""
    path = tmp_path / "age.question"
    asked = ["count", figure_1_file, "--sensitive", "age", "--gap", "80", "--verify"]
    run = xcount_command(*asked, "--question", path)
    assert (run.status, run.err) == (0, "")
    assert "│ 2 (exact, verified)" in run.out
    assert json.loads(xcount_command(*asked, "--json").out)["verified"] is True
    assert json.loads(xcount_command(*asked[:-1], "--json").out)["verified"] is None
    run = xcount_command("verify", path, "--model", figure_1_file, "--json")
    found = json.loads(run.out)
    assert (run.status, found["count"], found["verified"], found["engine"]) == (
        0,
        2,
        True,
        "stand-in",
    )
    assert found["theorem"].startswith("counter_is_correct")
    assert found["model_check"] == ["same: 6 leaves, 2 features"]
    assert "2 (verified)" in xcount_command("verify", path).out


def test_a_difference_is_an_error(
    xcount_command: Command,
    figure_1_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That names both numbers and saves the question; in an audit, too."""
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, Engine("wrong", (sys.executable, "-c", OTHER)))
    run = xcount_command("count", figure_1_file, "--sensitive", "age", "--gap", "80", "--verify")
    assert (run.status, run.out) == (2, "")
    assert "found 2 sensitive regions for age, the verified counter 7" in run.err
    (saved,) = tmp_path.glob("xcount-*.question")
    assert str(saved) in run.err
    assert question_oracle.count(saved.read_text()) == 2
    run = xcount_command("audit", figure_1_file, "--gap", "80", "--verify")
    assert run.status == 2
    assert "the verified counter 7" in run.err


def test_a_count_that_takes_too_long_is_not_verified(
    xcount_command: Command, figure_1_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count stays, and a note says so; the file alone has exit status 3."""
    use(monkeypatch, Engine("slow", (sys.executable, "-c", SLOW)))
    asked = ["--sensitive", "age", "--gap", "80", "--verify", "--timeout", "1s", "--json"]
    run = xcount_command("count", figure_1_file, *asked)
    found = json.loads(run.out)
    assert (run.status, found["count"], found["verified"]) == (0, 2, None)
    assert run.err == (
        "xcount: note: not verified: the verified counter did not finish within the limits\n"
    )
    run = xcount_command("audit", figure_1_file, *asked)
    assert [r["verified"] for r in json.loads(run.out)["results"]] == [None]
    assert "not verified: the verified counter did not finish" in run.err


@pytest.mark.usefixtures("stand_in")
def test_only_exact_counts_in_integers_are_verified() -> None:
    """For others, a warning says why."""
    with pytest.warns(QueryWarning, match="not verified: only an exact count can be"):
        found = xcount.count(figure_1(), sensitive="f0", gap=80, method="sample", verify=True)
    assert (found.exact, found.verified) == (False, None)
    model = xcount.load(adult_model_path())
    asked: dict[str, Any] = {"probability_gap": 0.999, "method": "exact", "timeout": 9}
    with pytest.warns(QueryWarning, match="not verified: a gap in the sigmoid"):
        found = xcount.count(model, sensitive="sex", verify=True, **asked)
    assert (found.exact, found.verified) == (True, None)


@pytest.mark.usefixtures("stand_in")
def test_an_audit_is_verified_and_its_journal_says_so(tmp_path: Path) -> None:
    """Nothing is counted again on resume; a report made of the journal has the questions."""
    path = tmp_path / "audit.jsonl"
    first = xcount.audit(figure_1(), gaps=[60, 80], journal=path)
    assert {result.verified for result in first.results} == {None}
    again = xcount.audit(figure_1(), gaps=[60, 80], journal=path, resume=True, verify=True)
    assert {result.verified for result in again.results} == {True}
    assert ",true,true,1.0," in again.to_csv()
    assert "verified" in again.to_markdown()
    size = path.stat().st_size
    kept = xcount.audit(figure_1(), gaps=[60, 80], journal=path, resume=True, verify=True)
    assert path.stat().st_size == size
    for audit in (kept, xcount.AuditResult.from_journal(path)):
        assert {result.verified for result in audit.results} == {True}
        for result in audit.results:
            assert result.question is not None
            assert question_oracle.count(result.question) == result.count


def test_without_a_program_verifying_is_refused(
    xcount_command: Command, figure_1_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is counted, with what to install."""
    find_engine.cache_clear()
    monkeypatch.setattr(counter, "NATIVE", Path("nowhere"))
    monkeypatch.setattr(counter, "find_node", lambda: None)
    run = xcount_command("count", figure_1_file, "--sensitive", "age", "--gap", "80", "--verify")
    find_engine.cache_clear()
    assert (run.status, run.out) == (2, "")
    assert "pip install 'xcount[verify]'" in run.err


@pytest.mark.usefixtures("stand_in")
def test_a_question_about_another_model_is_an_error(figure_1_file: str, tmp_path: Path) -> None:
    """By contents, or by predictions."""
    path = tmp_path / "sex.question"
    xcount.count(adult_model_path(), sensitive="sex", gap=3, distance=1, question=path)
    with pytest.raises(VerificationError, match="is not about"):
        xcount.verify(path, model=figure_1_file)


@pytest.mark.parametrize("data", [3, "?", packed("text")[:-6], "eJw="])
def test_a_damaged_question_is_not_unpacked(data: object) -> None:
    """It raises an error that readers of journals know."""
    with pytest.raises(ValueError, match=r".+"):
        unpacked(data)
