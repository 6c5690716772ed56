"""docs/architecture.md and the pages about the design speak of the code that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_layers import ROOMS, SOURCES
from test_native_layers import ABOVE, CPP

from tools import rooms_picture

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PAGES = [PAGE, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]

FOLDERS = [room for room in ROOMS if (SOURCES / room).is_dir()]
"""The rooms, without the files that stand beside them."""

_PATH = re.compile(r"`([\w./-]+(?:/|\.(?:py|cpp|hpp|md|toml|yml|jsonl?)))`")
_STAND_INS = {"figure-1.json", "src/xcount/cli/NAME.py"}
"""Files that nobody claims to be there."""


def section(title: str) -> str:
    """Return a section of the page."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(title: str) -> list[str]:
    """Return what a section's table is about, row by row."""
    return re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE)


def test_the_page_has_every_room_in_order() -> None:
    """The same rooms in the same order as the layers that are checked."""
    assert first_column("The rooms") == FOLDERS


def test_the_picture_has_every_room() -> None:
    """Those of the package, and those of the native core."""
    assert {room.name for room in rooms_picture.ROOMS} == set(FOLDERS)
    assert set(rooms_picture.NATIVE) == set(ABOVE)


def test_files_of_a_room_are_in_order() -> None:
    """Files that a row of the table names stand in the room, in the order of imports."""
    for room in FOLDERS:
        row = re.search(rf"^\| `{room}` \|.*$", section("The rooms"), re.MULTILINE)
        assert row is not None
        names = [name.rstrip("/") for name in _PATH.findall(row[0])]
        assert all((SOURCES / room / name).exists() for name in names), (room, names)
        listed = [ROOMS[room].index(Path(name).stem) for name in names if ROOMS[room]]
        assert listed == sorted(listed), room


def test_the_page_has_the_native_folders() -> None:
    """With what each builds on."""
    table = section("The native core")
    assert first_column("The native core") == list(ABOVE)
    for folder, above in ABOVE.items():
        row = re.search(rf"^\| `{folder}` \|.*\|([^|]*)\|$", table, re.MULTILINE)
        assert row is not None
        assert set(re.findall(r"\w+", row[1])) == above
        assert (CPP / "src" / folder).is_dir()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_that_is_named_exists(page: Path) -> None:
    """From the root of the repository, of the package, or beside another one of its kind."""
    homes = [ROOT, SOURCES, ROOT / "docs"]
    homes += [folder for folder in SOURCES.rglob("*") if folder.is_dir()]
    homes += (CPP / "include" / "xcount").iterdir()
    named = set(_PATH.findall(page.read_text(encoding="utf-8"))) - _STAND_INS
    missing = {name for name in named if not any((home / name).exists() for home in homes)}
    assert missing == set()


def test_rooms_are_named_for_contributors() -> None:
    """CONTRIBUTING.md lists them all, of Python and of the core."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [room for room in [*FOLDERS, *ABOVE] if f"`{room}`" not in text] == []
