"""Every example in a docstring and in a help text runs; those of documents: test_documents.py."""

from __future__ import annotations

import doctest
import html
import importlib
import inspect
import json
import pkgutil
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import Command
from model_files import first_trees

import xcount
from xcount.cli.app import COMMANDS, application
from xcount.model.examples import adult_model_path, figure_1
from xcount.verified.counter import NATIVE, find_node


def module_names() -> list[str]:
    """Return every module of the package."""
    found = pkgutil.walk_packages(xcount.__path__, "xcount.")
    return [module.name for module in found if not module.name.endswith(("__main__", "_core"))]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples_say_the_truth(name: str) -> None:
    """What an example shows is what comes out."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_function_and_class_has_an_example() -> None:
    """``xcount.count`` and its like are shown in use; the tests above run what is shown."""
    lacking = [
        name
        for name in xcount.__all__
        if name != "__version__" and ">>>" not in (getattr(xcount, name).__doc__ or "")
    ]
    assert lacking == []


def test_examples_of_public_functions_are_found() -> None:
    """Behind what is wrapped around them, too."""
    for name in ("count", "audit", "compare", "witnesses", "inspect", "load"):
        function = getattr(xcount, name)
        module = importlib.import_module(function.__module__)
        found = {test.name for test in doctest.DocTestFinder().find(module) if test.examples}
        assert f"{function.__module__}.{name}" in found


def test_public_names_are_sorted_and_typed() -> None:
    """As a reader of the list looks for them; type checkers find the marker."""
    assert xcount.__all__ == sorted(xcount.__all__)
    assert (Path(xcount.__file__).parent / "py.typed").exists()


def test_public_functions_win_over_modules_of_their_name() -> None:
    """``xcount.audit`` is the function, whoever imported the module before."""
    for name in module_names():
        importlib.import_module(name)
    modules = [name for name in xcount.__all__ if inspect.ismodule(getattr(xcount, name))]
    assert modules == []


def command_named(name: str) -> click.Command:
    """Return a command of the application."""
    with click.Context(application) as context:
        command = application.get_command(context, name)
    assert command is not None
    return command


def help_examples() -> Iterator[str]:
    """Yield the examples in the commands' help that need no cluster (those: test_cluster.py)."""
    for name in COMMANDS:
        lines = (command_named(name).epilog or "").splitlines()
        yield from (x.strip() for x in lines if "  xcount " in x and "--cluster" not in x)


@pytest.fixture(scope="session")
def example_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with models, data and what commands wrote, as the examples assume."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("model.json", "old.json", "new.json"):
        (folder / name).write_text(first_trees(Path(adult_model_path()), 20))
    xcount.audit(figure_1(), gaps=80, journal=folder / "results.jsonl")
    model = xcount.load(folder / "model.json")
    grid = xcount.Grid.of(model)
    rows = [model.feature_names]
    for share in (0, 0.5, 1) * 30:  # a population needs some
        cells = [int(share * (axis.n_cells - 1)) for axis in grid.axes]
        rows.append(tuple(map(str, grid.point(cells))))
    (folder / "people.csv").write_text("\n".join(map(",".join, rows)))
    (folder / "domain.toml").write_text("where = ['age >= 25']\n")
    xcount.inspect(model, data=folder / "people.csv", population=folder / "kept.json")
    xcount.count(model, sensitive="age", gap=2, distance=1, question=folder / "age.question")
    for number in (1, 2):
        journal = folder / f"s{number}.jsonl"
        xcount.audit(figure_1(), gaps=80, shard=f"{number}/2", journal=journal)
    return folder


@pytest.fixture
def beside_a_model(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work beside the files of the examples."""
    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(xcount_command: Command, name: str) -> None:
    """A command that nobody explains is not finished."""
    run = xcount_command(name, "--help")
    assert (run.status, run.err) == (0, "")
    assert f"xcount {name}" in run.out.partition("Example")[2]
    options = [p for p in command_named(name).params if isinstance(p, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.slow
@pytest.mark.usefixtures("beside_a_model")
@pytest.mark.parametrize("line", list(help_examples()))
def test_documented_commands_work(xcount_command: Command, line: str) -> None:
    """With an answer, a verdict, or bounds; never with an error."""
    words = shlex.split(line)[1:]
    if words[0] == "verify" and not (find_node() or NATIVE.exists()):
        pytest.skip("nothing here can run the verified counter: it needs node")
    run = xcount_command(*words)
    assert run.status in (0, 1, 3), run.err
    # What takes long says so every ten seconds.
    assert [x for x in run.err.splitlines() if not re.match(r" *\d+ s  ", x)] == []


def test_the_demo_ends_with_a_report(
    xcount_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table about one-hot groups within a condition, and a page with the same answers."""
    monkeypatch.chdir(tmp_path)
    run = xcount_command("demo", "--progress", "none")
    assert (run.status, run.err) == (0, "")
    page = (tmp_path / "xcount-demo.html").read_text()
    for name in ("sex", "race", "age"):
        assert f" {name} " in run.out
        assert f'data-sensitive="{name}"' in page
    for words in ("10.4 %", "25 &lt;= age &lt; 65", "of the 1,159 cases in adult-held-out.csv.gz"):
        assert html.unescape(words) in run.out
        assert words in page
    assert "Wrote xcount-demo.html" in run.out
    assert "xcount demo --save-model adult.json" in run.out


def test_the_demo_gives_its_model_away(
    xcount_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--save-model`` writes a model to play with, and what to try next names the copy."""
    monkeypatch.chdir(tmp_path)
    run = xcount_command("demo", "--save-model", "adult.json")
    assert (tmp_path / "adult.json").read_bytes() == adult_model_path().read_bytes()
    assert "xcount inspect adult.json" in run.out
    assert "--save-model" not in run.out
    refused = xcount_command("demo", "--save-model", "nowhere/adult.json")
    assert refused.status == 2
    assert "nowhere" in refused.err


def test_the_demo_gives_the_audited_model_and_its_domain_away(
    xcount_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that its questions can be asked again, and others."""
    monkeypatch.chdir(tmp_path)
    run = xcount_command("demo", "--save-one-hot", "income.json", "--json")
    audited = [r for r in json.loads(run.out)["results"] if r["sensitive"] == ["race"]]
    asked = ["--sensitive", "race", "--probability-gap", "0.1", "--distance", "any", "--json"]
    asked += ["--domain", "income.toml", "--data", "income.csv.gz", "--judge", "rows"]
    again = json.loads(xcount_command("count", "income.json", *asked).out)
    assert again["count"] == audited[1]["count"]
    shares = [r["details"]["measures"]["rows"]["share"] for r in (again, audited[1])]
    assert shares[0] == shares[1] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--save-one-hot", "z.toml"], "z.toml is named for two outputs"),
        (["--save-model", "s.json", "--html", "./s.json"], "s.json is named for two outputs"),
        (["--save-model", "a.toml", "--save-one-hot", "a.json"], "a.toml is named for two outputs"),
        (["--save-model", "a.json", "--save-one-hot", "nowhere/z.json"], "nowhere/z.json"),
        (["--save-one-hot", ""], "without a name"),
    ],
)
def test_the_demo_saves_each_file_under_its_own_name(
    xcount_command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    """Or says what is wrong before anything is written."""
    monkeypatch.chdir(tmp_path)
    run = xcount_command("demo", *words)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert said in run.err
    assert list(tmp_path.iterdir()) == []


def test_the_demo_speaks_json(xcount_command: Command, tmp_path: Path) -> None:
    """One object with an answer for each of three features and three gaps, and the domain."""
    run = xcount_command("demo", "--json", "--html", tmp_path / "d.html")
    results = json.loads(run.out)["results"]
    assert len(results) == 9
    sex = [r for r in results if r["sensitive"] == ["sex"]]
    assert [(r["count"], r["exact"]) for r in sex] == [(110830, True), (71590, True), (23340, True)]
    for result in results:
        assert result["domain"]["where"] == ["25 <= age < 65"]
        assert set(result["domain"]["one_hot"]) == {"sex", "race", "relationship"}
        assert result["judge"] == "rows"
        assert result["details"]["measures"]["rows"]["n_rows"] == 1500
        if result["count"]:
            assert result["details"]["witnesses"][0]["row"] is not None  # a person, changed
