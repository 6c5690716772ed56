"""Damage to model files: of bytes, of text, and of JSON values."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

NASTY_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**64,
    -(2**70),
    10**30,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "-1",
    "9" * 50,
    "nan",
    "[",
    "x",
    [],
    [0],
    [[0]],
    [None],
    ["a"],
    [2**70],
    {},
    {"a": 1},
]
NASTY_WORDS = ["", "-1", "0", "1", "99", "4294967296", "1e400", "nan", "-inf", "x", "1 2", "9" * 30]


def damaged_json(document: Any, rng: np.random.Generator) -> bytes:
    """Return the document with one value replaced, removed or repeated."""
    changed = copy.deepcopy(document)
    parent: Any = changed
    while True:
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        if not keys:
            break
        key = keys[int(rng.integers(len(keys)))]
        child = parent[key]
        if not isinstance(child, dict | list) or rng.random() < 0.15:
            _replace(parent, key, rng)
            break
        parent = child
    return json.dumps(changed).encode()


def _replace(parent: Any, key: Any, rng: np.random.Generator) -> None:
    choice = rng.random()
    if choice < 0.7:
        parent[key] = NASTY_VALUES[int(rng.integers(len(NASTY_VALUES)))]
    elif choice < 0.85:
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(int(rng.integers(len(parent) + 1)), parent[key])
    else:
        parent[key] = [parent[key]]


def damaged_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the data cut off, or with a few bytes changed, removed or repeated."""
    if rng.random() < 0.2:
        return data[: int(rng.integers(len(data)))]
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(changed)))
        choice = rng.random()
        if choice < 0.5:
            changed[at] = int(rng.integers(256))
        elif choice < 0.75:
            del changed[at : at + int(rng.integers(1, 9))]
        else:
            changed[at:at] = changed[at : at + int(rng.integers(1, 9))]
        if not changed:
            break
    return bytes(changed)


def damaged_lines(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a text model with a line removed, repeated, or one of its words replaced."""
    lines = data.decode().split("\n")
    at = int(rng.integers(len(lines)))
    choice = rng.random()
    if choice < 0.15:
        del lines[at]
    elif choice < 0.3:
        lines.insert(at, lines[at])
    else:
        key, equals, value = lines[at].partition("=")
        words = value.split(" ")
        words[int(rng.integers(len(words)))] = NASTY_WORDS[int(rng.integers(len(NASTY_WORDS)))]
        lines[at] = key + equals + " ".join(words)
    return "\n".join(lines).encode()
