"""Turn the runs in a folder into tables and pictures, and put them into the pages in docs.

A folder of results holds runs (``SUITE-METHOD.jsonl``, or packed as ``.jsonl.gz``) and the files of
studies with commands of their own. For each section one Markdown file and its pictures are written
beside them. Pages have places for sections, between ``<!-- begin NAME -->`` and
``<!-- end NAME -->``, and are filled from them.

    python -m experiments.page                     # benchmarks/results -> the pages in docs
    python -m experiments.page --pack              # pack the runs first
    python -m experiments.page benchmarks/runs/short --no-page
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import cluster, limits, weights, wild
from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.records import RESULTS, Runs, runs_by_suite
from experiments import (
    ablations,
    accuracy,
    archive,
    census,
    durations,
    encodings,
    estimates,
    gaps,
    libraries,
    methods,
    performance,
    recovery,
    regularisation_report,
    sampling,
    theorem,
    verdict,
)

DOCS = PROJECT / "docs"
SECTIONS: dict[str, tuple[str, Callable[[Runs, Path], str]]] = {
    "verdict": ("paper", verdict.section),
    "recovery": (recovery.FILE, recovery.section),
    "guards": ("paper", performance.guards_section),
    "paper": ("paper", performance.section),
    "solved": ("paper", performance.solved_section),
    "methods": ("methods", methods.section),
    "census": ("census", census.section),
    "theorem": (theorem.FILE, theorem.section),
    "accuracy": ("methods", accuracy.section),
    "scalability": ("paper", performance.scalability_section),
    "encodings": (encodings.FILE, encodings.section),
    "ablations": ("ablations", ablations.section),
    "gaps": ("gaps", gaps.section),
    "regularisation": (regularisation_report.FILE, regularisation_report.section),
    "frontier": ("frontier", performance.frontier_section),
    "wild": (wild.FILE, wild.section),
    "wild_all": (wild.FILE_OF_ALL, wild.section_of_all),
    "limits": (limits.FILE, limits.section),
    "beyond": ("beyond", libraries.section),
    "weights": (weights.FILE, weights.section),
    "sampling": (sampling.FILE, sampling.section),
    "cluster": (cluster.FILE, cluster.section),
    "durations": ("hard", durations.section),
}
"""Each section: the suite or the file that it needs, and what writes it.

Durations judge by whole runs: only those have the suite ``hard``.
"""


def pages(docs: Path = DOCS) -> list[Path]:
    """Return the pages that have a place for a section."""
    marks = re.compile(rf"<!-- begin ({'|'.join(SECTIONS)}) -->")
    return [path for path in sorted(docs.rglob("*.md")) if marks.search(path.read_text())]


def pack(folder: Path) -> None:
    """Replace each run by its packed form; the same run gives the same bytes."""
    for path in folder.glob("*-*.jsonl"):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()


def write_results(folder: Path) -> list[Path]:
    """Write the sections that the runs in a folder allow; return their files."""
    by_suite = estimates.with_paper_answers(runs_by_suite(folder))
    written = []
    for name, (needed, write) in SECTIONS.items():
        if needed in by_suite or (folder / needed).is_file():
            path = folder / f"{name}.md"
            path.write_text(write(by_suite, folder) + "\n")
            written.append(path)
    return written


def fill(page: str, folder: Path, link: str) -> str:
    """Return a page with each marked place filled from a folder of results.

    ``link`` leads from the page to the folder; it is put before the names of pictures.
    """

    def place(match: re.Match[str]) -> str:
        path = folder / f"{match[1]}.md"
        text = path.read_text() if path.exists() else "*Not run.*\n"
        text = re.sub(r"(!\[[^]]*\]\()", rf"\1{link}/", text)
        return f"<!-- begin {match[1]} -->\n\n{text}\n<!-- end {match[1]} -->"

    marks = rf"<!-- begin ({'|'.join(SECTIONS)}) -->.*?<!-- end \1 -->"
    return re.sub(marks, place, page, flags=re.DOTALL)


def filled(path: Path, folder: Path = RESULTS) -> str:
    """Return a page as the results in a folder make it."""
    return fill(path.read_text(), folder, os.path.relpath(folder, path.parent))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.page", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the pages")
    parser.add_argument("--pack", action="store_true", help="pack the runs in the folder")
    parser.add_argument("--no-page", action="store_true", help="leave the pages alone")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    if options.pack:
        pack(options.folder)
    for path in write_results(options.folder):
        print(path)
    if not options.no_page:
        for page in pages(options.docs):
            page.write_text(filled(page, options.folder))
            print(page)
        print(archive.write_sums(options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
