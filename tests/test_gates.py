"""The gates that others put into their builds: the GitHub Action, and the hook of pre-commit.

Both are run as their hosts run them, without the hosts: the shell steps of the action with the
variables and files that GitHub gives to a step, the hook with the arguments of pre-commit.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.examples import blocks_of
from xcount.model.examples import adult_model_path

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
PAGE = (ROOT / "docs" / "howto" / "ci-gate.md").read_text()
HARMLESS = {"sensitive": "sex", "gap": "1", "distance": "any", "max-share": "5%"}
HARMFUL = {**HARMLESS, "gap": "0.5", "max-share": "1%"}

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def environment(**variables: str) -> dict[str, str]:
    """Return this process's variables, with the commands of this interpreter found first."""
    here = str(Path(sys.executable).parent)
    return os.environ | {"PATH": os.pathsep.join([here, os.environ["PATH"]])} | variables


def given(inputs: dict[str, str]) -> dict[str, str]:
    """Return the inputs of the action with their defaults; refuse those that it does not have."""
    assert inputs.keys() <= ACTION["inputs"].keys()
    lacking = {name for name, about in ACTION["inputs"].items() if about.get("required")}
    assert lacking <= inputs.keys()
    defaults = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    return defaults | inputs


def evaluated(expression: str, names: dict[str, str]) -> str:
    """Return what GitHub makes of ``${{ a || b }}``: the first that is not empty."""
    found = re.fullmatch(r"\$\{\{ (.+) \}\}", expression)
    assert found is not None, expression
    values = [names[name.strip()] for name in found[1].split("||")]
    return next((value for value in values if value), "")


@dataclass
class Runner:
    """What GitHub gives to the steps of a job: a folder to work in, and files to write to."""

    folder: Path
    status: int = -1
    printed: str = ""
    files: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_PATH"):
            self.files[name] = self.folder / f"{name.lower()}.txt"
            self.files[name].touch()
        (self.folder / "temp").mkdir()

    def written(self, name: str) -> str:
        return self.files[name].read_text()

    def run(self, index: int, inputs: dict[str, str]) -> int:
        """Run a step of the action as ``shell: bash`` is run there; return its status."""
        step = ACTION["runs"]["steps"][index]
        assert step["shell"] == "bash"
        names = {f"inputs.{name}": value for name, value in given(inputs).items()}
        names["github.action_path"] = str(ROOT)
        variables = {name: evaluated(text, names) for name, text in step["env"].items()}
        variables |= {name: str(path) for name, path in self.files.items()}
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        run = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder,
            env=environment(RUNNER_TEMP=str(self.folder / "temp"), **variables),
            capture_output=True,
            text=True,
            check=False,
        )
        self.status, self.printed = run.returncode, run.stdout + run.stderr
        return self.status


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner whose folder has a model."""
    shutil.copy(adult_model_path(), tmp_path / "model.json")
    return Runner(tmp_path)


@pytest.mark.parametrize(
    ("inputs", "status", "verdict"),
    [
        (HARMLESS, 0, "PASS"),
        (HARMFUL, 1, "FAIL"),
        ({**HARMFUL, "sensitive": "age", "max-share": "50%", "timeout": "1ms"}, 3, "UNDECIDED"),
        ({**HARMLESS, "gap": ""}, 2, "ERROR"),
    ],
    ids=["PASS", "FAIL", "UNDECIDED", "ERROR"],
)
def test_the_action_ends_with_the_verdict(
    runner: Runner, inputs: dict[str, str], status: int, verdict: str
) -> None:
    """As status, as output, as an annotation; the summary is there whenever there is an answer."""
    assert runner.run(1, {"model": "model.json", **inputs}) == status, runner.printed
    assert runner.written("GITHUB_OUTPUT") == f"verdict={verdict}\n"
    assert ("::error" in runner.printed) == (status != 0)
    summary = runner.written("GITHUB_STEP_SUMMARY")
    assert summary.startswith("## Sensitivity" if status != 2 else "")
    assert (f"**{verdict}**" in summary) == (status != 2)


def test_every_input_of_the_action_arrives(runner: Runner) -> None:
    """Groups by line, rows of data, a report, and more arguments with quotes."""
    (runner.folder / "rows.csv").write_text("age,sex\n30,Male\n")  # columns are lacking: an error
    (runner.folder / "domain.toml").write_text("where = ['age >= 25']\n")
    inputs = {
        "model": "model.json",
        "sensitive": "sex\nsex,race\n",
        "flip": "true",
        "max-share": "sex=100%,sex+race=1",
        "html": "report.html",
        "domain": "domain.toml",
        "arguments": "--epsilon 0.5 --csv 'all counts.csv'",
    }
    assert runner.run(1, inputs) == 0, runner.printed
    summary = runner.written("GITHUB_STEP_SUMMARY")
    assert "| sex |" in summary
    assert "| race + sex |" in summary
    assert "flip at 0" in summary
    assert "age >= 25" in summary.replace("&gt;", ">").replace("\\", "")
    assert (runner.folder / "report.html").exists()
    assert (runner.folder / "all counts.csv").exists()
    assert runner.run(1, {**inputs, "data": "rows.csv"}) == 2
    assert "rows.csv" in runner.printed


def test_the_action_asks_about_probabilities(runner: Runner) -> None:
    """A gap in probability arrives as such."""
    inputs = {"model": "model.json", "sensitive": "sex", "probability-gap": "0.3"}
    assert runner.run(1, {**inputs, "max-share": "5%"}) == 0, runner.printed
    assert "probability" in runner.written("GITHUB_STEP_SUMMARY")


def test_inputs_are_no_commands(runner: Runner) -> None:
    """Whatever they hold; and what cannot be read as arguments fails instead of being dropped."""
    evil = "$(touch evil); `touch evil` \"; touch evil; '"
    for name in ("sensitive", "gap", "max-share", "model", "arguments"):
        assert runner.run(1, {"model": "model.json", **HARMLESS, name: evil}) != 0
        assert not (runner.folder / "evil").exists()
    assert "PASS" not in runner.written("GITHUB_OUTPUT")
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_an_old_summary_is_not_shown_again(runner: Runner) -> None:
    """A job may use the action twice."""
    assert runner.run(1, {"model": "model.json", **HARMLESS}) == 0
    assert runner.run(1, {"model": "absent.json", **HARMLESS}) == 2
    assert runner.written("GITHUB_STEP_SUMMARY").count("## Sensitivity") == 1


STAND_IN = """#!/bin/sh
# Makes an "environment" whose Python writes down what it is asked for.
[ "$1 $2" = "-m venv" ] || exit 1
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" > "%s/asked.txt"\\n' "$3" > "$3/bin/python"
chmod +x "$3/bin/python"
"""


def test_the_action_installs_into_a_place_of_its_own(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And puts it on the path of the steps that follow; pip itself is not our matter."""
    python = runner.folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(STAND_IN)
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    inputs = {"model": "m", "max-share": "0", "xcount": "./a checkout"}
    assert runner.run(0, inputs) == 0, runner.printed
    place = runner.folder / "temp" / "xcount"
    assert (place / "asked.txt").read_text() == "-m pip install --quiet ./a checkout\n"
    assert runner.written("GITHUB_PATH") == f"{place}/bin\n"


def test_the_action_installs_itself_unless_told_otherwise() -> None:
    """The version of a gate is the version that its workflow names."""
    step = ACTION["runs"]["steps"][0]
    assert step["if"] == "inputs.xcount != 'none'"
    names = {"inputs.xcount": given({"model": "m", "max-share": "0"})["xcount"]}
    assert evaluated(step["env"]["WANTED"], {**names, "github.action_path": "here"}) == "here"
    assert ACTION["runs"]["using"] == "composite"
    assert ACTION["outputs"]["verdict"]["value"] == "${{ steps.audit.outputs.verdict }}"


def hooked(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the hook as pre-commit does: its entry, the user's args, the files that changed."""
    return subprocess.run(
        [*shlex.split(HOOK["entry"]), *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_hook_audits_every_file(tmp_path: Path) -> None:
    """One that fails is enough, wherever it stands among them."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "models").mkdir()
    names = ["models/first.json", "models/a second.json"]
    for name in names:
        shutil.copy(adult_model_path(), tmp_path / name)
        assert re.search(HOOK["files"], name)
    question = ["--sensitive", "sex", "--distance", "any", "--max-share", "5%", "--gap"]
    passed = hooked(tmp_path, *question, "1", "--", *names)
    assert passed.returncode == 0, passed.stderr
    assert passed.stdout.count("PASS: sex is within the limit") == 2
    assert "Wrote" not in passed.stdout
    assert not list((tmp_path / ".git").glob("*.part"))
    summary = (tmp_path / ".git" / "xcount-audit.md").read_text()
    assert summary.count("## Sensitivity") == 2
    assert hooked(tmp_path, *question, "0.5", "--", *names).returncode == 1
    assert "**FAIL**" in (tmp_path / ".git" / "xcount-audit.md").read_text()
    broken = hooked(tmp_path, *question, "1", "--", "models/absent.json", names[0])
    assert broken.returncode == 2
    assert "PASS" in broken.stdout


def test_the_hook_wants_its_arguments_to_end() -> None:
    """Else a model file could be taken for the value of an option."""
    run = hooked(ROOT, "--sensitive", "sex", "model.json")
    assert run.returncode == 2
    assert "end the args of this hook with --" in run.stderr


@pytest.mark.parametrize("name", ["models/credit.json", "risk/models/v2/m.txt", "models/a.ubj"])
def test_the_hook_looks_at_models(name: str) -> None:
    """Files in a folder called models, unless its user says which."""
    assert re.search(HOOK["files"], name)
    assert not re.search(HOOK["files"], "package.json")


def test_the_page_shows_inputs_that_exist() -> None:
    """A workflow with the action, and a configuration with the hook."""
    shown = [yaml.safe_load(block.text) for block in blocks_of(PAGE) if block.language == "yaml"]
    steps = [
        step
        for page in shown
        for job in page.get("jobs", {}).values()
        for step in job["steps"]
        if step.get("uses", "").startswith("./xcount")
    ]
    assert steps
    for step in steps:
        given(step["with"])
    (hook,) = [hook for page in shown for repo in page.get("repos", ()) for hook in repo["hooks"]]
    assert hook["id"] == HOOK["id"]
    assert hook["args"][-1] == "--"
