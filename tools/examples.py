"""Runs the examples of the documents: console blocks, Python blocks and the files they show.

    python -m tools.examples docs/tutorial.md             # run it, print the differences
    python -m tools.examples docs/tutorial.md --update    # write the real outputs into the page

The blocks of a page run one after the other in a temporary folder:

- a ``console`` block: each ``$ command`` runs in one shell (``> `` continues it); the lines below
  it, if any, are compared with its output; a line ``...`` stands for any number of lines;
- a ``python`` block runs in one interpreter, together with any ``test_*`` functions that it
  defines; a block below ``<!-- output -->`` is its output;
- a block with ``title="name"`` is written to a file of that name;
- ``<!-- not run: reason -->`` above a block skips it;
- ``<!-- beside: model.json people.csv -->`` names files to put into the folder first;
- ``<!-- outputs with: xgboost-cpu -->`` says that outputs depend on a package: they are compared
  only if its locked version is installed.

Times, memory sizes, table widths and estimated numbers are not compared. A command is expected to
exit with status 0, or 1 for xcount (a verdict); any other status is shown by ``$ echo $?``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from tools.interpreters import Python, Shell, furnish

ROOT = Path(__file__).parent.parent
LANGUAGES = ("console", "python")
_FENCE = re.compile(r"^( *)(`{3,})(\w*)(.*)$")
_LOOSE = re.compile(r"^\s*(\$ )?(xcount|python3?|pip|make|pytest|dask|\.venv/bin/\w+)\s+\S")
_PROGRESS = re.compile(r" +\d+ s  ")
"""A line that a command writes every ten seconds, on a busy machine."""
_ESTIMATE = re.compile(r" between .* and |[\d.]+ to [> ]*[\d.]+ %|\d\.\.\d")
_MASKS = (
    (re.compile(r"(< )?\d[\d,.]* ?(s|ms|min|MB|GB|MiB|GiB)\b"), "#"),
    (re.compile(r"[─━]+"), "─"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A code block of a page.

    Attributes:
        line: the number of the first line inside the fence, from 0.
        lines: its lines, without the indentation of the fence.
        language: the first word after the fence; empty for indented blocks.
        title: the name of the file to write, if any.
        note: the text of the comment above it, such as ``not run: reason``.
        indent: number of spaces before each line.
    """

    line: int
    lines: tuple[str, ...]
    language: str = ""
    title: str = ""
    note: str = ""
    indent: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def not_run(self) -> str | None:
        """Why the block is skipped; None if it is not."""
        found = re.fullmatch(r"not run: (.+)", self.note)
        return found[1] if found else None

    @property
    def is_run(self) -> bool:
        return self.not_run is None and (bool(self.title) or self.language in LANGUAGES)

    @property
    def has_commands(self) -> bool:
        """Whether a reader could type its lines as commands."""
        return self.language in (*LANGUAGES, "sh", "bash") or any(map(_LOOSE.match, self.lines))


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the code blocks of a page, fenced and indented."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence:
            end = next(
                (i for i in range(number + 1, len(lines)) if lines[i].strip() == fence[2]),
                len(lines),
            )
            yield _fenced(lines, number, end, fence)
            number = end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            indented = tuple(line[4:] for line in lines[number:end])
            yield Block(number, indented, note=_note(lines, number))
            number = end
        else:
            number += 1


def _fenced(lines: list[str], start: int, end: int, fence: re.Match[str]) -> Block:
    indent, title = len(fence[1]), re.search(r'title="([^"]+)"', fence[4])
    return Block(
        line=start + 1,
        lines=tuple(line[indent:] for line in lines[start + 1 : end]),
        language=fence[3],
        title=title[1] if title else "",
        note=_note(lines, start),
        indent=indent,
    )


def _note(lines: list[str], start: int) -> str:
    """Return the comment above a block."""
    above = start - 1
    while above > 0 and not lines[above].strip():
        above -= 1
    found = re.fullmatch(r"\s*<!-- (.*) -->\s*", lines[above]) if above >= 0 else None
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a console block, and its output as shown on the page."""

    command: str
    first: int
    shown: tuple[str, ...]


def steps_of(block: Block) -> list[Step]:
    """Return the commands of a console block."""
    steps: list[Step] = []
    for offset, line in enumerate(block.lines):
        if line.startswith("$ "):
            steps.append(Step(line[2:], block.line + offset + 1, ()))
        elif line.startswith("> ") and steps and not steps[-1].shown:
            last = steps[-1]
            steps[-1] = Step(f"{last.command}\n{line[2:]}", last.first + 1, ())
        elif steps:
            last = steps[-1]
            steps[-1] = Step(last.command, last.first, (*last.shown, line))
        else:
            raise ValueError(f"line {block.line + offset + 1}: a console block starts with '$ '")
    return steps


@dataclass
class Run:
    """The differences found by running a page, and the real outputs."""

    differences: list[str] = field(default_factory=list)
    outputs: list[tuple[int, int, int, list[str]]] = field(default_factory=list)
    """For each output: first line, number of lines, indentation, and the real lines."""


def run_page(text: str, folder: Path, *, compare: bool = True) -> Run:
    """Run a page in a folder."""
    beside = re.search(r"<!-- beside: (.*?) -->", text)
    furnish(folder, beside[1].split() if beside else ())
    compare = compare and outputs_are_stable(text)
    run, printed = Run(), ""
    with Shell(folder) as shell, Python(folder) as python:
        for block in blocks_of(text):
            if block.note == "output":
                _check(run, block.line, block.lines, block.indent, printed, compare)
            elif not block.is_run:
                continue
            elif block.title:
                path = shell.folder() / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.language == "python":
                status, printed = python.run(block.text, shell.folder())
                if status:
                    run.differences.append(f"line {block.line}: Python fails\n{printed}")
            else:
                _run_console(run, block, shell, compare)
    return run


def _run_console(run: Run, block: Block, shell: Shell, compare: bool) -> None:
    steps = steps_of(block)
    for index, step in enumerate(steps):
        status, printed = shell.run(step.command)
        told = index + 1 < len(steps) and steps[index + 1].command == "echo $?"
        allowed = (0, 1) if step.command.startswith("xcount ") else (0,)
        if status not in allowed and not told:
            run.differences.append(f"$ {step.command}\nends with status {status}:\n{printed}")
        elif step.shown:
            # The status is a promise of XCount, whatever the versions of others.
            always = step.command == "echo $?"
            _check(run, step.first, step.shown, block.indent, printed, compare or always)


def _check(
    run: Run, first: int, shown: tuple[str, ...], indent: int, printed: str, compare: bool
) -> None:
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    if "..." not in shown:
        run.outputs.append((first, len(shown), indent, lines))
    if compare and not matches(shown, lines):
        expected, found = "\n".join(shown), "\n".join(lines)
        run.differences.append(f"line {first + 1}: expected\n{expected}\nfound\n{found}")


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Tell whether an output equals the one shown, except for times, memory, widths and progress.

    Example:
        >>> matches(["a  1.5 s", "...", "b"], ["a 20 s", "many", "lines", "b"])
        True
    """
    pattern = " ".join(".*" if line == "..." else re.escape(_masked(line)) for line in shown)
    found = (_masked(line) for line in printed if not _PROGRESS.match(line))
    return re.fullmatch(pattern, " ".join(found)) is not None


def _masked(line: str) -> str:
    if _ESTIMATE.search(line):
        return re.sub(r"[^A-Za-z%│]+", " ", line).strip()
    for pattern, replacement in _MASKS:
        line = pattern.sub(replacement, line)
    return line.strip()


def packages_of(text: str) -> list[str]:
    """Return the packages that a page's outputs depend on."""
    named = re.search(r"<!-- outputs with: (.*?) -->", text)
    return named[1].split() if named else []


def outputs_are_stable(text: str) -> bool:
    """Tell whether the installed versions of those packages are the ones in the lock file."""
    locked = (ROOT / "requirements" / "test.lock").read_text().splitlines()
    try:
        return all(f"{name}=={metadata.version(name)}" in locked for name in packages_of(text))
    except metadata.PackageNotFoundError:
        return False


def updated(text: str, run: Run) -> str:
    """Return a page whose outputs are replaced by those of a run."""
    lines = text.splitlines()
    for first, number, indent, printed in sorted(run.outputs, reverse=True):
        lines[first : first + number] = [(" " * indent + line).rstrip() for line in printed]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.examples", description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--update", action="store_true", help="write the real outputs")
    options = parser.parse_args()
    status = 0
    for page in options.pages:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            run = run_page(text, Path(folder), compare=not options.update)
        for difference in run.differences:
            print(f"{page}: {difference}")
            status = 1
        if options.update:
            page.write_text(updated(text, run))
    return status


if __name__ == "__main__":
    sys.exit(main())
