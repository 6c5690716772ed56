"""Checks that every Python with XCount makes the same result files, on one thread and several.

    python -m tools.reproduce
    python -m tools.reproduce --python venv312/bin/python --python venv313/bin/python

All files must be the same, byte for byte: counts, audits and comparisons as JSON, reports as HTML,
Markdown and CSV. Times, memory and versions are set to fixed values before anything is written.
Without ``--python``, it tries the Python that runs this, those named in XCOUNT_PYTHONS (separated
by ``:``), and python3.11 to python3.19 on the path. The exit status is 1 if files differ.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
import xcount
from xcount.model.examples import adult_model_path
from xcount.support.numerals import to_json

folder, jobs = Path(sys.argv[1]), int(sys.argv[2])
Path("model.json").write_bytes(adult_model_path().read_bytes())

def fixed(data):
    "Return plain data with fixed times, memory and versions."
    if isinstance(data, list):
        return [fixed(value) for value in data]
    if not isinstance(data, dict):
        return data
    known = {"seconds": 0.0, "peak_memory_bytes": 0, "created": "", "versions": {}}
    return {key: known.get(key, fixed(value)) for key, value in data.items()}

model = xcount.load("model.json")
common = {"seed": 5, "jobs": jobs, "epsilon": 0.05}
for method in ("auto", "exact", "sample", "xcount"):
    result = xcount.count(model, sensitive="sex", gap=1, method=method, profile=True, **common)
    (folder / f"count-{method}.json").write_text(to_json(fixed(result.to_dict())))
flips = xcount.count(model, sensitive=["age"], flip=True, method="sample", **common)
(folder / "count-flips.json").write_text(to_json(fixed(flips.to_dict())))
for method in ("auto", "sample"):
    names = ["age", "sex", "race", "education_num"]
    audit = xcount.audit(model, sensitive=names, gaps=[0.5, 2], method=method, **common)
    audit = xcount.AuditResult.from_dict(fixed(audit.to_dict()))
    (folder / f"audit-{method}.json").write_text(audit.to_json())
    (folder / f"audit-{method}.html").write_text(audit.to_html())
    (folder / f"audit-{method}.md").write_text(audit.to_markdown())
    (folder / f"audit-{method}.csv").write_text(audit.to_csv())
both = xcount.compare([model, model], gaps=[1], sensitive=["age", "race"], **common)
(folder / "compare.json").write_text(to_json(fixed(both.to_dict())))
"""

VERSIONS = "import platform, numpy, xcount; print(platform.python_version(), numpy.__version__)"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python with XCount."""

    path: str
    python: str
    numpy: str


def candidates() -> Iterator[str]:
    """Yield the Pythons to try if none is named."""
    yield sys.executable
    yield from filter(None, os.environ.get("XCOUNT_PYTHONS", "").split(os.pathsep))
    for minor in range(11, 20):
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found


def interpreters(paths: Sequence[str]) -> tuple[list[Interpreter], list[str]]:
    """Return those that can import XCount, one per version; and the others, with the reason."""
    found: dict[str, Interpreter] = {}
    refused = []
    for name in paths:
        path = os.path.abspath(name) if os.path.dirname(name) else name
        done = _run(path, "-c", VERSIONS)
        if done.returncode == 0:
            python, numpy = done.stdout.split()
            found.setdefault(python, Interpreter(path, python, numpy))
        else:
            lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            refused.append(f"{path}: {lines[-1]}")
    return list(found.values()), refused


def _run(path: str, *arguments: str, folder: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a Python in a folder, without this process's environment variables for Python."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        return subprocess.run(
            [path, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=kept,
            cwd=folder,
        )
    except OSError as error:
        return subprocess.CompletedProcess([path], 127, "", str(error))


def result_files(interpreter: Interpreter, jobs: int) -> dict[str, bytes]:
    """Return the result files that a Python makes, by name."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.mkdir()
        done = _run(interpreter.path, "-c", PROGRAM, str(results), str(jobs), folder=folder)
        if done.returncode != 0:
            raise RuntimeError(f"{interpreter.path} failed:\n{done.stderr}")
        return {path.name: path.read_bytes() for path in sorted(results.iterdir())}


def differences(expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Return which files differ, and the first difference."""
    said = [f"{name} is not there" for name in expected.keys() ^ found.keys()]
    for name in expected.keys() & found.keys():
        pairs = zip(expected[name], found[name], strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if place is not None or len(expected[name]) != len(found[name]):
            at = min(len(expected[name]), len(found[name])) if place is None else place
            around = slice(max(0, at - 40), at + 40)
            said.append(f"{name}, byte {at}: {expected[name][around]!r}, {found[name][around]!r}")
    return sorted(said)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.reproduce", description=__doc__)
    parser.add_argument("--python", action="append", help="a Python to try; repeat it for more")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    usable, refused = interpreters(options.python or list(candidates()))
    for reason in refused:
        print(f"left out: {reason}")
    if not usable:
        print("no Python can import xcount")
        return 1
    expected: dict[str, bytes] = {}
    n_wrong = 0
    for interpreter in usable:
        for jobs in (1, options.jobs):
            found = result_files(interpreter, jobs)
            expected = expected or found
            wrong = differences(expected, found)
            n_wrong += bool(wrong)
            verdict = "the same" if not wrong else f"{len(wrong)} DIFFERENT, {wrong[0]}"
            where = f"Python {interpreter.python}, numpy {interpreter.numpy}, {jobs} threads"
            print(f"{where}: {len(found)} files, {verdict}", flush=True)
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
