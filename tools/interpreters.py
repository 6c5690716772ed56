"""A shell and a Python interpreter that run the examples of a page one after the other."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import xcount
from xcount.model.examples import adult_model_path, figure_1

ROOT = Path(__file__).parent.parent

_INTERPRETER = """
import json, os, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    code, folder, mark = json.loads(line)
    os.chdir(folder)
    status = 0
    try:
        known = set(names)
        exec(compile(code, "<example>", "exec"), names)
        for name in [name for name in names if name.startswith("test_") and name not in known]:
            names[name]()
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        status = 1
    print(f"\\n{mark} {status}", flush=True)
"""


class _Interpreter:
    """A child process that answers each input with its output and a status."""

    def __init__(self, folder: Path, command: list[str], clean: bool = False) -> None:
        here, paths = str(Path(sys.executable).parent), os.environ["PATH"].split(os.pathsep)
        paths = [path for path in paths if path != here] if clean else [here, *paths]
        environment = os.environ | {"PATH": os.pathsep.join(paths), "MPLBACKEND": "agg"}
        for name in ("COLUMNS", *(("VIRTUAL_ENV", "PYTHONPATH") if clean else ())):
            environment.pop(name, None)
        self._mark = secrets.token_hex(16)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def _ask(self, text: str) -> tuple[int, str]:
        """Write to the child, and read until its end mark; return its status and output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()
        printed: list[str] = []
        for line in self._process.stdout:
            if line.startswith(self._mark):
                return int(line.split()[1]), "".join(printed).removesuffix("\n")
            printed.append(line)
        raise RuntimeError(f"the interpreter ended: {''.join(printed)}")


class Shell(_Interpreter):
    """A shell that keeps its folder and variables from one command to the next.

    A clean one does not see the virtual environment of this process.
    """

    def __init__(self, folder: Path, clean: bool = False) -> None:
        super().__init__(folder, ["bash", "--noprofile", "--norc"], clean)

    def run(self, command: str) -> tuple[int, str]:
        """Return the exit status of a command and its output, standard error included."""
        after = f"__status=$?; printf '\\n%s %d\\n' {self._mark} $__status; (exit $__status)"
        return self._ask(f"{{ {command}\n}} </dev/null\n{after}\n")

    def folder(self) -> Path:
        """Return the shell's current folder."""
        return Path(self.run("pwd")[1].strip())


class Python(_Interpreter):
    """A Python interpreter that keeps its names from one example to the next."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [sys.executable, "-c", _INTERPRETER])

    def run(self, code: str, folder: Path) -> tuple[int, str]:
        """Return 0 (1 after an exception) and the output, traceback included."""
        return self._ask(json.dumps([code, str(folder), self._mark]) + "\n")


def furnish(folder: Path, names: Iterable[str]) -> None:
    """Put the files that a page's examples need into a folder."""
    for name in names:
        _FILES[name](folder / name)


def _model(path: Path) -> None:
    shutil.copy(adult_model_path(), path)


def _people(path: Path) -> None:
    """Write four inputs of the model, as CSV or Parquet."""
    import pandas as pd

    model = xcount.load(adult_model_path())
    grid = xcount.Grid.of(model)
    rows = [
        grid.point([int(share * (axis.n_cells - 1)) for axis in grid.axes])
        for share in (0, 0.3, 0.5, 1)
    ]
    frame = pd.DataFrame(rows, columns=list(model.feature_names))
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def _journal(path: Path) -> None:
    xcount.audit(figure_1(), gaps=80, journal=path)


def _repository_folder(path: Path) -> None:
    path.symlink_to(ROOT / path.name)


_FILES: dict[str, Callable[[Path], None]] = {
    "model.json": _model,
    "old.json": _model,
    "new.json": _model,
    "people.csv": _people,
    "people.parquet": _people,
    "results.jsonl": _journal,
    "examples": _repository_folder,
}
"""Files that examples may need: models of the Adult data, tables, a journal, our examples."""
