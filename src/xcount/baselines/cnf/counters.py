"""Counting by formulas: ``cnf-ganak``, ``cnf-approxmc``, and the ablation ``subproblems-cnf``."""

from __future__ import annotations

import math
from fractions import Fraction

from xcount.baselines.cnf.encode import Checkpoint, encode, encode_mask
from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.solver import Solver, SolverStopped
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.problem.problem import Problem

_SEED_BITS = 31


def count_by_ganak(problem: Problem, settings: Settings) -> Tally:
    """Count the projected models of the whole question exactly, with Ganak."""
    method = "cnf-ganak"
    try:
        formula = encode(problem, _checkpoint(settings))
        with Solver("ganak", settings) as solver:
            answer = solver.count(formula)
    except (SolverStopped, MemoryError, KeyboardInterrupt) as stop:
        return _unknown(problem, method, stop)
    count = answer["count"]
    return Tally(count, count, count, method, details={**_sizes(formula), **_about(answer)})


def count_by_approxmc(problem: Problem, settings: Settings) -> Tally:
    """Count the projected models approximately, with ApproxMC.

    ApproxMC promises ``C / (1 + epsilon) <= estimate <= (1 + epsilon) C`` with probability at least
    1 - delta; without hashes it has enumerated all models, and the count is exact.
    """
    method = "cnf-approxmc"
    parameters = {
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "seed": settings.seed % 2**_SEED_BITS,
    }
    try:
        formula = encode(problem, _checkpoint(settings))
        with Solver("approxmc", settings) as solver:
            answer = solver.count(formula, **parameters)
    except (SolverStopped, MemoryError, KeyboardInterrupt) as stop:
        return _unknown(problem, method, stop)
    count = answer["count"]
    details = {**_sizes(formula), **_about(answer)}
    if answer["hashes"] == 0:
        return Tally(count, count, count, method, details=details)
    factor = 1 + Fraction(settings.epsilon)
    high = min(math.floor(count * factor), problem.n_regions)
    low = min(math.ceil(count / factor), high)  # an estimate may far exceed the number of regions
    return Tally(
        min(count, high), low, high, method, StopReason.COMPLETE, 1 - settings.delta, details
    )


def count_by_subproblem_formulas(problem: Problem, settings: Settings) -> Tally:
    """Count subproblem by subproblem with Ganak: one formula per mask.

    The paper's ablation "Subp + CNF" solves a formula per pair of masks and does not merge them.
    Here a formula per mask says that it jumps to some neighbour, so the counts simply add up.
    """
    method = "subproblems-cnf"
    low, n_done, reason, version = 0, 0, StopReason.COMPLETE, {}
    try:
        with Solver("ganak", settings) as solver:
            for mask in range(problem.n_masks):
                neighbours = problem.masks.neighbours(mask)
                formula = encode_mask(problem, mask, neighbours, _checkpoint(settings))
                answer = solver.count(formula)
                low += answer["count"]
                n_done += 1
                version = _about(answer)
                high = low + (problem.n_masks - n_done) * problem.n_combinations
                settings.report(Progress(n_done / problem.n_masks, low, high, "masks"))
    except (SolverStopped, MemoryError, KeyboardInterrupt) as stop:
        reason = _reason(stop)
    high = low + (problem.n_masks - n_done) * problem.n_combinations
    details = {"masks": problem.n_masks, "masks_done": n_done, **version}
    return Tally.of_bounds(low, high, method, reason, details=details)


def _checkpoint(settings: Settings) -> Checkpoint:
    def check() -> None:
        if settings.expired():
            raise SolverStopped(StopReason.TIMEOUT)

    return check


def _reason(stop: BaseException) -> StopReason:
    if isinstance(stop, SolverStopped):
        return stop.reason
    is_interrupt = isinstance(stop, KeyboardInterrupt)
    return StopReason.INTERRUPTED if is_interrupt else StopReason.MEMORY


def _unknown(problem: Problem, method: str, stop: BaseException) -> Tally:
    """Return the tally of a counter that was stopped: nothing is known."""
    return Tally.of_bounds(0, problem.n_regions, method, _reason(stop))


def _sizes(formula: Formula) -> dict[str, int]:
    return {"variables": formula.n_variables, "clauses": formula.n_clauses}


def _about(answer: object) -> dict[str, object]:
    known = answer if isinstance(answer, dict) else {}
    names = {"version": "solver_version", "hashes": "hashes", "peak_memory_bytes": "solver_bytes"}
    return {names[key]: known[key] for key in names if key in known}
