"""Errors of approximate counts, relative to exact counts of other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from benchmarks.harness.plots import INK, figure, legend_beside
from benchmarks.harness.records import Run, Runs, Status
from benchmarks.harness.tables import is_solved, joined, markdown, picture
from experiments import estimates
from experiments.plots import method_style

SUITES = ("paper", "methods", "ablations")
APPROXIMATE = ("auto", "sample", "xcount", "xcount-sum-first", "cnf-approxmc")


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a run's answers are from the exact counts.

    Attributes:
        method: the run's method.
        epsilon: the relative error that the run was asked to keep.
        delta: how often it may miss.
        relative: |answer - C| / C of each solved instance, where C is known and not 0.
        n_wrong_zeros: answers other than 0 where C is 0, and 0 where it is not.
        n_outside: answers further than epsilon from C.
        n_missed: intervals that do not hold C.
    """

    method: str
    suite: str
    epsilon: float
    delta: float
    relative: tuple[float, ...]
    n_compared: int
    n_wrong_zeros: int
    n_outside: int
    n_missed: int


def exact_counts(runs: Sequence[Run]) -> dict[str, int]:
    """Return the exact counts that runs found; raises where two of them disagree."""
    counts: dict[str, int] = {}
    for run in runs:
        for record in run.records:
            if record["status"] == Status.EXACT:
                known = counts.setdefault(record["name"], record["count"])
                if known != record["count"]:
                    raise ValueError(f"{record['name']}: {known} or {record['count']}?")
    return counts


def errors_of(run: Run, exact: Mapping[str, int]) -> Errors:
    """Return the errors of the instances that a run solved and whose count is known."""
    solved = [r for r in run.records if is_solved(r) and r["name"] in exact]
    pairs = [(r["count"], exact[r["name"]]) for r in solved]
    epsilon = run.settings.epsilon
    allowed = Fraction(str(epsilon))  # counts may be larger than any float
    return Errors(
        method=run.settings.method,
        suite=run.settings.suite,
        epsilon=epsilon,
        delta=run.settings.delta,
        relative=tuple(abs(found - true) / true for found, true in pairs if true),
        n_compared=len(pairs),
        n_wrong_zeros=sum((found == 0) != (true == 0) for found, true in pairs),
        n_outside=sum(abs(found - true) > allowed * true for found, true in pairs),
        n_missed=sum(not r["low"] <= exact[r["name"]] <= r["high"] for r in solved),
    )


def errors_of_all(runs: Runs) -> list[Errors]:
    """Return the errors of every approximate run, against all exact counts there are."""
    asked = [run for suite in SUITES for run in runs.get(suite, ())]
    exact = exact_counts([*asked, *runs.get("hard", ())])
    found = []
    for run in asked:
        if run.settings.method in APPROXIMATE:
            found.append(errors_of(run, exact))
        if any(map(estimates.is_sampled, run.records)):
            inside = errors_of(estimates.clipped(run), exact)
            found.append(replace(inside, method=f"{inside.method}, clipped"))
    return found


def error_table(errors: Sequence[Errors]) -> str:
    """Return the errors as Markdown."""
    header = ["method (suite)", "compared", "with C > 0", "not exact", "within 1%"]
    header += ["within epsilon", "of those not exact", "largest error", "interval missed"]
    return markdown(header, map(_row, errors))


def _row(errors: Errors) -> list[str]:
    n = len(errors.relative)
    near = [sum(value <= bound for value in errors.relative) for bound in (0.01, errors.epsilon)]
    shares = [f"{100 * count / n:.1f}%" if n else "-" for count in near]
    inexact = [value for value in errors.relative if value > 0]
    kept = f"{sum(value <= errors.epsilon for value in inexact)} of {len(inexact)}"
    largest = f"{max(errors.relative, default=0.0):.4f}"
    numbers = [str(errors.n_compared), str(n), str(len(inexact)), *shares]
    return [f"{errors.method} ({errors.suite})", *numbers, kept, largest, str(errors.n_missed)]


def spread(errors: Sequence[Errors], path: Path) -> None:
    """Draw how many of the answers are within how large a relative error, for each run."""
    with figure(path, size=(7, 3.6)) as axes:
        for i, e in enumerate(errors):
            again = any(e.method == before.method for before in errors[:i])
            style = method_style(e.method) | {"linewidth": 1.2 if again else 2.0}
            found = sorted(e.relative)
            shares = [100 * (n + 1) / len(found) for n in range(len(found))]
            label = f"{e.method}, {e.suite} suite ({len(found)} instances)"
            axes.step([0.0, *found], [0.0, *shares], where="post", label=label, **style)
        for epsilon in {e.epsilon for e in errors}:
            axes.axvline(
                epsilon, color=INK, linewidth=1, linestyle="--", label=f"epsilon {epsilon:g}"
            )
        axes.plot(0.1, 99, "x", color=INK, label="the paper: 99 % within 0.1")
        axes.set_xscale("symlog", linthresh=1e-3)
        axes.set_xlim(left=0)
        axes.set_ylim(0, 104)
        axes.set_title("Relative error against the exact counts")
        axes.set_xlabel("relative error at most")
        axes.set_ylabel("% of the answers where C > 0")
        legend_beside(axes)


def section(runs: Runs, folder: Path) -> str:
    """Return the errors of the approximate methods against exact counts, with a picture."""
    errors, path = errors_of_all(runs), folder / "accuracy.svg"
    shown = [found for found in errors if found.relative and found.method in APPROXIMATE]
    if not shown:
        return error_table(errors)
    spread(shown, path)
    return joined(error_table(errors), picture(path, "relative errors"))
