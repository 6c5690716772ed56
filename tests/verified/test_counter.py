"""The verified counter counts what the definition says, and refuses what is not a question."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import effort
import pytest
import question_grammar
import question_oracle
from random_questions import question_text

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "src" / "xcount" / "verified" / "counter.js"
NATIVE = ROOT / "build" / "verified" / "xcount-verified"
NODE = shutil.which("node") or shutil.which("nodejs")
FIGURE_1 = (ROOT / "docs" / "question-format.md").read_text().split("```text\n")[1].split("```")[0]
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_native = pytest.mark.skipif(not NATIVE.exists(), reason="not built: make verified")

MANY = """
const count = require(process.argv[1])
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"))
console.log(JSON.stringify(texts.map(text => count(text))))
"""

Outcome = int | None
"""A count, or None for a text that is refused."""


def by_node(texts: Sequence[str]) -> list[Outcome]:
    """Return what the exported function says of texts."""
    assert NODE is not None
    run = subprocess.run(
        [NODE, "-e", MANY, str(SCRIPT)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert all(each["status"] in ("counted", "unreadable") for each in found)
    return [int(each["count"]) if each["status"] == "counted" else None for each in found]


def by_command(command: Sequence[str], data: bytes) -> Outcome:
    """Return what a program says of one text on its standard input."""
    run = subprocess.run([*command, "-"], input=data, capture_output=True, check=False)
    if run.returncode == 0:
        assert run.stderr == b""
        return int(run.stdout)
    assert run.returncode == 2
    assert run.stdout == b""
    assert len(run.stderr.splitlines()) == 1
    return None


def by_native(texts: Sequence[str]) -> list[Outcome]:
    """Return what the native program says of texts."""
    return [by_command([str(NATIVE)], text.encode()) for text in texts]


PROGRAMS = [
    pytest.param(by_node, marks=needs_node, id="javascript"),
    pytest.param(by_native, marks=needs_native, id="native"),
]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("part", range(10))
def test_random_questions_are_counted_as_defined(
    program: Callable[[Sequence[str]], list[Outcome]], part: int
) -> None:
    """Questions of all kinds, against enumeration in Python."""
    n = effort.n_examples(60) if effort.PROFILE != "scheduled" else 10_000
    if program is by_native:
        n = min(n, 1000)
    seeds = [effort.FIRST_SEED + part * n + i for i in range(n)]
    texts = [question_text(seed) for seed in seeds]
    truth = [question_oracle.count(text) for text in texts]
    wrong = [
        (seed, found, true)
        for seed, found, true in zip(seeds, program(texts), truth, strict=True)
        if found != true
    ]
    assert wrong == []
    assert any(truth), "some random questions have sensitive regions"


def mutated(text: str, rng: Random) -> str:
    """Return a text with one small change: a character, a word, a line."""
    kind = rng.choice(("character", "word", "line", "cut", "number"))
    if kind == "character":
        place = rng.randrange(len(text))
        new = rng.choice(
            ("", " ", "\n", "-", "#", "\t", "\r", "0", "1", "9", "l", "n", text[place])
        )
        return text[:place] + new + text[place + rng.choice((0, 1)) :]
    if kind == "cut":
        return text[: rng.randrange(len(text))]
    if kind == "line":
        lines = text.splitlines(keepends=True)
        place = rng.randrange(len(lines))
        lines[place : place + 1] = rng.choice(([], [lines[place]] * 2, ["# é\n", lines[place]]))
        return "".join(lines)
    words = text.split(" ")
    numbers = [i for i, word in enumerate(words) if word.lstrip("-").isdigit()]
    place = rng.choice(numbers) if kind == "number" else rng.randrange(len(words))
    number = rng.choice(("0", "1", "2", "-1", "00", "+1", "-0", str(2**30), "9" * 1001, "1e3"))
    words[place : place + 1] = rng.choice(([number], [], [words[place]] * 2))
    return " ".join(words)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_mutated_question_is_refused_or_counts_what_it_says(
    program: Callable[[Sequence[str]], list[Outcome]],
) -> None:
    """Every text is read as the grammar says, or refused in one line."""
    rng = Random(effort.FIRST_SEED)
    n = effort.n_examples(300)
    sources = [FIGURE_1, *(question_text(seed) for seed in range(60))]
    texts = [mutated(rng.choice(sources), rng) for _ in range(n)]
    found = program(texts)
    truth = [
        question_oracle.count(text) if question_grammar.is_question(text.encode()) else None
        for text in texts
    ]
    assert [(t, a, b) for t, a, b in zip(texts, found, truth, strict=True) if a != b] == []
    assert None in found
    assert effort.PROFILE == "quick" or any(outcome is not None for outcome in found)


@needs_node
def test_the_script_is_a_command(tmp_path: Path) -> None:
    """It prints the count of figure 1, or one line and the status of an error or a limit."""
    assert NODE is not None
    file = tmp_path / "question.txt"
    file.write_text(FIGURE_1)

    def run(*arguments: object) -> tuple[int, str, int]:
        command = [str(NODE), str(SCRIPT), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, len(done.stderr.splitlines())

    assert run(file) == (0, "2\n", 0)
    assert run("-states", 1000, "-seconds", 60, "-megabytes", 4000, file) == (0, "2\n", 0)
    assert run("-states", 1, file) == (3, "", 1)
    assert run(tmp_path / "missing.txt") == (2, "", 1)
    assert run("-unknown", file) == (2, "", 1)
    file.write_text(FIGURE_1.replace("gap 80", "gap eighty"))
    assert run(file) == (2, "", 1)


@needs_node
def test_bytes_that_are_not_text_are_refused() -> None:
    """A zero byte or a high byte is an error outside of comments."""
    command = [str(NODE), str(SCRIPT)]
    data = FIGURE_1.encode()
    assert by_command(command, data) == 2
    assert by_command(command, b"# \xff\n" + data) == 2
    for bad in (b"\x00", b"\xff", b"\xef\xbb\xbf"):
        assert by_command(command, bad + data) is None
        assert by_command(command, data + bad) is None
