"""Which texts are question files: a strict reader of lines, written from docs/question-format.md.

Nothing here imports the package; question_oracle.py says what a question file means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}")
MOST = 2**30 - 1
MOST_CELLS = 2**24 - 1
CHANGES = {
    **dict.fromkeys(("gap", "rise", "fall", "flip", "flip-up", "flip-down"), 1),
    **dict.fromkeys(("flip-up-sure", "flip-down-sure"), 2),
    "flip-sure": 3,
    "class": 0,
    "class-to": 1,
    "class-from": 1,
}


class RefusedError(Exception):
    """The text is not a question file."""


def check(condition: bool) -> None:
    """Refuse the text unless a condition holds."""
    if not condition:
        raise RefusedError


class Reader:
    """Lines of words, read one by one."""

    def __init__(self, data: bytes) -> None:
        check(data.endswith(b"\n"))
        lines = data[:-1].split(b"\n")
        check(all(byte >= 32 and byte != 127 for line in lines for byte in line))
        kept = [line for line in lines if not line.startswith(b"#")]
        check(all(byte < 128 for line in kept for byte in line))
        self._lines = iter([line.decode().split(" ") for line in kept])
        self._words: list[str] = []

    def start(self, *first: str) -> None:
        """Start a line that begins with some words."""
        self._words = next(self._lines, [])[::-1]
        check(bool(self._words) and "" not in self._words)
        for word in first:
            check(self.word() == word)

    def end(self) -> None:
        check(not self._words)

    def is_over(self) -> bool:
        return next(self._lines, None) is None

    def word(self) -> str:
        check(bool(self._words))
        return self._words.pop()

    def integer(self) -> int:
        word = self.word()
        check(INTEGER.fullmatch(word) is not None)
        return int(word)

    def natural(self, least: int = 0, most: int = MOST) -> int:
        value = self.integer()
        check(least <= value <= most)
        return value

    def section(self, name: str, read: Callable[[], None], least: int = 0, most: int = MOST) -> int:
        """Read a number of lines that the first one announces."""
        self.start(name)
        n = self.natural(least, most)
        self.end()
        for _ in range(n):
            self.start()
            read()
            self.end()
        return n


class Question(Reader):
    """The productions of the grammar."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.cells: list[int] = []
        self.sensitive: list[int] = []

    def feature(self) -> None:
        order = self.word()
        check(order in ("ordered", "unordered", "placed"))
        n_places = None
        if order == "placed":
            n_places = self.natural(1, MOST_CELLS)
            for _ in range(n_places):
                place = self.word()
                if place != "-":
                    self._words.append(place)
                    self.natural(0, MOST_CELLS)
        kind = self.word()
        check(kind in ("cells", "weights"))
        n = self.natural(1, MOST_CELLS)
        check(n_places in (None, n))
        if kind == "weights":
            weights = [self.integer() for _ in range(n)]
            check(min(weights) >= 0 and max(weights) > 0)
        self.cells.append(n)

    def index(self) -> int:
        return self.natural(0, len(self.cells) - 1)

    def ranges(self, n_cells: int) -> None:
        bounds = [self.natural(0, n_cells) for _ in range(2 * self.natural(0, MOST_CELLS))]
        check(all(a < b for a, b in pairwise(bounds)))

    def tree(self, depth: int = 0) -> None:
        kind = self.word()
        check(kind in ("l", "n") and depth <= 1000)
        if kind == "l":
            self.integer()
            return
        check(depth < 1000)
        self.ranges(self.cells[self.index()])
        self.tree(depth + 1)
        self.tree(depth + 1)

    def read(self) -> None:
        self.start("xcount-question", "1")
        self.end()
        self.section("features", self.feature, 1, 10**6)
        self.start("sensitive")
        self.sensitive = [self.index() for _ in range(self.natural(1, 64))]
        check(len(set(self.sensitive)) == len(self.sensitive))
        self.end()
        self.start("distance")
        if self._words != ["any"]:
            self.natural(1)
        else:
            self.word()
        self.end()
        self.start("change")
        change = self.word()
        check(change in CHANGES)
        numbers = [self.integer() for _ in range(CHANGES[change])]
        self.end()
        self._allowed_changes()
        self.start("outputs")
        n_outputs = self.natural(1)
        self.end()
        check((n_outputs > 1) == change.startswith("class"))
        if change in ("class-to", "class-from"):
            check(0 <= numbers[0] < n_outputs)
        for _ in range(n_outputs):
            self.section("trees", self.tree)
        self.start("end")
        self.end()
        check(self.is_over())

    def _allowed_changes(self) -> None:
        closed: list[int] = []
        along: list[int] = []

        def read_closed() -> None:
            closed.append(self.index())
            self.ranges(self.cells[closed[-1]])

        def read_along() -> None:
            along.append(self.index())
            n = self.natural(self.cells[along[-1]], self.cells[along[-1]])
            for _ in range(n):
                self.natural(0, n - 1)

        self.section("closed", read_closed)
        self.section("along", read_along)
        check(len(set(closed)) == len(closed) and len(set(along)) == len(along))
        check(not set(along) & set(self.sensitive))
        for word in ("rules", "from", "to"):
            self.section(word, self.tree)


def is_question(data: bytes) -> bool:
    """Return whether bytes are a question file of format 1."""
    try:
        Question(data).read()
    except RefusedError:
        return False
    return True
