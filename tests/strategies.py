"""Random small ensembles: the worlds in which every counter meets enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xcount.model.ensemble import Ensemble, Feature, Tree


def random_tree(
    rng: np.random.Generator,
    features: tuple[Feature, ...],
    depth: int,
    leaf_values: np.ndarray,
    thresholds: np.ndarray,
    output: int = 0,
) -> Tree:
    """Grow a random tree; each split is numeric or categorical as its feature is."""
    rows: list[tuple[int, float, int, int, bool, float]] = []
    left_categories: dict[int, frozenset[int]] = {}

    def grow(level: int) -> int:
        index = len(rows)
        rows.append((-1, np.nan, -1, -1, False, float(rng.choice(leaf_values))))
        if level == 0 or rng.random() < 0.15:
            return index
        feature = int(rng.integers(len(features)))
        categories = features[feature].categories
        threshold = np.nan
        if categories is None:
            threshold = float(rng.choice(thresholds))
        else:
            chosen = frozenset(int(c) for c in categories if rng.random() < 0.5)
            left_categories[index] = chosen
        left, right = grow(level - 1), grow(level - 1)
        rows[index] = (feature, threshold, left, right, bool(rng.random() < 0.5), 0.0)
        return index

    grow(depth)
    columns = list(zip(*rows, strict=True))
    return Tree(
        feature=np.array(columns[0], dtype=np.int32),
        threshold=np.array(columns[1], dtype=np.float64),
        left=np.array(columns[2], dtype=np.int32),
        right=np.array(columns[3], dtype=np.int32),
        missing_left=np.array(columns[4], dtype=np.bool_),
        zero_side=np.zeros(len(rows), dtype=np.int8),
        value=np.array(columns[5], dtype=np.float64),
        left_categories=left_categories,
        output=output,
    )


SCALES: dict[str, np.ndarray] = {
    "ties": np.array([-1.0, -0.5, -0.0, 0.0, 0.5, 1.0]),
    "decimals": np.array([-0.3, -0.2, -0.1, 0.1, 0.2, 0.3]),
    "huge-and-tiny": np.array([-1e30, -1.0, 1e-30, 2e-30, 1.0, 1e30]),
    "subnormal": np.array([-1e300, 5e-324, 1.0, 1e300, -5e-324]),
}


def random_ensemble(
    seed: int,
    *,
    max_features: int = 4,
    max_trees: int = 5,
    max_depth: int = 3,
    categorical: bool = True,
    scale: str | None = None,
) -> Ensemble:
    """Return the random ensemble of that seed: small enough to enumerate in a blink."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, max_features + 1))
    features = []
    for i in range(n_features):
        is_categorical = categorical and rng.random() < 0.25
        categories = tuple(range(int(rng.integers(2, 5)))) if is_categorical else None
        features.append(Feature(f"f{i}", categories, can_be_missing=bool(rng.random() < 0.5)))
    if scale is None and rng.random() < 0.5:
        leaf_values = rng.normal(size=12).astype(np.float32).astype(np.float64)
    else:
        leaf_values = SCALES[scale or str(rng.choice(list(SCALES)))]
    thresholds = np.sort(rng.choice(np.arange(-3, 4), size=4, replace=False)).astype(np.float64)
    depth = int(rng.integers(1, max_depth + 1))
    trees = tuple(
        random_tree(rng, tuple(features), depth, leaf_values, thresholds)
        for _ in range(int(rng.integers(1, max_trees + 1)))
    )
    return Ensemble(tuple(features), trees)


def random_classifier(seed: int, max_features: int = 3) -> Ensemble:
    """Return a random ensemble of one to three sums with bases, sometimes averaging."""
    rng = np.random.default_rng([seed, 9])
    ensemble = random_ensemble(seed, max_features=max_features, max_trees=5)
    n_outputs = int(rng.integers(1, 4))
    trees = tuple(replace(t, output=int(rng.integers(n_outputs))) for t in ensemble.trees)
    base = tuple(float(rng.choice([0.0, 0.5, -0.3, 0.1, 1e-20])) for _ in range(n_outputs))
    return replace(
        ensemble,
        trees=trees,
        base=base,
        divisor=int(rng.choice([1, 1, 3])),
        task="binary" if n_outputs == 1 else "multiclass",
    )


def with_moderate_leaves(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble with leaves between -30 and 30, none of them tiny.

    The exponential of -1e30 is beyond the oracle.
    """
    leaves = (np.clip(tree.value, -30, 30).round(20).astype(float) for tree in ensemble.trees)
    pairs = zip(ensemble.trees, leaves, strict=True)
    return replace(ensemble, trees=tuple(replace(tree, value=value) for tree, value in pairs))


def wide_ensemble() -> Ensemble:
    """Return an ensemble whose count takes many steps or samples: 40 trees on 6 features."""
    rng = np.random.default_rng(5)
    features = tuple(Feature(f"f{i}") for i in range(6))
    leaves = rng.normal(size=64) * 0.2
    trees = tuple(random_tree(rng, features, 4, leaves, np.arange(8.0)) for _ in range(40))
    return Ensemble(features, trees)
