"""Runs a notebook from the first cell to the last, in its own folder or another.

    python -m tools.notebook examples/adult.ipynb              # in the notebook's folder
    python -m tools.notebook examples/adult.ipynb --in FOLDER  # writes its files there

prints one line for each cell with what it shows, and exits with status 1 at the first error. The
notebook file is not changed: it is kept without outputs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 300


def executed(path: Path, folder: Path) -> list[Any]:
    """Return the cells of a notebook with their outputs; raise at the first cell that fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=TIMEOUT_SECONDS, resources=place).execute()
    return list(notebook.cells)


def kinds_of(cell: Any) -> list[str]:
    """Return the kinds of output of a cell: media types, or ``stdout`` and ``stderr``."""
    return [
        kind
        for output in cell.get("outputs", [])
        for kind in output.get("data", {output.get("name", output["output_type"]): None})
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebook", description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--in", dest="folder", type=Path, help="where to run it")
    options = parser.parse_args()
    from nbclient.exceptions import CellExecutionError

    try:
        cells = executed(options.notebook, options.folder or options.notebook.parent)
    except CellExecutionError as error:
        print(f"{error.ename}: {error.evalue}")
        return 1
    for cell in cells:
        if cell.cell_type == "code":
            print(f"{cell.source.splitlines()[0][:60]:60}  {', '.join(kinds_of(cell))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
