"""The model's own decision: the ensemble takes the class that the library's ``predict`` takes.

Leaves are replaced by a few numbers whose sums are exact in float32, so that many rows are ties,
and many miss one by little.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders.check import library_margins

_RNG = np.random.default_rng(3)
X = _RNG.normal(size=(400, 3)).round(1)
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
Y_THREE = Y + (X[:, 2] > 0)
Y_LABELS = np.stack([Y, (X[:, 2] > 0).astype(int)], axis=1)
_LEAVES = np.array([-1.0, -(2.0**-18), 0.0, 2.0**-18, 1.0])
_QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "iterations": 4}


def _leaves(n_leaves: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).choice(_LEAVES, n_leaves, p=[0.1, 0.15, 0.5, 0.15, 0.1])


def _assert_decides_alike(ensemble: Ensemble, decided: Any) -> None:
    """Assert that all decisions are the library's, and that there are ties among them."""
    margins = ensemble.predict(X)
    if ensemble.decision == "cutoff":
        ties = margins[:, 0] == ensemble.decides_at
    else:
        ties = np.diff(np.sort(margins, axis=1)[:, -2:]).ravel() == 0
    assert 5 < ties.sum() < len(X) - 5
    np.testing.assert_array_equal(ensemble.decide(X), np.asarray(decided).astype(int).ravel())


def _assert_probabilities(ensemble: Ensemble, expected: Any, atol: float = 1e-13) -> None:
    margins = ensemble.predict(X)
    if ensemble.probability == "sigmoid":
        margins = 1 / (1 + np.exp(-ensemble.slope * margins))
    elif ensemble.probability == "softmax":
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        margins = powers / powers.sum(axis=1, keepdims=True)
    else:
        assert ensemble.probability == "margin"
    predicted = np.asarray(expected, dtype=np.float64)
    if ensemble.n_outputs == 1 and predicted.ndim == 2:
        predicted = predicted[:, 1]
    np.testing.assert_allclose(margins, predicted.reshape(margins.shape), atol=atol, rtol=0)


def _xgboost_with_ties(model: Any, path: Path, base: str) -> Path:
    document = json.loads(bytes(model.get_booster().save_raw("json")))
    note = '{"_estimator_type": "classifier"}'
    document["learner"]["attributes"] = {"scikit_learn": note}
    for at, tree in enumerate(document["learner"]["gradient_booster"]["model"]["trees"]):
        values = _leaves(len(tree["left_children"]), at)
        leaf = np.array(tree["left_children"]) < 0
        tree["split_conditions"] = np.where(leaf, values, tree["split_conditions"]).tolist()
        tree["base_weights"] = np.where(leaf, values, tree["base_weights"]).tolist()
    document["learner"]["learner_model_param"]["base_score"] = base
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("objective", "base", "decides_at"),
    [
        ("binary:logistic", "5E-1", 0.0),
        ("reg:logistic", "5E-1", 0.0),
        ("binary:hinge", "0E0", 0.0),
        ("binary:logitraw", "5E-1", 0.5),
        ("reg:squarederror", "5E-1", 0.5),
        ("multi:softprob", "[0E0,0E0,0E0]", None),
        ("multi:softmax", "[0E0,0E0,0E0]", None),
    ],
)
def test_xgboost_classifiers(
    objective: str, base: str, decides_at: float | None, tmp_path: Path
) -> None:
    """A wrapper decides where its prediction exceeds 1/2; class 0 and the first class win ties."""
    target = Y_THREE if objective.startswith("multi") else Y
    model = xgboost.XGBClassifier(objective=objective, n_estimators=4, max_depth=3, n_jobs=1)
    path = _xgboost_with_ties(model.fit(X, target), tmp_path / "model.json", base)
    model.load_model(path)
    for source in (path, model):
        ensemble = xcount.load(source)
        assert ensemble.decides_at == decides_at
        _assert_decides_alike(ensemble, model.predict(X))
    booster = xcount.load(model.get_booster())
    if objective.startswith("multi"):
        assert booster.decision == "argmax"
        _assert_probabilities(booster, model.predict_proba(X), atol=1e-6)
    elif objective == "binary:logistic":
        assert (booster.decision, booster.decides_at) == ("cutoff", 0.0)
        _assert_probabilities(booster, model.predict_proba(X), atol=1e-6)
    else:
        decision = "cutoff" if objective.startswith("binary:") else "none"
        assert booster.decision == decision
        assert booster.decides_at == (0.0 if decision == "cutoff" else None)


def test_an_xgboost_classifier_of_counts() -> None:
    """With a log link the decision changes where the prediction exceeds 1/2, at log(1/2)."""
    model = xgboost.XGBClassifier(objective="count:poisson", n_estimators=4, n_jobs=1).fit(X, Y)
    ensemble = xcount.load(model)
    assert ensemble.decides_at == pytest.approx(np.log(0.5), abs=1e-7)
    np.testing.assert_array_equal(ensemble.decide(X), model.predict(X))


@pytest.mark.parametrize(
    ("objective", "target", "options", "task"),
    [
        ("reg:squarederror", X[:, :2], {}, "multitarget"),
        ("reg:squarederror", X[:, :2], {"multi_strategy": "multi_output_tree"}, "multitarget"),
        ("reg:quantileerror", X[:, 0], {"quantile_alpha": [0.1, 0.5, 0.9]}, "multitarget"),
        ("reg:quantileerror", X[:, 0], {"quantile_alpha": 0.5}, "regression"),
        ("reg:logistic", Y, {}, "regression"),
        ("count:poisson", Y, {}, "regression"),
        ("survival:cox", Y, {}, "regression"),
    ],
)
def test_xgboost_regressors_take_no_decision(
    objective: str, target: Any, options: dict[str, Any], task: str
) -> None:
    """Several numbers are no classes."""
    model = xgboost.XGBRegressor(objective=objective, n_estimators=3, max_depth=2, **options)
    ensemble = xcount.load(model.fit(X, target))
    assert (ensemble.task, ensemble.decision, ensemble.decides_at) == (task, "none", None)
    with pytest.raises(ValueError, match="none"):
        ensemble.decide(X)


def test_labels_that_do_not_exclude_each_other() -> None:
    """XGBoost's several targets of a binary objective are a yes or no each."""
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(X, Y_LABELS)
    ensemble = xcount.load(model)
    assert (ensemble.task, ensemble.decision) == ("multilabel", "none")
    _assert_probabilities(ensemble, model.predict_proba(X), atol=1e-6)
    with pytest.raises(UnsupportedModelError, match="MultiLogloss"):
        xcount.load(catboost.CatBoost(_QUIET | {"loss_function": "MultiLogloss"}).fit(X, Y_LABELS))


def test_xgboost_rankers_and_dumps(tmp_path: Path) -> None:
    """A ranker takes no decision; a dump does not tell."""
    ranker = xgboost.XGBRanker(n_estimators=2).fit(X, Y, group=[100] * 4)
    assert (xcount.load(ranker).task, xcount.load(ranker).decision) == ("ranking", "none")
    path = tmp_path / "dump.json"
    ranker.get_booster().dump_model(path, dump_format="json")
    assert (xcount.load(path).decision, xcount.load(path).decides_at) == ("unknown", None)


def _lightgbm_with_ties(booster: Any) -> Any:
    lines = booster.model_to_string().split("\n")
    for at, line in enumerate(lines):
        if line.startswith("leaf_value="):
            values = _leaves(len(line.split()), at)
            lines[at] = "leaf_value=" + " ".join(repr(float(value)) for value in values)
        if line.startswith("tree_sizes="):
            lines[at] = ""
    return lightgbm.Booster(model_str="\n".join(lines))


@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
@pytest.mark.parametrize(
    ("objective", "sigmoid"),
    [
        ("binary", 1.0),
        ("binary", 2.5),
        ("cross_entropy", 1.0),
        ("multiclass", 1.0),
        ("multiclassova", 0.5),
    ],
)
def test_lightgbm_classifiers(
    objective: str, sigmoid: float, boosting: str, tmp_path: Path
) -> None:
    """Class 0 and the first class win ties; the probability comes from the margin's own slope."""
    model = lightgbm.LGBMClassifier(
        objective=objective,
        sigmoid=sigmoid,
        boosting_type=boosting,
        subsample=0.7,
        subsample_freq=1,
        n_estimators=4,
        num_leaves=6,
        verbose=-1,
        n_jobs=1,
    ).fit(X, Y_THREE if objective.startswith("multi") else Y)
    booster = _lightgbm_with_ties(model.booster_)
    model._Booster = booster
    path = tmp_path / "model.txt"
    booster.save_model(path)
    ensemble = xcount.load(model)
    _assert_decides_alike(ensemble, model.predict(X))
    _assert_probabilities(ensemble, model.predict_proba(X))
    for source in (path, booster):
        other = xcount.load(source)
        np.testing.assert_array_equal(other.predict(X), ensemble.predict(X))
        _assert_probabilities(other, booster.predict(X))
        assert (other.task, other.decision) == (ensemble.task, ensemble.decision)


@pytest.mark.parametrize("objective", ["regression", "binary", "multiclass"])
def test_the_margin_of_a_lightgbm_forest_is_the_mean(objective: str, tmp_path: Path) -> None:
    """The library predicts from the mean, though its raw score is the sum; so do witnesses."""
    settings = {"objective": objective, "boosting": "rf", "num_leaves": 6, "verbose": -1}
    settings |= {"bagging_fraction": 0.7, "bagging_freq": 1, "num_threads": 1}
    settings |= {"num_class": 3} if objective == "multiclass" else {}
    target = Y_THREE if objective == "multiclass" else Y
    booster = lightgbm.train(settings, lightgbm.Dataset(X, target), 5)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    raw = np.asarray(booster.predict(X, raw_score=True)).reshape(len(X), -1)
    for source in (booster, path):
        ensemble = xcount.load(source, check=X)
        assert ensemble.divisor == 5
        margins = library_margins(ensemble, source, X)
        np.testing.assert_allclose(margins, raw / 5, atol=1e-14)
        np.testing.assert_allclose(ensemble.predict(X), margins, atol=1e-14)
        if objective == "regression":
            np.testing.assert_allclose(margins.ravel(), booster.predict(X), atol=1e-14)
        else:
            _assert_probabilities(ensemble, booster.predict(X))


def _own_objective(target: Any, predicted: Any) -> Any:
    return predicted - target, np.ones_like(predicted)


@pytest.mark.parametrize(
    ("objective", "decision"),
    [
        *(("regression", "none"), ("regression_l1", "none"), ("huber", "none"), ("fair", "none")),
        *(("poisson", "none"), ("quantile", "none"), ("tweedie", "none")),
        ("cross_entropy_lambda", "none"),
        (_own_objective, "unknown"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_lightgbm_regressors_take_no_decision(objective: Any, decision: str) -> None:
    """Only a named objective says what the sum is."""
    model = lightgbm.LGBMRegressor(objective=objective, n_estimators=2, verbose=-1).fit(X, Y)
    ensemble = xcount.load(model)
    task = "unknown" if decision == "unknown" else "regression"
    assert (ensemble.task, ensemble.decision, ensemble.decides_at) == (task, decision, None)


def test_a_lightgbm_classifier_with_a_regressors_objective_does_not_tell() -> None:
    """It decides somehow, but neither as a regressor nor at log-odds of 0."""
    model = lightgbm.LGBMClassifier(objective="regression", n_estimators=2, verbose=-1).fit(X, Y)
    assert (xcount.load(model).task, xcount.load(model).decision) == ("unknown", "unknown")
    ranker = lightgbm.LGBMRanker(n_estimators=2, verbose=-1).fit(X, Y, group=[100] * 4)
    assert (xcount.load(ranker).task, xcount.load(ranker).decision) == ("ranking", "none")


def test_a_broken_slope_is_refused(tmp_path: Path) -> None:
    """A sigmoid of slope 0 makes no probability."""
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(X, Y)
    text = model.booster_.model_to_string()
    path = tmp_path / "model.txt"
    for slope in ("0", "nan", "-1", "x"):
        path.write_text(text.replace("sigmoid:1", f"sigmoid:{slope}", 1))
        with pytest.raises(ModelFormatError, match="sigmoid"):
            xcount.load(path)


def _catboost_with_ties(model: Any, path: Path) -> Path:
    model.save_model(str(path), format="json")
    document = json.loads(path.read_bytes())
    for at, tree in enumerate(document["oblivious_trees"]):
        values = _leaves(len(tree["leaf_values"]), at)
        tree["leaf_values"] = values.tolist()
    biases = document["scale_and_bias"][1]
    document["scale_and_bias"] = [1.0, [0.0] * len(biases)]
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "loss", ["Logloss", "CrossEntropy", "Focal", "MultiClass", "MultiClassOneVsAll"]
)
def test_catboost_classifiers(loss: str, tmp_path: Path) -> None:
    """Class 0 and the first class win ties."""
    described = "Focal:focal_alpha=0.5;focal_gamma=1" if loss == "Focal" else loss
    model = catboost.CatBoost(_QUIET | {"loss_function": described, "depth": 3})
    model.fit(X, Y_THREE if loss.startswith("Multi") else Y)
    path = _catboost_with_ties(model, tmp_path / "model.json")
    model = catboost.CatBoost().load_model(str(path), format="json")
    for source in (path, model):
        ensemble = xcount.load(source)
        _assert_decides_alike(ensemble, model.predict(X, prediction_type="Class"))
        _assert_probabilities(ensemble, model.predict(X, prediction_type="Probability"))


@pytest.mark.parametrize("threshold", [0.7, 0.25, 1e-3])
def test_the_probability_threshold_of_a_catboost_classifier(
    threshold: float, tmp_path: Path
) -> None:
    """It is the cut-off, as log-odds, of the live model and of its file."""
    model = catboost.CatBoostClassifier(**_QUIET).fit(X, Y)
    model.set_probability_threshold(threshold)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    for source in (path, model):
        ensemble = xcount.load(source)
        assert ensemble.decides_at == pytest.approx(np.log(threshold / (1 - threshold)))
        np.testing.assert_array_equal(ensemble.decide(X), model.predict(X))


def test_odd_probability_thresholds(tmp_path: Path) -> None:
    """At 0 or 1 no margin is the cut-off; what is no probability is refused."""
    model = catboost.CatBoostClassifier(**_QUIET).fit(X, Y)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    document = json.loads(path.read_bytes())
    threshold: Any
    for threshold in ("0.0", 1):
        document["model_info"]["binclass_probability_threshold"] = threshold
        path.write_text(json.dumps(document))
        assert xcount.load(path).decision == "unknown"
    for threshold in ("1.5", "nan", "high", [0.5]):
        document["model_info"]["binclass_probability_threshold"] = threshold
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFormatError, match="binclass_probability_threshold"):
            xcount.load(path)


@pytest.mark.parametrize("loss", ["RMSE", "Quantile", "Poisson", "Tweedie:variance_power=1.5"])
def test_catboost_regressors_take_no_decision(loss: str) -> None:
    """They have one sum, and no cut-off."""
    ensemble = xcount.load(catboost.CatBoostRegressor(**_QUIET, loss_function=loss).fit(X, Y))
    assert (ensemble.task, ensemble.decision, ensemble.decides_at) == ("regression", "none", None)


@pytest.mark.parametrize("target", [Y, Y_THREE], ids=["two", "three"])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_votes_of_forests(kind: Any, target: Any) -> None:
    """Pure leaves and four trees make ties; the first class wins them."""
    model = kind(4, random_state=0, max_features=1, bootstrap=True, max_samples=0.2).fit(X, target)
    ensemble = xcount.load(model)
    assert ensemble.decides_at == (0.5 if target is Y else None)
    _assert_decides_alike(ensemble, model.predict(X))
    _assert_probabilities(ensemble, model.predict_proba(X))


def test_votes_of_a_single_tree() -> None:
    """Half of the training rows of a leaf in each class are a tie too."""
    data = np.repeat(X, 2, axis=0)
    target = np.stack([Y, np.where(X[:, 0] > 0.5, 1 - Y, Y)], axis=1).ravel()
    model = DecisionTreeClassifier(random_state=0).fit(data, target)
    ensemble = xcount.load(model)
    _assert_decides_alike(ensemble, model.predict(X))
    _assert_probabilities(ensemble, model.predict_proba(X))


def test_a_forest_that_knows_one_class() -> None:
    """It always decides for that class."""
    model = RandomForestClassifier(3).fit(X, np.full(len(X), 7))
    ensemble = xcount.load(model)
    assert (ensemble.class_labels, ensemble.decision) == (("7",), "argmax")
    assert not ensemble.decide(X).any()


@pytest.mark.parametrize("target", [Y, Y_THREE], ids=["two", "three"])
def test_gradient_boosting_takes_class_1_at_a_tie(target: Any) -> None:
    """GradientBoostingClassifier.predict compares >= 0, the only one to do so."""
    model = GradientBoostingClassifier(
        init="zero", learning_rate=1.0, n_estimators=4, max_depth=3, random_state=0
    ).fit(X, target)
    for at, member in enumerate(model.estimators_.ravel()):
        leaves = _leaves(member.tree_.node_count, at)
        member.tree_.value[:, 0, 0] = leaves
    ensemble = xcount.load(model)
    assert ensemble.tie_is_above == (target is Y)
    _assert_decides_alike(ensemble, model.predict(X))
    _assert_probabilities(ensemble, model.predict_proba(X))


def test_the_exponential_loss_has_half_log_odds() -> None:
    """Its probability is the sigmoid of twice the margin; it decides at 0 all the same."""
    model = GradientBoostingClassifier(loss="exponential", n_estimators=4).fit(X, Y)
    ensemble = xcount.load(model)
    _assert_probabilities(ensemble, model.predict_proba(X))
    np.testing.assert_array_equal(ensemble.decide(X), model.predict(X))


@pytest.mark.parametrize("target", [Y, Y_THREE], ids=["two", "three"])
def test_hist_gradient_boosting(target: Any) -> None:
    """Class 0 and the first class win ties."""
    model = HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=6).fit(X, target)
    model._baseline_prediction = np.zeros_like(model._baseline_prediction)
    trees = [tree for iteration in model._predictors for tree in iteration]
    for at, tree in enumerate(trees):
        tree.nodes["value"] = _leaves(len(tree.nodes), at)
    ensemble = xcount.load(model)
    _assert_decides_alike(ensemble, model.predict(X))
    _assert_probabilities(ensemble, model.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=2),
        RandomForestRegressor(2),
        GradientBoostingRegressor(n_estimators=2),
        HistGradientBoostingRegressor(max_iter=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learn_regressors_take_no_decision(model: Any) -> None:
    """They have one sum, and no cut-off."""
    ensemble = xcount.load(model.fit(X, X[:, 0]))
    assert (ensemble.task, ensemble.decision, ensemble.decides_at) == ("regression", "none", None)


def test_several_sums_without_a_meaning_decide_nothing() -> None:
    """Outputs of which nobody says that they are classes are not compared."""
    nothing = Ensemble(features=(), trees=(), base=(0.0, 1.0))
    assert (nothing.task, nothing.decision) == ("unknown", "unknown")
    assert Ensemble(features=(), trees=()).decision == "cutoff"
