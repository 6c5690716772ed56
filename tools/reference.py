"""Writes the parts of the documents that are generated from the code.

    python -m tools.reference            # writes them
    python -m tools.reference --check    # lists those that are out of date

A part stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``: all commands with their
options in ``docs/command-line.md``, the Python functions in ``docs/python.md``, the fields of each
JSON object in ``docs/json.md``. The fields are read from ``docs/xcount.schema.json``, which is
written first.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tools import commands_page, json_schema, python_page, schema_page

ROOT = Path(__file__).parent.parent
SCHEMA = "docs/xcount.schema.json"
PAGES = ("docs/command-line.md", "docs/python.md", "docs/json.md")
_PART = re.compile(
    r"(?P<begin><!-- begin (?P<maker>commands|functions|fields)(?: (?P<about>\w+))? -->\n)"
    r".*?"
    r"(?P<end><!-- end (?P=maker) -->)",
    re.DOTALL,
)
_MAKERS: dict[str, Callable[[str], str]] = {
    "commands": lambda _: commands_page.reference(),
    "functions": lambda _: python_page.reference(),
    "fields": schema_page.table,
}


def current(text: str) -> str:
    r"""Return a page with its parts as the code has them now.

    Example:
        >>> page = "<!-- begin fields leaves -->\nold\n<!-- end fields -->\n"
        >>> current(page).splitlines()[2]
        '| field | type | meaning |'
    """

    def made(part: re.Match[str]) -> str:
        return f"{part['begin']}\n{_MAKERS[part['maker']](part['about'] or '')}\n\n{part['end']}"

    return _PART.sub(made, text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    outdated = 0
    for name in (SCHEMA, *PAGES):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        new = json_schema.text() if name == SCHEMA else current(text)
        if new != text:
            outdated += 1
            print(f"{name} is out of date" if options.check else f"wrote {name}")
            if not options.check:
                path.write_text(new, encoding="utf-8")
    return int(options.check and outdated > 0)


if __name__ == "__main__":
    sys.exit(main())
