"""Groups of a table: equal to Fairlearn's MetricFrame, and to counting rows one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trained

import xcount
from xcount.answers.people.group_table import Groups
from xcount.cli.app import run
from xcount.errors import QueryWarning
from xcount.model.examples import figure_1

pd = pytest.importorskip("pandas")
MODELS = {
    "xgboost": lambda: trained.boosted(2),
    "lightgbm": trained.light,
    "forest": trained.forest,
}


def with_groups(rows: Any) -> Any:
    """Return a table with two more columns, in which some groups are unknown."""
    rng = np.random.default_rng(8)
    found = rows.copy()
    found["sex"] = rng.choice(
        np.array(["Female", "Male", None], object), len(rows), p=[0.45, 0.45, 0.1]
    )
    found["race"] = rng.choice(["A", "B", ""], len(rows), p=[0.7, 0.2, 0.1])
    return found


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_rates_are_those_of_fairlearn(make: Callable[[], trained.Trained], tmp_path: Path) -> None:
    """Rates, ratios and shares of sensitive rows, by column and by both, from CSV or memory."""
    metrics = pytest.importorskip("fairlearn.metrics")
    given = make()
    table = with_groups(given.rows)
    decided = given.decide(given.rows)
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    asked: dict[str, Any] = {"sensitive": "a", "flip": True, "groups": ["sex", "race"]}
    result = xcount.count(given.model, **asked, data=table)
    again = xcount.count(given.model, **asked, data=str(path))
    assert result.groups == again.groups
    groups = result.groups
    assert groups is not None
    sensitive = np.isin(np.arange(len(table)), result.measures["rows"].details["sensitive_rows"])
    for own in groups.tables:
        known = table[list(own.columns)].replace("", None).notna().all(axis=1).to_numpy()
        assert own.unknown.n_rows == np.count_nonzero(~known)
        assert own.unknown.n_favourable == decided[~known].sum()
        frame = metrics.MetricFrame(
            metrics={"n": metrics.count, "rate": metrics.selection_rate},
            y_true=sensitive[known],
            y_pred=decided[known],
            sensitive_features=table.loc[known, list(own.columns)],
        )
        moved = metrics.MetricFrame(
            metrics=metrics.selection_rate,
            y_true=sensitive[known],
            y_pred=sensitive[known].astype(int),
            sensitive_features=table.loc[known, list(own.columns)],
        )
        for group in own.groups:
            key = group.values if len(group.values) > 1 else group.values[0]
            assert group.n_rows == frame.by_group["n"][key]
            assert group.rate == pytest.approx(frame.by_group["rate"][key])
            assert group.share == pytest.approx(moved.by_group[key])
        assert own.ratio == pytest.approx(frame.ratio(method="between_groups")["rate"])
    assert [own.columns for own in groups.tables] == [("sex",), ("race",), ("sex", "race")]
    assert groups.everyone.n_favourable == decided.sum()


def rows_of_figure_1() -> dict[str, list[Any]]:
    """Return six rows, and a group of each but one."""
    return {
        "f0": [0, 1, 3, 5, 6, 0],
        "f1": [0, 2, 3, 5, 0, 1],
        "sex": ["F", "M", "F", "M", "", "F"],
    }


def groups_of(**options: Any) -> Groups:
    """Return the groups of a count of these rows."""
    asked: dict[str, Any] = {"sensitive": "f0", "flip": True, "cutoff": 0, **options}
    found = xcount.count(figure_1(), data=rows_of_figure_1(), **asked).groups
    assert isinstance(found, Groups)
    return found


def test_another_favourable_decision_has_the_other_rates() -> None:
    """Below the cut-off are those who are not above it."""
    above, below = (groups_of(groups="sex", favourable=side) for side in ("above", "below"))
    for one, other in zip(above.tables[0].groups, below.tables[0].groups, strict=True):
        assert one.n_favourable is not None
        assert other.n_favourable is not None
        assert one.n_favourable + other.n_favourable == one.n_rows


def test_features_of_the_model_make_groups_too() -> None:
    """A feature groups by its values; an order that is not asked for changes nothing."""
    table = groups_of(groups="f0").table("f0")
    assert [group.values for group in table.groups] == [("0",), ("1",), ("3",), ("5",), ("6",)]
    assert table.groups[0].n_rows == 2
    names = [own.columns for own in groups_of(groups="sex,f0").tables]
    assert names == [("sex",), ("f0",), ("sex", "f0")]


def test_rows_outside_the_domain_are_in_no_group() -> None:
    """They are not asked about, and are numbered."""
    groups = groups_of(groups="sex", where="f1 < 3")
    assert groups.n_outside == 2
    assert sum(g.n_rows for g in groups.tables[0].groups) + groups.tables[0].unknown.n_rows == 4


def test_a_model_without_a_decision_has_no_rates() -> None:
    """Shares of sensitive rows remain."""
    model = replace(figure_1(), task="regression", decides_at=None)
    asked = xcount.count(model, sensitive="f0", gap=80, data=rows_of_figure_1(), groups="sex")
    found = asked.groups
    assert found is not None
    assert found.favourable is None
    assert all(g.rate is None and g.impact_ratio is None for g in found.tables[0].groups)
    assert all(g.share is not None for g in found.tables[0].groups)


def test_groups_outlive_json_journals_and_the_cluster_of_one(tmp_path: Path) -> None:
    """An audit that is resumed, or read again, has the same groups; other groups are counted."""
    journal = tmp_path / "run.jsonl"
    asked: dict[str, Any] = {"flip": True, "cutoff": 0, "data": rows_of_figure_1()}
    first = xcount.audit(figure_1(), **asked, groups="sex", journal=journal)
    again = xcount.audit(figure_1(), **asked, groups="sex", journal=journal, resume=True)
    other = xcount.audit(figure_1(), **asked, journal=journal, resume=True)
    kept = [result.groups for result in first.results]
    assert None not in kept
    assert [result.groups for result in again.results] == kept
    assert [result.groups for result in other.results] == [None, None]
    read = xcount.AuditResult.from_dict(json.loads(first.to_json()))
    assert [result.groups for result in read.results] == kept
    assert "impact_ratio" in first.to_csv().splitlines()[0]
    for page in (first.to_html(), first.to_markdown()):
        assert "Groups by sex" in page
    assert "Groups by sex" in first._repr_html_()


def test_a_diff_has_the_rates_of_both_models_and_the_swap_set_by_group() -> None:
    """The second model's rates are the first one's, less those who lose, plus those who gain."""
    xgboost = pytest.importorskip("xgboost")
    old = trained.boosted(2)
    new = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(old.rows[["b"]], old.rows.b > 0.3)
    table = with_groups(old.rows)
    found = xcount.diff(old.model, new, flip=True, data=table, groups="sex", witnesses=0)
    before, after = old.decide(old.rows), new.predict(old.rows[["b"]])
    assert found.groups is not None
    assert found.other_groups is not None
    for place, sex in enumerate(("Female", "Male")):
        own = (table["sex"] == sex).to_numpy()
        assert found.groups.tables[0].groups[place].n_favourable == before[own].sum()
        assert found.other_groups.tables[0].groups[place].n_favourable == after[own].sum()
        for swap, moved in zip(found.swaps, (after > before, after < before), strict=True):
            assert swap.groups is not None
            assert swap.groups.tables[0].groups[place].n_sensitive == moved[own].sum()
    assert "Groups by sex" in found.to_html()


def test_a_comparison_shows_the_rates_of_its_models() -> None:
    """Each model has its own rates on the same rows."""
    pytest.importorskip("xgboost")
    old, new = trained.boosted(2), trained.light()
    table = with_groups(old.rows)
    found = xcount.compare(
        [old.model, new.model], sensitive="a", flip=True, data=table, groups="sex", timeout=5
    )
    for result, given in zip(found.rows[0].results, (old, new), strict=True):
        assert result is not None
        assert result.groups is not None
        assert result.groups.everyone.n_favourable == given.decide(old.rows).sum()
    assert "Groups by sex" in found.to_html()


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no data": ({"groups": "sex"}, "give it with --data"),
    "a typo": ({"groups": "sexx", "data": rows_of_figure_1()}, "did you mean 'sex'"),
    "too many": (
        {"groups": "id", "data": {"f0": range(300), "f1": range(300), "id": range(300)}},
        "300 different values are too many groups",
    ),
    "no feature": ({"sensitive": "sex", "data": rows_of_figure_1()}, "--group .groups. to see"),
    "a typo of a feature": ({"sensitive": "sx", "data": rows_of_figure_1()}, "unknown feature"),
}


@pytest.mark.parametrize(("options", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told_apart(options: dict[str, Any], said: str) -> None:
    """A column that the model lacks is no typo, and says what groups are for."""
    with pytest.raises(xcount.XCountError, match=said):
        xcount.count(figure_1(), **{"sensitive": "f0", "flip": True, "cutoff": 0, **options})


def test_an_untested_feature_points_to_groups() -> None:
    """Its count is 0, which is not what people look for who ask about it."""
    from xcount.model.examples import ensemble_of

    model = ensemble_of((0, 1.0, -1.0, 1.0), n_features=2)
    data = {"f0": [0.0, 2.0], "f1": [0.0, 1.0]}
    with pytest.warns(QueryWarning, match="f1, .* --group"):
        assert xcount.count(model, sensitive="f1", flip=True, cutoff=0, data=data).count == 0


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a table of the terminal, with unknown rows and all rows at its end."""
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps(
            [
                {
                    "nodeid": 0,
                    "split": "x",
                    "split_condition": 1,
                    "yes": 1,
                    "no": 2,
                    "missing": 1,
                    "children": [{"nodeid": 1, "leaf": -1}, {"nodeid": 2, "leaf": 1}],
                }
            ]
        )
    )
    (tmp_path / "people.csv").write_text("x,sex\n0,F\n2,F\n2,M\n2,\n")
    words = ["--sensitive", "x", "--flip", "--cutoff", "0", "--data", str(tmp_path / "people.csv")]
    assert run(["count", str(model), *words, "--group", "sex"]) == 0
    shown = capsys.readouterr().out
    assert "Groups by sex" in shown
    assert "(unknown)" in shown
    assert "0.500" in shown


def test_numbers_that_are_nearly_equal_are_groups_of_their_own() -> None:
    """Six digits do not tell codes of districts apart."""
    people = {"f0": [1000001.0, 1000002.0, 0.1234567, 0.1234568], "f1": [0.0] * 4}
    result = xcount.count(figure_1(), sensitive="f1", gap=1, data=people, groups=["f0"])
    assert result.groups is not None
    found = [group.values for group in result.groups.table("f0").groups]
    assert found == [("0.1234567",), ("0.1234568",), ("1000001",), ("1000002",)]


def test_many_groups_take_no_longer_than_few() -> None:
    """Rows are counted once for all groups, not once for each of 9,000."""
    rng = np.random.default_rng(3)
    n_rows = 100_000
    people = {
        "f0": rng.choice([0.0, 5.0], n_rows),
        "f1": np.zeros(n_rows),
        "zip": rng.integers(0, 95, n_rows),
        "age": rng.integers(0, 95, n_rows),
    }
    before = time.process_time()
    asked: dict[str, Any] = {"sensitive": "f0", "flip": True, "cutoff": 0, "data": people}
    groups = xcount.count(figure_1(), **asked, groups=["zip", "age"]).groups
    assert time.process_time() - before < 10
    assert groups is not None
    own = groups.table("zip", "age").groups
    assert len(own) == 95**2
    assert sum(group.n_rows for group in own) == n_rows
    is_one = (people["zip"] == 7) & (people["age"] == 11)
    (one,) = [group for group in own if group.values == ("7", "11")]
    assert (one.n_rows, one.n_sensitive) == (is_one.sum(), is_one.sum())
    assert one.n_favourable == (people["f0"][is_one] == 0.0).sum()
