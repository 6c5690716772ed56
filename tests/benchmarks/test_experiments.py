"""The experiments' own arithmetic: what is made of the records of a run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_runs import HEADER

from benchmarks import weights
from benchmarks.harness import running
from benchmarks.harness.datasets import BY_KEY, PROJECT, SPECS, DataError, DatasetSpec
from benchmarks.harness.instances import Instance
from benchmarks.harness.models import Training, models_of
from benchmarks.harness.options import STOPPED, budget_seconds
from benchmarks.harness.records import (
    RESULTS,
    RecordFile,
    Run,
    RunSettings,
    Status,
    read_lines,
    read_run,
    runs_by_suite,
)
from experiments import (
    ablations,
    accuracy,
    durations,
    gaps,
    libraries,
    page,
    performance,
    recovery,
    sampling,
    suites,
    verdict,
)
from experiments import run as runs_of_studies
from xcount import Grid, count, load


def run_of(suite: str, records: list[dict[str, Any]], method: str = "exact") -> Run:
    """Return a run as it would be read back."""
    return Run(RunSettings(suite, method, limit_seconds=10), HEADER, tuple(records))


def record(name: str, **more: Any) -> dict[str, Any]:
    """Return a record as a run would write it."""
    about = Instance(name, Path("m.json"), "adult", 3, 20, 9, (0,), "0.5").to_dict()
    numbers = {"status": Status.EXACT, "seconds": 0.5, "elapsed_seconds": 0.5, "n_regions": 100}
    return about | numbers | {"count": 1, "low": 1, "high": 1, "share": 0.01} | more


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
    expected = count(ensembles[0], sensitive=2, gap=2, distance=1, precision=3, grid=grid)
    assert (found["count"], found["n_regions"]) == (expected.count, grid.n_regions)
    assert found["grid_with"] == [large.path.name]
    assert grid.n_regions > Grid.of(ensembles[0]).n_regions


def test_the_recipe_reaches_the_training(tmp_path: Path) -> None:
    """Another way to look for splits gives another model, and the cache tells them apart."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    plain = models_of(Training("diabetes", 3, (3,)), tmp_path)[0].path.read_text()
    recipe = BY_KEY["diabetes"].recipe
    exact = models_of(Training("diabetes", 3, (3,), recipe=recipe), tmp_path)[0].path.read_text()
    assert plain != exact
    assert models_of(Training("diabetes", 3, (3,)), tmp_path)[0].path.read_text() == plain


def test_the_models_of_diabetes_are_the_papers(tmp_path: Path) -> None:
    """The smallest has the 41 guards of the paper's table, the largest its 1176."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    found = [
        model.n_guards
        for depth, n_trees in (recovery.SMALL, recovery.LARGE)
        for model in models_of(
            Training("diabetes", depth, (n_trees,), recipe=BY_KEY["diabetes"].recipe), tmp_path
        )
    ]
    assert tuple(found) == BY_KEY["diabetes"].paper_guards


def test_no_instance_is_begun_after_the_time(tmp_path: Path) -> None:
    """A run without time leaves its instances for the next one."""
    settings = RunSettings("s", "exact", 10, jobs=1)
    records = RecordFile(tmp_path / "s-exact.jsonl", settings)
    instance = Instance("i", tmp_path / "none.json", "diabetes", 3, 2, 9, (2,), "2")
    running.run_suite([instance], settings, records, seconds=0)
    assert not records.done


def test_the_nearest_settings_are_shown() -> None:
    """The distance from the paper's guards orders them; equal numbers are called the same."""
    setting = {"tree_method": "exact", "base_score": 0.5, "eta": 0.1, "target": "number"}
    setting |= {"objective": "reg:squarederror", "part": "split", "dataset": "diabetes"}
    notes = [
        setting | {"eta": 0.3, "small": 60, "large": None},
        setting | {"tree_method": "hist", "small": 41, "large": 645},
        setting | {"small": 41, "large": 1176},
    ]
    lines = recovery.table(notes).splitlines()[2:]
    assert [line.split(",")[0].rpartition(" ")[2] for line in lines] == ["exact", "hist", "exact"]
    assert [line.endswith("| exactly |") for line in lines] == [True, False, False]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key)
def test_the_suites_models_are_those_that_the_search_found(spec: DatasetSpec) -> None:
    """The kept run has the numbers of guards that the search noted for the set's recipe."""
    records = read_run(RESULTS / "paper-auto.jsonl.gz").records
    guards = [record["n_guards"] for record in records if record["dataset"] == spec.key]
    recipe = {
        "dataset": spec.key,
        "objective": spec.objective,
        "tree_method": spec.recipe.tree_method,
        "base_score": spec.recipe.base_score,
        "eta": spec.recipe.eta,
        "part": "split" if spec.recipe.is_split else "all",
    }
    notes = read_lines(RESULTS / recovery.FILE)
    found = [(note["small"], note["large"]) for note in notes if recipe.items() <= note.items()]
    assert (min(guards), max(guards)) in found


def test_shares_are_told_by_gap() -> None:
    """Each gap has its row: how many solved, how many zero, median, mean and largest share."""
    records = [
        record("a", gap="0.2", share=0.0),
        record("b", gap="0.2", share=0.5),
        record("c", gap="20", share=0.0, status=Status.TIMEOUT),
    ]
    table = gaps.share_table(run_of("gaps", records))
    assert table.splitlines()[2:] == ["| 0.2 | 2 | 1 | 0.25 | 0.25 | 0.5 |"]


def test_gaps_are_compared_on_the_same_questions() -> None:
    """A question that some gap leaves open is left out; the largest gap is the unit."""
    seconds = {"0.02": 4.0, "0.2": 3.0, "2": 2.0, "20": 1.0}
    records = [record("a", gap=gap, seconds=seconds[gap]) for gap in suites.GAPS]
    records += [
        record("b", gap=gap, sensitive=[1], seconds=2 * seconds[gap]) for gap in suites.GAPS
    ]
    records += [record("c", gap=gap, sensitive=[2], seconds=9.0) for gap in suites.GAPS[:3]]
    lines = gaps.pace_table(run_of("gaps", records)).splitlines()[2:]
    assert lines[0] == "| 0.02 | 2 | 4.00 | 4.00 to 4.00 |"
    assert lines[3] == "| 20 | 2 | 1.00 | 1.00 to 1.00 |"


def test_ablations_stand_beside_the_papers() -> None:
    """Rows are in the paper's order, with its numbers where it has them."""
    runs = [
        run_of("ablations", [record("a", count=0)], "auto"),
        run_of("ablations", [record("a"), record("b", status=Status.TIMEOUT)], "xcount"),
    ]
    rows = ablations.ablation_table(runs).splitlines()[2:]
    numbers = "1 of 2 (50%) | 1 / 0 | 0 of 1 | 10 | 10.250 | 20.000 | 345 (68%) | 1304.486 |"
    assert numbers in rows[0]
    assert rows[1].endswith("1 of 1 (100%) | 1 / 0 | 0 of 0 | 10 | 0.500 | - | - | - |")


def test_models_are_ranked_over_the_features_that_all_have_solved() -> None:
    """A feature that one model has not solved does not count for the others."""
    shares = {"xgboost": 0.3, "lightgbm": 0.2, "catboost": 0.1, "random-forest": 0.0}
    records = [record(f"wine-{n}-f0", dataset="wine", share=s) for n, s in shares.items()]
    records.append(record("wine-xgboost-f1", dataset="wine", share=0.0, sensitive=[1]))
    run = run_of("beyond", records)
    assert libraries.mean_shares(run) == {"wine": shares}
    row = "| Wine-quality | 0.3 (4) | 0.2 (3) | 0.1 (2) | 0 (1) |"
    assert row in libraries.ranking_table(run)


def test_a_packed_run_reads_like_the_run(tmp_path: Path) -> None:
    """Packing keeps every record, and gives the same bytes each time."""
    settings = RunSettings("gaps", "auto")
    file = RecordFile(tmp_path / "gaps-auto.jsonl", settings)
    file.add(record("a", gap="2"))
    text, before = file.path.read_bytes(), read_run(file.path)
    page.pack(tmp_path)
    packed = tmp_path / "gaps-auto.jsonl.gz"
    first = packed.read_bytes()
    assert read_run(packed) == before
    assert runs_by_suite(tmp_path) == {"gaps": [before]}
    file.path.write_bytes(text)
    assert runs_by_suite(tmp_path) == {"gaps": [before]}
    page.pack(tmp_path)
    assert packed.read_bytes() == first


def test_a_run_of_several_revisions_names_them(tmp_path: Path) -> None:
    """A run that went on later says from which revisions its records are, and from no others."""
    path = tmp_path / "paper-exact.jsonl"
    lines = [
        {"record": "header", "settings": {"suite": "paper"}, "revision": "a"},
        {"record": "instance", **record("x")},
        {"record": "resumed", "revision": "b"},
        {"record": "resumed", "revision": "c"},
        {"record": "instance", **record("y")},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(path).header["revision"] == "a and c"
    path.write_text(json.dumps(lines[0]) + "\n")
    assert read_run(path).header["revision"] == "a"


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


def test_the_score_beside_the_papers_has_the_papers_penalty() -> None:
    """What a run with a short limit gives up costs 3600 s."""
    runs = [run_of("paper", [record("a"), record("b", status=Status.STOPPED)])]
    text = performance.solved_table({"paper": runs})
    assert "| `exact` | here | 2 | 0 | 10 | 1 | 50.00 | 50.00 | 1800.250 |" in text
    assert "| XCount | paper | 3194 | - | 1800 | 1552 | 48.59 | - | 1937.474 |" in text


def test_what_was_given_up_and_asked_again_makes_a_row() -> None:
    """Its answers stand in place of those that it gave up; zeros are told apart."""
    zero, given_up = record("a", count=0, low=0, high=0), {"status": Status.STOPPED}
    paper = run_of("paper", [zero, record("b", **given_up), record("c", **given_up)])
    hard = run_of("hard", [record("b", seconds=5.5), record("c", **given_up)])
    text = performance.solved_table({"paper": [paper], "hard": [hard]})
    row = "| `exact`, what it gave up again | here | 3 | 1 | 10 | 2 | 66.67 | 50.00 | 1202.000 |"
    assert row in text


def test_estimates_are_judged_by_counts_with_a_longer_limit() -> None:
    """The hardest instances have no other exact count; exact answers do not hide a miss."""
    estimates = [record(name, status=Status.GUARANTEE, count=10) for name in "ab"]
    paper = run_of("paper", [*estimates, record("c")], "auto")
    hard = run_of("hard", [record("a", count=10), record("b", count=8), record("c")])
    errors = accuracy.errors_of_all({"paper": [paper], "hard": [hard]})
    table = accuracy.error_table(errors)
    assert "| auto (paper) | 3 | 3 | 1 | 66.7% | 66.7% | 0 of 1 | 0.2500 | 2 |" in table


def test_zeros_are_counted_and_left_out() -> None:
    """By data set and method; what one method proves to be 0 is none of the others' merit."""
    found = [record("a", count=0, low=0, high=0), record("b", seconds=2.0)]
    runs = [
        run_of("paper", found, "auto"),
        run_of("paper", [record("a", status=Status.STOPPED), found[1]], "xcount"),
    ]
    text = performance.suite_tables({"paper": runs})
    for method in ("auto", "xcount"):
        for name in ("Adult", "**all**"):
            assert f"| {name} | `{method}` | 10 | 2 | 1 | 1 | 1 | 2.000 | 2.0000 |" in text


def test_hard_instances_say_when_they_ended() -> None:
    """Before their limit, because a part of the time is kept for a cover."""
    given_up = [
        record(name, status=Status.STOPPED, seconds=s) for name, s in (("a", 7.8), ("b", 8))
    ]
    runs = {"paper": [run_of("paper", [record("a")])], "hard": [run_of("hard", given_up)]}
    assert "it gave up after 78 to 80 % of its limit." in performance.suite_tables(runs)


def test_the_verdict_leaves_out_what_was_not_run(tmp_path: Path) -> None:
    """A run without estimates, and ablations without some of their methods, have no row."""
    zero = record("a", count=0, low=0, high=0)
    runs = {
        "paper": [run_of("paper", [zero], "auto")],
        "ablations": [run_of("ablations", [zero], "xcount")],
        "gaps": [run_of("gaps", [record("a", gap="2")], "xcount")],
    }
    rows = verdict.section(runs, tmp_path).splitlines()[2:]
    found = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    solved = "Table 2, figure 2: solved"
    assert found == ["Table 1: data sets", solved, "Figure 4: scalability"]


def test_the_image_has_the_python_of_the_locked_versions() -> None:
    """And installs them from the list."""
    text = (PROJECT / "benchmarks" / "Containerfile").read_text()
    lock = PROJECT / "requirements" / "test.lock"
    version = lock.read_text().splitlines()[0].rpartition(" ")[2]
    assert f"FROM python:{version}-slim" in text
    assert f"-r requirements/{lock.name}" in text


def test_the_pages_show_the_results_that_are_kept() -> None:
    """They are what `python -m experiments.page` makes of benchmarks/results; each section once."""
    texts = {path: path.read_text() for path in page.pages()}
    assert [page.filled(path) for path in texts] == list(texts.values())
    for name in page.SECTIONS:
        assert sum(f"<!-- begin {name} -->" in text for text in texts.values()) == 1, name


def test_a_mistaken_folder_leaves_the_pages_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that does not exist is named, and nothing is written."""
    shown = tmp_path / "page.md"
    shown.write_text("<!-- begin paper -->\nkept\n<!-- end paper -->\n")
    with pytest.raises(SystemExit):
        page.main([str(tmp_path / "none"), "--docs", str(tmp_path)])
    assert "is not a folder" in capsys.readouterr().err
    assert "kept" in shown.read_text()


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("90s", 90), ("1.5h", 5400)])
def test_budgets(text: str, seconds: float) -> None:
    """A budget is a number with its unit."""
    assert budget_seconds(text) == seconds
    with pytest.raises(argparse.ArgumentTypeError):
        budget_seconds("10")


def test_the_plan_judges_by_earlier_results() -> None:
    """What a run took is scaled to the instances and the limit; without a run it is not noted."""
    records = [record("a", elapsed_seconds=2.0), record("b", elapsed_seconds=8.0, status="stopped")]
    runs = {"paper": [run_of("paper", records, "exact")]}
    study = suites.Study("paper", ("exact", "auto"), 60, 30, isolated=False)
    found = durations.planned([study], [], runs)
    assert found == [("paper", 60 * (2 + 24) / 2, 1800), ("paper", None, 1800)]
    assert "| paper | 2 | 13 min, without 1 of them | 1 h 0 min |" in durations.table(found)


def test_the_plan_names_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    """All sections of the pages come from parts of the full version, but for the earlier state."""
    assert runs_of_studies.main(["--full", "--plan"]) == 0
    text = capsys.readouterr().out
    names = {*(study.suite for study in suites.FULL), *(each.name for each in suites.COMMANDS)}
    for name in names:
        assert f"\n| {name} |" in text
    needed = {name.partition(".")[0] for name, _ in page.SECTIONS.values()}
    assert needed - names == {"wild"}


def test_the_full_version_has_the_limits_of_the_kept_runs() -> None:
    """And their threads: one, but for the larger models."""
    kept = {
        (run.settings.suite, run.settings.method): run.settings
        for runs in runs_by_suite(RESULTS).values()
        for run in runs
    }
    for study in suites.FULL:
        for method in study.methods:
            found = kept[study.suite, method]
            assert (found.limit_seconds, found.jobs) == (study.limit_seconds, study.jobs)
            assert found.isolated == study.isolated


def test_commands_write_into_the_folder_and_ctrl_c_ends_all(tmp_path: Path) -> None:
    """One that lacks its data is left out."""
    asked: list[object] = []

    def stopped(arguments: Sequence[str]) -> int:
        asked.append(list(arguments))
        return STOPPED

    def lacking(arguments: Sequence[str]) -> int:
        raise DataError("no data")

    commands = [suites.Command("a.json", lacking, 1), suites.Command("b.json", stopped, 1)]
    options = argparse.Namespace(data="d", cache="c", output=tmp_path, full=True)
    with pytest.raises(KeyboardInterrupt):
        runs_of_studies.run_commands([*commands, commands[1]], options)
    assert asked == [["--output", str(tmp_path / "b.json"), "--data", "d", "--cache", "c"]]


def test_what_is_forgotten_is_what_was_asked(tmp_path: Path) -> None:
    """Files of other studies stay."""
    for name in ("gaps-auto.jsonl", "paper-auto.jsonl", "weights.json", "sampling.json"):
        (tmp_path / name).touch()
    runs_of_studies.forget(["gaps", "weights", "limits"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["paper-auto.jsonl", "sampling.json"]


def test_words_that_the_full_version_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the page's samples; some commands are no part of the short version."""
    for arguments in (["--full", "--sample", "3"], ["limits"]):
        with pytest.raises(SystemExit):
            runs_of_studies.options_of(arguments)
    assert "no study limits; there are methods," in capsys.readouterr().err


def test_a_named_study_takes_other_methods_and_samples() -> None:
    """The full version only leaves methods out."""
    asked = ["paper", "--methods", "cnf-ganak", "--sample", "9", "--limit-seconds", "60"]
    (study,) = runs_of_studies.studies_of(runs_of_studies.options_of([*asked, "--isolated"]))
    assert study == suites.Study("paper", ("cnf-ganak",), 9, 60.0, 3, jobs=0, isolated=True)
    options = runs_of_studies.options_of(["--full", "gaps", "--methods", "xcount"])
    methods = [study.methods for study in runs_of_studies.studies_of(options)]
    assert methods == [(), ("xcount",), ("xcount",)]


def test_ranks_of_equal_values_are_shared() -> None:
    """Spearman's rho of a reversed order is -1; ties count half."""
    assert weights.ranks([3.0, 1.0, 3.0]) == [1.5, 0.0, 1.5]
    assert weights.rank_correlation([1, 2, 3], [3, 2, 1]) == -1
    assert weights.rank_correlation([1, 2, 3], [10, 20, 30]) == 1
    assert np.isnan(weights.rank_correlation([1, 2], [5, 5]))


def test_shares_are_shown_by_feature() -> None:
    """An estimate is marked, and features with more sensitive regions come first."""
    shares = [{n: {"share": s, "exact": s < 0.2} for n in weights.MEASURES} for s in (0.1, 0.25)]
    features = [{"name": f"x{i}", "seconds": 1.0, "shares": s} for i, s in enumerate(shares)]
    about = {"model": "m", "gap": "1", "n_rows": 3, "limit_seconds": 2.0}
    found = HEADER | about | {"features": features}
    rows = weights.report(found).splitlines()[-3:]
    assert rows[0] == "| x1 | ~25 | ~25 | ~25 | ~25 | 1.00 |"
    assert rows[1] == "| x0 | 10 | 10 | 10 | 10 | 1.00 |"


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
    path = tmp_path / sampling.FILE
    sampling.write({"about": HEADER, "speed": [speed | {"samples_per_second": 2e6}]}, path)
    open_end = sampled("b", 1e-6, share_low=0.0, stop_reason="timeout", n_trees=9)
    rows = [open_end, sampled("a", 0.1)]
    sampling.write({"about": HEADER, "intervals": rows, "rarity": rows}, path)
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
