"""``xcount encode``: the question as DIMACS."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command

from xcount.baselines.cnf.encode import encode
from xcount.errors import QueryError
from xcount.model.examples import figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def test_the_formula_goes_to_standard_output(xcount_command: Command, figure_1_file: str) -> None:
    """A header, the projection set, and as many clauses as the header says."""
    run = xcount_command("encode", figure_1_file, "--sensitive", "age", "--gap", "80")
    assert (run.status, run.err) == (0, "")
    lines = run.out.splitlines()
    header = next(line for line in lines if line.startswith("p cnf "))
    clauses = [line for line in lines if not line.startswith(("c", "p"))]
    assert int(header.split()[3]) == len(clauses)
    assert all(line.endswith(" 0") or line == "0" for line in clauses)
    assert "c p show 1 2 3 4 0" in lines
    assert "c variable 1: age < 3.0" in lines


def test_the_formula_goes_to_a_file(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """The same text as on standard output."""
    question = ["encode", figure_1_file, "--sensitive", "age,sex", "--gap", "80"]
    question += ["--distance", "2", "--precision", "1", "--missing", "cell"]
    path = tmp_path / "question.cnf"
    run = xcount_command(*question, "--output", path)
    assert (run.status, run.out, run.err) == (0, "", "")
    assert path.read_text() == xcount_command(*question).out
    assert re.search(r"sensitive age, sex; distance 2; gap 80; leaves 1 decimals", path.read_text())


def test_flips_have_no_formula(xcount_command: Command, figure_1_file: str) -> None:
    """A formula of gap 0 would be one of another question."""
    run = xcount_command("encode", figure_1_file, "--sensitive", "age", "--flip")
    assert (run.status, run.out) == (2, "")
    assert "No such option" in run.err
    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", flip=True))
    with pytest.raises(QueryError, match="no formula for flips"):
        encode(problem)


def test_errors_are_one_line(xcount_command: Command, figure_1_file: str, tmp_path: Path) -> None:
    """A wrong feature, and a folder that does not exist."""
    run = xcount_command("encode", figure_1_file, "--sensitive", "agee", "--gap", "80")
    assert run.status == 2
    assert "did you mean 'age'" in run.err
    nowhere = tmp_path / "nowhere" / "x.cnf"
    run = xcount_command(
        "encode", "absent.json", "--sensitive", "age", "--gap", "80", "--output", nowhere
    )
    assert run.status == 2
    assert run.err.count("\n") == 1
    assert "there is no folder" in run.err  # before the model is looked for
