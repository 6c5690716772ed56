"""Checks of limits, and samples of the wild suite: what they ask, and what they call a fault."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections import Counter
from pathlib import Path

import xcount
from benchmarks import limits
from benchmarks.limits import CHANGES, Case, Measured, cases, measure
from benchmarks.limits_models import RandomModel, random_document
from benchmarks.wild import CHANGES as WILD_CHANGES
from benchmarks.wild import DISTANCES, Question, sample
from xcount.model.examples import adult_model_path
from xcount.model.loaders import xgboost_json


def test_every_model_meets_every_change_and_command() -> None:
    """In counts, witnesses and audits, and with both signals."""
    found = list(cases(["trees-1000"], ("limits", "signals")))
    assert {case.command for case in found} == {"count", "witness", "audit"}
    assert {case.end for case in found} == {None, signal.SIGINT, signal.SIGTERM}
    for words in CHANGES.values():
        assert any(set(words) <= set(case.words) for case in found)
    assert len({case.name for case in found}) == len(found)


def test_faults_are_named() -> None:
    """Of the limits of time and memory, and of signals."""
    limit = Case("trees-1000", "count", ())
    ended = Case("trees-1000", "count", (), signal.SIGINT, 1.0)
    good = Measured(5.9, 5.9, 370_000_000, 3, True)
    assert not good.fault(limit, by_processor=False)
    assert good.fault(ended, by_processor=False) == "late"
    bad = Measured(6.1, 5.9, 390_000_000, 3, False)
    assert bad.fault(limit, by_processor=False) == "late, memory, no answer"
    assert bad.fault(limit, by_processor=True) == "memory, no answer"


def test_a_command_is_measured() -> None:
    """Also one that has ended when its signal comes."""
    path = Path(adult_model_path())
    done = measure(Case("adult", "inspect", (), signal.SIGTERM, 0.05), path)
    assert done.seconds < 60
    assert done.peak_bytes > 0


def test_runs_of_limits_are_kept_and_continue(tmp_path: Path) -> None:
    """Each command is a line of the file; what is there is not run again; the page shows it."""
    asked: list[str] = []

    def measured(case: Case, path: Path) -> Measured:
        asked.append(case.name)
        return Measured(5.0, 9.0, 10**8, 3, case.command != "witness")

    path = tmp_path / limits.FILE
    options = Namespace(output=path, restart=False, processor_time=False)
    for _ in range(2):
        found = cases(["trees-1000"], ("limits",))
        limits.run_cases(found, {"trees-1000": Path("m.json")}, options, measured)
    assert len(asked) == len(set(asked)) == 16
    text = limits.section({}, tmp_path)
    row = "| trees-1000 count --sensitive f0 --distance 1 --gap 1 | 5.0 | 9.0 | 100 | 3 | yes |"
    assert row in text
    assert "3 of 16 do not hold:\n\n- trees-1000 witness" in text


def test_random_models_are_models() -> None:
    """With the trees, the depth and the classes that were asked for."""
    shape = RandomModel(6, 9, 20, n_features=4, n_cuts=7, n_classes=3)
    ensemble = xgboost_json.from_document(random_document(shape), "here", "xgboost-json")
    assert (ensemble.n_trees, ensemble.n_outputs) == (6, 3)
    assert ensemble.max_depth <= 9
    assert xcount.Grid.of(ensemble).n_guards <= 4 * 7


def test_a_sample_is_even() -> None:
    """As many of each change and distance, and no model is left out."""
    asked = [
        Question(f"{model}-{change}-{distance}", str(model), "9", change, distance, 1, ())
        for model in range(17)
        for change in WILD_CHANGES
        for distance in DISTANCES
    ]
    chosen = sample(asked, 42)
    assert set(Counter((q.change, q.distance) for q in chosen).values()) == {7}
    assert len({q.model for q in chosen}) == 17
    assert sample(asked, None) == asked
