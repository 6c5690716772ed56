"""The program of the child process that holds a model counter.

It reads jobs from standard input and writes one line of JSON for each to standard output, behind
``ANSWER`` (the counters print lines of their own). A job is a line of JSON with ``n_variables``,
``show`` and ``n_literals``, then that many 32-bit integers: clauses, each ended by a 0.

    python -m xcount.counters.cnf.child ganak|approxmc SECONDS BYTES PARAMETERS

``SECONDS`` and ``BYTES`` are 0 for no limit; ``PARAMETERS`` is a JSON object for the counter.
"""

from __future__ import annotations

import ctypes
import json
import math
import resource
import signal
import sys
from array import array
from typing import Any

ANSWER = "xcount-answer "
GANAK_VERSION = "2.8"
APPROXMC_VERSION = "4.1.24"
_PR_SET_PDEATHSIG = 1

Answer = dict[str, Any]


def main() -> None:
    """Answer jobs until standard input ends."""
    solver, seconds, memory_bytes, parameters = sys.argv[1:]
    _obey_limits(float(seconds), int(memory_bytes))
    solve = {"ganak": _ganak, "approxmc": _approxmc}[solver]
    while line := sys.stdin.buffer.readline():
        job = json.loads(line)
        clauses = array("i")
        clauses.frombytes(sys.stdin.buffer.read(4 * job["n_literals"]))
        answer = solve(job, clauses, json.loads(parameters))
        answer["peak_memory_bytes"] = _peak_memory_bytes()
        print(ANSWER + json.dumps(answer), flush=True)


def _obey_limits(seconds: float, memory_bytes: int) -> None:
    """Die with the parent; let the system end what outlives its limits."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if seconds > 0:  # the parent kills earlier: this is for when it cannot
        limit = math.ceil(seconds) + 5
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    if memory_bytes > 0:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _ganak(job: Answer, clauses: array[int], parameters: Answer) -> Answer:
    try:
        import pyganak
    except ImportError as error:
        return {"absent": f"pyganak cannot be imported ({error})"}
    version = str(pyganak.__version__)
    if not version.startswith(GANAK_VERSION):
        return {"absent": f"pyganak {version} is installed, {GANAK_VERSION} is needed"}
    counter = pyganak.Counter(**parameters)
    counter.new_vars(job["n_variables"])
    counter.add_clauses(_split(clauses))
    counter.set_sampling_set(job["show"])
    return {"count": int(counter.count()), "version": version}


def _approxmc(job: Answer, clauses: array[int], parameters: Answer) -> Answer:
    try:
        import pyapproxmc
    except ImportError as error:
        return {"absent": f"pyapproxmc cannot be imported ({error})"}
    version = str(pyapproxmc.__version__)
    if version != APPROXMC_VERSION:
        return {"absent": f"pyapproxmc {version} is installed, {APPROXMC_VERSION} is needed"}
    counter = pyapproxmc.Counter(**parameters)
    counter.add_clauses(clauses)
    cells, hashes = counter.count(job["show"])
    return {"count": int(cells) << int(hashes), "hashes": int(hashes), "version": version}


def _split(clauses: array[int]) -> list[list[int]]:
    result: list[list[int]] = [[]]
    for literal in clauses:
        if literal:
            result[-1].append(literal)
        else:
            result.append([])
    return result[:-1]


def _peak_memory_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
