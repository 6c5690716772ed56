"""A repaired model keeps its limit, is read by its library, and changes as little as it can."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import effort
import numpy as np
import oracle
import pytest
from conftest import Command
from numpy.typing import NDArray

import xcount
from xcount.errors import MissingExtraError, QueryError, UnsupportedModelError
from xcount.model.examples import adult_held_out_path, adult_one_hot_paths
from xcount.problem.problem import Problem
from xcount.repairs import program
from xcount.repairs.certify import within_limits
from xcount.repairs.objective import RIDGE, Objective, objective_of
from xcount.repairs.pair_bounds import PairBounds, components, pair_bounds
from xcount.repairs.program import Limit, smallest_change
from xcount.repairs.search import Search
from xcount.repairs.writers import writer_of
from xcount.repairs.writers.writer import slot_values, slots_of

pytest.importorskip("clarabel")
xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

Rows = NDArray[np.float64]
MODEL, DOMAIN = map(str, adult_one_hot_paths())
PEOPLE = str(adult_held_out_path())
ADULT = (MODEL, "--domain", DOMAIN, "--sensitive", "sex", "--data", PEOPLE)


def seeds(number: int) -> list[int]:
    """Return the seeds of that many random models, as far as the profile tries them."""
    return [effort.FIRST_SEED + i for i in range(effort.n_examples(number))]


def random_rows(rng: np.random.Generator, n_features: int, n_rows: int = 80) -> Rows:
    """Return rows of small whole numbers: trees have few guards on them."""
    return rng.integers(0, 4, size=(n_rows, n_features)).astype(np.float64)


def labels_of(rng: np.random.Generator, rows: Rows, task: str) -> Rows:
    """Return labels that depend on all features, with noise."""
    score = rows @ rng.normal(size=rows.shape[1]) + rows[:, 0] * rows[:, -1]
    score = score + rng.normal(size=len(rows))
    return score if task == "regression" else (score > np.median(score)).astype(np.float64)


def trained_xgboost(seed: int, path: Path) -> tuple[str, Rows]:
    """Train a small XGBoost model, write it, and return its file and rows."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, int(rng.integers(2, 5)))
    task = str(rng.choice(["regression", "binary"]))
    parameters = {
        "objective": {"regression": "reg:squarederror", "binary": "binary:logistic"}[task],
        "max_depth": int(rng.integers(1, 5)),
        "eta": 0.5,
        "seed": seed,
        "nthread": 1,
        "booster": str(rng.choice(["gbtree", "gbtree", "dart"])),
        "rate_drop": 0.3,
        "verbosity": 0,
    }
    if parameters["booster"] == "gbtree":
        del parameters["rate_drop"]
    matrix = xgboost.DMatrix(rows, label=labels_of(rng, rows, task))
    booster = xgboost.train(parameters, matrix, int(rng.integers(1, 6)))
    name = path / f"model-{seed}.{'json' if seed % 2 else 'ubj'}"
    booster.save_model(name)
    return str(name), rows


def trained_lightgbm(seed: int, path: Path) -> tuple[str, Rows]:
    """Train a small LightGBM model, some with categories, write it, and return file and rows."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, int(rng.integers(2, 5)))
    task = str(rng.choice(["regression", "binary"]))
    categorical = [0] if seed % 3 == 0 else []
    parameters = {
        "objective": task,
        "num_leaves": int(rng.integers(2, 9)),
        "min_data_in_leaf": 2,
        "min_data_per_group": 2,
        "cat_smooth": 1,
        "verbose": -1,
        "num_threads": 1,
        "seed": seed,
        "boosting": str(rng.choice(["gbdt", "rf"])),
        "bagging_freq": 1,
        "bagging_fraction": 0.7,
    }
    data = lightgbm.Dataset(
        rows,
        labels_of(rng, rows, task),
        categorical_feature=categorical,
        feature_name=list("abcd")[: rows.shape[1]],
    )
    booster = lightgbm.train(parameters, data, int(rng.integers(1, 6)))
    name = path / f"model-{seed}.txt"
    booster.save_model(str(name))
    return str(name), rows


def asked_of(seed: int, n_features: int) -> tuple[list[int], int | None]:
    """Return random sensitive features and a distance."""
    rng = np.random.default_rng(seed + 1)
    size = int(rng.integers(1, min(2, n_features) + 1))
    sensitive = sorted(rng.choice(n_features, size, replace=False).tolist())
    return sensitive, None if rng.random() < 0.5 else int(rng.integers(1, 3))


def gap_of(seed: int, model: str, sensitive: list[int], distance: int | None) -> Fraction:
    """Return a gap below the largest change of the margin, or 0."""
    ensemble = xcount.load(model)
    found = oracle.neighbourhoods(
        ensemble, sensitive, distance, False, lambda p: oracle.margins(ensemble, p, None)[0]
    )
    largest = max((abs(own - x) for own, others in found.values() for x in others), default=0)
    part = np.random.default_rng(seed + 2).choice([0.0, 0.1, 0.5, 0.9])
    return Fraction(f"{float(largest) * float(part):.4f}")


def check_repair(seed: int, model: str, rows: Rows, folder: Path) -> None:
    """Repair a model; the oracle finds no sensitive region, and the library predicts the same."""
    sensitive, distance = asked_of(seed, rows.shape[1])
    gap = gap_of(seed, model, sensitive, distance)
    output = folder / f"repaired-{seed}{Path(model).suffix}"
    result = xcount.repair(
        model,
        sensitive=sensitive,
        gap=str(gap),
        distance=distance,
        data=rows,
        output=output,
    )
    assert result.proved
    assert result.output == str(output)
    repaired = xcount.load(output, check=rows)  # the library reads it and predicts the same
    found = oracle.sensitive_regions(repaired, sensitive, gap, distance)
    assert not any(found.values())
    same_tests(xcount.load(model), repaired)


def same_tests(before: xcount.Ensemble, after: xcount.Ensemble) -> None:
    """Check that nothing but the values of leaves has changed."""
    assert before.features == after.features
    assert before.base == after.base
    for old, new in zip(before.trees, after.trees, strict=True):
        for name in ("feature", "left", "right", "missing_left", "zero_side"):
            assert np.array_equal(getattr(old, name), getattr(new, name))
        assert np.array_equal(old.threshold, new.threshold, equal_nan=True)
        assert old.left_categories == new.left_categories


@pytest.mark.parametrize("seed", seeds(40))
def test_xgboost_models_keep_their_limit(seed: int, tmp_path: Path) -> None:
    """JSON and UBJSON, gbtree and DART, regression and log-odds; gaps down to 0."""
    model, rows = trained_xgboost(seed, tmp_path)
    check_repair(seed, model, rows, tmp_path)


@pytest.mark.parametrize("seed", seeds(40))
def test_lightgbm_models_keep_their_limit(seed: int, tmp_path: Path) -> None:
    """Boosting and random forests, numbers and categories."""
    model, rows = trained_lightgbm(seed, tmp_path)
    check_repair(seed, model, rows, tmp_path)


def bounds_and_objective(
    model: str, rows: Rows, sensitive: list[int], distance: int | None
) -> tuple[NDArray[np.float64], PairBounds, Objective]:
    """Return what the program is made of, for one question."""
    writer = writer_of(model)
    ensemble, slots = writer.ensemble, slots_of(writer.numbered())
    query = xcount.Query.of(ensemble, sensitive, 1, distance=distance)
    problem = Problem(ensemble, xcount.Grid.of(ensemble), query)
    bounds = pair_bounds(problem, slots, 0)
    linked = components(writer.n_slots, [bounds]) >= 0
    objective = objective_of(ensemble, slots, 0, rows, linked, may_compensate=True, seed=0)
    return slot_values(ensemble, slots, writer.n_slots), bounds, objective


@pytest.mark.parametrize("seed", seeds(20))
def test_bounds_are_at_least_every_change(seed: int, tmp_path: Path) -> None:
    """The bound of the sum is no smaller than the largest change that enumeration finds."""
    model, rows = trained_xgboost(seed, tmp_path)
    sensitive, distance = asked_of(seed, rows.shape[1])
    values, bounds, _ = bounds_and_objective(model, rows, sensitive, distance)
    ensemble = xcount.load(model)
    found = oracle.neighbourhoods(
        ensemble, sensitive, distance, False, lambda p: oracle.margins(ensemble, p, None)[0]
    )
    changes = [float(abs(a - b)) for a, others in found.values() for b in others]
    assert bounds.largest_sum(values) >= max(changes, default=0.0) - 1e-9
    if ensemble.n_trees == 1:
        assert bounds.largest_sum(values) <= max(changes, default=0.0) + 1e-9


@pytest.mark.parametrize("seed", seeds(15))
def test_no_general_solver_finds_a_smaller_change(seed: int, tmp_path: Path) -> None:
    """SLSQP, from the repaired model and from the model itself, finds nothing cheaper."""
    from scipy.optimize import minimize

    model, rows = trained_xgboost(2 * seed + 1, tmp_path)
    values, bounds, objective = bounds_and_objective(model, rows, [0], None)
    largest = bounds.largest_sum(values)
    kept = objective.kept
    if largest == 0 or len(kept) > 60:
        return
    limit = largest / 3
    ours = smallest_change(objective, values, [Limit(bounds, limit)])
    assert bounds.largest_sum(values + ours) <= limit + 1e-6 * largest

    def room(change: NDArray[np.float64]) -> float:
        whole = np.zeros(len(values))
        whole[kept] = change
        return limit - bounds.largest_sum(values + whole)

    for start in (ours[kept], np.zeros(len(kept))):
        other = minimize(
            lambda x: x @ objective.gram @ x,
            start,
            jac=lambda x: 2 * objective.gram @ x,
            constraints=[{"type": "ineq", "fun": room}],
            method="SLSQP",
            options={"maxiter": 200},
        )
        if room(other.x) >= -1e-7 * largest:
            assert objective.cost(ours) <= other.fun * (1 + 1e-4) + 1e-9


@pytest.mark.parametrize("seed", seeds(20))
def test_rounding_moves_leaves_by_a_hair(seed: int, tmp_path: Path) -> None:
    """Values whose bounds reach the limit to the last digit keep it as float32 numbers, too."""
    model, rows = trained_xgboost(seed, tmp_path)
    values, bounds, objective = bounds_and_objective(model, rows, [0], None)
    largest = bounds.largest_sum(values)
    if largest == 0:
        return
    limit = Limit(bounds, float(np.float32(largest / 4)))
    found = values + smallest_change(objective, values, [limit])
    linked = components(len(values), [bounds])
    kept = within_limits(found, [limit], linked, objective, writer_of(model).rounded)
    assert bounds.largest_sum(kept) <= limit.limit
    assert np.abs(kept - found).max() <= 1e-4 * np.abs(found).max()


def test_the_cost_is_the_squared_change_of_predictions(tmp_path: Path) -> None:
    """By a matrix of rows and leaves, and by predictions of the changed ensemble."""
    model, rows = trained_lightgbm(1, tmp_path)
    values, _, objective = bounds_and_objective(model, rows, [0], None)
    ensemble = xcount.load(model)
    change = np.zeros(len(values))
    change[objective.kept] = np.random.default_rng(0).normal(size=len(objective.kept))
    writer = writer_of(model)
    moved = xcount.load(_written(tmp_path, writer.data(values + change)))
    sums = (moved.predict(rows) - ensemble.predict(rows))[:, 0] * ensemble.divisor
    if ensemble.probability == "sigmoid":
        p = 1 / (1 + np.exp(-ensemble.slope * ensemble.predict(rows)[:, 0]))
        weights = np.maximum(p * (1 - p), 1e-3)
    else:
        weights = np.ones(len(rows))
    expected = (weights @ sums**2 + RIDGE * weights.mean() * change @ change) / weights.sum()
    assert objective.cost(change) == pytest.approx(expected)


def _written(folder: Path, data: bytes) -> Path:
    path = folder / "written.txt"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("seed", seeds(10))
def test_flips_are_gone(seed: int, tmp_path: Path) -> None:
    """Differences shrink until no decision depends on the sensitive features."""
    model, rows = trained_xgboost(seed, tmp_path)
    ensemble = xcount.load(model)
    cutoff = Fraction(f"{float(np.median(ensemble.predict(rows))):.3f}")
    cutoff = Fraction(0) if ensemble.task == "binary" else cutoff
    output = tmp_path / f"repaired{Path(model).suffix}"
    result = xcount.repair(
        model, sensitive=0, flip=True, cutoff=str(cutoff), data=rows, output=output
    )
    assert result.proved
    # The base score is part of the margin, and no leaf moves it.
    found = oracle.changing_regions(xcount.load(output), [0], None, flip=True, cutoff=cutoff)
    assert not any(found.values())
    assert 0 <= result.factor <= 1


@pytest.mark.parametrize("seed", seeds(10))
def test_probabilities_move_by_no_more_than_the_gap(seed: int, tmp_path: Path) -> None:
    """The gap in log-odds that stands for a probability gap is enough."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 3)
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "eta": 1.0, "nthread": 1},
        xgboost.DMatrix(rows, label=labels_of(rng, rows, "binary")),
        3,
    )
    result = xcount.repair(booster, sensitive=[0], probability_gap="0.05", data=rows)
    assert result.proved
    repaired = xcount.load(result.model)
    found = oracle.changing_regions(repaired, [0], None, probability_gap=Fraction("0.05"))
    assert not any(found.values())


def test_classes_are_repaired_together_or_alone() -> None:
    """A gap of one class leaves the others' trees alone; a softmax gap limits all of them."""
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 3)
    classes = rng.integers(0, 3, len(rows))
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1).fit(rows, classes)
    alone = xcount.repair(model, sensitive=[0], gap="0.1", class_=1, data=rows)
    assert alone.proved
    before, after = xcount.load(model), xcount.load(alone.model)
    for old, new in zip(before.trees, after.trees, strict=True):
        assert old.output == 1 or np.array_equal(old.value, new.value)
    together = xcount.repair(model, sensitive=[0], probability_gap="0.05", class_=1, data=rows)
    assert together.proved
    repaired = xcount.load(together.model)
    found = oracle.changing_regions(repaired, [0], None, probability_gap=Fraction("0.05"), class_=1)
    assert not any(found.values())
    flips = xcount.repair(model, sensitive=[0], flip=True, data=rows)
    assert flips.proved
    found = oracle.changing_regions(xcount.load(flips.model), [0], None, flip=True)
    assert not any(found.values())


def test_live_models_come_back_live() -> None:
    """Of the same class, with the library's own predictions as we say; the old one is as it was."""
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 3)
    labels = labels_of(rng, rows, "binary")
    for model in (
        xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1).fit(rows, labels),
        lightgbm.LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1).fit(
            rows, labels
        ),
    ):
        old = xcount.load(model).predict(rows)
        result = xcount.repair(model, sensitive=[0], gap="0.1", data=rows)
        assert result.proved
        assert type(result.model) is type(model)
        xcount.load(result.model, check=rows)
        assert np.array_equal(xcount.load(model).predict(rows), old)
        assert result.model.predict(rows).shape == (len(rows),)


def test_several_questions_are_kept_at_once(tmp_path: Path) -> None:
    """Limits of different features, distances and kinds."""
    model, rows = trained_xgboost(1, tmp_path)
    output = tmp_path / "repaired.json"
    result = xcount.repair(
        model,
        sensitive=0,
        gap="0.3",
        also=["1: gap 0.2, distance 1", {"sensitive": [0, 1], "gap": "0.4"}],
        data=rows,
        output=output,
    )
    assert result.proved
    assert len(result.questions) == 3
    repaired = xcount.load(output)
    for sensitive, gap, distance in (([0], "0.3", None), ([1], "0.2", 1), ([0, 1], "0.4", None)):
        found = oracle.sensitive_regions(repaired, sensitive, Fraction(gap), distance)
        assert not any(found.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_labelled_rows_are_tested_as_scikit_learn_does(seed: int, tmp_path: Path) -> None:
    """Log-loss, AUC, accuracy and RMSE of the files themselves, beside the alternatives."""
    metrics = pytest.importorskip("sklearn.metrics")
    model, rows = trained_lightgbm(seed, tmp_path)
    ensemble = xcount.load(model)
    labels = labels_of(np.random.default_rng(9), rows, ensemble.task)
    table = {**dict(zip(ensemble.feature_names, rows.T, strict=True)), "y": labels}
    output = tmp_path / "repaired.txt"
    result = xcount.repair(
        model, sensitive=0, gap=0, data=table, test=table, target="y", output=output
    )
    assert result.test is not None
    for path, found in ((model, result.test.before), (str(output), result.test.after)):
        booster = lightgbm.Booster(model_file=path)
        predicted = np.asarray(booster.predict(rows))
        if ensemble.task == "binary":
            assert found.log_loss == pytest.approx(metrics.log_loss(labels, predicted))
            assert found.auc == pytest.approx(metrics.roc_auc_score(labels, predicted))
            assert found.accuracy == pytest.approx(np.mean((predicted > 0.5) == labels))
        else:
            assert found.rmse == pytest.approx(np.sqrt(np.mean((predicted - labels) ** 2)))
    assert result.test.shrunk is not None
    has_categories = any(feature.is_categorical for feature in ensemble.features)
    assert (result.test.dropped is None) == has_categories
    assert xcount.RepairResult.from_dict(result.to_dict()).test == result.test


def test_decisions_that_change_are_counted(tmp_path: Path) -> None:
    """Those that rise above the cut-off and those that fall below it, by the library."""
    rng = np.random.default_rng(5)
    rows = random_rows(rng, 3, 300)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1)
    model.fit(rows, labels_of(rng, rows, "binary"))
    result = xcount.repair(model, sensitive=[0], gap=0, data=rows)
    before, after = model.predict(rows), result.model.predict(rows)
    assert result.moves is not None
    assert result.moves.raised == int((after > before).sum())
    assert result.moves.lowered == int((after < before).sum())
    assert result.moves.raised + result.moves.lowered > 0


def test_a_limit_that_is_met_changes_nothing(tmp_path: Path) -> None:
    """The model is written as it is, and said to be."""
    model, rows = trained_xgboost(1, tmp_path)
    output = tmp_path / "repaired.json"
    result = xcount.repair(model, sensitive=0, gap=1e6, data=rows, output=output)
    assert (result.method, result.n_moved, result.proved) == ("unchanged", 0, True)
    assert "met already" in result.notes[0]
    before, after = xcount.load(model), xcount.load(output)
    assert all(map(np.array_equal, *([t.value for t in e.trees] for e in (before, after))))


def test_a_program_that_is_too_large_is_shrunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shrunk model has the same proof, and the note says so."""
    model, rows = trained_xgboost(1, tmp_path)
    monkeypatch.setattr(program, "_BYTES_OF_ENTRY", 10**12)
    output = tmp_path / "repaired.json"
    result = xcount.repair(model, sensitive=0, gap="0.1", data=rows, output=output)
    assert (result.method, result.proved) == ("shrink", True)
    assert "too many for the memory limit" in result.notes[0]
    found = oracle.sensitive_regions(xcount.load(output), [0], Fraction("0.1"), None)
    assert not any(found.values())


def test_shrinking_scales_every_change(tmp_path: Path) -> None:
    """The share of a model shrunk by a factor is the share of the model at gap / factor."""
    model, rows = trained_lightgbm(1, tmp_path)
    writer = writer_of(model)
    ensemble = writer.ensemble
    problem = Problem(ensemble, xcount.Grid.of(ensemble), xcount.Query.of(ensemble, 0, "0.1"))
    search = Search(
        writer,
        ensemble,
        writer.numbered(),
        [problem],
        rows,
        xcount.counters.settings.Settings(),
        lambda *_: True,
    )
    shrunk = search._shrunk(search.before, search._output(0), 0.5)
    path = _written(tmp_path, writer.data(shrunk))
    for gap in ("0.05", "0.1", "0.2"):
        half = xcount.count(path, sensitive=0, gap=gap).count
        assert half == xcount.count(model, sensitive=0, gap=str(2 * Fraction(gap))).count


def test_the_command_writes_a_proved_model(xcount_command: Command, tmp_path: Path) -> None:
    """A domain with one-hot columns and rules; the JSON is the contract's."""
    output = tmp_path / "repaired.json"
    run = xcount_command("repair", *ADULT, "--gap", "0.5", "--output", output, "--json")
    assert run.status == 0, run.err
    data = json.loads(run.out)
    assert (data["before"]["count"], data["before"]["exact"]) == (154770, True)
    assert (data["after"]["count"], data["after"]["share"], data["after"]["exact"]) == (0, 0, True)
    assert data["output"] == str(output)
    assert data["seconds"] > 0
    again = xcount.count(output, domain=DOMAIN, sensitive="sex", gap="0.5")
    assert (again.count, again.exact) == (0, True)
    assert xcount.RepairResult.from_dict(data).to_dict() == data


def test_the_command_says_what_changed(xcount_command: Command, tmp_path: Path) -> None:
    """A card for the question, one for the model."""
    run = xcount_command("repair", *ADULT, "--gap", "0.5", "--output", tmp_path / "repaired.json")
    assert run.status == 0, run.err
    for words in ("154,770 (exact)", "0 (exact)", "rise above the cut-off", "Wrote"):
        assert words in run.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*ADULT, "--output", "r.json"), "no gap given"),
        ((*ADULT, "--gap", "1"), "give --output FILE"),
        ((*ADULT, "--gap", "1", "--output", "r.json", "--target", "y"), "belong together"),
        ((*ADULT, "--gap", "1", "--output", "-"), "--output needs a file"),
        ((*ADULT, "--gap", "1", "--output", MODEL), "is an input of this command"),
        ((*ADULT, "--gap", "1", "--output", "no/where.json"), "there is no folder"),
        ((MODEL, "--sensitive", "age", "--gap", "1", "--output", "r.json"), "give --data FILE"),
        ((*ADULT, "--gap", "1", "--output", "r.json", "--also", "age 1"), "lacks the colon"),
        ((*ADULT, "--gap", "1", "--output", "r.json", "--also", "age: by 1"), "unknown word 'by'"),
    ],
)
def test_mistakes_are_told(
    xcount_command: Command,
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line, exit status 2, and nothing written."""
    monkeypatch.chdir(tmp_path)
    run = xcount_command("repair", *arguments)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_format_without_a_writer_is_told(tmp_path: Path) -> None:
    """The message names the formats that can be written."""
    dump = tmp_path / "dump.json"
    dump.write_text('[{"nodeid": 0, "leaf": 1.5}]')
    with pytest.raises(UnsupportedModelError, match="XCount writes XGBoost JSON"):
        xcount.repair(dump, sensitive="f0", gap=80, data=np.zeros((1, 2)))


def test_python_needs_data_and_exact_leaves() -> None:
    """Data is needed, and a precision means nothing."""
    with pytest.raises(QueryError, match="--data FILE"):
        xcount.repair(MODEL, sensitive="age", gap=1)
    with pytest.raises(QueryError, match="leave out --precision"):
        xcount.repair(MODEL, sensitive="age", gap=1, precision=3, data=PEOPLE)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the solver, the message says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'xcount\[repair\]'"):
        xcount.repair(MODEL, sensitive="age", gap=1, data=PEOPLE)
