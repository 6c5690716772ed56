"""The tree operators of ONNX: TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble.

A node sends a row to its *true* child iff ``x <= value`` (or ``<``, ``>=``, ``>``, by its mode). A
missing value fails every test, unless the node says that it goes with *true*. Inputs and values are
float32, or float64 if the input is a tensor of doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Tree
from xcount.model.loaders import splits
from xcount.model.loaders.splits import Dtype

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
"""The modes that are read, in the order of their numbers in TreeEnsemble."""
_OTHER_MODES = ("BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_LEAF = -1
_MOST_OUTPUTS = 10_000
_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """The trees of an operator.

    Attributes:
        trees: the trees, all of them on one sum per class or target.
        n_outputs: the number of these sums.
        used: the sums that some leaf adds to.
        all_positive: whether no leaf is negative.
        base: what each sum starts from; empty if the operator gives nothing.
        n_trees: what sums are divided by if they are averages; 1 otherwise.
        transform: what makes predictions of sums, e.g. ``LOGISTIC``.
        labels: the names of the classes; None for a regressor.
    """

    trees: tuple[Tree, ...]
    n_outputs: int
    used: frozenset[int]
    all_positive: bool
    base: tuple[float, ...]
    n_trees: int
    transform: str
    labels: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class _Nodes:
    """All nodes of all trees, leaves among them, as columns; children are numbers of nodes."""

    where: str

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    mode: NDArray[np.int64]
    value: NDArray[np.float64]
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    missing_true: NDArray[np.bool_]
    leaves: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("feature", "value", "true", "false", "missing_true"):
            if len(getattr(self, name)) != len(self.mode):
                raise ModelFormatError(f"{self.where}: not one {name} for each node")


def read(attributes: dict[str, Any], n_features: int, dtype: Dtype, where: str) -> TreeNodes:
    """Return the trees of an operator, of its attributes by name."""
    is_new = "tree_roots" in attributes
    labels = _labels(attributes)
    nodes = _of_tree_ensemble(attributes, where) if is_new else _of_lists(attributes, labels, where)
    aggregate = attributes.get("aggregate_function", 1 if is_new else "SUM")
    transform = attributes.get("post_transform", 0 if is_new else "NONE")
    if is_new:
        aggregate, transform = _AGGREGATES[int(aggregate)], _TRANSFORMS[int(transform)]
    if aggregate not in ("SUM", "AVERAGE"):
        raise UnsupportedModelError(f"{where}: it predicts the {aggregate} of its trees, no sum")
    base = attributes.get("base_values_as_tensor", attributes.get("base_values", ()))
    trees = _trees(nodes, n_features, dtype, where)
    added = nodes.leaves[nodes.mode == _LEAF]
    return TreeNodes(
        trees=tuple(trees),
        n_outputs=nodes.leaves.shape[1],
        used=_used(attributes),
        all_positive=bool((added >= 0.0).all()),
        base=tuple(float(number) for number in np.ravel(base)),
        n_trees=len(nodes.roots) if aggregate == "AVERAGE" else 1,
        transform=str(transform),
        labels=labels,
    )


def _labels(attributes: dict[str, Any]) -> tuple[str, ...] | None:
    if not any(name.startswith("class") for name in attributes):
        return None
    found = attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ()
    return tuple(str(label) for label in found)


def _used(attributes: dict[str, Any]) -> frozenset[int]:
    for name in ("class_ids", "target_ids", "leaf_targetids"):
        if name in attributes:
            return frozenset(int(k) for k in attributes[name])
    return frozenset()


def _array(attributes: dict[str, Any], name: str, where: str) -> NDArray[Any]:
    for key in (f"{name}_as_tensor", name):
        if key in attributes:
            return np.asarray(attributes[key])
    raise ModelFormatError(f"{where}: the attribute {name} is missing")


def _mode_number(mode: str, where: str) -> int:
    if mode == "LEAF":
        return _LEAF
    if mode in _MODES:
        return _MODES.index(mode)
    raise UnsupportedModelError(
        f"{where}: tests of the mode {mode} (categories) are not read; ask about the model that "
        "was converted"
    )


def _of_lists(attributes: dict[str, Any], labels: tuple[str, ...] | None, where: str) -> _Nodes:
    """Read TreeEnsembleClassifier and TreeEnsembleRegressor: lists of nodes by tree and number."""
    tree_ids = _array(attributes, "nodes_treeids", where).astype(np.int64)
    node_ids = _array(attributes, "nodes_nodeids", where).astype(np.int64)
    if (abs(tree_ids) > _LARGEST_ID).any() or (abs(node_ids) > _LARGEST_ID).any():
        raise ModelFormatError(f"{where}: the number of a tree or node is too large")
    span = int(node_ids.max(initial=0)) + 1
    keys = tree_ids * span + node_ids
    order = np.argsort(keys, kind="stable")
    if len(np.unique(keys)) != len(keys) or (node_ids < 0).any():
        raise ModelFormatError(f"{where}: a node occurs twice")

    def place(trees: NDArray[np.int64], numbers: NDArray[np.int64], what: str) -> NDArray[np.int64]:
        wanted = trees * span + numbers
        at = np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)
        found = order[at]
        is_known = (numbers >= 0) & (numbers < span) & (abs(trees) <= _LARGEST_ID)
        if (keys[found] != wanted).any() or not is_known.all():
            raise ModelFormatError(f"{where}: {what} names a node that does not exist")
        placed: NDArray[np.int64] = found
        return placed

    modes = {mode: _mode_number(mode, where) for mode in set(attributes["nodes_modes"])}
    mode = np.array([modes[name] for name in attributes["nodes_modes"]], dtype=np.int64)
    inner = mode != _LEAF
    true, false = (np.full(len(keys), -1, dtype=np.int64) for _ in range(2))
    for children, name in ((true, "nodes_truenodeids"), (false, "nodes_falsenodeids")):
        ids = _array(attributes, name, where).astype(np.int64)
        children[inner] = place(tree_ids[inner], ids[inner], name)
    kind = "target" if labels is None else "class"
    of_leaf = place(
        _array(attributes, f"{kind}_treeids", where).astype(np.int64),
        _array(attributes, f"{kind}_nodeids", where).astype(np.int64),
        f"{kind}_nodeids",
    )
    outputs = _array(attributes, f"{kind}_ids", where).astype(np.int64)
    if labels is not None and len(labels) == 2 and {*outputs.tolist()} == {0, 1}:
        _check_both_summed(tree_ids, mode == _LEAF, of_leaf[outputs == 1], where)
    n_outputs = len(labels) if labels is not None else int(attributes.get("n_targets", 1))
    tracks = attributes.get("nodes_missing_value_tracks_true") or np.zeros(len(keys))
    return _Nodes(
        where=where,
        roots=np.unique(tree_ids, return_index=True)[1],
        feature=_array(attributes, "nodes_featureids", where).astype(np.int64),
        mode=mode,
        value=_array(attributes, "nodes_values", where).astype(np.float64),
        true=true,
        false=false,
        missing_true=np.asarray(tracks) != 0,
        leaves=_leaves(
            len(keys),
            n_outputs,
            of_leaf,
            outputs,
            _array(attributes, f"{kind}_weights", where),
            where,
        ),
    )


def _check_both_summed(
    tree_ids: NDArray[np.int64], is_leaf: NDArray[np.bool_], adds: NDArray[np.int64], where: str
) -> None:
    """Refuse two classes if a row may reach no leaf that adds to class 1.

    ONNX Runtime then decides by the sum of class 0, as if it were that of class 1.
    """
    without = is_leaf.copy()
    without[adds] = False
    if len(np.unique(tree_ids[without])) == len(np.unique(tree_ids)):
        raise UnsupportedModelError(
            f"{where}: two classes, and in every tree some leaf adds nothing to the second one; "
            "ONNX Runtime then decides by the first one's sum. Ask about the model that was "
            "converted"
        )


def _leaves(
    n_nodes: int,
    n_outputs: int,
    nodes: NDArray[np.int64],
    outputs: NDArray[np.int64],
    weights: NDArray[Any],
    where: str,
) -> NDArray[np.float64]:
    """Return what each node adds to each sum."""
    if not 0 < n_outputs <= _MOST_OUTPUTS:
        raise ModelFormatError(f"{where}: {n_outputs} sums")
    if ((outputs < 0) | (outputs >= n_outputs)).any():
        raise ModelFormatError(f"{where}: a leaf adds to a sum beyond the {n_outputs} there are")
    if not len(nodes) == len(outputs) == len(weights):
        raise ModelFormatError(f"{where}: not one weight for each leaf")
    leaves = np.zeros((n_nodes, n_outputs))
    np.add.at(leaves, (nodes, outputs), weights.astype(np.float64))
    return leaves


def _of_tree_ensemble(attributes: dict[str, Any], where: str) -> _Nodes:
    """Read TreeEnsemble, which numbers nodes and leaves apart."""
    modes = _array(attributes, "nodes_modes", where).astype(np.int64)
    n_inner = len(modes)
    if (modes >= len(_MODES)).any():
        raise UnsupportedModelError(
            f"{where}: tests of the mode {_OTHER_MODES[int(modes.max()) - len(_MODES)]} "
            "(categories) are not read; ask about the model that was converted"
        )
    weights = _array(attributes, "leaf_weights", where)
    targets = _array(attributes, "leaf_targetids", where).astype(np.int64)
    n_nodes = n_inner + len(weights)
    children = []
    for side in ("true", "false"):
        ids = _array(attributes, f"nodes_{side}nodeids", where).astype(np.int64)
        is_leaf = _array(attributes, f"nodes_{side}leafs", where) != 0
        placed = np.where(is_leaf, ids + n_inner, ids)
        if ((ids < 0) | (placed >= n_nodes) | (~is_leaf & (ids >= n_inner))).any():
            raise ModelFormatError(f"{where}: a child does not exist")
        children.append(np.concatenate([placed, np.full(len(weights), -1)]))
    tracks = attributes.get("nodes_missing_value_tracks_true") or np.zeros(n_inner)
    filler = np.zeros(len(weights))
    return _Nodes(
        where=where,
        roots=_array(attributes, "tree_roots", where).astype(np.int64),
        feature=np.concatenate([_array(attributes, "nodes_featureids", where), filler]).astype(
            np.int64
        ),
        mode=np.concatenate([modes, np.full(len(weights), _LEAF)]),
        value=np.concatenate([_array(attributes, "nodes_splits", where), filler]).astype(
            np.float64
        ),
        true=children[0],
        false=children[1],
        missing_true=np.concatenate([np.asarray(tracks), filler]) != 0,
        leaves=_leaves(
            n_nodes,
            int(attributes.get("n_targets", 1)),
            np.arange(n_inner, n_nodes),
            targets,
            weights,
            where,
        ),
    )


def _trees(nodes: _Nodes, n_features: int, dtype: Dtype, where: str) -> list[Tree]:
    left_is_true = np.isin(nodes.mode, (0, 1, _LEAF))
    or_equal = np.isin(nodes.mode, (0, 3))
    strict = np.where(
        or_equal,
        splits.as_strict_thresholds(nodes.value, "<=", dtype),
        splits.as_strict_thresholds(nodes.value, "<", dtype),
    )
    # x < inf holds for every number: written as x < -inf, which holds for none.
    only_missing = (strict == np.inf) & (nodes.mode != _LEAF)
    left_is_true = left_is_true ^ only_missing
    left = np.where(left_is_true, nodes.true, nodes.false)
    right = np.where(left_is_true, nodes.false, nodes.true)
    threshold = np.where(only_missing, -np.inf, strict)
    missing_left = nodes.missing_true == left_is_true
    trees: list[Tree] = []
    for i, root in enumerate(nodes.roots.tolist()):
        own = _below(root, left, right, f"{where}: tree {i}")
        new = {node: place for place, node in enumerate(own.tolist())}
        children = [
            np.array([new.get(child, -1) for child in side[own].tolist()]) for side in (left, right)
        ]
        trees += splits.trees_from_arrays(
            f"{where}: tree {i}",
            values=nodes.leaves[own],
            n_features=n_features,
            feature=nodes.feature[own],
            threshold=threshold[own],
            left=children[0],
            right=children[1],
            missing_left=missing_left[own],
            operator="<",
            dtype=dtype,
        )
    return trees


def _below(
    root: int, left: NDArray[np.int64], right: NDArray[np.int64], where: str
) -> NDArray[np.int64]:
    """Return the nodes of one tree, each once, the root first."""
    if not 0 <= root < len(left):
        raise ModelFormatError(f"{where}: its root does not exist")
    found, seen = [root], {root}
    for node in found:
        for child in (int(left[node]), int(right[node])):
            if child >= 0 and child not in seen:
                seen.add(child)
                found.append(child)
    return np.array(found, dtype=np.int64)
