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


class _Number(Feature):
    """What `Real` and `Integer` share: codes are the numbers themselves."""

    numeric = True
    whole: ClassVar[bool]  # only whole numbers

    def __post_init__(self) -> None:
        kind, low, high = type(self).__name__, self.low, self.high
        for name, wish in (("low", "finite"), ("high", "finite"), ("step", "positive")):
            value = getattr(self, name)
            if value is None and name == "step" and not self.whole:
                continue
            if not (isinstance(value, bool) or is_number(value)) or (name == "step" and value <= 0):
                raise SpaceError(f"`{name}` of {kind} must be a {wish} number; got {shown(value)}.")
            # beyond 2**53 neighbouring integers share one float64
            if self.whole and (value != int(value) or abs(value) > 2**53):
                raise SpaceError(
                    f"`{name}` of {kind} must be a whole number up to 2**53; got {value!r}.",
                    parameter="identifiers",
                    advice="Use Real for fractions and Categorical for identifiers.",
                )
            object.__setattr__(self, name, int(value) if self.whole else float(value))
        if low > high:
            raise SpaceError(f"`low <= high` must hold for {kind}; got low={low!r}, high={high!r}.")
        if low != high and not 1e-305 <= float(high) - float(low) < math.inf:
            raise SpaceError(
                f"`high - low` of {kind} must be 0 or between 1e-305 and 1.7e308; got low={low!r}, "
                f"high={high!r}. Rescale the numbers."
            )

    @property
    def code_range(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def covering(self, values: pd.Series[Any]) -> Feature:
        """Grow the limits, the lower one by whole steps, so that the grid keeps its points."""
        low, high = float(values.min()), max(float(self.high), float(values.max()))
        if self.code_step:
            if not max(high - self.low, self.high - low) / self.code_step < 2**53:
                raise SpaceError(f"{values.iloc[0]:g} is too far away for steps of {self.step:g}.")
            down = max(0, math.ceil((self.low - low) / self.code_step))
            low = float(self.grid(np.array(-down), float(self.low)))
        high = math.ceil(high) if self.whole else high
        return replace(self, low=min(low, self.low), high=high)  # type: ignore[type-var]  # kinds are dataclasses

    def encode(self, cells: Cells) -> Array:
        if isinstance(cells, np.ndarray) and cells.dtype != object:
            return cells.astype(np.float64)
        return pd.Series(cells).to_numpy(np.float64, na_value=np.nan)

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        missing = np.isnan(codes)
        if isinstance(dtype, np.dtype):
            whole = self.whole and dtype.kind == "O" and not missing.any()
            return (codes.astype(np.int64) if whole else codes).astype(dtype)
        filled = np.where(missing, 0.0, codes)
        found = pd.Series(filled.astype(np.int64) if dtype.kind in "iu" else filled)
        cells = found.astype(dtype).array
        if missing.any():
            cells[missing] = None
        return cells

    @property
    def code_step(self) -> float:
        return float(self.step or 0)

    @property
    def dtype(self) -> Dtype:
        return np.dtype(np.int64 if self.whole else np.float64)

    def format(self, code: float) -> str:
        """Return the shortest text of the number, without a decimal point if it is whole."""
        if math.isnan(code):
            return ""
        return repr(float(code) + 0.0).removesuffix(".0")  # -0.0 + 0.0 is 0.0

    def with_step(self, name: Hashable, step: float | None) -> Feature:
        """Grid points are multiples of the step; the lower limit is the next one below."""
        least = 1 if self.whole and step is None else step
        found: Feature = replace(self, step=least)  # type: ignore[type-var]  # kinds are dataclasses
        if step is None:
            return found
        low = math.floor(self.low / found.step + 1e-9) * found.step
        return replace(found, low=round(low, 12))  # type: ignore[type-var]  # as above

    def check(self, name: Hashable, cells: pd.Series[Any]) -> None:
        dtype = cells.dtype
        if dtype.kind not in "iu":
            if dtype.kind != "f":
                _column_range(name, cells)
            return
        if not (self.step and float(self.step).is_integer() and float(self.low).is_integer()):
            raise SpaceError(
                f"column {name!r} must be of a float dtype to be Real; got {dtype}. Convert the "
                "column, or use 'integer'."
            )
        info = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        if self.low < info.min or self.high > info.max:
            raise SpaceError(f"column {name!r} of dtype {dtype} can't hold {self!r}.")

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Feature:
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
        return decimals if decimals <= 12 else None

    @cached_property
    def lattice(self) -> tuple[float, float, float] | None:
        decimals = self.grid_decimals if self.step else None
        if not self.step or decimals is None or abs(self.low) >= 10.0 ** (15 - decimals):
            return None
        return round(self.low * 10**decimals), round(self.step * 10**decimals), 10.0**decimals

    def graded(self, cells: pd.Series[Any]) -> Feature:
        return replace(self, step=shared_step(cells))

    def grid(self, k: Array, anchor: float) -> Array:
        """Return ``anchor + k * step`` with the decimals a user would write."""
        codes, decimals = anchor + k * self.code_step, self.grid_decimals
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

    @property
    def period(self) -> int:  # type: ignore[override]  # features are frozen
        return self.high - self.low + self.step if self.cyclic else 0

    @property
    def words(self) -> str:
        step = f" by {self.step}" if self.step != 1 else ""
        return f"{self.low} … {self.high}{step}" + (" cyclic" if self.cyclic else "")


def _column_range(name: Hashable, cells: pd.Series[Any]) -> tuple[float, float]:
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
    numbers = cells.to_numpy(np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    numbers = numbers[np.linspace(0, len(numbers) - 1, min(len(numbers), 100_000)).astype(np.intp)]
    values, n = np.unique(numbers), len(numbers)
    if n < 20 or len(values) < 2 or (n < 1_000 and len(values) > 0.95 * n):
        return None
    finest = 100 * float(np.spacing(narrow(np.abs(values).max())))  # below it, all are on a grid
    for unit in (1, 10, 100, 1_000):
        whole = np.rint(values * unit)
        on_grid = np.array_equal((whole / unit).astype(narrow), values.astype(narrow))
        if 1 / unit > finest and on_grid:
            shared = np.gcd.reduce((whole - whole[0]).astype(np.int64)) if len(values) >= 20 else 1
            return float(shared / unit)
    return None


def _decimals(value: float) -> int:
    """Return how many decimals the shortest writing of `value` has, be it single precision."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    shortest = Decimal(str(single if float(single) == value else float(value)))
    return max(0, -int(shortest.normalize().as_tuple().exponent))
