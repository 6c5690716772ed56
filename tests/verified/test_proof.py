"""The proof is complete, and the JavaScript in the package is the program that it is about."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import effort
import pytest
import question_oracle
from random_questions import question_text

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "verified"
SHIPPED = ROOT / "src" / "xcount" / "verified" / "counter.js"
TOOLS = ("coqc", "coqchk", "ocamlfind", "js_of_ocaml")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("proof")]


@dataclass(frozen=True)
class Built:
    """The folder in which all of it was built, and what Coq printed."""

    folder: Path
    said: str

    def make(self, target: str) -> str:
        command = ["make", "-C", str(FOLDER), f"BUILD={self.folder}", target]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        assert run.returncode == 0, run.stdout
        return run.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the proof and both programs anew."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}")
    folder = tmp_path_factory.mktemp("verified")
    return Built(folder, Built(folder, "").make("all"))


def test_the_theorem_depends_on_no_axiom(built: Built) -> None:
    """Coq says so of the last theorem."""
    assert "Closed under the global context" in built.said
    assert "Axioms:" not in built.said


def test_an_independent_checker_accepts_the_proof(built: Built) -> None:
    """Coqchk reads the compiled proofs again, and finds no axiom of ours."""
    axioms = built.make("check").partition("* Axioms:")[2].partition("* Constants")[0]
    assert axioms.strip() == "<none>"


def test_the_shipped_script_is_the_one_that_the_proof_builds(built: Built) -> None:
    """Byte for byte."""
    assert (built.folder / "counter.js").read_bytes() == SHIPPED.read_bytes(), (
        "src/xcount/verified/counter.js is not what the proof builds: run make verified"
    )


def test_the_native_program_counts_as_defined(built: Built) -> None:
    """On random questions of all kinds, against enumeration in Python."""
    for seed in range(effort.FIRST_SEED, effort.FIRST_SEED + effort.n_examples(100)):
        text = question_text(seed)
        command = [str(built.folder / "xcount-verified"), "-"]
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        assert int(run.stdout) == question_oracle.count(text), f"seed {seed}"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.v")), ids=lambda file: file.name)
def test_nothing_is_assumed(file: Path) -> None:
    """No proof is left out, and nothing is declared without a definition."""
    text = re.sub(r"\(\*.*?\*\)", "", file.read_text(), flags=re.DOTALL)
    assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Unset)\b", text)


def test_the_page_shows_the_specification_and_the_mutations() -> None:
    """docs/verified.md has all of Spec.v, and a row for every error that was tried."""
    page = (ROOT / "docs" / "verified.md").read_text()
    assert f"```coq\n{(FOLDER / 'Spec.v').read_text()}```" in page
    program = (FOLDER / "mutations.py").read_text()
    tried = re.findall(r"Mutation\(\s*\"([^\"]+)\"", program)
    assert len(tried) >= 20
    rows = re.findall(r"^\| ([^|]+) \| `\w+\.v`, `\w+` \|$", page, re.MULTILINE)
    assert rows == tried


@pytest.mark.scheduled
@pytest.mark.timeout(3600)
def test_every_mutation_breaks_the_proof() -> None:
    """Errors put into the algorithm do not go unnoticed; the page shows where they are found."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}")
    command = [sys.executable, str(FOLDER / "mutations.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout in (ROOT / "docs" / "verified.md").read_text()
