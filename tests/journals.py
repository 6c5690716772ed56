"""Journals with other content, and checksums that match it, as if a run had written them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from xcount.runs.journal import sealed


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal, without their checksums."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        del record["after"], record["check"]
    return records


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a journal with these records."""
    path.write_bytes(sealed_lines(records))


def sealed_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the lines of a journal with these records."""
    lines, check = b"", None
    for record in records:
        line, check = sealed(record, check)
        lines += line
    return lines
