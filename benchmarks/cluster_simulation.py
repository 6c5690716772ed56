"""Simulates large runs on a cluster from measured times and costs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.cluster.client import bundle_size
from xcount.cluster.spread import UNIT_SECONDS
from xcount.cluster.worker import PATIENCE_SECONDS

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run costs besides counting, in seconds.

    Attributes:
        task: per bundle, where all of them pass one by one: the client and the scheduler.
        journal: per count, in the same place: its line in the journal. (What ended since the last
            look is written together, so waiting for the disk does not add up.)
        model: per bundle, on its worker: to unpack a model (at most; a worker keeps models).
    """

    task: float
    journal: float
    model: float


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated run: how long, and which part of the workers' time went into counts."""

    seconds: float
    busy: float


def simulate(times: Times, n_workers: int, costs: Costs, *, spread: bool = True) -> Simulated:
    """Run ``times[model, count]`` on workers that take the next bundle when they are free.

    Bundles are made as :mod:`xcount.cluster.client` makes them, of one model each; handing them out
    and writing their results are done one after the other. With ``spread``, counts that are still
    going on when the last bundle has begun are spread as :mod:`xcount.cluster.worker` spreads them.
    """
    mean, n_waiting = float(times.mean()), times.size
    free_at = [0.0] * n_workers
    handed_out = last_start = 0.0
    for counts in times:
        at = 0
        while at < len(counts):
            size = min(bundle_size(mean, n_waiting, n_workers), len(counts) - at)
            handed_out += costs.task + size * costs.journal
            last_start = max(heapq.heappop(free_at), handed_out)
            taken = costs.model + float(counts[at : at + size].sum())
            heapq.heappush(free_at, last_start + taken)
            at, n_waiting = at + size, n_waiting - size
    end = max(free_at)
    if spread:
        end = min(end, spread_end(np.array(free_at), last_start))
    return Simulated(end, float(times.sum()) / (n_workers * end))


def spread_end(free_at: Times, now: float) -> float:
    """Return when all is done if what goes on for long is spread from now on.

    Nobody is called before a count has been patient for its time; what is left then is shared by
    all workers, and the last unit ends a unit's time later.
    """
    called = now + PATIENCE_SECONDS
    left = float(np.maximum(free_at - called, 0.0).sum())
    return called + left / len(free_at) + UNIT_SECONDS if left else float(free_at.max())
