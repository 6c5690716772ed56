"""Measures of the sensitive regions: every one against enumeration, exact and sampled."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from measure_problems import N_ROWS, random_problem
from numpy.typing import NDArray
from oracle import known

import xcount
from xcount.answers import count as counting
from xcount.counters import decisions
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import QueryError
from xcount.measures import exact_shares, weigh
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.examples import Nested, ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def weight_by_volume(problem: Problem, rows: NDArray[np.float64], region: tuple[int, ...]) -> float:
    """Return a region's part of the box around the data, written down once more."""
    weight = 1.0
    for feature, cell in enumerate(region):
        axis = problem.grid.axes[feature]
        if cell == axis.missing_cell:
            return 0.0
        if axis.feature.categories is not None:
            weight *= len(axis.classes[cell]) / len(axis.feature.categories)
        elif len(axis.thresholds):
            values = [v for v in rows[:, feature] if not math.isnan(v)]
            low, high = min(values), max(values)
            ends = [-math.inf, *axis.thresholds.tolist(), math.inf]
            inside = min(high, ends[cell + 1]) - max(low, ends[cell])
            weight *= max(0.0, inside) / (high - low)
    return weight


def weight_by_marginals(cells: NDArray[np.int32], region: tuple[int, ...]) -> float:
    """Return the product of the fractions of rows in the region's cells."""
    weight = 1.0
    for feature, cell in enumerate(region):
        placed = [c for c in cells[:, feature].tolist() if c >= 0]
        weight *= placed.count(cell) / len(placed)
    return weight


@pytest.mark.parametrize("seed", range(60))
def test_measures_agree_with_enumeration(seed: int) -> None:
    """Gaps and flips, categories, missing values, several sensitive features."""
    problem, regions, weighing = random_problem(seed)
    assert weighing.inputs is not None
    rows, cells = weighing.inputs.matrix(), problem.grid.cells_of(weighing.inputs)
    found = measure(problem, weighing, Settings(jobs=1))
    hits = [region for region, is_sensitive in regions.items() if is_sensitive]
    volume = math.fsum(weight_by_volume(problem, rows, region) for region in hits)
    marginals = math.fsum(weight_by_marginals(cells, region) for region in hits)
    assert found["volume"].share == pytest.approx(volume, abs=1e-12)
    assert found["marginals"].share == pytest.approx(marginals, abs=1e-12)
    assert found["volume"].interval.is_settled
    assert found["marginals"].interval.is_settled
    unplaced = [i for i, row in enumerate(cells.tolist()) if min(row) < 0]
    sensitive = [i for i, row in enumerate(cells.tolist()) if regions.get(tuple(row), False)]
    details = found["rows"].details
    assert details["sensitive_rows"] == sensitive
    assert details["left_out_rows"] == unplaced
    assert (details["outside"], details["left_out"]) == (0, len(unplaced))
    assert found["rows"].share == len(sensitive) / max(1, N_ROWS - len(unplaced))
    assert found["rows"].low == len(sensitive) / N_ROWS
    assert found["rows"].high == (len(sensitive) + len(unplaced)) / N_ROWS


@pytest.mark.slow
@pytest.mark.parametrize("in_rows", [True, False])
def test_intervals_of_sampled_measures_hold(monkeypatch: pytest.MonkeyPatch, in_rows: bool) -> None:
    """Where exact weighing gives up, 90 % intervals hold as often as they say.

    Rows of all masks are drawn, or single regions.
    """
    held = total = 0
    for seed in range(60):
        problem, _, weighing = random_problem(seed)
        exact = measure(problem, weighing, Settings(jobs=1))
        with monkeypatch.context() as patch:
            patch.setattr(exact_shares, "MAX_TERMS", 0)
            patch.setattr(weigh, "corner_seconds", lambda *_, **__: math.inf)
            if not in_rows:
                patch.setattr(decisions, "MAX_CELL_ROW", 0)
                patch.setattr(decisions, "MAX_ROW", 0)
            settings = Settings(jobs=1, epsilon=0.2, seed=seed)
            for name in ("volume", "marginals"):
                if known(exact[name].share) < 0.02:
                    continue
                one = Weighing((name,), weighing.inputs, "", weighing.bounds)
                sampled = measure(problem, one, settings)[name]
                assert not sampled.exact
                assert sampled.confidence == 0.9
                held += sampled.low <= known(exact[name].share) <= sampled.high
                total += 1
    assert total >= 40
    assert held >= 0.78 * total


def test_a_volume_takes_given_bounds() -> None:
    """Uniform over [0, 10]: the cell from 1 to 10 of a stump at 1 weighs 0.9, all of it moves."""
    stump = ensemble_of((0, 1.0, -1.0, (1, 5.0, 0.0, 3.0)), n_features=2)
    result = xcount.count(stump, sensitive="f0", gap=2, measures="volume", bounds="f0=0:10,f1=0:20")
    volume = result.measures["volume"]
    assert volume.share == pytest.approx(0.75)
    assert volume.details["bounds"] == {"f0": [0.0, 10.0], "f1": [0.0, 20.0]}
    point = xcount.count(
        stump, sensitive="f0", gap=2, measures="volume", bounds={"f0": (0, 1), "f1": (6, 6)}
    )
    assert point.measures["volume"].share == 1.0


@pytest.mark.parametrize(
    ("where", "limit"),
    [("f0 > 1", "3/5"), ("f0 >= 1", "3/5"), ("f0 not in {1, 2}", "1/2"), ("f0 != 4", "1/2")],
)
def test_a_single_number_has_no_volume(where: str, limit: str) -> None:
    """A strict bound leaves as much as one that is not, so a share at the limit passes."""
    nested = ensemble_of((0, 3.0, 0.0, (1, 0.5, 0.0, 5.0)))
    tree = replace(nested, input_dtype="float32")
    bounds = "f0=0:6,f1=0:1"
    result = xcount.count(
        tree, sensitive="f1", gap=1, bounds=bounds, judge="volume", where=where, max_share=limit
    )
    assert result.measures["volume"].share == float(Fraction(limit))
    assert result.verdict == "PASS"


def test_a_volume_takes_the_whole_range_of_floats() -> None:
    """The width of such a range is no float; given or of the data, the halves weigh the same."""
    stump = ensemble_of((0, 0.0, -1.0, (1, 0.0, 0.0, 3.0)))
    whole = "f0=-1e308:1e308,f1=-1e308:1.5e308"
    data = {"f0": [-1e308, 1e308], "f1": [-1e308, 1.5e308]}
    for given in ({"bounds": whole}, {"data": data}):
        result = xcount.count(stump, sensitive="f0", gap=2, measures="volume", **given)
        assert result.measures["volume"].share == pytest.approx(0.6)


def test_rows_outside_all_regions_have_no_share() -> None:
    """A share of no rows is no number, and not an exact 0."""
    data = {"f0": [math.nan, 3.5], "f1": [2.0, math.nan]}
    with pytest.raises(QueryError, match="no row of the table lies in a region"):
        xcount.count(figure_1(), sensitive="f0", gap=80, measures="rows", data=data)


def test_what_is_missing_or_wrong_is_named() -> None:
    """Unknown measures, no data, no bounds, bounds in the wrong order."""
    for arguments, words in (
        ({"measures": "size"}, "unknown measure 'size'"),
        ({"measures": "rows"}, "needs data"),
        ({"measures": "marginals"}, "needs data"),
        ({"measures": "volume"}, "bounds of 'f0'"),
        ({"measures": "volume", "bounds": "f0=3:1"}, "lower first"),
        ({"measures": "volume", "bounds": "f0=3"}, "NAME=LOW:HIGH"),
        ({"measures": "volume", "bounds": "g=0:1"}, "unknown feature 'g'"),
        ({"measures": "volume", "bounds": "f0=0:1,0=0:5"}, "bounds of '0' are given twice"),
        ({"measures": "volume", "bounds": [(0, 1)]}, "a mapping of names to pairs of numbers"),
        ({"measures": "volume", "bounds": {"f0": (0, 1, 2)}}, "pairs of numbers"),
        ({"measures": "volume", "bounds": {"f0": (None, 1)}}, "pairs of numbers"),
    ):
        with pytest.raises(QueryError, match=words):
            xcount.count(figure_1(), sensitive="f0", gap=80, **arguments)


def test_the_count_itself_is_the_measure_of_regions() -> None:
    """Asking for regions alone adds nothing."""
    result = xcount.count(figure_1(), sensitive="f0", gap=80, measures="regions")
    assert "measures" not in result.details


def test_an_audit_shows_measures_side_by_side(tmp_path: Path) -> None:
    """Every count of an audit is measured; the report and a resumed journal have the shares."""
    data = {"f0": [0.0, 3.5, 5.0, 3.0], "f1": [9.0, 9.0, 0.0, 2.5]}
    asked = {"gaps": 80, "measures": ["volume,marginals", "rows"], "data": data}
    journal = tmp_path / "audit.jsonl"
    result = xcount.audit(figure_1(), journal=journal, **asked)  # type: ignore[arg-type]
    by_name = {r.sensitive: r.measures for r in result.results}
    assert set(by_name["f0",]) == {"volume", "marginals", "rows"}
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    weighing = Weighing.of(figure_1(), "rows", data)
    assert by_name["f0",]["rows"].share == measure(problem, weighing)["rows"].share
    page = result.to_html()
    assert "Measures side by side" in page
    again = xcount.audit(figure_1(), journal=journal, resume=True, **asked)  # type: ignore[arg-type]
    assert [r.seconds for r in again.results] == [r.seconds for r in result.results]


def test_the_command_line_measures_a_file(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """--measure with --data: JSON has the row numbers, text has the shares."""
    names = xcount.load(figure_1_file).feature_names
    table = tmp_path / "rows.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([names, [3.5, 9], [0, 0], [5, 9]])
    command = ["count", figure_1_file, "--sensitive", names[0], "--gap", "80"]
    command += ["--measure", "rows,volume", "--measure", "marginals", "--data", str(table)]
    run = xcount_command(*command, "--json")
    assert (run.status, run.err) == (0, "")
    entry = json.loads(run.out)["details"]["measures"]["rows"]
    assert entry["n_rows"] == 3
    assert entry["sensitive_rows"] == [1]
    text = xcount_command(*command).out
    assert "1 of 3 rows" in text
    assert "By marginals" in text


def test_a_table_without_a_column_is_refused_by_name(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """The missing column is named, in one line."""
    table = tmp_path / "rows.csv"
    table.write_text("other\n1\n")
    run = xcount_command(
        "count", figure_1_file, "--sensitive", "0", "--gap", 1, "--measure", "rows", "--data", table
    )
    assert run.status == 2
    assert "lacks columns" in run.err
    assert run.err.count("\n") == 1


def many_masks(n_features: int = 6, n_cells: int = 101) -> Ensemble:
    """Return a model whose sensitive features have too many cells together for a list of masks."""
    trees: list[Nested] = [
        (f, float(cut), -0.01, 0.01) for f in range(n_features) for cut in range(n_cells - 1)
    ]
    return ensemble_of(*trees)


def test_rows_are_decided_one_by_one_where_masks_abound() -> None:
    """A row is sensitive if going to one end or the other changes the sum by more than the gap."""
    model = many_masks()
    rows = np.array([[50.5] * 6, [-1.0] * 6])
    result = xcount.count(
        model, sensitive=list(range(6)), gap="6.5", distance="any", measures="rows", data=rows
    )
    assert result.measures["rows"].details["sensitive_rows"] == [1]


@pytest.mark.parametrize("change", [{"gap": "6.5"}, {"flip": True, "cutoff": 0, "direction": "up"}])
def test_regions_are_weighed_one_by_one_where_masks_abound(change: dict[str, Any]) -> None:
    """No list of masks: on equal cells, the share by volume is the share of the regions."""
    result = xcount.count(
        many_masks(),
        sensitive=list(range(6)),
        distance="any",
        measures="volume",
        bounds=",".join(f"f{i}=-1:100" for i in range(6)),
        timeout=20,
        **change,
    )
    volume = result.measures["volume"]
    assert volume.stop_reason == "complete"
    assert volume.low <= result.share_high
    assert result.share_low <= volume.high


def softmax_of_many_masks() -> Ensemble:
    """Return the same model with two of its features for each of three classes."""
    model = many_masks()
    trees = tuple(replace(tree, output=int(tree.feature[0]) % 3) for tree in model.trees)
    return replace(model, trees=trees, base=(0.0,) * 3, task="multiclass", probability="softmax")


def test_a_softmax_of_any_number_of_masks_is_answered() -> None:
    """10^12 masks, which nobody lists: a count, the same share by volume, rows, and witnesses."""
    model = softmax_of_many_masks()
    asked: dict[str, Any] = {
        "sensitive": list(range(6)), "probability_gap": "0.1", "class_": 0, "distance": "any",
    }  # fmt: skip
    rows = np.array([[50.5] * 6, [-1.0] * 6])
    bounds = ",".join(f"f{i}=-1:100" for i in range(6))
    found = xcount.count(model, measures="volume,rows", data=rows, bounds=bounds, **asked)
    assert found.stop_reason is StopReason.COMPLETE
    volume = found.measures["volume"]
    assert volume.low <= found.share_high
    assert found.share_low <= volume.high
    assert 0.8 * found.n_regions < found.low <= found.high == found.n_regions
    assert found.measures["rows"].details["sensitive_rows"] == [0, 1]
    (witness,) = xcount.witnesses(model, n=1, verify=False, **asked)
    assert witness.probability is not None
    assert witness.other_probability is not None
    assert abs(witness.probability - witness.other_probability) > 0.1


def test_an_interrupt_in_a_measure_keeps_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is there, and the run says that it was interrupted."""

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RegionDecider, "decide_regions", interrupt)
    result = xcount.count(
        figure_1(), sensitive="f0", gap=80, measures="rows,volume", data=np.zeros((1, 2))
    )
    assert (result.count, result.exact) == (2, True)
    assert result.stop_reason is StopReason.INTERRUPTED
    reasons = [measured.stop_reason for measured in result.measures.values()]
    assert reasons == ["interrupted", "interrupted"]


def test_data_is_checked_before_anything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without a use, or missing bounds, is an error at once."""

    def fail(*_arguments: object) -> None:
        pytest.fail("counted")

    monkeypatch.setattr(counting, "counter", lambda _method: fail)
    rows = np.full((2, 2), np.nan)
    for name in ("rows", "marginals", "volume"):
        with pytest.raises(QueryError, match=r"no row of|no number for"):
            xcount.count(figure_1(), sensitive="f0", gap=80, measures=name, data=rows)
