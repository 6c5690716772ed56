"""Looks up the locked dependencies in the public lists of known vulnerabilities.

    python -m tools.vulnerabilities        (or: make vulnerabilities)

Uses pip-audit (``pip install pip-audit``), which asks the package index. Exit status 0: none is
known; 1: some are, and they are printed; 3: nobody could be asked (no network, no pip-audit), and
the last line says why. Not part of the tests: what is known changes without a change here.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parent.parent / "requirements" / "test.lock"
NONE_KNOWN, SOME_KNOWN, NOT_ASKED = 0, 1, 3


def main(lock: Path = LOCK) -> int:
    """Ask, and say what came of it."""
    if importlib.util.find_spec("pip_audit") is None:
        print("not asked: pip-audit is not installed; pip install pip-audit")
        return NOT_ASKED
    # The lock names every package, so nothing has to be resolved or installed.
    options = ["--requirement", str(lock), "--no-deps", "--disable-pip", "--progress-spinner=off"]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *options], check=False, capture_output=True, text=True
    )
    n_packages = sum(1 for line in lock.read_text().splitlines() if "==" in line)
    if done.returncode == 0:
        print(f"none of {n_packages} packages has a known vulnerability")
        return NONE_KNOWN
    # pip-audit's status is 1 for findings and for failures alike; it says this of findings only.
    if "known vulnerabilit" in done.stderr:
        print(done.stdout + done.stderr, end="")
        return SOME_KNOWN
    reasons = [line for line in done.stderr.splitlines() if line.strip()]
    reason = reasons[-1] if reasons else f"pip-audit ended with status {done.returncode}"
    print(f"not asked: {reason} (is there a network?)")
    return NOT_ASKED


if __name__ == "__main__":
    sys.exit(main())
