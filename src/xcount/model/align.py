"""Models side by side: the features of all of them in one order, the same classes, names.

Features are matched by name; a feature that a model lacks is one that it does not test. If all
names of a model are those that libraries give to columns without a name, and it shares none with
the others, its features are matched by position.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError, QueryWarning
from xcount.model.ensemble import Ensemble, Feature

_NO_NAME = re.compile(r"(?:f|x|Column_|feature_)?([0-9]+)")
"""The names that libraries give to columns without a name."""


def aligned(ensembles: Sequence[Ensemble]) -> list[Ensemble]:
    """Give every model the features of all: the first one's, then those that others add."""
    if len(ensembles) < 2:
        given = "one was given" if ensembles else "none was given"
        raise QueryError(
            f"a comparison needs at least two models, and {given}; xcount audit asks one alone"
        )
    named = [_checked(_named_like(ensemble, _with_names(ensembles))) for ensemble in ensembles]
    known: dict[str, Feature] = {}
    for ensemble in named:
        known = {feature.name: feature for feature in ensemble.features} | known
    order = dict.fromkeys(name for ensemble in named for name in ensemble.feature_names)
    found = [_with_features(ensemble, [known[name] for name in order]) for ensemble in named]
    for index in range(len(order)):
        if all(ensemble.features[index].hashes is not None for ensemble in found):
            found = _with_the_same_codes(found, index)
    for features in zip(*(ensemble.features for ensemble in found), strict=True):
        _check_labels(features)
    return found


def own_columns(
    loaded: Sequence[Ensemble], number: int, aligned: Ensemble, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return rows of aligned columns as one of the models takes them.

    Args:
        loaded: the models as they were loaded.
        number: which of them.
        aligned: the same model after :func:`aligned`.
        rows: one column for each feature of the aligned model.
    """
    own = _named_like(loaded[number], _with_names(loaded))
    found = np.empty((len(rows), own.n_features))
    for column, feature in enumerate(own.features):
        place = aligned.feature_names.index(feature.name)
        found[:, column] = _own_codes(feature, aligned.features[place], rows[:, place])
    return found


def _own_codes(own: Feature, joint: Feature, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with the model's own codes of categories that are known by their hash."""
    if own.hashes is None or own.hashes == joint.hashes:
        return values
    codes = _codes_before(own, joint.hashes or ())
    return np.array(
        [v if np.isnan(v) else codes[int(v)] for v in values.tolist()], dtype=np.float64
    )


def _codes_before(own: Feature, hashes: Sequence[int]) -> list[int | None]:
    """Return for each joint code the one that the model has for it."""
    place = {known: code for code, known in enumerate(own.hashes or ())}
    return [*(place.get(known, own.other) for known in hashes), own.other]


def joint_feature(features: Sequence[Feature]) -> Feature:
    """Return one feature that allows every value that any of the models allows."""
    first = features[0]
    if len({feature.is_categorical for feature in features}) > 1:
        raise QueryError(f"feature {first.name!r} is categorical in one model, numeric in another")
    takes_missing = all(feature.takes_missing for feature in features)
    can_be_missing = takes_missing and any(feature.can_be_missing for feature in features)
    missing_as = first.missing_as if takes_missing and not can_be_missing else None
    like_missing = tuple(dict.fromkeys(x for feature in features for x in feature.like_missing))
    if first.categories is None or all(f.categories == first.categories for f in features):
        return replace(
            first,
            can_be_missing=can_be_missing,
            like_missing=like_missing,
            missing_as=missing_as,
            unknown_is_missing=all(feature.unknown_is_missing for feature in features),
            other_is_unknown=all(feature.other_is_unknown for feature in features),
        )
    codes = tuple(sorted({code for f in features for code in f.categories or ()}))
    names = {
        c: label
        for f in features
        for c, label in zip(f.categories or (), f.labels or (), strict=False)
    }
    labels = tuple(names[code] for code in codes) if all(code in names for code in codes) else None
    return Feature(first.name, codes, labels, can_be_missing)


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


def with_classes_of(ensemble: Ensemble, first: Ensemble) -> tuple[Ensemble, tuple[int, ...]]:
    """Return a model with its classes in the order of another's, and the places they had."""
    outputs = range(first.n_outputs)
    places = tuple(same_class([first, ensemble], output)[1] for output in outputs)
    if first.n_outputs == 1:
        labels = [each.class_labels for each in (first, ensemble) if each.class_labels is not None]
        if len(labels) == 2 and labels[0] != labels[1]:
            raise QueryError(
                "models compare only with the same classes in the same order; one has "
                f"{', '.join(labels[0])}, the other {', '.join(labels[1])}"
            )
        return ensemble, places
    new = {place: output for output, place in enumerate(places)}
    trees = tuple(replace(tree, output=new[tree.output]) for tree in ensemble.trees)
    base = tuple(ensemble.base[place] for place in places)
    return replace(ensemble, trees=trees, base=base, class_labels=first.class_labels), places


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
    before = _codes_before(own, hashes)
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


def _checked(ensemble: Ensemble) -> Ensemble:
    """Return the model; reject one in which two features have the same name."""
    names = ensemble.feature_names
    if len(set(names)) != len(names):
        raise QueryError(
            "models are matched by the names of their features; "
            f"{ensemble.path or 'a model'} has names that occur more than once"
        )
    return ensemble


def _with_names(ensembles: Sequence[Ensemble]) -> Ensemble:
    """Return the first model that has names of its own; the first of all if none has."""
    named = (each for each in ensembles if not _lacks_names(each.feature_names))
    return next(named, ensembles[0])


def _named_like(ensemble: Ensemble, first: Ensemble) -> Ensemble:
    """Return the model with the names of another one if it has none of its own."""
    names, others = first.feature_names, ensemble.feature_names
    if set(names) & set(others) or not names or not others:
        return ensemble
    if len(names) == len(others) and _lacks_names(others):
        both = zip(ensemble.features, names, strict=True)
        return replace(ensemble, features=tuple(replace(own, name=name) for own, name in both))
    raise QueryError(
        f"{ensemble.path or 'a model'} has no feature in common with {first.path or 'another'}; "
        f"features are matched by name: one has {_some(names)}, the other {_some(others)}"
    )


def _lacks_names(names: Sequence[str]) -> bool:
    """Return whether all names are positions, counted from 0 or from 1."""
    found = [_NO_NAME.fullmatch(name) for name in names]
    numbers = [int(match[1]) for match in found if match is not None]
    return numbers in (list(range(len(names))), list(range(1, len(names) + 1)))


def _with_features(ensemble: Ensemble, features: Sequence[Feature]) -> Ensemble:
    """Return the model with these features, its own among them; it does not test the others."""
    place = {feature.name: index for index, feature in enumerate(features)}
    own = {feature.name: feature for feature in ensemble.features}
    # Leaves have feature -1, which picks the last entry: it is -1 again.
    new_index = np.array([*(place[name] for name in own), -1], dtype=np.int32)
    trees = tuple(replace(tree, feature=new_index[tree.feature]) for tree in ensemble.trees)
    found = tuple(own.get(feature.name, feature) for feature in features)
    return replace(ensemble, features=found, trees=trees)


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
