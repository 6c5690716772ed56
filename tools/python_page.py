"""Generates the reference of the Python functions from their signatures and docstrings.

    python -m tools.python_page xcount.count

prints one entry; ``python -m tools.reference`` puts all of them into ``docs/python.md``.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from xcount.support.display import DisplayMixin
from xcount.support.records import RECORDS, fields_of

NAMES = (
    "xcount.load",
    "xcount.inspect",
    "xcount.count",
    "xcount.audit",
    "xcount.compare",
    "xcount.worst",
    "xcount.diff",
    "xcount.person",
    "xcount.witnesses",
    "xcount.repair",
    "xcount.monotone",
    "xcount.verify",
    "xcount.testing.assert_share",
    "xcount.model.tables.read_table",
    "xcount.CountResult",
    "xcount.AuditResult",
    "xcount.CompareResult",
    "xcount.RepairResult",
    "xcount.WorstResult",
    "xcount.DiffResult",
    "xcount.PersonResult",
    "xcount.Witness",
    "xcount.Witnesses",
    "xcount.MonotoneResult",
    "xcount.Inspection",
    "xcount.Domain",
    "xcount.Population",
)
"""Public names in the order of the page; errors follow."""

_HIDDEN = ("from_dict",)
_SECTIONS = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises", "Yields": "Yields"}
_SECTION = re.compile(r"^(Args|Attributes|Example|Examples|Raises|Returns|Yields):$", re.MULTILINE)
_ITEM = re.compile(r"^(\S[^:]*): (.*(?:\n(?: +.*|))*)", re.MULTILINE)
_LINE = 88


def reference() -> str:
    """Return every public function and class, and the errors, as Markdown."""
    return "\n\n".join([*map(entry, NAMES), _errors()])


def entry(name: str) -> str:
    """Return one function or class."""
    found = resolved(name)
    return _class(name, found) if inspect.isclass(found) else _function(name, found)


def resolved(name: str) -> Any:
    """Return the object that a dotted name refers to."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def sections_of(docstring: str) -> dict[str, str]:
    r"""Return the parts of a docstring in Google style, the text before them under "".

    Example:
        >>> sections_of("Adds.\n\nArgs:\n    a: a number.\n")
        {'': 'Adds.', 'Args': 'a: a number.'}
    """
    text, *rest = _SECTION.split(inspect.cleandoc(docstring))
    parts = zip(rest[::2], rest[1::2], strict=True)
    return {"": text.strip(), **{name: inspect.cleandoc(body) for name, body in parts}}


def items_of(body: str) -> Iterator[tuple[str, str]]:
    r"""Yield name and meaning of each item of a section.

    Example:
        >>> list(items_of("a: one\n    and more.\nb: two."))
        [('a', 'one and more.'), ('b', 'two.')]
    """
    for found in _ITEM.finditer(body):
        yield found[1], " ".join(found[2].split())


def readable(text: str) -> str:
    """Return docstring text as Markdown: names as code, without Sphinx markup.

    Example:
        >>> readable("See :func:`~xcount.count` and ``gap``.")
        'See `count` and `gap`.'
    """
    text = re.sub(r":\w+:`~(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    text = re.sub(r":\w+:(`[^`]+`)", r"\1", text)
    return text.replace("``", "`")


def signature_of(name: str, function: Any) -> str:
    """Return a signature as code, with one argument per line if it does not fit one line."""
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    shown, is_keyword = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            shown.append("*")
        is_keyword = is_keyword or parameter.kind is parameter.KEYWORD_ONLY
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        kind = "" if parameter.annotation is empty else f": {parameter.annotation}"
        default = "" if parameter.default is empty else f" = {parameter.default!r}"
        if parameter.name not in ("self", "cls"):
            shown.append(f"{stars}{parameter.name}{kind}{default}")
    returned = "" if signature.return_annotation is empty else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) <= _LINE:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){returned}"])


def _function(name: str, function: Any) -> str:
    parts = sections_of(function.__doc__ or "")
    blocks = [f"## {name}", f"```py\n{signature_of(name, function)}\n```", readable(parts[""])]
    for section, title in _SECTIONS.items():
        if section in parts:
            blocks += [f"{title}:", _listed(parts[section])]
    return "\n\n".join([*blocks, *_example(parts)])


def _listed(body: str) -> str:
    rows = [f"- `{name}`: {readable(meaning)}" for name, meaning in items_of(body)]
    return "\n".join(rows) or readable(" ".join(body.split()))


def _example(parts: dict[str, str]) -> list[str]:
    found = [parts[name] for name in ("Example", "Examples") if name in parts]
    return [f"```pycon\n{textwrap.dedent(body)}\n```" for body in found]


def _class(name: str, cls: type) -> str:
    """Return a class: its fields, its other properties, its methods."""
    parts = sections_of(cls.__doc__ or "")
    attributes = dict(items_of(parts.get("Attributes", "")))
    if cls in RECORDS.values():
        said = {each.attribute: each.json.description for each in fields_of(cls)}
        attributes = {**said, **attributes}
    methods = []
    for member_name, member in _members(cls).items():
        if member_name.startswith("_") or member_name in _HIDDEN:
            continue
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        if getter is not None and getter.__doc__:
            attributes.setdefault(member_name, " ".join(getter.__doc__.split()))
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and function.__doc__:
            methods.append((signature_of(member_name, function), function.__doc__))
    blocks = [f"## {name}", readable(parts[""])]
    rows = [f"| `{key}` | {_in_a_table(meaning)} |" for key, meaning in attributes.items()]
    blocks += ["\n".join(["| attribute | meaning |", "|---|---|", *rows])] if rows else []
    for signature, text in methods:
        said_of = readable(" ".join(sections_of(text)[""].split()))
        blocks.append(f"`{' '.join(signature.split())}`: {said_of}")
    return "\n\n".join([*blocks, *_example(parts)])


def _members(cls: type) -> dict[str, Any]:
    """Return the methods of a class, including those that display it."""
    return {**vars(cls), **(vars(DisplayMixin) if issubclass(cls, DisplayMixin) else {})}


def _in_a_table(text: str) -> str:
    """Return text for a table cell, with bars escaped."""
    return readable(text).replace("|", "\\|")


def _errors() -> str:
    """Return the exceptions, with the tree from their module's docstring."""
    from xcount import errors

    text = (
        "Whatever XCount raises on purpose is an `XCountError`, with a message that is meant for "
        "the user. It lives in `xcount.errors`, as do those that say more:"
    )
    rows = [
        f"| `{name}` | {readable((cls.__doc__ or '').strip())} |"
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and cls.__module__ == errors.__name__
    ]
    table = "\n".join(["| exception | meaning |", "|---|---|", *rows])
    return "\n\n".join(["## Errors", text, table])


if __name__ == "__main__":
    print(entry(sys.argv[1]))
    sys.exit(0)
