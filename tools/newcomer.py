"""Follows docs/index.md and docs/tutorial.md in a fresh clone, and times each step.

    python -m tools.newcomer            # prints the times
    python -m tools.newcomer --update   # also writes them into docs/tutorial.md

Unlike the tests, it installs everything: a virtual environment, the package from its sources, and
the libraries. The clone holds what is committed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.examples import Block, blocks_of, steps_of
from tools.interpreters import Shell

ROOT = Path(__file__).parent.parent
PAGES = ("docs/index.md", "docs/tutorial.md")
_PLACE = re.compile(r"(<!-- begin newcomer -->).*?(<!-- end newcomer -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A command from a page, and how long it took."""

    page: str
    command: str
    seconds: float
    status: int


def commands_of(block: Block) -> list[str]:
    """Return the commands that a newcomer runs for a block."""
    if block.title:
        return []
    if block.language == "console":
        return [step.command for step in steps_of(block)]
    if block.language == "python":
        return [f"python - <<'END_OF_EXAMPLE'\n{block.text}END_OF_EXAMPLE"]
    return list(block.lines) if block.language == "sh" else []


def timed_steps(clone: Path) -> Iterator[TimedStep]:
    """Run the commands of the pages one after the other."""
    with Shell(clone, clean=True) as shell:
        for page in PAGES:
            shell.run(f"cd '{clone}'")
            for block in blocks_of((clone / page).read_text()):
                if block.title:
                    (shell.folder() / block.title).write_text(block.text)
                for command in commands_of(block):
                    started = time.monotonic()
                    status, printed = shell.run(command)
                    if status not in (0, 1) or "Traceback" in printed:
                        raise SystemExit(f"{page}: {command}\nends with {status}:\n{printed}")
                    if command != "echo $?":
                        yield TimedStep(page, command, time.monotonic() - started, status)


def table(steps: list[TimedStep]) -> str:
    """Return the steps as a Markdown table, followed by the machine they ran on."""
    rows = ["| page | step | seconds |", "|---|---|--:|"]
    for step in steps:
        command = re.sub(r"\s*\\\n\s*", " ", step.command)  # a row of a table is one line
        words = "(the Python example)" if "<<" in command else f"`{command}`"
        rows.append(f"| {Path(step.page).stem} | {words} | {step.seconds:.1f} |")
    rows.append(f"| | total | {sum(step.seconds for step in steps):.0f} |")
    load = os.getloadavg()[0]
    machine = (
        f"{os.cpu_count()} cores, load {load:.1f} at the end, Python {platform.python_version()}"
    )
    return "\n".join([*rows, "", f"Measured by `python -m tools.newcomer`: {machine}."])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the times into the tutorial")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "xcount"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        steps = []
        for step in timed_steps(clone):
            print(f"{step.seconds:7.1f} s  status {step.status}  {step.command.splitlines()[0]}")
            steps.append(step)
    if options.update:
        page = ROOT / "docs" / "tutorial.md"
        page.write_text(
            _PLACE.sub(lambda m: f"{m[1]}\n\n{table(steps)}\n\n{m[2]}", page.read_text())
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
