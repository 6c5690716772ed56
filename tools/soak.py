"""Compares all methods on random questions about random models, for as long as you like.

    python -m tools.soak --minutes 30
    python -m tools.soak --minutes 30 --domains
    python -m tools.soak --minutes 30 --pipelines

A disagreement is a finding: exact answers must be equal, on one thread and on several; intervals
must hold as often as stated. Findings are printed with the seed that reproduces them (``--first
SEED --questions 1``), and the exit status is 1. With ``--domains``, questions have random
conditions and rules, and the truth is a plain enumeration of points
(:mod:`tools.domain_questions`). With ``--pipelines``, random scikit-learn pipelines are loaded,
and the truth is their own predictions (:mod:`tools.pipeline_questions`).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tools.domain_questions import random_domain_question
from xcount import CountResult, Ensemble, XCountError, count
from xcount.errors import QueryError
from xcount.model.examples import Nested, ensemble_of

EXACT_METHODS = ("brute", "exact", "xcount", "add-baseline")
DELTA = 0.1
ALLOWED_SIGMAS = 4.0


def random_tree(random: np.random.Generator, n_features: int, depth: int) -> Nested:
    """Return a tree with few distinct thresholds, so that trees share them."""
    if depth == 0 or random.random() < 0.15:
        return round(float(random.normal()), 2)
    feature, threshold = int(random.integers(n_features)), float(random.integers(6))
    low, high = (random_tree(random, n_features, depth - 1) for _ in range(2))
    return (feature, threshold, low, high)


def random_question(seed: int) -> tuple[Ensemble, dict[str, Any]]:
    """Return a model of a few trees and a question about it."""
    random = np.random.default_rng([seed, 99])
    n_features = int(random.integers(2, 6))
    trees = [
        random_tree(random, n_features, int(random.integers(1, 5)))
        for _ in range(int(random.integers(1, 9)))
    ]
    size = int(random.integers(1, min(3, n_features) + 1))
    return ensemble_of(*trees, n_features=n_features), {
        "sensitive": [int(f) for f in random.choice(n_features, size, replace=False)],
        "gap": str(random.choice(["0", "0.25", "0.5", "1", "2"])),
        "distance": (1, 2, 3, "any")[int(random.integers(4))],
        "precision": ("exact", 1, 3)[int(random.integers(3))],
    }


class Soak:
    """One run: the questions asked and the findings."""

    def __init__(self, *, domains: bool = False, pipelines: bool = False) -> None:
        self._domains = domains
        self._pipelines = pipelines
        self.n_questions = 0
        self.n_answers: Counter[str] = Counter()
        self.n_missed: Counter[str] = Counter()

    def ask(self, seed: int) -> Iterator[str]:
        """Ask all methods one question; yield the disagreements."""
        self.n_questions += 1
        if self._pipelines:
            from tools.pipeline_questions import findings  # needs scikit-learn

            yield from (f"seed {seed}: {finding}" for finding in findings(seed))
            return
        if self._domains:
            yield from self._ask_within_domain(seed)
            return
        ensemble, question = random_question(seed)
        truth = count(ensemble, **question, method="brute", jobs=1).low
        yield from self._compare(ensemble, question, truth, seed, EXACT_METHODS[1:])

    def _ask_within_domain(self, seed: int) -> Iterator[str]:
        """Ask a question in a domain; one in which a sensitive feature cannot change is refused."""
        asked = random_domain_question(seed, random_tree)
        truth, n_regions = asked.counts()
        try:
            first = count(asked.ensemble, **asked.words, method="brute", jobs=1)
        except QueryError as error:
            if truth and len(asked.sensitive) == 1:
                yield f"seed {seed}: refused, but {truth} are sensitive: {error}"
            return
        if (first.count, first.n_regions) != (truth, n_regions):
            found = f"{first.count} of {first.n_regions}"
            yield f"seed {seed}: brute says {found}, enumeration {truth} of {n_regions}"
        yield from self._compare(asked.ensemble, asked.words, truth, seed, ("exact",))

    def _compare(
        self,
        ensemble: Ensemble,
        question: dict[str, Any],
        truth: int,
        seed: int,
        exact_methods: Sequence[str],
    ) -> Iterator[str]:
        for method in exact_methods:
            for jobs in (1, 2):
                answer = self._answer(ensemble, question, method, seed, jobs)
                if answer is not None and answer.exact and answer.count != truth:
                    yield f"seed {seed}: {method} says {answer.count}, enumeration {truth}"
        for method in ("auto", "sample"):
            first, second = (
                self._answer(ensemble, question, method, seed, jobs) for jobs in (1, 2)
            )
            if first is None or second is None:
                continue
            if (first.count, first.low, first.high) != (second.count, second.low, second.high):
                yield f"seed {seed}: {method} differs on one thread and on two"
            self.n_missed[method] += not first.low <= truth <= first.high
            if first.exact and first.count != truth:
                yield f"seed {seed}: {method} calls {first.count} exact, it is {truth}"

    def _answer(
        self, ensemble: Ensemble, question: dict[str, Any], method: str, seed: int, jobs: int
    ) -> CountResult | None:
        try:
            found = count(ensemble, **question, method=method, seed=seed, jobs=jobs, delta=DELTA)
        except XCountError:  # too large for the paper's methods
            return None
        self.n_answers[method] += 1
        return found

    def missed_too_often(self) -> Iterator[str]:
        """Yield the methods whose intervals missed more often than allowed."""
        for method, n_missed in self.n_missed.items():
            n = self.n_answers[method] / 2
            if n_missed > n * DELTA + ALLOWED_SIGMAS * (n * DELTA * (1 - DELTA)) ** 0.5:
                yield f"{method}: {n_missed} of {n:.0f} intervals miss the count"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--questions", type=int, help="stop after this many")
    parser.add_argument("--first", type=int, default=0, help="the first question's seed")
    parser.add_argument("--domains", action="store_true", help="with conditions and rules")
    parser.add_argument("--pipelines", action="store_true", help="about scikit-learn pipelines")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + 60 * options.minutes
    soak, findings = Soak(domains=options.domains, pipelines=options.pipelines), 0
    seed, started = options.first, time.monotonic()
    while time.monotonic() < deadline and soak.n_questions != options.questions:
        for finding in soak.ask(seed):
            print(f"FINDING: {finding}", flush=True)
            findings += 1
        seed += 1
    for finding in soak.missed_too_often():
        print(f"FINDING: {finding}")
        findings += 1
    answers = ", ".join(f"{method} {n}" for method, n in sorted(soak.n_answers.items()))
    missed = ", ".join(f"{method} {n}" for method, n in sorted(soak.n_missed.items()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{soak.n_questions} questions from seed {options.first} on in ", end="")
    print(f"{(time.monotonic() - started) / 60:.1f} minutes; answers: {answers}; intervals that ")
    print(f"miss, of at most 10 %: {missed}; peak memory {peak} MiB; {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
