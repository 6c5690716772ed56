"""Leaves become integers without losing a comparison."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcount.problem.integers import (
    LIMB_BITS,
    Integers,
    from_limbs,
    limbs_for,
    scale_leaves,
    to_limbs,
)
from xcount.problem.laid_trees import LaidTrees
from xcount.question.grid import Grid

finite = st.floats(allow_nan=False, allow_infinity=False)
leaf_lists = st.lists(finite, min_size=1, max_size=8)


@given(leaf_lists, st.integers(1, 1000))
def test_exact_leaves_keep_their_real_values(leaves: list[float], divisor: int) -> None:
    """Integer over scale is the leaf over the divisor, from subnormals to 1e308."""
    scaled = scale_leaves(np.array(leaves), divisor, None)
    assert [Fraction(v) / scaled.scale for v in scaled.values] == [
        Fraction(leaf) / divisor for leaf in leaves
    ]


@given(leaf_lists, st.integers(1, 1000), st.integers(0, 30))
def test_rounded_leaves_are_the_nearest_decimals(
    leaves: list[float], divisor: int, precision: int
) -> None:
    """To nearest, ties to even, decided on the exact value of the float."""
    scaled = scale_leaves(np.array(leaves), divisor, precision)
    assert scaled.scale == 10**precision
    assert list(scaled.values) == [
        round(Fraction(leaf) / divisor * 10**precision) for leaf in leaves
    ]


@pytest.mark.parametrize(
    ("leaf", "precision", "expected"),
    [
        (0.5, 0, 0),
        (1.5, 0, 2),
        (2.5, 0, 2),
        (-0.5, 0, 0),
        (0.125, 2, 12),
        (0.0005, 3, 1),  # the float lies above the tie
        (0.0015, 3, 2),
        (0.0025, 3, 3),
        (1.0005, 3, 1000),  # the float lies below the tie
    ],
)
def test_ties_are_decided_exactly(leaf: float, precision: int, expected: int) -> None:
    """A decimal that no float holds is above or below the tie, and rounds that way."""
    assert list(scale_leaves(np.array([leaf]), 1, precision).values) == [expected]


@given(leaf_lists, st.fractions(min_value=0, max_value=10**6), st.sampled_from([None, 0, 3]))
def test_the_integer_threshold_decides_like_the_gap(
    leaves: list[float], gap: Fraction, precision: int | None
) -> None:
    """``|d| > gap * scale`` iff ``|d| > threshold``, for every difference that occurs."""
    scaled = scale_leaves(np.array(leaves), 1, precision)
    bound = max(map(abs, scaled.values), default=0)
    threshold = LaidTrees((), scaled.values, Grid(()), scaled.scale, bound).threshold(gap)
    for a in scaled.values:
        for b in scaled.values:
            assert (abs(a - b) > threshold) == (Fraction(abs(a - b)) / scaled.scale > gap)


def test_no_leaves_have_a_scale() -> None:
    """An ensemble without trees, and one whose leaves are all zero."""
    assert list(scale_leaves(np.empty(0), 1, None).values) == []
    assert list(scale_leaves(np.array([0.0, -0.0]), 3, None).values) == [0, 0]


@given(st.integers(-(2**2200), 2**2200), st.sampled_from([1, 2, 36]))
def test_limbs_are_twos_complement(value: int, limbs: int) -> None:
    """What the native core reads is the number itself, modulo its width."""
    bits = limbs * LIMB_BITS
    value = ((value + 2 ** (bits - 1)) % 2**bits) - 2 ** (bits - 1)
    assert from_limbs(to_limbs([value], limbs)[0]) == value % 2**bits


@given(st.integers(0, 2**2290))
def test_the_width_holds_four_times_the_bound(bound: int) -> None:
    """A difference of two sums, and one more of those, fit without wrapping."""
    limbs = limbs_for(bound)
    assert 4 * bound < 2 ** (limbs * LIMB_BITS - 1)
    assert limbs == 1 or 4 * bound >= 2 ** ({2: 1, 36: 2}[limbs] * LIMB_BITS - 1)


def test_the_widest_type_holds_any_sum_of_floats() -> None:
    """A million leaves of the largest float, scaled so that the smallest one is an integer."""
    largest = int(Fraction(1.7976931348623157e308) * 2**1074)
    assert limbs_for(10**6 * largest) == 36


numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(-(2**127), 2**127 - 1), st.integers(-(2**300), 2**300)
)


@given(st.lists(numbers, min_size=1, max_size=6), st.integers(0, 5))
def test_integers_in_arrays_are_the_integers(values: list[int], cut: int) -> None:
    """Whether 128 bits hold them or not: elements, parts, extremes, opposites and limbs."""
    found = Integers.of(values)
    assert list(found) == values
    assert [found[i] for i in range(len(found))] == values
    assert list(Integers.joined([found[:cut], found[cut:]])) == values
    assert list(-found[: len(values)]) == [-value for value in values]
    assert list(found.times(2**40)) == [value * 2**40 for value in values]
    assert (found.lowest(), found.highest()) == (min(values), max(values))
    assert found.largest() == max(map(abs, values))
    marked = np.array(values) > 0
    assert list(found.at(marked)) == [value for value in values if value > 0]
    n_limbs = limbs_for(found.largest())
    np.testing.assert_array_equal(found.limbs(n_limbs), to_limbs(values, n_limbs))


@given(
    st.lists(
        st.tuples(st.integers(-(2**53), 2**53), st.one_of(st.integers(0, 140), st.just(2000))),
        min_size=1,
        max_size=6,
    )
)
def test_shifted_mantissas_are_the_products(pairs: list[tuple[int, int]]) -> None:
    """Shifts within a limb, from one into the next, beyond it, and beyond both."""
    mantissas, shifts = np.array(pairs, dtype=np.int64).T
    assert list(Integers.shifted(mantissas, shifts)) == [m << s for m, s in pairs]
