"""A discarded pilot sample predicts the cost of an estimate and picks its stopping rule.

The confidence sequence is always used. If outcomes vary much, a second rule, which gets a part of
delta, finishes earlier: Huber's estimate or, if a part of the count is certain, an estimate stopped
by a curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from xcount.counters.sampling.draws import BATCH
from xcount.counters.sampling.intervals import GammaBernoulli
from xcount.counters.sampling.stopping import StoppedEstimate, hits_needed

FinalInterval = GammaBernoulli | StoppedEstimate
"""An estimate that gives its interval only once, at its end."""

MIN_GAMMA_EPSILON = 1e-3
"""Least epsilon for Huber's estimate, whose planning takes time proportional to 1 / epsilon."""
FINAL_DELTA = 0.8
"""Part of delta that goes to Huber's estimate, or to one stopped by a curve, if one is used."""
_CURVE_RATIO = 0.02
"""With more than this certain, in units of the rest, a curve takes fewer samples than Huber's
estimate of the rest by epsilon."""
_CAUTION = 1.2
"""Standard errors allowed for in the pilot's mean."""
_CURVE_MARGIN = 1.05
"""A curve takes so many times the samples of an interval at the right time: it waits for looks."""
_LEAST_HITS, _MOST_HITS = 3, 20
_SHARE = 0.1
"""A pilot is enough at the latter number of hits; from the former on once it has this share of the
samples that the estimate seems to take; and with this share of those that it takes at most."""
_GAMMA_MARGIN = 1e-9
"""Huber's estimate aims at this much less than epsilon: room for the widening below."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """The number, mean and variance of a few samples, which are then discarded."""

    n: int
    mean: float
    variance: float

    def is_enough(self, hits: int, epsilon: float, delta: float, certain_share: float) -> bool:
        """Return whether so many hits are enough for a plan, and more would not pay."""
        if hits >= _MOST_HITS:
            return True
        asked = (epsilon, delta, certain_share)
        needed = self.samples_needed(*asked) if hits >= _LEAST_HITS else _most_samples(*asked)
        return self.n >= max(_LEAST_HITS, _SHARE * needed)

    def betting_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Predict how many samples the confidence sequence takes (constant measured)."""
        variance = self.variance + 0.5 / self.n
        return 2.4 * math.log(2 / delta) * variance / (epsilon * (self._mean + certain_share)) ** 2

    def final_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Predict how many samples Huber's estimate or one stopped by a curve takes."""
        part = FINAL_DELTA * delta
        if self._has_curve(certain_share):
            spread = 1 / math.sqrt(self._mean * self.n)
            near = (self._mean * max(0.2, 1 + error * spread) for error in (-_CAUTION, 0, _CAUTION))
            needed = max(hits_needed(certain_share / p, epsilon, part) / p for p in near)
            return _CURVE_MARGIN * needed
        return math.log(2 / part) / epsilon**2 / self._mean  # log(2/delta) / eps^2 successes

    def samples_needed(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Predict how many samples the answer takes; from above if there was no hit."""
        return min(
            self.betting_samples(epsilon, delta, certain_share),
            self.final_samples(epsilon, delta, certain_share),
        )

    def final_interval(
        self, epsilon: float, delta: float, certain_share: float, random: np.random.Generator
    ) -> FinalInterval | None:
        """Choose the rule that is likely to finish before the confidence sequence, if any."""
        asked = (epsilon, delta, certain_share)
        is_fine = epsilon < MIN_GAMMA_EPSILON
        if is_fine or self.final_samples(*asked) >= self.betting_samples(*asked):
            return None
        delta *= FINAL_DELTA
        if self._has_curve(certain_share):
            return StoppedEstimate(epsilon, delta, certain_share, random, BATCH)
        return GammaBernoulli(epsilon * (1 - _GAMMA_MARGIN), delta, random)

    def _has_curve(self, certain_share: float) -> bool:
        return certain_share > _CURVE_RATIO * self._mean

    @property
    def _mean(self) -> float:
        return max(self.mean, 1 / self.n)


def _most_samples(epsilon: float, delta: float, certain_share: float) -> float:
    """Predict the most samples that an estimate takes if a part of the count is certain.

    It takes most if the rest is about as large as the certain part: a larger rest has more hits,
    and for a smaller one a rougher estimate is enough.
    """
    if certain_share == 0:
        return math.inf
    return _CURVE_MARGIN * hits_needed(1.0, epsilon, FINAL_DELTA * delta) / certain_share
