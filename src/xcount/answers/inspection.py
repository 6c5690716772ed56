"""Descriptions of models: trees, guards, cells, and the gaps that make sense to ask about."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from xcount.answers.count import model_info
from xcount.answers.options import missing_in
from xcount.answers.result import AboutModel, AskedDomain, ModelTask
from xcount.answers.template import proposed_groups
from xcount.counters.settings import Settings
from xcount.errors import UnsupportedModelError
from xcount.measures.population import Population, Portrait
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.loaders import load
from xcount.question.domain import Domain, DomainLike, OneHot, Words
from xcount.question.grid import Axis, Grid, Missing
from xcount.support.display import DisplayMixin
from xcount.support.numerals import to_json
from xcount.support.records import Json, record, to_dict

_LADDER_STEPS = (-2, -1, 0, 1)
_AT_LEAST_0 = {"minimum": 0}


@record("feature", "One feature as the trees see it.")
@dataclass(frozen=True, slots=True)
class FeatureInfo:
    """One feature as the trees see it.

    For a gap of ``max_change`` or more, the count is 0.
    """

    index: Annotated[int, Json("Its index, which can be used as a name.", _AT_LEAST_0)]
    name: Annotated[str, Json("Its name.")]
    kind: Annotated[
        str, Json("Whether its cells have an order.", {"enum": ["numeric", "categorical"]})
    ]
    n_guards: Annotated[int, Json("Its guards.", _AT_LEAST_0)]
    n_cells: Annotated[int, Json("Its cells.", {"minimum": 1})]
    n_trees: Annotated[int, Json("Trees that test it.", _AT_LEAST_0)]
    max_change: Annotated[
        float,
        Json("No change of this feature alone moves the margin by more than this.", _AT_LEAST_0),
    ]


@record("leaves", "How large the leaves are.")
@dataclass(frozen=True, slots=True)
class LeafScale:
    """How large the leaves are; those of an averaging forest are divided by its number of trees."""

    low: Annotated[float, Json("The smallest leaf.")]
    high: Annotated[float, Json("The largest leaf.")]
    median_size: Annotated[float, Json("Median of their absolute values.", _AT_LEAST_0)]
    max_change: Annotated[
        float, Json("No two inputs differ by more than this in any one margin.", _AT_LEAST_0)
    ]


@record("inspect", "`xcount inspect --json`.")
@dataclass(frozen=True, slots=True, repr=False)
class Inspection(DisplayMixin):
    """A model in numbers.

    ``gaps`` are round gaps around the scale of the leaves (see :func:`leaf_scale`), below the
    largest ``max_change`` of any feature, so that none of them is trivially 0.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> xcount.inspect(figure_1())
        Inspection(a live model, ensemble: unknown, 2 trees, 2 features, 9 regions)
    """

    model: AboutModel
    task: ModelTask
    margin: Annotated[
        str,
        Json(
            "How a margin becomes a probability: nothing (it is one), a sigmoid, a softmax.",
            {"enum": ["margin", "sigmoid", "softmax", "none", "unknown"]},
        ),
    ]
    n_outputs: Annotated[
        int, Json("Number of margins of the model: one, or one per class.", {"minimum": 1})
    ]
    n_leaves: Annotated[int, Json("Leaves of all trees.", _AT_LEAST_0)]
    n_regions: Annotated[
        int, Json("The number of regions of the domain, of any size.", {"minimum": 1})
    ]
    features: Annotated[tuple[FeatureInfo, ...], Json("All features.")]
    leaves: Annotated[LeafScale, Json("How large the leaves are.")]
    gaps: Annotated[tuple[float, ...], Json("Round gaps that make sense to ask about.")]
    domain: AskedDomain = None
    one_hot: Annotated[
        Mapping[str, tuple[str, ...]],
        Json("Groups of columns whose names suggest one-hot encoding.", is_optional=True),
    ] = field(default_factory=dict)
    population: Annotated[
        Portrait | None,
        Json("The population that was given or fitted to the data.", is_optional=True),
    ] = None
    population_share: Annotated[
        float | None,
        Json(
            "How much of the population is in the domain; only if both were given.",
            {"minimum": 0, "maximum": 1},
            is_optional=True,
        ),
    ] = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``xcount inspect --json`` prints."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as JSON text."""
        return to_json(self.to_dict(), indent)


def inspect(
    model: Any,
    *,
    missing: Missing = "auto",
    domain: DomainLike = None,
    one_hot: OneHot = (),
    where: Words = (),
    rule: Words = (),
    data: Any = None,
    population: Population | str | os.PathLike[str] | None = None,
    trust_pickle: bool = False,
) -> Inspection:
    """Describe a model, and a population for it if one is given.

    Args:
        model: a model file, a live model, or an ensemble.
        missing: where missing values have a cell of their own, as in :func:`xcount.count`.
        domain: which regions exist, as in :func:`xcount.count`.
        one_hot: columns of which exactly one is 1.
        where: conditions that every region satisfies.
        rule: rules ``COND -> COND`` that every region satisfies.
        data: rows to fit a population to, if the population's file does not exist yet.
        population: a fitted population, or its file, to describe; it must suit the model.
        trust_pickle: whether a pickle may be opened.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> inspection = xcount.inspect(figure_1())
        >>> inspection.n_regions, [feature.max_change for feature in inspection.features]
        (9, [150.0, 140.0])
    """
    regions = Domain.of(domain, one_hot=one_hot, where=where, rule=rule)
    ensemble = regions.pulled_back(load(model, trust_pickle=trust_pickle))
    weighing = None
    if population is not None or data is not None:
        weighing = Weighing.of(ensemble, "population", data, population=population)
    grid = Grid.of(ensemble, missing=missing, missing_in=missing_in(weighing), domain=regions)
    changes = max_changes(ensemble)
    n_trees = Counter(feature for tree in ensemble.trees for feature in set(tree.feature.tolist()))
    scale = max((leaf_scale(ensemble, k) for k in range(ensemble.n_outputs)), default=0.0)
    features = tuple(
        _feature_info(_column(ensemble, index), axis, n_trees[index], changes.get(index, 0.0))
        for index, axis in enumerate(grid.axes)
    )
    people = None if weighing is None else _people(weighing, grid)
    return Inspection(
        model=model_info(ensemble, grid),
        task=ensemble.task,
        margin=ensemble.probability,
        n_outputs=ensemble.n_outputs,
        n_leaves=sum(int((tree.feature < 0).sum()) for tree in ensemble.trees),
        n_regions=grid.n_regions,
        domain=regions or None,
        one_hot=proposed_groups(grid),
        features=features,
        leaves=_leaf_scale(ensemble),
        gaps=tuple(float(gap) for gap in gap_ladder(scale, max(changes.values(), default=0.0))),
        population=None if people is None else people.portrait,
        population_share=None if people is None or not regions else people.share_of(grid),
    )


def _people(weighing: Weighing, grid: Grid) -> Population:
    """Return a population that suits the model: the given one, or one fitted to the data."""
    from xcount.measures.shares import with_population

    found = with_population(weighing, grid, Settings()).population
    assert found is not None
    found.on(grid)  # rejects a population fitted to a model with other cells
    return found


def _column(ensemble: Ensemble, feature: int) -> int:
    """Return the model's column for a feature; for a one-hot group, its first column."""
    encoding = ensemble.encoding
    if encoding is None:
        return feature
    columns = range(encoding.source.n_features)
    return next(column for column in columns if encoding.feature_of(column) == feature)


def _feature_info(index: int, axis: Axis, n_trees: int, max_change: float) -> FeatureInfo:
    kind = "categorical" if axis.feature.is_categorical else "numeric"
    name = axis.feature.name
    return FeatureInfo(index, name, kind, axis.n_guards, axis.n_cells, n_trees, max_change)


def _leaf_scale(ensemble: Ensemble) -> LeafScale:
    leaves = [tree.value[tree.feature < 0] / ensemble.divisor for tree in ensemble.trees]
    if not leaves:
        return LeafScale(0.0, 0.0, 0.0, 0.0)
    ranges = np.zeros(ensemble.n_outputs)
    with np.errstate(over="ignore"):
        for tree, values in zip(ensemble.trees, leaves, strict=True):
            ranges[tree.output] += values.max() - values.min()
    flat = np.concatenate(leaves)
    return LeafScale(
        low=float(flat.min()),
        high=float(flat.max()),
        median_size=float(np.median(np.abs(flat))),
        max_change=_finite(float(ranges.max())),
    )


def max_changes(ensemble: Ensemble) -> dict[int, float]:
    """Return for each feature a bound on the change it alone can cause, over all outputs."""
    worst: dict[int, float] = {}
    for output in range(ensemble.n_outputs):
        total: Counter[int] = Counter()
        for tree in ensemble.trees:
            if tree.output == output:
                total.update(_tree_changes(tree))
        for feature, change in total.items():
            worst[feature] = max(worst.get(feature, 0.0), _finite(change / ensemble.divisor))
    return worst


def _finite(change: float) -> float:
    """Return a change of the margin as a float; reject one beyond the range of floats."""
    if math.isinf(change):
        raise UnsupportedModelError(
            "the leaves are so large that margins differ by more than the largest float, 1.8e308; "
            "xcount count counts such a model, gaps for it must be given"
        )
    return change


def _tree_changes(tree: Tree) -> dict[int, float]:
    """Return for each feature of a tree the widest range of leaf values below one of its tests."""
    low, high = tree.value.copy(), tree.value.copy()
    changes: dict[int, float] = {}
    for node in range(tree.n_nodes - 1, -1, -1):  # children have larger indices
        if tree.feature[node] < 0:
            continue
        children = [tree.left[node], tree.right[node]]
        low[node], high[node] = low[children].min(), high[children].max()
        feature = int(tree.feature[node])
        changes[feature] = max(changes.get(feature, 0.0), float(high[node]) - float(low[node]))
    return changes


def leaf_scale(ensemble: Ensemble, output: int) -> float:
    """Return how far the margin would scatter if every tree picked one of its leaves at random.

    The square root of the sum over the trees of the variance of their leaf values.
    """
    leaves = [tree.value[tree.feature < 0] for tree in ensemble.trees if tree.output == output]
    # In units of the largest leaf: squares of 1e300 or 1e-300 leave the range of floats.
    unit = max((float(np.abs(values).max()) for values in leaves), default=0.0)
    if not 0 < unit < math.inf:
        return unit
    variances = [float(np.var(values / unit)) for values in leaves]
    return math.sqrt(math.fsum(variances)) * unit / ensemble.divisor


def gap_ladder(scale: float, max_change: float) -> tuple[Fraction, ...]:
    """Return round gaps (1, 2, 5, 10, ...) around the scale of the leaves, below ``max_change``."""
    if not (0 < scale < math.inf and max_change > 0):
        return ()
    nearest = round(3 * math.log10(scale))
    values = (_round_number(nearest + step) for step in _LADDER_STEPS)
    return tuple(value for value in values if float(value) < max_change)


def _round_number(position: int) -> Fraction:
    """Return the round number at that position of ..., 0.5, 1 (position 0), 2, 5, 10, ..."""
    tens, step = divmod(position, 3)
    return (1, 2, 5)[step] * Fraction(10) ** tens
