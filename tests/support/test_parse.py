"""How people spell numbers, shares, durations and sizes: one set of spellings everywhere."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from xcount.errors import QueryError
from xcount.support.parse import (
    exact_number,
    n_bytes,
    open_share,
    plain_float,
    seconds,
    whole_number,
)

ONLY_PYTHON = ("1_2%", "1_2", "1/2_0", "\uff11\uff12", "\uff11%", "٣")
"""Numbers to Python, but not as people write them."""
TWENTIETHS = (0.05, "0.05", "5%", "5 %", "1/20", " 1 / 20 ", Fraction(1, 20), Decimal("0.05"))


@pytest.mark.parametrize("value", [*TWENTIETHS, np.float64(0.05), np.float32(0.05)])
def test_one_number_in_many_spellings(value: object) -> None:
    """All of them are exactly a twentieth."""
    assert exact_number(value) == Fraction(1, 20)
    assert open_share(value, "epsilon") == 0.05


@pytest.mark.parametrize(
    "value", ["", "%", "x", "nan", "inf", "1e999", "1//2", True, None, [1], *ONLY_PYTHON]
)
def test_what_is_no_number(value: object) -> None:
    """Nothing that is not one becomes one, and none fills the memory."""
    with pytest.raises(ValueError, match="is not a number"):
        exact_number(value)


@pytest.mark.parametrize("value", ["much", 0, 1, -0.5, "100%", "1/0", True, "nan"])
def test_what_is_no_accuracy(value: object) -> None:
    """The message names the argument, what was found and what is expected."""
    with pytest.raises(QueryError, match="delta must lie strictly between 0 and 1, not "):
        open_share(value, "delta")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60s", 60), ("5m", 300), ("1h", 3600), ("90", 90), ("1.5h", 5400), ("250ms", 0.25), (60, 60)],
)
def test_durations(text: object, expected: float) -> None:
    """A number and a unit; seconds without one."""
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("500MB", 5 * 10**8),
        ("1GiB", 2**30),
        ("1.5 gib", 3 * 2**29),
        ("2G", 2 * 10**9),
        ("4096", 4096),
        (4096, 4096),
    ],
)
def test_sizes(text: object, size: int) -> None:
    """GB is a power of ten, GiB a power of two."""
    assert n_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "0", "5x", "1e3s", "nan", "inf", "5 5", "٣s", -1, True, float("inf")]
)
def test_what_is_no_duration_and_no_size(text: object) -> None:
    """Refused with an example of what is meant."""
    with pytest.raises(QueryError, match="is not a duration such as 60s"):
        seconds(text)
    with pytest.raises(QueryError, match="is not a size such as 4GB"):
        n_bytes(text)


def test_whole_numbers() -> None:
    """Those of numpy are as good as Python's; fractions, text and negative ones are refused."""
    assert whole_number(np.int64(3), "seed") == 3
    for value in (-1, 1.0, "2", True, None):
        with pytest.raises(QueryError, match="the seed must be a whole number, 0 or more, not "):
            whole_number(value, "seed")


@pytest.mark.parametrize("text", ONLY_PYTHON[1:2] + ONLY_PYTHON[3:])
def test_floats_of_python_alone(text: str) -> None:
    """A typo is no number, and neither is a digit of another script."""
    with pytest.raises(ValueError, match="is not a number"):
        plain_float(text)
