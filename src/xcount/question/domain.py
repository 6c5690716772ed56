"""The domain: which regions exist, in the user's words.

- ``one_hot``: columns of which exactly one is 1 are one categorical feature.
- ``where``: conditions that every region fulfils, those it starts from and its neighbours.
- ``rule``: ``COND -> COND``; regions that break it do not exist.

A domain is words alone, the same in options, TOML files, Python and JSON; it means something
together with a model (:meth:`Domain.pulled_back`, :meth:`Domain.values`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.one_hot import NONE, OneHotGroup, pulled_back
from xcount.question.query import resolve_feature
from xcount.question.values import ValueSet
from xcount.support.dataclass import dataclass
from xcount.support.records import Json, record, to_dict

if TYPE_CHECKING:
    from xcount.question.condition import Condition

WITH_NONE = f"+{NONE}"
"""Stands in a group's list of columns where all of them may be 0."""

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
    where: Annotated[tuple[str, ...], Json("Conditions that every region fulfils.")] = ()
    rule: Annotated[tuple[str, ...], Json("Rules that every region keeps.")] = ()

    @classmethod
    def of(
        cls,
        domain: DomainLike = None,
        *,
        one_hot: OneHot = (),
        where: Words = (),
        rule: Words = (),
    ) -> Domain:
        """Return the domain of a file, mapping or domain, with more groups and conditions.

        Args:
            domain: a domain, the path of a TOML file, or a mapping with the same words.
            one_hot: groups of columns, as a mapping, or as text ``NAME=COL,COL,...[,+none]``.
            where: conditions.
            rule: rules ``COND -> COND``.
        """
        base = domain if isinstance(domain, Domain) else _from_mapping(_mapping_of(domain))
        groups = dict(base.one_hot)
        for name, columns in _groups(one_hot).items():
            if name in groups:
                raise QueryError(f"the one-hot group {name!r} is given twice")
            groups[name] = columns
        conditions = (*base.where, *_listed(where, "where"))
        return cls(groups, conditions, (*base.rule, *_listed(rule, "rule")))

    def __bool__(self) -> bool:
        return bool(self.one_hot or self.where or self.rule)

    @property
    def text(self) -> str:
        """All of it in one line."""
        groups = [f"{name} = one of {', '.join(c)}" for name, c in self.one_hot.items()]
        return "; ".join([*groups, *self.where, *self.rule])

    def to_dict(self) -> dict[str, Any]:
        """Return the ``domain`` of a result's JSON."""
        return to_dict(self)

    @property
    def fingerprint(self) -> list[object]:
        """All that answers depend on, for a journal's key."""
        return [sorted(self.one_hot.items()), self.where, self.rule]

    def pulled_back(self, ensemble: Ensemble) -> Ensemble:
        """Return the ensemble with the one-hot groups as features."""
        groups = []
        for name, words in self.one_hot.items():
            columns = [word for word in words if word != WITH_NONE]
            indices = tuple(_column(ensemble, name, word) for word in columns)
            groups.append(OneHotGroup(name, indices, allows_none=len(columns) < len(words)))
        return pulled_back(ensemble, groups)

    def conditions(self) -> list[Condition]:
        """Return the conditions that every region fulfils."""
        if not self.where:
            return []
        from xcount.question.condition import parse_conditions  # most domains need none

        return [condition for text in self.where for condition in parse_conditions(text)]

    def values(self, ensemble: Ensemble, dtype: str) -> dict[int, ValueSet]:
        """Return for each feature with conditions the values that fulfil all of them.

        Args:
            ensemble: with the one-hot groups as features.
            dtype: the number type that inputs are rounded to.
        """
        found: dict[int, ValueSet] = {}
        for condition in self.conditions():
            index = resolve_feature(ensemble, condition.name)
            feature = ensemble.features[index]
            before = found.get(index, ValueSet.everything(feature))
            found[index] = before & condition.test.values(feature, dtype)
            if not found[index]:
                raise QueryError(
                    f"no region is left: no value of {feature.name!r} fulfils "
                    f"{self.about(ensemble, index)}"
                )
        return found

    def rules(self, ensemble: Ensemble, dtype: str) -> list[tuple[Side, Side]]:
        """Return both sides of each rule: (feature, the values that fulfil the condition)."""
        if not self.rule:
            return []
        from xcount.question.condition import parse_rule  # most domains need none

        found = []
        for supposed, required in map(parse_rule, self.rule):
            found.append((_side(ensemble, supposed, dtype), _side(ensemble, required, dtype)))
        return found

    def about(self, ensemble: Ensemble, feature: int) -> str:
        """Return the conditions on one feature in words."""
        own = (c for c in self.conditions() if resolve_feature(ensemble, c.name) == feature)
        return " and ".join(f"'{condition.text}'" for condition in own)


DomainLike = Domain | Mapping[str, Any] | str | os.PathLike[str] | None
"""What a domain can be given as: itself, a mapping with its words, or a TOML file."""
EVERYTHING = Domain()
"""All regions of a model."""


def _side(ensemble: Ensemble, conditions: Iterable[Condition], dtype: str) -> Side:
    found = []
    for condition in conditions:
        index = resolve_feature(ensemble, condition.name)
        found.append((index, condition.test.values(ensemble.features[index], dtype)))
    return found


def _column(ensemble: Ensemble, group: str, word: str) -> int:
    try:
        return resolve_feature(ensemble, word)
    except QueryError as error:
        raise QueryError(f"one-hot group {group!r}: {error}") from None


def _mapping_of(domain: Mapping[str, Any] | str | os.PathLike[str] | None) -> Mapping[str, Any]:
    if domain is None:
        return {}
    if isinstance(domain, Mapping):
        return domain
    import tomllib  # only for files: start-up time counts

    try:
        with open(domain, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise QueryError(f"cannot read the domain {domain}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise QueryError(f"the domain {domain} is no text in UTF-8: {error.reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise QueryError(f"the domain {domain} is no readable TOML: {error}") from None


def _from_mapping(words: Mapping[str, Any]) -> Domain:
    """Return the domain of a mapping, as in TOML or JSON."""
    known = {name.replace("-", "_"): value for name, value in words.items()}
    for name in known:
        if name not in ("one_hot", "where", "rule"):
            raise QueryError(f"a domain has one-hot, where and rule, but no {name!r}")
    lists = (_listed(known.get(name, ()), name) for name in ("where", "rule"))
    return Domain(_groups(known.get("one_hot", ())), *lists)


def _groups(one_hot: object) -> dict[str, tuple[str, ...]]:
    """Return the columns of each group, given as a mapping or as text."""
    if isinstance(one_hot, Mapping):
        return {str(name): _listed(columns, str(name)) for name, columns in one_hot.items()}
    groups: dict[str, tuple[str, ...]] = {}
    for text in _listed(one_hot, "one-hot"):
        name, equals, columns = text.partition("=")
        words = tuple(word.strip() for word in columns.split(",") if word.strip())
        if not (equals and name.strip() and words):
            raise QueryError(f"a one-hot group is NAME=COLUMN,COLUMN,...[,+none], not {text!r}")
        if name.strip() in groups:
            raise QueryError(f"the one-hot group {name.strip()!r} is given twice")
        groups[name.strip()] = words
    return groups


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
