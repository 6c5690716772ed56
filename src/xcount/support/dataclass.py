"""Frozen dataclasses that are quick to make: start-up time counts, and a small count makes sixty.

The standard library compiles six functions for each frozen dataclass. Here only ``__init__`` is
compiled; comparing, hashing, printing and refusing assignments are functions that all share. The
classes behave as those of ``dataclasses.dataclass`` do, and ``fields``, ``replace`` and ``asdict``
know them. A dataclass that is not frozen is left to the standard library. A frozen class and its
bases are all made here, or all there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass


class _Factory:
    """Stands for a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _dataclass(
    cls: type | None = None,
    /,
    *,
    frozen: bool = False,
    slots: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    repr: bool = True,
) -> Any:
    """Return a class as a dataclass, or a decorator that does; the options are the usual ones."""

    def decorate(cls: type) -> type:
        if not frozen:
            return dataclasses.dataclass(slots=slots, eq=eq, kw_only=kw_only, repr=repr)(cls)
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # the usual signature takes a tokenizer
        made: type = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(cls)
        for name, method in _methods(made, slots, eq).items():
            if name == "__repr__" and not repr:
                continue
            if vars(made).get(name) is None:  # defining __eq__ makes __hash__ None
                setattr(made, name, method)
        return made

    return decorate if cls is None else decorate(cls)


def _methods(cls: type, slots: bool, eq: bool) -> dict[str, Any]:
    methods: dict[str, Any] = {
        "__init__": _init(cls),
        "__repr__": _repr,
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
    }
    if eq:
        methods |= _comparisons(cls)
    if slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


def _init(cls: type) -> Callable[..., None]:
    """Compile a function of the fields that sets them."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    fields = dataclasses.fields(cls)
    plain = [_parameter(each, names) for each in fields if each.init and not each.kw_only]
    by_name = [_parameter(each, names) for each in fields if each.init and each.kw_only]
    arguments = ", ".join(["self", *plain, *(["*", *by_name] if by_name else [])])
    body = [f"_set(self, {f.name!r}, {v})" for f in fields if (v := _value(f, names))]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {each.name: each.type for each in fields if each.init}
    return init


def _parameter(each: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    if each.default_factory is not dataclasses.MISSING:
        return f"{each.name}=_FACTORY"
    if each.default is not dataclasses.MISSING:
        names[f"_default_{each.name}"] = each.default
        return f"{each.name}=_default_{each.name}"
    return each.name


def _value(each: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    """Return the expression that a field is set to; nothing if something else sets it."""
    if each.default_factory is not dataclasses.MISSING:
        names[f"_make_{each.name}"] = each.default_factory
        made = f"_make_{each.name}()"
        return f"{made} if {each.name} is _FACTORY else {each.name}" if each.init else made
    return each.name if each.init else ""


def _comparisons(cls: type) -> dict[str, Callable[..., Any]]:
    """Return equality and hash by the fields that are compared."""
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def key(self: Any) -> tuple[Any, ...]:
        found = values(self)
        return (found,) if len(names) == 1 else found

    def __eq__(self: Any, other: Any) -> bool:  # noqa: N807  # it becomes a method
        if other.__class__ is not self.__class__:
            return NotImplemented
        return key(self) == key(other)

    def __hash__(self: Any) -> int:  # noqa: N807  # it becomes a method
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


if not TYPE_CHECKING:
    dataclass = _dataclass
