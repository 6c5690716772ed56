"""The fitted transformers that a test can be pulled back through, one class for each family.

Each output of a :class:`Stage` is a function of *one* of its inputs, piecewise monotone in numbers:
that is all that is said about a transformer here. What the function is, the transformer itself says
when it is called. Encoders, which take categories, are in :mod:`encoders`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.loaders.pipelines.crossings import LARGEST, Numbers, crossings

Values = NDArray[Any]
"""The values of one column: float64, or objects if there are texts among them."""
_FEW = 16


class Stage:
    """A fitted transformer, each output of which depends on one of its inputs.

    Args:
        transformer: fitted.
        place: what to call it in messages, e.g. ``step 'scale' (StandardScaler)``.
        n_inputs: how many columns it takes.
        is_sparse: whether its input comes as a sparse matrix; some compute otherwise then.
    """

    def __init__(self, transformer: Any, place: str, n_inputs: int, *, is_sparse: bool) -> None:
        self.transformer = transformer
        self.place = place
        self.n_inputs = n_inputs
        self.original_turns: dict[int, tuple[float, ...]] = {}
        self._is_sparse = is_sparse
        self._known: dict[tuple[Any, ...], Values] = {}
        self.check()

    def check(self) -> None:
        """Refuse settings that cannot be pulled back."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The input that each output depends on."""
        return tuple(range(self.n_inputs))

    def turns(self, column: int) -> Sequence[float]:
        """Return the numbers at which a new monotone piece of some output begins."""
        return ()

    @cached_property
    def fillers(self) -> Sequence[Any]:
        """A value for each input that the transformer accepts."""
        return [1.0] * self.n_inputs

    def categories(self, column: int) -> Sequence[Any] | None:
        """Return the categories that an input may hold; None if it is a number."""
        return None

    def keeps_categories(self, output: int) -> bool:
        """Tell whether a category, unless it is missing, comes out as it went in."""
        return False

    def forgets_categories(self, output: int) -> bool:
        """Tell whether all values that are no category of its own, and not missing, are one."""
        return False

    def outputs(self, column: int, values: Values) -> Values:
        """Return what the transformer makes of values of one input: a column for each output.

        Raises:
            ValueError: the transformer does not accept one of the values.
        """
        # The outputs of an encoder are asked for one by one, at the same categories.
        if values.dtype != object and len(values) > _FEW:
            return self._made(column, values)
        key = (column, *map(repr, values.tolist()))  # unlike NaN itself, "nan" is always the same
        if key not in self._known:
            self._known[key] = self._made(column, values)
        return self._known[key]

    def _made(self, column: int, values: Values) -> Values:
        is_text = values.dtype == object or any(isinstance(v, str) for v in self.fillers)
        rows = np.empty((len(values), self.n_inputs), dtype=object if is_text else np.float64)
        rows[:] = self.fillers
        rows[:, column] = values
        made = self._transformed(rows)
        if made.shape[1] != len(self.sources):
            raise UnsupportedModelError(
                f"{self.place} puts out {made.shape[1]} columns where {len(self.sources)} are known"
            )
        return made[:, [i for i, source in enumerate(self.sources) if source == column]]

    def output(self, index: int, values: Values) -> Values:
        """Return one output at values of the input that it depends on."""
        column = self.sources[index]
        place = sum(source == column for source in self.sources[:index])
        return self.outputs(column, values)[:, place]

    def numbers(self, index: int, values: Numbers) -> Numbers:
        """Return one output at numbers of its input, also at those that the transformer refuses.

        It refuses numbers so large that its result overflows, or that lie below its domain: there
        it has the limit that it goes to. No row with such a number is ever predicted.
        """
        finite = np.clip(values, -LARGEST, LARGEST)
        try:
            return self.output(index, finite).astype(np.float64)
        except ValueError:
            if len(values) == 1:
                return np.where(np.isnan(values), np.nan, np.where(values > 0, np.inf, -np.inf))
        middle = len(values) // 2
        halves = (self.numbers(index, part) for part in (values[:middle], values[middle:]))
        return np.concatenate(list(halves))

    @cached_property
    def gives_sparse(self) -> bool:
        """Whether the output is a sparse matrix."""
        from scipy.sparse import issparse

        rows = np.array([self.fillers], dtype=object)
        is_text = any(isinstance(value, str) for value in self.fillers)
        return bool(issparse(self._called(rows if is_text else rows.astype(np.float64))))

    def _called(self, rows: Values) -> Any:
        if self._is_sparse:
            from scipy.sparse import csr_matrix

            return self.transformer.transform(csr_matrix(rows))
        return self.transformer.transform(rows)

    def _transformed(self, rows: Values) -> Values:
        made = self._called(rows)
        return np.asarray(made.toarray() if hasattr(made, "toarray") else made)


class Columnwise(Stage):
    """A transformer that keeps one number for each input: a scaler, for instance.

    Of many inputs, a copy that knows a single one does the same work at a fraction of the cost.
    """

    def _made(self, column: int, values: Values) -> Values:
        if self.n_inputs == 1 or self._is_sparse:
            return super()._made(column, values)
        return np.asarray(self._narrowed(column).transform(values[:, np.newaxis]))

    def _narrowed(self, column: int) -> Any:
        if column not in self._narrow:
            narrow = self._narrow[column] = copy.copy(self.transformer)
            narrow.n_features_in_ = 1
            vars(narrow).pop("feature_names_in_", None)
            for name, value in vars(narrow).items():
                if isinstance(value, np.ndarray) and value.shape == (self.n_inputs,):
                    setattr(narrow, name, value[column : column + 1])
        return self._narrow[column]

    @cached_property
    def _narrow(self) -> dict[int, Any]:
        return {}


class Selection(Stage):
    """Feature selection: some of the inputs. Most selections take no missing values."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        return tuple(self.transformer.get_support(indices=True).tolist())


class Power(Stage):
    """PowerTransformer: increasing, made of one formula below 0 and another above."""

    def turns(self, column: int) -> Sequence[float]:
        return (0.0,)


class Quantiles(Stage):
    """QuantileTransformer: linear between quantiles."""

    def turns(self, column: int) -> Sequence[float]:
        knots: list[float] = np.unique(self.transformer.quantiles_[:, column]).tolist()
        return knots


class Bins(Stage):
    """KBinsDiscretizer: the number of a bin, or a column for each bin."""

    @cached_property
    def sources(self) -> tuple[int, ...]:
        if self.transformer.encode == "ordinal":
            return tuple(range(self.n_inputs))
        return tuple(np.repeat(np.arange(self.n_inputs), self.transformer.n_bins_).tolist())

    def turns(self, column: int) -> Sequence[float]:
        if self.transformer.encode == "ordinal":
            return ()

        def bin_of(values: Numbers) -> Numbers:
            bins: Numbers = np.argmax(self.outputs(column, values), axis=1).astype(np.float64)
            return bins

        edges: list[float] = crossings(
            bin_of, (), np.arange(1.0, self.transformer.n_bins_[column])
        ).tolist()
        return edges


class Imputer(Columnwise):
    """SimpleImputer: the missing value becomes a number or a category; flags may follow."""

    def _made(self, column: int, values: Values) -> Values:
        return (
            super()._made(column, values)
            if not self._flagged
            else Stage._made(self, column, values)
        )

    @cached_property
    def _flagged(self) -> list[int]:
        indicator = getattr(self.transformer, "indicator_", None)
        flagged: list[int] = [] if indicator is None else indicator.features_.tolist()
        return flagged

    def keeps_categories(self, output: int) -> bool:
        return output < len(self.sources) - len(self._flagged)

    def forgets_categories(self, output: int) -> bool:
        return not self.keeps_categories(output)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        rows = np.array([self.fillers], dtype=object)
        is_number = self.transformer._fit_dtype.kind != "O"
        n_outputs = self._transformed(rows.astype(np.float64) if is_number else rows).shape[1]
        kept = list(range(self.n_inputs))
        if n_outputs != len(kept) + len(self._flagged):
            kept = [i for i in kept if not is_missing(self.transformer.statistics_[i])]
        return (*kept, *self._flagged)

    def turns(self, column: int) -> Sequence[float]:
        return _around(self.transformer.missing_values)

    @cached_property
    def fillers(self) -> Sequence[Any]:
        is_number = self.transformer._fit_dtype.kind != "O"
        found = self.transformer.statistics_
        return [(1.0 if is_number else "") if is_missing(value) else value for value in found]

    @property
    def constant(self) -> Any:
        """What it puts in the place of every missing value; None if that depends on the data."""
        return self.transformer.fill_value if self.transformer.strategy == "constant" else None


class Indicator(Stage):
    """MissingIndicator: which values are missing."""

    def forgets_categories(self, output: int) -> bool:
        return True

    @cached_property
    def sources(self) -> tuple[int, ...]:
        return tuple(self.transformer.features_.tolist())

    def turns(self, column: int) -> Sequence[float]:
        return _around(self.transformer.missing_values)


FUNCTIONS: dict[Any, tuple[float, ...]] = {
    **dict.fromkeys((None, np.exp, np.exp2, np.expm1, np.cbrt, np.arctan, np.arcsinh), ()),
    **dict.fromkeys((np.sinh, np.tanh, np.negative, np.positive, np.sign), ()),
    **dict.fromkeys((np.floor, np.ceil, np.rint, np.trunc, np.float32, np.float64), ()),
    **dict.fromkeys((np.deg2rad, np.rad2deg, np.radians, np.degrees), ()),
    **dict.fromkeys((np.sqrt, np.log, np.log2, np.log10, np.square, np.abs, np.fabs), (0.0,)),
    np.log1p: (-1.0,),
    np.isnan: (),
}
"""Functions of one number -> where a new monotone piece begins. None leaves the input as it is."""


class Function(Stage):
    """FunctionTransformer with a function that is known to be monotone, piece by piece."""

    def check(self) -> None:
        made_of, options = self.transformer.func, self.transformer.kw_args
        try:
            is_known = made_of in FUNCTIONS and not options
        except TypeError:  # not hashable
            is_known = False
        if not is_known:
            name = getattr(made_of, "__name__", type(made_of).__name__)
            raise UnsupportedModelError(
                f"{self.place}: the function {name}{' with options' if options else ''} is not "
                "known to be monotone (numpy's log, log1p, sqrt, exp, square and their like are)"
            )

    def keeps_categories(self, output: int) -> bool:
        return self.transformer.func is None

    def turns(self, column: int) -> Sequence[float]:
        return FUNCTIONS[self.transformer.func]

    @cached_property
    def gives_sparse(self) -> bool:
        return self._is_sparse


def _around(missing_value: Any) -> Sequence[float]:
    """Return where pieces begin if one number means missing: there, and right behind it."""
    if not isinstance(missing_value, int | float | np.number) or np.isnan(missing_value):
        return ()
    number = float(missing_value)
    return (number, float(np.nextafter(number, np.inf)))


def is_missing(value: Any) -> bool:
    """Tell whether a value is None or NaN."""
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
