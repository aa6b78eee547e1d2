"""`Feature`: the behaviour of one column, whatever its kind.

A *code* is one ``float64`` per cell: a number is its own code, a level has its position, a time the
units since an origin, and a missing cell ``nan``. A feature knows no name, column dtype or rule.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import is_number, shown
from bayescfx.data.tables import Cells, Dtype, cells_in
from bayescfx.data.values import Plain, as_number, as_python, from_plain, to_plain
from bayescfx.errors import SpaceError, SpaceWarning, suggest, warn


class Feature(ABC):
    """One column as codes. A new kind is a frozen dataclass derived from this.

    Attributes
    ----------
    kinds : dict of str to class
        Every kind by its word.
    kind : str
        The word of this kind: the name of the class, in lower case.
    has_levels : bool
        Codes are positions among `levels`.
    categorical : bool
        Codes are names: each change is as large as any other.
    numeric : bool
        Codes are the user's own numbers.
    floating : bool
        The grid counts from the query, not from the lower end.
    natural : str
        NumPy's letters of the dtypes that mean this kind; "o" for ordered categories.
    low, high, step
        Limits and step of kinds that have them.
    levels : tuple
        The levels of kinds that have them.
    period : int
        Length of the circle of a cyclic feature; else 0.
    form : str
        Date format of a text column; else empty.
    """

    kinds: ClassVar[dict[str, type[Feature]]] = {}
    kind: ClassVar[str]

    has_levels: ClassVar[bool] = False
    categorical: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    floating: ClassVar[bool] = False
    natural: ClassVar[str] = ""

    low: Any
    step: Any
    high: Any
    levels: tuple[Hashable, ...]
    period: int = 0
    form: str = ""

    def __init_subclass__(cls) -> None:
        """Register the kind by its word, unless it is private."""
        cls.kind = cls.__name__.lower()
        if not cls.__name__.startswith("_"):
            Feature.kinds[cls.kind] = cls

    # ── range and grid ──

    @property
    @abstractmethod
    def code_range(self) -> tuple[float, float]:
        """Lowest and highest code."""

    @property
    def code_step(self) -> float:
        """Grid step in codes; 0 where continuous."""
        return 1.0

    @property
    def dated(self) -> bool:
        """Whether numbers in text rules count from an arbitrary day."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether up and down mean something."""
        return not self.categorical and not self.period

    @property
    def lattice(self) -> tuple[float, float, float] | None:
        """Whole numbers (first, stride, unit): grid codes are exactly (first + k stride) / unit."""
        low = self.code_range[0]
        step = self.code_step
        is_fixed = not self.floating
        is_whole = is_fixed and step > 0 and step.is_integer() and low.is_integer()
        return (low, step, 1.0) if is_whole else None

    def with_step(self, name: Hashable, step: float | None) -> Feature:
        """Return the feature with another step, if numbers have one; None for the smallest."""
        raise SpaceError(f"`steps` needs numbers, but {name!r} is {type(self).__name__}.")

    def graded(self, cells: pd.Series[Any]) -> Feature:
        """Return the feature with the step that the cells of its column share, if any."""
        return self

    def grid(self, k: Array, anchor: float) -> Array:
        """Return the codes ``anchor + k * step`` exactly as cells of the feature are encoded."""
        return anchor + k * self.code_step

    @abstractmethod
    def covering(self, values: pd.Series[Any]) -> Feature:
        """Return the feature with its range or levels grown to include `values`; codes stay."""

    def growth(self, before: Feature) -> str:
        """Return in words how the feature has grown."""
        return f"the range {self.low!s} … {self.high!s}"

    # ── cells ──

    @abstractmethod
    def encode(self, cells: Cells) -> Array:
        """Return the codes of cells ``(n,)``: ``nan`` where missing, -1 for an unknown level."""

    @abstractmethod
    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        """Return the cells for codes ``(n,)``, in the column's dtype."""

    @property
    @abstractmethod
    def dtype(self) -> Dtype:
        """The dtype of a column made for the feature."""

    # ── columns of data ──

    @classmethod
    def suits(cls, cells: pd.Series[Any]) -> bool:
        """Return whether a column is inferred to be of this kind."""
        letter = "o" if getattr(cells.dtype, "ordered", False) else cells.dtype.kind
        return letter in cls.natural

    @classmethod
    def doubt(cls, cells: pd.Series[Any]) -> str:
        """Return why a column may be of this kind, and how to settle it; or nothing."""
        return ""

    def check(self, name: Hashable, cells: pd.Series[Any]) -> None:
        """Raise unless a column such as this can hold every value of the feature."""
        return

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Feature:
        """Return the feature of this kind that is inferred from a column."""
        raise SpaceError(f"`kinds[{name!r}]` must be a feature; {cls.kind!r} can't be inferred.")

    # ── values that users give ──

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
        """Return the code of one value that a user gave to a verb."""
        is_infinite = isinstance(value, float) and abs(value) == math.inf
        if not (is_infinite or isinstance(value, bool) or is_number(value)):
            raise _not_a_number(value, name, verb)
        return float(value)

    def parse(self, text: Any, name: Hashable = "value", verb: str = "between") -> Any:
        """Return the value that a text stands for; anything but text is returned as it is.

        Parameters
        ----------
        text : str or value
            An empty text is a missing cell, None.
        name : hashable
            The feature, for messages.
        verb : str
            The verb that got the text, for messages.

        Raises
        ------
        SpaceError
            If the text is no value; it names the feature, what the text must be and what it is.
        """
        if not isinstance(text, str):
            return text
        if not text.strip():
            return None
        number = as_number(text)
        if isinstance(number, str):
            raise _not_a_number(text, name, verb)
        return number

    def format(self, code: float) -> str:
        """Return the exact text of a code: :meth:`parse` reads the same value; "" if missing."""
        if math.isnan(code):
            return ""
        cell = self.decode(np.array([code]), self.dtype)[0]
        return str(as_python(cell))

    def shift(self, value: Any, name: Hashable = "value") -> float:
        """Return a relative change that a user gave to `move`, in codes."""
        return Feature.code(self, value, name, "move")

    # ── numbers in text rules ──

    def measure(self, name: Hashable, text: str) -> str:
        """Return the unit of the feature's numbers in a text rule; raise if it has no numbers."""
        return ""

    def numbers(self, codes: Array) -> Array:
        """Return the numbers that codes stand for in text rules."""
        return codes

    @property
    def line(self) -> tuple[float, float] | None:
        """Offset and slope of these numbers over the codes; None if they are not on a line."""
        return 0.0, 1.0

    # ── texts for people ──

    @property
    @abstractmethod
    def words(self) -> str:
        """Range and step, or levels, short."""

    def display(self, *codes: float) -> list[str]:
        """Return codes for messages, rounded, all with the same resolution."""
        return [f"{code:g}" for code in codes]

    def label(self, code: float) -> str:
        """Return a code for an axis of a plot."""
        return self.display(code)[0]

    # ── files ──

    def to_plain(self) -> dict[str, Plain]:
        """Return the feature in JSON's own types."""
        names = [f.name for f in fields(self)]  # type: ignore[arg-type]  # kinds are dataclasses
        values = {name: to_plain(getattr(self, name)) for name in names}
        return {"kind": type(self).__name__, **values}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Feature:
        """Return the feature that :meth:`to_plain` wrote."""
        values = {key: from_plain(value) for key, value in plain.items() if key != "kind"}
        return Feature.kinds[plain["kind"].lower()](**values)


def _not_a_number(value: object, name: Hashable, verb: str) -> SpaceError:
    """Return the error about a value of a verb that must be a number."""
    return SpaceError(f"`{verb}` for {name!r} must be numbers; got {shown(value)}.")


def infer(name: Hashable, cells: pd.Series[Any], kind: str | Feature | None = None) -> Feature:
    """Return the feature of a column: as given, of a kind that is named, or inferred."""
    try:
        feature = _make(name, cells, kind)
        feature.check(name, cells)
        feature.encode(cells_in(cells.iloc[:2]))
        feature.decode(np.array(feature.code_range), cells.dtype)
    except SpaceError as error:
        if repr(name) in str(error):
            raise
        reason = str(error).removesuffix(error.advice).strip()
        message = f"column {name!r} can't be used: {reason}"
        raise SpaceError(message, parameter=error.parameter, advice=error.advice) from error
    except Exception as error:  # of pandas or pyarrow, which can't do everything with every dtype
        raise SpaceError(
            f"column {name!r} of dtype {cells.dtype} can't be used: {shown(str(error))}. Convert "
            "it to numbers, text or times within 290,000 years."
        ) from error
    return feature


def _make(name: Hashable, cells: pd.Series[Any], kind: str | Feature | None) -> Feature:
    """Return the feature of a column, before it is checked."""
    if isinstance(kind, Feature):
        return kind
    if kind is None:
        return _infer_kind(name, cells)
    if kind in list(Feature.kinds):
        return Feature.kinds[kind].of_column(name, cells)
    if "<" in str(kind):
        ordinal: Any = Feature.kinds["ordinal"]
        made: Feature = ordinal.of_order(name, cells, str(kind).split("<"))
        return made
    if "%" in str(kind):
        moment: Any = Feature.kinds["moment"]
        made = moment.of_form(cells, str(kind))
        return made
    listed = ", ".join(map(repr, Feature.kinds))
    raise SpaceError(
        f"`kinds` of {name!r} must be one of {listed}, an order such as 'low < high' or how "
        f"dates are written, such as '%d/%m/%Y'; got {kind!r}.{suggest(kind, Feature.kinds)}"
    )


def _infer_kind(name: Hashable, cells: pd.Series[Any]) -> Feature:
    """Return the feature of the last kind that suits a column; warn if another may be meant."""
    kinds = [kind for kind in Feature.kinds.values() if kind.suits(cells)]
    kind = kinds[-1] if kinds else Feature.kinds["categorical"]
    feature = kind.of_column(name, cells).graded(cells)
    for other in Feature.kinds.values():
        doubt = other.doubt(cells)
        if doubt:
            warn(f"column {name!r} {doubt}", SpaceWarning)
    return feature
