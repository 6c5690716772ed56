"""The check for known vulnerabilities: found, none, or nobody could be asked."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ANSWERS = {
    "none": ("", "No known vulnerabilities found", 0),
    "some": ("numpy 2.0 PYSEC-1", "Found 1 known vulnerability in 1 package", 1),
    "no network": ("", "ERROR:pip_audit._cli:Could not connect", 1),
}


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check with what stands in the folder in place of pip-audit."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "tools.vulnerabilities"]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ("none", 0, "packages has a known vulnerability"),
        ("some", 1, "PYSEC-1"),
        ("no network", 3, "not asked: ERROR:pip_audit._cli:Could not connect"),
    ],
)
def test_findings_and_failures_are_told_apart(
    tmp_path: Path, answer: str, status: int, said: str
) -> None:
    """pip-audit ends with status 1 for both."""
    out, err, code = ANSWERS[answer]
    (tmp_path / "pip_audit.py").write_text(
        f"import sys\nprint({out!r})\nprint({err!r}, file=sys.stderr)\n"
        f"assert '--no-deps' in sys.argv\nsys.exit({code})\n"
    )
    done = check(tmp_path)
    assert (done.returncode, said in done.stdout) == (status, True), done


@pytest.mark.skipif(
    importlib.util.find_spec("pip_audit") is not None, reason="pip-audit is installed here"
)
def test_without_pip_audit_it_says_so(tmp_path: Path) -> None:
    """Nobody was asked: neither fine nor a finding."""
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (
        3,
        "not asked: pip-audit is not installed; pip install pip-audit\n",
    )
