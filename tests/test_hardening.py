"""Short runs of the tools that look for trouble; memory, threads and clocks."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from tools import fuzz, reproduce, soak
from tools.corpus import CORPUS
from xcount import _core
from xcount.model.examples import adult_model_path, ensemble_of
from xcount.support.numerals import to_json

SOURCES = Path(xcount.__file__).parent


def test_damaged_files_give_an_answer_or_an_error(tmp_path: Path) -> None:
    """A short fuzz of every loader; the tool runs as long as you like."""
    targets: dict[str, bytes | None] = {**fuzz.seeds()}
    fuzz.warm_up(targets, tmp_path)
    for name, data in targets.items():
        assert fuzz.run_cases(name, data, range(15), 1, tmp_path) == 15, name


def test_damaged_arrays_do_not_crash_the_core(tmp_path: Path) -> None:
    """Indices, sizes and masks that are wrong are refused at the native boundary."""
    assert fuzz.run_cases("native", None, range(150), 1, tmp_path) == 150


def test_axes_of_absurd_size_are_refused() -> None:
    """An axis that claims two billion cells is an error, not an allocation."""
    arrays = fuzz._forest_arrays()
    arrays["n_cells"] = np.array([3, 2**31 - 1], dtype=np.int32)
    with pytest.raises(ValueError, match="more than"):
        _core.Forest(**arrays)


def test_what_the_core_is_asked_about_must_exist() -> None:
    """Masks and cells out of range, and the masks of another forest, are errors, not memory."""
    forest = _core.Forest(**fuzz._forest_arrays())
    masks = _core.MaskSpace(forest, [0], 1)
    limbs = np.array([80], dtype=np.uint64)
    for mask in (-1, 3, 2**62):
        for ask in (masks.cells, masks.neighbours, lambda m: masks.distance(0, m)):
            with pytest.raises(ValueError, match="out of range"):
                ask(mask)
        with pytest.raises(ValueError, match="out of range"):
            _core.ExactCounter(forest, masks, limbs).live([(0, mask)], 1)
    counter = _core.ExactCounter(forest, masks, limbs)
    with pytest.raises(ValueError, match="number of masks"):
        counter.start([([(0, 5)], False, 0, 0)], 10, 100, 2**20, 1)
    sampler = _core.Sampler(forest, masks, limbs, np.arange(3), None)
    for cells in ([0, 3], [0, -1], [0]):
        with pytest.raises(ValueError, match=r"out of range|one cell per feature"):
            sampler.decide(np.array(cells, dtype=np.int32))
    larger = fuzz._forest_arrays()
    larger["n_cells"] = np.array([5, 5], dtype=np.int32)
    with pytest.raises(ValueError, match="another forest"):
        _core.BruteForce(_core.Forest(**larger), masks, limbs)


@pytest.mark.slow
def test_faults_end_in_an_answer_or_a_line() -> None:
    """One failing call of each kind in each command; the tool makes every call fail."""
    inject_faults("--most", "1")


@pytest.mark.scheduled
@pytest.mark.timeout(4 * 3600)
def test_all_faults_end_in_an_answer_or_a_line() -> None:
    """Every allocation of the core, and every open, read, write, fsync and rename in Python."""
    inject_faults()


def inject_faults(*options: str) -> None:
    """Run the tool; it says if there is no compiler to make allocations fail."""
    command = [sys.executable, "-m", "tools.faults", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("together: ")


def test_a_finding_is_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer sees exceptions that are not XCount's."""

    def broken(data: bytes, path: Path) -> None:
        path.write_bytes(data)
        raise RuntimeError("a bug")

    monkeypatch.setattr(fuzz, "try_file", broken)
    assert fuzz.run_cases("kind", b"seed", range(3), 1, tmp_path) == 0
    assert (tmp_path / "kind-1-0").exists()


def test_all_methods_agree_on_random_questions() -> None:
    """A short soak; the tool runs as long as you like."""
    run = soak.Soak()
    findings = [finding for seed in range(12) for finding in run.ask(seed)]
    assert findings == []
    assert run.n_answers["exact"] == 24


def test_all_methods_agree_within_random_domains() -> None:
    """The truth is a plain enumeration of points, which knows nothing of cells and boxes."""
    run = soak.Soak(domains=True)
    findings = [finding for seed in range(25) for finding in run.ask(seed)]
    assert findings == []
    assert run.n_answers["exact"] > 25


def test_a_disagreement_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak compares with enumeration."""

    def wrong(*arguments: Any, method: str, **options: Any) -> Any:
        gap = options.pop("gap") if method == "brute" else 10**9
        options.pop("gap", None)
        return xcount.count(*arguments, method="brute", gap=gap, **options)

    monkeypatch.setattr("tools.soak.count", wrong)
    assert any("enumeration" in finding for seed in range(5) for finding in soak.Soak().ask(seed))


def test_a_domain_that_is_left_out_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak compares the number of regions, too."""

    def wrong(*arguments: Any, rule: object, **options: Any) -> Any:
        return xcount.count(*arguments, **options)

    monkeypatch.setattr("tools.soak.count", wrong)
    run = soak.Soak(domains=True)
    assert any("brute says" in finding for seed in range(8) for finding in run.ask(seed))


def test_a_thousand_counts_leak_nothing() -> None:
    """The second half of a thousand counts, by all native counters, takes no more memory."""
    code = (
        "import xcount\n"
        "from xcount.support.process import held_memory_bytes\n"
        "from xcount.model.examples import adult_model_path\n"
        "model = xcount.load(adult_model_path())\n"
        "def ask(n):\n"
        "    for i in range(n):\n"
        "        xcount.count(model, sensitive='sex', gap=3, distance='any', seed=i, jobs=1,\n"
        "                     method=('exact', 'sample', 'auto')[i % 3], timeout=0.02)\n"
        "    return held_memory_bytes()\n"
        "before = ask(500)\n"
        "print(ask(500) - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 8 * 2**20


def result_text(**options: Any) -> str:
    """Return the result file of an audit without its times and memory."""
    model = adult_model_path()
    audit = xcount.audit(model, sensitive=["sex", "hours_per_week"], gaps=[1, 2], **options)
    data = audit.to_dict()
    del data["created"]
    for result in data["results"]:
        del result["seconds"], result["peak_memory_bytes"]
    return to_json(data)


@pytest.mark.parametrize("method", ["auto", "sample"])
def test_results_are_the_same_byte_for_byte(method: str) -> None:
    """Twice, and on one and on two threads; only times and memory differ."""
    one = result_text(method=method, jobs=1)
    assert result_text(method=method, jobs=1) == one
    assert result_text(method=method, jobs=2) == one
    assert json.loads(one)["results"]


def test_result_files_are_the_same_with_every_python() -> None:
    """Byte for byte, on one thread and on two, with all Pythons here that have XCount."""
    usable, _ = reproduce.interpreters(list(reproduce.candidates()))
    if len(usable) < 2:
        pytest.skip("XCOUNT_PYTHONS names no other Python that can import xcount")
    expected = reproduce.result_files(usable[0], 1)
    for interpreter in usable:
        found = reproduce.result_files(interpreter, 2)
        assert reproduce.differences(expected, found) == [], interpreter


def test_a_difference_between_result_files_is_seen() -> None:
    """Files that are missing, longer or different, with the place."""
    said = reproduce.differences({"a": b"12", "b": b"1", "c": b""}, {"a": b"13", "b": b"12"})
    assert [text.split(":")[0] for text in said] == ["a, byte 1", "b, byte 1", "c is not there"]


def test_pythons_without_xcount_are_left_out(tmp_path: Path) -> None:
    """With the reason."""
    usable, refused = reproduce.interpreters([sys.executable, str(tmp_path / "python3.99")])
    assert [interpreter.path for interpreter in usable] == [sys.executable]
    assert "No such file" in refused[0]


def test_no_limit_depends_on_the_wall_clock() -> None:
    """Clocks that are set back change no limit: only monotonic ones are read."""
    wrong = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) == ("time", "time")
    ]
    assert wrong == []


def test_a_huge_number_of_cells_is_no_problem() -> None:
    """Thousands of thresholds on one axis are laid on the grid and counted."""
    random = np.random.default_rng(0)
    stumps = [(0, float(t), 0.0, 1.0) for t in random.normal(size=3000)]
    assert xcount.count(ensemble_of(*stumps), sensitive="f0", gap="0.5").count == 3001


def test_the_fuzzer_sees_what_a_library_predicts_otherwise() -> None:
    """One leaf of another size is enough; the file itself agrees."""
    path = CORPUS / "seeds" / "lightgbm.txt"
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    ensemble = xcount.load(path)
    fuzz.compare_with_library(ensemble, path)
    tree = ensemble.trees[0]
    wrong = replace(tree, value=tree.value + (tree.feature < 0))
    with pytest.raises(AssertionError, match="in another way"):
        fuzz.compare_with_library(replace(ensemble, trees=(wrong, *ensemble.trees[1:])), path)
