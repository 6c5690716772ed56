"""Audits: all counts, ranked and judged; resumed without loss; interrupted with bounds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import wait
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import n_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import records_of, write_records
from oracle import known
from strategies import random_ensemble

import xcount
from xcount.answers.result import CountResult, Verdict
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, JournalError, QueryError, QueryWarning
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.flip_form import FlipForm
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.flip import Flip
from xcount.question.gap import Gap
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit
from xcount.runs import task as tasks
from xcount.runs.audit import AuditResult, audit
from xcount.runs.batch import BatchProgress
from xcount.runs.journal import read_journal
from xcount.runs.plan import choose_groups
from xcount.runs.task import Task
from xcount.support.process import held_memory_bytes

FLIP = Query((0,), Flip())


def as_facts(result: CountResult) -> CountResult:
    """Return a result without what differs from run to run."""
    return replace(result, seconds=0.0, peak_memory_bytes=0)


def facts(result: AuditResult) -> list[CountResult]:
    """Return the results of an audit without what differs from run to run."""
    return [as_facts(count) for count in result.results]


@settings(max_examples=n_examples(30))
@given(st.integers(0, 10_000))
def test_an_audit_counts_what_count_counts(seed: int) -> None:
    """Every count of an audit is that of xcount.count with the same question."""
    ensemble = random_ensemble(seed)
    if xcount.Grid.of(ensemble).n_regions == 1:
        return
    result = audit(ensemble, gaps=[0, "0.25"], distances=[1, "any"], method="brute", explain=False)
    used = sum(axis.n_cells > 1 for axis in xcount.Grid.of(ensemble).axes)
    assert len(result.results) == result.n_planned == 4 * used
    for count in result.results:
        alone = xcount.count(
            ensemble,
            sensitive=count.sensitive,
            gap=count.gap,
            distance=count.distance,
            method="brute",
            profile=True,
            timeout=60,
        )
        assert as_facts(alone) == as_facts(count)


def test_the_ranking_is_by_mean_share() -> None:
    """The feature with the larger mean share comes first, each panel by its own shares."""
    result = audit(figure_1(), gaps=[1, 80], distances=1)
    assert [ranked.label for ranked in result.ranking] == ["f0", "f1"]
    for ranked in result.ranking:
        shares = [known(count.share) for count in ranked.results]
        assert ranked.score.value == pytest.approx(sum(shares) / len(shares))
    assert result.panels == ((1, Gap(Fraction(1))), (1, Gap(Fraction(80))))
    assert [count.sensitive for count in result.panel((1, Gap(Fraction(80))))] == [("f0",), ("f1",)]


def test_groups_change_together() -> None:
    """A group is counted as one question, next to its members."""
    result = audit(figure_1(), sensitive=["f0", "f0,f1"], gaps=80, distances="any")
    together = next(count for count in result.results if len(count.sensitive) == 2)
    alone = xcount.count(figure_1(), sensitive=["f0", "f1"], gap=80, distance="any")
    assert together.count == alone.count


@pytest.mark.parametrize(
    ("max_share", "verdict", "status"),
    [
        (None, None, 0),
        (0.5, Verdict.PASS, 0),
        (0.1, Verdict.FAIL, 1),
        ("f1=0", Verdict.PASS, 0),
        ("f0=0.2", Verdict.FAIL, 1),
    ],
)
def test_limits_make_verdicts(
    max_share: float | str | None, verdict: Verdict | None, status: int
) -> None:
    """Figure 1 has a share of 2/9 for f0 and 0 for f1 at gap 80 and distance 1."""
    result = audit(figure_1(), gaps=80, distances=1, max_share=max_share)
    assert result.verdict is verdict
    assert result.exit_status == status


def test_an_undecided_count_makes_the_audit_undecided() -> None:
    """An interval across the limit is status 3, unless another count fails."""
    result = audit(figure_1(), gaps=80, max_share=0.3)
    wide = replace(result.results[0], low=0, high=9, stop_reason=StopReason.TIMEOUT)
    undecided = replace(result, results=(wide, result.results[1]))
    assert (undecided.verdict, undecided.exit_status) == (Verdict.UNDECIDED, 3)
    failed = replace(result, results=(wide, replace(wide, low=8)))
    assert (failed.verdict, failed.exit_status) == (Verdict.FAIL, 1)
    unjudged = replace(result, results=(replace(wide, max_share=None),), n_planned=1)
    assert (unjudged.verdict, unjudged.exit_status) == (None, 3)


def test_a_verdict_needs_a_chosen_gap() -> None:
    """The default ladder is for looking, not for judging."""
    with pytest.raises(QueryError, match="gap of your choice"):
        audit(figure_1(), max_share=0.1)


def test_an_audit_survives_json() -> None:
    """to_json and from_dict are inverse."""
    result = audit(random_ensemble(3), distances=[1, "any"])
    assert AuditResult.from_dict(json.loads(result.to_json())) == result


def test_a_limit_of_a_feature_that_no_tree_tests_passes() -> None:
    """Dropping a feature from the trees does not break a gate: its count is a proved 0."""
    ensemble = ensemble_of((0, 1.0, 0.0, 1.0), n_features=3)
    rows = np.zeros((4, 3))
    for limit, names in (("1,f1=0", [("f0",), ("f1",)]), ({"f2": 0}, [("f0",), ("f2",)])):
        result = audit(ensemble, gaps=2, max_share=limit, data=rows)
        assert sorted(ranked.sensitive for ranked in result.ranking) == names
        unused = next(r for r in result.results if r.sensitive != ("f0",))
        assert (unused.count, unused.high, unused.verdict) == (0, 0, Verdict.PASS)
        assert unused.measures["rows"].share == 0
        assert result.verdict is Verdict.PASS
        assert result.exit_status == 0
        assert result.named == (unused.sensitive[0],)
    whole = audit(ensemble, flip=True, cutoff="0.5", max_share="f0+f1=0")
    assert [r.sensitive for r in whole.results] == [("f0",), ("f0", "f1")]
    assert whole.verdict is Verdict.FAIL


def test_a_limit_of_a_feature_that_the_domain_fixes_is_refused_at_once() -> None:
    """As where the feature is named as sensitive: before anything is counted."""
    ensemble = ensemble_of((0, 1.0, 0.0, 1.0), (1, 1.0, 0.0, 1.0))
    with pytest.raises(
        QueryError, match="'f1' cannot change: 'f1 < 1' leaves only one of its cells"
    ):
        audit(ensemble, gaps="0.5", where="f1 < 1", max_share="1,f1=0")
    with pytest.raises(QueryError, match="'f1' cannot change"):
        choose_groups(ensemble, Grid.of(ensemble, domain=Domain.of(where="f1 < 1")), ["f0", "f1"])


def test_unused_features_are_listed() -> None:
    """A feature that no tree tests is named, and not counted."""
    result = audit(ensemble_of((0, 1.0, 0.0, 1.0), n_features=3), gaps=0.5)
    assert result.unused_features == ("f1", "f2")
    assert [ranked.label for ranked in result.ranking] == ["f0"]


def test_the_journal_holds_the_audit(tmp_path: Path) -> None:
    """An audit read from its journal is the audit."""
    path = tmp_path / "j.jsonl"
    result = audit(random_ensemble(3), distances=[1, "any"], journal=path)
    assert AuditResult.from_journal(path) == result


def test_resume_counts_nothing_twice(tmp_path: Path) -> None:
    """A second run adds only what is new: another gap."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=[1, 80], journal=path)
    before = path.read_bytes()
    audit(figure_1(), gaps=[1, 80], journal=path, resume=True)
    assert path.read_bytes() == before
    both = audit(figure_1(), gaps=[1, 2, 80], journal=path, resume=True)
    assert path.read_bytes().startswith(before)
    keys = [record["key"] for record in read_journal(path) if record["kind"] == "result"]
    assert len(keys) == len(set(keys)) == 6
    assert facts(both) == facts(audit(figure_1(), gaps=[1, 2, 80]))


def test_another_limit_counts_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count is the same whatever it is judged by; the journal learns the new verdict."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=80, max_share=0.5, journal=path)
    monkeypatch.setattr(tasks, "solve", None)  # nothing can be counted any more
    for limit, verdict in ((0.1, Verdict.FAIL), (0.5, Verdict.PASS), (None, None)):
        result = audit(figure_1(), gaps=80, max_share=limit, journal=path, resume=True)
        assert result.verdict is verdict
        assert AuditResult.from_journal(path).verdict is verdict
    before = path.read_bytes()
    audit(figure_1(), gaps=80, journal=path, resume=True)
    assert path.read_bytes() == before


def test_a_count_that_its_verdict_stopped_is_done_for_that_verdict(tmp_path: Path) -> None:
    """With another limit it is counted again, unless the interval decides that, too."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=80, sensitive="f0", max_share=0.5, journal=path)
    lines = records_of(path)
    lines[1]["result"] |= {"count": None, "low": 1, "high": 3, "stop_reason": "decided"}
    write_records(path, lines)
    for limit, exact in ((0.4, False), (0.05, False), ("2/9", True)):
        found = audit(
            figure_1(), gaps=80, sensitive="f0", max_share=limit, journal=path, resume=True
        )
        assert found.results[0].exact == exact


def test_more_witnesses_count_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are drawn for the counts that are there; fewer are a part of them."""
    path = tmp_path / "j.jsonl"
    asked: dict[str, Any] = {"gaps": 80, "distances": 1, "journal": path}
    plain = audit(figure_1(), **asked)
    monkeypatch.setattr(tasks, "solve", None)
    for n in (2, 1, 0, 3):
        result = audit(figure_1(), **asked, n_witnesses=n, resume=True)
        assert [r.count for r in result.results] == [r.count for r in plain.results]
        for each in (result, AuditResult.from_journal(path)):
            found = {r.sensitive[0]: r.witnesses or () for r in each.results}
            assert {name: len(rows) for name, rows in found.items()} == {"f0": n, "f1": 0}


def test_witnesses_that_cannot_be_drawn_are_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal says that they were asked for."""
    tried = []

    def refused(*arguments: object) -> None:
        tried.append(1)
        raise BudgetError("too rare")

    monkeypatch.setattr(tasks, "drawn_witnesses", refused)
    for _ in range(2):
        audit(
            figure_1(),
            gaps=80,
            sensitive="f0",
            n_witnesses=1,
            journal=tmp_path / "j.jsonl",
            resume=True,
        )
    assert tried == [1]


def test_a_journal_is_about_one_model(tmp_path: Path) -> None:
    """Another model's results do not mix in."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=1, journal=path)
    with pytest.raises(JournalError, match="another model"):
        audit(random_ensemble(3), gaps=1, journal=path, resume=True)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(JournalError, match="the journal is empty"):
        AuditResult.from_journal(tmp_path / "empty.jsonl")
    write_records(tmp_path / "other.jsonl", [{"kind": "note"}])
    with pytest.raises(JournalError, match="no audit's run line"):
        AuditResult.from_journal(tmp_path / "other.jsonl")


def test_other_questions_do_not_stand_for_missing_ones(tmp_path: Path) -> None:
    """Results of an earlier run do not finish the last one."""
    path = tmp_path / "j.jsonl"
    asked: dict[str, Any] = {"distances": 1, "max_share": 0, "journal": path}
    audit(figure_1(), gaps=100, **asked)
    whole = audit(figure_1(), gaps=80, **asked, resume=True, jobs=1)
    assert whole.verdict is Verdict.FAIL
    assert AuditResult.from_journal(path) == whole
    lines = records_of(path)
    failing = next(i for i, x in enumerate(lines) if x.get("result", {}).get("verdict") == "FAIL")
    write_records(path, lines[:failing] + lines[failing + 1 :])
    cut = AuditResult.from_journal(path)
    assert (len(cut.results), cut.n_planned) == (1, 2)
    assert (cut.verdict, cut.exit_status) == (Verdict.UNDECIDED, 3)
    earlier = audit(figure_1(), gaps=100, **asked, resume=True)
    assert AuditResult.from_journal(path) == earlier


def test_a_journal_of_another_format_is_refused(tmp_path: Path) -> None:
    """The message names the line and both formats."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=80, journal=path)
    run, *lines = records_of(path)
    write_records(path, [{**run, "format": 2}, *lines])
    message = "line 1 of .* has format 2, and this version of xcount reads format 1"
    with pytest.raises(JournalError, match=message):
        AuditResult.from_journal(path)


def _shorten(path: Path, stop_reason: str, timeout_seconds: float) -> None:
    """Make the journal say that its counts were stopped."""
    lines = records_of(path)
    for line in lines:
        if line["kind"] == "result":
            line["result"] |= {"stop_reason": stop_reason, "low": 0, "high": 9}
            line["limits"]["timeout_seconds"] = timeout_seconds
    write_records(path, lines)


@pytest.mark.parametrize(
    ("stop_reason", "had", "asked", "is_redone"),
    [
        ("timeout", 5.0, 5.0, False),
        ("timeout", 5.0, 3.0, False),
        ("timeout", 5.0, 6.0, True),
        ("timeout", 5.0, None, True),
        ("interrupted", 5.0, 5.0, True),
    ],
)
def test_a_stopped_count_is_redone_only_with_more_room(
    tmp_path: Path, stop_reason: str, had: float, asked: float | None, is_redone: bool
) -> None:
    """Bounds at a time limit are an answer to the same limit, not to a larger one."""
    path = tmp_path / "j.jsonl"
    audit(figure_1(), gaps=80, journal=path)
    _shorten(path, stop_reason, had)
    result = audit(figure_1(), gaps=80, journal=path, resume=True, timeout=asked)
    assert all(count.exact for count in result.results) is is_redone
    assert facts(AuditResult.from_journal(path)) == facts(result)


def test_progress_reaches_the_end() -> None:
    """Progress counts up to all tasks, in the calling thread."""
    seen: list[BatchProgress] = []
    audit(figure_1(), gaps=[1, 2, 80], on_progress=seen.append)
    assert [s.done for s in seen] == sorted(s.done for s in seen)
    assert (seen[-1].done, seen[-1].total, seen[-1].fraction) == (6, 6, 1.0)


def test_the_answer_does_not_depend_on_the_number_of_cores() -> None:
    """One core or three: the same counts."""
    ensemble = random_ensemble(3)
    assert facts(audit(ensemble, jobs=1)) == facts(audit(ensemble, jobs=3))


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    """Ctrl-C ends the audit with the results so far; resume brings the rest."""
    path = tmp_path / "j.jsonl"
    gaps = list(range(1, 40))

    def interrupt(progress: BatchProgress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    stopped = audit(figure_1(), gaps=gaps, journal=path, jobs=1, on_progress=interrupt)
    assert 5 <= len(stopped.results) < stopped.n_planned
    assert stopped.exit_status == 3
    whole = audit(figure_1(), gaps=gaps, journal=path, resume=True)
    assert facts(whole) == facts(audit(figure_1(), gaps=gaps))


def test_an_error_in_one_count_keeps_the_others(tmp_path: Path) -> None:
    """A failing callback ends the audit with its error; the journal has what was done."""
    path = tmp_path / "j.jsonl"

    def fail(progress: BatchProgress) -> None:
        if progress.done == 3:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        audit(figure_1(), gaps=range(1, 20), journal=path, jobs=1, on_progress=fail)
    assert sum(record["kind"] == "result" for record in read_journal(path)) >= 3


def test_a_refused_count_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One count too many for its method is named and missing; only such counts are an error."""
    n_terms = Problem(figure_1(), Grid.of(figure_1()), FLIP).form.n_terms
    monkeypatch.setattr(FlipForm, "max_exact_terms", n_terms)
    asked = {"flip": True, "method": "exact", "max_share": 1, "jobs": 1}
    path = tmp_path / "j.jsonl"
    with pytest.warns(
        QueryWarning, match=r"1 of 2 counts refused and left out \(f0 \+ f1\): exact"
    ):
        part = audit(figure_1(), sensitive=["f0,f1", "f0"], journal=path, **asked)  # type: ignore[arg-type]  # several kinds
    assert [count.sensitive for count in part.results] == [("f0",)]
    assert (part.n_planned, part.verdict, part.exit_status) == (2, Verdict.UNDECIDED, 3)
    assert AuditResult.from_journal(path) == part
    with pytest.raises(BudgetError, match="terms"):
        audit(figure_1(), sensitive=["f0,f1"], **asked)  # type: ignore[arg-type]  # several kinds


def test_an_error_does_not_lose_what_ended_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts that are done when another one fails are in the journal."""
    both = threading.Barrier(2)
    run = Task.run

    def fail_together(task: Task, *arguments: Any) -> CountResult:
        result = run(task, *arguments)
        both.wait(60)
        if task.label == "f0":
            raise RuntimeError("no")
        return result

    def wait_for_all(futures: Any, **options: Any) -> Any:
        return wait(futures)

    monkeypatch.setattr(Task, "run", fail_together)
    monkeypatch.setattr("xcount.runs.batch.wait", wait_for_all)
    path = tmp_path / "j.jsonl"
    with pytest.raises(RuntimeError, match="no"):
        audit(figure_1(), gaps=80, journal=path, jobs=2)
    assert [count.sensitive for count in AuditResult.from_journal(path).results] == [("f1",)]


KILLED = """
import sys
import xcount
from strategies import random_ensemble

def stop_at_seven(progress):
    if progress.done >= 7:
        print("seven", flush=True)
        sys.stdin.read()

xcount.audit(random_ensemble(3), gaps=GAPS, journal=sys.argv[1], jobs=2, on_progress=stop_at_seven)
"""


def test_a_killed_audit_resumes_without_loss(tmp_path: Path) -> None:
    """A kill -9 in the middle, a torn line, resume: nothing lost, nothing twice."""
    path = tmp_path / "j.jsonl"
    gaps = [k / 8 for k in range(30)]
    code = KILLED.replace("GAPS", repr(gaps))
    sources = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sources))}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"seven\n"
        with pytest.raises(JournalError, match="in use"):
            audit(random_ensemble(3), gaps=gaps, journal=path, resume=True)
        child.send_signal(signal.SIGKILL)
    before = path.read_bytes()
    n_before = sum(record["kind"] == "result" for record in read_journal(path))
    assert 7 <= n_before < 30
    with path.open("ab") as file:
        file.write(b'{"kind": "result", "key": "torn')
    whole = audit(random_ensemble(3), gaps=gaps, journal=path, resume=True)
    assert path.read_bytes().startswith(before)
    keys = [record["key"] for record in read_journal(path) if record["kind"] == "result"]
    assert len(keys) == len(set(keys)) == whole.n_planned
    assert facts(whole) == facts(audit(random_ensemble(3), gaps=gaps))


def test_held_memory_falls_when_memory_is_freed() -> None:
    """What one count of an audit held is free for the next one."""
    before = held_memory_bytes()
    block = np.ones(40_000_000)
    during = held_memory_bytes()
    del block
    assert during - before > 300_000_000
    assert held_memory_bytes() < during - 300_000_000


@pytest.fixture(scope="module")
def whole_journal(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a finished audit's journal."""
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    audit(figure_1(), gaps=[1, 40, 80], journal=path, jobs=1)
    return path.read_bytes()


@settings(max_examples=n_examples(40))
@given(st.data())
def test_a_journal_cut_anywhere_resumes_to_the_same_audit(
    whole_journal: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever moment a crash chose: the rest is counted, nothing twice, the answers are equal."""
    length = data.draw(st.integers(0, len(whole_journal)))
    path = tmp_path_factory.mktemp("cut") / "j.jsonl"
    path.write_bytes(whole_journal[:length])
    result = audit(figure_1(), gaps=[1, 40, 80], journal=path, resume=True, jobs=1)
    assert facts(result) == facts(audit(figure_1(), gaps=[1, 40, 80]))
    assert facts(AuditResult.from_journal(path)) == facts(result)
    keys = [record["key"] for record in read_journal(path) if record["kind"] == "result"]
    assert len(keys) == len(set(keys)) == 6


def test_a_group_has_a_limit_of_its_own() -> None:
    """Its features are joined by a plus sign; with a comma, that is what is said."""
    groups = ["f0,f1", "f0"]
    result = audit(figure_1(), gaps=80, sensitive=groups, max_share="f0+f1=1,f0=0")
    limits = {each.sensitive: each.max_share for each in result.results}
    assert limits == {("f0", "f1"): Limit.share("1", ""), ("f0",): Limit.share("0", "")}
    with pytest.raises(QueryError, match=r"no share for 'f0': .* join the features .* \+"):
        audit(figure_1(), gaps=80, sensitive="f0,f1", max_share="f0,f1=1%")
    with pytest.raises(QueryError, match="'much' is not a share"):
        audit(figure_1(), gaps=80, max_share="much")
