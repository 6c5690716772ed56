"""The domain: which regions exist and which changes are allowed, in the user's words.

- ``one_hot``: columns of which exactly one is 1 are one categorical feature.
- ``where``: conditions that every region fulfils, those it starts from and its neighbours.
- ``where_from``: conditions on the regions that changes start from; only those are asked about.
- ``where_to``: conditions on the regions that changes lead to.
- ``rule``: ``COND -> COND``; regions that break it do not exist.
- ``along``: ``NAME: VALUE <-> VALUE``; exchanged whenever a sensitive feature changes.
- ``unknown``: whether a value may become a category that the model does not know.

A domain is only text, the same in options, TOML files, Python and JSON; a model gives it meaning
(:meth:`Domain.pulled_back`, :meth:`Domain.values`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.one_hot import NONE, OneHotGroup, pulled_back
from xcount.question.query import resolve_feature
from xcount.question.values import ValueSet
from xcount.support.nearest import nearest
from xcount.support.records import Json, record, to_dict
from xcount.support.visible import visible

if TYPE_CHECKING:
    from xcount.question.condition import Condition, OneOf

WITH_NONE = f"+{NONE}"
"""Marks a group in its list of columns if all of them may be 0."""

OneHot = Mapping[str, Sequence[str]] | Iterable[str] | str
Words = Iterable[str] | str
Side = list[tuple[int, ValueSet]]
"""One side of a rule: conditions that hold together, as (feature, values)."""


@record("domain", "Which regions exist.")
@dataclass(frozen=True, slots=True)
class Domain:
    """Which regions exist, in the user's words.

    Example:
        >>> Domain.of(one_hot="race=race_White,race_Black,+none", where="age >= 25").where
        ('age >= 25',)
    """

    one_hot: Annotated[
        Mapping[str, tuple[str, ...]],
        Json("For each group its columns, and `+none` if all of them may be 0."),
    ] = field(default_factory=dict)
    where: Annotated[tuple[str, ...], Json("Conditions that every region satisfies.")] = ()
    rule: Annotated[tuple[str, ...], Json("Rules that every region satisfies.")] = ()
    unknown: Annotated[
        bool,
        Json("Whether values may become categories unknown to the model.", is_optional=True),
    ] = False
    where_from: Annotated[
        tuple[str, ...],
        Json("Conditions on the regions that changes start from.", is_optional=True),
    ] = ()
    where_to: Annotated[
        tuple[str, ...],
        Json("Conditions on the regions that changes lead to.", is_optional=True),
    ] = ()
    along: Annotated[
        tuple[str, ...],
        Json(
            "Values of features that are exchanged whenever a sensitive feature changes.",
            is_optional=True,
        ),
    ] = ()
    places: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The place of each text in the domain's file, for messages only."""

    @classmethod
    def of(
        cls,
        domain: DomainLike = None,
        *,
        one_hot: OneHot = (),
        where: Words = (),
        rule: Words = (),
        unknown: bool = False,
        where_from: Words = (),
        where_to: Words = (),
        along: Words = (),
    ) -> Domain:
        """Return the domain of a file, mapping or domain, with more groups and conditions.

        Args:
            domain: a domain, the path of a TOML file, or a mapping with the same words.
            one_hot: groups of columns, as a mapping, or as text ``NAME=COL,COL,...[,+none]``.
            where: conditions.
            rule: rules ``COND -> COND``.
            unknown: whether a value may become a category that the model does not know.
            where_from: conditions on the regions that changes start from.
            where_to: conditions on the regions that changes lead to.
            along: values to exchange whenever a sensitive feature changes.
        """
        base = _base(domain)
        groups = dict(base.one_hot)
        for name, columns in _groups(one_hot).items():
            if name in groups:
                raise QueryError(f"the one-hot group {name!r} is given twice")
            groups[name] = columns
        return cls(
            groups,
            (*base.where, *_listed(where, "where")),
            (*base.rule, *_listed(rule, "rule")),
            base.unknown or unknown,
            (*base.where_from, *_listed(where_from, "where_from")),
            (*base.where_to, *_listed(where_to, "where_to")),
            (*base.along, *_listed(along, "along")),
            base.places,
        )

    def __bool__(self) -> bool:
        return bool(
            self.one_hot
            or self.where
            or self.rule
            or self.unknown
            or self.where_from
            or self.where_to
            or self.along
        )

    def __repr__(self) -> str:
        return f"Domain({visible(self.text) or 'everything'})"

    @property
    def text(self) -> str:
        """The whole domain in one line."""
        groups = [f"{name} = one of {_shortened(c)}" for name, c in self.one_hot.items()]
        unknown = ["to unknown categories, too"] if self.unknown else []
        changes = [f"from {text}" for text in self.where_from]
        changes += [f"to {text}" for text in self.where_to]
        changes += [f"along {text}" for text in self.along]
        return "; ".join([*groups, *self.where, *self.rule, *changes, *unknown])

    def to_dict(self) -> dict[str, Any]:
        """Return the ``domain`` of a result's JSON."""
        return to_dict(self)

    @property
    def fingerprint(self) -> list[object]:
        """Everything that answers depend on, for a journal's key."""
        regions = [sorted(self.one_hot.items()), self.where, self.rule, self.unknown]
        changes = [self.where_from, self.where_to, self.along]
        return [*regions, *changes] if any(changes) else regions

    def pulled_back(self, ensemble: Ensemble) -> Ensemble:
        """Return the ensemble with the one-hot groups as features."""
        groups = []
        for name, words in self.one_hot.items():
            columns = [word for word in words if word != WITH_NONE]
            with self._about("one-hot group", name):
                indices = tuple(resolve_feature(ensemble, word) for word in columns)
            groups.append(OneHotGroup(name, indices, allows_none=len(columns) < len(words)))
        return pulled_back(ensemble, groups)

    @contextmanager
    def _about(self, what: str, words: str) -> Iterator[None]:
        """Add to an error the text that caused it, and its place in the file."""
        try:
            yield
        except QueryError as error:
            message = str(error)
            if repr(words) not in message:
                message = f"{what} {words!r}: {message}"
            place = f"{self.places[words]}: " if words in self.places else ""
            raise QueryError(place + message) from None

    def conditions(self) -> list[Condition]:
        """Return the conditions that every region fulfils."""
        return [condition for text in self.where for condition in _conditions(text)]

    def values(self, ensemble: Ensemble, dtype: str) -> dict[int, ValueSet]:
        """Return for each feature with conditions the values that fulfil all of them.

        Args:
            ensemble: with the one-hot groups as features.
            dtype: the number type that inputs are rounded to.
        """
        found: dict[int, ValueSet] = {}
        for text in self.where:
            with self._about("where", text):
                tests = _side(ensemble, _conditions(text), dtype)
            for index, allowed in tests:
                feature = ensemble.features[index]
                found[index] = found.get(index, ValueSet.everything(feature)) & allowed
                if not found[index]:
                    raise QueryError(
                        f"no region is left: no value of {feature.name!r} fulfils "
                        f"{self.about(ensemble, index)}"
                    )
        return found

    def rules(self, ensemble: Ensemble, dtype: str) -> list[tuple[Side, Side]]:
        """Return both sides of each rule: (feature, the values that fulfil the condition)."""
        found = []
        for text in self.rule:
            with self._about("rule", text):
                supposed, required = _rule(text)
                found.append((_side(ensemble, supposed, dtype), _side(ensemble, required, dtype)))
        return found

    def starts(self, ensemble: Ensemble, dtype: str) -> Side:
        """Return the conditions on the regions that changes start from."""
        return self._sides("where-from", self.where_from, ensemble, dtype)

    def targets(self, ensemble: Ensemble, dtype: str) -> Side:
        """Return the conditions on the regions that changes lead to."""
        return self._sides("where-to", self.where_to, ensemble, dtype)

    def _sides(self, what: str, texts: Iterable[str], ensemble: Ensemble, dtype: str) -> Side:
        found: Side = []
        for text in texts:
            with self._about(what, text):
                found += _side(ensemble, _conditions(text), dtype)
        return found

    def exchanges(self, ensemble: Ensemble, dtype: str) -> dict[int, list[ValuePair]]:
        """Return for each feature that moves along the pairs of values that are exchanged."""
        found: dict[int, list[ValuePair]] = {}
        for text in self.along:
            with self._about("along", text):
                name, pairs = _exchange(text)
                index = resolve_feature(ensemble, name)
                own = found.setdefault(index, [])
                for words in pairs:
                    first, second = (w.values(ensemble.features[index], dtype) for w in words)
                    named = [each for pair in own for each in pair]
                    if first == second or first in named or second in named:
                        raise QueryError(f"a value of {name!r} can be exchanged for one other only")
                    own.append((first, second))
        return found

    def about(self, ensemble: Ensemble, feature: int) -> str:
        """Return the conditions on one feature in words."""
        own = (c for c in self.conditions() if resolve_feature(ensemble, c.name) == feature)
        return " and ".join(f"'{condition.text}'" for condition in own)


ValuePair = tuple[ValueSet, ValueSet]
"""Two single values of a feature."""
MAX_CHARACTERS = 2**24
"""The largest domain file that is read."""
DomainLike = Domain | Mapping[str, Any] | str | os.PathLike[str] | None
"""What the user may pass as a domain: a Domain, a mapping, or the path of a TOML file."""
EVERYTHING = Domain()
"""All regions of a model."""


def _shortened(columns: Sequence[str]) -> str:
    """Return a list of columns as text; only the first and last if there are many."""
    if len(columns) <= 3:
        return ", ".join(columns)
    return f"{columns[0]}, ..., {columns[-1]} ({len(columns)} columns)"


def _conditions(text: str) -> Sequence[Condition]:
    from xcount.question.condition import parse_conditions  # most domains need none

    return parse_conditions(text)


def _rule(text: str) -> tuple[Sequence[Condition], Sequence[Condition]]:
    from xcount.question.condition import parse_rule  # most domains need none

    return parse_rule(text)


def _exchange(text: str) -> tuple[str, Sequence[tuple[OneOf, OneOf]]]:
    from xcount.question.condition import parse_exchange  # most domains need none

    return parse_exchange(text)


def _side(ensemble: Ensemble, conditions: Iterable[Condition], dtype: str) -> Side:
    found = []
    for condition in conditions:
        index = resolve_feature(ensemble, condition.name)
        found.append((index, condition.test.values(ensemble.features[index], dtype)))
    return found


def _base(domain: DomainLike) -> Domain:
    """Return the domain as passed by the user, before more is added."""
    if domain is None:
        return Domain()
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Mapping):
        return _from_mapping(domain)
    if not isinstance(domain, str | os.PathLike):
        raise QueryError(f"a domain is a file, a mapping or a Domain, not {type(domain).__name__}")
    text = _read(domain)
    return _from_mapping(_parsed(domain, text), _Places(os.fspath(domain), text.splitlines()))


@dataclass(frozen=True, slots=True)
class _Places:
    """Finds the line of a text in a domain's file."""

    file: str = ""
    lines: Sequence[str] = ()

    def of(self, words: str) -> str:
        """Return the file, and the first line that contains the text if one does."""
        written = (words, words.replace("\\", "\\\\").replace('"', '\\"'))
        for number, line in enumerate(self.lines, start=1):
            if any(each in line for each in written):
                return f"{self.file}, line {number}"
        return self.file

    def in_front(self, words: str) -> str:
        """Return the same as a prefix of a message."""
        return f"{self.of(words)}: " if self.file else ""


def _read(domain: str | os.PathLike[str]) -> str:
    try:
        with open(domain, encoding="utf-8-sig") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except IsADirectoryError:
        message = f"{os.fspath(domain)}: is a directory, expected a TOML file; name a file in it"
        raise QueryError(message) from None
    except OSError as error:
        raise QueryError(f"cannot read the domain {domain}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise QueryError(f"the domain {domain} is not UTF-8 text: {error.reason}") from None
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"the domain {domain} has more than {MAX_CHARACTERS:,} characters")
    return text


def _parsed(domain: str | os.PathLike[str], text: str) -> dict[str, Any]:
    import tomllib  # only for files: start-up time counts

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        from xcount.model.loaders import kinds

        other = kinds.mistaken(domain, text.encode(), kinds.DOMAIN)
        if other is not None:
            raise QueryError(other) from None
        raise QueryError(f"the domain {domain} is not valid TOML: {error}") from None
    except RecursionError:
        raise QueryError(f"the domain {domain} is not valid TOML: nested too deeply") from None


_WORDS = ("one-hot", "where", "where-from", "where-to", "rule", "along", "unknown")


_NOWHERE = _Places()


def _from_mapping(words: Mapping[str, Any], places: _Places = _NOWHERE) -> Domain:
    """Return the domain of a mapping, as in TOML or JSON."""
    known = {str(name).replace("_", "-"): value for name, value in words.items()}
    for name in map(str, words):
        if name.replace("_", "-") not in _WORDS:
            near = nearest(name, _WORDS, cutoff=0.6)
            meant = f"; did you mean {near!r}?" if near else ""
            raise QueryError(
                f"{places.in_front(name)}a domain has {', '.join(_WORDS[:-1])} and {_WORDS[-1]}, "
                f"but no {name!r}{meant}"
            )
    try:
        groups = _groups(known.get("one-hot", ()))
        texts = {
            name: _listed(known.get(name.replace("_", "-"), ()), name)
            for name in ("where", "rule", "where_from", "where_to", "along")
        }
        unknown = known.get("unknown", False)
        if not isinstance(unknown, bool):
            raise QueryError(f"unknown of a domain is true or false, not {unknown!r}")
    except QueryError as error:
        raise QueryError(f"{places.file}: {error}" if places.file else str(error)) from None
    said = [*groups, *(text for listed in texts.values() for text in listed)]
    found = {each: places.of(each) for each in said} if places.file else {}
    return Domain(one_hot=groups, unknown=unknown, places=found, **texts)


def _groups(one_hot: object) -> dict[str, tuple[str, ...]]:
    """Return the columns of each group, given as a mapping or as text."""
    if isinstance(one_hot, Mapping):
        return {str(name): _columns(columns, str(name)) for name, columns in one_hot.items()}
    groups: dict[str, tuple[str, ...]] = {}
    for text in _listed(one_hot, "one-hot"):
        name, equals, columns = text.partition("=")
        words = _columns(columns, name.strip())
        if not (equals and name.strip() and words):
            raise QueryError(f"a one-hot group is NAME=COLUMN,COLUMN,...[,+none], not {text!r}")
        if name.strip() in groups:
            raise QueryError(f"the one-hot group {name.strip()!r} is given twice")
        groups[name.strip()] = words
    return groups


def _columns(columns: object, group: str) -> tuple[str, ...]:
    """Return the columns of a group, as a list or as text with commas."""
    given = columns.split(",") if isinstance(columns, str) else columns
    words = _listed(given, f"the one-hot group {group!r}")
    return tuple(word.strip() for word in words if word.strip())


def _listed(words: object, what: str) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    given = [words] if isinstance(words, str) else words
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise QueryError(f"{what} of a domain is a list of texts, not {words!r}")
    listed = list(given)
    for word in listed:
        if not isinstance(word, str):
            raise QueryError(f"{what} of a domain is a list of texts, not {word!r}")
    return tuple(listed)
