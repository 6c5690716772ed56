"""Frozen dataclasses that are quick to make: start-up time counts, and a small count makes sixty.

The standard library looks at the fields of each frozen dataclass and compiles six functions for
it when the class is made. Here only ``__init__`` is compiled, when the first object is made;
comparing, hashing, printing and refusing assignments are functions that all share. The classes
behave as those of ``dataclasses.dataclass`` do, and ``fields``, ``replace`` and ``asdict`` know
them. A dataclass that is not frozen is left to the standard library. A frozen class and its bases
are all made here, or all there, in modules whose annotations are strings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass


class _Factory:
    """Stands for a default that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()

_FIELD = vars(dataclasses)["_FIELD"]
"""By this mark the functions of the standard library know a field from a class variable."""


class _OnDemand:
    """An attribute of a class that is made of the class when it is first asked for."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self.cls, self.name = cls, name

    def __get__(self, instance: Any, owner: type) -> Any:
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


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
        types = _types(cls)
        defaults = {name: vars(cls)[name] for name in types if name in vars(cls)}
        members = _methods(slots, eq) | {
            "__init__": _OnDemand(_init),
            "__dataclass_fields__": _OnDemand(lambda made: made._described),
            "__match_args__": _OnDemand(_names_of_arguments),
            "_described": _OnDemand(lambda made: _fields(made, types, defaults, kw_only)),
            "_compared": _OnDemand(_compared),
        }
        if not repr:
            del members["__repr__"]
        for name in [*members]:
            if vars(cls).get(name) is not None:  # defining __eq__ makes __hash__ None
                del members[name]
        return _with_slots(cls, types, members) if slots else _with(cls, defaults, members)

    return decorate if cls is None else decorate(cls)


def _types(cls: type) -> dict[str, str]:
    """Return the annotations of a class's own fields, by name."""
    found = vars(cls).get("__annotations__", {})
    return {name: type_ for name, type_ in found.items() if not type_.startswith("ClassVar")}


def _with(cls: type, defaults: dict[str, Any], members: dict[str, Any]) -> type:
    """Leave only defaults themselves at a class, not what describes its fields; add members."""
    for name, default in defaults.items():
        if isinstance(default, dataclasses.Field):
            if default.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, default.default)
    for name, member in members.items():
        setattr(cls, name, member)
        if isinstance(member, _OnDemand):
            member.__set_name__(cls, name)
    return cls


def _with_slots(cls: type, names: dict[str, str], members: dict[str, Any]) -> type:
    """Return the class once more, with a slot for each field, and members."""
    above = {slot for base in cls.__mro__ for slot in vars(base).get("__slots__", ())}
    body = {
        name: value
        for name, value in vars(cls).items()
        if name not in names and name not in {"__dict__", "__weakref__"}
    }
    body |= members
    body["__slots__"] = tuple(name for name in names if name not in above)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _fields(
    cls: type, types: dict[str, str], defaults: dict[str, Any], kw_only: bool
) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a class by name, those of its bases first."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        found |= getattr(base, "_described", {})
    for name, type_ in types.items():
        each: Any = defaults.get(name, dataclasses.MISSING)
        if not isinstance(each, dataclasses.Field):
            each = dataclasses.field(default=each)
        if each.kw_only is dataclasses.MISSING:
            each.kw_only = kw_only
        each.name, each.type = name, type_
        each._field_type = _FIELD
        found[name] = each
    return found


def _names_of_arguments(cls: Any) -> tuple[str, ...]:
    return tuple(name for name, each in cls._described.items() if each.init and not each.kw_only)


def _init(cls: Any) -> Callable[..., None]:
    """Compile a function of the fields that sets them: through their slots, or all in one call."""
    names: dict[str, Any] = {"_FACTORY": _FACTORY}
    fields = cls._described.values()
    plain = [_parameter(each, names) for each in fields if each.init and not each.kw_only]
    by_name = [_parameter(each, names) for each in fields if each.init and each.kw_only]
    arguments = ", ".join(["self", *plain, *(["*", *by_name] if by_name else [])])
    values = {each.name: value for each in fields if (value := _value(each, names))}
    slots = [name for name in values if isinstance(getattr(cls, name, None), MemberDescriptorType)]
    names |= {f"_set_{name}": getattr(cls, name).__set__ for name in slots}
    body = [f"_set_{name}(self, {values.pop(name)})" for name in slots]
    if values:
        body.append(f"self.__dict__.update({', '.join(f'{n}={v}' for n, v in values.items())})")
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


def _compared(cls: Any) -> Any:
    """Return a function that gives the fields of an object that are compared."""
    names = [name for name, each in cls._described.items() if each.compare]
    if len(names) > 1:
        return staticmethod(attrgetter(*names))
    return staticmethod(lambda self: tuple(getattr(self, name) for name in names))


def _methods(slots: bool, eq: bool) -> dict[str, Any]:
    methods: dict[str, Any] = {
        "__repr__": _repr,
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
    }
    if eq:
        methods |= {"__eq__": _eq, "__hash__": _hash}
    if slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == other._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _repr(self: Any) -> str:
    shown = (f"{n}={getattr(self, n)!r}" for n, each in self._described.items() if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self._described]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self._described, state, strict=True):
        object.__setattr__(self, name, value)


if not TYPE_CHECKING:
    dataclass = _dataclass
