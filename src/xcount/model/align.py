"""Models side by side: features in one order, the same classes, names to tell them by."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xcount.errors import QueryError, QueryWarning
from xcount.model.ensemble import Ensemble, Feature


def aligned(ensembles: list[Ensemble]) -> list[Ensemble]:
    """Put every model's features into the order of the first one's."""
    if len(ensembles) < 2:
        given = "one was given" if ensembles else "none was given"
        raise QueryError(
            f"a comparison needs at least two models, and {given}; xcount audit asks one alone"
        )
    first = ensembles[0]
    aligned = [first, *(_reordered(ensemble, first) for ensemble in ensembles[1:])]
    for index in range(first.n_features):
        if all(ensemble.features[index].hashes is not None for ensemble in aligned):
            aligned = _with_the_same_codes(aligned, index)
    for features in zip(*(ensemble.features for ensemble in aligned), strict=True):
        _check_labels(features)
    return aligned


def same_class(ensembles: Sequence[Ensemble], output: int) -> list[int]:
    """Return the index in each model of the class that has this one in the first.

    Classes are known by their labels; by their number where a model has no labels.
    """
    _check_classes(ensembles)
    named = [ensemble.class_labels for ensemble in ensembles if ensemble.class_labels is not None]
    if ensembles[0].n_outputs == 1 or not named:
        return [output] * len(ensembles)
    label = named[0][output]
    return [
        output if ensemble.class_labels is None else ensemble.class_labels.index(label)
        for ensemble in ensembles
    ]


def _check_classes(ensembles: Sequence[Ensemble]) -> None:
    """Refuse models that do not have the same classes."""
    if len({ensemble.n_outputs for ensemble in ensembles}) > 1:
        counts = ", ".join(str(ensemble.n_outputs) for ensemble in ensembles)
        raise QueryError(f"models compare only with the same classes; outputs are {counts}")
    if ensembles[0].n_outputs == 1:
        return
    named = [ensemble.class_labels for ensemble in ensembles if ensemble.class_labels is not None]
    for labels in named[1:]:
        if sorted(labels) != sorted(named[0]):
            raise QueryError(
                f"models compare only with the same classes; one has {', '.join(named[0])}, "
                f"another {', '.join(labels)}"
            )


def _check_labels(features: Sequence[Feature]) -> None:
    """Refuse models in which one category code means different categories."""
    meaning: dict[int, str] = {}
    for feature in features:
        for code, label in zip(feature.categories or (), feature.labels or (), strict=False):
            if meaning.setdefault(code, label) != label:
                raise QueryError(
                    f"category {code} of feature {feature.name!r} means {meaning[code]!r} in one "
                    f"model and {label!r} in another; train them with the same encoding"
                )


def _with_the_same_codes(ensembles: list[Ensemble], index: int) -> list[Ensemble]:
    """Give categories that are known by their hash one code in all models.

    A category that a model does not know is to it like all others that it does not.
    """
    features = [ensemble.features[index] for ensemble in ensembles]
    hashes = tuple(sorted({known for feature in features for known in feature.hashes or ()}))
    if all(feature.hashes == hashes for feature in features):
        return ensembles
    named: dict[int, str] = {}
    for feature in features:
        for known, label in zip(feature.hashes or (), feature.labels or (), strict=False):
            if known not in named or named[known] == f"#{known}":
                named[known] = label
    last = (features[0].labels or ("",))[-1]
    codes, labels = tuple(range(len(hashes) + 1)), (*(named[known] for known in hashes), last)
    texts = {text for feature in features for text in feature.other_labels}
    others = tuple(sorted(texts.difference(labels)))
    feature = replace(
        features[0],
        categories=codes,
        labels=labels,
        hashes=hashes,
        other=codes[-1],
        other_labels=others,
        other_is_unknown=all(feature.other_is_unknown for feature in features),
    )
    return [_recoded(ensemble, index, feature) for ensemble in ensembles]


def _recoded(ensemble: Ensemble, index: int, feature: Feature) -> Ensemble:
    """Return the ensemble with other codes of one feature's categories."""
    own, codes, hashes = ensemble.features[index], feature.categories or (), feature.hashes or ()
    place = {known: code for code, known in enumerate(own.hashes or ())}
    before = [*(place.get(known, own.other) for known in hashes), own.other]
    trees = tuple(
        replace(
            tree,
            left_categories={
                node: frozenset(code for code in codes if before[code] in left)
                if tree.feature[node] == index
                else left
                for node, left in tree.left_categories.items()
            },
        )
        for tree in ensemble.trees
    )
    features = (*ensemble.features[:index], feature, *ensemble.features[index + 1 :])
    return replace(ensemble, features=features, trees=trees)


def _reordered(ensemble: Ensemble, first: Ensemble) -> Ensemble:
    names = first.feature_names
    if ensemble.feature_names == names:
        return ensemble
    if sorted(ensemble.feature_names) != sorted(names) or len(set(names)) != len(names):
        only_here = sorted(set(ensemble.feature_names) - set(names))
        only_first = sorted(set(names) - set(ensemble.feature_names))
        found = [("lacks", only_first), ("adds", only_here)]
        differs = "; it ".join(f"{verb} {_some(those)}" for verb, those in found if those)
        raise QueryError(
            f"models compare only on the same features; {ensemble.path or 'a model'} "
            f"{differs or 'has names that occur more than once'}"
        )
    place = {name: index for index, name in enumerate(names)}
    # Leaves have feature -1, which picks the last entry: it is -1 again.
    new_index = np.array([*(place[name] for name in ensemble.feature_names), -1], dtype=np.int32)
    trees = tuple(replace(tree, feature=new_index[tree.feature]) for tree in ensemble.trees)
    by_name = {feature.name: feature for feature in ensemble.features}
    return replace(ensemble, features=tuple(by_name[name] for name in names), trees=trees)


def _some(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names, and how many more there are."""
    listed = [repr(name) for name in names[:most]]
    if len(names) > most:
        listed.append(f"{len(names) - most} more")
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


def distinct_names(ensembles: Sequence[Ensemble], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return what to call the models: given, or the shortest ends of paths that tell them apart."""
    if names is not None:
        if len(names) != len(ensembles):
            raise QueryError(f"{len(names)} names were given for {len(ensembles)} models")
        if twice := sorted(name for name in set(names) if list(names).count(name) > 1):
            raise QueryError(f"two models are called {twice[0]!r}; give each a name of its own")
        return tuple(names)
    paths = [ensemble.path or f"model {i + 1}" for i, ensemble in enumerate(ensembles)]
    parts = [path.replace("\\", "/").split("/") for path in paths]
    for length in range(1, max(len(part) for part in parts) + 1):
        short = ["/".join(part[-length:]) for part in parts]
        if len(set(short)) == len(short):
            return tuple(short)
    return tuple(f"{part[-1]} ({i + 1})" for i, part in enumerate(parts))


def check_margins(ensembles: Sequence[Ensemble]) -> None:
    """Warn of gaps in margins that mean different things."""
    kinds = {(ensemble.probability, ensemble.slope) for ensemble in ensembles}
    if len(kinds) == 1:
        return
    words = ", ".join(sorted({ensemble.probability for ensemble in ensembles}))
    warnings.warn(
        f"the margins of these models differ in kind (their probabilities: {words}): the same gap "
        "means different things; --probability-gap (probability_gap) compares probabilities, "
        "--flip decisions",
        QueryWarning,
        stacklevel=3,
    )
