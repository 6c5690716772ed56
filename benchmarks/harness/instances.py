"""The instances of the suites: one model, its sensitive features, a gap and a distance.

The ``paper`` suite asks about 8 randomly chosen used features of each of the 400 models (all of
them where fewer are used), one at a time, with distance 1. The ``frontier`` suite asks about one
to three features of much larger models, with distances up to any.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.models import (
    FRONTIER_DEPTHS,
    FRONTIER_SETS,
    FRONTIER_TREES,
    ModelFile,
    frontier_trainings,
    models_of,
    paper_trainings,
)
from xcount import Grid, load
from xcount.problem.problem import Problem
from xcount.question.query import Query

SEED = 20240
FEATURES_PER_MODEL = 8
PRECISION = 3
FRONTIER_DISTANCES = (1, 3, None)
FRONTIER_SIZES = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Instance:
    """One question of a suite.

    ``distance`` None means any, ``precision`` None the leaves as stored. ``grid_with`` lists models
    whose guards the grid has too, so that counts of different models are about the same regions.
    """

    name: str
    model: Path
    dataset: str
    depth: int
    n_trees: int
    n_guards: int
    sensitive: tuple[int, ...]
    gap: str
    distance: int | None = 1
    precision: int | None = PRECISION
    grid_with: tuple[Path, ...] = ()

    def question(self) -> dict[str, Any]:
        """Return the question as :func:`xcount.count` takes it."""
        return {
            "sensitive": list(self.sensitive),
            "gap": self.gap,
            "distance": "any" if self.distance is None else self.distance,
            "precision": "exact" if self.precision is None else self.precision,
        }

    def problem(self) -> Problem:
        """Return the question about its model, on the model's own grid."""
        ensemble = load(self.model)
        return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, **self.question()))

    def to_dict(self) -> dict[str, Any]:
        """Return what a record of a run says about its instance: all but where the model is."""
        data = asdict(self)
        data["model"] = self.model.name
        data["sensitive"] = list(self.sensitive)
        data["distance"] = "any" if self.distance is None else self.distance
        data["grid_with"] = [path.name for path in self.grid_with]
        if not self.grid_with:
            del data["grid_with"]
        return data


class Sources(NamedTuple):
    """Which data sets are asked about (None for all), and where models and data are."""

    only: Sequence[str] | None = None
    cache: str | Path | None = None
    data: str | Path | None = None

    @classmethod
    def of(cls, options: Namespace, only: Sequence[str] | None = None) -> Sources:
        """Return what a command line names."""
        return cls(only, options.cache, options.data)


def paper_instances(
    sources: Sources, all_features: bool = False, gap: str | None = None
) -> list[Instance]:
    """Return the paper suite, in the order of its models; trains what the cache lacks.

    ``all_features`` asks about every used feature; ``gap`` replaces the data sets' own gaps.
    """
    instances: list[Instance] = []
    for training in paper_trainings(sources.only):
        for model in models_of(training, sources.cache, sources.data):
            features = model.used if all_features else chosen_features(model)
            instances += [_instance(model, (feature,), gap=gap) for feature in features]
    return instances


def chosen_features(model: ModelFile) -> tuple[int, ...]:
    """Return 8 of the used features, drawn with a seed of the model's own."""
    if len(model.used) <= FEATURES_PER_MODEL:
        return model.used
    place = list(BY_KEY).index(model.dataset)
    generator = np.random.default_rng([SEED, place, model.n_trees, model.depth])
    drawn = generator.choice(model.used, FEATURES_PER_MODEL, replace=False)
    return tuple(sorted(int(feature) for feature in drawn))


def frontier_instances(sources: Sources) -> list[Instance]:
    """Return the frontier suite: each model meets each distance, with one to three features.

    The number of features rotates with the model (a Latin square), so that each combination of
    distance and number of features occurs equally often at each number of trees and each depth.
    """
    instances: list[Instance] = []
    for training in frontier_trainings(sources.only):
        for model in models_of(training, sources.cache, sources.data):
            turn = FRONTIER_TREES.index(model.n_trees) + FRONTIER_DEPTHS.index(model.depth)
            order = frontier_order(model)
            for shift, distance in enumerate(FRONTIER_DISTANCES):
                size = FRONTIER_SIZES[(turn + shift) % len(FRONTIER_SIZES)]
                instances.append(_instance(model, tuple(sorted(order[:size])), distance))
    return instances


def frontier_order(model: ModelFile) -> list[int]:
    """Return the used features in a random order that all models of a depth share."""
    generator = np.random.default_rng([SEED, FRONTIER_SETS.index(model.dataset), model.depth])
    keys = generator.random(max(model.used) + 1)
    return sorted(model.used, key=lambda feature: keys[feature])


def _instance(
    model: ModelFile,
    sensitive: tuple[int, ...],
    distance: int | None = 1,
    gap: str | None = None,
) -> Instance:
    asked = "_".join(f"f{feature}" for feature in sensitive)
    suffix = "" if distance == 1 else f"-d{'any' if distance is None else distance}"
    suffix += "" if gap is None else f"-g{gap}"
    return Instance(
        name=f"{model.name}-{asked}{suffix}",
        model=model.path,
        dataset=model.dataset,
        depth=model.depth,
        n_trees=model.n_trees,
        n_guards=model.n_guards,
        sensitive=sensitive,
        gap=gap or BY_KEY[model.dataset].gap,
        distance=distance,
    )


def stratified_sample(instances: Sequence[Instance], size: int, seed: int = 0) -> list[Instance]:
    """Return about ``size`` instances, as evenly as can be over data sets, depths and trees.

    Strata are filled in turn, data set by data set, so any size keeps the balance; the order of
    the suite is kept.
    """
    chosen = {instance.name for instance in stratified_order(instances, seed)[:size]}
    return [instance for instance in instances if instance.name in chosen]


def stratified_order(instances: Sequence[Instance], seed: int = 0) -> list[Instance]:
    """Return the instances in an order whose every beginning is such a sample."""
    generator = np.random.default_rng([SEED, seed])
    strata: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        strata[instance.dataset].append(instance)
    queues = [_spread(group, generator) for group in strata.values()]
    taken: list[Instance] = []
    for turn in range(max(map(len, queues), default=0)):
        taken += [queue[turn] for queue in queues if turn < len(queue)]
    return taken


def alternating_order(
    instances: Sequence[Instance], zeros: Container[str], seed: int = 0
) -> list[Instance]:
    """Return the instances such that every beginning has as many with a count of 0 as without.

    ``zeros`` holds the names of those whose count is 0. They are easy for some methods, and may
    be so many that a small sample has hardly any others. What is left when one kind ends follows.
    """
    kinds = [[i for i in instances if (i.name in zeros) == is_zero] for is_zero in (False, True)]
    queues = zip_longest(*(stratified_order(kind, seed) for kind in kinds))
    return [instance for pair in queues for instance in pair if instance is not None]


def _spread(group: Sequence[Instance], generator: np.random.Generator) -> list[Instance]:
    """Order the instances of one data set so that every prefix covers sizes and depths evenly."""
    waiting = [group[i] for i in generator.permutation(len(group))]
    seen: Counter[tuple[str, object]] = Counter()
    ordered: list[Instance] = []
    while waiting:
        traits = [_traits(instance) for instance in waiting]
        best = min(range(len(waiting)), key=lambda i: sum(seen[trait] for trait in traits[i]))
        seen.update(traits[best])
        ordered.append(waiting.pop(best))
    return ordered


def _traits(instance: Instance) -> list[tuple[str, object]]:
    return [
        ("depth", instance.depth),
        ("trees", instance.n_trees),
        ("distance", instance.distance),
        ("features", len(instance.sensitive)),
        ("gap", instance.gap),
    ]
