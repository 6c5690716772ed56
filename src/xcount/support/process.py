"""The process: its memory, now and at its peak, and whether signals may end it."""

from __future__ import annotations

import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS: set[signal.Signals] = set()
"""Signals that may end the process at once."""


def become_command() -> None:
    """Declare that this process only runs one command, so signals may end it."""
    _ENDS.update((signal.SIGINT, signal.SIGTERM))


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command at once, rather than raise exceptions.

    Native code that reads a large file runs for seconds before Python raises an exception. While a
    model or a table is read, there is nothing to lose.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = _ENDS if is_main else ()  # only the main thread sets handlers
    heard = [n for n in numbers if signal.getsignal(n) is signal.default_int_handler]
    for number in heard:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.default_int_handler)


def peak_memory_bytes() -> int:
    """Return the most memory the process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def held_memory_bytes() -> int:
    """Return the memory that the process holds now; the peak would include earlier counts."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_memory_bytes()  # systems without /proc only report the peak
    return pages * resource.getpagesize()
