"""Trees as a table with a row for each node: read as the model that the table was written from."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from edge_rows import edge_rows
from numpy.typing import NDArray

import xcount
from xcount.errors import ModelFormatError, QueryError, TableError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import node_tables, parse_model
from xcount.model.tables import read_table

_RNG = np.random.default_rng(4)
X = _RNG.normal(size=(300, 3)).round(2)
X[:, 2] = _RNG.integers(0, 5, 300)
LABELS = (X[:, 0] + X[:, 2] % 2 + (X[:, 1] > 0.4) > 0.5).astype(int)
X[_RNG.random(X.shape) < 0.05] = np.nan
X[_RNG.random(300) < 0.3, 1] = 0.0
HEAD = "tree,node,feature,test,split,left,right,missing,value\n"
FIGURE_1 = HEAD + (
    "a,0,f0,<,4,1,2,left,\na,1,f1,<,3,3,4,left,\na,2,,,,,,,35\na,3,,,,,,,30\na,4,,,,,,,-30\n"
    "b,r,f0,<,3,s,x,left,\nb,s,f1,<,2,y,z,left,\nb,x,,,,,,,-45\nb,y,,,,,,,40\nb,z,,,,,,,-40\n"
)


def _xgboost() -> tuple[pd.DataFrame, Ensemble]:
    xgboost = pytest.importorskip("xgboost")
    kinds = ["q", "q", "c"]
    data = xgboost.DMatrix(X, LABELS, feature_types=kinds, enable_categorical=True)
    options = {"max_depth": 3, "max_cat_to_onehot": 1, "objective": "binary:logistic"}
    booster = xgboost.train(options, data, 6)
    return booster.trees_to_dataframe(), xcount.load(booster)


def _lightgbm(**options: Any) -> tuple[pd.DataFrame, Ensemble]:
    lightgbm = pytest.importorskip("lightgbm")
    options |= {"num_leaves": 7, "verbose": -1, "num_threads": 1, "max_cat_to_onehot": 1}
    options |= {"min_data_per_group": 5, "cat_smooth": 1, "objective": "binary"}
    data = lightgbm.Dataset(X, LABELS, categorical_feature=[2], params=options)
    booster = lightgbm.train(options, data, 6)
    return booster.trees_to_dataframe(), xcount.load(booster)


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Ensemble]]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "zero is missing": lambda: _lightgbm(zero_as_missing=True),
    "nothing is missing": lambda: _lightgbm(use_missing=False),
}


def _by_name(ensemble: Ensemble, known: Ensemble, rows: NDArray[np.float64]) -> Any:
    """Return what a table's ensemble predicts of rows of the model it was written from."""
    columns = [known.feature_names.index(name) for name in ensemble.feature_names]
    return ensemble.predict(rows[:, columns])


@pytest.mark.parametrize("way", ["live", "csv", "parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_libraries_are_the_model(name: str, way: str, tmp_path: Path) -> None:
    """At thresholds, their neighbours, missing values, zeros, all categories; without the base."""
    table, model = TABLES[name]()
    source: Any = table
    if way != "live":
        source = tmp_path / f"trees.{way}"
        if way == "csv":
            table.to_csv(source, index=False)
        else:
            pytest.importorskip("pyarrow")
            if name != "xgboost":  # a column of numbers and categories is text there
                table["threshold"] = table["threshold"].map(str, na_action="ignore")
            table.to_parquet(source)
    ensemble = xcount.load(source)
    rows = edge_rows(model, infinities=True)
    expected = model.predict(rows) - np.array(model.base)
    np.testing.assert_allclose(_by_name(ensemble, model, rows), expected, rtol=1e-12, atol=1e-12)
    for feature in ensemble.features:
        assert feature == model.features[model.feature_names.index(feature.name)]
    assert ensemble.decision == "unknown"


def test_counts_of_a_table_are_those_of_the_model() -> None:
    """A gap does not depend on the base, and a cut-off is given without it."""
    table, model = _xgboost()
    ensemble = xcount.load(table)
    for name in ensemble.feature_names:
        asked: dict[str, Any] = {"sensitive": name, "gap": "0.1"}
        assert xcount.count(ensemble, **asked).count == xcount.count(model, **asked).count
    with pytest.raises(QueryError, match="--cutoff"):
        xcount.count(ensemble, sensitive="f0", flip=True)
    flips = xcount.count(ensemble, sensitive="f0", flip=True, cutoff=str(-model.base[0]))
    assert flips.count == xcount.count(model, sensitive="f0", flip=True).count


def test_the_paper_s_figure_1_in_the_plain_form() -> None:
    """Nodes are called anything; the root is the one that is nobody's child."""
    ensemble = parse_model(FIGURE_1.encode(), "trees.csv")
    assert ensemble.feature_names == ("f0", "f1")
    assert xcount.count(ensemble, sensitive="f0", gap=80, distance=1).count == 2
    backwards = FIGURE_1.splitlines(keepends=True)
    turned = "".join([backwards[0], *reversed(backwards[1:])])
    again = parse_model(turned.encode(), "trees.csv")
    rows = [[a, b] for a in (2, 3, 4, np.nan) for b in (1, 2, 3, np.nan)]
    np.testing.assert_array_equal(again.predict(rows), ensemble.predict(rows))


def _forest() -> Any:
    sklearn = pytest.importorskip("sklearn.ensemble")
    return sklearn.RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, LABELS)


def _plain_and_treeshap(forest: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nodes of a forest in both forms; treeshap's children are rows, counted from 1."""
    plain: list[dict[str, Any]] = []
    shap: list[dict[str, Any]] = []
    for number, member in enumerate(forest.estimators_):
        tree, start = member.tree_, len(shap)
        for node in range(tree.node_count):
            low, high = int(tree.children_left[node]), int(tree.children_right[node])
            is_leaf, name = low < 0, f"x{tree.feature[node]}"
            to_left = bool(tree.missing_go_to_left[node])
            value = tree.value[node, 0, 0] / len(forest.estimators_)
            at = {"tree": number, "node": node}
            leaf = {"value": value}
            side = "left" if to_left else "right"
            split = {"feature": name, "split": tree.threshold[node], "left": low, "right": high}
            plain.append(at | (leaf if is_leaf else split | {"missing": side}))
            at = {"Tree": number, "Node": node, "Cover": 1}
            leaf = {"Prediction": value}
            yes, no = low + start + 1, high + start + 1
            split = {"Feature": name, "Decision.type": "<=", "Split": tree.threshold[node]}
            split |= {"Yes": yes, "No": no, "Missing": yes if to_left else no}
            shap.append(at | (leaf if is_leaf else split))
    return pd.DataFrame(plain), pd.DataFrame(shap)


@pytest.mark.parametrize("form", [0, 1], ids=["plain", "treeshap"])
def test_forests_in_other_forms_predict_as_the_library(form: int) -> None:
    """Float64 comparisons, ``<=``, and missing values to the side that the table names."""
    forest = _forest()
    table = _plain_and_treeshap(forest)[form]
    text = io.StringIO()
    table.to_csv(text, index=form == 1, na_rep="NA" if form == 1 else "")  # as R's write.csv
    ensemble = parse_model(text.getvalue().encode(), "trees.csv")
    columns = [int(name[1:]) for name in ensemble.feature_names]
    rows = np.unique(X.astype(np.float32).astype(np.float64), axis=0)
    predicted = ensemble.predict(rows[:, columns])[:, 0]
    np.testing.assert_allclose(predicted, forest.predict(rows), rtol=1e-12)


def test_categories_by_name_outputs_and_tables_of_rows() -> None:
    """What no test names is one more category; a column ``output`` makes several sums."""
    text = (
        "tree,node,feature,test,split,left,right,value,output\n"
        "0,0,job,in,cook|nurse,1,2,,0\n0,1,,,,,,1.5,0\n0,2,,,,,,-1,0\n"
        "1,0,job,in,nurse|smith,1,2,,1\n1,1,,,,,,2,1\n1,2,,,,,,0.5,1\n"
    )
    ensemble = parse_model(text.encode(), "trees.csv")
    (job,) = ensemble.features
    assert job.labels == ("cook", "nurse", "smith", "(other)")
    assert not job.can_be_missing
    rows = read_table({"job": ["cook", "nurse", "smith", "pilot"]}, ensemble).rows
    assert ensemble.predict(rows).tolist() == [[1.5, 0.5], [1.5, 2.0], [-1.0, 2.0], [-1.0, 0.5]]
    assert xcount.count(ensemble, sensitive="job", gap=2, class_=0).count == 4


def _changed(old: str, new: str) -> bytes:
    assert old in FIGURE_1
    return FIGURE_1.replace(old, new, 1).encode()


def _lost(line: str) -> bytes:
    """Return the table without a row."""
    return _changed(line + "\n", "")


BROKEN = {
    "number": (_changed("<,4", "<,four"), "row 0 (counted from 0): 'split' is 'four', not a numb"),
    "test": (_changed("f0,<", "f0,>"), "the test is '>', expected <, <= or in"),
    "child": (_changed("<,3,3,4", "<,3,3,9"), "tree a: 2 nodes are no node's child"),
    "no child": (_lost("a,2,,,,,,,35"), "row 0 (counted from 0): its child '2' is no node of its"),
    "roots": (_changed("<,4,1,2", "<,4,1,1"), "tree a: 2 nodes are no node's child"),
    "cycle": (_changed("a,2,,,,,,,35", "a,2,f0,<,4,0,3,left,"), "tree a: 0 nodes are no node's"),
    "parents": (_changed("<,3,3,4", "<,3,3,2"), "nodes are no node's child"),
    "twice": (_changed("a,4,", "a,3,"), "tree a: two nodes have the same name"),
    "value": (_changed(",,35", ",,"), "'value' is empty"),
    "infinite": (_changed(",,35", ",,inf"), "leaf value is inf, not a finite"),
    "side": (_changed("1,2,left", "1,2,down"), "'missing' is 'down', expected left, right or"),
    "sometimes": (_changed("1,2,left", "1,2,"), "feature 'f0', some nodes say where missing"),
    "kinds": (_changed("f0,<,4", "f0,in,a|b"), "feature 'f0' has both numbers and categories"),
    "fields": (_changed(",,35", ",35"), "has 8 fields, the first line has 9"),
    "quotes": (_changed(",,35", ',,"35'), "no readable CSV file"),
    "no rows": (HEAD.encode(), "the table has no rows"),
    "no name": (_changed("a,0,", ",0,"), "'tree' is empty"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables_are_refused_with_the_row(name: str) -> None:
    """One line that says where."""
    data, message = BROKEN[name]
    with pytest.raises(ModelFormatError) as caught:
        parse_model(data, "trees.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_words_that_pandas_loses_are_asked_for(tmp_path: Path) -> None:
    """A missing type of None or NaN decides where missing values go."""
    table, _ = _lightgbm()
    table.to_csv(tmp_path / "trees.csv", index=False)
    with pytest.raises(ModelFormatError, match="keep_default_na=False"):
        xcount.load(pd.read_csv(tmp_path / "trees.csv"))


def test_tables_of_rows_are_no_models(tmp_path: Path) -> None:
    """And tables of trees are no rows."""
    people = pd.DataFrame({"age": [30, 40], "sex": ["F", "M"]})
    with pytest.raises(ModelFormatError, match="a table, but not of trees"):
        xcount.load(people)
    pytest.importorskip("pyarrow")
    people.to_parquet(tmp_path / "people.parquet")
    with pytest.raises(ModelFormatError, match=r"a table, but not of trees.*--data"):
        xcount.load(tmp_path / "people.parquet")
    (tmp_path / "trees.csv").write_text(FIGURE_1)
    with pytest.raises(TableError, match="is a model file, not a table"):
        read_table(tmp_path / "trees.csv", xcount.load(tmp_path / "trees.csv"))


PLAIN_HEAD = "tree,node,feature,split,left,right,value\n"
XGBOOST_HEAD = "Tree,Node,ID,Feature,Split,Yes,No,Missing,Gain,Cover,Category\n"
LIGHTGBM_HEAD = (
    "tree_index,node_index,left_child,right_child,split_feature,threshold,decision_type,"
    "missing_type,missing_direction,value\n"
)


def test_large_trees_are_read_in_proportion_to_their_nodes() -> None:
    """A chain of 40,001 nodes; the square of that takes minutes."""
    chain = "".join(f"0,{i},f0,{i},{i + 1},l{i},\n0,l{i},,,,,{i}\n" for i in range(20_000))
    before = time.process_time()
    ensemble = parse_model(f"{PLAIN_HEAD}{chain}0,20000,,,,,1\n".encode(), "trees.csv")
    assert time.process_time() - before < 30
    assert len(ensemble.trees[0].feature) == 40_001


MISREAD = {
    "a cycle beside a leaf": (
        PLAIN_HEAD + "0,0,f0,1,0,2,\n0,1,,,,,1\n0,2,,,,,2\n",
        "2 nodes cannot be reached",
    ),
    "a column twice": (
        PLAIN_HEAD.strip() + ",value\n0,0,,,,,1,5\n",
        "two columns are called 'value'",
    ),
    "another test": (
        LIGHTGBM_HEAD + "0,S0,L0,L1,f0,1,<,None,left,\n0,L0,,,,,,,,1\n0,L1,,,,,,,,2\n",
        "'decision_type' is '<', expected <= or ==",
    ),
    **{
        f"a category {code}": (
            f"{XGBOOST_HEAD}0,0,0-0,f0,,0-1,0-2,0-2,5,1,[{code}]\n"
            "0,1,0-1,Leaf,,,,,1,1,\n0,2,0-2,Leaf,,,,,2,1,\n",
            f"the category '{code}' is no code",
        )
        for code in ("abc", "nan", "inf", "-1", "1.5")
    },
}


@pytest.mark.parametrize("name", MISREAD)
def test_tables_are_not_misread(name: str) -> None:
    """What the form does not say is refused, not taken for something else."""
    text, message = MISREAD[name]
    with pytest.raises(ModelFormatError) as caught:
        parse_model(text.encode(), "trees.csv")
    assert message in str(caught.value)


def test_huge_tables_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file of a few bytes can hold billions of equal rows."""
    pytest.importorskip("pyarrow")
    pd.read_csv(io.StringIO(FIGURE_1)).to_parquet(tmp_path / "trees.parquet")
    monkeypatch.setattr(node_tables, "MAX_NODES", 3)
    with pytest.raises(ModelFormatError, match="nodes; at most 3 are read"):
        xcount.load(tmp_path / "trees.parquet")
