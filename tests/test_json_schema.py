"""What commands print with --json is what docs/xcount.schema.json says."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from model_files import first_trees

from tools import json_schema
from tools.interpreters import furnish
from xcount.model.examples import adult_model_path

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads(json_schema.SCHEMA.read_text(encoding="utf-8"))
MODEL = str(adult_model_path())
EXTRACT = str(Path(__file__).parent.parent / "examples" / "adult-extract.csv.gz")
SMALLER = "smaller.json"
ASKED = ("--sensitive", "sex", "--gap", "0.5")
SURE = ("--flip", "--from-probability", "0.7")

COMMANDS = [
    ("count", ["count", MODEL, *ASKED]),
    ("count", ["count", MODEL, *ASKED, "--profile", "--max-share", "1%", "--precision", "3"]),
    ("count", ["count", MODEL, "--sensitive", "age", "--gap", "1", "--distance", "any"]),
    ("count", ["count", MODEL, "--sensitive", "sex", "--flip", "--method", "sample"]),
    ("count", ["count", MODEL, "--sensitive", "sex", "--probability-gap", "0.1"]),
    ("count", ["count", MODEL, *ASKED, "--direction", "down"]),
    ("count", ["count", MODEL, "--sensitive", "sex", *SURE, "--epsilon", "0.5"]),
    (
        "count",
        ["count", MODEL, *ASKED, "--measure", "volume,marginals,rows", "--data", "people.csv"],
    ),
    ("count", ["count", MODEL, "--sensitive", "age,race", "--flip", "--timeout", "1ms"]),
    ("audit", ["audit", MODEL, *ASKED, "--witnesses", "1", "--max-share", "50%"]),
    ("count", ["count", MODEL, *ASKED, "--explain", "--max-share", "1%"]),
    ("audit", ["audit", MODEL, "--sensitive", "sex", "--flip"]),
    ("audit", ["demo"]),
    ("audit", ["report", "results.jsonl"]),
    ("compare", ["compare", MODEL, MODEL, *ASKED, "--max-ratio", "1"]),
    ("compare", ["compare", MODEL, MODEL, "--sensitive", "race", "--gap", "3"]),
    ("compare", ["compare", MODEL, MODEL, "--sensitive", "sex", "--flip", "--max-ratio", "1"]),
    ("worst", ["worst", MODEL, "--sensitive", "sex"]),
    ("worst", ["worst", MODEL, "--sensitive", "age", "--probability", "--where", "age >= 40"]),
    ("worst", ["worst", MODEL, "--sensitive", "age", "--distance", "1", "--timeout", "1ms"]),
    ("diff", ["diff", MODEL, MODEL, "--gap", "0", "--max-share", "0"]),
    ("diff", ["diff", MODEL, SMALLER, "--flip", "--data", EXTRACT, "--explain", "--timeout", "9s"]),
    ("diff", ["diff", MODEL, SMALLER, "--probability-gap", "0.1", "--timeout", "2s"]),
    ("witnesses", ["witness", MODEL, *ASKED, "-n", "2", "--verify"]),
    ("witnesses", ["witness", MODEL, *ASKED, "-n", "1", "--where", "age >= 25"]),
    ("witnesses", ["witness", MODEL, "--sensitive", "sex", "--probability-gap", "0.1", "-n", "2"]),
    ("witnesses", ["witness", MODEL, "--sensitive", "sex", "--flip", "--near", "people.csv"]),
    ("repair", ["repair", MODEL, *ASKED, "--data", EXTRACT, "--output", "repaired.json"]),
    ("person", ["person", MODEL, "--data", EXTRACT, "--row", "7", "--sensitive", "sex,race"]),
    ("monotone", ["monotone", MODEL, "--increasing", "age", "--all", "--timeout", "5s"]),
    ("count", ["count", MODEL, *ASKED, "--where-from", "sex == Female", "--where-to", "age < 40"]),
    ("count", ["count", MODEL, *ASKED, "--along", "relationship: Husband <-> Wife"]),
    ("inspect", ["inspect", MODEL]),
    ("inspect", ["inspect", MODEL, "--data", EXTRACT, "--population", "new.json"]),
    ("count", ["count", MODEL, *ASKED, "--measure", "population", "--data", EXTRACT]),
]


def validator(name: str) -> Any:
    """Return a validator of one object of the schema."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


@pytest.fixture
def beside_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a table and a journal."""
    pytest.importorskip("pandas")
    pytest.importorskip("xgboost")
    furnish(tmp_path, ["people.csv", "results.jsonl"])
    (tmp_path / SMALLER).write_text(first_trees(adult_model_path(), 45))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("beside_files")
@pytest.mark.parametrize(("name", "arguments"), COMMANDS, ids=lambda value: str(value)[-60:])
def test_what_is_printed_is_what_the_schema_says(
    xcount_command: Command, name: str, arguments: list[str]
) -> None:
    """No field is missing, none is new, and all have their type; the whole schema agrees."""
    data = json.loads(xcount_command(*arguments, "--json").out)
    validator(name).validate(data)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)


@pytest.mark.usefixtures("beside_files")
def test_a_saved_population_is_in_the_schema(xcount_command: Command) -> None:
    """The file is described instead of a model."""
    xcount_command("inspect", MODEL, "--data", EXTRACT, "--population", "new.json")
    data = json.loads(xcount_command("inspect", "new.json", "--json").out)
    validator("population").validate(data)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)


@pytest.mark.usefixtures("beside_files")
def test_the_lines_of_a_journal_are_in_the_schema() -> None:
    """Runs and results."""
    lines = [json.loads(line) for line in Path("results.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"run", "result"}
    for line in lines:
        validator("journal_line").validate(line)


def test_the_schema_is_made_of_the_records() -> None:
    """The file is what ``python -m tools.json_schema`` writes."""
    assert json_schema.SCHEMA.read_text(encoding="utf-8") == json_schema.text()


def test_the_schema_is_a_schema() -> None:
    """And every object and field in it is explained."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name, about in SCHEMA["$defs"].items():
        assert about["description"], name
        for field, schema in about.get("properties", {}).items():
            assert schema["description"], (name, field)


def test_what_differs_is_refused(xcount_command: Command) -> None:
    """A field too many, too few, or of another type."""
    good = json.loads(xcount_command("count", MODEL, *ASKED, "--json").out)
    for change in ({"extra": 1}, {"count": 1.5}, {"verdict": "MAYBE"}, {"stop_reason": "tired"}):
        assert not validator("count").is_valid(good | change)
    for field in ("count", "gap", "model"):
        lacking = copy.deepcopy(good)
        del lacking[field]
        assert not validator("count").is_valid(lacking), field
