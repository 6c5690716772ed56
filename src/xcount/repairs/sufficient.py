"""Gaps in margin that are enough for a question to have no sensitive region."""

from __future__ import annotations

from fractions import Fraction

from xcount.model.ensemble import Ensemble
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Softmax
from xcount.question.query import Query


def sufficient_gaps(query: Query, ensemble: Ensemble) -> dict[int, Fraction] | None:
    """Return a gap for each output that is concerned; None if no gap is enough (a flip).

    If no margin moves by more than its gap, the question has no sensitive region. For a gap in
    margin that is the gap itself. A probability is steepest at 1/2: the gap in log-odds that moves
    it by P there is enough everywhere. With a softmax, log-odds move no further than the margin of
    the class and that of another one together, so half of that gap for each class is enough.

    Example:
        >>> from xcount.model.examples import adult_model_path
        >>> import xcount
        >>> model = xcount.load(adult_model_path())
        >>> gaps = sufficient_gaps(Query.of(model, "sex", probability_gap=0.1), model)
        >>> round(float(gaps[0]), 4)
        0.4013
    """
    change = query.change
    if isinstance(change, Gap):
        return {change.output: change.gap}
    if not isinstance(change, ProbabilityGap):
        return None
    if isinstance(change.link, Softmax):
        half = change.link.least_lead_gap(change.gap) / 2
        return dict.fromkeys(range(ensemble.n_outputs), half)
    return {change.output: change.link.least_margin_gap(change.gap)}
