"""Frozen dataclasses behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from xcount.support.dataclass import dataclass

KINDS: dict[str, Any] = {
    "ours": dataclass,
    "standard": dataclasses.dataclass,
}


@dataclass(frozen=True, slots=True)
class Slotted:
    """With slots, for pickles: they find a class by its name."""

    a: int
    b: tuple[int, ...] = (1, 2)


@dataclass(frozen=True, slots=True)
class Below(Slotted):
    """A field more."""

    c: str = "c"


def made_by(dataclass: Any) -> tuple[type, ...]:
    """Return classes of several kinds, made by one of the decorators."""

    @dataclass(frozen=True)
    class Plain:
        """All kinds of fields."""

        kind: ClassVar[str] = "plain"
        a: int
        b: list[int] = field(default_factory=list)
        c: int = field(default=3, repr=False, compare=False)
        d: dict[str, int] = field(default_factory=dict, init=False)

        @cached_property
        def twice(self) -> int:
            return 2 * self.a

    @dataclass(frozen=True, eq=False)
    class Identity:
        """Compared by identity."""

        a: float

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", float(self.a))

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:  # noqa: PLW1641  # the decorator adds __hash__
        """Given by name, with methods of its own."""

        b: int
        a: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and other.b == self.b

        def __repr__(self) -> str:
            return "named"

    @dataclass(frozen=True)
    class Empty:
        """Nothing in it."""

    return Plain, Identity, Named, Empty


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_class_behaves_as_the_standard_one(kind: str) -> None:
    """Made, shown, compared, hashed, replaced, refused: all the same."""
    plain, identity, named, empty = made_by(KINDS[kind])
    one = plain(1)
    assert repr(one) == "made_by.<locals>.Plain(a=1, b=[], d={})"
    assert one == plain(1, c=4) != plain(2)
    assert one.b is not plain(1).b
    assert one.twice == 2 == one.twice
    assert dataclasses.asdict(one) == {"a": 1, "b": [], "c": 3, "d": {}}
    assert dataclasses.replace(one, a=5).a == 5
    assert [f.name for f in dataclasses.fields(plain)] == ["a", "b", "c", "d"]
    assert list(inspect.signature(plain).parameters) == ["a", "b", "c"]
    with pytest.raises(TypeError):
        hash(one)  # of a list
    assert identity(1).a == 1.0
    assert identity(1) != identity(1)
    assert hash(named(b=1)) == hash(named(b=1))
    assert named(a=1, b=2) == named(b=2)
    assert repr(named(b=1)) == "named"
    assert empty() == empty()
    assert hash(empty()) == hash(empty())
    assert one.__eq__(3) is NotImplemented


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_can_be_assigned(kind: str) -> None:
    """Fields are neither set nor deleted, nor others added; wrong arguments are refused."""
    for made in made_by(KINDS[kind])[:2]:
        one = made(1)
        for name in ("a", "other"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(one, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.a
        for arguments in ((), (1, 2, 3, 4, 5)):
            with pytest.raises(TypeError):
                made(*arguments)


def test_slots_are_inherited_copied_and_pickled() -> None:
    """As cluster workers need it."""
    one = Below(1, c="d")
    assert not hasattr(one, "__dict__")
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    assert hash(one) == hash(Below(1, (1, 2), "d"))
    assert Below(1) != Slotted(1)


def test_nothing_is_compiled_before_the_first_object() -> None:
    """Most classes of a program make no object in a short run."""

    @dataclass(frozen=True, slots=True)
    class Rare:
        """Seldom made."""

        a: int

    assert not callable(vars(Rare)["__init__"])
    assert Rare(1).a == 1
    assert callable(vars(Rare)["__init__"])


@pytest.mark.parametrize("kind", KINDS)
def test_methods_of_a_class_below_call_those_above(kind: str) -> None:
    """An ``__init__`` of its own, a pattern, fields without and with slots."""

    @KINDS[kind](frozen=True, slots=True)
    class Above:
        """With a slot."""

        a: int

    @KINDS[kind](frozen=True)
    class Between(Above):
        """Without."""

        b: int = 2

    class Made(Between):
        """With an ``__init__`` of its own."""

        def __init__(self) -> None:
            super().__init__(1)  # type: ignore[call-arg]  # the decorator adds it

    made: Any = Made()
    assert made.__match_args__ == ("a", "b")
    assert (made.a, made.b) == (1, 2)
    assert made == Made()


def test_one_that_changes_is_left_to_the_standard_library() -> None:
    """It is a dataclass all the same."""

    @dataclass
    class Changing:
        """A counter."""

        n: int = 0

    one = Changing()
    one.n += 1
    assert one == Changing(1)
