"""What the tests of runs have in common."""

from __future__ import annotations

from typing import Any

HEADER: dict[str, Any] = {
    "machine": {"processor": "P", "cores": 2, "memory_bytes": 1 << 30, "system": "Linux"},
    "versions": {"xcount": "0"},
    "revision": "r",
    "date": "2026-01-01",
    "load": 1.5,
}
