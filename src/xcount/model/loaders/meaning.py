"""What the sums of a model mean to its library: a number, a class, a probability.

A loader finds out which of these cases a model is, and :meth:`Meaning.put_on` writes it down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xcount.model.ensemble import Ensemble, Probability, Task


@dataclass(frozen=True)
class Meaning:
    """The part of an :class:`~xcount.model.ensemble.Ensemble` that says what its sums mean."""

    task: Task = "unknown"
    decides_at: float | None = None
    probability: Probability = "none"
    slope: float = 1.0
    tie_is_above: bool = False

    def put_on(self, ensemble: Ensemble) -> Ensemble:
        """Return the ensemble with this meaning."""
        return replace(
            ensemble,
            task=self.task,
            decides_at=self.decides_at,
            probability=self.probability,
            slope=self.slope,
            tie_is_above=self.tie_is_above,
        )


UNKNOWN = Meaning(probability="unknown")
RANKING = Meaning("ranking")
VOTES = Meaning("binary", 0.5, "margin")
LOG_ODDS = Meaning("binary", 0.0, "sigmoid")
SOFTMAX = Meaning("multiclass", None, "softmax")
ONE_VERSUS_ALL = Meaning("multiclass", None, "sigmoid")
MULTILABEL = Meaning("multilabel", None, "sigmoid")


def numbers(n_outputs: int) -> Meaning:
    """Return the meaning of a model that predicts one number, or several."""
    return Meaning("regression" if n_outputs == 1 else "multitarget")
