"""scikit-learn's models that are made of other models: bagging, voting, stacking, AdaBoost, ....

Only those whose output is a *weighted sum of the members' sums* are ensembles of trees::

    V(x)[k] = constant[k] + sum over members m and their sums j of  weight[m, k, j] * V_m(x)[j]

- bagging, and soft voting, average the members' predictions: numbers, or shares of classes. The
  probabilities of boosted classifiers are no sums of leaves, so only one such member may vote.
- AdaBoost and hard voting count the votes of trees: a leaf votes for its class.
- stacking with a linear model on top weighs the members' predictions.
- models of several outputs have one sum per output.
- an isolation forest predicts from the mean depth at which its trees isolate a row. A row is an
  outlier iff that depth is below ``-c * log2(-offset_)``, c being the mean depth of a random tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.loaders import meaning, sklearn_models, splits
from xcount.model.loaders.meaning import Meaning
from xcount.model.loaders.pipelines.crossings import crossings
from xcount.model.loaders.pipelines.wrappers import is_wrapper
from xcount.model.rounding import with_float64_inputs

Numbers = NDArray[np.float64]
_LARGEST_DIVISOR = 2**20
"""Weights with a common denominator up to this one keep the leaves as they are stored."""
_LINEAR = frozenset(
    {
        *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV"),
        *("LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV"),
    }
)
"""The models on top of a stack that add their inputs up."""


@dataclass(frozen=True, eq=False)
class Kind:
    """How one kind of committee is read, and its own values of the sums."""

    read: Callable[[Any, str], Ensemble]
    margins: Callable[[Any, Numbers], Any]


@dataclass(frozen=True, eq=False)
class _Term:
    """One member, and what its sums are multiplied by.

    Attributes:
        ensemble: the member.
        weights: (sum of the committee, sum of the member) -> the weight.
        columns: the committee's column of each of the member's; None if they are the same.
    """

    ensemble: Ensemble
    weights: dict[tuple[int, int], Fraction]
    columns: Sequence[int] | None = None

    @property
    def named_columns(self) -> Sequence[int]:
        return range(self.ensemble.n_features) if self.columns is None else self.columns

    def trees(self, divisor: int) -> Iterator[Tree]:
        """Yield the member's trees as the committee's, whose sums are divided by the divisor."""
        columns = np.array([*self.named_columns, -1], dtype=np.int32)  # [-1] is that of a leaf
        for (output, own), weight in self.weights.items():
            factor = float(weight * divisor / self.ensemble.divisor)
            for tree in self.ensemble.trees:
                if tree.output == own:
                    feature, value = columns[tree.feature], tree.value * factor + 0.0
                    yield replace(tree, feature=feature, value=value, output=output)


def kind_of(estimator: Any) -> Kind | None:
    """Return how a model is read, by its class or the one it is derived from; None if it is none.

    Raises:
        UnsupportedModelError: it is one whose output is no sum of leaves.
    """
    for base in type(estimator).__mro__:
        if base.__module__.partition(".")[0] == "sklearn":
            if base.__name__ in _REFUSED:
                raise UnsupportedModelError(f"{base.__name__} {_REFUSED[base.__name__]}")
            if base.__name__ in _KINDS:
                sklearn_models.check_own_predictors(type(estimator), base)
                return _KINDS[base.__name__]
    return None


def _load(member: Any) -> Ensemble:
    from xcount.model.loaders import load

    return load(member)


def _sum(
    estimator: Any, where: str, terms: Sequence[_Term], constants: Sequence[Fraction]
) -> Ensemble:
    """Return the ensemble of a weighted sum of members."""
    if not terms:
        raise UnsupportedModelError(f"{where}: it has no members")
    if len({term.ensemble.input_dtype for term in terms}) > 1:
        terms = [replace(term, ensemble=with_float64_inputs(term.ensemble)) for term in terms]
    shares = [w / term.ensemble.divisor for term in terms for w in term.weights.values()]
    divisor = math.lcm(*(share.denominator for share in shares))
    divisor = divisor if divisor <= _LARGEST_DIVISOR else 1
    base = list(constants)
    for term in terms:
        for (output, own), weight in term.weights.items():
            base[output] += weight * Fraction(term.ensemble.base[own])
    other = {term.ensemble.format.partition("-")[0] for term in terms} - {"sklearn"}
    return Ensemble(
        features=_features(estimator, where, terms),
        trees=tuple(tree for term in terms for tree in term.trees(divisor)),
        base=tuple(float(number) for number in base),
        divisor=divisor,
        input_dtype=terms[0].ensemble.input_dtype,
        format="-".join(["sklearn", "committee", *sorted(other)]),
    )


def _features(estimator: Any, where: str, terms: Sequence[_Term]) -> tuple[Feature, ...]:
    """Return the columns; refuse those that members understand in different ways."""
    n_columns = int(getattr(estimator, "n_features_in_", terms[0].ensemble.n_features))
    found = getattr(estimator, "feature_names_in_", None)
    names = splits.default_names(n_columns) if found is None else [str(name) for name in found]
    seen: list[list[Feature]] = [[] for _ in names]
    for term in terms:
        for feature, column in zip(term.ensemble.features, term.named_columns, strict=True):
            seen[column].append(replace(feature, name=names[column]))
    everywhere = all(feature.can_be_missing for features in seen for feature in features)
    joint = []
    for name, features in zip(names, seen, strict=True):
        plain = {
            replace(
                feature,
                can_be_missing=all(other.can_be_missing for other in features),
                missing_as=feature.missing_as
                if len({f.missing_as for f in features}) == 1
                else None,
            )
            for feature in features
        }
        if len(plain) > 1 or any(feature.labels for feature in plain):
            raise UnsupportedModelError(
                f"{where}: its members take column {name!r} in different ways, or as text; put "
                "what encodes it in front of all of them: make_pipeline(encoder, model)"
            )
        joint.append(plain.pop() if plain else Feature(name, can_be_missing=everywhere))
    return tuple(joint)


def _classified(ensemble: Ensemble, estimator: Any, meant: Meaning) -> Ensemble:
    """Return a classifier's ensemble, with what its sums mean and the names of its classes."""
    labels = tuple(str(label) for label in estimator.classes_)
    return replace(meant.put_on(ensemble), class_labels=labels)


def _averaged(members: Sequence[Any], weights: Sequence[Any] | None) -> list[Fraction]:
    """Return the share of each member in an average."""
    given = (
        [Fraction(1)] * len(members) if weights is None else [Fraction(float(w)) for w in weights]
    )
    return [weight / sum(given) for weight in given]


def _number_term(
    member: Any, where: str, weight: Fraction, columns: Sequence[int] | None = None
) -> _Term:
    """Return the term of a regressor that predicts its sum."""
    ensemble = _load(member)
    if not _predicts_its_sum(member, ensemble):
        raise UnsupportedModelError(
            f"{where}: its member {type(member).__name__} does not predict a sum of leaves, so "
            "that an average of members is none either"
        )
    return _Term(ensemble, {(0, 0): weight}, columns)


def _predicts_its_sum(member: Any, ensemble: Ensemble) -> bool:
    """Tell whether a regressor predicts the sum of its leaves, not its exponential or the like."""
    if ensemble.task != "regression" or ensemble.n_outputs != 1:
        return False
    anywhere = np.zeros((1, ensemble.n_features))
    with sklearn_models.quietly():
        predicted = float(np.ravel(member.predict(anywhere))[0])
    return math.isclose(predicted, float(ensemble.predict(anywhere)[0, 0]), rel_tol=1e-4)


def _share_terms(
    member: Any,
    where: str,
    weight: Fraction,
    places: Sequence[int],
    n_classes: int,
    columns: Sequence[int] | None = None,
) -> tuple[_Term, list[Fraction]]:
    """Return the term of a classifier whose sums are shares of classes, and its constants.

    ``places`` are the committee's classes that the member knows, in its order.
    """
    ensemble = _load(member)
    if ensemble.probability != "margin":
        raise UnsupportedModelError(
            f"{where}: it averages the probabilities of several {type(member).__name__} members, "
            "which are no sums of leaves (those of trees and forests are); ask about one member"
        )
    of_class = {place: {j: weight} for j, place in enumerate(places)}
    constants = dict.fromkeys(range(n_classes), Fraction(0))
    if len(places) == 2:  # one sum, the share of the second; the first has the rest
        of_class = {places[0]: {0: -weight}, places[1]: {0: weight}}
        constants[places[0]] = weight
    outputs = [1] if n_classes == 2 else list(range(n_classes))
    weights = {
        (k, j): w for k, place in enumerate(outputs) for j, w in of_class.get(place, {}).items()
    }
    return _Term(ensemble, weights, columns), [constants[place] for place in outputs]


def _share_meaning(n_classes: int) -> Meaning:
    return meaning.VOTES if n_classes == 2 else replace(meaning.SOFTMAX, probability="margin")


def _shares(estimator: Any, where: str, parts: Sequence[tuple[_Term, list[Fraction]]]) -> Ensemble:
    constants = [sum(column, Fraction(0)) for column in zip(*(c for _, c in parts), strict=True)]
    ensemble = _sum(estimator, where, [term for term, _ in parts], constants)
    return _classified(ensemble, estimator, _share_meaning(len(estimator.classes_)))


def _probabilities(estimator: Any, rows: Numbers) -> Any:
    shares = estimator.predict_proba(rows)
    return shares[:, 1] if shares.shape[1] == 2 else shares


def _predictions(estimator: Any, rows: Numbers) -> Any:
    return estimator.predict(rows)


def _read_bagging(estimator: Any, where: str) -> Ensemble:
    members = list(zip(estimator.estimators_, estimator.estimators_features_, strict=True))
    weight = Fraction(1, len(members))
    if not hasattr(estimator, "classes_"):
        terms = [_number_term(m, where, weight, np.asarray(f).tolist()) for m, f in members]
        return meaning.numbers(1).put_on(_sum(estimator, where, terms, [Fraction(0)]))
    n_classes = len(estimator.classes_)
    parts = [
        _share_terms(
            m, where, weight, [int(c) for c in m.classes_], n_classes, np.asarray(f).tolist()
        )
        for m, f in members
    ]
    return _shares(estimator, where, parts)


def _bagging_margins(estimator: Any, rows: Numbers) -> Any:
    is_classifier = hasattr(estimator, "classes_")
    return (_probabilities if is_classifier else _predictions)(estimator, rows)


def _read_voting_regressor(estimator: Any, where: str) -> Ensemble:
    members = estimator.estimators_
    shares = _averaged(members, estimator._weights_not_none)
    terms = [_number_term(m, where, share) for m, share in zip(members, shares, strict=True)]
    return meaning.numbers(1).put_on(_sum(estimator, where, terms, [Fraction(0)]))


def _read_voting_classifier(estimator: Any, where: str) -> Ensemble:
    members = estimator.estimators_
    if estimator.voting == "soft" and len(members) == 1:
        only = replace(_load(members[0]), tie_is_above=False)
        return replace(only, class_labels=tuple(str(label) for label in estimator.classes_))
    shares = _averaged(members, estimator._weights_not_none)
    n_classes = len(estimator.classes_)
    if estimator.voting == "soft":
        parts = [
            _share_terms(m, where, share, range(n_classes), n_classes)
            for m, share in zip(members, shares, strict=True)
        ]
        return _shares(estimator, where, parts)
    terms = [
        _vote_term(m, where, _votes(Fraction(1), Fraction(0), n_classes), n_classes, share)
        for m, share in zip(members, shares, strict=True)
    ]
    n_outputs = 1 if n_classes == 2 else n_classes
    ensemble = _sum(estimator, where, terms, [Fraction(0)] * n_outputs)
    return _classified(ensemble, estimator, replace(_share_meaning(n_classes), probability="none"))


def _voting_margins(estimator: Any, rows: Numbers) -> Any:
    if estimator.voting == "soft":
        if len(estimator.estimators_) == 1:
            return sklearn_models.raw_predictions(estimator.estimators_[0], rows)
        return _probabilities(estimator, rows)
    votes = estimator.transform(rows)
    shares = [
        float(share) for share in _averaged(estimator.estimators_, estimator._weights_not_none)
    ]
    n_classes = len(estimator.classes_)
    counted = np.stack([(votes == k) @ np.array(shares) for k in range(n_classes)], axis=1)
    return counted[:, 1] if n_classes == 2 else counted


def _votes(weight: Fraction, other: Fraction, n_classes: int) -> Numbers:
    """Return what a vote for each class adds to each sum, shape ``(n_classes, n_outputs)``."""
    table = np.full((n_classes, n_classes), float(other))
    np.fill_diagonal(table, float(weight))
    return table[:, 1:] if n_classes == 2 else table


def _vote_term(
    member: Any, where: str, votes: Numbers, n_classes: int, weight: Fraction = Fraction(1)
) -> _Term:
    """Return the term of a tree whose leaves vote for their class.

    Shares of votes are weights, not votes: with a common divisor, ties stay ties.
    """
    if is_wrapper(member) or not hasattr(member, "tree_"):
        raise UnsupportedModelError(
            f"{where}: it counts the votes of its member {type(member).__name__}, which is no "
            "single tree, so that the votes are no sums of leaves (soft voting of forests is one)"
        )
    sklearn_models.check_fitted(member)
    if len(member.classes_) != n_classes:
        raise UnsupportedModelError(f"{where}: a member knows only {len(member.classes_)} classes")
    leaf_classes = np.argmax(member.tree_.value[:, 0, :], axis=1)
    trees = sklearn_models.build(member.tree_, votes[leaf_classes], where, member.n_features_in_)
    n_outputs = votes.shape[1]
    ensemble = sklearn_models.float32_ensemble(
        member, where, trees, (0.0,) * n_outputs, first=member
    )
    return _Term(replace(ensemble, format="sklearn"), {(k, k): weight for k in range(n_outputs)})


def _read_adaboost(estimator: Any, where: str) -> Ensemble:
    if getattr(estimator, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModelError(
            f"{where}: the algorithm SAMME.R, which scikit-learn has given up; train the model "
            "again with algorithm='SAMME'"
        )
    n_classes = len(estimator.classes_)
    if n_classes < 2:
        raise UnsupportedModelError(f"{where}: it knows a single class")
    total = Fraction(float(estimator.estimator_weights_.sum()))
    terms = []
    for member, given in zip(estimator.estimators_, estimator.estimator_weights_, strict=False):
        weight = Fraction(float(given)) / total
        if n_classes == 2:  # the sums of both classes are added, so a vote counts twice
            votes = np.array([[-2.0 * float(weight)], [2.0 * float(weight)]])
        else:
            votes = _votes(weight, -weight / (n_classes - 1), n_classes)
        terms.append(_vote_term(member, where, votes, n_classes))
    n_outputs = 1 if n_classes == 2 else n_classes
    ensemble = _sum(estimator, where, terms, [Fraction(0)] * n_outputs)
    # AdaBoost itself refuses missing values, even where its trees would take them.
    features = tuple(replace(feature, can_be_missing=False) for feature in ensemble.features)
    several = replace(meaning.SOFTMAX, probability="none")
    meant = meaning.LOG_ODDS if n_classes == 2 else several
    return _classified(replace(ensemble, features=features), estimator, meant)


def _decision_function(estimator: Any, rows: Numbers) -> Any:
    return estimator.decision_function(rows)


def _read_stacking(estimator: Any, where: str) -> Ensemble:
    top = estimator.final_estimator_
    is_classifier = hasattr(estimator, "classes_")
    if type(top).__name__ not in _LINEAR:
        raise UnsupportedModelError(
            f"{where}: its final_estimator {type(top).__name__} is no linear model, so that the "
            "stack is no sum of trees; ask about its members (estimators_) one by one"
        )
    if estimator.passthrough:
        raise UnsupportedModelError(
            f"{where}: passthrough=True: its final_estimator is linear in the inputs themselves, "
            "which no tree ensemble is"
        )
    if is_classifier and len(estimator.classes_) != 2:
        raise UnsupportedModelError(
            f"{where}: a stack of {len(estimator.classes_)} classes; stacks of two are read"
        )
    slopes = [Fraction(float(slope)) for slope in np.ravel(top.coef_)]
    constant = Fraction(float(np.ravel(top.intercept_)[0]))
    if len(slopes) != len(estimator.estimators_):
        raise UnsupportedModelError(f"{where}: its members put out more than one column each")
    terms = [
        _Term(_stacked(member, method, where), {(0, 0): slope})
        for member, method, slope in zip(
            estimator.estimators_, estimator.stack_method_, slopes, strict=True
        )
    ]
    ensemble = _sum(estimator, where, terms, [constant])
    if not is_classifier:
        return meaning.numbers(1).put_on(ensemble)
    has_probability = hasattr(top, "predict_proba")
    meant = replace(meaning.LOG_ODDS, probability="sigmoid" if has_probability else "none")
    return _classified(ensemble, estimator, meant)


def _stacked(member: Any, method: str, where: str) -> Ensemble:
    """Return a member of a stack if what it hands on is its sum."""
    ensemble = _load(member)
    probability = ensemble.probability
    is_sum = {
        "predict": method == "predict" and _predicts_its_sum(member, ensemble),
        "predict_proba": ensemble.task == "binary" and probability == "margin",
        "decision_function": ensemble.task == "binary" and probability == "sigmoid",
    }
    if not is_sum.get(method, False):
        raise UnsupportedModelError(
            f"{where}: {method}() of its member {type(member).__name__} is no sum of leaves"
            + ("; stack_method='decision_function' is" if probability == "sigmoid" else "")
        )
    return ensemble


def _stacking_margins(estimator: Any, rows: Numbers) -> Any:
    is_classifier = hasattr(estimator, "classes_")
    return (_decision_function if is_classifier else _predictions)(estimator, rows)


def _read_several_outputs(estimator: Any, where: str) -> Ensemble:
    members = estimator.estimators_
    loaded = [_load(member) for member in members]
    meanings = {(e.task, e.probability, e.slope, e.n_outputs) for e in loaded}
    task, probability, slope, n_outputs = min(meanings)
    if len(meanings) > 1 or n_outputs != 1 or task not in ("regression", "binary"):
        raise UnsupportedModelError(
            f"{where}: its outputs are not all numbers, or all of two classes; ask about one of "
            "them: model.estimators_[i]"
        )
    terms = [_Term(e, {(k, 0): Fraction(1)}) for k, e in enumerate(loaded)]
    ensemble = _sum(estimator, where, terms, [Fraction(0)] * len(terms))
    if len(loaded) == 1:
        return replace(loaded[0], features=ensemble.features)
    if task == "regression":
        return meaning.numbers(len(loaded)).put_on(ensemble)
    return Meaning("multilabel", None, probability, slope).put_on(ensemble)


def _several_margins(estimator: Any, rows: Numbers) -> Any:
    members = estimator.estimators_
    return np.column_stack([sklearn_models.raw_predictions(member, rows) for member in members])


def _read_isolation(estimator: Any, where: str) -> Ensemble:
    terms = []
    weight = Fraction(1, len(estimator.estimators_))
    for i, (member, columns) in enumerate(
        zip(estimator.estimators_, estimator.estimators_features_, strict=True)
    ):
        # Added in the library's order.
        path = estimator._decision_path_lengths[i] + estimator._average_path_length_per_tree[i]
        depths = (path - 1.0)[:, np.newaxis]
        place = f"{where}: tree {i}"
        trees = sklearn_models.build(member.tree_, depths, place, member.n_features_in_)
        tree = sklearn_models.float32_ensemble(member, where, trees, (0.0,), first=member)
        terms.append(_Term(replace(tree, format="sklearn"), {(0, 0): weight}, columns.tolist()))
    ensemble = _sum(estimator, where, terms, [Fraction(0)])
    meant = Meaning("binary", _least_inlying_depth(estimator), tie_is_above=True)
    return replace(meant.put_on(ensemble), class_labels=("-1", "1"))


def _mean_depth(estimator: Any) -> float:
    """Return the mean depth of a random tree, by which an isolation forest divides depths."""
    n = int(estimator._max_samples)
    if n <= 2:
        return float(max(0, n - 1))
    return 2.0 * (math.log(n - 1.0) + float(np.euler_gamma)) - 2.0 * (n - 1.0) / n


def _least_inlying_depth(estimator: Any) -> float | None:
    """Return the mean depth from which on a row is an inlier; None if all rows are alike.

    With ``contamination``, rows of the training data lie just there. The library's sum of their
    depths may be rounded up, so what is within rounding of the cut-off is an inlier, as they are.
    """
    total = len(estimator.estimators_) * _mean_depth(estimator)
    if total == 0.0:
        return None

    def decision(depths: Numbers) -> Numbers:
        found: Numbers = -(2.0 ** (-depths / total)) - estimator.offset_
        return found

    with np.errstate(over="ignore", under="ignore"):
        found = crossings(decision, (), (0.0,))
    if not len(found):
        return None
    return float(found[0]) / len(estimator.estimators_) * (1.0 - 2.0**-44)


def _isolation_margins(estimator: Any, rows: Numbers) -> Any:
    return -_mean_depth(estimator) * np.log2(-estimator.score_samples(rows))


_BAGGING = Kind(_read_bagging, _bagging_margins)
_STACKING = Kind(_read_stacking, _stacking_margins)
_SEVERAL = Kind(_read_several_outputs, _several_margins)
_KINDS: dict[str, Kind] = {
    "IsolationForest": Kind(_read_isolation, _isolation_margins),
    "BaggingClassifier": _BAGGING,
    "BaggingRegressor": _BAGGING,
    "AdaBoostClassifier": Kind(_read_adaboost, _decision_function),
    "VotingClassifier": Kind(_read_voting_classifier, _voting_margins),
    "VotingRegressor": Kind(_read_voting_regressor, _predictions),
    "StackingClassifier": _STACKING,
    "StackingRegressor": _STACKING,
    "MultiOutputClassifier": _SEVERAL,
    "MultiOutputRegressor": _SEVERAL,
}
_ONE_BY_ONE = "ask about its members (estimators_) one by one"
_REFUSED = {
    "AdaBoostRegressor": "predicts the weighted median of its trees, which is no sum of leaves; "
    "AdaBoostClassifier and boosting by gradients are sums",
    "RandomTreesEmbedding": "predicts nothing: it tells in which leaves rows are; ask about the "
    "model that is trained on them",
    "ClassifierChain": f"hands the predictions of its members on to the next; {_ONE_BY_ONE}",
    "RegressorChain": f"hands the predictions of its members on to the next; {_ONE_BY_ONE}",
    "OneVsOneClassifier": f"counts the votes of classifiers of pairs of classes; {_ONE_BY_ONE}",
    "OutputCodeClassifier": f"compares distances to codes of classes; {_ONE_BY_ONE}",
}
"""Models whose output is no sum of leaves -> why, and what to do."""
