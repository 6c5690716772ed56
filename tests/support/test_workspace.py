"""Derived values are computed once, by one thread, and stay behind when their owner travels."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from xcount.support.workspace import Slot, Workspace

LENGTHS: Slot[str, int] = Slot("length of a word")
CAPITALS: Slot[str, str] = Slot("capitals")


def test_a_value_is_computed_once() -> None:
    """Also if several threads ask for it at the same time."""
    workspace, calls, barrier = Workspace(), [], threading.Barrier(4)

    def compute() -> int:
        calls.append("once")
        return 6

    def ask(_: int) -> int:
        barrier.wait()
        return workspace.once(LENGTHS, "region", compute)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [6] * 4
    assert calls == ["once"]


def test_slots_do_not_share_keys() -> None:
    """The same key in another slot is another value."""
    workspace = Workspace()
    workspace.keep(LENGTHS, "cell", 4)
    assert workspace.known(CAPITALS, "cell") is None
    assert workspace.known(LENGTHS, "cell") == 4


def test_a_failure_is_not_kept() -> None:
    """Who asks next computes again."""
    workspace = Workspace()

    def fail() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.once(LENGTHS, "mask", fail)
    assert not workspace
    assert workspace.once(LENGTHS, "mask", lambda: 4) == 4


def test_a_workspace_travels_empty() -> None:
    """Another process computes what it needs."""
    workspace = Workspace()
    workspace.keep(LENGTHS, "cell", 4)
    assert not pickle.loads(pickle.dumps(workspace))
