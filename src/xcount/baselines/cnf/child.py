"""The child process that runs a model counter.

It reads jobs from standard input and writes one line of JSON for each to standard output. A job is
a line of JSON with ``n_variables``, ``show``, ``parameters`` of the counter and ``n_literals``,
followed by that many 32-bit integers: the clauses, each terminated by a 0.

    python -m xcount.baselines.cnf.child ganak|approxmc SECONDS BYTES

``SECONDS`` and ``BYTES`` are 0 for no limit.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import os
import signal
import sys
from array import array
from typing import Any

from xcount.support.process import peak_memory_bytes

_MODULES = {"ganak": ("pyganak", "2.8.0"), "approxmc": ("pyapproxmc", "4.1.24")}
"""The module of each counter, and the version whose counts are known to be right."""

_PR_SET_PDEATHSIG = 1

Answer = dict[str, Any]


def main() -> None:
    """Answer jobs until standard input ends."""
    solver, seconds, memory_bytes = sys.argv[1:]
    # The counters print lines and parts of lines themselves: send those to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, problem = _import(solver)
    _obey_limits(
        float(seconds), int(memory_bytes)
    )  # after the import: a failed import due to a limit must not look like a missing library
    while line := sys.stdin.buffer.readline():
        job = json.loads(line)
        clauses = array("i")
        clauses.frombytes(sys.stdin.buffer.read(4 * job["n_literals"]))
        answer: Answer = {"absent": problem} if problem else _SOLVERS[solver](module, job, clauses)
        answer["peak_memory_bytes"] = peak_memory_bytes()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _import(solver: str) -> tuple[Any, str]:
    """Return the counter's module, or None and the reason it cannot be used."""
    name, version = _MODULES[solver]
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        return None, f"{name} cannot be imported ({error})"
    found = str(module.__version__)
    if found != version:
        return None, f"{name} {found} is installed, {version} is needed"
    return module, ""


def _obey_limits(seconds: float, memory_bytes: int) -> None:
    """Die with the parent; let the system kill a counter that outlives its limits."""
    import resource  # not at the top: Windows has neither this module nor the counters

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if seconds > 0:  # a fallback: the parent normally kills the child earlier
        limit = math.ceil(seconds) + 5
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    if memory_bytes > 0:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _ganak(module: Any, job: Answer, clauses: array[int]) -> Answer:
    counter = module.Counter(**job["parameters"])
    counter.new_vars(job["n_variables"])
    counter.add_clauses(_split(clauses))
    counter.set_sampling_set(job["show"])
    return {"count": int(counter.count()), "version": str(module.__version__)}


def _approxmc(module: Any, job: Answer, clauses: array[int]) -> Answer:
    counter = module.Counter(**job["parameters"])
    counter.add_clauses(clauses)
    cells, hashes = counter.count(job["show"])
    return {
        "count": int(cells) << int(hashes),
        "hashes": int(hashes),
        "version": str(module.__version__),
    }


_SOLVERS = {"ganak": _ganak, "approxmc": _approxmc}


def _split(clauses: array[int]) -> list[list[int]]:
    result: list[list[int]] = [[]]
    for literal in clauses:
        if literal:
            result[-1].append(literal)
        else:
            result.append([])
    return result[:-1]


if __name__ == "__main__":
    main()
