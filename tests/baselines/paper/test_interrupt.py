"""Ctrl-C in the middle of native work ends a count with its bounds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import json, signal, sys
import numpy as np
from xcount import count
from xcount.model.examples import ensemble_of

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
trees = []
for f in range(1, 60):
    for t in range(3):
        a, b, c, d = (float(x) for x in rng.normal(size=4))
        trees.append((f, float(t), (0, float(t), a, b), (f % 7 + 60, float(t), c, d)))

def tell(progress):
    print("ready", flush=True)

found = count(ensemble_of(*trees), sensitive=0, gap=1, method=sys.argv[1], on_progress=tell)
print(json.dumps([str(found.stop_reason), found.low >= 0, found.high <= found.n_regions]))
"""


@pytest.mark.parametrize("method", ["add-baseline", "add-baseline-plain"])
def test_an_interrupt_leaves_a_result(method: str) -> None:
    """The sum of these trees has more values than any memory holds; Ctrl-C ends it at once."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, method], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for _ in range(8):  # by now the diagrams are large
            assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read().splitlines()
        assert child.wait(timeout=60) == 0
    assert json.loads(rest[-1]) == ["interrupted", True, True]
