"""What the paper's algorithm answers, in tables: |X| / p, theorem 1, the census, pairs of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_runs import HEADER

from benchmarks.harness import shipped
from benchmarks.harness.datasets import BY_KEY, read_table
from benchmarks.harness.instances import Instance
from benchmarks.harness.models import Training, models_of, paper_trainings
from benchmarks.harness.records import Run, RunSettings, Status
from experiments import accuracy, census, estimates, methods, paper, suites, theorem
from experiments import run as runs_of_studies
from xcount import load


def record(name: str, status: Status = Status.EXACT, **more: Any) -> dict[str, Any]:
    """Return a record as a run would write it."""
    about = {"name": name, "dataset": "adult", "depth": 3, "n_trees": 10, "n_guards": 9}
    numbers = {"status": status, "seconds": 0.5, "count": 100, "low": 100, "high": 100}
    return about | numbers | {"n_regions": 1000} | more


def run_of(suite: str, records: list[dict[str, Any]], method: str = "xcount") -> Run:
    """Return a run as it would be read back."""
    return Run(RunSettings(suite, method, limit_seconds=60), HEADER, tuple(records))


def test_a_count_that_bounds_have_replaced_is_an_estimate_again() -> None:
    """|X| / p stands in the tables, the count within the bounds beside it; p = 1 is exact."""
    sample = {"sample_size": 26, "halvings": 2}
    whole = {"sample_size": 100, "halvings": 0}
    kept = run_of("methods", [record("a", details=sample), record("b", details=whole)])
    given_up = record("c", Status.STOPPED, details=sample)
    runs = estimates.with_paper_answers({"methods": [kept], "hard": [run_of("hard", [given_up])]})
    (run,) = runs["methods"]
    first, second = run.records
    assert (first["status"], first["count"]) == (Status.GUARANTEE, 104)
    assert (first["low"], first["high"]) == (100, 104)
    assert second == kept.records[1]
    assert runs["hard"][0].records == (given_up,)
    assert estimates.with_paper_answers(runs) == runs
    assert estimates.clipped(run).records[0]["count"] == 100
    exact = run_of("paper", [record("a"), record("b")], "exact")
    found = accuracy.errors_of_all({"paper": [exact], **runs})
    assert [(each.method, max(each.relative)) for each in found] == [
        ("xcount", pytest.approx(0.04)),
        ("xcount, clipped", 0.0),
    ]


@pytest.mark.parametrize(("one", "other", "p"), [(15, 3, 0.00754), (3, 15, 0.00754), (0, 0, 1)])
def test_pairs_of_tools_are_compared_by_mcnemars_exact_test(one: int, other: int, p: float) -> None:
    """As a fair coin's: SciPy's binomial test says the same."""
    assert methods.mcnemar(one, other) == pytest.approx(p, rel=1e-2)
    if one + other:
        stats = pytest.importorskip("scipy.stats")
        assert methods.mcnemar(one, other) == pytest.approx(
            stats.binomtest(one, one + other).pvalue
        )


def test_pairs_are_about_what_both_were_asked() -> None:
    """One tool has two instances more; of the common ones, one differs."""
    lost = record("b", Status.STOPPED)
    runs = [run_of("methods", [record(name) for name in "abcd"])]
    runs += [run_of("methods", [record("a"), lost], "cnf-ganak")]
    assert "| `xcount` | `cnf-ganak` | 2 | 1 | 1 | 0 | 1 |" in methods.paired_table(runs)


def test_the_census_weighs_depths() -> None:
    """A depth that was asked as a whole has no error; the other has that of its sample."""
    whole = [record(f"a{i}") for i in range(4)]
    part = [record(f"b{i}", depth=6) for i in range(4)] + [record("c", Status.STOPPED, depth=6)]
    suite = [*whole, *(record(f"d{i}", depth=6) for i in range(12))]
    runs = {
        "paper": [run_of("paper", suite, "auto")],
        "census": [run_of("census", whole)],
        "methods": [run_of("methods", [whole[0], *part])],
    }
    lines = census.section(runs, Path()).splitlines()
    assert lines[2].startswith("| 3 | 4 | 4 | 4 | 100.0 |")
    assert lines[3].startswith("| 6 | 12 | 5 | 4 | 80 (38 to 96) |")
    spread = 100 * 1.96 * 0.75 * (7 / 12 * 0.8 * 0.2 / 4) ** 0.5
    assert f"85.0 ({85 - spread:.1f} to {85 + spread:.1f})" in lines[4]


def test_the_census_begins_with_the_smallest_depths() -> None:
    """Depths 3 and 4 together, then 5, then 6."""
    asked = [
        Instance(f"d{depth}-t{n}", Path("m.json"), "adult", depth, n, 9, (0,), "2")
        for depth in (6, 5, 4, 3)
        for n in (10, 20)
    ]
    depths = [instance.depth for instance in suites.census_order(asked)]
    assert set(depths[:4]) == {3, 4}
    assert depths[4:] == [5, 5, 6, 6]


def test_theorem_1_is_tried_on_the_published_counts(tmp_path: Path) -> None:
    """Two seeds find the counts that the authors publish, the small ones exactly."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    path = tmp_path / theorem.FILE
    assert theorem.main(["--seeds", "2", "--output", str(path)]) == 0
    found = json.loads(path.read_text())
    assert [row["count"] for row in found["rows"]] == paper.PUBLISHED
    assert [sum(row["halvings"]) == 0 for row in found["rows"]] == [True] * 3 + [False] * 7
    assert theorem.outside(found) == (0, 14)
    found["rows"][-1]["answers"] = [found["rows"][-1]["count"] * 2] * 2
    assert "2 of 14 sampled answers are further off than epsilon" in theorem.report(found)


def test_shipped_models_are_those_that_training_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 400 ship; the first trees of what ships are the shorter models."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    for key in BY_KEY:
        assert (shipped.FOLDER / f"{key}.json.xz").exists(), key
    training = paper_trainings(["diabetes"])[0]
    ready = models_of(training, tmp_path / "shipped", data=tmp_path)
    monkeypatch.setattr(shipped, "unpack", lambda training, folder: None)
    trained = models_of(training, tmp_path / "trained")
    assert [m.n_guards for m in ready] == [m.n_guards for m in trained]
    for one, other in zip(ready, trained, strict=True):
        first, second = load(one.path).trees, load(other.path).trees
        for a, b in zip(first, second, strict=True):
            for name in ("feature", "threshold", "value", "left", "right", "missing_left"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_models_of_another_training_do_not_ship(tmp_path: Path) -> None:
    """Other sizes are trained."""
    assert shipped.unpack(Training("diabetes", 3, (5,)), tmp_path) is None


def test_data_that_are_not_our_copy_are_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file with other rows, and a set from OpenML, give other models."""
    pytest.importorskip("pandas")
    spec = BY_KEY["wine"]
    import pandas as pd

    pd.DataFrame({"a": [1.0], "target": [3]}).to_csv(tmp_path / str(spec.file), index=False)
    assert len(read_table(spec, tmp_path)[0]) == 1
    assert f"sha256 {spec.sha256}" in capsys.readouterr().err


def test_the_short_version_begins_with_the_papers_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of models that ship; studies that must train first get nothing of a budget."""
    begun: list[str] = []

    def jobs_of(study: suites.Study, options: Any) -> list[Any]:
        begun.append(study.suite)
        return []

    monkeypatch.setattr(runs_of_studies, "jobs_of", jobs_of)
    monkeypatch.setattr(runs_of_studies, "run_commands", lambda commands, options: None)
    runs_of_studies.run_short(runs_of_studies.options_of(["--budget", "1s"]))
    assert begun == ["methods", "ablations", "paper", "gaps"]
    begun.clear()
    runs_of_studies.run_short(runs_of_studies.options_of(["frontier"]))
    assert begun == ["frontier"]
