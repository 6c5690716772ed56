"""scikit-learn's trees, forests and boosting models: live, from a skops file, from a pickle.

What the sums of an ensemble are:

- a tree or forest for regression: the prediction;
- a tree or forest for classification: the probability of class 1, or one probability per class
  when there are more than two (a forest averages, see ``Ensemble.divisor``);
- GradientBoosting and HistGradientBoosting: the raw margin (``decision_function``), one sum per
  class when there are more than two.

``predict`` takes class 1 iff that probability exceeds 1/2 or the margin 0, and of several classes
the largest sum, the first one of equals. GradientBoosting alone takes class 1 at a margin of 0 too.

Trees round inputs to float32 and go left iff ``x <= threshold`` with a float64 threshold; a
threshold of +inf tells missing values from numbers. HistGradientBoosting has a module of its own.
"""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from inspect import getattr_static
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import (
    MissingExtraError,
    ModelFormatError,
    UnsupportedModelError,
    XCountError,
)
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.loaders import (
    files,
    hist_gradient_boosting,
    meaning,
    pipelines,
    splits,
)
from xcount.model.loaders.meaning import Meaning
from xcount.model.loaders.pipelines import is_wrapper

_SUPPORTED = (
    "DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting and HistGradientBoosting "
    "classifiers and regressors, Bagging, Voting, Stacking and MultiOutput of them, "
    "AdaBoostClassifier, IsolationForest"
)
_TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)
"""What skops asks about in the files of the supported models, beyond what it trusts by itself."""
_BOOSTERS = frozenset(
    {
        "catboost.core.CatBoostClassifier",
        "catboost.core.CatBoostRegressor",
        "collections.OrderedDict",
        "collections.defaultdict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRegressor",
    }
)
"""Models of other libraries in a pipeline. Opening one hands bytes of the file to the library's own
reader, which is not made for files of strangers: only with the user's leave."""
_CONSTANT_STRATEGIES = frozenset(
    {"constant", "mean", "median", "most_frequent", "prior", "quantile", "uniform"}
)
_PREDICTORS = ("decision_function", "predict", "predict_proba")


def from_live(model: Any) -> Ensemble:
    """Return the ensemble of a fitted scikit-learn model, or of a pipeline around any model."""
    if is_wrapper(model):
        return pipelines.from_live(model)
    estimator = model
    where = type(estimator).__name__
    committee = _committee(estimator)
    if committee is not None:
        check_fitted(estimator)
        ensemble: Ensemble = committee.read(estimator, where)
        return ensemble
    family = _family_of(estimator)
    check_fitted(estimator)
    if getattr(estimator, "n_outputs_", 1) != 1 and hasattr(estimator, "classes_"):
        raise UnsupportedModelError(
            f"{where}: a multi-output model ({estimator.n_outputs_} outputs); "
            "train one model per output"
        )
    return _ensemble_of(estimator, family, where)


def _committee(estimator: Any) -> Any:
    """Return how a model made of other models is read; None if it is none."""
    return import_module("xcount.model.loaders.sklearn_committees").kind_of(estimator)


def _ensemble_of(estimator: Any, family: str, where: str) -> Ensemble:
    ensemble = replace(_READERS[family](estimator, where), format="sklearn")
    if not hasattr(estimator, "classes_"):
        return meaning.numbers(ensemble.n_outputs).put_on(ensemble)
    labels = tuple(str(label) for label in estimator.classes_)
    return replace(_meaning(estimator, family).put_on(ensemble), class_labels=labels)


def _meaning(estimator: Any, family: str) -> Meaning:
    """Return what the sums of a classifier mean."""
    votes = family in ("tree", "forest")
    if len(estimator.classes_) != 2:
        return replace(meaning.SOFTMAX, probability="margin" if votes else "softmax")
    if votes:
        return meaning.VOTES
    if family == "gradient_boosting":
        slope = 2.0 if estimator.loss == "exponential" else 1.0
        return replace(meaning.LOG_ODDS, tie_is_above=True, slope=slope)
    return meaning.LOG_ODDS


def from_skops(data: bytes, where: str, *, trust: bool = False) -> Ensemble:
    """Read a skops file; types that the supported models do not need are refused by name."""
    return _read_opened(open_skops(data, where, trust=trust), where, "skops")


def from_pickle(data: bytes, where: str) -> Ensemble:
    """Read a pickle or joblib file. Opening one runs its code: only for files the user trusts."""
    model = open_pickle(data, where)
    if type(model).__module__.partition(".")[0] != "sklearn":
        from xcount.model.loaders import load

        if isinstance(model, str | os.PathLike):
            raise ModelFormatError(f"{where}: the pickle holds a text, not a model")
        return load(model)
    return _read_opened(model, where, "pickle")


def raw_predictions(model_or_path: Any, rows: ArrayLike) -> NDArray[np.float64]:
    """Return scikit-learn's own values of the sums, shape ``(n_rows, n_outputs)``.

    A path is that of a skops file; a pickle is opened with :func:`open_pickle` first.
    """
    is_path = isinstance(model_or_path, str | os.PathLike)
    model = opened(model_or_path) if is_path else model_or_path
    if is_wrapper(model):
        return pipelines.raw_predictions(model, rows)
    matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    committee = _committee(model)
    with quietly():
        if committee is not None:
            raw = committee.margins(model, matrix)
        else:
            raw = _library_margins(model, _family_of(model), matrix)
    return np.asarray(raw, dtype=np.float64).reshape(len(matrix), -1)


def opened(path: str | os.PathLike[str]) -> Any:
    """Return the model in a skops file."""
    file = files.read(path)
    return open_skops(file.data, file.path)


def classified(
    estimator: Any, rows: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return the classes that a classifier itself predicts, and their probabilities if it has any.

    Of two classes, the probability is that of the second.
    """
    inputs: NDArray[Any] = rows
    if _committee(estimator) is None and _family_of(estimator) == "hist_gradient_boosting":
        inputs = hist_gradient_boosting.as_user_input(estimator, rows, type(estimator).__name__)
    with quietly():
        predicted = np.asarray(estimator.predict(inputs))
        if not hasattr(estimator, "predict_proba"):
            return predicted, None
        probabilities = np.asarray(estimator.predict_proba(inputs), dtype=np.float64)
    return predicted, probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def classes_of(estimator: Any) -> Sequence[Any]:
    """Return what a model with a decision predicts; an outlier detector -1 and 1."""
    classes: Sequence[Any] = getattr(estimator, "classes_", (-1, 1))
    return classes


@contextmanager
def quietly() -> Iterator[None]:
    """Silence what scikit-learn says about rows that come as plain arrays, and about huge ones."""
    # It sums all inputs up to see whether they are finite; huge ones overflow there.
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # Rows come as plain arrays, also to a model that was fitted on a data frame.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def _library_margins(estimator: Any, family: str, rows: NDArray[np.float64]) -> Any:
    if family == "hist_gradient_boosting":
        return hist_gradient_boosting.raw_predictions(estimator, rows, type(estimator).__name__)
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(rows)
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(rows)
        return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    return estimator.predict(rows)


def _read_opened(model: Any, where: str, source: str) -> Ensemble:
    """Read a model that a file held; whatever is broken in it is the file's fault."""
    try:
        ensemble = from_live(model)
        return replace(ensemble, format=f"{ensemble.format}-{source}")
    except XCountError as error:
        raise type(error)(f"{where}: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelFormatError(
            f"{where}: a damaged {type(model).__name__}: {_first_line(error)}"
        ) from None


def open_skops(data: bytes, where: str, *, trust: bool = False) -> Any:
    """Return the object in a skops file; with ``trust``, models of other libraries, too."""
    trusted = _TRUSTED | _BOOSTERS if trust else _TRUSTED
    skops_io = _imported("skops.io")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > files.MAX_FILE_BYTES:
            raise ModelFormatError(f"{where}: unpacks to {size} bytes")
        untrusted = set(skops_io.get_untrusted_types(data=data)) - trusted
        if not untrusted:
            return skops_io.loads(data, trusted=sorted(trusted))
    except XCountError:
        raise
    except Exception as error:  # whatever a hostile file makes skops raise
        raise ModelFormatError(f"{where}: not a skops file: {_first_line(error)}") from None
    if untrusted <= _BOOSTERS:
        raise UnsupportedModelError(
            f"{where}: a pipeline around a model of another library "
            f"({', '.join(sorted(untrusted))}), which opens its part of the file itself; pass "
            "--trust-pickle (trust_pickle) if you trust where the file comes from"
        )
    raise UnsupportedModelError(
        f"{where}: holds types that no supported model needs: {', '.join(sorted(untrusted))}"
    )


def open_pickle(data: bytes, where: str) -> Any:
    """Return the object in a pickle or joblib file. This runs the file's code."""
    joblib = _imported("joblib")
    try:
        return joblib.load(io.BytesIO(data))
    except Exception as error:  # unpickling can raise anything
        raise ModelFormatError(
            f"{where}: the pickle cannot be opened: {_first_line(error)}"
        ) from None


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"reading scikit-learn models needs {module.partition('.')[0]}: "
            "pip install 'xcount[sklearn]'"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def _family_of(estimator: Any) -> str:
    """Return which reader understands the model, by its class or the one it is derived from."""
    ensemble, tree = import_module("sklearn.ensemble"), import_module("sklearn.tree")
    families: dict[type, str] = {
        tree.DecisionTreeClassifier: "tree",
        tree.DecisionTreeRegressor: "tree",
        ensemble.RandomForestClassifier: "forest",
        ensemble.RandomForestRegressor: "forest",
        ensemble.ExtraTreesClassifier: "forest",
        ensemble.ExtraTreesRegressor: "forest",
        ensemble.GradientBoostingClassifier: "gradient_boosting",
        ensemble.GradientBoostingRegressor: "gradient_boosting",
        ensemble.HistGradientBoostingClassifier: "hist_gradient_boosting",
        ensemble.HistGradientBoostingRegressor: "hist_gradient_boosting",
    }
    kind = type(estimator)
    base = next((known for known in kind.__mro__ if known in families), None)
    if base is None:
        raise UnsupportedModelError(
            f"scikit-learn's {kind.__name__} is not supported (supported: {_SUPPORTED})"
        )
    check_own_predictors(kind, base)
    return families[base]


def check_own_predictors(kind: type, base: type) -> None:
    """Refuse a class that predicts otherwise than the library's own that it is derived from."""
    for method in _PREDICTORS:
        if getattr_static(kind, method, None) is not getattr_static(base, method, None):
            raise UnsupportedModelError(
                f"{kind.__name__} is a {base.__name__} with a {method}() of its own"
            )


def check_fitted(estimator: Any) -> None:
    """Refuse a model that was not fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise UnsupportedModelError(
            f"{type(estimator).__name__}: the model is not fitted; call fit() first"
        ) from None


def _names(estimator: Any, where: str) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        n_features = splits.check_feature_count(where, int(estimator.n_features_in_))
        return splits.default_names(n_features)
    return [str(name) for name in names]


def _read_forest(estimator: Any, where: str) -> Ensemble:
    members = estimator.estimators_
    trees: list[Tree] = []
    n_outputs = 1
    for i, member in enumerate(members):
        values = _leaf_values(member, f"{where}: tree {i}")
        n_outputs = values.shape[1]
        trees += build(member.tree_, values, f"{where}: tree {i}", estimator.n_features_in_)
    base = (0.0,) * n_outputs
    return float32_ensemble(estimator, where, trees, base, divisor=len(members), first=members[0])


def _read_single_tree(estimator: Any, where: str) -> Ensemble:
    values = _leaf_values(estimator, where)
    trees = build(estimator.tree_, values, where, estimator.n_features_in_)
    return float32_ensemble(estimator, where, trees, (0.0,) * values.shape[1], first=estimator)


def _leaf_values(estimator: Any, where: str) -> NDArray[np.float64]:
    """Return what each node of a tree would predict, one column per sum."""
    if not hasattr(estimator, "classes_"):
        numbers: NDArray[np.float64] = estimator.tree_.value[:, :, 0]
        return numbers
    values: NDArray[np.float64] = estimator.tree_.value[:, 0, :]
    leaves = values[estimator.tree_.children_left < 0]
    with np.errstate(all="ignore"):
        is_share = (np.abs(leaves.sum(axis=1) - 1.0) <= 1e-6) & (leaves >= 0.0).all(axis=1)
    if not is_share.all():
        shown = ", ".join(f"{value:g}" for value in leaves[int(is_share.argmin())][:4])
        raise ModelFormatError(
            f"{where}: a leaf holds {shown}, which are not the shares of classes; scikit-learn "
            "before 1.3 stored other numbers: train the model again"
        )
    return values[:, 1:] if values.shape[1] == 2 else values


def _read_gradient_boosting(estimator: Any, where: str) -> Ensemble:
    base = _initial_margins(estimator, where)
    trees = [
        tree
        for i, stage in enumerate(estimator.estimators_)
        for output, member in enumerate(stage)
        for tree in build(
            member.tree_,
            member.tree_.value[:, 0, :] * estimator.learning_rate,
            f"{where}: stage {i}, tree {output}",
            estimator.n_features_in_,
            first_output=output,
        )
    ]
    return float32_ensemble(estimator, where, trees, base)


def _initial_margins(estimator: Any, where: str) -> tuple[float, ...]:
    """Return what boosting starts from, if that is the same for every input."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    init = estimator.init_
    if isinstance(init, str) and init == "zero":
        return (0.0,) * int(estimator.estimators_.shape[1])
    if not isinstance(init, DummyClassifier | DummyRegressor):
        raise UnsupportedModelError(
            f"{where}: init={type(init).__name__}: boosting that starts from another model"
        )
    if init.strategy not in _CONSTANT_STRATEGIES:
        raise UnsupportedModelError(f"{where}: init with the random strategy {init.strategy!r}")
    anywhere = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return tuple(float(margin) for margin in estimator._raw_predict_init(anywhere)[0])


def _read_hist_gradient_boosting(estimator: Any, where: str) -> Ensemble:
    return hist_gradient_boosting.read(estimator, _names(estimator, where), where)


_READERS: dict[str, Callable[[Any, str], Ensemble]] = {
    "tree": _read_single_tree,
    "forest": _read_forest,
    "gradient_boosting": _read_gradient_boosting,
    "hist_gradient_boosting": _read_hist_gradient_boosting,
}


def float32_ensemble(
    estimator: Any,
    where: str,
    trees: Sequence[Tree],
    base: tuple[float, ...],
    *,
    divisor: int = 1,
    first: Any = None,
) -> Ensemble:
    """Return the ensemble of plain trees; ``first`` is the tree that says if NaN is accepted."""
    names = _names(estimator, where)
    return Ensemble(
        features=splits.make_features(where, names, can_be_missing=_takes_missing(first)),
        trees=tuple(trees),
        base=base,
        divisor=divisor,
        input_dtype="float32",
    )


def _takes_missing(tree: Any) -> bool:
    """Tell whether a tree's library accepts missing values."""
    if tree is None:
        return False
    sample = np.zeros((1, tree.n_features_in_), dtype=np.float32)
    return bool(tree._support_missing_values(sample))


def build(
    tree: Any,
    values: NDArray[np.float64],
    where: str,
    n_features: int,
    *,
    first_output: int = 0,
) -> list[Tree]:
    """Return one tree per column of ``values``: the same tests, other leaves."""
    return splits.trees_from_arrays(
        where,
        values=values,
        first_output=first_output,
        n_features=n_features,
        feature=tree.feature,
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=np.asarray(tree.missing_go_to_left) != 0,
        operator="<=",
        dtype="float32",
    )
