"""The experiments' own arithmetic: what is made of the records of a run."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import ablations, beyond, gaps, page, regularisation, running, sampling, weights
from benchmarks import all as everything
from benchmarks.instances import Instance
from benchmarks.models import Training, models_of
from benchmarks.records import RecordFile, Run, RunSettings, Status, read_run
from xcount import Grid, count, load

HEADER = {
    "machine": {"processor": "P", "cores": 2, "memory_bytes": 1 << 30, "system": "Linux"},
    "versions": {"xcount": "0"},
    "revision": "r",
    "date": "2026-01-01",
    "load": 1.5,
}


def run_of(suite: str, records: list[dict[str, Any]], method: str = "exact") -> Run:
    """Return a run as it would be read back."""
    return Run(RunSettings(suite, method, limit_seconds=10), HEADER, tuple(records))


def record(name: str, **more: Any) -> dict[str, Any]:
    """Return a record as a run would write it."""
    about = Instance(name, Path("m.json"), "adult", 3, 20, 9, (0,), "0.5").to_dict()
    numbers = {"status": Status.EXACT, "seconds": 0.5, "elapsed_seconds": 0.5, "n_regions": 100}
    return about | numbers | {"count": 1, "low": 1, "high": 1, "share": 0.01} | more


def counts(feature: int, *by_alpha: int) -> list[dict[str, Any]]:
    """Return the records of one configuration, one for each alpha."""
    return [
        record(f"x-f{feature}-a{alpha}", sensitive=[feature], count=value, model=f"a{alpha}")
        for alpha, value in zip(regularisation.ALPHAS, by_alpha, strict=True)
    ]


def used(*features: int) -> dict[str, list[int]]:
    """Return the same used features for the model of each alpha."""
    return {f"a{alpha}": list(features) for alpha in regularisation.ALPHAS}


def test_a_count_can_be_about_a_shared_grid(tmp_path: Path) -> None:
    """The guards of other models cut the regions of an instance too."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    small, large = models_of(Training("diabetes", 3, (2, 4)), tmp_path)
    instance = Instance("i", small.path, "diabetes", 3, 2, 9, (2,), "2", grid_with=(large.path,))
    settings = RunSettings("s", "exact", 10, jobs=1)
    found = next(iter(running.run_in_process([instance], settings)))
    ensembles = [load(model.path) for model in (small, large)]
    grid = Grid.of(*ensembles)
    expected = count(ensembles[0], sensitive=2, gap=2, precision=3, grid=grid)
    assert (found["count"], found["n_regions"]) == (expected.count, grid.n_regions)
    assert found["grid_with"] == [large.path.name]
    assert grid.n_regions > Grid.of(ensembles[0]).n_regions


def test_alpha_reaches_the_training(tmp_path: Path) -> None:
    """A regularised model is another model, and the cache tells them apart."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    plain = models_of(Training("diabetes", 3, (3,)), tmp_path)[0]
    penalised = models_of(Training("diabetes", 3, (3,), alpha=500.0), tmp_path)[0]
    assert plain.path != penalised.path
    assert plain.path.read_text() != penalised.path.read_text()
    assert models_of(Training("diabetes", 3, (3,), alpha=500.0), tmp_path) == [penalised]


def test_no_instance_is_begun_after_the_time(tmp_path: Path) -> None:
    """A run without time leaves its instances for the next one."""
    settings = RunSettings("s", "exact", 10, jobs=1)
    records = RecordFile(tmp_path / "s-exact.jsonl", settings)
    instance = Instance("i", tmp_path / "none.json", "diabetes", 3, 2, 9, (2,), "2")
    running.run_suite([instance], settings, records, seconds=0)
    assert not records.done


def test_configurations_that_say_nothing_are_left_out() -> None:
    """A baseline of zero, a feature that a model lacks, a count that is not exact."""
    records = [*counts(0, 10, 8, 6, 5), *counts(1, 0, 1, 1, 1), *counts(2, 4, 4, 4, 4)]
    records += [
        r | {"status": Status.STOPPED} if r["name"].endswith("a5") else r
        for r in counts(3, 9, 9, 9, 9)
    ]
    study = regularisation.study_of(run_of("r", records), used(0, 1, 3))
    assert [c.feature for c in study.configurations] == [0]
    assert (study.n_baseline_zero, study.n_feature_missing, study.n_unsolved) == (1, 1, 1)
    assert study.ratios(10) == [0.5]
    assert study.n_all == 4


def test_the_sign_test_is_the_binomial_one() -> None:
    """Two-sided, and never above 1."""
    assert regularisation.sign_test(0, 5) == 2 / 32
    assert regularisation.sign_test(4, 1) == 12 / 32
    assert regularisation.sign_test(3, 3) == 1
    assert regularisation.sign_test(0, 0) == 1


@pytest.mark.parametrize(
    ("by_alpha", "verdict"),
    [
        ((100, 90, 80, 70), "conclusion holds with"),
        ((100, 110, 80, 70), "holds in part"),
        ((100, 110, 120, 130), "does not hold"),
    ],
)
def test_the_conclusion_follows_the_counts(by_alpha: tuple[int, ...], verdict: str) -> None:
    """Ten configurations alike are enough to say that it holds, or does not."""
    records = [r for feature in range(10) for r in counts(feature, *by_alpha)]
    study = regularisation.study_of(run_of("r", records), used(*range(10)))
    assert verdict in regularisation.conclusion(study)
    assert f"| 10 | 10 | {by_alpha[3] / 100:.3f} |" in regularisation.ratio_table(study)


def test_the_box_plot_is_drawn(tmp_path: Path) -> None:
    """The picture is a file that has something in it."""
    pytest.importorskip("matplotlib")
    study = regularisation.study_of(run_of("r", counts(0, 10, 8, 30, 0)), used(0))
    regularisation.draw(study, tmp_path / "box.svg")
    assert (tmp_path / "box.svg").stat().st_size > 1000


def test_shares_are_told_by_gap() -> None:
    """Each gap has its row: how many solved, how many zero, median, mean and largest share."""
    records = [
        record("a", gap="0.2", share=0.0),
        record("b", gap="0.2", share=0.5),
        record("c", gap="20", share=0.0, status=Status.TIMEOUT),
    ]
    table = gaps.share_table(run_of("gaps", records))
    assert table.splitlines()[2:] == ["| 0.2 | 2 | 1 | 0.25 | 0.25 | 0.5 |"]


def test_ablations_stand_beside_the_papers() -> None:
    """Rows are in the paper's order, with its numbers where it has them."""
    runs = [
        run_of("ablations", [record("a")], "auto"),
        run_of("ablations", [record("a"), record("b", status=Status.TIMEOUT)], "xcount"),
    ]
    rows = ablations.ablation_table(runs).splitlines()[2:]
    assert "1 of 2 (50%) | 10 | 10.250 | 345 (68%) | 1304.486 |" in rows[0]
    assert rows[1].endswith("1 of 1 (100%) | 10 | 0.500 | - | - |")


def test_models_are_ranked_over_the_features_that_all_have_solved() -> None:
    """A feature that one model has not solved does not count for the others."""
    shares = {"xgboost": 0.3, "lightgbm": 0.2, "catboost": 0.1, "random-forest": 0.0}
    records = [record(f"wine-{n}-f0", dataset="wine", share=s) for n, s in shares.items()]
    records.append(record("wine-xgboost-f1", dataset="wine", share=0.0, sensitive=[1]))
    run = run_of("beyond", records)
    assert beyond.mean_shares(run) == {"wine": shares}
    row = "| Wine-quality | 0.3 (4) | 0.2 (3) | 0.1 (2) | 0 (1) |"
    assert row in beyond.ranking_table(run)


def test_a_packed_run_reads_like_the_run(tmp_path: Path) -> None:
    """Packing keeps every record, and gives the same bytes each time."""
    settings = RunSettings("gaps", "auto")
    file = RecordFile(tmp_path / "gaps-auto.jsonl", settings)
    file.add(record("a", gap="2"))
    text, before = file.path.read_bytes(), read_run(file.path)
    page.pack(tmp_path)
    packed = tmp_path / "gaps-auto.jsonl.gz"
    first = packed.read_bytes()
    assert page.run_files(tmp_path) == [packed]
    assert read_run(packed) == before
    file.path.write_bytes(text)
    assert page.run_files(tmp_path) == [file.path]
    page.pack(tmp_path)
    assert packed.read_bytes() == first


def test_results_are_written_for_the_suites_that_were_run(tmp_path: Path) -> None:
    """Sections without runs have no file, and the page says that they were not run."""
    pytest.importorskip("matplotlib")
    file = RecordFile(tmp_path / "gaps-auto.jsonl", RunSettings("gaps", "auto"))
    file.add(record("a", gap="2"))
    assert page.write_results(tmp_path) == [tmp_path / "gaps.md"]
    before = "A\n<!-- begin gaps -->old<!-- end gaps -->\n<!-- begin paper --><!-- end paper -->\nZ"
    filled = page.fill(before, tmp_path, "there")
    assert "(there/gaps-auto.svg)" in filled
    assert "*Not run.*" in filled
    assert "old" not in filled
    assert page.fill(filled, tmp_path, "there") == filled


def test_the_score_beside_the_papers_has_the_papers_penalty(tmp_path: Path) -> None:
    """What a run with a short limit gives up costs 3600 s."""
    pytest.importorskip("matplotlib")
    runs = [run_of("paper", [record("a"), record("b", status=Status.STOPPED)])]
    text = page.paper_section({"paper": runs}, tmp_path)
    assert "| `exact` | here | 2 | 10 | 1 | 50.00 | 1800.250 |" in text
    assert "`exact`: 0 of 2 counts are 0; of the other 2 instances 1 are solved." in text
    assert "| XCount | paper | 3194 | 1800 | 1552 | 48.59 | 1937.474 |" in text


def test_the_pages_show_the_results_that_are_kept() -> None:
    """They are what `python -m benchmarks.page` makes of benchmarks/results."""
    texts = [path.read_text() for path in page.PAGES]
    assert [page.fill(text, page.RESULTS, "../benchmarks/results") for text in texts] == texts
    for name in page.SECTIONS:
        assert sum(f"<!-- begin {name} -->" in text for text in texts) == 1


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("90s", 90), ("1.5h", 5400)])
def test_budgets(text: str, seconds: float) -> None:
    """A budget is a number with its unit."""
    assert everything.budget_seconds(text) == seconds
    with pytest.raises(argparse.ArgumentTypeError):
        everything.budget_seconds("10")


def test_the_plan_goes_by_earlier_results(tmp_path: Path) -> None:
    """What a run took is scaled to the instances planned; without a run it is unknown."""
    settings = RunSettings("gaps", "auto", limit_seconds=1800)
    file = RecordFile(tmp_path / "gaps-auto.jsonl", settings)
    file.add(record("a", elapsed_seconds=6.0))
    instance = Instance("i", Path("m.json"), "adult", 3, 2, 9, (2,), "2")
    study = next(study for study in everything.STUDIES if study.suite == "gaps")
    jobs = [everything.Job(study, settings, (instance,) * 60)]
    jobs.append(dataclasses.replace(jobs[0], settings=RunSettings("gaps", "exact", 1800)))
    rows = everything.plan_table(jobs, tmp_path).splitlines()
    assert rows[2] == "| gaps | auto | 60 | 1800 | 6 min | 30 h 0 min |"
    assert "unknown" in rows[3]


def test_ranks_of_equal_values_are_shared() -> None:
    """Spearman's rho of a reversed order is -1; ties count half."""
    assert weights.ranks([3.0, 1.0, 3.0]) == [1.5, 0.0, 1.5]
    assert weights.rank_correlation([1, 2, 3], [3, 2, 1]) == -1
    assert weights.rank_correlation([1, 2, 3], [10, 20, 30]) == 1
    assert np.isnan(weights.rank_correlation([1, 2], [5, 5]))


def test_shares_are_told_by_feature(tmp_path: Path) -> None:
    """An estimate is marked, and features with more sensitive regions come first."""
    pytest.importorskip("matplotlib")
    shares = [{n: {"share": s, "exact": s < 0.2} for n in weights.MEASURES} for s in (0.1, 0.25)]
    features = [{"name": f"x{i}", "seconds": 1.0, "shares": s} for i, s in enumerate(shares)]
    about = {"model": "m", "gap": "1", "n_rows": 3, "limit_seconds": 2.0}
    found = HEADER | about | {"features": features}
    rows = weights.report(found).splitlines()[-3:]
    assert rows[0] == "| x1 | ~25 | ~25 | ~25 | ~25 | 1.00 |"
    assert rows[1] == "| x0 | 10 | 10 | 10 | 10 | 1.00 |"
    weights.draw(found, tmp_path / "w.svg")
    assert (tmp_path / "w.svg").stat().st_size > 1000


def sampled(name: str, share: float, **others: object) -> dict[str, object]:
    """Return what a study of sampling keeps of a run within 10% of its share."""
    row = {"name": name, "seconds": 2.0, "stop_reason": "complete", "exact": False}
    shares = {"share": share, "share_low": 0.9 * share, "share_high": 1.1 * share}
    trace = [(0.1, 0.0, 1.0), (2.0, 0.9 * share, 1.1 * share)]
    return row | shares | {"trace": trace, "n_trees": 7} | others


def test_studies_of_sampling_become_tables_and_pictures(tmp_path: Path) -> None:
    """Parts are written one by one; what is rare comes by the trees of a sample."""
    pytest.importorskip("matplotlib")
    speed = {"name": "m", "distance": 1, "n_masks": 2, "sample": "row", "n_trees": 50}
    sampling.write({"about": HEADER, "speed": [speed | {"samples_per_second": 2e6}]}, tmp_path)
    open_end = sampled("b", 1e-6, share_low=0.0, stop_reason="timeout", n_trees=9)
    rows = [open_end, sampled("a", 0.1)]
    sampling.write({"about": HEADER, "intervals": rows, "rarity": rows}, tmp_path)
    assert page.write_results(tmp_path) == [tmp_path / "sampling.md"]
    text = (tmp_path / "sampling.md").read_text()
    assert "| m | 1 | 2 | row | 50 | 2,000,000 | 100.0 |" in text
    assert "| a | 2.00 | complete | 0.1 | 0.09 | 0.11 | 1.22 |" in text
    assert "| 9 | b | 2.00 | timeout | 1e-06 | 0 | 1.1e-06 | inf |" in text
    assert text.index("| 7 | a |") < text.index("| 9 | b |")
    for name in ("intervals", "rarity"):
        assert (tmp_path / f"sampling-{name}.svg").stat().st_size > 1000


def test_a_long_trace_is_thinned_by_the_logarithm_of_time() -> None:
    """Early moments are as many as late ones, and the last one stays."""
    trace = sampling.thinned([(0.01 * i, 0.0, 1.0) for i in range(1, 6001)])
    assert len(trace) <= sampling.MAX_POINTS + 2
    assert trace[-1][0] == 60.0
    assert 15 <= sum(point[0] < 1 for point in trace) <= 45
