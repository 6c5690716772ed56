"""The normal form of splits, and the checks of node arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Tree
from xcount.model.loaders import splits

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def holds(x: float, operator: str, threshold: float) -> bool:
    """Return what the library's test says."""
    return x < threshold if operator == "<" else x <= threshold


@given(
    threshold=FINITE,
    operator=st.sampled_from(["<", "<="]),
    dtype=st.sampled_from(["float32", "float64"]),
    steps=st.integers(-2, 2),
)
def test_the_strict_threshold_decides_like_the_split(
    threshold: float, operator: Any, dtype: Any, steps: int
) -> None:
    """Every x of the input's type near the threshold goes where the library sends it."""
    strict = splits.as_strict_threshold(threshold, operator, dtype)
    with np.errstate(over="ignore"):
        x = np.dtype(dtype).type(threshold)
        for _ in range(abs(steps)):
            x = np.nextafter(x, np.dtype(dtype).type(np.sign(steps) * np.inf))
    if np.isfinite(x):
        assert (float(x) < strict) == holds(float(x), operator, threshold)


@given(thresholds=st.lists(FINITE, min_size=1), operator=st.sampled_from(["<", "<="]))
def test_the_vector_form_agrees_with_the_scalar_one(thresholds: list[float], operator: Any) -> None:
    """as_strict_thresholds is as_strict_threshold of each element."""
    one_by_one = [splits.as_strict_threshold(t, operator, "float32") for t in thresholds]
    assert splits.as_strict_thresholds(thresholds, operator, "float32").tolist() == one_by_one


def test_a_float64_threshold_between_two_float32_numbers_keeps_both_on_their_sides() -> None:
    """0.1 as float64 lies below float32(0.1): the larger neighbour must go right."""
    below = np.nextafter(np.float32(0.1), np.float32(0))
    operators: tuple[Any, ...] = ("<", "<=")
    for operator in operators:
        strict = splits.as_strict_threshold(0.1, operator, "float32")
        assert float(below) < strict
        assert not float(np.float32(0.1)) < strict


def build(**changes: Any) -> Tree:
    """Build a small valid tree, with changes."""
    arrays: dict[str, Any] = {
        "n_features": 2,
        "feature": [0, 1, -1, -1, -1],
        "threshold": [0.5, 1.5, 0, 0, 0],
        "left": [1, 3, -1, -1, -1],
        "right": [2, 4, -1, -1, -1],
        "value": [0, 0, 1.0, 2.0, 3.0],
        "missing_left": [True, False, False, False, False],
        "operator": "<",
        "dtype": "float64",
    }
    return splits.tree_from_arrays("m: tree 0", **(arrays | changes))


def test_a_valid_order_is_kept() -> None:
    """Leaf indices stay the library's own where they can."""
    tree = build()
    assert tree.left.tolist() == [1, 3, -1, -1, -1]
    assert tree.value.tolist() == [0, 0, 1, 2, 3]


def test_children_before_their_parent_are_moved_behind_it() -> None:
    """A tree in any order predicts the same after reindexing."""
    tree = build(
        feature=[1, -1, -1, 0, -1],
        threshold=[1.5, 0, 0, 0.5, 0],
        left=[3, -1, -1, 1, -1],
        right=[4, -1, -1, 2, -1],
        value=[0, 10.0, 20.0, 0, 30.0],
    )
    inner = tree.feature >= 0
    nodes = np.arange(tree.n_nodes)
    assert (tree.left[inner] > nodes[inner]).all()
    assert (tree.right[inner] > nodes[inner]).all()
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    assert tree.value[tree.leaves_of(rows)].tolist() == [10, 20, 30]


def test_nodes_without_a_parent_are_dropped() -> None:
    """Whatever stands in nodes that the root does not reach does no harm."""
    tree = build(
        feature=[0, -1, -1, 99, -1],
        left=[1, -1, -1, 4, -1],
        right=[2, -1, -1, 3, -1],
        value=[0, 1.0, 2.0, 0, np.nan],
    )
    assert tree.n_nodes == 3


def test_a_test_against_infinity_tells_only_missing_values() -> None:
    """``x <= inf`` sends every number left and NaN the default way; so does the normal form."""
    tree = build(operator="<=", threshold=[np.inf, 1.5, 0, 0, 0], missing_left=[False] * 5)
    assert tree.threshold[0] == -np.inf
    rows = np.array([[np.inf, 0.0], [-np.inf, 0.0], [0.0, 2.0], [np.nan, 0.0]])
    assert tree.value[tree.leaves_of(rows)].tolist() == [2, 2, 3, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [1, 0, -1, -1, -1]}, "node 1: child 0 was reached before"),
        ({"left": [0, 3, -1, -1, -1]}, "node 0: child 0 was reached before"),
        ({"right": [1, 4, -1, -1, -1]}, "node 0: child 1 was reached before"),
        ({"right": [2, 9, -1, -1, -1]}, "node 1: right child 9 does not exist"),
        ({"right": [2, -1, -1, -1, -1]}, "node 1: one child is missing"),
        ({"right": [2, 4]}, "5 nodes but 2 entries"),
        ({"value": [0, 0, 1.0]}, "5 nodes but 3 entries in the value array"),
        ({"feature": [0, 2, -1, -1, -1]}, "node 1: no such feature: index 2"),
        ({"feature": [-3, 1, -1, -1, -1]}, "node 0: no such feature: index -3"),
        ({"threshold": [0.5, np.nan, 0, 0, 0]}, "node 1: the threshold is nan"),
        ({"threshold": [np.inf, 1.5, 0, 0, 0]}, "node 0: the threshold is inf"),
        ({"value": [0, 0, 1, np.inf, 3]}, "node 3: the leaf value is inf"),
        ({"value": [0, 0, 1, np.nan, 3]}, "node 3: the leaf value is nan"),
        ({"left_categories": {2: [1]}}, "categories are given for node 2"),
        ({"left": [], "right": []}, "the tree has no nodes"),
    ],
)
def test_arrays_that_are_no_tree_are_refused(changes: dict[str, Any], message: str) -> None:
    """The message names the tree and the node."""
    with pytest.raises(ModelFormatError, match=message) as caught:
        build(**changes)
    assert str(caught.value).startswith("m: tree 0")


def test_names_that_occur_twice_are_refused() -> None:
    """A query by name would be ambiguous."""
    with pytest.raises(ModelFormatError, match="two features are called 'b'"):
        splits.make_features("m", ["a", "b", "c", "b"])


def test_a_feature_is_either_numeric_or_categorical() -> None:
    """A feature with both kinds of splits has no cells of either kind."""
    tree = build(feature=[0, 0, -1, -1, -1], left_categories={1: [1, 2]})
    with pytest.raises(UnsupportedModelError, match="'a' has both"):
        splits.category_sets("m", [tree], ["a", "b"])


@pytest.mark.parametrize(
    ("sets", "codes"),
    [
        ([], [0]),
        ([{0}], [0, 1]),
        ([{1}], [0, 1]),
        ([{0}, {1}], [0, 1]),
        ([{0, 1}], [0, 1, 2]),
        ([{2}, {0, 1}], [0, 1, 2]),
        ([{0, 3}, {1_000_000}], [0, 1, 3, 1_000_000]),
    ],
)
def test_unknown_categories_are_the_fewest_that_every_split_tells_apart(
    sets: list[set[int]], codes: list[int]
) -> None:
    """A split that no known category would fail shows that there is one more."""
    assert list(splits.codes_of([frozenset(s) for s in sets], "m")) == codes


def test_absurd_sizes_are_refused_before_memory_is_taken() -> None:
    """A few bytes cannot ask for billions of columns or categories."""
    with pytest.raises(UnsupportedModelError, match="features; at most"):
        splits.check_feature_count("m", 10**9)
    with pytest.raises(ModelFormatError, match="category code"):
        splits.codes_of([frozenset({10**9})], "m")
