"""The harness: runs, records, models, data sets and pictures, on models that take no time."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness import datasets, running, tables
from benchmarks.harness.instances import Instance, chosen_features, stratified_sample
from benchmarks.harness.models import ModelFile, Training, models_of
from benchmarks.harness.options import memory_size
from benchmarks.harness.records import RecordFile, ResumeError, Run, RunSettings, Status, read_run
from experiments import run as experiments_run

PUBLISHED_COUNTS = {1: 37, 2: 564, 3: 4768, 4: 11175, 5: 23241}
SETTINGS = RunSettings("paper", method="brute", limit_seconds=30, memory_bytes=1 << 30, jobs=1)


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> list[ModelFile]:
    """The paper's worked example: one to five trees of depth 3 on Diabetes."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    cache = tmp_path_factory.mktemp("cache")
    return models_of(Training("diabetes", 3, (1, 2, 3, 4, 5)), cache)


@pytest.fixture
def instances(small_models: list[ModelFile]) -> list[Instance]:
    """One question for each of the small models."""
    return [
        Instance(
            name=f"diabetes-{model.n_trees}",
            model=model.path,
            dataset="diabetes",
            depth=3,
            n_trees=model.n_trees,
            n_guards=model.n_guards,
            sensitive=(2,),
            gap="2",
        )
        for model in small_models
    ]


def synthetic(n_trees: int, depth: int, feature: int, dataset: str = "adult") -> Instance:
    """Return an instance whose model nobody reads."""
    name = f"{dataset}-d{depth}-t{n_trees}"
    path = Path(f"{name}.json")
    return Instance(f"{name}-f{feature}", path, dataset, depth, n_trees, 9, (feature,), "2")


def record(name: str, status: Status, seconds: float, **more: Any) -> dict[str, Any]:
    """Return a record as a run would write it."""
    about = synthetic(10, 3, 0).to_dict()
    return about | {"name": name, "status": status, "seconds": seconds} | more


@pytest.mark.parametrize(("isolated", "workers"), [(False, 1), (True, 1), (True, 2), (True, 9)])
def test_a_run_gives_the_published_counts(
    instances: list[Instance], tmp_path: Path, isolated: bool, workers: int
) -> None:
    """Training, slicing, loading and counting together give the counts the authors publish."""
    settings = dataclasses.replace(SETTINGS, isolated=isolated, workers=workers)
    records = RecordFile(tmp_path / "run.jsonl", settings)
    running.run_suite(instances, settings, records)
    run = read_run(records.path)
    assert {r["n_trees"]: r["count"] for r in run.records} == PUBLISHED_COUNTS
    assert {r["status"] for r in run.records} == {"exact"}
    assert run.settings == settings
    running.run_suite(instances, settings, RecordFile(records.path, settings))
    assert len(read_run(records.path).records) == len(instances)


def test_the_first_trees_of_a_long_training_are_the_short_training(tmp_path: Path) -> None:
    """A model cut from a longer training is the model that a shorter training gives."""
    pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    cut = models_of(Training("diabetes", 4, (3, 12)), tmp_path / "long")[0]
    short = models_of(Training("diabetes", 4, (3,)), tmp_path / "short")[0]
    trees = [
        json.loads(model.path.read_text())["learner"]["gradient_booster"]["model"]["trees"]
        for model in (cut, short)
    ]
    assert trees[0] == trees[1]
    assert (cut.n_guards, cut.used) == (short.n_guards, short.used)


def test_cached_models_are_not_trained_again(small_models: list[ModelFile]) -> None:
    """A second call reads the cache; other parameters do not."""
    cache = small_models[0].path.parent.parent
    before = small_models[0].path.stat().st_mtime_ns
    assert models_of(Training("diabetes", 3, (1, 2, 3, 4, 5)), cache) == small_models
    assert small_models[0].path.stat().st_mtime_ns == before
    assert len(models_of(Training("diabetes", 3, (1, 2)), cache)) == 2


def test_a_run_goes_on_where_it_stopped(instances: list[Instance], tmp_path: Path) -> None:
    """Records on the disk are kept, a line that was cut off is counted anew."""
    path = tmp_path / "run.jsonl"
    running.run_suite(instances[:2], SETTINGS, RecordFile(path, SETTINGS))
    path.write_text(path.read_text()[:-5])
    records = RecordFile(path, SETTINGS)
    assert list(records.done) == ["diabetes-1"]
    running.run_suite(instances[:3], SETTINGS, records)
    assert [r["name"] for r in read_run(path).records] == [i.name for i in instances[:3]]


def test_a_run_with_other_settings_is_not_mixed_in(tmp_path: Path) -> None:
    """A file is not continued under another limit, unless it is started afresh."""
    path = tmp_path / "run.jsonl"
    RecordFile(path, SETTINGS).add(record("a", Status.EXACT, 1.0))
    other = dataclasses.replace(SETTINGS, limit_seconds=31)
    with pytest.raises(ResumeError, match="--restart"):
        RecordFile(path, other)
    assert not RecordFile(path, other, restart=True).done


def test_whatever_happens_to_a_child_becomes_its_record(instances: list[Instance]) -> None:
    """A crash, an endless loop, too much memory and an exception end one instance, not the run."""

    def answer(
        instance: Instance, model: running.LoadedModel, settings: RunSettings
    ) -> dict[str, Any]:
        match instance.n_trees:
            case 1:
                os.kill(os.getpid(), signal.SIGKILL)
            case 2:
                while True:
                    time.monotonic()
            case 3:
                bytearray(2 << 30)
            case 4:
                raise RuntimeError("no idea")
        return running.answer(instance, model, settings)

    settings = dataclasses.replace(SETTINGS, isolated=True, workers=2, limit_seconds=1)
    records = list(running.run_isolated(instances, settings, answer, grace_seconds=0.2))
    found = {r["n_trees"]: (r["status"], r.get("message")) for r in records}
    assert found == {
        1: ("crash", "killed by SIGKILL"),
        2: ("timeout", None),
        3: ("memory", None),
        4: ("error", "RuntimeError: no idea"),
        5: ("exact", None),
    }


def test_limits_of_processor_time_do_not_count_waiting(instances: list[Instance]) -> None:
    """What waits may take longer than its limit; what computes is ended at it."""

    def answer(
        instance: Instance, model: running.LoadedModel, settings: RunSettings
    ) -> dict[str, Any]:
        if instance.n_trees == 2:
            while True:
                time.monotonic()
        if instance.n_trees == 1:
            time.sleep(1.5)
        return running.answer(instance, model, settings)

    settings = dataclasses.replace(
        SETTINGS, isolated=True, workers=2, limit_seconds=1, processor_time=True
    )
    found = {r["n_trees"]: r for r in running.run_isolated(instances[:3], settings, answer)}
    assert {n: r["status"] for n, r in found.items()} == {1: "exact", 2: "timeout", 3: "exact"}
    assert found[2]["seconds"] == 1
    assert found[1]["seconds"] < 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_no_child_outlives_a_run_that_is_killed(small_models: list[ModelFile]) -> None:
    """When the run itself is killed in the middle of a count, its child ends too."""
    runner = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_RUN, str(small_models[0].path)],
        cwd=datasets.PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    with runner.stdout:
        child = int(runner.stdout.readline())
        runner.kill()
        runner.wait()
    deadline = time.monotonic() + 10
    while _is_running(child) and time.monotonic() < deadline:
        os.sched_yield()
    assert not _is_running(child)


ENDLESS_RUN = """
import os, pathlib, signal, sys
from benchmarks.harness import instances, records, running

def answer(*args):
    print(os.getpid(), flush=True)
    signal.pause()

path = pathlib.Path(sys.argv[1])
instance = instances.Instance("a", path, "diabetes", 3, 1, 7, (2,), "2")
list(running.run_isolated([instance], records.RunSettings("paper", "brute"), answer))
"""


def _is_running(pid: int) -> bool:
    """Tell whether a process exists and is not merely waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_query_error_does_not_end_an_in_process_run(
    instances: list[Instance], tmp_path: Path
) -> None:
    """An instance that cannot be asked is recorded as an error."""
    wrong = dataclasses.replace(instances[0], sensitive=(99,))
    records = RecordFile(tmp_path / "run.jsonl", SETTINGS)
    running.run_suite([wrong, instances[1]], SETTINGS, records)
    assert [r["status"] for r in read_run(records.path).records] == ["error", "exact"]


def test_shorter_limits_solve_what_was_fast_enough() -> None:
    """Solved within a limit, how much of it is not 0, and what all would have cost with it."""
    records = [
        {"name": "a", "status": "exact", "seconds": 0.5},
        {"name": "b", "status": "exact", "seconds": 7.0},
        {"name": "c", "status": "stopped", "seconds": 30.0},
    ]
    run = Run(SETTINGS, {}, tuple(records))
    rows = tables.limits_table([run], {"a"}, (1, 10, 60)).splitlines()[2:]
    told = [row.split(" | ")[1:5] for row in rows]
    assert told == [["1", "1", "0", "33.33"], ["10", "2", "1", "66.67"]]
    assert [row.split(" | ")[-1] for row in rows] == ["2.5 |", "17.5 |"]


def test_par2_charges_twice_the_limit() -> None:
    """The score is the mean of the seconds, where an unsolved instance costs twice the limit."""
    records = [
        record("a", Status.EXACT, 1.0),
        record("b", Status.GUARANTEE, 4.0),
        record("c", Status.STOPPED, 9.0),
        record("d", Status.CRASH, 0.0),
    ]
    assert tables.par2(records, SETTINGS) == (1 + 4 + 60 + 60) / 4


def test_the_summary_counts_what_was_solved(tmp_path: Path) -> None:
    """The table has a row for each data set and one for all."""
    file = RecordFile(tmp_path / "run.jsonl", SETTINGS)
    file.add(record("a", Status.EXACT, 1.0, low=0, high=0, n_regions=10, peak_memory_bytes=3 << 20))
    file.add(record("b", Status.STOPPED, 2.0, low=1, high=5, n_regions=10) | {"dataset": "wine"})
    run = read_run(file.path)
    text = tables.joined(tables.dataset_table(run), tables.unsolved_table(run))
    assert "| Adult | 1 | 1 | 0 | 0 | 1 | 0.00 | 1.00 | 1.0000 | 1.00 | 3 | 1.000 |" in text
    assert "| **all** | 2 | 1 | 0 | 1 | 1 | 20.00 | 3.00 | 1.5000 | 2.00 | 3 | 30.500 |" in text
    assert "0.1..0.5" in text


def test_a_sample_is_spread_evenly() -> None:
    """Every data set, size and depth has its share of a sample."""
    suite = [
        synthetic(n_trees, depth, feature, dataset)
        for dataset in ("adult", "wine")
        for depth in (3, 4)
        for n_trees in (10, 20, 30)
        for feature in range(5)
    ]
    sample = stratified_sample(suite, 12)
    assert len(sample) == 12
    assert Counter(i.dataset for i in sample) == {"adult": 6, "wine": 6}
    assert Counter(i.depth for i in sample) == {3: 6, 4: 6}
    assert Counter(i.n_trees for i in sample) == {10: 4, 20: 4, 30: 4}
    assert sample == stratified_sample(suite, 12)
    assert {i.name for i in sample} <= {i.name for i in stratified_sample(suite, 20)}
    assert stratified_sample(suite, 1000) == suite


def test_eight_used_features_are_drawn() -> None:
    """A model is asked about 8 of its used features, always the same ones."""
    model = ModelFile(Path("m.json"), "adult", 3, 10, 9, tuple(range(1, 29, 2)))
    chosen = chosen_features(model)
    assert len(set(chosen)) == 8
    assert set(chosen) <= set(model.used)
    assert chosen == chosen_features(model)
    assert chosen_features(dataclasses.replace(model, used=(4, 6))) == (4, 6)


@pytest.mark.parametrize(("text", "size"), [("4G", 1 << 32), ("500 MB", 500 << 20), ("7", 7)])
def test_memory_sizes(text: str, size: int) -> None:
    """Sizes are read with or without a unit."""
    assert memory_size(text) == size


def test_words_become_codes_in_alphabetical_order() -> None:
    """A column of words is numbered alphabetically, missing ones as a question mark."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": ["x", None, "b"], "n": [1.5, 2.0, 3.0]})
    assert datasets.as_numbers(table).tolist() == [[2, 1.5], [0, 2.0], [1, 3.0]]


def test_a_missing_set_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A set that is not in the folder comes from OpenML, its target turned into 0 and 1."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")

    class Bunch:
        data = pandas.DataFrame({"hours-per-week": [1, 2, 3]})
        target = pandas.Series([">50K", "<=50K", ">50K"], dtype="category")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *args, **options: Bunch)
    names, rows, target = datasets.load_table(datasets.BY_KEY["adult"], tmp_path)
    assert names == ("hours_per_week",)
    assert rows.tolist() == [[1], [2], [3]]
    assert target.tolist() == [1, 0, 1]


def test_without_data_and_network_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be had is left out, and named with its file and the option."""
    pytest.importorskip("sklearn")

    def fail(*args: Any, **options: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    monkeypatch.setattr("benchmarks.harness.shipped.unpack", lambda *training: None)
    folder = str(tmp_path)
    where = ["--data", folder, "--cache", folder, "--output", str(tmp_path / "runs")]
    assert experiments_run.main(["paper", "--sets", "adult", *where]) == 0
    error = capsys.readouterr().err
    assert "adult.csv.gz" in error
    assert "--data" in error


@pytest.mark.parametrize(
    ("key", "n_rows", "n_features"),
    [("adult", 48842, 14), ("covtype", 20000, 54), ("mnist", 10000, 784), ("protein", 45730, 9)],
)
def test_local_sets_have_the_shape_they_are_said_to_have(
    key: str, n_rows: int, n_features: int
) -> None:
    """A local copy is read whole, as numbers."""
    pytest.importorskip("pandas")
    spec = datasets.BY_KEY[key]
    if not datasets.is_local(spec):
        pytest.skip(f"{spec.file} is not in {datasets.data_folder()}")
    names, rows, target = datasets.load_table(spec)
    assert rows.shape == (n_rows, n_features) == (len(target), len(names))
    assert np.isfinite(rows).all()
    assert set(np.unique(target)) == {0, 1} or spec.objective == "reg:squarederror"


def test_the_same_drawing_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also of a run that solved nothing; an SVG goes with a PDF."""
    pytest.importorskip("matplotlib")
    from experiments.plots import cactus

    solved = [synthetic(n, 3, 0).to_dict() | {"status": "exact", "seconds": n} for n in (10, 20)]
    runs = [
        Run(dataclasses.replace(SETTINGS, method="exact"), {}, tuple(solved)),
        Run(SETTINGS, {}, (record("a", Status.TIMEOUT, 30.0),)),
    ]
    for name in ("a", "b"):
        cactus(runs, tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.pdf").stat().st_size > 1000
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_method_looks_the_same_in_every_picture() -> None:
    """No two methods share colour and line, or a marker; dotted lines are left to the paper."""
    from experiments.plots import METHOD_STYLES
    from experiments.suites import METHODS

    styles = [METHOD_STYLES[method] for method in METHODS]
    assert len({(colour, line) for colour, line, _ in styles}) == len(METHODS)
    assert len({marker for _, _, marker in styles}) == len(METHODS)
    assert ":" not in {line for _, line, _ in styles}


def test_pictures_say_limits_and_what_few_instances_are(tmp_path: Path) -> None:
    """Words in the pictures: limits, the paper's shares, small groups, and what a cell counts."""
    mpl = pytest.importorskip("matplotlib")
    from experiments import plots

    records = [
        synthetic(n, depth, 0, "adult").to_dict() | {"status": "exact", "seconds": n / 100}
        for n, depth in ((10, 3), (20, 3), (20, 4))
    ]
    run = Run(dataclasses.replace(SETTINGS, method="exact"), {}, tuple(records))
    names = ("cactus", "guards", "heat")
    made = {name: tmp_path / f"{name}.svg" for name in names}
    with mpl.rc_context({"svg.fonttype": "none"}):  # words instead of outlines
        plots.cactus([run], made["cactus"], shares={"xcount": 0.5})
        plots.completion_by_guards([run], made["guards"])
        plots.heat_map(run, made["heat"])
    words = {name: path.read_text() for name, path in made.items()}
    limit = f"limit {SETTINGS.limit_seconds:g} s<"
    assert limit in words["cactus"]
    assert "XCount in the paper: 50 %, 1800 s" in words["cactus"]
    assert "hollow: fewer than 5" in words["guards"]
    assert "1 instance a cell; unsolved counts as the limit" in words["heat"]
    assert "blank: none asked" in words["heat"]


def test_errors_are_measured_against_exact_counts() -> None:
    """Answers beyond epsilon, wrong zeros and intervals that miss are counted."""
    pytest.importorskip("matplotlib")
    from experiments.accuracy import error_table, errors_of

    found = [
        record("a", Status.GUARANTEE, 1.0, count=105, low=90, high=110),
        record("b", Status.GUARANTEE, 1.0, count=120, low=110, high=130),
        record("c", Status.EXACT, 1.0, count=0, low=0, high=0),
        record("d", Status.STOPPED, 1.0, count=5, low=0, high=10),
        record("e", Status.EXACT, 1.0, count=7, low=7, high=7),
    ]
    run = Run(dataclasses.replace(SETTINGS, method="sample"), {}, tuple(found))
    errors = errors_of(run, {"a": 100, "b": 100, "c": 3, "d": 4})
    assert errors.relative == (0.05, 0.2, 1.0)
    assert (errors.n_compared, errors.n_wrong_zeros) == (3, 1)
    assert (errors.n_outside, errors.n_missed) == (2, 2)
    row = f"| sample ({SETTINGS.suite}) | 3 | 3 | 3 | 0.0% | 33.3% | 1 of 3 | 1.0000 | 2 |"
    assert row in error_table([errors])


def test_errors_of_counts_beyond_any_float() -> None:
    """A count of four hundred digits has an error like any other."""
    pytest.importorskip("matplotlib")
    from experiments.accuracy import errors_of

    true = 10**400
    found = [
        record(name, Status.GUARANTEE, 1.0, count=tenths * true // 10, low=0, high=2 * true)
        for name, tenths in (("a", 11), ("b", 12))
    ]
    errors = errors_of(Run(SETTINGS, {}, tuple(found)), {"a": true, "b": true})
    assert errors.n_outside == 1
    assert errors.relative == (0.1, 0.2)
