"""One count of a run: a question to a model, ready to be counted in this process or another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from xcount.answers.count import explained, solve, with_affected_rows
from xcount.answers.explanation import ExplanationRequest
from xcount.answers.result import CountResult
from xcount.answers.witness.witnesses import drawn_witnesses
from xcount.counters.costs import MAX_VISITED_REGIONS
from xcount.counters.engine import LOCAL, Engine
from xcount.counters.settings import Companions, Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.query import Query

MAX_SHARED_REGIONS = 10 * MAX_VISITED_REGIONS
"""Largest grid that may be visited; questions about larger ones cannot share a visit."""
MAX_PROFILE_MASKS = 2000
MAX_PROFILE_MASKS_FAR = 12


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a model, and how to count it.

    Attributes:
        query: the question itself.
        settings: accuracy, seed, limits of this count.
        method: how to count.
        weighing: the measures to find along with the count, if any.
        n_witnesses: how many examples to add, if they can be drawn.
        known: the count, if a journal has it and only examples or the explanation are missing.
        explain: the questions to explain, including this one; None for no explanation.
    """

    query: Query
    settings: Settings
    method: str = "auto"
    weighing: Weighing | None = None
    n_witnesses: int = 0
    known: CountResult | None = None
    explain: ExplanationRequest | None = None

    @property
    def family(self) -> tuple[object, ...]:
        """Key shared by the questions to one model that one visit of all regions can answer."""
        return (self.query.sensitive, self.query.distance, self.query.precision)

    def limits(self) -> dict[str, float | int | None]:
        """Return the limits that may stop a count early; a rerun with larger ones may do better."""
        settings = self.settings
        return {"timeout_seconds": settings.timeout_seconds, "memory_bytes": settings.memory_bytes}

    def answer(
        self,
        base: Problem,
        jobs: int = 0,
        on_progress: Callable[[Progress], None] | None = None,
        engine: Engine = LOCAL,
        companions: Companions | None = None,
    ) -> CountResult:
        """Count.

        Args:
            base: a problem of the same model and grid.
            jobs: threads; 0 for all cores.
            on_progress: called a few times a second.
            engine: does the work.
            companions: questions that may share a visit of all regions with this one, including
                itself; those that follow it must be counted later.
        """
        problem = Problem(base.ensemble, base.grid, self.query)
        settings = replace(
            self.settings.restarted(),
            jobs=jobs,
            want_profile=self.settings.want_profile and problem.n_masks <= self._most_masks,
            on_progress=on_progress,
            engine=engine,
            companions=companions,
        )
        result = self._counted(problem, settings)
        is_over = result.high == 0 or result.stop_reason is StopReason.INTERRUPTED
        if not self.n_witnesses or is_over:
            return result
        left = replace(settings, want_profile=False, max_share=None, engine=LOCAL)
        try:
            data = None if self.weighing is None else self.weighing.inputs
            found = tuple(drawn_witnesses(problem, self.n_witnesses, left, data))
        except BudgetError:  # they cannot be drawn; a rerun need not try again
            found = ()
        except KeyboardInterrupt:  # the count itself is done
            return result
        return replace(result, witnesses=found)

    def _counted(self, problem: Problem, settings: Settings) -> CountResult:
        """Return the count with its explanation."""
        if self.known is None:
            return solve(problem, settings, self.method, self.weighing, self.explain)
        if self.explain is None or self.known.explanation is not None:
            return self.known
        return explained(self.known, problem, settings, self.weighing, self.explain)

    @property
    def _most_masks(self) -> int:
        """The most masks for a profile, which counts every pair of masks within the distance."""
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
        """A hash of the inputs of the count: model, grid, question, accuracy, seed.

        Limits, the judged measure and the number of examples are not part of it.
        """
        asked, query = self.question, self.question.query
        settings = asked.settings
        missing = [
            (axis.missing_cell, sorted(axis.only_starts), axis.feature.missing_as)
            for axis in self.base.grid.axes
        ]
        parts: list[object] = [
            self.scope,
            [query.sensitive, repr(query.change), query.distance, query.precision, missing],
            [asked.method, settings.epsilon, settings.delta, settings.seed],
            None if asked.weighing is None else asked.weighing.fingerprint,
        ]
        if domain := self.base.grid.domain:
            parts.append(domain.fingerprint)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    @property
    def family(self) -> tuple[object, ...]:
        """Key shared by the tasks that one visit of all regions can answer."""
        is_small = self.base.grid.n_regions <= MAX_SHARED_REGIONS
        return (id(self.base), *self.question.family) if is_small else (id(self),)

    def run(
        self,
        jobs: int = 0,
        on_progress: Callable[[Progress], None] | None = None,
        companions: Companions | None = None,
    ) -> CountResult:
        """Count on this machine."""
        return self.question.answer(self.base, jobs, on_progress, companions=companions)


def with_rows(
    tasks: Sequence[Task], results: Sequence[CountResult | None], favourable: str | None
) -> list[CountResult | None]:
    """Return the results of tasks so that they know their sensitive rows, if rows were counted."""

    def known(task: Task, result: CountResult | None) -> CountResult | None:
        if result is None:
            return None
        asked = task.question
        problem = Problem(task.base.ensemble, task.base.grid, asked.query)
        settings = asked.settings.restarted()
        return with_affected_rows(result, problem, asked.weighing, settings, favourable)

    return [known(task, result) for task, result in zip(tasks, results, strict=True)]


def families(keys: Iterable[tuple[object, ...]]) -> list[list[int]]:
    """Return the indices of equal keys grouped together, in the order of first appearance.

    Example:
        >>> families([("age",), ("sex",), ("age",)])
        [[0, 2], [1]]
    """
    found: dict[tuple[object, ...], list[int]] = {}
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    return list(found.values())


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
        ranges = sorted(tree.left_ranges.items())
        digest.update(repr((tree.output, categories, *([ranges] if ranges else []))).encode())
    return digest.hexdigest()
