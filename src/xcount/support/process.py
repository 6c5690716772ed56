"""The process: its memory, now and at its peak, and whether signals may end it.

Windows has no module ``resource``; psutil, which is installed there, measures memory instead.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

try:
    _resource: ModuleType | None = importlib.import_module("resource")
except ImportError:
    _resource = None

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
    if _resource is None:
        memory = _windows_memory()
        return int(getattr(memory, "peak_wset", memory.rss))
    unit = 1 if sys.platform == "darwin" else 1024
    return int(_resource.getrusage(_resource.RUSAGE_SELF).ru_maxrss) * unit


def held_memory_bytes() -> int:
    """Return the memory that the process holds now; the peak would include earlier counts."""
    if _resource is None:
        return int(_windows_memory().rss)
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_memory_bytes()  # systems without /proc only report the peak
    return pages * int(_resource.getpagesize())


def _windows_memory() -> Any:
    """Return psutil's account of the memory of this process."""
    return importlib.import_module("psutil").Process().memory_info()
