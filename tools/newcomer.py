"""Does what the pages tell a newcomer to do, in fresh clones, and times each step.

    python -m tools.newcomer            # prints the times
    python -m tools.newcomer --update   # puts them into docs/tutorial.md and docs/newcomer.md

First the walk through docs/index.md and docs/tutorial.md, then the tasks of docs/newcomer.md (see
tools.newcomer_tasks), each in a clone of its own. Unlike the tests, it installs: virtual
environments, the package from its sources, and the libraries. What is committed is what is tried.
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

from tools import newcomer_tasks
from tools.examples import Block, blocks_of, steps_of
from tools.sessions import Shell

ROOT = Path(__file__).parent.parent
PAGES = ("docs/index.md", "docs/tutorial.md")
_PLACE = re.compile(r"(<!-- begin newcomer -->).*?(<!-- end newcomer -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Timed:
    """A step, and how long it took."""

    page: str
    command: str
    seconds: float
    status: int


def commands_of(block: Block) -> list[str]:
    """Return what a newcomer types because of a block."""
    if block.title:
        return []
    if block.language == "console":
        return [step.command for step in steps_of(block)]
    if block.language == "python":
        return [f"python - <<'END_OF_EXAMPLE'\n{block.text}END_OF_EXAMPLE"]
    return list(block.lines) if block.language == "sh" else []


def walk(clone: Path) -> Iterator[Timed]:
    """Type what the pages say, one after the other."""
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
                        yield Timed(page, command, time.monotonic() - started, status)


def table(steps: list[Timed]) -> str:
    """Return the steps as Markdown, with what they ran on."""
    rows = ["| page | step | seconds |", "|---|---|--:|"]
    for step in steps:
        command = re.sub(r"\s*\\\n\s*", " ", step.command)  # one line, as a table has it
        words = "(the Python example)" if "<<" in command else f"`{command}`"
        rows.append(f"| {Path(step.page).stem} | {words} | {step.seconds:.1f} |")
    rows.append(f"| | together | {sum(step.seconds for step in steps):.0f} |")
    load = os.getloadavg()[0]
    about = (
        f"{os.cpu_count()} cores, load {load:.1f} at the end, Python {platform.python_version()}"
    )
    return "\n".join([*rows, "", f"Made by `python -m tools.newcomer` on a machine with {about}."])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.newcomer", description=__doc__)
    parser.add_argument("--update", action="store_true", help="put the times into the pages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "xcount"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        steps = []
        for step in walk(clone):
            print(f"{step.seconds:7.1f} s  status {step.status}  {step.command.splitlines()[0]}")
            steps.append(step)
    if options.update:
        page = ROOT / "docs" / "tutorial.md"
        page.write_text(
            _PLACE.sub(lambda m: f"{m[1]}\n\n{table(steps)}\n\n{m[2]}", page.read_text())
        )
    newcomer_tasks.measure(options.update)
    return 0


if __name__ == "__main__":
    sys.exit(main())
