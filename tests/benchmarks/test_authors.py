"""The authors' program beside ours: a stand-in reads what the real one would read."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.harness.instances import Instance
from benchmarks.harness.models import Training, models_of
from benchmarks.harness.records import read_lines
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
def question(tmp_path: Path) -> Instance:
    """Return a question whose count the authors publish: 564."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    (model,) = models_of(Training("diabetes", 3, (2,)), tmp_path / "cache")
    return Instance("one", model.path, "diabetes", 3, 2, model.n_guards, (2,), "2")


def test_all_programs_are_asked_the_same_question(
    tmp_path: Path, binary: Path, question: Instance
) -> None:
    """Theirs as their own script runs it; ours by both methods; all with one thread."""
    output = tmp_path / "authors.jsonl"
    options = Namespace(binary=binary, output=output, limit_seconds=60.0, memory=4 << 30)
    authors.run(options, [question])
    given = json.loads(Path(f"{binary}.asked").read_text())
    folder = Path(given.pop("f")).parent
    assert Path(given.pop("l")).parent == folder != Path.cwd()
    asked = {"s": "2", "g": "2", "p": "3", "k": "1"}
    assert given == asked | {"M": "pepin", "pepin_eps": "0.1", "pepin_delta": "0.1", "R": "42"}
    (line,) = read_lines(output)
    assert [line[who]["count"] for who in ("authors", "auto", "xcount")] == [564, 564, 564]
    text = authors.report([line])
    for who in ("authors", "auto", "xcount"):
        assert f"| {who} | 1 | 1 | 1 |" in text
    for who in ("auto", "xcount"):
        assert f"Of 1 questions that `{who}` and the authors' program answer, 1 have counts" in text
    assert authors.main([str(tmp_path / "absent"), "--output", str(output)]) == 2


def test_our_methods_run_on_one_thread_within_the_limits() -> None:
    """Each row is one method, with the paper's epsilon and delta."""
    asked = Instance("one", Path("m.json"), "diabetes", 3, 2, 9, (2,), "2")
    options = Namespace(limit_seconds=60.0, memory=1 << 30)
    for who in authors.OURS:
        command = " ".join(authors.command_of(who, Path("model.json"), asked, options))
        assert f"--method {who} --epsilon 0.1 --delta 0.1" in command
        assert "--timeout 60s --memory 1073741824B --jobs 1" in command


def test_an_answer_at_the_limit_is_kept() -> None:
    """A program that stops by itself may print its bounds; they are no answer."""
    stopped = {"count": 5, "low": 1, "high": 9, "exact": False, "stop_reason": "timeout"}
    command = ["sh", "-c", f"sleep 0.2; echo '{json.dumps(stopped)}'; exit 3"]
    found = authors.asked("auto", command, 0.1, 1 << 30, grace_seconds=60)
    assert (found["count"], found["low"], found["high"]) == (None, 1, 9)
    assert authors.answer_of("auto", json.dumps(stopped | {"exact": True}))["count"] == 5
    assert authors.answer_of("auto", "") == authors.answer_of("authors", "") == {"count": None}


def test_a_program_that_does_not_end_is_killed() -> None:
    """Its time is noted, and what it printed before is no answer."""
    command = ["sh", "-c", "echo 'Total count (x): 7'; sleep 60"]
    found = authors.asked("authors", command, 0.1, 1 << 30, grace_seconds=0.1)
    assert found["count"] is None
    assert found["wall_seconds"] < 30
