"""The affected rows: against the libraries' predictions, and against exact sums by hand."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_classifier, random_ensemble
from trained import COLOURS, MAKERS, Trained, moved

import xcount
from xcount.answers.people.affected_table import AffectedTable
from xcount.cli import main
from xcount.errors import QueryError
from xcount.report.rows_file import csv_of, parquet_of

pd = pytest.importorskip("pandas")


def value_of(words: str) -> Any:
    """Return the value in words such as ``a = 3``."""
    text = words.partition(" = ")[2]
    return text if text in COLOURS else float(text)


def holds(words: str, value: Any) -> bool:
    """Tell whether a value lies in a cell that is given in words."""
    if not words:
        return False
    if " in {" in words:
        return str(value) in words.partition("{")[2].rstrip("}").split(", ")
    if " = " in words:
        return bool(str(value) == value_of(words) or value == value_of(words))
    name = next(word for word in words.split() if word in ("a", "k"))
    left, _, right = words.partition(name)
    low = float(left.split()[0]) if left.strip() else -np.inf
    high = float(right.split()[1]) if right.strip() else np.inf
    return bool(low < value < high)  # bounds are rounded in words


def values_of(trained: Trained, name: str) -> list[Any]:
    """Return the values that :func:`trained.moved` gives a column."""
    return [table[name].iloc[0] for table in moved(trained.rows, name)]


@pytest.mark.parametrize("name", ["a", "k"])
@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "three classes"])
def test_best_and_worst_are_those_of_the_library(kind: str, name: str) -> None:
    """The highest and the lowest prediction over all values, the decisions, and the value."""
    trained = MAKERS[kind]()
    more: dict[str, Any] = {"cutoff": "0.05"} if kind == "regression" else {}
    result = xcount.count(trained.model, sensitive=name, flip=True, data=trained.rows, **more)
    found = result.affected()
    others = np.array([trained.output(table) for table in moved(trained.rows, name)])
    decided = np.array([trained.decide(table) for table in moved(trained.rows, name)])
    own, own_decided = trained.output(trained.rows), trained.decide(trained.rows)
    flips = np.flatnonzero((decided != own_decided).any(axis=0))
    assert len(flips) > 3 or (kind, name) in (("regression", "a"), ("CatBoost", "a"))
    assert found["row"].tolist() == flips.tolist()
    column = "margin" if kind == "regression" else "probability"
    values = values_of(trained, name)
    for line in found.to_dict("records"):
        row = line["row"]
        assert value_of(line["now"]) == trained.rows[name][row]
        assert line[column] == pytest.approx(own[row], abs=1e-6)
        assert line[f"best_{column}"] == pytest.approx(others[:, row].max(), abs=1e-6)
        assert line[f"worst_{column}"] == pytest.approx(others[:, row].min(), abs=1e-6)
        for side, end in (("best", others[:, row].max()), ("worst", others[:, row].min())):
            words = line[f"{side}_change"]
            reached = [i for i, value in enumerate(values) if holds(words, value)]
            if words:
                assert others[reached, row] == pytest.approx(end, abs=1e-6)
            else:
                assert own[row] == pytest.approx(end, abs=1e-6)
        if kind != "regression":
            names = ["False", "True"] if kind in ("LightGBM", "forest") else ["0", "1"]
            assert line["decision"] in (names[own_decided[row]], str(own_decided[row]))
            assert line["best_decision"] != line["worst_decision"]


def test_the_favourable_decision_may_be_the_low_side() -> None:
    """With the low side as the favourable decision, best and worst change places."""
    trained = MAKERS["two classes"]()
    asked: dict[str, Any] = {"sensitive": "k", "flip": True, "data": trained.rows, "explain": True}
    high = xcount.count(trained.model, **asked).affected()
    low = xcount.count(trained.model, **asked, favourable="below").affected()
    assert len(high) > 3
    assert low["best_margin"].tolist() == high["worst_margin"].tolist()
    assert low["worst_change"].tolist() == high["best_change"].tolist()


def test_between_classes_the_worst_flips_the_decision() -> None:
    """The class that wins as the row is, at the change that flips it and makes it least likely."""
    trained = MAKERS["three classes"]()
    found = xcount.count(trained.model, sensitive="a", flip=True, data=trained.rows).affected()
    shares = np.array([trained.model.predict_proba(t) for t in moved(trained.rows, "a")])
    own = trained.decide(trained.rows)
    assert len(found) >= 3
    for line in found.to_dict("records"):
        row = line["row"]
        of_class = shares[:, row, own[row]]
        flips = shares[:, row].argmax(axis=1) != own[row]
        assert line["class"] == line["decision"] == str(own[row])
        assert line["worst_decision"] != line["decision"]
        assert line["worst_probability"] == pytest.approx(of_class[flips].min(), abs=1e-6)
        assert line["best_probability"] == pytest.approx(of_class[~flips].max(), abs=1e-6)


@pytest.mark.filterwarnings("ignore:no tree of the model tests")
@pytest.mark.parametrize("seed", range(30))
def test_random_models_agree_with_exact_sums(seed: int) -> None:
    """All rows of small grids, at limited distances, with rules, two features, and rounding."""
    rng = np.random.default_rng(seed)
    ensemble = random_classifier(seed) if seed % 3 == 0 else random_ensemble(seed)
    output = 0
    n = min(2, ensemble.n_features)
    sensitive = list(range(int(rng.integers(1, n + 1))))
    distance = [None, 1, 2][seed % 3]
    precision = [None, 1][seed % 2]
    axes = [oracle.cells(ensemble, f) for f in range(ensemble.n_features)]
    points = [list(point) for point in itertools.product(*axes)][:400]
    more: dict[str, Any] = {"class_": 0} if ensemble.n_outputs > 1 else {}
    result = xcount.count(
        ensemble,
        sensitive=sensitive,
        gap="0.5",
        distance="any" if distance is None else distance,
        precision="exact" if precision is None else precision,
        data=np.array(points),
        **more,
    )
    found = result.affected()
    grid = xcount.Grid.of(ensemble)
    expected = {}
    for number, point in enumerate(points):
        own = oracle.margins(ensemble, point, precision)[output]
        reach = []
        for values in itertools.product(*(axes[f] for f in sensitive)):
            other = list(point)
            for feature, value in zip(sensitive, values, strict=True):
                other[feature] = value
            cells = grid.cells_of([point, other])
            far = sum(grid.axes[f].distance(int(cells[0, f]), int(cells[1, f])) for f in sensitive)
            if distance is None or far <= distance:
                reach.append(oracle.margins(ensemble, other, precision)[output])
        if max(abs(other - own) for other in reach) > Fraction(1, 2):
            expected[number] = (float(own), float(max(reach)), float(min(reach)))
    columns = ("margin", "best_margin", "worst_margin")
    lines = found[["row", *columns]].to_numpy().tolist() if len(found) else []
    assert {int(row): pytest.approx(numbers) for row, *numbers in lines} == expected


def test_a_change_stays_in_the_domain() -> None:
    """A value that a rule forbids, or a missing one, is no place to change to."""
    trained = MAKERS["two classes"]()
    rows = trained.rows.assign(k=trained.rows.k.astype(object))
    rows.loc[0, "k"] = None
    asked: dict[str, Any] = {"sensitive": "k", "gap": "0.01", "data": rows}
    free = xcount.count(trained.model, **asked).affected()
    bound = xcount.count(trained.model, **asked, rule=["a >= 3 -> k in {blue, red}"]).affected()
    words = {*free["best_change"], *free["worst_change"]}
    assert any("green" in word for word in words)
    assert not any("missing" in word for word in words)
    kept = bound[[rows["a"][row] >= 3 for row in bound["row"]]]
    assert len(kept) > 3
    for word in {*kept["best_change"], *kept["worst_change"]}:
        assert "green" not in word
        assert "grey" not in word


@pytest.mark.parametrize("more", [{}, {"where_to": "a < 2.5"}, {"where_from": "a >= 2.5"}])
def test_features_move_along(more: dict[str, Any]) -> None:
    """Rows change to the predictions with the exchanged colour, and only to allowed values."""
    trained = MAKERS["two classes"]()
    asked: dict[str, Any] = {
        "sensitive": "a",
        "gap": "0.02",
        "along": "k: red <-> blue",
        "data": trained.rows,
    }
    found = xcount.count(trained.model, **asked, **more).affected()
    assert len(found) > 3
    exchange = {"red": "blue", "blue": "red"}
    colours = [exchange.get(colour, colour) for colour in trained.rows.k]
    exchanged = trained.rows.assign(k=pd.Categorical(colours, categories=COLOURS))
    numbers = values_of(trained, "a")
    axis = xcount.Grid.of(xcount.load(trained.model)).axes[0]
    cells = axis.cells_of(np.array(numbers))
    own_cells = axis.cells_of(trained.rows.a.to_numpy())
    others = np.array([trained.output(exchanged.assign(a=number)) for number in numbers])
    own = trained.output(trained.rows)
    for line in found.to_dict("records"):
        row = line["row"]
        ends = [
            others[i, row]
            for i, number in enumerate(numbers)
            if cells[i] != own_cells[row] and ("where_to" not in more or number < 2.5)
        ]
        assert line["best_probability"] == pytest.approx(max([own[row], *ends]), abs=1e-6)
        assert line["worst_probability"] == pytest.approx(min([own[row], *ends]), abs=1e-6)
        assert "where_from" not in more or trained.rows.a[row] >= 2.5


def test_without_pandas_the_table_is_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and lists; and there is no table without rows."""
    table = AffectedTable({"row": np.array([1, 2])})
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert table.to_frame() == {"row": [1, 2]}
    from xcount.model.examples import figure_1

    with pytest.raises(QueryError, match="no rows to list"):
        xcount.count(figure_1(), sensitive="f0", gap=80).affected()


def test_texts_are_safe_in_a_spreadsheet() -> None:
    """Quotes, commas, and texts that look like formulas; what is not known is empty."""
    words = np.array(['=1+1, "a"', None], dtype=object)
    table = AffectedTable(
        {"row": np.array([0, 5]), "now": words, "margin": np.array([0.1, np.nan])}
    )
    assert csv_of(table) == 'row,now,margin\n0,"\'=1+1, ""a""",0.1\n5,,\n'
    assert list(csv.reader(csv_of(table).splitlines()))[1][1] == '\'=1+1, "a"'


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    """The columns come back from a Parquet file."""
    parquet = pytest.importorskip("pyarrow.parquet")
    trained = MAKERS["two classes"]()
    rows = xcount.count(trained.model, sensitive="k", flip=True, data=trained.rows)
    assert rows.affected_rows is not None
    table = rows.affected_rows.table()
    path = tmp_path / "rows.parquet"
    path.write_bytes(parquet_of(table))
    assert parquet.read_table(path).to_pydict() == {
        name: column.tolist() for name, column in table.columns.items()
    }


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, str]:
    """A model file and a table with a row that has no place."""
    trained = MAKERS["two classes"]()
    model, data = tmp_path / "model.json", tmp_path / "rows.csv"
    trained.model.save_model(model)
    rows = trained.rows.assign(a=trained.rows.a.astype(object))
    rows.loc[3, "a"] = "many"
    rows.to_csv(data, index=False)
    return str(model), str(data)


def test_the_command_writes_the_rows(
    saved: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many lines as sensitive rows, in count, audit and compare; rows left out are named."""
    model, data = saved
    out = tmp_path / "affected.csv"
    question = ["--sensitive", "a", "--flip", "--data", data, "--rows-out", str(out)]
    assert main(["count", model, *question]) == 0
    said = capsys.readouterr().out
    assert "rows left out: a is no number (1)" in " ".join(said.split())
    assert main(["count", model, *question, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["details"]["measures"]["rows"]
    lines = list(csv.DictReader(out.read_text().splitlines()))
    assert [int(line["row"]) for line in lines] == rows["sensitive_rows"]
    assert rows["left_out_rows"] == [3]
    assert main(["audit", model, *question, "--sensitive", "k"]) == 0
    audited = list(csv.DictReader(out.read_text().splitlines()))
    assert [line for line in audited if line["sensitive"] == "a"] == [
        line | {"sensitive": "a", "change": "flip at 0", "distance": "any"} for line in lines
    ]
    assert {line["sensitive"] for line in audited} == {"a", "k"}
    assert main(["compare", model, model, *question]) == 0
    assert len(list(csv.DictReader(out.read_text().splitlines()))) == 2 * len(lines)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--rows-out", "-", "--data", "DATA"], "standard output is for the answer"),
        (["--rows-out", "OUT"], "give --data FILE"),
        (["--rows-out", "OUT", "--data", "DATA", "--measure", "marginals"], "add --measure rows"),
        (["--rows-out", "DATA", "--data", "DATA"], "is an input of this command"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(
    saved: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    """One line says what is wrong, and nothing is written."""
    model, data = saved
    words = {"OUT": str(tmp_path / "out.csv"), "DATA": data}
    given = [words.get(word, word) for word in more]
    assert main(["count", model, "--sensitive", "a", "--flip", *given]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
