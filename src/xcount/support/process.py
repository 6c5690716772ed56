"""What the process holds: its memory, now and at its peak."""

from __future__ import annotations

import resource
import sys


def peak_memory_bytes() -> int:
    """Return the most memory the process ever held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def held_memory_bytes() -> int:
    """Return the memory that the process holds now, not its peak: earlier counts are over."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_memory_bytes()  # systems without /proc only tell the peak
    return pages * resource.getpagesize()
