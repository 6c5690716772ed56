"""The authors' program beside ours: a stand-in reads what the real one would read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.harness.instances import Instance
from benchmarks.harness.models import Training, models_of
from experiments import authors

STAND_IN = """
import argparse, json, sys
from pathlib import Path

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("-f", "-s", "-g", "-p", "-k", "-M", "--pepin-eps", "--pepin-delta", "-R", "-l"):
    parser.add_argument(name, required=True)
options = parser.parse_args()


def check(node):
    assert type(node["nodeid"]) is int
    if "leaf" in node:
        assert type(node["leaf"]) in (int, float)
        return
    assert [type(node[name]) for name in ("split", "yes", "no")] == [int, int, int]
    assert type(node["split_condition"]) in (int, float)
    assert {child["nodeid"] for child in node["children"]} == {node["yes"], node["no"]}
    for child in node["children"]:
        check(child)


for tree in json.loads(Path(options.f).read_text()):
    check(tree)
Path(options.l).write_text("log")
Path(sys.argv[0] + ".asked").write_text(json.dumps(vars(options)))
print(f"Total count ({options.M} counting): 564")
"""


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Return a program that takes the options and the dumps that the authors' program takes."""
    path = tmp_path / "program"
    path.write_text(f"#!{sys.executable}\n{STAND_IN}")
    path.chmod(0o755)
    return path


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    """Return the only question of the suite: the authors publish its count, 564."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    (model,) = models_of(Training("diabetes", 3, (2,)), tmp_path / "cache")
    question = Instance("one", model.path, "diabetes", 3, 2, model.n_guards, (2,), "2")
    monkeypatch.setattr(authors, "paper_instances", lambda *_: [question])
    return question


@pytest.mark.usefixtures("asked")
def test_all_programs_are_asked_the_same_question(
    tmp_path: Path, binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Theirs as their own script runs it; ours by both methods; all with one thread."""
    output = ["--output", str(tmp_path / "authors.jsonl")]
    assert authors.main([str(binary), "--sample", "1", *output]) == 0
    given = json.loads(Path(f"{binary}.asked").read_text())
    folder = Path(given.pop("f")).parent
    assert Path(given.pop("l")).parent == folder != Path.cwd()
    question = {"s": "2", "g": "2", "p": "3", "k": "1"}
    assert given == question | {"M": "pepin", "pepin_eps": "0.1", "pepin_delta": "0.1", "R": "42"}
    (line,) = authors.read(tmp_path / "authors.jsonl")
    assert [line[who]["count"] for who in ("authors", "auto", "xcount")] == [564, 564, 564]
    text = capsys.readouterr().out
    for who in ("authors", "auto", "xcount"):
        assert f"| {who} | 1 | 1 | 1 |" in text
    for who in ("auto", "xcount"):
        assert f"Of 1 questions that `{who}` and the authors' program answer, 1 have counts" in text
    assert authors.main([str(tmp_path / "absent"), *output]) == 2


def test_our_methods_run_on_one_thread_within_the_limits(tmp_path: Path, asked: Instance) -> None:
    """Each row is one method, with the paper's epsilon and delta."""
    arguments = ["program", "--limit-seconds", "60", "--memory", "1G"]
    options = authors.command_line().parse_args(arguments)
    for who in authors.OURS:
        command = " ".join(authors.command_of(who, tmp_path / "model.json", asked, options))
        assert f"--method {who} --epsilon 0.1 --delta 0.1" in command
        assert "--timeout 60s --memory 1073741824B --jobs 1" in command


def test_an_answer_at_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that stops by itself may print its bounds; they are no answer."""
    stopped = {"count": 5, "low": 1, "high": 9, "exact": False, "stop_reason": "timeout"}
    monkeypatch.setattr(authors, "GRACE_SECONDS", 60.0)
    command = f"sleep 0.2; echo '{json.dumps(stopped)}'; exit 3"
    text, _ = authors.measured(["sh", "-c", command], 0.1, 1 << 30)
    kept = {"count": None, "low": 1, "high": 9, "stop_reason": "timeout"}
    assert authors.answer_of("auto", text) == kept
    assert authors.answer_of("auto", json.dumps(stopped | {"exact": True}))["count"] == 5
    assert authors.answer_of("auto", "") == authors.answer_of("authors", "") == {"count": None}


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is noted, and what it printed before is no answer."""
    monkeypatch.setattr(authors, "GRACE_SECONDS", 0.1)
    text, cost = authors.measured(["sh", "-c", "echo begun; sleep 60"], 0.1, 1 << 30)
    assert text == ""
    assert cost.wall_seconds < 30
