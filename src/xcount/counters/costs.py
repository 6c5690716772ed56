"""Every constant of cost: what work is expected to cost, and the thresholds by which it is chosen.

*Prices* are seconds of one core, or bytes, for one unit of work. They are rough, and the same on
every machine on purpose: they only weigh one kind of work against another, so that the same
question takes the same path, and gets the same answer, everywhere. *Sizes* limit how much is made
or looked at in one go. :class:`Thresholds` holds the values by which ``auto`` and its parts decide
what to do next; ``docs/auto.md`` maps these decisions.

Brackets name the program that checks a value, or the choice that rests on it, against the clock.
Values without brackets are guesses that no measurement has contradicted. Sizes that limit a form of
the problem (such as ``Form.max_auto_terms``) are properties of the form and stay in
:mod:`xcount.problem`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# ---- prices of exact counting ----

SECONDS_PER_STEP = 3e-8
"""One step of the exact counter [benchmarks/side_by_side.py]."""
SECONDS_PER_TREE_OF_PAIR = 1e-6
"""The scan of one tree of one pair of masks: can the pair differ at all?"""
SECONDS_PER_LAID_NODE = 1.2e-6
"""Laying one node of a tree on the cells of a part of the domain."""
BYTES_PER_LAID_NODE = 300
"""The memory of one such node."""

# ---- prices of covers ----

SECONDS_PER_COVER_WORK = 40e-9
"""One unit of work of a cover's refinement."""
SECONDS_PER_DIFFERENCE = 1e-7
"""One node of the difference trees that a cover starts with."""
BYTES_PER_DIFFERENCE = 16
"""The memory of one such node."""

SECONDS_PER_PAIR_WORK = 18e-9
"""One unit of work of a cover by boxes of pairs: a leaf, a segment or a cell of a box."""
SECONDS_PER_PAIR_LEAF = 5e-7
"""Listing one leaf of the trees of pairs that such a cover starts with."""
BYTES_PER_PAIR_LEAF = 100
"""The memory of one such leaf."""
MAX_PAIR_LEAVES = 2_000_000
"""Most such leaves of all trees together, roughly: a fixed limit of the native core."""

# ---- prices of samples ----

SECONDS_PER_SAMPLE = 6e-8
"""One sample, whatever it decides [experiments/sampling.py]."""
SECONDS_PER_TREE = 1.5e-9
"""One tree of a sample that decides a row of all masks [experiments/sampling.py]."""
SECONDS_PER_MASK = 5e-9
"""One mask of a row that is decided natively [experiments/sampling.py]."""
SECONDS_PER_BOX_DRAW = 5e-7
"""Drawing a sample from boxes of pairs, whatever it decides."""
SECONDS_PER_BOX = 1e-10
"""Looking at one box to see whether it holds a sample."""
SECONDS_PER_FLAG = 3e-8
"""One mask of a row that is decided by numpy."""
SECONDS_PER_REGION_TREE = 100e-9
"""One tree of a sample that is a single region [experiments/sampling.py]."""
SECONDS_PER_NODE = 10e-9
"""One node that the search from a single region looks at [experiments/sampling.py]."""

BYTES_PER_MASK = 200
"""The memory of one mask of the native sampler of rows."""
BYTES_PER_PAIR = 16
"""The memory of one pair of masks there."""
BYTES_PER_TREE_NODE = 100
"""The memory of one tree node of any native sampler."""

# ---- prices of a visit of all regions (python -m benchmarks.corner_sums --estimates) ----

SECONDS_PER_REGION = {32: 6e-10, 64: 1e-9, 128: 6e-9, 2304: 1e-6}
"""One output of one region, by the bits of the sums [benchmarks/corner_sums.py]."""
SECONDS_PER_ROW = {16: 9e-11, 64: 2.5e-10, 128: 3e-9, 2304: 3e-7}
"""One row of the extremes around a mask, by the bits compared [benchmarks/corner_sums.py]."""
SECONDS_PER_CHANGE = {32: 1.5e-10, 64: 3e-10, 128: 6e-9, 2304: 6e-7}
"""Each change but the first, by the bits of the sums [benchmarks/corner_sums.py]."""
SECONDS_PER_WEIGHT = 1.5e-9
"""Each change of a region whose weight is added up [benchmarks/corner_sums.py]."""
SECONDS_PER_CORNER = {1: 7e-8, 2: 1.4e-7, 36: 1.5e-6}
"""Listing one corner, by the limbs of the leaves [benchmarks/corner_sums.py]."""
SECONDS_PER_LISTED = 4e-9
"""One entry of the list of neighbouring masks [benchmarks/corner_sums.py]."""
SECONDS_PER_EXPONENTIAL = {64: 8e-9, 128: 3.5e-8, 2304: 1e-7}
"""One probability, by the bits of the sums [benchmarks/corner_sums.py]."""
SECONDS_PER_BYTE = 1e-9
"""Each byte of a column, once: memory touched for the first time [benchmarks/corner_sums.py]."""
BYTES_PER_CORNER = 64
"""The memory of one listed corner."""

# These two describe vectors and caches of processors, which only the native code uses. They stand
# here because a visit is priced before any native object is made.
VECTOR_BYTES = 64
"""The sums of one mask and output in a vector register."""
CACHE_FACTORS = ((1e6, 1.0), (8e6, 3.0), (math.inf, 12.0))
"""How many times longer a region takes if a column has up to so many bytes
[benchmarks/corner_sums.py]."""
NARROW_CACHE_FACTORS = ((1e6, 1.0), (8e6, 1.2), (math.inf, 6.0))
"""The same if 16 bits are compared: each sum is read only once [benchmarks/corner_sums.py]."""

# ---- sizes ----

MAX_VISITED_REGIONS = 10**12
"""Most regions visited without a time limit: about an hour on one core."""
MAX_LISTED_CORNERS = 1e10
"""Most corners listed without a time limit."""
MAX_SMALL_VISIT = 50_000_000
"""Regions up to which method ``sample`` visits all of them if its samples find nothing."""
MAX_FLAGS = 1 << 24
"""Most masks decided together at one combination of the other cells."""
BLOCK_FLAGS = 1 << 20
"""Flags decided at a time: the margins of all of them are held, 40 bytes each and more."""
MAX_LISTED = 200_000
"""Most regions of a small grid, all of which are decided rather than drawn."""
MAX_ROW = 2**17
"""Masks and pairs beyond which a sample is a single region, not a row of all masks."""
MAX_CELL_ROW = 2**9
"""The same for rows decided by numpy: a search takes a small part of their time."""
PROBE_WALKS = 2**22
"""Trees walked to probe a few regions: about a twentieth of a second."""
MAX_PROBED_ROWS = 1024
"""Rows of masks that a probe decides."""
MAX_COVERED_PAIRS = 2_000
"""Pairs of masks of a cover, of all its subproblems together."""
LEAST_PAIR_MASKS = 8
"""Fewer masks have so few pairs that a cover pair by pair is better."""
COVER_WORK_PER_SLICE = 2_000_000
"""Work of a cover between two checks of limits and interrupts: about a twentieth of a second."""
PAIRS_PER_SLICE = 2_000
"""Pairs of masks scanned between two checks of limits and interrupts."""
SEARCH_BUDGETS = (3_000_000, 30_000_000)
"""Nodes that the search for one sample may look at, the usual number first."""
N_TRIED_SAMPLES = 8
"""Samples that choose between these budgets."""
POLL_SECONDS = 0.1
"""Seconds between two checks of a solver that works in the background."""
SAMPLING_SLICE_SECONDS = 0.1
"""Seconds of drawing between two checks of limits and interrupts."""
THREADS_FROM_SECONDS = 0.003
"""Least seconds of work for which threads are worth starting."""

# ---- parts of the time or memory that is left ----

COVER_PART = 0.25
"""Part of the time of method ``exact`` that is kept for a cover of what its rounds leave open. The
width of a cover's bounds falls slowly, and a round takes ten times as long as the one before."""
DIFFERENCES_PART = 0.25
"""Part of the time and memory left that the difference trees of a cover may take."""
PAIR_SCAN_PART = 0.2
"""Part of the time of method ``sample`` that the scan of pairs may take."""
TUNING_PART = 0.2
"""Part of the time left for the samples that choose the budget of searches."""
PILOT_TIME_PART = 0.1
"""Part of the time left that a pilot may take."""
PILOT_WORK_PART = 20
"""A pilot may use at most 1/N of the work it could save; this is N."""

# ---- sizes of pilots ----

MAX_PILOT_BATCHES = 512
"""Batches of a pilot that plans an estimate."""
COVER_PILOT_BATCHES = 40
"""Batches of a pilot that prices an estimate from a cover."""
PILOT_GROWTH = 4
"""A pilot grows by one part in so many at a time."""

# ---- thresholds of decisions ----

VISIT_SECONDS = 2.0
"""A visit of all regions that takes no longer is preferred to sampling: a second on two cores."""
FREE_PAIR_SCAN_SECONDS = 0.5
"""A scan of the pairs of masks that takes no longer is always done."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The values by which counters decide what to do next; seconds are of one core.

    Answers stay correct whatever the values are; only the method and the cost change.

    Attributes:
        instant_seconds: a visit of all regions that takes no longer is done at once.
        visit_seconds: a visit that takes no longer is done rather than sampling.
        free_pair_scan_seconds: a scan of the pairs of masks that takes no longer is always done.
        free_exact_seconds: exact work done before sampling is priced: an exact answer is worth
            that much [benchmarks/side_by_side.py].
        alone_seconds: exact work done before an estimate may start that seems to cost more
            [benchmarks/side_by_side.py].
        last_seconds: exact work if sampling has given up and there is no time limit.
        step_budgets: steps of a subproblem, round by round, under ``auto``.
        exact_step_budgets: the same under method ``exact``.
        free_step_budget: method ``exact`` tries rounds up to this budget before a visit.
        least_slice_seconds: the first slices of exact work are about as long.
        slice_part: later slices may cost this part of the exact work so far.
        hard_steps: subproblems that such a budget does not solve are cut into parts.
        part_bits: into two to the power of so many parts.
        least_cover_work: work of a cover after the rounds of ``exact``, without a time limit.
        plain_seconds: estimates that cost no more are drawn from everything that is open; others
            may refine a cover first.
        first_cover_work: the work that a cover starts with.
        trial_part: part of the price of plain samples that a cover is refined for without any sign
            of a gain.
        shrunk_part: a new estimate is considered once the open part has shrunk to this part of what
            the current estimate draws from,
        cheaper_part: and replaces it if it costs less than this part of what that still needs.
        least_barren_samples: without a time limit, sampling gives up after four times as many
            samples as regions without a hit: at least so many,
        most_barren_samples: and at most so many.
        visit_slice_seconds: seconds of a visit between two checks of limits and interrupts.
        max_checked_terms: up to so many terms, method ``sample`` first asks bounds which masks can
            be sensitive at all.
        parts_steps: steps of exact counting in all parts of a domain with rules, before what is
            open is sampled.
        parts_seconds: the most that an estimate of all open parts together may cost; beyond, parts
            are counted one by one.
        grace_part: if the time limit comes before the first sample, sampling still gets this part
            of it,
        grace_seconds: and at most so many seconds: some bounds, a little late, are worth more than
            none.
    """

    instant_seconds: float = 0.02
    visit_seconds: float = VISIT_SECONDS
    free_pair_scan_seconds: float = FREE_PAIR_SCAN_SECONDS
    free_exact_seconds: float = 0.1
    alone_seconds: float = 0.5
    last_seconds: float = 60.0
    step_budgets: tuple[int, ...] = (
        10_000,
        200_000,
        3_000_000,
        40_000_000,
        500_000_000,
        5_000_000_000,
        2**62,
    )
    exact_step_budgets: tuple[int, ...] = (200_000, 3_000_000, 40_000_000, 500_000_000, 2**62)
    free_step_budget: int = 3_000_000
    least_slice_seconds: float = 0.02
    slice_part: float = 0.5
    hard_steps: int = 10_000_000
    part_bits: int = 5
    least_cover_work: int = 10_000_000
    plain_seconds: float = 0.5
    first_cover_work: int = 2_000_000
    trial_part: float = 0.02
    shrunk_part: float = 0.5
    cheaper_part: float = 0.5
    least_barren_samples: int = 100_000
    most_barren_samples: int = 10_000_000
    visit_slice_seconds: float = 0.2
    max_checked_terms: int = 5_000
    parts_steps: int = 4_000_000
    parts_seconds: float = 20.0
    grace_part: float = 0.2
    grace_seconds: float = 0.2


THRESHOLDS = Thresholds()
"""The thresholds in use, unless settings have others."""
