"""Numbers: continuous, on a grid, whole, or around a circle."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import is_number, shown
from bayescfx.data.feature import Feature
from bayescfx.data.tables import Cells, Dtype
from bayescfx.errors import SpaceError

# Beyond this number neighbouring integers share one float64.
LARGEST_INTEGER = 2**53
# A step is positive.
SMALLEST_STEP = math.nextafter(0.0, 1.0)
# Ranges below it have no finite scale.
SMALLEST_RANGE = 1e-305
# Decimals beyond which a number is not written by hand.
MOST_DECIMALS = 12
# When a column shows a step: so many numbers, or so many distinct ones for its divisor; of fewer
# rows than STEP_ROWS at most the share STEP_DISTINCT is distinct. Set by judgement, 2026-11-18.
STEP_NUMBERS = 20
STEP_ROWS = 1_000
STEP_DISTINCT = 0.95
# Whole numbers with so few values, such as terms of 36 and 60 months, take no others.
FEW_VALUES = 5


class _Number(Feature):
    """The common part of `Real` and `Integer`: codes are the numbers themselves."""

    numeric = True
    whole: ClassVar[bool]  # only whole numbers

    def __post_init__(self) -> None:
        """Check limits and step, and convert them to plain numbers."""
        low = self.low
        high = self.high
        names = ["low", "high"]
        if self.whole or self.step is not None:
            names.append("step")
        for name in names:
            object.__setattr__(self, name, self._checked(name, getattr(self, name)))
        _check_range(type(self).__name__, low, high)

    def _checked(self, name: str, value: Any) -> float:
        """Return a limit or the step as a number, or raise."""
        kind = type(self).__name__
        least, must = (SMALLEST_STEP, "positive") if name == "step" else (-math.inf, "finite")
        number = int(value) if isinstance(value, bool) else value
        if not is_number(number, least):
            raise SpaceError(f"`{name}` of {kind} must be a {must} number; got {shown(value)}.")
        return _as_whole(f"`{name}` of {kind}", value) if self.whole else float(value)

    @property
    def code_range(self) -> tuple[float, float]:
        """Both limits as floats."""
        return float(self.low), float(self.high)

    def covering(self, values: pd.Series[Any]) -> Feature:
        """Grow the limits, the lower one by whole steps, so that the grid keeps its points."""
        low = float(values.min())
        high = max(float(self.high), float(values.max()))
        if self.code_step:
            if not max(high - self.low, self.high - low) / self.code_step < LARGEST_INTEGER:
                raise SpaceError(f"{values.iloc[0]:g} is too far away for steps of {self.step:g}.")
            n_steps = max(0, math.ceil((self.low - low) / self.code_step))
            low = float(self.grid(np.array(-n_steps), float(self.low)))
        high = math.ceil(high) if self.whole else high
        return replace(self, low=min(low, self.low), high=high)  # type: ignore[type-var]  # kinds are dataclasses

    def encode(self, cells: Cells) -> Array:
        """Return the numbers as floats; missing cells of any dtype are nan."""
        if isinstance(cells, np.ndarray) and cells.dtype != object:
            return cells.astype(np.float64)
        return pd.Series(cells).to_numpy(np.float64, na_value=np.nan)

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        """Return the numbers in the column's dtype; objects are whole numbers where possible."""
        if not isinstance(dtype, np.dtype):
            return _decode_nullable(codes, dtype)
        if self.whole and dtype.kind == "O" and not np.isnan(codes).any():
            return codes.astype(np.int64).astype(dtype)
        return codes.astype(dtype)

    @property
    def code_step(self) -> float:
        """The step, or 0 where every number is allowed."""
        return float(self.step or 0)

    @property
    def dtype(self) -> Dtype:
        """64-bit integers or floats."""
        return np.dtype(np.int64 if self.whole else np.float64)

    def format(self, code: float) -> str:
        """Return the shortest text of the number, without a decimal point if it is whole."""
        if math.isnan(code):
            return ""
        return repr(float(code) + 0.0).removesuffix(".0")  # -0.0 + 0.0 is 0.0

    def with_step(self, name: Hashable, step: float | None) -> Feature:
        """Grid points are multiples of the step; the lower limit is the next one below."""
        smallest = 1 if self.whole else None
        new: Feature = replace(self, step=smallest if step is None else step)  # type: ignore[type-var]  # kinds are dataclasses
        if step is None:
            return new
        low = math.floor(self.low / new.step + 1e-9) * new.step
        return replace(new, low=round(low, MOST_DECIMALS))  # type: ignore[type-var]  # as above

    def check(self, name: Hashable, cells: pd.Series[Any]) -> None:
        """Raise unless the dtype of a column can hold every value of the feature."""
        if cells.dtype.kind in "iu":
            self._check_integers(name, cells.dtype)
        elif cells.dtype.kind != "f":
            _column_range(name, cells)

    def _check_integers(self, name: Hashable, dtype: Any) -> None:
        """Raise unless an integer dtype can hold every value of the feature."""
        if not (self.step and float(self.step).is_integer() and float(self.low).is_integer()):
            raise SpaceError(
                f"column {name!r} must be of a float dtype to be Real; got {dtype}. Convert the "
                "column, or use 'integer'."
            )
        info = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        if not info.min <= self.low <= self.high <= info.max:
            raise SpaceError(f"column {name!r} of dtype {dtype} can't hold {self!r}.")

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Feature:
        """Return the range of a column; of an integer feature all numbers must be whole."""
        low, high = _column_range(name, cells)
        if cls.whole and cells.dtype.kind not in "iu":
            numbers = cells.dropna().to_numpy(np.float64)
            if (numbers != np.rint(numbers)).any():
                raise SpaceError(f"column {name!r} must hold whole numbers to be 'integer'.")
        return cls(low, high)  # type: ignore[call-arg]  # kinds have limits


@dataclass(frozen=True)
class Real(_Number):
    """A number, continuous or on a grid.

    Parameters
    ----------
    low, high : float
        Limits, both included.
    step : float, optional
        Grid ``low, low + step, ...``; without it every number between the limits is allowed.

    Examples
    --------
    >>> Real(0, 1, step=0.1).grid_decimals
    1
    """

    low: float
    high: float
    step: float | None = None

    natural = "f"
    whole = False

    @cached_property
    def grid_decimals(self) -> int | None:
        """Decimals that write every grid point exactly as a user would; ``None`` if too many."""
        decimals = max(_decimals(self.low), _decimals(self.step or 1.0))
        return decimals if decimals <= MOST_DECIMALS else None

    @cached_property
    def lattice(self) -> tuple[float, float, float] | None:
        """The grid in whole numbers, if few enough decimals write it exactly."""
        decimals = self.grid_decimals if self.step else None
        if not self.step or decimals is None or abs(self.low) >= 10.0 ** (15 - decimals):
            return None
        return round(self.low * 10**decimals), round(self.step * 10**decimals), 10.0**decimals

    def graded(self, cells: pd.Series[Any]) -> Feature:
        """Return the feature with the decimal step that the column shares, if it has one."""
        return replace(self, step=shared_step(cells))

    def grid(self, k: Array, anchor: float) -> Array:
        """Return ``anchor + k * step`` with the decimals a user would write."""
        codes = anchor + k * self.code_step
        decimals = self.grid_decimals
        return codes if decimals is None else np.round(codes, decimals)

    @property
    def words(self) -> str:
        step = f" by {self.step:g}" if self.step else ""
        return f"{self.low:.6g} … {self.high:.6g}{step}"


@dataclass(frozen=True)
class Integer(_Number):
    """A whole number.

    Parameters
    ----------
    low, high : int
        Limits, both included.
    step : int, default 1
        Grid ``low, low + step, ...``.
    cyclic : bool, default False
        After `high` comes `low` again, as with weekdays and hours.

    Examples
    --------
    >>> Integer(0, 6, cyclic=True).period
    7
    """

    low: int
    high: int
    step: int = 1
    cyclic: bool = False

    natural = "iu"
    whole = True

    def graded(self, cells: pd.Series[Any]) -> Feature:
        """Return the feature with the step between the few values that its column has."""
        step = step_of_few(cells)
        return self if step is None else replace(self, step=step)

    @property
    def period(self) -> int:  # type: ignore[override]  # features are frozen
        """Length of the circle, from `low` to `high` and one step more; 0 on a line."""
        return self.high - self.low + self.step if self.cyclic else 0

    @property
    def words(self) -> str:
        step = f" by {self.step}" if self.step != 1 else ""
        cyclic = " cyclic" if self.cyclic else ""
        return f"{self.low} … {self.high}{step}{cyclic}"


def _as_whole(what: str, value: Any) -> int:
    """Return a number as a whole one, or raise an error about `what`."""
    if value != int(value) or abs(value) > LARGEST_INTEGER:
        raise SpaceError(
            f"{what} must be a whole number up to 2**53; got {value!r}.",
            parameter="identifiers",
            advice="Use Real for fractions and Categorical for identifiers.",
        )
    return int(value)


def _check_range(kind: str, low: float, high: float) -> None:
    """Raise unless the limits of a feature are in order and have a finite scale."""
    if low > high:
        raise SpaceError(f"`low <= high` must hold for {kind}; got low={low!r}, high={high!r}.")
    if low != high and not SMALLEST_RANGE <= float(high) - float(low) < math.inf:
        raise SpaceError(
            f"`high - low` of {kind} must be 0 or between 1e-305 and 1.7e308; got low={low!r}, "
            f"high={high!r}. Rescale the numbers."
        )


def _decode_nullable(codes: Array, dtype: Dtype) -> Cells:
    """Return numbers as cells of an extension dtype, in which cells may be missing."""
    missing = np.isnan(codes)
    filled = np.where(missing, 0.0, codes)
    numbers = pd.Series(filled.astype(np.int64) if dtype.kind in "iu" else filled)
    cells = numbers.astype(dtype).array
    if missing.any():
        cells[missing] = None
    return cells


def _column_range(name: Hashable, cells: pd.Series[Any]) -> tuple[float, float]:
    """Return the smallest and largest finite number of a column; zeros if there is none."""
    if cells.dtype.kind in "iu":
        known = cells.dropna()
        return (int(known.min()), int(known.max())) if len(known) else (0, 0)
    try:
        numbers = cells.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"column {name!r} must hold numbers; got dtype {cells.dtype}. Use 'categorical'."
        ) from error
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def shared_step(cells: pd.Series[Any]) -> float | None:
    """Return the step of the decimal grid on which all numbers of a column lie, or None.

    At most three decimals, of at least 20 numbers, which repeat themselves if fewer than 1,000.
    """
    dtype: Any = cells.dtype
    narrow: Any = getattr(dtype, "numpy_dtype", dtype).type
    numbers = _sample(cells.to_numpy(np.float64, na_value=np.nan))
    values = np.unique(numbers)
    if not _may_share_step(len(numbers), len(values)):
        return None
    finest = 100 * float(np.spacing(narrow(np.abs(values).max())))  # below it, all are on a grid
    for unit in (1, 10, 100, 1_000):
        whole = np.rint(values * unit)
        is_on_grid = np.array_equal((whole / unit).astype(narrow), values.astype(narrow))
        if 1 / unit > finest and is_on_grid:
            return _common_step(whole) / unit
    return None


def step_of_few(cells: pd.Series[Any]) -> int | None:
    """Return the step between the few whole numbers of a column, such as 24 of 36 and 60, or None.

    Of at least 20 numbers with at most 5 distinct ones.
    """
    numbers = _sample(cells.to_numpy(np.float64, na_value=np.nan))
    values = np.unique(numbers)
    if len(numbers) < STEP_NUMBERS or not 1 < len(values) <= FEW_VALUES:
        return None
    step = int(np.gcd.reduce(np.diff(values).astype(np.int64)))
    return step if step > 1 else None


def _may_share_step(n: int, n_distinct: int) -> bool:
    """Return whether a column of `n` numbers has enough of them, and repeats them enough."""
    has_repeats = n >= STEP_ROWS or n_distinct <= STEP_DISTINCT * n
    return has_repeats and n >= STEP_NUMBERS and n_distinct > 1


def _common_step(whole: Array) -> int:
    """Return the greatest step that distinct whole numbers share; 1 if they are only a few."""
    if len(whole) < STEP_NUMBERS:
        return 1
    return int(np.gcd.reduce((whole - whole[0]).astype(np.int64)))


def _sample(numbers: Array) -> Array:
    """Return at most 100,000 of the finite numbers, evenly spaced."""
    finite = numbers[np.isfinite(numbers)]
    n = min(len(finite), 100_000)
    return finite[np.linspace(0, len(finite) - 1, n).astype(np.intp)]


def _decimals(value: float) -> int:
    """Return how many decimals the shortest text of `value` has; it may be single precision."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    shortest = Decimal(str(single if float(single) == value else float(value)))
    return max(0, -int(shortest.normalize().as_tuple().exponent))
