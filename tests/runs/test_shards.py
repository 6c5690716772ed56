"""Shards: together they are one run, whoever is killed, lost or counted twice."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import effort
import numpy as np
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import records_of, write_records
from strategies import random_ensemble

import xcount
from xcount.answers.result import Verdict
from xcount.errors import JournalError, JournalWarning, QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.runs import batch
from xcount.runs.audit import AuditResult, audit
from xcount.runs.compare import CompareResult, compare

AT_EACH_TIME = re.compile(r'"(seconds|peak_memory_bytes)": [^,}]*|"created": "[^"]*"')


def without_times(result: AuditResult | CompareResult) -> str:
    """Return the JSON of a result without what differs from run to run."""
    return AT_EACH_TIME.sub("", result.to_json())


def page_without_times(result: AuditResult) -> str:
    """Return the report of an audit without what differs from run to run."""
    counts = [replace(count, seconds=0.0, peak_memory_bytes=0) for count in result.results]
    return replace(result, created="", results=tuple(counts)).to_html()


def sharded(
    folder: Path, of: int, ask: Callable[..., Any], numbers: Sequence[int] = ()
) -> list[Path]:
    """Run shards one after the other; return their journals."""
    paths = []
    for number in numbers or range(1, of + 1):
        path = folder / f"s{number}.jsonl"
        ask(shard=f"{number}/{of}", journal=path)
        paths.append(path)
    return paths


@settings(max_examples=effort.n_examples(6))
@given(st.integers(0, 10_000), st.integers(1, 4), st.randoms(use_true_random=False))
def test_shards_together_are_the_audit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, of: int, order: random.Random
) -> None:
    """In any order, the same JSON; each count is in one shard."""
    ensemble = random_ensemble(seed)
    if xcount.Grid.of(ensemble).n_regions == 1:
        return

    def ask(**more: Any) -> AuditResult:
        return audit(
            ensemble,
            gaps=[0, "0.25"],
            distances=[1, "any"],
            max_share=0.1,
            n_witnesses=1,
            explain=False,
            **more,
        )

    paths = sharded(tmp_path_factory.mktemp("shards"), of, ask)
    kept = [record["key"] for path in paths for record in records_of(path) if "key" in record]
    order.shuffle(paths)
    whole, merged = ask(), AuditResult.from_journals(paths)
    assert without_times(merged) == without_times(whole)
    assert len(kept) == len(set(kept)) == whole.n_planned


@pytest.mark.parametrize("of", [1, 3, 50])
def test_shards_together_are_the_comparison(tmp_path: Path, of: int) -> None:
    """All models of a question stay together; there may be more shards than counts."""

    def ask(**more: Any) -> CompareResult:
        models = [random_ensemble(1), random_ensemble(1), figure_1()]
        names = [f"f{i}" for i in range(8)]
        same = [
            replace(m, features=tuple(replace(f, name=n) for f, n in zip(m.features, names)))  # noqa: B905
            for m in models
        ]
        return compare(same, sensitive=["f0", "f1"], gaps=[0, 1], max_ratio=2, **more)

    paths = sharded(tmp_path, of, ask)
    assert without_times(CompareResult.from_journals(paths)) == without_times(ask())
    with pytest.raises(JournalError, match="not the journal of audit, but of compare"):
        AuditResult.from_journals(paths)


def ask_figure_1(**more: Any) -> AuditResult:
    """Audit the paper's example: four counts, all below the limit."""
    return audit(figure_1(), **{"gaps": [60, 80], "max_share": 1, **more})


def test_a_shard_says_that_it_is_one(tmp_path: Path) -> None:
    """Its own result is whole, and names the shard; so does its journal."""
    path = tmp_path / "s.jsonl"
    result = ask_figure_1(shard="1/2", journal=path)
    assert (result.n_planned, result.is_whole, result.exit_status) == (2, True, 0)
    assert result.notes == AuditResult.from_journal(path).notes
    assert "shard 1/2: 2 of the 4 counts of the run" in result.notes[0]
    assert "Shard 1/2: 2 of the 4 counts of the run" in result.to_html()


def test_a_lost_shard_is_named(tmp_path: Path) -> None:
    """Without its counts the verdict is open, whatever the others say."""
    paths = sharded(tmp_path, 4, ask_figure_1, [1, 4])
    with pytest.warns(JournalWarning, match="missing: shard 2/4, 3/4; run it"):
        merged = AuditResult.from_journals(paths)
    assert (merged.n_planned, len(merged.results)) == (4, 2)
    assert merged.verdict is Verdict.UNDECIDED
    assert merged.exit_status == 3
    assert "Missing: shard 2/4, 3/4" in merged.to_html()


def test_an_unfinished_shard_is_named(tmp_path: Path) -> None:
    """Wherever its journal was cut; its whole lines are used."""
    paths = sharded(tmp_path, 2, ask_figure_1)
    lines = paths[1].read_bytes().splitlines(keepends=True)
    for n_lines, n_left in ((1, 2), (2, 1)):
        paths[1].write_bytes(b"".join(lines[:n_lines]) + lines[n_lines][:-20])
        with pytest.warns(
            JournalWarning, match=rf"unfinished: shard 2/2 \({n_left} counts? left\)"
        ):
            assert len(AuditResult.from_journals(paths).results) == 4 - n_left
    paths[1].write_bytes(b"")
    with pytest.warns(JournalWarning) as told:
        AuditResult.from_journals(paths)
    assert [str(each.message).partition(":")[0] for each in told] == [
        f"{paths[1]} is empty",
        "missing",
    ]
    ask_figure_1(shard="2/2", journal=paths[1], resume=True)
    assert without_times(AuditResult.from_journals(paths)) == without_times(ask_figure_1())


def test_doubled_shards_make_no_difference(tmp_path: Path) -> None:
    """The same file twice, or a shard that was run twice; a complete count wins."""
    paths = sharded(tmp_path, 2, ask_figure_1)
    again = tmp_path / "again.jsonl"
    ask_figure_1(shard="2/2", journal=again)
    stopped = tmp_path / "stopped.jsonl"
    ask_figure_1(shard="2/2", journal=stopped, timeout=0)
    whole = without_times(ask_figure_1())
    page = page_without_times(AuditResult.from_journals([again, *paths]))
    assert page == page_without_times(ask_figure_1())
    for more in ([], [again], [stopped], [stopped, *paths, paths[0]]):
        assert without_times(AuditResult.from_journals([*paths, *more])) == whole
        assert without_times(AuditResult.from_journals([*more, *paths])) == whole


def test_complete_counts_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """One of them cannot be right."""
    (path,) = sharded(tmp_path, 2, ask_figure_1, [1])
    other = tmp_path / "other.jsonl"
    run, first, *more = records_of(path)
    wrong = {**first["result"]}
    for name in ("count", "low", "high"):
        wrong[name] = first["result"][name] + 1
    wrong["share"] = wrong["count"] / wrong["n_regions"]
    del wrong["explanation"], wrong["profile"]
    write_records(other, [run, {**first, "result": wrong}, *more])
    with pytest.raises(JournalError, match="contradict each other"):
        AuditResult.from_journals([path, other])


def other_model() -> Ensemble:
    """Return another model of the same features."""
    return ensemble_of((0, 3.0, (1, 2.0, 1.0, 2.0), 7.0))


PEOPLE = np.array([[1.0, 1.0], [5.0, 5.0]])


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda **more: ask_figure_1(**more, gaps=[60, 70]), "asks other questions"),
        (lambda **more: ask_figure_1(**more, where="f1 >= 0"), "asks other questions"),
        (
            lambda **more: ask_figure_1(**more, seed=1),
            "asks other questions, or has another.* seed",
        ),
        (lambda **more: ask_figure_1(**more, max_share="0.5"), "has other limits"),
        (lambda **more: ask_figure_1(**more, n_witnesses=1), "asks for other examples"),
        (lambda **more: ask_figure_1(**more, explain=False), "other examples or explanations"),
        (lambda **more: ask_figure_1(**more, data=PEOPLE), r"with other data \(data: sha256 None"),
        (lambda **more: audit(other_model(), **more, gaps=[60, 80]), "is about another model"),
        (
            lambda **more: compare([figure_1()] * 2, **more, gaps=[60, 80]),
            "is the journal of another",
        ),
        (lambda **more: ask_figure_1(**{**more, "shard": "2/3"}), "is one of 3 shards, not of 2"),
    ],
)
def test_shards_of_other_runs_are_refused(
    tmp_path: Path, ask: Callable[..., Any], said: str
) -> None:
    """By a line that names the file, and says what differs."""
    first, second = tmp_path / "s1.jsonl", tmp_path / "s2.jsonl"
    ask_figure_1(shard="1/2", journal=first)
    ask(shard="2/2", journal=second)
    for paths in ([first, second], [second, first]):
        with pytest.raises(JournalError) as error:
            AuditResult.from_journals(paths)
        assert str(error.value).endswith("; merge shards of one run")
    assert re.search(said, _refusal([first, second])), _refusal([first, second])


def _refusal(paths: Sequence[Path]) -> str:
    with pytest.raises(JournalError) as error:
        AuditResult.from_journals(paths)
    return str(error.value)


def test_a_limit_may_differ(tmp_path: Path) -> None:
    """A shard that ran out of time may be run again with more of it."""
    paths = sharded(tmp_path, 2, ask_figure_1, [1])
    ask_figure_1(shard="2/2", journal=tmp_path / "s2.jsonl", timeout="5m", memory="2GB")
    merged = AuditResult.from_journals([*paths, tmp_path / "s2.jsonl"])
    assert (merged.is_whole, merged.notes) == (True, ())


def test_other_versions_are_named(tmp_path: Path) -> None:
    """They may compute other digits."""
    paths = sharded(tmp_path, 2, ask_figure_1)
    run, *counts = records_of(paths[0])
    write_records(paths[0], [{**run, "versions": {**run["versions"], "numpy": "1.0"}}, *counts])
    with pytest.warns(JournalWarning, match=r"different versions: .*numpy 1\.0"):
        AuditResult.from_journals(paths)


def test_journals_that_are_no_shards_are_refused(tmp_path: Path) -> None:
    """Each with what to do."""
    path = tmp_path / "whole.jsonl"
    ask_figure_1(journal=path)
    assert "written without --shard; xcount report renders it" in _refusal([path])
    assert "name the journals" in _refusal([])
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.warns(JournalWarning):
        assert "nothing was saved" in _refusal([empty])
    assert "cannot read" in _refusal([tmp_path / "none.jsonl"])


@pytest.mark.parametrize(
    "about",
    [
        "3/20",
        {},
        {"number": 0, "of": 2, "keys": [], "plan": ""},
        {"number": 3, "of": 2, "keys": [], "plan": ""},
        {"number": True, "of": 2, "keys": [], "plan": ""},
        {"number": 1, "of": 2, "keys": [1], "plan": ""},
        {"number": 1, "of": 2, "keys": []},
    ],
)
def test_a_malformed_shard_is_refused(tmp_path: Path, about: object) -> None:
    """With matching checksums, too."""
    (path,) = sharded(tmp_path, 2, ask_figure_1, [1])
    run, *counts = records_of(path)
    write_records(path, [{**run, "shard": about}, *counts])
    assert "line 1 of" in _refusal([path])


def test_a_journal_belongs_to_one_shard(tmp_path: Path) -> None:
    """Another shard is not written into it, nor is a whole run."""
    path = tmp_path / "s.jsonl"
    ask_figure_1(shard="1/2", journal=path)
    for other, said in (("2/2", "not of shard 2/2"), (None, "not of a run without --shard")):
        with pytest.raises(JournalError, match=f"is the journal of shard 1/2, {said}"):
            ask_figure_1(shard=other, journal=path, resume=True)


@pytest.mark.parametrize(
    "text", ["0/2", "3/2", "1", "a/b", "1/2/3", "-1/2", "1/1000000", "1.0/2", ""]
)
def test_shards_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    """Before anything is counted."""
    with pytest.raises(QueryError, match="expected K/N with K from 1 to N"):
        ask_figure_1(shard=text, journal=tmp_path / "s.jsonl")


def test_a_shard_needs_a_journal() -> None:
    """Otherwise its counts were lost."""
    with pytest.raises(QueryError, match="needs --journal"):
        ask_figure_1(shard="1/2")


def test_the_commands(tmp_path: Path, figure_1_file: str, xcount_command: Command) -> None:
    """Audit and compare with --shard, then merge; outputs are as those of one run."""
    for command in (["audit", figure_1_file], ["compare", figure_1_file, figure_1_file]):
        asked = [*command, "--gap", "60,80"]
        journals = [tmp_path / f"{command[0]}-{k}.jsonl" for k in (1, 2)]
        for k, path in enumerate(journals, start=1):
            run = xcount_command(*asked, "--shard", f"{k}/2", "--journal", path)
            assert run.status == 0
            assert f"Shard {k}/2:" in run.out
        whole = xcount_command(*asked, "--json")
        merged = xcount_command("merge", *journals, "--json")
        assert AT_EACH_TIME.sub("", merged.out) == AT_EACH_TIME.sub("", whole.out)
        page = tmp_path / "merged.html"
        assert xcount_command("merge", *journals, "--html", page).status == 0
        assert page.read_text().startswith("<!doctype html>")
        lost = xcount_command("merge", journals[0])
        assert lost.status == 3
        assert lost.err == "xcount: note: missing: shard 2/2; run it, and merge again\n"
        assert xcount_command("merge", *journals, "--html", journals[0]).status == 2
    refused = xcount_command("merge", journals[0], tmp_path / "audit-1.jsonl")
    assert (refused.status, refused.err.count("\n")) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("of", [3, pytest.param(20, marks=pytest.mark.scheduled)])
def test_processes_killed_at_random_and_started_again(
    tmp_path: Path, figure_1_file: str, of: int
) -> None:
    """A shell loop's work: nothing is lost, and the digits are those of one run."""
    chance = random.Random(effort.FIRST_SEED)
    asked = ["audit", figure_1_file, "--gap", "60,65,70,75,80", "--max-share", "20%"]
    asked += ["--distance", "1,2,3,4,5,6,7,8,9,any", "--jobs", "1"]
    run = [sys.executable, "-m", "xcount", *asked]
    kills_left = dict.fromkeys(range(1, of + 1), 2)
    running: dict[int, subprocess.Popen[bytes]] = {}
    waiting = list(kills_left)
    while waiting or running:
        while waiting and len(running) < 4:
            number = waiting.pop(0)
            own = ["--shard", f"{number}/{of}", "--journal", f"s{number}.jsonl", "--resume"]
            running[number] = subprocess.Popen(
                [*run, *own], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        number = chance.choice(list(running))
        process = running.pop(number)
        if kills_left[number]:
            kills_left[number] -= 1
            _kill_some_time(process, tmp_path / f"s{number}.jsonl", chance)
            waiting.append(number)
        else:
            _, told = process.communicate()
            assert process.returncode in (0, 1), told.decode()
    paths = [tmp_path / f"s{number}.jsonl" for number in range(1, of + 1)]
    chance.shuffle(paths)
    merged = AuditResult.from_journals(paths)
    printed = subprocess.run([*run, "--json"], stdout=subprocess.PIPE, check=False, cwd=tmp_path)
    assert AT_EACH_TIME.sub("", merged.to_json()) == AT_EACH_TIME.sub(
        "", printed.stdout.decode().strip()
    )
    assert (merged.is_whole, merged.notes) == (True, ())
    assert merged.exit_status == printed.returncode == 1


def _kill_some_time(process: subprocess.Popen[bytes], path: Path, chance: random.Random) -> None:
    """Kill a process once its journal has some number of bytes more, or when it has ended."""
    least = (path.stat().st_size if path.exists() else 0) + chance.choice([0, 1, 3000, 9000])
    while not path.exists() or path.stat().st_size < least:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            break
    process.kill()
    process.communicate()


def test_a_killed_run_leaves_no_verdict_by_an_older_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has to be counted again is judged by the new limit until then."""

    def ask(limit: float, **more: Any) -> AuditResult:
        return audit(figure_1(), gaps=[80], max_share=limit, explain=False, **more)

    paths = sharded(tmp_path, 2, lambda **more: ask(0.99, **more))
    assert AuditResult.from_journals(paths).verdict is Verdict.PASS
    monkeypatch.setattr(batch, "_is_done", lambda *_: False)
    for path in paths:
        n_lines = len(path.read_bytes().splitlines())
        ask(0.01, shard=f"{path.stem[1:]}/2", journal=path, resume=True)
        lines = path.read_bytes().splitlines(keepends=True)
        assert len(lines) == n_lines + 3  # the run, the old count, the new count
        path.write_bytes(b"".join(lines[:-1]))
    merged = AuditResult.from_journals(paths)
    assert {each.verdict for each in merged.results} == {Verdict.FAIL}
    assert merged.verdict is Verdict.FAIL
