"""Fuzzes the loaders with damaged model files, and the native boundary with damaged arrays.

    python -m tools.fuzz --minutes 10
    python -m tools.fuzz --only seeds/lightgbm.txt --seed 7 --keep findings

It damages the files of ``tests/corpus``. A case is a finding if it ends in anything but an ensemble
or an error of XCount: another exception, a crash, more than ``CASE_SECONDS``, ``MEMORY_BYTES`` more
memory; or if the library itself accepts the file and predicts otherwise. Findings are kept as
files, and the exit status is 1; fixed ones go to ``tests/corpus/findings``. Cases run in forked
children, so a crash costs one child; the library predicts in another one.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tools.corpus import CORPUS
from xcount import Grid, XCountError, count, load
from xcount.model.ensemble import Ensemble
from xcount.model.examples import figure_1
from xcount.model.loaders.check import library_margins, rounding_bound
from xcount.problem.problem import Problem
from xcount.question.query import Query

CASE_SECONDS = 20
"""Limit on processor time, so that other work on the machine causes no findings; the limit on
wall-clock time is thirty times as large."""
MEMORY_BYTES = 4 * 2**30
CASES_PER_CHILD = 200
N_ROWS = 40
"""How many rows the library predicts."""
MOST_COLUMNS = 1000
DIFFERENT = 7
"""The exit status of a child in which the library predicts otherwise."""
BEYOND_FLOAT32 = 1e37
"""Sums beyond this may overflow in a library that adds in 32 bits."""
NASTY = [b"-1", b"0", b"4294967296", b"1e400", b"nan", b"-inf", b"null", b"[]", b"{}", b'""']
NASTY += [b"9" * 40, b"[" * 2000, b"\x00", b"\xff", b'"', b"true", b"18446744073709551616"]

Random = np.random.Generator


def seeds() -> dict[str, bytes]:
    """Return the files to damage, by name: small models and earlier findings."""
    return {
        path.relative_to(CORPUS).as_posix(): path.read_bytes()
        for folder in ("seeds", "findings")
        for path in sorted((CORPUS / folder).iterdir())
    }


def damaged(data: bytes, random: Random) -> bytes:
    """Return the bytes with one to four damaged places; packed files are mostly damaged inside."""
    if random.random() < 0.8:
        if data.startswith(b"PK"):
            return _damaged_zip(data, random)
        if data.startswith(b"\x1f\x8b"):
            with contextlib.suppress(OSError, EOFError):
                return gzip.compress(damaged(gzip.decompress(data), random), compresslevel=1)
    for _ in range(int(random.integers(1, 5))):
        data = _damages[int(random.integers(len(_damages)))](data, random)
    return data


def _damaged_zip(data: bytes, random: Random) -> bytes:
    """Damage one file of an archive, and recompute its checksums."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as changed:
        names = source.namelist()
        # The schema is only one of many files, but the one that a reader follows.
        chosen = "schema.json" if random.random() < 0.5 else str(random.choice(names))
        for name in names:
            content = source.read(name)
            changed.writestr(name, damaged(content, random) if name == chosen else content)
    return target.getvalue()


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[int(random.integers(len(changed)))] = int(random.integers(256))
    return bytes(changed)


def _cut(data: bytes, random: Random) -> bytes:
    start, end = sorted(random.integers(0, len(data) + 1, 2).tolist())
    return data[:start] + data[end:] if random.random() < 0.5 else data[:end]


def _repeat(data: bytes, random: Random) -> bytes:
    start = int(random.integers(0, len(data) + 1))
    piece = data[start : start + int(random.integers(1, 200))]
    return data[:start] + piece * int(random.integers(2, 20)) + data[start:]


def _insert(data: bytes, random: Random) -> bytes:
    at = int(random.integers(0, len(data) + 1))
    return data[:at] + NASTY[int(random.integers(len(NASTY)))] + data[at:]


def _replace_number(data: bytes, random: Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", data))
    if not numbers:
        return _flip(data, random)
    chosen = numbers[int(random.integers(len(numbers)))]
    return data[: chosen.start()] + NASTY[int(random.integers(len(NASTY)))] + data[chosen.end() :]


_damages: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flip,
    _cut,
    _repeat,
    _insert,
    _replace_number,
    _replace_number,
)


def try_file(data: bytes, path: Path) -> None:
    """Load a file and, if that works, predict and count; errors of XCount are accepted answers."""
    path.write_bytes(data)
    try:
        ensemble = load(path)
        compare_with_library(ensemble, path)
        grid = Grid.of(ensemble)
        if ensemble.n_features:
            count(
                ensemble,
                sensitive=0,
                gap="0.1",
                class_=0 if ensemble.n_outputs > 1 else None,
                grid=grid,
                timeout=1,
                memory=2**30,
                jobs=1,
            )
    except XCountError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error


def compare_with_library(ensemble: Ensemble, path: Path) -> None:
    """Let the library predict random regions, in a child: it may crash, refuse or take long."""
    if not 0 < ensemble.n_features <= MOST_COLUMNS:
        return
    grid = Grid.of(ensemble, missing="cell")
    random = np.random.default_rng(0)
    cells = random.integers(0, grid.cell_counts, (N_ROWS, ensemble.n_features))
    rows = np.array([grid.point(region) for region in cells])
    pid = os.fork()
    if pid == 0:
        os._exit(DIFFERENT if _predicts_otherwise(ensemble, path, rows) else 0)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == DIFFERENT:
        raise AssertionError(f"the library reads {path} in another way")


def _predicts_otherwise(ensemble: Ensemble, path: Path, rows: NDArray[np.float64]) -> bool:
    """Return whether the library accepts a file, and predicts rows differently.

    One thread: those of a library's pool stayed behind in the parent, and it would wait for them.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(CASE_SECONDS)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        with threadpool_limits(1):
            expected = library_margins(ensemble, path, rows)
    except BaseException:
        return False
    with np.errstate(all="ignore"):
        found, bound = ensemble.predict(rows), rounding_bound(ensemble, rows)
        is_beyond = np.abs(found) + bound > BEYOND_FLOAT32
        is_near = np.abs(expected - found) <= bound if expected.shape == found.shape else False
    return not (is_near | is_beyond).all()


def try_native(random: Random) -> None:
    """Pass wrong arrays and numbers to the native core; refusing them is an accepted answer."""
    from xcount import _core

    arrays = _forest_arrays()
    if random.random() < 0.6:
        arrays = _damaged_arrays(arrays, random)
    # MemoryError is also accepted: stated sizes are trusted up to a limit.
    refused = (ValueError, IndexError, TypeError, OverflowError, MemoryError, RuntimeError)
    with contextlib.suppress(*refused):
        forest = _core.Forest(**arrays)
        sensitive = random.integers(-2, 4, int(random.integers(0, 4))).tolist()
        if random.random() < 0.6:
            sensitive = [0]
        distance = int(random.integers(-1, 5))
        masks = _core.MaskSpace(forest, sensitive, None if distance == 4 else distance)
        for use in random.permutation(np.array(_NATIVE_USES, dtype=object)):
            with contextlib.suppress(*refused):
                use(_core, forest, masks, random)


def _damaged_arrays(arrays: dict[str, Any], random: Random) -> dict[str, Any]:
    for name in random.choice(list(arrays), int(random.integers(1, 3))):
        array = arrays[name].copy()
        if array.size and random.random() < 0.7:
            values = [-(2**31), -2, -1, 0, 1, 3, 7, 2**31 - 1]
            array.flat[int(random.integers(array.size))] = np.array(
                values[int(random.integers(len(values)))]
            ).astype(array.dtype)
        else:
            array = np.ascontiguousarray(array[: int(random.integers(len(array) + 1))])
        arrays[name] = array
    return arrays


_LIMBS = np.array([80 * 10**6], dtype=np.uint64)


def _mask(random: Random) -> int:
    """Return the number of a mask, which may not exist."""
    odd = (-(2**63), -1, 3, 10**9, 2**62)
    return int(random.integers(0, 3)) if random.random() < 0.9 else odd[int(random.integers(5))]


def _pairs(random: Random) -> list[tuple[int, int]]:
    return [(_mask(random), _mask(random)) for _ in range(int(random.integers(0, 40)))]


def _use_masks(core: Any, forest: Any, masks: Any, random: Random) -> None:
    masks.cells(_mask(random))
    masks.neighbours(_mask(random))
    masks.distance(_mask(random), _mask(random))


def _use_brute(core: Any, forest: Any, masks: Any, random: Random) -> None:
    brute = core.BruteForce(forest, masks, _LIMBS)
    brute.count(int(random.integers(0, 12)), int(random.integers(0, 12)), 2)


def _use_exact(core: Any, forest: Any, masks: Any, random: Random) -> None:
    counter = core.ExactCounter(forest, masks, _LIMBS)
    counter.live(_pairs(random), 2)
    tasks = [
        (_pairs(random), bool(random.integers(2)), int(random.integers(4)), int(random.integers(3)))
        for _ in range(3)
    ]
    counter.start(tasks, int(random.choice([0, 3, 10**9])), 10_000, 2**24, 2)
    counter.wait(1.0)
    counter.results()


def _use_diagram(core: Any, forest: Any, masks: Any, random: Random) -> None:
    diagram = core.SolutionDiagram(
        forest, masks, _LIMBS, _pairs(random), bool(random.integers(2)), 10_000, 2**24
    )
    diagram.sample(int(random.integers(0, 5)), 1)
    diagram.boxes(int(random.integers(0, 5)))


def _use_cover(core: Any, forest: Any, masks: Any, random: Random) -> None:
    tasks = [(_pairs(random), int(random.integers(0, 3))) for _ in range(int(random.integers(3)))]
    cover = core.Cover(forest, masks, _LIMBS, tasks)
    cover.refine(int(random.integers(0, 1000)), 1.0, 2)
    if random.random() < 0.8:
        cover.freeze()
    cover.draw(0, 0, 0, 2, 2)


def _use_sampler(core: Any, forest: Any, masks: Any, random: Random) -> None:
    pairs = np.array(_pairs(random), dtype=np.int64).reshape(-1, 2)
    chosen = random.integers(-1, 5, 3) if random.random() < 0.5 else np.arange(3)
    sampler = core.Sampler(forest, masks, _LIMBS, chosen, pairs if random.random() < 0.5 else None)
    sampler.draw(0, 0, 0, 2, 2)
    sampler.decide(_regions(random))


def _use_region_sampler(core: Any, forest: Any, masks: Any, random: Random) -> None:
    sensitive = random.integers(-1, 3, int(random.integers(0, 3))).tolist()
    budget = (None, 0, 1, 10**6)[int(random.integers(4))]
    distance = (None, -1, 0, 1, 5)[int(random.integers(5))]
    sampler = core.RegionSampler(forest, sensitive, distance, _LIMBS, budget)
    sampler.draw(0, 0, 0, 2, 2)
    sampler.decide(_regions(random))


def _regions(random: Random) -> Any:
    """Return combinations of cells; some may not exist, and there may be one cell too many."""
    size = 2 * int(random.integers(0, 4)) + int(random.random() < 0.1)
    wrong = random.random() < 0.2
    cells = random.integers(-3, 9, size) if wrong else random.integers(0, 3, size)
    return cells.astype(np.int32)


_NATIVE_USES: tuple[Callable[[Any, Any, Any, Random], None], ...] = (
    _use_masks,
    _use_brute,
    _use_exact,
    _use_diagram,
    _use_cover,
    _use_sampler,
    _use_region_sampler,
)


def _forest_arrays() -> dict[str, Any]:
    """Return the arrays that a real question passes to the native core."""
    from unittest import mock

    from xcount.problem import laid_trees

    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    with mock.patch.object(laid_trees, "_core") as core:
        _ = problem.forest
    given = core.Forest.call_args.kwargs.items()
    return {name: array for name, array in given if array is not None}


def run_cases(name: str, seed_data: bytes | None, numbers: range, seed: int, kept: Path) -> int:
    """Run cases in a forked child; return how many of them were fine."""
    case = kept / f".case-{os.getpid()}"
    pid = os.fork()
    if pid == 0:
        os._exit(_child(name, seed_data, numbers, seed, case))
    _, status = os.waitpid(pid, 0)
    if status == 0:
        case.unlink(missing_ok=True)
        return len(numbers)
    kind = f"signal {status & 127}" if status & 127 else "exception"
    number = case.with_suffix(".number").read_text()
    print(f"FINDING: {name}, case {number}, seed {seed}: {kind}", flush=True)
    if case.exists():
        case.rename(kept / f"{Path(name).name}-{seed}-{number}")
    return int(number) - numbers.start


def _child(name: str, seed_data: bytes | None, numbers: range, seed: int, case: Path) -> int:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    warnings.simplefilter("ignore")
    for number in numbers:
        case.with_suffix(".number").write_text(str(number))
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        signal.alarm(30 * CASE_SECONDS)
        random = np.random.default_rng([seed, number])
        try:
            if seed_data is None:
                try_native(random)
            else:
                try_file(damaged(seed_data, random), case)
        except BaseException:
            traceback.print_exc()
            return 1
    return 0


def warm_up(targets: dict[str, bytes | None], folder: Path) -> None:
    """Read every file once, so that children need not import the libraries again."""
    for library in ("catboost", "lightgbm", "sklearn.ensemble", "skops.io", "xgboost"):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    path = folder / ".warm-up"
    for data in filter(None, targets.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try_file(data, path)
    path.unlink(missing_ok=True)


def fuzz(targets: dict[str, bytes | None], seconds: float, seed: int, kept: Path) -> Iterator[str]:
    """Run cases of all targets in turn until time runs out; yield a summary per finding."""
    warm_up(targets, kept)
    deadline = time.monotonic() + seconds
    done = dict.fromkeys(targets, 0)
    n_findings, first = 0, 0
    while time.monotonic() < deadline and n_findings < 20:
        for name, data in targets.items():
            numbers = range(first, first + CASES_PER_CHILD)
            fine = run_cases(name, data, numbers, seed, kept)
            done[name] += fine
            n_findings += fine < len(numbers)
            if time.monotonic() >= deadline:
                break
        first += CASES_PER_CHILD
    for name, n_cases in done.items():
        yield f"{name}: {n_cases} cases"
    yield f"{n_findings} findings"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one file of the corpus, or native")
    parser.add_argument("--keep", type=Path, help="folder for findings (default: a new one)")
    options = parser.parse_args(arguments)
    kept = options.keep or Path(tempfile.mkdtemp(prefix="xcount-fuzz-"))
    kept.mkdir(parents=True, exist_ok=True)
    targets: dict[str, bytes | None] = {**seeds(), "native": None}
    if options.only is not None:
        targets = {options.only: targets[options.only]}
    lines = list(fuzz(targets, 60 * options.minutes, options.seed, kept))
    print("\n".join(lines))
    print(f"seed {options.seed}; findings are in {kept}")
    return 0 if lines[-1].startswith("0 ") else 1


if __name__ == "__main__":
    sys.exit(main())
