"""Fuzzes the loaders, guided by coverage: damaged files that reach new code are damaged further.

    python -m tools.guided_fuzz --minutes 10 --keep findings

It needs atheris (``pip install 'xcount[fuzz]'``), and XCount installed with ``pip install .``:
atheris sees no coverage of a package that is installed in place. Files are damaged as by
:mod:`tools.fuzz`, or by libFuzzer, and tried in the same way: a case is a finding if it ends in
anything but an ensemble or an error of XCount, or if the library predicts otherwise. libFuzzer
stops at the first finding, keeps it as a file and ends with a status other than 0. Files that
reached new code stay in the folder, and the next run starts from them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

MOST_BYTES = 200_000
BROKEN_ARCHIVE = (zlib.error, zipfile.BadZipFile, OSError, ValueError, NotImplementedError)
OWN_DAMAGE = 0.7
"""How often a file is damaged in the way of :mod:`tools.fuzz`, which knows numbers and archives."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.guided_fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1, help="libFuzzer takes 0 for a random one")
    parser.add_argument("--only", help="one file of the corpus")
    parser.add_argument("--keep", type=Path, help="folder for findings (default: a new one)")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("atheris is missing; install it with: pip install 'xcount[fuzz]'")
        return 2
    if not is_plainly_installed():
        print("xcount is installed in place, where atheris sees no coverage; use: pip install .")
        return 2
    kept = options.keep or Path(tempfile.mkdtemp(prefix="xcount-guided-"))
    fuzz(60 * options.minutes, options.seed, options.only, kept)
    return 0


def is_plainly_installed() -> bool:
    """Return whether the native core lies beside the Python files, without importing either."""
    spec = importlib.util.find_spec("xcount")
    assert spec is not None
    assert spec.origin is not None
    return any(Path(spec.origin).parent.glob("_core.*.so"))


def fuzz(seconds: float, seed: int, only: str | None, kept: Path) -> None:
    """Let libFuzzer run; it ends the process."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # optional

    with atheris.instrument_imports(include=["xcount"], enable_loader_override=False):
        from tools.fuzz import damaged, seeds, try_file, warm_up

        corpus = kept / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        files = {name: data for name, data in seeds().items() if only in (None, name)}
        warm_up(dict(files), kept)  # loaders are imported on first use
    for name, data in files.items():
        (corpus / name.replace("/", "-")).write_bytes(data)
    case = kept / ".case"

    def try_one(data: bytes) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try_file(data, case)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        random = np.random.default_rng(number)
        if random.random() < OWN_DAMAGE:
            with contextlib.suppress(*BROKEN_ARCHIVE):  # an earlier damage may have broken it
                return damaged(data, random)[:most]
        return bytes(atheris.Mutate(data, most))

    limits = ["-rss_limit_mb=4096", "-timeout=600", f"-max_len={MOST_BYTES}"]
    asked = [f"-max_total_time={round(seconds)}", f"-seed={seed}", f"-artifact_prefix={kept}/"]
    command = [sys.argv[0], *limits, *asked, "-print_final_stats=1", str(corpus)]
    atheris.Setup(command, try_one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
