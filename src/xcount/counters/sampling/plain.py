"""An estimate from one kind of draws, and what estimates cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xcount.counters.bounds import Bounds
from xcount.counters.sampling.draws import BATCH
from xcount.counters.sampling.estimator import Estimator, KnownPart, Slices, run_through
from xcount.counters.sampling.pilot import Pilot
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally

_PILOT_PART = 20
"""Looking at a price costs one part in so many of what it is asked for."""


def samples_needed(pilot: Pilot, known_part: KnownPart, settings: Settings) -> float:
    """Guess how many samples the estimate takes."""
    return pilot.samples_needed(settings.epsilon, settings.delta, known_part.certain_share)


def price_of(estimator: Estimator, pilot: Pilot, settings: Settings) -> float:
    """Guess what an estimate costs, in seconds of one core."""
    if _is_clear(pilot, estimator.known_part, settings):
        return 0.0
    return estimator.seconds_per_sample * samples_needed(pilot, estimator.known_part, settings)


def pilot_worth(estimator: Estimator, worth: float) -> Pilot:
    """Draw a few samples to plan by, which cost a small part of ``worth``."""
    return estimator.pilot(math.ceil(worth / estimator.seconds_per_sample / _PILOT_PART / BATCH))


def _is_clear(pilot: Pilot, known_part: KnownPart, settings: Settings) -> bool:
    """Tell whether the asked share is so far from the pilot's that few samples decide it."""
    if settings.max_share is None:
        return False
    asked = settings.max_share.value * known_part.n_regions - known_part.certain
    share = max(0.0, float(asked / known_part.undecided))
    few = 30 / pilot.n  # a share that the pilot's size can tell from zero
    return abs(pilot.mean - share) > max(few, 0.3 * share)


class PlainEstimation:
    """An estimate from one kind of draws.

    Attributes:
        reason: why the estimate ended, once it has.
    """

    is_needed = True

    def __init__(self, estimator: Estimator, settings: Settings) -> None:
        self._estimator, self._settings = estimator, settings
        self.reason = StopReason.COMPLETE

    def limit(self, settings: Settings) -> None:
        """Go on within these limits; what delta is for stays as it is."""
        self._settings = replace(settings, delta=self._settings.delta)
        self._estimator.limit(self._settings)

    def spend(self, delta: float) -> None:
        """Take this chance of being wrong; before the first slice."""
        self._settings = replace(self._settings, delta=delta)
        self._estimator.limit(self._settings)

    def price(self, worth: float) -> float:
        """Guess the cost of the estimate; looking costs a small part of ``worth``."""
        return price_of(self._estimator, pilot_worth(self._estimator, worth), self._settings)

    @property
    def pilot_seconds(self) -> float:
        """What looking at the price has cost, in seconds of one core."""
        return self._estimator.pilot_seconds

    def seconds_left(self) -> float:
        """Guess what the rest of the estimate costs, in seconds of one core."""
        return self._estimator.seconds_left()

    def run(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Estimate, and say what was found."""
        try:
            run_through(self.slices())
        except KeyboardInterrupt:
            self.reason = StopReason.INTERRUPTED
        return self.tally(method, details)

    def slices(self) -> Slices:
        """Estimate in slices; yield the work of each, in seconds of one core."""
        before = self.pilot_seconds
        pilot = self._estimator.pilot()
        yield self.pilot_seconds - before
        self.reason = yield from self._estimator.slices(pilot)
        return self.reason

    @property
    def bounds(self) -> Bounds:
        """What is known of C so far."""
        return self._estimator.bounds

    def narrow(self, known: Bounds) -> None:
        """Take over bounds that hold in any case."""
        self._estimator.narrow(known)

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Say what was found so far."""
        return self._estimator.tally(method, self.reason, details)
