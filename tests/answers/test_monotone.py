"""Monotone models: proofs for constrained ones, counts by definition for others."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_ensemble

import xcount
from xcount.answers.result import Verdict
from xcount.cli import main
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.report.monotone_text import order_words

ROUNDS = 8


def broken(ensemble: Ensemble, feature: int, sign: int, gap: Fraction) -> tuple[int, int]:
    """Return from how many regions a rise of the feature moves the sum the wrong way."""
    axes = [oracle.cells(ensemble, f) for f in range(ensemble.n_features)]
    regions = list(itertools.product(*(range(len(axis)) for axis in axes)))

    def value(region: tuple[int, ...]) -> Fraction:
        return oracle.margin(ensemble, [axes[f][c] for f, c in enumerate(region)], None)

    values = {region: value(region) for region in regions}

    def breaks(region: tuple[int, ...]) -> bool:
        higher = range(region[feature] + 1, len(axes[feature]))
        moved = ((*region[:feature], cell, *region[feature + 1 :]) for cell in higher)
        return any(sign * (values[region] - values[other]) > gap for other in moved)

    return sum(map(breaks, regions)), len(regions)


def numeric_features(ensemble: Ensemble) -> list[int]:
    """Return the features with an order."""
    return [f for f, each in enumerate(ensemble.features) if each.categories is None]


@pytest.mark.parametrize("block", range(4))
def test_counts_are_those_of_the_definition(block: int) -> None:
    """For both orders, of every numeric feature, whether bounds prove it or not."""
    n_proved = n_broken = 0
    for seed in range(block * 25, (block + 1) * 25):
        ensemble = random_ensemble(seed)
        features = numeric_features(ensemble)
        if not features:
            continue
        gap = Fraction(["0", "0.3", "1"][seed % 3])
        found = xcount.monotone(
            ensemble, increasing=features, decreasing=features, gap=gap, missing="none", jobs=1
        )
        expected = [(f, sign) for sign in (1, -1) for f in features]
        for each, (feature, sign) in zip(found.results, expected, strict=True):
            count, n_regions = broken(ensemble, feature, sign, gap)
            assert (seed, each.count, each.exact, each.n_regions) == (seed, count, True, n_regions)
            assert each.holds is (count == 0)
            n_proved, n_broken = n_proved + (count == 0), n_broken + (count > 0)
        assert found.verdict == ("FAIL" if any(r.count for r in found.results) else "PASS")
    assert n_proved > 5
    assert n_broken > 5


def test_a_negated_model_keeps_the_other_order() -> None:
    """Its counts are the same, with the two orders exchanged."""
    for seed in range(20):
        ensemble = random_ensemble(seed)
        trees = tuple(replace(tree, value=-tree.value) for tree in ensemble.trees)
        negated = replace(ensemble, trees=trees)
        both = [xcount.monotone(m, all=True, missing="none", jobs=1) for m in (ensemble, negated)]
        counts = [{(r.feature, r.direction): r.count for r in found.results} for found in both]
        other = {"increasing": "decreasing", "decreasing": "increasing"}
        assert counts[0] == {(f, other[d]): n for (f, d), n in counts[1].items()}


def training_data() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three columns, and labels."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 3))
    noise = rng.normal(scale=0.7, size=400)
    return rows, (rows[:, 0] - rows[:, 1] + np.sin(3 * rows[:, 2]) + noise > 0).astype(int)


def constrained_models() -> dict[str, Any]:
    """Return makers of models that rise with column 0 and fall with column 1."""

    def xgboost() -> Any:
        library = pytest.importorskip("xgboost")
        return library.XGBClassifier(
            n_estimators=ROUNDS, max_depth=3, monotone_constraints=(1, -1, 0)
        ).fit(*training_data())

    def lightgbm() -> Any:
        library = pytest.importorskip("lightgbm")
        return library.LGBMClassifier(
            n_estimators=ROUNDS, num_leaves=8, monotone_constraints=[1, -1, 0], verbose=-1
        ).fit(*training_data())

    def catboost() -> Any:
        library = pytest.importorskip("catboost")
        return library.CatBoostClassifier(
            iterations=ROUNDS,
            depth=3,
            monotone_constraints=[1, -1, 0],
            verbose=False,
            allow_writing_files=False,
        ).fit(*training_data())

    def scikit_learn() -> Any:
        library = pytest.importorskip("sklearn.ensemble")
        return library.HistGradientBoostingClassifier(
            max_iter=ROUNDS, max_depth=3, monotonic_cst=[1, -1, 0]
        ).fit(*training_data())

    return {
        "xgboost": xgboost,
        "lightgbm": lightgbm,
        "catboost": catboost,
        "scikit-learn": scikit_learn,
    }


@pytest.mark.parametrize("library", constrained_models())
def test_constraints_of_libraries_are_proved(library: str) -> None:
    """And a constraint that is broken by hand is found, with a pair that shows it."""
    model = constrained_models()[library]()
    ensemble = xcount.load(model)
    names = ensemble.feature_names
    found = xcount.monotone(ensemble, increasing=names[0], decreasing=names[1], jobs=1)
    assert [r.count for r in found.results] == [0, 0]
    assert all(r.exact and r.confidence == 1 for r in found.results)
    assert found.verdict is Verdict.PASS
    assert xcount.monotone(ensemble, decreasing=names[0], jobs=1).verdict is Verdict.FAIL

    tree = next(t for t in ensemble.trees if 0 in t.feature.tolist())
    values = np.where(tree.feature < 0, -5 * tree.value, tree.value)
    trees = tuple(replace(tree, value=values) if t is tree else t for t in ensemble.trees)
    spoilt = xcount.monotone(replace(ensemble, trees=trees), increasing=names[0], jobs=1)
    assert spoilt.verdict is Verdict.FAIL
    assert spoilt.exit_status == 1
    witness = (spoilt.results[0].witnesses or ())[0]
    assert witness.other[0] > witness.point[0]
    assert witness.other_margin < witness.margin
    assert witness.other[1:] == witness.point[1:]


def test_rows_are_counted() -> None:
    """The rows of a table from which a rise moves the output the wrong way."""
    rows, labels = training_data()
    model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, max_depth=3)
    found = xcount.monotone(model.fit(rows, labels), increasing="f2", data=rows, jobs=1)
    each = found.results[0]
    assert each.n_rows == len(rows)
    ensemble = xcount.load(model)
    guards = sorted({float(x) for t in ensemble.trees for x in t.threshold[t.feature == 2]})
    n_broken = 0
    for row in rows.astype(np.float32).astype(float).tolist():
        own = oracle.margin(ensemble, row, None)
        higher = [[*row[:2], guard] for guard in guards if guard > row[2]]
        n_broken += any(oracle.margin(ensemble, point, None) < own for point in higher)
    assert each.n_sensitive == n_broken > 0


def test_rows_that_the_share_is_not_about_are_said() -> None:
    """Those outside the domain, and those without a place: in JSON, on the card and on the page."""
    model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, max_depth=3)
    ensemble = xcount.load(model.fit(*training_data()))
    rows = {"f0": [0.5, 0.5, 9.0], "f1": [0.5, math.nan, 0.5], "f2": [0.5, 0.5, 0.5]}
    found = xcount.monotone(
        ensemble, increasing="f2", data=rows, where="f0 < 5", missing="none", jobs=1
    )
    each = found.to_dict()["results"][0]
    assert (each["n_rows"], each["outside"], each["left_out"]) == (3, 1, 1)
    assert each["left_out_reasons"] == {"f1 is missing": 1}
    said = "of 2 rows; 1 of 3 is outside the domain; 1 left out: f1 is missing"
    assert said in order_words(found.results[0])
    assert said in found.to_html()


def test_the_page_has_the_pairs_and_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes the page, and names the file."""
    model, page = tmp_path / "model.json", tmp_path / "monotone.html"
    boosted = pytest.importorskip("xgboost").XGBClassifier(n_estimators=20, max_depth=3)
    boosted.fit(*training_data()).save_model(model)
    assert main(["monotone", str(model), "--increasing", "f2", "--html", str(page)]) == 1
    assert "Wrote" in capsys.readouterr().out
    text = page.read_text()
    assert "0 of 1 orders are proved" in text
    assert "f2 increasing, pair 1" in text
    assert "FAIL" in text


def test_mistakes_are_said(tmp_path: Any) -> None:
    """In one clear line."""
    ensemble = random_ensemble(1)
    with pytest.raises(QueryError, match="no feature given"):
        xcount.monotone(ensemble)
    categorical = next(
        m for m in map(random_ensemble, range(100)) if any(f.categories for f in m.features)
    )
    name = next(f.name for f in categorical.features if f.categories)
    with pytest.raises(QueryError, match="have no order"):
        xcount.monotone(categorical, increasing=name)
    with pytest.raises(QueryError, match="unknown feature"):
        xcount.monotone(ensemble, increasing="nobody")


def test_json_says_what_is_promised() -> None:
    """The fields that outside checks rely on."""
    from xcount.model.examples import figure_1

    found = json.loads(xcount.monotone(figure_1(), decreasing="f1", all=True).to_json())
    assert found["verdict"] == "PASS"
    assert found["holds"] == {"f0": "none", "f1": "decreasing"}
    wanted = {"feature", "direction", "count", "low", "high", "exact", "share", "n_regions"}
    assert all(wanted <= each.keys() for each in found["results"])
