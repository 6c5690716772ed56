"""Check that JSON data fits a record: report what is missing or has the wrong type."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping, Set
from typing import Any

from xcount.support.numerals import digits
from xcount.support.records import OBJECTS, RECORDS, Schema, fields_of, schema_of

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": types.NoneType,
    "number": (int, float),
    "object": dict,
    "string": str,
}


def misfit(data: object, cls: type, where: str = "") -> str | None:
    """Return what is missing in JSON data, or does not fit a record's schema; None if it fits.

    Unknown fields may be present and properties may be missing: neither is read.

    Example:
        >>> from xcount.question.cell import CellRange
        >>> misfit({"feature": "age", "low": "30"}, CellRange, "cell")
        "cell.low is '30', not number"
    """
    return next(_record_faults(data, cls, where), None)


def _record_faults(data: object, cls: type, where: str) -> Iterator[str]:
    if not isinstance(data, dict):
        yield _no_object(data, where)
        return
    derived = {each.name for each in fields_of(cls) if each.is_derived}
    yield from _object_faults(data, schema_of(cls), where, derived)


def _object_faults(
    data: Mapping[str, Any], schema: Schema, where: str, derived: Set[str] = frozenset()
) -> Iterator[str]:
    for name in schema["required"]:
        if name not in data and name not in derived:
            yield f"{_inside(where, name)} is missing"
    for name, about in schema["properties"].items():
        if name in data:
            yield from _faults(data[name], about, _inside(where, name))


def _faults(data: object, schema: Schema, where: str) -> Iterator[str]:
    """Yield what is wrong with a value, by the keywords of JSON Schema that records use."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in RECORDS:
            yield from _record_faults(data, RECORDS[name], where)
        elif name in OBJECTS and isinstance(data, dict):
            yield from _object_faults(data, OBJECTS[name], where)
        elif name in OBJECTS:
            yield _no_object(data, where)
    elif "anyOf" in schema:
        found = [next(_faults(data, option, where), None) for option in schema["anyOf"]]
        yield from () if None in found else map(str, found[:1])
    elif not _is_of_type(data, schema):
        yield f"{where} is {_shortly(data)}, not {_expected(schema)}"
    elif isinstance(data, int | float) and data < schema.get("minimum", data):
        yield f"{where} is {_shortly(data)}, less than {schema['minimum']}"
    elif isinstance(data, list):
        if not schema.get("minItems", 0) <= len(data) <= schema.get("maxItems", len(data)):
            yield f"{where} has {len(data)} items"
        for number, item in enumerate(data):
            yield from _faults(item, schema.get("items", {}), _inside(where, number))
    elif isinstance(data, dict):
        values = schema.get("additionalProperties", {})
        for name, value in data.items():
            yield from _faults(value, values, _inside(where, name))


def _no_object(data: object, where: str) -> str:
    return f"{where or 'it'} is {_shortly(data)}, not an object"


def _inside(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _is_of_type(data: object, schema: Schema) -> bool:
    if "const" in schema or "enum" in schema:
        return any(data == value and type(data) is type(value) for value in _values(schema))
    if isinstance(data, float) and not math.isfinite(data):
        return False
    kinds = _kinds(schema)
    if isinstance(data, bool):
        return "boolean" in kinds or not kinds
    return not kinds or any(isinstance(data, _TYPES[kind]) for kind in kinds)


def _values(schema: Schema) -> list[Any]:
    values: list[Any] = schema.get("enum", [schema.get("const")])
    return values


def _kinds(schema: Schema) -> list[str]:
    kinds: str | list[str] = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _expected(schema: Schema) -> str:
    if "const" in schema or "enum" in schema:
        return " or ".join(map(str, _values(schema)))
    return " or ".join(_kinds(schema))


def _shortly(data: object) -> str:
    if isinstance(data, dict | list):
        return "an object" if isinstance(data, dict) else "an array"
    text = digits(data) if type(data) is int else repr(data)
    return text if len(text) <= 30 else f"{text[:29]}…"
