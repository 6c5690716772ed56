"""A reader and counter of question files, written from docs/question-format.md alone.

It visits every region and every other region: slow and obvious on purpose. Nothing here imports the
package.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
Tree = tuple[int] | tuple[int, list[range], "Tree", "Tree"]
Region = tuple[int, ...]


class Words:
    """The words of a question, one after the other."""

    def __init__(self, text: str) -> None:
        assert text.endswith("\n")
        assert "\r" not in text
        lines = [line for line in text[:-1].split("\n") if not line.startswith("#")]
        assert all(line and line.isascii() for line in lines)
        assert all(line == " ".join(line.split()) for line in lines)
        self._words = iter([word for line in lines for word in line.split(" ")])

    def word(self) -> str:
        return next(self._words)

    def expect(self, word: str) -> None:
        assert self.word() == word

    def number(self) -> int:
        word = self.word()
        assert _NUMBER.fullmatch(word), word
        return int(word)

    def ranges(self) -> list[range]:
        return [range(self.number(), self.number()) for _ in range(self.number())]

    def tree(self) -> Tree:
        kind = self.word()
        if kind == "l":
            return (self.number(),)
        assert kind == "n"
        return self.number(), self.ranges(), self.tree(), self.tree()

    def trees(self, word: str) -> list[Tree]:
        self.expect(word)
        return [self.tree() for _ in range(self.number())]

    def is_over(self) -> bool:
        return next(self._words, None) is None


@dataclass
class Question:
    """A question as the file says it."""

    places: list[list[int | None]] = field(default_factory=list)
    weights: list[list[int]] = field(default_factory=list)
    sensitive: list[int] = field(default_factory=list)
    distance: int | None = None
    change: list[str] = field(default_factory=list)
    closed: dict[int, list[range]] = field(default_factory=dict)
    along: dict[int, list[int]] = field(default_factory=dict)
    rules: list[Tree] = field(default_factory=list)
    from_: list[Tree] = field(default_factory=list)
    to: list[Tree] = field(default_factory=list)
    outputs: list[list[Tree]] = field(default_factory=list)


def read(text: str) -> Question:
    """Read a question file."""
    words, found = Words(text), Question()
    words.expect("xcount-question")
    words.expect("1")
    words.expect("features")
    for _ in range(words.number()):
        order = words.word()
        if order == "placed":
            listed = [words.word() for _ in range(words.number())]
            own: list[int | None] = [None if place == "-" else int(place) for place in listed]
        kind, n_cells = words.word(), words.number()
        assert kind in ("cells", "weights")
        weights = [words.number() for _ in range(n_cells)] if kind == "weights" else [1] * n_cells
        if order != "placed":
            assert order in ("ordered", "unordered")
            own = list(range(n_cells)) if order == "ordered" else [None] * n_cells
        assert len(own) == n_cells
        found.places.append(own)
        found.weights.append(weights)
    words.expect("sensitive")
    found.sensitive = [words.number() for _ in range(words.number())]
    words.expect("distance")
    distance = words.word()
    found.distance = None if distance == "any" else int(distance)
    words.expect("change")
    found.change = [words.word()]
    sizes = {"class": 0, "flip-sure": 3, "flip-up-sure": 2, "flip-down-sure": 2}
    found.change += [words.word() for _ in range(sizes.get(found.change[0], 1))]
    words.expect("closed")
    found.closed = {words.number(): words.ranges() for _ in range(words.number())}
    words.expect("along")
    for _ in range(words.number()):
        feature, n_cells = words.number(), words.number()
        found.along[feature] = [words.number() for _ in range(n_cells)]
    found.rules = words.trees("rules")
    found.from_ = words.trees("from")
    found.to = words.trees("to")
    words.expect("outputs")
    found.outputs = [words.trees("trees") for _ in range(words.number())]
    words.expect("end")
    assert words.is_over()
    return found


def value(tree: Tree, region: Region) -> int:
    """Return the value of a tree at a region."""
    while len(tree) == 4:
        feature, ranges, left, right = tree
        tree = left if any(region[feature] in cells for cells in ranges) else right
    return tree[0]


def _differs(change: list[str], before: list[int], after: list[int]) -> bool:
    word, numbers = change[0], [int(number) for number in change[1:]]
    rise = after[0] - before[0]
    if word in ("gap", "rise", "fall"):
        return {"gap": abs(rise), "rise": rise, "fall": -rise}[word] > numbers[0]
    if word.startswith("class"):
        old, new = before.index(max(before)), after.index(max(after))
        wanted = {"class-to": new, "class-from": old}.get(word)
        return old != new and (wanted is None or wanted == numbers[0])
    if word == "flip-sure":
        low, cut, high = numbers
    elif word == "flip-up-sure":
        low, cut = numbers
        high = cut
    elif word == "flip-down-sure":
        cut, high = numbers
        low = cut
    else:
        low = cut = high = numbers[0]
    up = before[0] <= low and after[0] > cut and "down" not in word
    down = before[0] > high and after[0] <= cut and "up" not in word
    return up or down


def _targets(asked: Question, region: Region) -> Iterator[Region]:
    """Yield the regions that a region may change to."""
    axes = [range(len(weights)) for weights in asked.weights]
    for cells in itertools.product(*(axes[f] for f in asked.sensitive)):
        other = list(region)
        for feature, moved in asked.along.items():
            other[feature] = moved[region[feature]]
        for feature, cell in zip(asked.sensitive, cells, strict=True):
            other[feature] = cell
        apart = sum(
            _apart(asked.places[f], region[f], cell)
            for f, cell in zip(asked.sensitive, cells, strict=True)
        )
        is_closed = any(
            other[f] != region[f] and any(other[f] in cells for cells in ranges)
            for f, ranges in asked.closed.items()
        )
        if apart >= 1 and (asked.distance is None or apart <= asked.distance) and not is_closed:
            yield tuple(other)


def _apart(places: list[int | None], cell: int, other: int) -> int:
    here, there = places[cell], places[other]
    return int(cell != other) if here is None or there is None else abs(here - there)


def sensitive_regions(text: str) -> dict[Region, bool]:
    """Return for every region that exists whether it is sensitive."""
    asked = read(text)
    every = itertools.product(*(range(len(weights)) for weights in asked.weights))
    exists = [x for x in every if all(value(rule, x) > 0 for rule in asked.rules)]
    sums = {x: [sum(value(t, x) for t in trees) for trees in asked.outputs] for x in exists}
    return {
        x: all(value(tree, x) > 0 for tree in asked.from_)
        and any(
            y in sums
            and all(value(tree, y) > 0 for tree in asked.to)
            and _differs(asked.change, sums[x], sums[y])
            for y in _targets(asked, x)
        )
        for x in exists
    }


def count(text: str) -> int:
    """Return the total weight of the sensitive regions."""
    weights = read(text).weights
    return sum(
        prod(own[cell] for own, cell in zip(weights, x, strict=True))
        for x, is_sensitive in sensitive_regions(text).items()
        if is_sensitive
    )


if __name__ == "__main__":
    # In the place of the verified counter in tests: a number, or exit status 2 for no question.
    try:
        sys.stdout.write(f"{count(Path(sys.argv[-1]).read_text())}\n")
    except (AssertionError, ValueError, StopIteration):
        sys.exit(2)
