"""Direction, size and curve of a question's changes, found once for all gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from xcount.answers.explain.evaluate import Evaluator
from xcount.answers.explain.explorer import Explorer, Spectra
from xcount.answers.explain.searched import searched_spectra
from xcount.answers.explain.spectrum import Spectrum
from xcount.answers.explanation import Curve, CurvePoint, Effect, Explanation
from xcount.counters import swings
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, QueryError
from xcount.measures.products import refuse_without_time
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.question.change import Change, decimal_text
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap
from xcount.support.interval import Interval
from xcount.support.workspace import Slot

TIME_PART = 0.5
"""Share of the remaining time for direction and size, if there is a limit."""
LEAST_SECONDS = 0.2
Known = Mapping[str, tuple[float, float]]
"""Certain bounds on shares, by measure."""


def explain(
    problem: Problem,
    settings: Settings,
    weighing: Weighing | None,
    changes: Sequence[Change] = (),
    known: Known | None = None,
) -> Explanation:
    """Explain a question: its effects and curves under every measure.

    Args:
        problem: the question.
        settings: limits, seed and confidence.
        weighing: the measures beside ``regions``.
        changes: other changes of the run that differ only in their gaps: one computation serves
            all of them.
        known: certain bounds on the counted shares.
    """
    change = problem.query.change
    asked = tuple(sorted({_gap_of(c) for c in (change, *changes)}))
    spectra = _shared_spectra(problem, settings, weighing, asked)
    effects, curves = [], []
    for name, spectrum in spectra.by_measure.items():
        certain = (known or {}).get(name)
        effect, curve = _entries(name, spectra.unit, spectrum, change, certain, settings.delta)
        effects.append(effect)
        curves.append(curve)
    found = Explanation(effects=tuple(effects), curves=tuple(curves), notes=spectra.notes)
    return found.judged_by(settings.max_share, settings.judge)


def _gap_of(change: Change) -> Fraction:
    return change.order


_SPECTRA: Slot[tuple[object, ...], Spectra] = Slot("sizes of changes")


def _shared_spectra(
    problem: Problem, settings: Settings, weighing: Weighing | None, asked: tuple[Fraction, ...]
) -> Spectra:
    """Return the spectra found for an earlier question of the same run, or compute them."""
    query, change = problem.query, problem.query.change
    if isinstance(change, Gap | ProbabilityGap):
        change = replace(change, gap=Fraction(0))
    key = (
        problem.ensemble,
        query.sensitive,
        query.distance,
        query.precision,
        change,
        asked,
        settings.seed,
        settings.delta,
        None if weighing is None else weighing.fingerprint,
    )
    return problem.grid.workspace.once(
        _SPECTRA, key, lambda: _spectra(problem, settings, weighing, asked)
    )


def _spectra(
    problem: Problem, settings: Settings, weighing: Weighing | None, asked: Sequence[Fraction]
) -> Spectra:
    names = ("regions", *(weighing.names if weighing is not None else ()))
    limited = settings.within(TIME_PART, LEAST_SECONDS)
    try:
        refuse_without_time(problem, settings)
        if problem.n_masks > swings.MAX_MASKS and Evaluator(problem).can_search:
            return searched_spectra(problem, limited, weighing, names, asked)
        explorer = Explorer(problem, limited, weighing, names)
        return explorer.spectra(asked)
    except (BudgetError, QueryError) as error:
        return Spectra("margin", notes=(f"direction and size are not known: {error}",))


def _entries(
    name: str,
    unit: str,
    spectrum: Spectrum,
    change: Change,
    certain: tuple[float, float] | None,
    delta: float,
) -> tuple[Effect, Curve]:
    """Return the effect and the curve of one measure, within the counted bounds."""
    asked, direction = _gap_of(change), change.direction
    at_asked, up, down = spectrum.asked[asked]
    curve = dict(sorted({**spectrum.curve, asked: at_asked}.items()))
    if certain is not None:
        curve = {gap: _cut(share, certain, gap, asked) for gap, share in curve.items()}
        up = curve[asked] if direction == "up" else up
        down = curve[asked] if direction == "down" else down
    shares = list(curve.values())
    is_exact = {
        "curve": all(share.is_settled for share in shares),
        "effect": spectrum.n_samples is None and up.is_settled and down.is_settled,
    }
    is_certain = spectrum.n_samples is None  # then bounds are what floats leave open
    confidence = {
        what: 1.0 if exact or is_certain else 1 - delta for what, exact in is_exact.items()
    }
    effect = Effect(
        name,
        unit,
        "sensitive" if isinstance(change, Flip) else "all",
        up,
        down,
        spectrum.mean,
        spectrum.quantiles,
        spectrum.cells,
        is_exact["effect"],
        confidence["effect"],
        spectrum.n_samples,
    )
    points = tuple(CurvePoint(float(gap), decimal_text(gap), share) for gap, share in curve.items())
    return effect, Curve(
        name,
        unit,
        direction,
        points,
        is_exact["curve"],
        confidence["curve"],
        None if is_exact["curve"] else spectrum.n_samples,
    )


def _cut(share: Interval, certain: tuple[float, float], gap: Fraction, asked: Fraction) -> Interval:
    """Clip a share of the curve to the certain bounds at the gap in question."""
    low = max(share.low, certain[0]) if gap <= asked else share.low
    high = min(share.high, certain[1]) if gap >= asked else share.high
    if low > high:  # some intervals are wrong; the count is not
        low, high = certain if gap == asked else (low, low) if gap < asked else (high, high)
    return Interval(min(max(share.least, low), high), low, high)
