"""Signals end a command at once while it reads, and are exceptions elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from xcount.support.process import ended_by_signals

READING = """
import os, signal, sys
from xcount.support import process
number = signal.Signals[sys.argv[1]]
signal.signal(number, signal.default_int_handler)
process.become_command()
try:
    if sys.argv[2] == "after":
        with process.ended_by_signals():
            pass
        os.kill(os.getpid(), number)
    with process.ended_by_signals():
        os.kill(os.getpid(), number)
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("when", ["within", "after"])
def test_a_command_ends_at_once_while_it_reads(number: str, when: str) -> None:
    """The signal itself ends it, not an exception; afterwards it is an exception again."""
    words = [sys.executable, "-c", READING, number, when]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    ended = (-signal.Signals[number], "")
    assert (done.returncode, done.stdout) == ((0, "heard\n") if when == "after" else ended)


def test_a_guest_hears_exceptions() -> None:
    """A process that only calls the package keeps its handlers."""
    before = signal.getsignal(signal.SIGINT)
    with ended_by_signals():
        assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        signal.raise_signal(signal.SIGINT)
