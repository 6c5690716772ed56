"""An estimate of what exact work leaves open, while exact work goes on.

The estimate is one of the rest as it was when the estimate began: what exact work solves later
narrows the bounds of the whole, and leaves the estimate as it is. Where the rest has shrunk so much
that a new estimate costs far less than the end of the old one, a new one begins, from new samples.
Delta is split between the estimates beforehand: 0.9 of it for the first, then half of what is left
for each; where exact work has ended, no other one can follow, and what is left is all for the one
that begins. So the chance that any of them is ever wrong is at most delta, and the bounds of all of
them hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from xcount.counters.bounds import Bounds
from xcount.counters.exact import ExactRun
from xcount.counters.sampling.estimation import Estimation
from xcount.counters.sampling.estimator import Slices
from xcount.counters.sampling.plain import PlainEstimation
from xcount.counters.sampling.rest import Rest
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally

Estimating = Callable[[Settings, Bounds, int], Estimation | PlainEstimation]
"""Makes an estimate of what is open now: within settings and certain bounds, from a series of
samples of its own."""

_FIRST_PART, _LATER_PART = 0.9, 0.5
"""Parts of what is left of delta that the first estimate gets, and each later one."""
_SHRUNK, _CHEAPER = 0.5, 0.5
"""A new estimate begins where the rest has shrunk to this part, and it costs less than this part of
what the old one still needs."""


class OpenWork(Protocol):
    """Exact work that leaves something open."""

    @property
    def open_size(self) -> int: ...
    def bounds(self) -> tuple[int, int]: ...


class RestEstimate:
    """Estimates, one after the other, of what exact work leaves open.

    Args:
        exact: the exact work.
        settings: accuracy and limits of all estimates together.
        estimating: makes an estimate of what is open now.

    Attributes:
        work: what sampling has cost so far, in seconds of one core.
        is_over: whether the estimate has ended, for whatever reason.
        is_last: whether the estimate that begins next is the last one.
    """

    def __init__(self, exact: OpenWork, settings: Settings, estimating: Estimating) -> None:
        self._exact, self._settings, self._estimating = exact, settings, estimating
        self._delta_left = settings.delta
        self._n_begun = 0
        self._next: Estimation | PlainEstimation | None = None
        self._next_size = self._current_size = 0  # how much was open
        self._current: Estimation | PlainEstimation | None = None
        self._slices: Slices | None = None
        self._earlier: Bounds | None = None  # what estimates that were given up have found
        self.work = 0.0
        self.is_over = self.is_last = False

    @classmethod
    def of_run(cls, exact: ExactRun, settings: Settings) -> RestEstimate:
        """Return estimates of the masks that a count leaves open."""

        def estimating(settings: Settings, known: Bounds, series: int) -> Estimation:
            rest = replace(Rest.of(exact), known=known)
            return Estimation(exact.problem, settings, rest, series=series)

        return cls(exact, settings, estimating)

    @property
    def has_begun(self) -> bool:
        return self._current is not None

    @property
    def reason(self) -> StopReason:
        """Why the estimate ended."""
        assert self._current is not None
        return self._current.reason

    @property
    def has_answer(self) -> bool:
        """Whether the estimate has ended with what was asked for."""
        return self.is_over and self.reason in (StopReason.COMPLETE, StopReason.DECIDED)

    def limit(self, settings: Settings) -> None:
        """Go on within these limits."""
        self._settings = settings
        for estimation in (self._next, self._current):
            if estimation is not None:
                estimation.limit(settings)

    def price(self, worth: float) -> float:
        """Guess what an estimate of the rest costs; looking costs a small part of ``worth``."""
        candidate = self._candidate()
        if not candidate.is_needed:
            return 0.0
        before = candidate.pilot_seconds
        price = candidate.price(worth)
        self.work += candidate.pilot_seconds - before
        return price

    def advance(self) -> None:
        """Go on by a slice; begin if need be."""
        if self._slices is None:
            self._begin(self._candidate())
        assert self._slices is not None
        assert self._current is not None
        try:
            self.work += next(self._slices)
        except StopIteration:
            self.is_over = True

    def renew(self) -> None:
        """Take over what exact counting knows now; begin anew where that is far cheaper."""
        if self._current is None or self.is_over:
            return
        self._current.narrow(Bounds(*self._exact.bounds()))
        if not 0 < self._exact.open_size <= _SHRUNK * self._current_size:
            return
        if self.price(worth=self.work) < _CHEAPER * self._current.seconds_left():
            self._earlier = self.bounds()
            self.close()
            self._begin(self._candidate())

    def bounds(self) -> Bounds:
        """Return what is known of C."""
        known = Bounds(*self._exact.bounds())
        for found in (self._earlier, None if self._current is None else self._current.bounds):
            known = known if found is None else known.meet(found)
        return known

    def tally(self, method: str, reason: StopReason, details: Mapping[str, Any]) -> Tally:
        """Say what was found, by the last of the estimates within the bounds of all."""
        assert self._current is not None
        self._current.narrow(self.bounds())
        self._current.reason = reason
        tally = self._current.tally(method, details)
        is_sampled = self._earlier is not None or tally.confidence < 1
        return replace(tally, confidence=1 - self._settings.delta if is_sampled else 1.0)

    def close(self) -> None:
        """Let go of what was drawn ahead."""
        if self._slices is not None:
            self._slices.close()

    def _candidate(self) -> Estimation | PlainEstimation:
        """Return an estimate of the rest as it is now."""
        size = self._exact.open_size
        if self._next is None or self._next_size != size:
            settings = replace(self._settings, delta=self._delta_left * self._part)
            self._next = self._estimating(settings, self.bounds(), self._n_begun)
            self._next_size = size
        return self._next

    @property
    def _part(self) -> float:
        if self.is_last:
            return 1.0
        return _LATER_PART if self._n_begun else _FIRST_PART

    def _begin(self, estimation: Estimation | PlainEstimation) -> None:
        estimation.spend(self._delta_left * self._part)
        self._delta_left *= 1 - self._part
        self._n_begun += 1
        self._current, self._next = estimation, None
        self._current_size = self._next_size
        self._slices = estimation.slices()
