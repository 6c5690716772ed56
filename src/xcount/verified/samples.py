"""An estimate that trusts no fast code: regions drawn by a hash function, decided by the proof.

The regions follow from a seed: the bytes of sample i are those of SHA-256 of ``xcount SEED i 0``,
``xcount SEED i 1``, ..., one after the other. The cell of each feature in turn is drawn by its
weight: of the feature's total weight W, the next bytes, as many as W - 1 needs, form a number, most
significant byte first, without the bits above those of W - 1; it is drawn again unless it is below
W, and the cell is the one in whose range it falls, the weights laid end to end.

The outcomes form a hash chain: it starts with the SHA-256 of the question file, and each outcome's
link is the SHA-256 of the link before it followed by the character 0 or 1.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from xcount.errors import QuestionFileError

STREAM = "sha256"
"""The name of the way in which regions follow from the seed."""


def random_bytes(seed: int, sample: int) -> Iterator[int]:
    """Return the bytes of one sample.

    Example:
        >>> list(islice(random_bytes(0, 1), 4))
        [165, 249, 211, 169]
    """
    block = 0
    while True:
        yield from hashlib.sha256(f"xcount {seed} {sample} {block}".encode()).digest()
        block += 1


def random_below(bound: int, source: Iterator[int]) -> int:
    """Return a number ``0 <= number < bound``, each as likely as any other."""
    n_bits = (bound - 1).bit_length()
    n_bytes = -(-n_bits // 8)
    while True:
        number = int.from_bytes(bytes(islice(source, n_bytes)), "big") & ((1 << n_bits) - 1)
        if number < bound:
            return number


@dataclass(frozen=True, slots=True)
class Axes:
    """The weights of the cells of every feature, added up: ``ends[f][c]`` is the end of cell c."""

    ends: tuple[Sequence[int], ...]

    @classmethod
    def of(cls, question: str) -> Axes:
        """Read the features of a question that the verified counter can read.

        Raises:
            QuestionFileError: the text does not start like a question.
        """
        lines = (line for line in question.split("\n") if not line.startswith("#"))
        try:
            if next(lines) != "xcount-question 1":
                raise ValueError("it does not start with xcount-question 1")
            n_features = int(next(lines).removeprefix("features "))
            return cls(tuple(_ends(next(lines).split(" ")) for _ in range(n_features)))
        except (StopIteration, ValueError, IndexError) as error:
            raise QuestionFileError(f"no question file: {error}") from error

    @property
    def total(self) -> int:
        """The weight of all regions."""
        product = 1
        for ends in self.ends:
            product *= ends[-1]
        return product

    def region(self, seed: int, sample: int) -> list[int]:
        """Return the cells of one sample."""
        source = random_bytes(seed, sample)
        return [bisect_right(ends, random_below(ends[-1], source)) for ends in self.ends]

    def drawn(self, seed: int, n_samples: int) -> str:
        """Return the regions of all samples, one line each, as the verified program reads them."""
        regions = (self.region(seed, sample) for sample in range(n_samples))
        return "".join(" ".join(map(str, cells)) + "\n" for cells in regions)


def _ends(words: list[str]) -> Sequence[int]:
    """Return the ends of the cells of a feature's line."""
    words = words[2 + int(words[1]) :] if words[0] == "placed" else words[1:]
    if words[0] == "cells":
        return range(1, int(words[1]) + 1)
    if words[0] != "weights":
        raise ValueError(f"expected cells or weights, found {words[0]}")
    return list(accumulate(int(word) for word in words[2:]))


def hash_chain(question: bytes, outcomes: str) -> str:
    """Return the last link of the chain of outcomes.

    Example:
        >>> hash_chain(b"", "")[:8], hash_chain(b"", "01")[:8]
        ('e3b0c442', '1f17b8d2')
    """
    link = hashlib.sha256(question).digest()
    for outcome in outcomes:
        link = hashlib.sha256(link + outcome.encode()).digest()
    return link.hex()
