"""Conditions on one feature, as people write them: ``25 <= age < 65``, ``race in {White, Black}``.

::

    condition  =  value OP name  |  name OP value  |  value OP name OP value
               |  name [not] in {value, ...}  |  name is [not] missing
    OP         =  <  <=  >  >=  ==  !=

A name is that of a feature; a value is a number, or the label or code of a category. Both may be
quoted, and must be if they contain an operator, a comma or a brace. Several conditions are joined
by ``and``. A missing value fulfils only ``is missing``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from xcount.errors import QueryError
from xcount.model.ensemble import Feature
from xcount.question.values import (
    ALL_NUMBERS,
    ValueSet,
    piece_between,
    pieces_of,
)
from xcount.support.nearest import nearest
from xcount.support.parse import plain_float

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_OPERATOR = re.compile(r"<=|>=|==|!=|<|>")
_IN = re.compile(r"(?P<name>.*?\S)\s+(?P<not>not\s+)?in\s*\{(?P<values>[^{}]*)\}")
_IS_MISSING = re.compile(r"(?P<name>.*?\S)\s+is\s+(?P<not>not\s+)?missing")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_EXAMPLES = (
    "'age >= 25', '25 <= age < 65', 'sex == Male', 'race in {White, Black}', 'age is missing'"
)


class Test(Protocol):
    """The test of a condition, applied to its feature."""

    def values(self, feature: Feature, dtype: str) -> ValueSet:
        """Return the values that fulfil it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one feature.

    Attributes:
        name: the feature, as the user named it.
        test: the test applied to it.
        text: the condition, as the user wrote it.
    """

    name: str
    test: Test
    text: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Comparisons with numbers: (operator, number), the feature's value on the left."""

    comparisons: tuple[tuple[str, str], ...]

    def values(self, feature: Feature, dtype: str) -> ValueSet:
        if feature.is_categorical:
            raise QueryError(
                f"the categories of {feature.name!r} are not ordered; use ==, != or in, not "
                f"{self.comparisons[0][0]}"
            )
        found = ValueSet(ALL_NUMBERS)
        for operator, word in self.comparisons:
            number, is_in = _number(word, feature), "=" in operator
            low, high = (-math.inf, number) if "<" in operator else (number, math.inf)
            piece = piece_between(low, high, dtype, low_is_in=is_in, high_is_in=is_in)
            found &= ValueSet((piece,) if piece[0] < piece[1] else ())
        return found


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some values, or none of them."""

    words: tuple[str, ...]
    is_negated: bool = False

    def values(self, feature: Feature, dtype: str) -> ValueSet:
        if feature.categories is None:
            numbers = [_number(word, feature) for word in self.words]
            found = ValueSet(pieces_of(numbers, dtype))
        else:
            found = ValueSet(codes=frozenset(_code(word, feature) for word in self.words))
        if not self.is_negated:
            return found
        others = found.complement(feature)
        return ValueSet(others.pieces, others.codes)


@dataclass(frozen=True, slots=True)
class IsMissing:
    """A missing value, or any other."""

    is_negated: bool = False

    def values(self, feature: Feature, dtype: str) -> ValueSet:
        every = ValueSet.everything(feature)
        if self.is_negated:
            return ValueSet(every.pieces, every.codes)
        return ValueSet(has_missing=True)


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return the conditions in a text, where they are joined by ``and``.

    Example:
        >>> [condition.name for condition in parse_conditions("25 <= age < 65 and sex == Male")]
        ['age', 'sex']
    """
    return tuple(map(_parse, _split(text, r"\sand\s")))


def parse_rule(text: str) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """Return the premise and the conclusion of a rule, ``COND -> COND``."""
    sides = _split(text, "->")
    if len(sides) != 2:
        arrow = ", with -> and not =>" if "=>" in _hidden(text) else ""
        raise QueryError(
            f"cannot read the rule {text!r}; a rule is 'COND -> COND'{arrow}, such as "
            "'pregnant == 1 -> sex == Female'"
        )
    return parse_conditions(sides[0]), parse_conditions(sides[1])


def parse_exchange(text: str) -> tuple[str, tuple[tuple[OneOf, OneOf], ...]]:
    """Return the feature and the pairs of values of an exchange, ``NAME: VALUE <-> VALUE, ...``.

    Example:
        >>> name, pairs = parse_exchange("relationship: Husband <-> Wife")
        >>> name, pairs[0][0].words, pairs[0][1].words
        ('relationship', ('Husband',), ('Wife',))
    """
    name, *rest = _split(text, ":")
    found = []
    for pair in _split(text[_hidden(text).find(":") + 1 :], ",") if rest else ():
        values = _split(pair, "<->")
        if len(values) != 2 or not all(values):
            raise _no_exchange(text)
        first, second = (OneOf((_plain(value, text),)) for value in values)
        found.append((first, second))
    if not found or not name:
        raise _no_exchange(text)
    return _plain(name, text), tuple(found)


def _no_exchange(text: str) -> QueryError:
    return QueryError(
        f"cannot read {text!r}; what moves along is 'NAME: VALUE <-> VALUE', such as "
        "'relationship: Husband <-> Wife'; several pairs are separated by commas"
    )


def _hidden(text: str) -> str:
    """Return the text with quoted parts masked, at the same positions."""
    return _QUOTED.sub(lambda match: "'" + "_" * (len(match[0]) - 2) + "'", text)


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside quotes."""
    parts, start = [], 0
    for match in re.finditer(separator, _hidden(text)):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    return [*parts, text[start:].strip()]


def _parse(text: str) -> Condition:
    hidden = _hidden(text.strip())
    found = _IN.fullmatch(hidden) or _IS_MISSING.fullmatch(hidden)
    if found is None:
        return _comparison(text.strip())
    name = _plain(text.strip()[slice(*found.span("name"))], text)
    is_negated = found["not"] is not None
    if found.re is _IS_MISSING:
        return Condition(name, IsMissing(is_negated), text)
    values = _split(text.strip()[slice(*found.span("values"))], ",")
    return Condition(name, OneOf(tuple(_plain(v, text) for v in values), is_negated), text)


def _comparison(text: str) -> Condition:
    matches = list(_OPERATOR.finditer(_hidden(text)))
    operators = [match[0] for match in matches]
    starts = [0, *(match.end() for match in matches)]
    ends = [*(match.start() for match in matches), len(text)]
    parts = [_plain(text[a:b], text) for a, b in zip(starts, ends, strict=True)]
    if len(parts) == 3 and {*operators} in ({"<"}, {"<="}, {"<", "<="}, {">"}, {">="}, {">", ">="}):
        if _is_number(parts[1].partition(" or ")[0]):  # 'age >= 20 or age > 3'
            raise _unreadable(text)
        first = (_MIRRORED[operators[0]], parts[0])
        return Condition(parts[1], Bounds((first, (operators[1], parts[2]))), text)
    if len(parts) != 2 or parts[0].endswith("="):
        raise _unreadable(text)
    (left, right), operator = parts, operators[0]
    if _is_number(left) and not _is_number(right):
        left, right, operator = right, left, _MIRRORED[operator]
    if operator in ("==", "!="):
        return Condition(left, OneOf((right,), operator == "!="), text)
    return Condition(left, Bounds(((operator, right),)), text)


def _plain(word: str, text: str) -> str:
    """Return a name or value without its quotes."""
    word = word.strip()
    if _QUOTED.fullmatch(word):
        return word[1:-1]
    if not word:
        raise _unreadable(text)
    return word


def _unreadable(text: str) -> QueryError:
    remedy = _misspelt(text) or f"examples of conditions: {_EXAMPLES}"
    return QueryError(f"cannot read the condition {text!r}; {remedy}")


_MISSPELT = (
    (r"=[<>]", "write >= for at least, <= for at most"),
    (r"(?<![<>=!])=(?!=)", "write == for equal, as in 'sex == Male'"),
    (r"&|\|", "join conditions with 'and'; instead of 'or', list values: 'race in {White, Black}'"),
    (r"\sor\s", "there is no 'or'; list values, as in 'race in {White, Black}'"),
    (r"\sin(\s|\(|\[)(?!.*\{)", "put the values after 'in' in braces: 'race in {White, Black}'"),
    (r"\sin\s*\{\s*\}", "'in' needs at least one value, as in 'race in {White, Black}'"),
    (r"\sis\s", "only 'is missing' and 'is not missing' are possible"),
    (r"['\"`](?=[^'\"`]*$)", "a quote is not closed"),
)
"""Common mistakes in conditions, and how to correct them."""


def _misspelt(text: str) -> str | None:
    """Return how to correct the text, if it is a common mistake."""
    hidden = _QUOTED.sub("", text)
    return next((meant for wrong, meant in _MISSPELT if re.search(wrong, hidden)), None)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(plain_float(word))
    except ValueError:
        return False


def _number(word: str, feature: Feature) -> float:
    if not _is_number(word):
        raise QueryError(f"{feature.name!r} is numeric: {word!r} is not a number")
    return float(word)


def _code(word: str, feature: Feature) -> int:
    """Return the code of a category given by its label, or by the code itself."""
    categories, labels = feature.categories or (), feature.labels or ()
    if word in labels:
        return categories[labels.index(word)]
    if word in feature.other_labels and feature.other is not None:
        return feature.other
    if feature.hashes is None and _is_number(word) and float(word) in categories:
        return int(float(word))
    if feature.labels is None and feature.other is not None and word.isdecimal():
        return feature.other
    has = f"{feature.name!r} has no category {word!r}"
    if feature.hashes and any(f"#{known}" in labels for known in feature.hashes):
        raise QueryError(
            f"{has} that XCount knows of: the model file does not contain the names of its "
            "categories; save it with save_model(..., format='json', pool=pool)"
        )
    close = nearest(word.removeprefix(feature.name).lstrip("_=-. ") or word, _names(feature))
    if close is not None:
        raise QueryError(f"{has}; did you mean {close!r}? It has {_listed(feature)}")
    raise QueryError(f"{has}; it has {_listed(feature)}")


def _listed(feature: Feature, most: int = 12) -> str:
    names = list(_names(feature))
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _names(feature: Feature) -> Iterator[str]:
    yield from feature.labels or map(str, feature.categories or ())
