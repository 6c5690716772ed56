"""Domains on the command line: the same words in every command, and kept with the answers."""

from __future__ import annotations

import json
import pickle
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from model_files import Nested, write_model

import xcount
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult

NAMES = ["age", "race_White", "race_Black", "race_Other"]
TREES: tuple[Nested, ...] = (
    (0, 30.0, (1, 0.5, 0.0, 2.0), (2, 0.5, 1.0, 5.0)),
    (0, 50.0, 0.0, (3, 0.5, 0.0, 3.0)),
)
GROUP = ("--one-hot", "race=race_White,race_Black,race_Other")
WHERE = ("--where", "age >= 25")
SAID = {"one_hot": {"race": NAMES[1:]}, "where": ["age >= 25"], "rule": []}


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Return the file of a model of an age and a one-hot group."""
    return write_model(tmp_path / "model.json", TREES, NAMES)


@pytest.fixture
def people(tmp_path: Path) -> str:
    """Return the file of two inputs of the model."""
    path = tmp_path / "people.csv"
    path.write_text(",".join(NAMES) + "\n27,1,0,0\n60,0,0,1\n")
    return str(path)


def printed(run: Any) -> dict[str, Any]:
    """Return what a command printed with --json."""
    assert (run.status, run.err) == (0, "")
    found: dict[str, Any] = json.loads(run.out)
    return found


def test_a_count_says_which_regions_exist(xcount_command: Command, model: str) -> None:
    """9 regions, of 24 combinations of cells: as options, and as a file."""
    asked = ("count", model, "--sensitive", "race", "--gap", "1", "--json")
    assert (
        printed(xcount_command("count", model, "--sensitive", "age", "--gap", 1, "--json"))[
            "n_regions"
        ]
        == 24
    )
    found = printed(xcount_command(*asked, *GROUP, *WHERE))
    assert (found["n_regions"], found["sensitive"], found["domain"]) == (9, ["race"], SAID)
    assert xcount.CountResult.from_dict(found).domain == Domain.of(SAID)
    assert found["model"]["n_features"] == 4
    table = xcount_command(*asked[:-1], *GROUP, *WHERE)
    assert "race = one of race_White, race_Black, race_Other; age >= 25" in " ".join(
        table.out.replace("│", " ").split()
    )


def test_a_file_says_the_same(xcount_command: Command, model: str, tmp_path: Path) -> None:
    """And options add to it."""
    path = tmp_path / "domain.toml"
    path.write_text('[one-hot]\nrace = ["race_White", "race_Black", "race_Other"]\n')
    asked = ("count", model, "--sensitive", "race", "--gap", "1", "--json")
    found = printed(xcount_command(*asked, "--domain", path, *WHERE))
    assert (found["n_regions"], found["domain"]) == (9, SAID)


def test_a_rule_leaves_out_what_breaks_it(
    xcount_command: Command, model: str, tmp_path: Path
) -> None:
    """As an option, in a file, and kept by an audit; a formula knows none."""
    rule = "age < 30 -> race == White"
    asked = ("--sensitive", "race", "--gap", "1", *GROUP)
    found = printed(xcount_command("count", model, *asked, "--rule", rule, "--json"))
    assert (found["n_regions"], found["domain"]["rule"]) == (7, [rule])
    path = tmp_path / "rules.toml"
    path.write_text(f'rule = ["{rule}"]\n')
    again = printed(xcount_command("audit", model, *asked, "--domain", path, "--json"))
    assert [result["count"] for result in again["results"]] == [found["count"]]
    refused = xcount_command("encode", model, *asked, "--rule", rule)
    assert (refused.status, "knows no rules" in refused.err) == (2, True)
    unread = xcount_command("count", model, *asked, "--rule", "age < 30")
    assert (unread.status, "'COND -> COND'" in unread.err) == (2, True)


def test_measures_are_those_of_the_domain(xcount_command: Command, model: str, people: str) -> None:
    """Rows have the model's columns; rows outside are not asked about."""
    asked = ("count", model, "--sensitive", "race", "--gap", "1", "--json", *GROUP)
    weighed = ("--measure", "rows,volume,marginals", "--data", people)
    measures = printed(xcount_command(*asked, "--where", "age >= 40", *weighed))["details"]
    assert measures["measures"]["rows"]["outside"] == 1
    assert measures["measures"]["rows"]["left_out"] == 0
    assert measures["measures"]["rows"]["share"] == 1.0
    assert measures["measures"]["volume"]["bounds"] == {"age": [27.0, 60.0]}


def test_rows_that_break_a_group_count_at_their_worst(
    xcount_command: Command, model: str, tmp_path: Path
) -> None:
    """They are left out, the reason is said, and no limit passes without them."""
    path = tmp_path / "people.csv"
    rows = ["27,1,0,0", "60,0,0,0", "60,1,1,0", "60,,1,0", "20,0,1,0"]
    path.write_text("\n".join([",".join(NAMES), *rows]) + "\n")
    asked = ("--sensitive", "race", "--gap", "100", *GROUP, "--data", path, "--judge", "rows")
    run = xcount_command("count", model, *asked, "--max-share", "59%", "--json")
    found = json.loads(run.out)
    rows_found = found["details"]["measures"]["rows"]
    assert (run.status, found["verdict"]) == (3, "UNDECIDED")
    assert [rows_found[key] for key in ("n_rows", "outside", "left_out")] == [5, 0, 3]
    assert (rows_found["low"], rows_found["high"]) == (0.0, 0.6)
    reason = "the one-hot group race is broken: not exactly one of its columns is 1"
    assert rows_found["left_out_reasons"] == {reason: 3}
    assert rows_found["left_out_rows"] == [1, 2, 3]
    assert xcount_command("count", model, *asked, "--max-share", "60%").status == 0
    pages = ("--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    assert xcount_command("audit", model, *asked, "--max-share", "59%", *pages).status == 3
    for page in pages[1::2]:
        assert "3 left out" in Path(page).read_text()


def test_a_group_that_no_row_belongs_to_is_an_error(
    xcount_command: Command, model: str, tmp_path: Path
) -> None:
    """The columns are no group of this table; if all are 0, +none is the remedy."""
    path = tmp_path / "people.csv"
    path.write_text(",".join(NAMES) + "\n27,0,0,0\n60,0,0,0\n")
    asked = ("count", model, "--sensitive", "race", "--gap", "1", "--data", path)
    run = xcount_command(*asked, *GROUP)
    assert run.status == 2
    assert "2 of 2 rows" in run.err
    assert "add ,+none to the group" in run.err


def test_an_audit_keeps_its_domain(xcount_command: Command, model: str, tmp_path: Path) -> None:
    """In JSON, the journal and reports; another domain is another question."""
    journal = tmp_path / "audit.jsonl"
    asked = ("audit", model, "--gap", "1", "--json", "--journal", journal, *GROUP)
    found = printed(xcount_command(*asked, *WHERE))
    assert found["domain"] == SAID
    assert [result["domain"] for result in found["results"]] == [SAID, SAID]
    kept = AuditResult.from_journal(journal)
    assert kept.domain == Domain.of(SAID)
    assert "age &gt;= 25" in kept.to_html()
    assert "age &gt;= 25" in kept.to_markdown()
    again = printed(xcount_command(*asked, "--resume", *WHERE))
    assert again["results"] == found["results"]
    other = printed(xcount_command(*asked, "--resume", "--where", "age < 50"))
    assert [result["n_regions"] for result in other["results"]] == [6, 6]
    assert printed(xcount_command("report", journal, "--json"))["domain"]["where"] == ["age < 50"]


def test_models_are_compared_in_one_domain(
    xcount_command: Command, model: str, tmp_path: Path
) -> None:
    """Also where their columns have another order."""
    order = [3, 0, 2, 1]
    place = {old: new for new, old in enumerate(order)}

    def moved(node: Nested) -> Nested:
        if not isinstance(node, tuple):
            return node
        return (place[node[0]], node[1], moved(node[2]), moved(node[3]))

    other = write_model(tmp_path / "o.json", [moved(t) for t in TREES], [NAMES[i] for i in order])
    journal = tmp_path / "compare.jsonl"
    asked = ("--sensitive", "race", "--gap", "1", "--journal", journal, "--json")
    found = printed(xcount_command("compare", model, other, *asked, *GROUP, *WHERE))
    assert (found["n_regions"], found["domain"]) == (9, SAID)
    first, second = found["rows"][0]["results"]
    assert first["count"] == second["count"] > 0
    assert "age &gt;= 25" in CompareResult.from_journal(journal).to_html()


def test_witnesses_show_the_group_by_name(xcount_command: Command, model: str, people: str) -> None:
    """Both sides lie in the domain, and near a row."""
    asked = ("witness", model, "--sensitive", "race", "--gap", "1", *GROUP, *WHERE)
    found = printed(xcount_command(*asked, "-n", "5", "--json"))["witnesses"]
    for witness in found:
        assert [*witness["point"]] == ["age", "race"]
        assert witness["labels"]["race"] != witness["other_labels"]["race"]
        assert witness["point"]["age"] >= 25
    near = printed(xcount_command(*asked, "--near", people, "--json"))["witnesses"]
    assert [witness["point"]["age"] for witness in near] == [27.0, 60.0]
    younger = printed(xcount_command(*asked, "--where", "age < 40", "--near", people, "--json"))
    assert [witness["row"] for witness in younger["witnesses"]] == [0]
    outside = xcount_command(*asked, "--where", "age > 70", "--near", people)
    assert (outside.status, "all 2 rows to look near are outside" in outside.err) == (2, True)


def test_the_library_is_asked_about_the_columns() -> None:
    """A group is taken apart again to predict it."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    race, age = rng.integers(3, size=400), rng.integers(18, 70, size=400)
    columns = np.column_stack([age, *(race == code for code in range(3))]).astype(float)
    trained = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)
    trained.fit(columns, (race == 1) ^ (age > 40))
    asked: dict[str, Any] = {"sensitive": "race", "flip": True, "distance": "any"}
    found = xcount.witnesses(trained, one_hot="race=f1,f2,f3", n=20, verify=True, **asked)
    assert len(found) == 20
    assert all(witness.library_margins is not None for witness in found)


def test_a_template_proposes_groups(
    xcount_command: Command, model: str, people: str, tmp_path: Path
) -> None:
    """By names; confirmed by data, with +none where it is needed, or denied."""
    path = tmp_path / "domain.toml"
    assert xcount_command("inspect", model, "--domain-template", path).status == 0
    assert tomllib.loads(path.read_text()) == {"one-hot": {"race": NAMES[1:]}}
    assert printed(xcount_command("inspect", model, "--domain", path, "--json"))["n_regions"] == 9
    table = Path(people)
    for rows, expected in (
        ("27,1,0,0\n", {"race": NAMES[1:]}),
        ("27,1,0,0\n30,0,0,0\n", {"race": [*NAMES[1:], "+none"]}),
        ("27,1,1,0\n", None),
    ):
        table.write_text(",".join(NAMES) + "\n" + rows)
        run = xcount_command("inspect", model, "--domain-template", "-", "--data", table)
        assert tomllib.loads(run.out).get("one-hot") == expected
    found = printed(xcount_command("inspect", model, "--json"))
    assert found["one_hot"] == {"race": NAMES[1:]}
    assert "race (3 columns)" in xcount_command("inspect", model).out


def test_a_formula_is_about_the_domain(xcount_command: Command, model: str) -> None:
    """Its regions are those that exist."""
    run = xcount_command("encode", model, "--sensitive", "race", "--gap", "1", *GROUP, *WHERE)
    assert "regions 9" in run.out


def test_a_domain_travels(model: str) -> None:
    """Another process counts in the same regions, and knows them by the same words."""
    domain = Domain.of(SAID)
    ensemble = domain.pulled_back(xcount.load(model))
    problem = Problem(ensemble, Grid.of(ensemble, domain=domain), Query.of(ensemble, "race", 1))
    there = pickle.loads(pickle.dumps(problem))
    assert there.grid.domain == domain
    assert there.n_regions == 9
    assert list(there.pairs()) == list(problem.pairs())
