"""One count of a run: a question to a model, ready to be counted here or elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from xcount.answers.count import solve
from xcount.answers.result import CountResult
from xcount.answers.witness.witnesses import drawn_witnesses
from xcount.counters.engine import LOCAL, Engine
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.query import Query
from xcount.question.weighting import Weighing

MAX_PROFILE_MASKS = 2000
MAX_PROFILE_MASKS_FAR = 12


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a model, and how it is to be counted.

    Attributes:
        query: the question itself.
        settings: accuracy, seed, limits of this count.
        method: how to count.
        weighing: the measures to take along with the count, if any.
        n_witnesses: how many examples to add, where they can be drawn.
    """

    query: Query
    settings: Settings
    method: str = "auto"
    weighing: Weighing | None = None
    n_witnesses: int = 0

    def limits(self) -> dict[str, float | int | None]:
        """Return what stops a count before it is done; a rerun with more room may do better."""
        settings = self.settings
        return {"timeout_seconds": settings.timeout_seconds, "memory_bytes": settings.memory_bytes}

    def answer(
        self,
        base: Problem,
        jobs: int = 0,
        on_progress: Callable[[Progress], None] | None = None,
        engine: Engine = LOCAL,
    ) -> CountResult:
        """Count.

        Args:
            base: a problem of the same model and grid.
            jobs: threads; 0 for all cores.
            on_progress: called a few times a second.
            engine: who does the work.
        """
        problem = Problem(base.ensemble, base.grid, self.query)
        settings = replace(
            self.settings.restarted(),
            jobs=jobs,
            want_profile=self.settings.want_profile and problem.n_masks <= self._most_masks,
            on_progress=on_progress,
            engine=engine,
        )
        result = solve(problem, settings, self.method, self.weighing)
        is_over = result.high == 0 or result.stop_reason is StopReason.INTERRUPTED
        if not self.n_witnesses or is_over:
            return result
        left = replace(settings, want_profile=False, max_share=None, engine=LOCAL)
        try:
            found = drawn_witnesses(problem, self.n_witnesses, left)
        except (BudgetError, KeyboardInterrupt):  # the count itself is done
            return result
        rows = [witness.to_dict() for witness in found]
        return replace(result, details={**result.details, "witnesses": rows})

    @property
    def _most_masks(self) -> int:
        """A profile counts every pair of masks: many at a large distance."""
        return MAX_PROFILE_MASKS if self.query.distance == 1 else MAX_PROFILE_MASKS_FAR


@dataclass(frozen=True, eq=False)
class Task:
    """A question to one model.

    Attributes:
        base: a problem of the model and grid, whose native trees all tasks share.
        question: what is asked.
        scope: fingerprints of the model and of all models whose guards the grid holds.
    """

    base: Problem
    question: Question
    scope: tuple[str, ...]

    @property
    def label(self) -> str:
        names = self.base.ensemble.feature_names
        return " + ".join(names[f] for f in self.question.query.sensitive)

    @cached_property
    def key(self) -> str:
        """What the answer depends on, hashed: model, grid, question, accuracy, seed; no limits."""
        asked, query = self.question, self.question.query
        settings, limit = asked.settings, asked.settings.max_share
        has_missing = any(axis.missing_cell is not None for axis in self.base.grid.axes)
        parts: list[object] = [
            self.scope,
            [query.sensitive, repr(query.change), query.distance, query.precision, has_missing],
            [asked.method, settings.epsilon, settings.delta, settings.seed],
            None if limit is None else [str(limit.value), limit.is_rounded],
            None if asked.weighing is None else asked.weighing.fingerprint,
            asked.n_witnesses,
        ]
        if domain := self.base.grid.domain:
            parts.append(domain.fingerprint)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def run(
        self, jobs: int = 0, on_progress: Callable[[Progress], None] | None = None
    ) -> CountResult:
        """Count on this machine."""
        return self.question.answer(self.base, jobs, on_progress)


def fingerprint(ensemble: Ensemble) -> str:
    """Return the hash of the model's file, or of the trees of a live model."""
    ensemble = ensemble.source
    if ensemble.sha256 is not None:
        return ensemble.sha256
    digest = hashlib.sha256()
    digest.update(repr((ensemble.features, ensemble.base, ensemble.divisor)).encode())
    for tree in ensemble.trees:
        structure = (tree.feature, tree.threshold, tree.left, tree.right, tree.value)
        for part in (*structure, tree.missing_left, tree.zero_side):
            digest.update(np.ascontiguousarray(part).tobytes())
        categories = sorted((node, sorted(left)) for node, left in tree.left_categories.items())
        digest.update(repr((tree.output, categories)).encode())
    return digest.hexdigest()
