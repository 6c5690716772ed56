"""Damages model files, and arrays at the native boundary, and looks for anything but an answer.

    python -m tools.fuzz --minutes 10
    python -m tools.fuzz --only lightgbm --seed 7 --keep findings

Seeds are small models that the libraries train on the spot (those that are installed). A case is a
finding when it ends in anything but an ensemble or an error of XCount: another exception, a crash,
more than ``CASE_SECONDS``, ``MEMORY_BYTES`` more memory. Findings are kept as files, and the
exit status is 1. Cases run in forked children, so a crash costs one child.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xcount import Grid, XCountError, count, load
from xcount.examples import figure_1
from xcount.query import Query
from xcount.subproblems import Problem

CASE_SECONDS = 20
MEMORY_BYTES = 4 * 2**30
CASES_PER_CHILD = 200
NASTY = [b"-1", b"0", b"4294967296", b"1e400", b"nan", b"-inf", b"null", b"[]", b"{}", b'""']
NASTY += [b"9" * 40, b"[" * 2000, b"\x00", b"\xff", b'"', b"true", b"18446744073709551616"]

Random = np.random.Generator


def seeds(folder: Path) -> dict[str, bytes]:
    """Train the small models whose files are damaged; a library that is absent has none."""
    random = np.random.default_rng(3)
    rows = random.normal(size=(200, 4))
    labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype(int)
    found: dict[str, bytes] = {}
    for train in (_xgboost_seeds, _lightgbm_seeds, _catboost_seeds, _sklearn_seeds):
        with contextlib.suppress(ImportError):
            found |= train(rows, labels, folder)
    return found


def _xgboost_seeds(rows: Any, labels: Any, folder: Path) -> dict[str, bytes]:
    import xgboost

    booster = xgboost.train(
        {"max_depth": 2, "objective": "binary:logistic"}, xgboost.DMatrix(rows, labels), 3
    )
    booster.dump_model(folder / "dump.json", dump_format="json")
    return {
        "xgboost-json": bytes(booster.save_raw("json")),
        "xgboost-ubjson": bytes(booster.save_raw("ubj")),
        "xgboost-dump": (folder / "dump.json").read_bytes(),
    }


def _lightgbm_seeds(rows: Any, labels: Any, folder: Path) -> dict[str, bytes]:
    import lightgbm

    data = lightgbm.Dataset(rows, labels, params={"verbose": -1})
    options = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1}
    return {"lightgbm": lightgbm.train(options, data, 3).model_to_string().encode()}


def _catboost_seeds(rows: Any, labels: Any, folder: Path) -> dict[str, bytes]:
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=3, depth=2, verbose=False, allow_writing_files=False, thread_count=1
    )
    model.fit(rows, labels).save_model(str(folder / "catboost.json"), format="json")
    return {"catboost": (folder / "catboost.json").read_bytes()}


def _sklearn_seeds(rows: Any, labels: Any, folder: Path) -> dict[str, bytes]:
    import skops.io
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(rows, labels)
    return {"skops": skops.io.dumps(model)}


def damaged(data: bytes, random: Random) -> bytes:
    """Return the bytes with one to four pieces of damage."""
    for _ in range(int(random.integers(1, 5))):
        data = _damages[int(random.integers(len(_damages)))](data, random)
    return data


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
    """Load a file and, where that works, ask about it; errors of XCount are answers."""
    path.write_bytes(data)
    try:
        ensemble = load(path)
        grid = Grid.of(ensemble)
        if ensemble.n_features:
            count(
                ensemble,
                sensitive=0,
                gap="0.1",
                output=0 if ensemble.n_outputs > 1 else None,
                grid=grid,
                timeout_seconds=1,
                memory_bytes=2**30,
                jobs=1,
            )
    except XCountError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error


def try_native(random: Random) -> None:
    """Hand damaged arrays to the native core; refusing them is an answer, so is accepting."""
    from xcount import _core

    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    arrays = _forest_arrays()
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
    # A MemoryError is one too: an axis that says it has 2**31 cells is believed.
    refused = (ValueError, IndexError, TypeError, OverflowError, MemoryError)
    with contextlib.suppress(*refused):
        forest = _core.Forest(**arrays)
        sensitive = random.integers(-2, 4, int(random.integers(0, 4))).tolist()
        masks = _core.MaskSpace(forest, sensitive, int(random.integers(-1, 5)))
        limbs = problem.threshold_limbs
        _core.Sampler(forest, masks, limbs, random.integers(-1, 5, 3), None).draw(0, 0, 0, 2, 1)


def _forest_arrays() -> dict[str, Any]:
    """Return what is handed to the native core, caught on its way."""
    from unittest import mock

    from xcount import subproblems

    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    with mock.patch.object(subproblems, "_core") as core:
        _ = problem.forest
    return dict(core.Forest.call_args.kwargs)


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
        case.rename(kept / f"{name}-{seed}-{number}")
    return int(number) - numbers.start


def _child(name: str, seed_data: bytes | None, numbers: range, seed: int, case: Path) -> int:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    warnings.simplefilter("ignore")
    for number in numbers:
        case.with_suffix(".number").write_text(str(number))
        signal.alarm(CASE_SECONDS)
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


def fuzz(targets: dict[str, bytes | None], seconds: float, seed: int, kept: Path) -> Iterator[str]:
    """Run cases of all targets in turn until the time is over; yield a summary per finding."""
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
    parser.add_argument("--only", help="one kind of file, or native")
    parser.add_argument("--keep", type=Path, help="folder for findings (default: a new one)")
    options = parser.parse_args(arguments)
    kept = options.keep or Path(tempfile.mkdtemp(prefix="xcount-fuzz-"))
    kept.mkdir(parents=True, exist_ok=True)
    targets: dict[str, bytes | None] = {**seeds(kept), "native": None}
    if options.only is not None:
        targets = {options.only: targets[options.only]}
    lines = list(fuzz(targets, 60 * options.minutes, options.seed, kept))
    print("\n".join(lines))
    print(f"seed {options.seed}; findings are in {kept}")
    return 0 if lines[-1].startswith("0 ") else 1


if __name__ == "__main__":
    sys.exit(main())
