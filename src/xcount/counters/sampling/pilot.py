"""What a few samples, which are not used again, say of an estimate: its cost, and which tools.

The confidence sequence is there in any case. Beside it, Huber's estimate or a planned look finishes
first where outcomes vary much; a part of delta is theirs.
"""

from __future__ import annotations

import math

import numpy as np

from xcount.counters.sampling.confidence import GammaBernoulli, PlannedLook, hits_needed
from xcount.support.dataclass import dataclass

FinalInterval = GammaBernoulli | PlannedLook
"""What has an interval only once, when it has seen enough."""

MIN_GAMMA_EPSILON = 1e-3
"""Huber's estimate is planned in time proportional to 1 / epsilon; below this it is not used."""
FINAL_DELTA = 0.8
"""Part of delta that goes to Huber's estimate, or to a planned look, where one is used."""
_LOOK_RATIO = 0.4
"""With more than this certain, in units of the rest, a look is planned: the number of samples that
Huber's estimate takes depends on the pilot's mean much more than that of a look does."""
_HUBER_CAUTION, _LOOK_CAUTION, _LOOK_MARGIN = 2.2, 1.2, 1.06
"""Plans allow for so many standard errors of the pilot's mean, and for the hits of the look
(benchmarks/certain_part.py)."""
_GAMMA_MARGIN = 1e-9
"""Huber's estimate aims at this much less than epsilon: room for the widening below."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a few samples say about the rest; they are not used again."""

    n: int
    mean: float
    variance: float

    def relative_target(self, epsilon: float, certain_share: float) -> float:
        """Return the relative error of p that makes one of epsilon in the whole count.

        For a p well above the pilot's: an error that turns out too large is of no use.
        """
        mean = self._mean * (1 + _HUBER_CAUTION * self._spread)
        return min(0.5, epsilon * (1 + certain_share / mean))

    def betting_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Guess how many samples the confidence sequence takes (constant measured)."""
        variance = self.variance + 0.5 / self.n
        return 2.4 * math.log(2 / delta) * variance / (epsilon * (self._mean + certain_share)) ** 2

    def gamma_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Guess how many samples Huber's estimate takes: about log(2/delta) / eps^2 successes."""
        target = self.relative_target(epsilon, certain_share)
        return math.log(2 / (FINAL_DELTA * delta)) / target**2 / self._mean

    def look_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Guess how many samples a planned look takes, wherever near the pilot's mean p is."""
        shifts = (-_LOOK_CAUTION, 0.0, _LOOK_CAUTION)
        near = (self._mean * max(0.2, 1 + shift * self._spread) for shift in shifts)
        part = FINAL_DELTA * delta
        needed = max(hits_needed(certain_share / p, epsilon, part) / p for p in near)
        return _LOOK_MARGIN * needed

    def plans_look(self, certain_share: float) -> bool:
        """Tell whether a planned look beats Huber's estimate: by what is certain."""
        return certain_share > _LOOK_RATIO * self._mean

    def final_samples(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Guess how many samples the better of the two takes."""
        if self.plans_look(certain_share):
            return self.look_samples(epsilon, delta, certain_share)
        return self.gamma_samples(epsilon, delta, certain_share)

    def samples_needed(self, epsilon: float, delta: float, certain_share: float) -> float:
        """Guess how many samples the answer takes; from above when there was no hit."""
        return min(
            self.betting_samples(epsilon, delta, certain_share),
            self.final_samples(epsilon, delta, certain_share),
        )

    def final_interval(
        self, epsilon: float, delta: float, certain_share: float, random: np.random.Generator
    ) -> FinalInterval | None:
        """Choose what beside the confidence sequence is likely to finish first, if anything is."""
        asked = (epsilon, delta, certain_share)
        is_fine = epsilon < MIN_GAMMA_EPSILON
        if is_fine or self.final_samples(*asked) >= self.betting_samples(*asked):
            return None
        if self.plans_look(certain_share):
            return PlannedLook(math.ceil(self.look_samples(*asked)), FINAL_DELTA * delta)
        inside = self.relative_target(epsilon, certain_share) * (1 - _GAMMA_MARGIN)
        return GammaBernoulli(inside, FINAL_DELTA * delta, random)

    @property
    def _mean(self) -> float:
        return max(self.mean, 1 / self.n)

    @property
    def _spread(self) -> float:
        """About the relative error of the mean."""
        return 1 / math.sqrt(self._mean * self.n)
