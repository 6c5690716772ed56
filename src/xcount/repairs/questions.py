"""More questions of a repair, in one line each: ``age, race: gap 0.3, distance 1``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.question.query import Query

_WORDS = ("gap", "probability-gap", "flip", "distance", "cutoff", "direction", "class")
Words = Iterable[str | Mapping[str, Any]] | str | Mapping[str, Any]


def more_queries(ensemble: Ensemble, also: Words) -> list[Query]:
    """Return the questions of ``--also`` about a model.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> [query.distance for query in more_queries(figure_1(), "f1: gap 40, distance 1")]
        [1]
    """
    listed = [also] if isinstance(also, str | Mapping) else list(also)
    return [_query(ensemble, each) for each in listed]


def _query(ensemble: Ensemble, asked: str | Mapping[str, Any]) -> Query:
    if isinstance(asked, Mapping):
        given = {("class_" if k == "class" else k): v for k, v in asked.items()}
        try:
            return Query.of(ensemble, given.pop("sensitive", ()), given.pop("gap", None), **given)
        except TypeError:
            known = ("sensitive", *(word.replace("-", "_") for word in _WORDS))
            raise QueryError(
                f"a question of also has {', '.join(known)}, not {', '.join(given)}"
            ) from None
    names, colon, rest = asked.rpartition(":")
    if not colon:
        raise QueryError(
            f"--also {asked!r} lacks the colon behind the names; write 'age: gap 0.3, distance 1'"
        )
    given = {}
    for part in rest.split(","):
        word, _, value = part.strip().partition(" ")
        if word not in _WORDS:
            raise QueryError(
                f"--also {asked!r}: unknown word {word!r}; there are {', '.join(_WORDS)}"
            )
        given[{"probability-gap": "probability_gap", "class": "class_"}.get(word, word)] = (
            True if word == "flip" else value.strip()
        )
    return Query.of(ensemble, names, given.pop("gap", None), **given)
