"""Fit a population to rows by expectation maximisation; held-out rows choose its size.

A fifth of the rows is held out. Mixtures of more and more components are fitted to the others, as
long as each makes the held-out rows more likely. The likelihood of held-out rows, and the frequency
of pairs of conditions among them, show how realistic the population is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount import _core
from xcount.errors import QueryError, QueryWarning
from xcount.measures.population import Column, Population
from xcount.measures.portrait import Check, Realism
from xcount.model.inputs import Inputs
from xcount.question.grid import Axis, Grid

LADDER = (1, 2, 3, 5, 8, 12, 20, 32, 50)
"""Numbers of components that are tried, one after the other, as long as each is better."""
ROWS_PER_COMPONENT = 25
"""Least number of rows for a component."""
LEAST_ROWS = 20
_HELD_OUT = 0.2
_MOST_HELD_OUT = 10_000
STRENGTH = 1.0
"""Weight, in rows, of the prior that pulls every component towards the marginals."""
_MAX_STEPS = 150
_SMALL_GAIN = 1e-4
"""The fit is done once a step gains less than this in a row's mean log-likelihood."""
_WORTH = 0.005
"""More components must gain at least this in a held-out row's mean log-likelihood."""
_N_CHECKS = 10

Notice = Callable[[float, str], None]
"""Called with the progress of a fit, from 0 to 1, and a description."""


def fit_population(
    grid: Grid,
    rows: ArrayLike | Inputs,
    *,
    source: str = "",
    sha256: str | None = None,
    seed: int = 0,
    n_threads: int = 1,
    is_over: Callable[[], bool] = lambda: False,
    on_progress: Notice | None = None,
) -> Population:
    """Fit a population to rows; held-out rows choose the number of components.

    Values outside every cell are ignored; a row without any known value is left out. Once
    ``is_over`` returns True, no more components are tried.

    The population covers all inputs, also those outside the grid's domain.
    """
    grid = Grid(tuple(axis.unrestricted() for axis in grid.axes), grid.input_dtype)
    inputs = Inputs.of(rows)
    cells = grid.cells_of(inputs).astype(np.int32)
    _name_unknown(grid, cells, source or "the data")
    cells = cells[(cells >= 0).any(axis=1)]
    if len(cells) < LEAST_ROWS:
        raise QueryError(
            f"a population needs at least {LEAST_ROWS} rows in the cells of the model; "
            f"{source or 'the data'} has {len(cells)}"
        )
    found = _Fitting(grid, cells, seed, n_threads, is_over, on_progress).population(source)
    return replace(found, n_data_rows=len(inputs), data_sha256=sha256)


def fit_mixture(
    cells: NDArray[np.int32],
    sizes: Sequence[int],
    n_components: int,
    seed: int = 0,
    n_threads: int = 1,
    is_over: Callable[[int], bool] = lambda step: False,
) -> _core.Mixture:
    """Fit a mixture to rows of cells, until a step gains little or steps run out."""
    mixture = _core.Mixture(cells.ravel(), list(sizes), n_components, STRENGTH, seed)
    before = -math.inf
    for step in range(_MAX_STEPS):
        now = mixture.step(n_threads)
        if is_over(step) or now - before < _SMALL_GAIN:
            break
        before = now
    return mixture


def _name_unknown(grid: Grid, cells: NDArray[np.int32], source: str) -> None:
    """Warn of columns with values outside every cell; reject a column without other values."""
    is_unknown = cells < 0
    names = [axis.feature.name for axis in grid.axes]
    if len(cells) and (empty := np.flatnonzero(is_unknown.all(axis=0))).size:
        raise QueryError(
            f"no row of {source} has a value of {names[empty[0]]!r} in any cell; a population "
            "needs some of every column (--missing cell has cells for missing values)"
        )
    n_rows = int(is_unknown.any(axis=1).sum())
    if n_rows:
        columns = [repr(names[f]) for f in np.flatnonzero(is_unknown.any(axis=0))]
        more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
        warnings.warn(
            f"values of {', '.join(columns[:3])}{more} are missing in {n_rows:,} of {len(cells):,} "
            f"rows of {source}, and there is no cell for them: they say nothing about the "
            "population (--missing cell has cells for them)",
            QueryWarning,
            stacklevel=2,
        )


class _Fitting:
    """Fits with more and more components, as long as held-out rows become more likely."""

    def __init__(
        self,
        grid: Grid,
        cells: NDArray[np.int32],
        seed: int,
        n_threads: int,
        is_over: Callable[[], bool],
        on_progress: Notice | None,
    ) -> None:
        self._grid, self._seed = grid, seed
        self._n_threads, self._is_over, self._notice = n_threads, is_over, on_progress
        order = np.random.default_rng([seed, len(cells)]).permutation(len(cells))
        n_held_out = min(_MOST_HELD_OUT, max(1, int(len(cells) * _HELD_OUT)))
        self._held_out = cells[order[:n_held_out]]
        self._seen = cells[order[n_held_out:]]

    def population(self, source: str) -> Population:
        """Return the population with the best number of components."""
        likelihoods: list[float] = []
        best: _core.Mixture | None = None
        supported = max(1, len(self._seen) // ROWS_PER_COMPONENT)
        if supported == 1:
            warnings.warn(
                f"{len(self._seen)} rows of {source or 'the data'} support one component, which "
                f"takes {ROWS_PER_COMPONENT} rows: the population is the product of the marginals",
                QueryWarning,
                stacklevel=3,
            )
        for n_components in LADDER:
            if n_components > supported:
                break
            mixture = self._fitted(n_components)
            if best is not None and self._is_over():
                break  # possibly before convergence
            found = mixture.log_likelihood(self._held_out.ravel())
            if likelihoods and found < likelihoods[-1] + _WORTH:
                break
            likelihoods.append(found)
            best = mixture
        assert best is not None
        realism = Realism(
            n_rows=len(self._seen),
            n_held_out=len(self._held_out),
            log_likelihood=likelihoods[-1],
            marginals_log_likelihood=likelihoods[0],
            checks=self._checks(best),
        )
        columns = zip(self._grid.axes, self._tables(best), strict=True)
        return Population(best.weights, tuple(_column(*each) for each in columns), realism, source)

    def _fitted(self, n_components: int) -> _core.Mixture:
        def is_over(step: int) -> bool:
            if self._notice is not None:
                self._notice(step / _MAX_STEPS, f"fitting {n_components} components")
            return self._is_over()

        sizes = self._grid.cell_counts
        return fit_mixture(self._seen, sizes, n_components, self._seed, self._n_threads, is_over)

    def _tables(self, mixture: _core.Mixture) -> list[NDArray[np.float64]]:
        """Return the table of each feature: cells x components."""
        table = mixture.probabilities.reshape(-1, len(mixture.weights))
        return np.split(table, np.cumsum(self._grid.cell_counts)[:-1])

    def _checks(self, mixture: _core.Mixture) -> tuple[Check, ...]:
        """Compare the pairs of conditions that depend most on each other in the training rows."""
        tables = self._tables(mixture)
        conditions = [
            found
            for feature, axis in enumerate(self._grid.axes)
            if (found := _condition(axis, feature, self._seen[:, feature])) is not None
        ]
        seen, held_out = (_truth(conditions, cells) for cells in (self._seen, self._held_out))
        alone = seen.mean(axis=0)
        together = np.abs(seen.T @ seen / len(seen) - np.outer(alone, alone))
        shares = [tables[each.feature][each.cells].sum(axis=0) for each in conditions]
        pairs = [(i, j) for i in range(len(conditions)) for j in range(i + 1, len(conditions))]
        pairs.sort(key=lambda pair: -together[pair])
        return tuple(
            Check(
                text=f"{conditions[i].text} and {conditions[j].text}",
                rows=float((held_out[:, i] * held_out[:, j]).mean()),
                population=float((mixture.weights * shares[i] * shares[j]).sum()),
                marginals=float(alone[i] * alone[j]),
            )
            for i, j in pairs[:_N_CHECKS]
        )


@dataclass(frozen=True, eq=False)
class _Condition:
    """Some cells of a feature, in words."""

    feature: int
    cells: NDArray[np.int64]
    text: str


def _condition(axis: Axis, feature: int, cells: NDArray[np.int32]) -> _Condition | None:
    """Return a condition that about half of the rows satisfy; None if there is only one cell."""
    counts = np.bincount(cells[cells >= 0], minlength=axis.n_cells)
    if np.count_nonzero(counts) < 2:
        return None
    if axis.feature.is_categorical:
        most = int(counts.argmax())
        return _Condition(feature, np.array([most]), axis.describe(most))
    n_numbers = axis.n_cells - (axis.missing_cell is not None)
    above = counts[:n_numbers][::-1].cumsum()[::-1]  # rows in this cell or a higher one
    at = int(np.abs(above - len(cells) / 2)[1:].argmin()) + 1 if n_numbers > 1 else 0
    if at == 0:
        return None
    low = axis.cell_range(at).low
    return _Condition(feature, np.arange(at, n_numbers), f"{axis.feature.name} >= {low:g}")


def _truth(conditions: list[_Condition], cells: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return a matrix of rows by conditions, 1 if the condition holds for the row."""
    truth = np.zeros((len(cells), len(conditions)))
    for place, condition in enumerate(conditions):
        truth[:, place] = np.isin(cells[:, condition.feature], condition.cells)
    return truth


def _column(axis: Axis, probabilities: NDArray[np.float64]) -> Column:
    return Column(
        axis.feature.name,
        tuple(axis.thresholds.tolist()),
        axis.classes if axis.feature.is_categorical else None,
        axis.missing_cell is not None,
        probabilities,
        _labels(axis),
    )


def _labels(axis: Axis) -> tuple[tuple[str, ...], ...] | None:
    """Return the names of the categories in each cell, if all have names."""
    names = [axis.cell_range(cell).labels for cell in range(len(axis.classes))]
    return tuple(names) if names and all(names) else None
