"""Generates tables of the JSON that commands print, from its schema ``docs/xcount.schema.json``.

    python -m tools.schema_page count

prints one; ``python -m tools.reference`` puts them all into ``docs/json.md``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from tools.json_schema import SCHEMA

Schema = Mapping[str, Any]


@cache
def definitions() -> Schema:
    """Return the objects of the schema, by name."""
    found: Schema = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return found


def table(name: str) -> str:
    """Return the fields of an object, as a Markdown table."""
    about = definitions()[name]
    needed = about.get("required", ())
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for field, schema in about["properties"].items():
        optional = "" if field in needed else ", optional"
        rows.append(f"| `{field}` | {type_of(schema)}{optional} | {schema['description']} |")
    return "\n".join(rows)


def type_of(schema: Schema) -> str:
    """Return the type of a field in words; an object links to its own table, if it has one.

    Example:
        >>> type_of({"type": ["number", "null"]})
        'number or null'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = definitions()[name]
        return f"[{name}](#{name})" if "properties" in target else type_of(target)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join("null" if v is None else f"`{json.dumps(v)}`" for v in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(type_of(option) for option in schema["anyOf"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = " or ".join(kinds)
    return f"{words} of {type_of(schema['items'])}" if "items" in schema else words


if __name__ == "__main__":
    print(table(sys.argv[1]))
    sys.exit(0)
