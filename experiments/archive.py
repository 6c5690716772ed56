"""Pack the kept results with their checksums, and check such an archive.

    python -m experiments.archive                     # writes dist/xcount-results-VERSION.tar.gz
    python -m experiments.archive --check FILE        # whether every file is as it was packed

The same results give the same bytes. ``SHA256SUMS`` is in the format of ``sha256sum``; so
``sha256sum --check SHA256SUMS`` does the same in the folder that was unpacked, and in
``benchmarks/results``, where :mod:`experiments.page` writes it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.records import RESULTS
from xcount import __version__

SUMS = "SHA256SUMS"


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder of results by name, without the list of their checksums."""
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != SUMS]
    return {path.name: path.read_bytes() for path in paths}


def sums_of(files: Mapping[str, bytes]) -> str:
    """Return a line for each file: its hash and its name."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()
    )


def write_sums(folder: Path) -> Path:
    """Write the checksums of a folder of results beside them."""
    path = folder / SUMS
    path.write_text(sums_of(files_of(folder)))
    return path


def packed(files: Mapping[str, bytes], sums: str) -> bytes:
    """Return the archive of files and their checksums."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in {**files, SUMS: sums.encode()}.items():
            about = tarfile.TarInfo(f"xcount-results/{name}")
            about.size, about.mode = len(content), 0o644
            archive.addfile(about, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def damage(path: Path) -> list[str]:
    """Return what is wrong with an archive: files that are missing, added or changed."""
    with tarfile.open(path, "r:gz") as archive:
        found = {
            Path(member.name).name: stream.read()
            for member in archive.getmembers()
            if (stream := archive.extractfile(member)) is not None
        }
    listed = found.pop(SUMS, b"").decode()
    if not listed:
        return [f"{SUMS} is missing"]
    expected = {name: digest for digest, _, name in (x.partition("  ") for x in listed.split("\n"))}
    expected.pop("", None)
    wrong = [f"{name} is missing" for name in expected if name not in found]
    for name, content in found.items():
        if name not in expected:
            wrong.append(f"{name} is not listed")
        elif hashlib.sha256(content).hexdigest() != expected[name]:
            wrong.append(f"{name} was changed")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.archive", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to pack")
    name = f"xcount-results-{__version__}.tar.gz"
    parser.add_argument("--output", type=Path, default=PROJECT / "dist" / name)
    parser.add_argument("--check", type=Path, metavar="FILE", help="check an archive instead")
    options = parser.parse_args(arguments)
    if options.check is not None:
        try:
            wrong = damage(options.check)
        except (OSError, tarfile.TarError, EOFError) as error:
            reason = getattr(error, "strerror", None) or error
            print(f"{options.check}: {reason}", file=sys.stderr)
            return 2
        print("\n".join(wrong) or f"{options.check}: every file is as it was packed")
        return 1 if wrong else 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    files = files_of(options.results)
    content = packed(files, sums_of(files))
    options.output.write_bytes(content)
    print(f"{hashlib.sha256(content).hexdigest()}  {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
