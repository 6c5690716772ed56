"""Records: dataclasses whose fields are declared once, for all formats.

A field's annotation holds its type, and its meaning in a :class:`Json`::

    low: Annotated[int, Json("At least so many regions.", {"minimum": 0})]

From this one list of fields follow JSON (:func:`to_dict`, :func:`from_dict`), its schema
(:func:`schema_of`), the check of JSON data (:mod:`xcount.support.record_check`) and the columns of
a CSV file (:func:`columns_of`). A property that is :func:`written` is in JSON, too, but never read:
it follows from the rest. Fields without a :class:`Json` are not in JSON.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

Schema = Mapping[str, Any]
Record = TypeVar("Record")
Getter = TypeVar("Getter", bound=Callable[[Any], Any])

RECORDS: dict[str, type] = {}
"""The records by their names in the schema."""
OBJECTS: dict[str, Schema] = {}
"""The schemas of other objects, which have no class, by their names."""
FIRST = ""
"""Position before all fields."""
_ABOUT: dict[type, tuple[str, str]] = {}
_WRITTEN: dict[Callable[[Any], Any], Json] = {}
_FIELDS: dict[type, tuple[RecordField, ...]] = {}


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is written in JSON: its schema, and the conversions to and from JSON."""

    schema: Schema
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda data: data


@dataclass(frozen=True, slots=True)
class Spread:
    """A value written as several JSON fields among those of its record.

    Attributes:
        properties: the schema of each field.
        write: returns the fields.
        read: makes the value from all fields of a record.
        required: fields that are always present.
        either: groups of fields, of which exactly one is present.
    """

    properties: Mapping[str, Schema]
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Any]
    required: tuple[str, ...] = ()
    either: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def nowhere(cls, read: Callable[[Mapping[str, Any]], Any]) -> Spread:
        """Return the form of a value that is read from other fields and not written."""
        return cls({}, lambda value: {}, read)

    @property
    def alternatives(self) -> list[Schema]:
        """The groups as JSON Schema."""
        every = {name for group in self.either for name in group}
        return [
            {"required": list(group), "properties": dict.fromkeys(sorted(every - {*group}), False)}
            for group in self.either
        ]


@dataclass(frozen=True, slots=True)
class Json:
    """The JSON side of a field, beyond its type.

    Attributes:
        description: its meaning, in a sentence.
        more: further keywords of JSON Schema.
        name: its name in JSON, if not the field's own.
        form: how it is written, if its type does not determine that.
        after: for a property: the field that it follows, or :data:`FIRST`.
        is_optional: whether it is left out if it has its default.
        column: its name in CSV files; None if it has no column.
        cell: the content of its column, if not its JSON.
        inside: the JSON name of an earlier field, an object, in which it is nested; None if it is
            not nested.
    """

    description: str
    more: Schema = field(default_factory=dict)
    name: str | None = None
    form: Form | Spread | None = None
    after: str | None = None
    is_optional: bool = False
    column: str | None = None
    cell: Callable[[Any], Any] | None = None
    inside: str | None = None


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record: its attribute in Python, and its JSON side."""

    attribute: str
    json: Json
    form: Form | Spread
    is_derived: bool = True
    default: object = ...  # no value equals it

    @property
    def name(self) -> str:
        return self.json.name or self.attribute

    def cell_of(self, record: object) -> Any:
        """Return the content of the field's column."""
        value = getattr(record, self.attribute)
        if self.json.cell is not None:
            return self.json.cell(value)
        return self.form.write(value)


def record(name: str, description: str) -> Callable[[type[Record]], type[Record]]:
    """Return a decorator that makes a dataclass a named object of the schema."""

    def decorate(cls: type[Record]) -> type[Record]:
        RECORDS[name] = cls
        _ABOUT[cls] = (name, description)
        return cls

    return decorate


def written(json: Json) -> Callable[[Getter], Getter]:
    """Return a decorator for a property's getter that puts the property into JSON."""

    def decorate(getter: Getter) -> Getter:
        _WRITTEN[getter] = json
        return getter

    return decorate


def fields_of(cls: type) -> tuple[RecordField, ...]:
    """Return the fields in order, each property after the field it names."""
    if cls not in _FIELDS:
        _FIELDS[cls] = _fields(cls)
    return _FIELDS[cls]


def _fields(cls: type) -> tuple[RecordField, ...]:
    hints = get_type_hints(cls, include_extras=True)
    found = [
        RecordField(f.name, about, about.form or _form(kind, about), False, _default(f))
        for f in dataclasses.fields(cls)
        for kind, about in _annotated(hints[f.name])
    ]
    members = {n: member for each in reversed(cls.__mro__) for n, member in vars(each).items()}
    for name, member in members.items():
        getter: Any = getattr(member, "fget", None) or getattr(member, "func", None)
        if getter in _WRITTEN:
            about = _WRITTEN[getter]
            form = about.form or _form(get_type_hints(getter)["return"], about)
            places = [FIRST, *(f.attribute for f in found), None]
            found.insert(places.index(about.after), RecordField(name, about, form))
    return tuple(found)


def _default(each: dataclasses.Field[Any]) -> object:
    if each.default_factory is not dataclasses.MISSING:
        return each.default_factory()
    return ... if each.default is dataclasses.MISSING else each.default


def to_dict(value: Any) -> dict[str, Any]:
    """Return a record as a JSON object."""
    data: dict[str, Any] = {}
    for each in fields_of(type(value)):
        found = getattr(value, each.attribute)
        if each.json.is_optional and found == each.default:
            continue
        value_json = each.form.write(found)
        around = data if each.json.inside is None else data[each.json.inside]
        around |= value_json if isinstance(each.form, Spread) else {each.name: value_json}
    return data


def from_dict(cls: type[Record], data: Mapping[str, Any]) -> Record:
    """Read back what :func:`to_dict` wrote; missing fields have their defaults."""
    read: dict[str, Any] = {}
    for each in fields_of(cls):
        around = data if each.json.inside is None else data[each.json.inside]
        if each.is_derived:
            continue
        if isinstance(each.form, Spread):
            read[each.attribute] = each.form.read(around)
        elif each.name in around or not each.json.is_optional:
            read[each.attribute] = each.form.read(_own_part(cls, each, around[each.name]))
    return cls(**read)


def _own_part(cls: type, each: RecordField, data: Any) -> Any:
    """Return a field's JSON without the record's own fields nested in it."""
    inside = {other.name for other in fields_of(cls) if other.json.inside == each.name}
    return {k: v for k, v in data.items() if k not in inside} if inside else data


def columns_of(cls: type) -> tuple[RecordField, ...]:
    """Return the fields that are columns of a CSV file."""
    return tuple(each for each in fields_of(cls) if each.json.column is not None)


# ---- schema ----


def schema_of(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of a record: every field is required unless it is optional."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    more: dict[str, Any] = {}
    for each in fields_of(cls):
        if isinstance(each.form, Spread):
            properties |= each.form.properties
            required += each.form.required
            more |= {"oneOf": each.form.alternatives} if each.form.either else {}
            continue
        if each.json.inside is not None:
            continue
        about = {"description": each.json.description}
        properties[each.name] = {**each.form.schema, **about, **each.json.more}
        required += [] if each.json.is_optional else [each.name]
    return {
        "type": "object",
        "description": _ABOUT[cls][1],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **more,
    }


def object_form(name: str, description: str, fields: Spread) -> Form:
    """Return the form of a value that is an object of its own, under a name in the schema."""
    OBJECTS[name] = {
        "type": "object",
        "description": description,
        "properties": dict(fields.properties),
        "required": list(fields.required),
        "additionalProperties": False,
    }
    return Form(reference(name), fields.write, fields.read)


def reference(name: str) -> Schema:
    """Return the schema of a record by its name."""
    return {"$ref": f"#/$defs/{name}"}


def whole_or(word: str, least: int) -> Form:
    """Return the form of a whole number or None, which JSON writes as a word."""
    return Form(
        {"anyOf": [{"type": "integer", "minimum": least}, {"const": word}]},
        lambda value: word if value is None else value,
        lambda data: None if data == word else data,
    )


def _annotated(hint: Any) -> Iterator[tuple[Any, Json]]:
    """Yield the annotated type and its :class:`Json`, if it has one."""
    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        yield from ((kind, extra) for extra in extras if isinstance(extra, Json))


_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean"}


def _form(kind: Any, about: Json | None = None) -> Form:
    """Return the form of a type's values; an optional field is left out rather than null."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return Form({"type": _PLAIN[kind]})
    if origin in (Union, types.UnionType):
        form = _form(next(k for k in inside if k is not types.NoneType))
        return form if about is not None and about.is_optional else or_none(form)
    if origin is tuple:
        return _tuple_form(inside)
    if origin is Mapping:
        return _object_form(_form(inside[1]))
    if issubclass(kind, StrEnum):
        return Form({"enum": [str(member) for member in kind]}, str, kind)
    return Form(reference(_ABOUT[kind][0]), to_dict, lambda data: from_dict(kind, data))


def _object_form(values: Form) -> Form:
    return Form(
        {"type": "object", "additionalProperties": values.schema},
        lambda value: {key: values.write(item) for key, item in value.items()},
        lambda data: {key: values.read(item) for key, item in data.items()},
    )


def or_none(form: Form) -> Form:
    """Return the form of a value that may be None, which is null in JSON."""
    schema: Schema = {"anyOf": [form.schema, {"type": "null"}]}
    if "enum" in form.schema:
        schema = {"enum": [None, *form.schema["enum"]]}
    elif isinstance(form.schema.get("type"), str):
        schema = {**form.schema, "type": [form.schema["type"], "null"]}
    return Form(
        schema,
        lambda value: None if value is None else form.write(value),
        lambda data: None if data is None else form.read(data),
    )


def _tuple_form(inside: tuple[Any, ...]) -> Form:
    """Return the form of a tuple: of any length (``...``), or of a fixed number of equal types."""
    is_fixed = inside[-1] is not ...
    sizes = {"minItems": len(inside), "maxItems": len(inside)} if is_fixed else {}
    return list_form(_form(inside[0]), sizes)


def list_form(item: Form, sizes: Schema | None = None) -> Form:
    """Return the form of a tuple whose items have one form."""
    return Form(
        {"type": "array", "items": item.schema, **(sizes or {})},
        lambda value: [item.write(each) for each in value],
        lambda data: tuple(item.read(each) for each in data),
    )
