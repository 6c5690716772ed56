"""Values derived from an object, each computed once and kept with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Slot(Generic[Key, Value]):
    """A kind of derived value; it declares the types of the keys and the values.

    Slots are distinct even if their names are equal.
    """

    name: str


@dataclass(eq=False)
class _Entry:
    """A value that is computed by the first thread to ask for it."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    is_known: bool = False
    value: Any = None


class Workspace:
    """Derived values by slot and key; a copy sent to another process is empty.

    A key that refers to an object must hold the object, not its id: an id may be reused for another
    object.

    Example:
        >>> LENGTHS: Slot[str, int] = Slot("length of a word")
        >>> Workspace().once(LENGTHS, "region", lambda: len("region"))
        6
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[Slot[Any, Any], Hashable], _Entry] = {}

    def __reduce__(self) -> tuple[type[Workspace], tuple[()]]:
        return Workspace, ()

    def __bool__(self) -> bool:
        return any(entry.is_known for entry in self._entries.values())

    def once(self, slot: Slot[Key, Value], key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value; the first thread to ask computes it, and others wait for it."""
        entry = self._entries.setdefault((slot, key), _Entry())
        with entry.lock:
            if not entry.is_known:
                entry.value = compute()
                entry.is_known = True
            found: Value = entry.value
            return found

    def known(self, slot: Slot[Key, Value], key: Key) -> Value | None:
        """Return the value if it was computed or kept."""
        entry = self._entries.get((slot, key))
        return entry.value if entry is not None and entry.is_known else None

    def keep(self, slot: Slot[Key, Value], key: Key, value: Value) -> Value:
        """Keep a value that was computed elsewhere, and return it."""
        self._entries[slot, key] = _Entry(is_known=True, value=value)
        return value
