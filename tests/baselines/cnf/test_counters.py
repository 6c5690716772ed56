"""Ganak and ApproxMC on the encoded questions."""

from __future__ import annotations

import math
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from effort import n_examples
from oracle import known
from published import PUBLISHED, SMALL, published_model
from test_encode import expected_count, problems

from xcount import count
from xcount.baselines.cnf import counters
from xcount.baselines.cnf.decisions import JumpDiagram
from xcount.baselines.cnf.encode import encode
from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.solver import Solver, SolverStopped
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import MissingExtraError, QueryWarning, XCountError
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def is_usable(name: str) -> bool:
    """Tell whether the counter and its right version are installed."""
    formula = Formula()
    formula.show = [formula.true]
    try:
        with Solver(name, Settings(timeout_seconds=60)) as solver:
            solver.count(formula)
    except XCountError:
        return False
    return True


@pytest.fixture(scope="module")
def ganak() -> str:
    """Skip where Ganak is not installed."""
    if not is_usable("ganak"):
        pytest.skip("pyganak 2.8 is not installed: pip install 'xcount[baselines]'")
    return "ganak"


@pytest.fixture(scope="module")
def approxmc() -> str:
    """Skip where ApproxMC is not installed."""
    if not is_usable("approxmc"):
        pytest.skip("pyapproxmc 4.1.24 is not installed: pip install 'xcount[baselines]'")
    return "approxmc"


@pytest.mark.slow
def test_ganak_counts_random_questions(ganak: str) -> None:
    """Ganak finds in the formula as many regions as a visit of all of them."""
    n_asked, n_models = 0, n_examples(400)
    with Solver(ganak, Settings()) as solver:
        for problem in problems(range(n_models)):
            formula = encode(problem)
            if formula.n_clauses < 300:  # for the sake of time
                assert solver.count(formula)["count"] == expected_count(problem)
                n_asked += 1
    assert n_asked >= 0.6 * n_models


@pytest.mark.slow
def test_ganak_counts_with_adders(ganak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where all sums are built from adders."""
    monkeypatch.setattr(JumpDiagram, "literal", lambda diagram: None)
    n_asked, n_models = 0, n_examples(100)
    with Solver(ganak, Settings()) as solver:
        for problem in problems(range(n_models)):
            formula = encode(problem)
            if formula.n_clauses < 250:  # Ganak takes long on adders of a hundred bits
                assert solver.count(formula)["count"] == expected_count(problem)
                n_asked += 1
    assert n_asked > 0.3 * n_models


def test_approxmc_is_exact_on_small_counts(approxmc: str) -> None:
    """Counts below ApproxMC's pivot come out exactly."""
    with Solver(approxmc, Settings()) as solver:
        for problem in problems(range(50)):
            answer = solver.count(encode(problem), epsilon=0.8, delta=0.2, seed=1)
            if answer["hashes"] == 0:
                assert answer["count"] == expected_count(problem)


def two_way_problem(n_features: int, n_cells: int) -> Problem:
    """Return a problem with 2 * (n_cells**n_features - 1) sensitive regions."""
    others = [(f, t) for f in range(1, n_features + 1) for t in range(n_cells - 1)]
    stumps = [(f, float(t), -1.0 if t == 0 else 0.0, 0.0) for f, t in others]
    gate = (0, 0.5, float(n_features), -float(n_features))
    blocked: Any = 0.0
    for f in range(1, n_features + 1):
        blocked = (f, 0.0, blocked if f > 1 else (0, 0.5, -2.0 * n_features, 0.0), 0.0)
    ensemble = ensemble_of(gate, blocked, *stumps)
    return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, 1, distance=1))


@pytest.mark.parametrize(("n_features", "n_cells"), [(1, 2), (2, 4), (3, 7), (5, 5)])
def test_approxmc_keeps_its_guarantee(approxmc: str, n_features: int, n_cells: int) -> None:
    """Over 200 fixed seeds at most the promised part misses; small counts never do."""
    problem = two_way_problem(n_features, n_cells)
    formula, expected = encode(problem), expected_count(problem)
    assert expected == 2 * (n_cells**n_features - 1)
    epsilon, delta, misses = 0.8, 0.3, 0
    with Solver(approxmc, Settings()) as solver:
        for seed in range(200):
            answer = solver.count(formula, epsilon=epsilon, delta=delta, seed=seed)
            misses += not expected / (1 + epsilon) <= answer["count"] <= expected * (1 + epsilon)
            assert answer["hashes"] > 0 or answer["count"] == expected
    deviation = math.sqrt(200 * delta * (1 - delta))
    assert misses <= 200 * delta + 5 * deviation


@pytest.mark.parametrize(
    ("method", "n_trees"),
    [(method, n) for method in ("cnf-ganak", "subproblems-cnf") for n in SMALL],
)
def test_published_counts(ganak: str, method: str, n_trees: int) -> None:
    """The counts that the authors publish for load_diabetes come out."""
    found = count(
        published_model(n_trees), sensitive=2, gap=2, precision=3, method=method, distance=1
    )
    assert (found.n_regions, found.count) == PUBLISHED[n_trees]
    assert found.exact


@pytest.mark.parametrize("n_trees", [1, 2, 3])
def test_published_counts_within_approxmc(approxmc: str, n_trees: int) -> None:
    """ApproxMC's interval holds the published count."""
    found = count(
        published_model(n_trees), sensitive=2, gap=2, precision=3, method="cnf-approxmc", distance=1
    )
    assert found.low <= PUBLISHED[n_trees][1] <= found.high


@pytest.mark.parametrize("method", ["cnf-ganak", "subproblems-cnf"])
def test_exact_methods(ganak: str, method: str) -> None:
    """The methods answer exactly, and say with which version."""
    found = count(figure_1(), sensitive="f0", gap=80, method=method, memory=2 << 30, distance=1)
    assert (found.count, found.exact, found.stop_reason) == (2, True, StopReason.COMPLETE)
    assert found.details["solver_version"].startswith("2.8")


def test_subproblem_formulas_agree(ganak: str) -> None:
    """One formula per mask gives the count of the whole question."""
    for problem in problems(range(6)):
        found = counter("subproblems-cnf")(problem, Settings())
        assert (found.low, found.high) == (expected_count(problem),) * 2


def test_approxmc_method_reports_its_interval(approxmc: str) -> None:
    """A sampled answer comes with its interval and its confidence."""
    problem = two_way_problem(5, 5)
    found = counter("cnf-approxmc")(problem, Settings(epsilon=0.5, delta=0.2, seed=3))
    assert 0 < known(found.count) < problem.n_regions  # with other seeds it is above, and clipped
    assert found.confidence == pytest.approx(0.8)
    assert found.low == math.ceil(known(found.count) / 1.5)
    assert found.high == min(math.floor(known(found.count) * 1.5), problem.n_regions)


def test_a_time_limit_ends_the_child() -> None:
    """Without time, a method answers with the bounds that hold anyway."""
    for method in ("cnf-ganak", "cnf-approxmc", "subproblems-cnf"):
        found = count(figure_1(), sensitive="f0", gap=80, method=method, timeout=0, distance=1)
        assert found.stop_reason is StopReason.TIMEOUT
        assert (found.low, found.high) == (0, 9)


def test_a_memory_limit_ends_the_child() -> None:
    """A child that cannot even load its counter ends with the reason."""
    with pytest.warns(QueryWarning, match="more than the 10.5 MB"):
        found = count(
            figure_1(), sensitive="f0", gap=80, method="cnf-ganak", memory=10 << 20, distance=1
        )
    assert found.stop_reason is StopReason.MEMORY
    assert (found.low, found.high) == (0, 9)


def fake_module(folder: Path, name: str, version: str) -> None:
    """Put a module of that name and version before the installed one."""
    (folder / f"{name}.py").write_text(f"__version__ = {version!r}\n")


@pytest.mark.parametrize(
    ("solver", "module", "version"),
    [("approxmc", "pyapproxmc", "4.4.0"), ("ganak", "pyganak", "2.7.0")],
)
def test_wrong_versions_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solver: str, module: str, version: str
) -> None:
    """Another version is not used: the message names it, and says what to install."""
    fake_module(tmp_path, module, version)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", path)
    with pytest.raises(MissingExtraError, match=rf"{module} {version}.*pip install"):
        count(figure_1(), sensitive="f0", gap=80, method=f"cnf-{solver}", distance=1)


def test_an_unexpected_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that fails for another reason than a limit says so."""
    (tmp_path / "pyganak.py").write_text("raise RuntimeError('no luck')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with pytest.raises(XCountError, match="no luck"):
        count(figure_1(), sensitive="f0", gap=80, method="cnf-ganak", distance=1)


@pytest.mark.parametrize("limit", [None, 4 << 30])
def test_a_dead_child_is_noticed(limit: int | None) -> None:
    """Asking a child that is gone raises: a limit of memory if there is one, else what ended it."""
    formula = Formula()
    formula.show = [formula.true]
    solver = Solver("ganak", Settings(memory_bytes=limit))
    solver._child.kill()
    solver._child.wait()
    with solver, pytest.raises((SolverStopped, XCountError)) as caught:
        solver.count(formula)
    if limit is None:
        assert str(caught.value) == "ganak ended by SIGKILL: no message"
    else:
        assert isinstance(caught.value, SolverStopped)
        assert caught.value.reason is StopReason.MEMORY


def test_limits_beyond_what_the_system_takes_are_no_limits() -> None:
    """A time-out of millennia, and more bytes than there are addresses."""
    settings = Settings(timeout_seconds=1e13, memory_bytes=2**70)
    with Solver("ganak", settings) as solver:
        assert solver._timer is not None
        assert solver._timer.interval <= threading.TIMEOUT_MAX
        assert solver._child.args[-1] == str(sys.maxsize)  # type: ignore[index]  # a list


def test_an_estimate_above_all_regions_keeps_its_interval_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Estimates err, with small probability; low <= count <= high <= regions even then."""

    class Wrong(Solver):
        """A counter that finds a hundred times too much."""

        def count(self, formula: Formula, **parameters: Any) -> dict[str, Any]:
            return {"count": 900, "hashes": 3}

    monkeypatch.setattr(counters, "Solver", Wrong)
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), 0, 80, distance=1))
    found = counter("cnf-approxmc")(problem, Settings(epsilon=0.5))
    assert (found.low, found.count, found.high) == (9, 9, 9)
