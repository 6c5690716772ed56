"""Looks up the locked dependencies in the public lists of known vulnerabilities.

    python -m tools.vulnerabilities        (or: make vulnerabilities)

Uses pip-audit (``pip install pip-audit``), which asks the package index. The exit status is 0 if
none is known; 1 if some are, which are printed; 3 if some or all could not be looked up (no
network, no pip-audit, an index without them), with the reason. Not part of the tests, because the
lists change without a change here.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "requirements" / "test.lock"
NONE_KNOWN, SOME_KNOWN, NOT_ASKED = 0, 1, 3


def main(lock: Path = LOCK) -> int:
    """Look up the dependencies, and print the outcome."""
    if importlib.util.find_spec("pip_audit") is None:
        print("not looked up: pip-audit is not installed; pip install pip-audit")
        return NOT_ASKED
    # The lock names every package, so nothing has to be resolved or installed.
    options = ["--requirement", str(lock), "--no-deps", "--disable-pip", "--progress-spinner=off"]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *options, "--format=json"],
        check=False,
        capture_output=True,
        text=True,
    )
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reasons = [line for line in done.stderr.splitlines() if line.strip()]
        reason = reasons[-1] if reasons else f"pip-audit ended with status {done.returncode}"
        print(f"not looked up: {reason} (is there a network?)")
        return NOT_ASKED
    return _told(packages)


def _told(packages: list[dict[str, Any]]) -> int:
    """Print the vulnerabilities found; a package that was skipped does not count as safe."""
    known = [(p, v) for p in packages for v in p.get("vulns", ())]
    skipped = [p for p in packages if "skip_reason" in p]
    for package, found in known:
        fixed = ", ".join(found.get("fix_versions", ())) or "no version"
        print(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    if skipped:
        reason = skipped[0]["skip_reason"]
        print(f"not looked up: {len(skipped)} of {len(packages)} packages, the first: {reason}")
    if known:
        return SOME_KNOWN
    if skipped or not packages:
        return NOT_ASKED
    print(f"none of {len(packages)} packages has a known vulnerability")
    return NONE_KNOWN


if __name__ == "__main__":
    sys.exit(main())
