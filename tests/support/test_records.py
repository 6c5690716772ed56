"""Records: one list of fields, and what is made from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import pytest

from xcount.support.record_check import misfit
from xcount.support.records import (
    Json,
    columns_of,
    from_dict,
    record,
    schema_of,
    to_dict,
    whole_or,
    written,
)


class Colour(StrEnum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


@record("wheel", "A wheel.")
@dataclass(frozen=True)
class Wheel:
    """A record inside another one."""

    size: Annotated[float, Json("Its size.", {"minimum": 0})]


@record("cart", "A cart.")
@dataclass(frozen=True)
class Cart:
    """A record with a field of every kind."""

    name: Annotated[str, Json("Its name.", name="title", column="name", cell=str.upper)]
    colour: Annotated[Colour | None, Json("Its colour.")]
    wheels: Annotated[tuple[Wheel, ...], Json("Its wheels.")]
    span: Annotated[tuple[int, int], Json("From and to.")]
    steps: Annotated[int | None, Json("Its steps.", form=whole_or("any", least=1))]
    note: Annotated[str | None, Json("A note.", is_optional=True)] = None
    secret: int = 0

    @property
    @written(Json("How many wheels.", after="wheels", column="wheels"))
    def n_wheels(self) -> int:
        return len(self.wheels)


CART = Cart("a", Colour.RED, (Wheel(1.5), Wheel(2.0)), (1, 2), None)
DATA = {
    "title": "a",
    "colour": "red",
    "wheels": [{"size": 1.5}, {"size": 2.0}],
    "n_wheels": 2,
    "span": [1, 2],
    "steps": "any",
}


def test_a_record_is_written_and_read() -> None:
    """In the order of its fields; what has its default and is optional is left out."""
    assert to_dict(CART) == DATA
    assert list(to_dict(CART)) == list(DATA)
    assert from_dict(Cart, json.loads(json.dumps(DATA))) == CART
    noted = {**DATA, "note": "n", "colour": None, "steps": 3}
    assert to_dict(from_dict(Cart, noted)) == noted


def test_columns_are_the_fields_that_say_so() -> None:
    """With their own names and texts."""
    columns = columns_of(Cart)
    assert [column.json.column for column in columns] == ["name", "wheels"]
    assert [column.cell_of(CART) for column in columns] == ["A", 2]


def test_the_schema_says_what_is_written() -> None:
    """Derived and optional fields included."""
    jsonschema = pytest.importorskip("jsonschema")
    definitions = {"cart": schema_of(Cart), "wheel": schema_of(Wheel)}
    schema = jsonschema.Draft202012Validator({"$ref": "#/$defs/cart", "$defs": definitions})
    schema.validate(DATA)
    schema.validate({**DATA, "note": "n", "colour": None, "steps": 3})
    for change in ({"note": None}, {"steps": 0}, {"span": [1]}, {"colour": "green"}, {"x": 1}):
        assert not schema.is_valid({**DATA, **change}), change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"title": 3}, "title is 3, not string"),
        ({"colour": "green"}, "colour is 'green', not None or red or blue"),
        ({"wheels": [{"size": 1.0}, {}]}, "wheels.1.size is missing"),
        ({"wheels": [{"size": -1.0}]}, "wheels.0.size is -1.0, less than 0"),
        ({"wheels": [{"size": float("nan")}]}, "wheels.0.size is nan, not number"),
        ({"wheels": [3]}, "wheels.0 is 3, not an object"),
        ({"span": [1, 2, 3]}, "span has 3 items"),
        ({"span": [1, True]}, "span.1 is True, not integer"),
        ({"steps": "all"}, "steps is 'all', not integer"),
        ({"steps": [10**5000]}, "steps is an array, not integer"),
        ({"note": 10**5000}, f"note is 1{'0' * 28}…, not string"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], fault: str) -> None:
    """The place, what is there, and what was expected."""
    assert misfit({**DATA, **change}, Cart) == fault


def test_what_is_not_read_may_be_missing_or_new() -> None:
    """Properties follow from the rest, and later versions have more fields."""
    assert misfit({**DATA, "later": 1}, Cart) is None
    assert misfit({name: value for name, value in DATA.items() if name != "n_wheels"}, Cart) is None
    assert misfit([], Cart) == "it is an array, not an object"
    del (lacking := dict(DATA))["span"]
    assert misfit(lacking, Cart, "cart") == "cart.span is missing"
