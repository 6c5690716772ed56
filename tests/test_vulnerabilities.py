"""The check for known vulnerabilities: found, none, or nobody could be asked."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SOUND = {"name": "a", "version": "1", "vulns": []}
WRONG = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check with what stands in the folder in place of pip-audit."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "tools.vulnerabilities"]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([SOUND], 0, "none of 1 packages has a known vulnerability"),
        ([SOUND, WRONG], 1, "b 2: PYSEC-1, fixed in 3"),
        ([SOUND, SKIPPED], 3, "not looked up: 1 of 2 packages, the first: Dependency not found"),
        ([WRONG, SKIPPED], 1, "b 2: PYSEC-1"),
        ([], 3, ""),
        (None, 3, "not looked up: ERROR: no connection (is there a network?)"),
    ],
)
def test_findings_failures_and_skips_are_told_apart(
    tmp_path: Path, packages: list[object] | None, status: int, said: str
) -> None:
    """pip-audit's status is 1 for findings and failures alike, and 0 for packages it skips."""
    out = "" if packages is None else json.dumps({"dependencies": packages, "fixes": []})
    code = int(packages is None or WRONG in packages)
    (tmp_path / "pip_audit.py").write_text(
        f"import sys\nprint({out!r})\nprint('ERROR: no connection', file=sys.stderr)\n"
        f"assert '--no-deps' in sys.argv\nsys.exit({code})\n"
    )
    done = check(tmp_path)
    assert (done.returncode, said in done.stdout) == (status, True), done
    assert ("none of" in done.stdout) == (status == 0)


@pytest.mark.skipif(
    importlib.util.find_spec("pip_audit") is not None, reason="pip-audit is installed here"
)
def test_without_pip_audit_it_says_so(tmp_path: Path) -> None:
    """Nobody was asked: neither fine nor a finding."""
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (
        3,
        "not looked up: pip-audit is not installed; pip install pip-audit\n",
    )
