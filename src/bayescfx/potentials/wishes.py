"""The kinds of target, and the potential each becomes once f(query) is known.

A target says how the output should change; once f(query) is known it turns into a potential
(:meth:`Target.potential`), and the tolerance into the outputs that count as reached
(:meth:`Target.acceptance`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from bayescfx.errors import TargetError
from bayescfx.potentials.family import AEP, SEP, Intervals, LevelPotential, Plateau, Potential
from bayescfx.potentials.links import Sampled

# A range's potential has fallen to a tenth of its peak at the query: z = 3, 1 / (1 + 3**2).
_FALL = 3.0


@runtime_checkable
class Target(Protocol):
    """What every target can do once f(query) is known."""

    def potential(self, output: float) -> LevelPotential:
        """Return the potential of this target for a query with the given output."""

    def wanted(self, output: float) -> Intervals:
        """Return the outputs asked for, as intervals (a single value has equal ends)."""

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the outputs that count as reached."""

    def epsilon(self, tolerance: float) -> float:
        """Return the epsilon of Definition "Potential Duality" that a tolerance stands for."""

    def describe(self) -> str:
        """Return the target in words."""

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types."""


def tolerance_epsilon(tolerance: float) -> float:
    """Return the epsilon whose EP target set stays within a relative miss.

    Near its peak the potential is ``(1 - 2 d**2) / e`` for a relative miss ``d`` of the wanted
    change, so 1 % on the potential is 7 % on the output. The EP family falls more slowly above
    its peak than below, hence the epsilon of ``z = 1 + d``.

    Parameters
    ----------
    tolerance : float
        How much of the wanted change may be missed, in [0, 1).

    Returns
    -------
    float
        Epsilon in [0, 1).

    Examples
    --------
    >>> round(tolerance_epsilon(0.05), 6)
    0.004908
    """
    d = _checked_tolerance(tolerance)
    return -math.expm1(2.0 * math.log1p(d) - d * (2.0 + d))


def _checked_tolerance(tolerance: float) -> float:
    if not 0.0 <= tolerance < 1.0:
        raise TargetError(
            f"`tolerance` must be at least 0 and less than 1; got {tolerance!r}. "
            "It is the share of the wanted change that may be missed."
        )
    return float(tolerance)


def finite_number(name: str, owner: str, value: object, *, infinite: bool = False) -> float:
    """Return a finite float, or explain."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TargetError(f"{owner}: `{name}` must be a number; got {value!r}.")
    number = float(value)
    if math.isnan(number) or (math.isinf(number) and not infinite):
        raise TargetError(f"{owner}: `{name}` must be a finite number; got {value!r}.")
    return number


def _output(output: float) -> float:
    return finite_number("output", "target", output)


def _words(number: float) -> str:
    return f"{number:.6g}"


def _around(wanted: float, output: float, tolerance: float) -> tuple[float, float]:
    slack = _checked_tolerance(tolerance) * abs(wanted - output)
    return wanted - slack, wanted + slack


def _aep(wanted: float, output: float, words: str) -> AEP:
    """Return the potential whose peak is the wanted output."""
    width = abs(wanted - output)
    if width == 0.0:
        raise TargetError(
            f"{words} asks for no change: f(query) is already {_words(output)}. "
            "Choose another value."
        )
    return AEP(output, width, 1 if wanted > output else -1)


@dataclass(frozen=True, slots=True)
class Reach:
    """Reach one value; made by :func:`reach`."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", finite_number("value", "reach", self.value))

    def potential(self, output: float) -> LevelPotential:
        """Return the AEP with its peak at the value."""
        return _aep(self.value, _output(output), f"reach({_words(self.value)})")

    def wanted(self, output: float) -> Intervals:
        """Return the value as an interval."""
        return ((self.value, self.value),)

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the outputs within `tolerance` of the wanted change."""
        return (_around(self.value, _output(output), tolerance),)

    def epsilon(self, tolerance: float) -> float:
        """Return the epsilon that a tolerance stands for."""
        return tolerance_epsilon(tolerance)

    def describe(self) -> str:
        """Return the target in words."""
        return _words(self.value)

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types."""
        return {"kind": "reach", "value": self.value}


_SIGNS = {"increase": "+", "decrease": "-", "change": "±"}


@dataclass(frozen=True, slots=True)
class Shift:
    """Move the output by an amount; made by :func:`increase`, :func:`decrease`, :func:`change`."""

    kind: Literal["increase", "decrease", "change"]
    by: float | None = None
    percent: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in _SIGNS:
            raise TargetError(
                f"`kind` must be one of 'increase', 'decrease', 'change'; got {self.kind!r}."
            )
        if (self.by is None) == (self.percent is None):
            got = "neither" if self.by is None else "both"
            raise TargetError(
                f"{self.kind}: give either `by` or `percent`; got {got}. "
                f"For example {self.kind}(percent=20)."
            )
        name = "by" if self.percent is None else "percent"
        amount = finite_number(name, self.kind, getattr(self, name))
        if amount <= 0.0:
            other = {"increase": "decrease", "decrease": "increase"}.get(self.kind)
            advice = f" For the other direction use {other}." if other and amount < 0.0 else ""
            raise TargetError(f"{self.kind}: `{name}` must be positive; got {amount:g}.{advice}")
        object.__setattr__(self, name, amount)

    def amount(self, output: float) -> float:
        """Return the wanted change in output units."""
        output = _output(output)
        if self.by is not None:
            return self.by
        assert self.percent is not None  # one of the two is set, see __post_init__
        if output == 0.0:
            raise TargetError(
                f"{self.kind}(percent={_words(self.percent)}) needs f(query) different from 0; "
                f"got 0.0. Use {self.kind}(by=...)."
            )
        return abs(output) * self.percent / 100.0

    def potential(self, output: float) -> LevelPotential:
        """Return the AEP of the direction, or the SEP for either."""
        width, output = self.amount(output), _output(output)
        if self.kind == "change":
            return SEP(output, width)
        return AEP(output, width, 1 if self.kind == "increase" else -1)

    def wanted(self, output: float) -> Intervals:
        """Return the wanted value, or both, as intervals."""
        width = self.amount(output)
        values = {
            "increase": (output + width,),
            "decrease": (output - width,),
            "change": (output - width, output + width),
        }[self.kind]
        return tuple((value, value) for value in values)

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the outputs within `tolerance` of the wanted change."""
        return tuple(_around(value, output, tolerance) for value, _ in self.wanted(output))

    def epsilon(self, tolerance: float) -> float:
        """Return the epsilon that a tolerance stands for."""
        return tolerance_epsilon(tolerance)

    def describe(self) -> str:
        """Return the target in words."""
        if self.by is not None:
            return f"{_SIGNS[self.kind]}{_words(self.by)}"
        assert self.percent is not None  # one of the two is set, see __post_init__
        return f"{_SIGNS[self.kind]}{_words(self.percent)} %"

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types."""
        name, amount = ("by", self.by) if self.percent is None else ("percent", self.percent)
        return {"kind": self.kind, name: amount}


@dataclass(frozen=True, slots=True)
class Range:
    """Get into a range; made by :func:`between`, :func:`at_least`, :func:`at_most`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        low = finite_number("low", "between", self.low, infinite=True)
        high = finite_number("high", "between", self.high, infinite=True)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low > high:
            raise TargetError(
                f"between: `low` must not exceed `high`; got {low:g} and {high:g}. Swap them."
            )
        if math.isinf(low) and math.isinf(high):
            raise TargetError("between: `low` or `high` must be finite; got both infinite.")

    def potential(self, output: float) -> LevelPotential:
        """Return the plateau over the range; a third of the way to it sets the width."""
        output = _output(output)
        gap = max(self.low - output, output - self.high)
        if gap <= 0.0:
            raise TargetError(
                f"{self._call()} asks for no change: f(query) is {_words(output)}, which meets it "
                "already. Choose a range without it."
            )
        return Plateau(self.low, self.high, gap / _FALL)

    def wanted(self, output: float) -> Intervals:
        """Return the range."""
        return ((self.low, self.high),)

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the range itself: a range asked for is a range."""
        _checked_tolerance(tolerance)
        return ((self.low, self.high),)

    def epsilon(self, tolerance: float) -> float:
        """Return 0: the range is the superlevel set of the peak."""
        _checked_tolerance(tolerance)
        return 0.0

    def describe(self) -> str:
        """Return the target in words."""
        if math.isinf(self.high):
            return f"at least {_words(self.low)}"
        if math.isinf(self.low):
            return f"at most {_words(self.high)}"
        return f"between {_words(self.low)} and {_words(self.high)}"

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types."""
        if math.isinf(self.high):
            return {"kind": "at_least", "value": self.low}
        if math.isinf(self.low):
            return {"kind": "at_most", "value": self.high}
        return {"kind": "between", "low": self.low, "high": self.high}

    def _call(self) -> str:
        if math.isinf(self.high):
            return f"at_least({_words(self.low)})"
        if math.isinf(self.low):
            return f"at_most({_words(self.high)})"
        return f"between({_words(self.low)}, {_words(self.high)})"


@dataclass(frozen=True, slots=True)
class Shaped:
    """A potential given by the user instead of words; made by :func:`as_target`."""

    shape: Potential
    low: float = -math.inf
    high: float = math.inf

    def potential(self, output: float) -> LevelPotential:
        """Return the potential, sampled between the outputs seen if it has no superlevel sets."""
        if isinstance(self.shape, LevelPotential):
            known: LevelPotential = self.shape
        elif math.isfinite(self.low) and math.isfinite(self.high):
            known = Sampled(self.shape, self.low, self.high)
        else:
            raise TargetError(
                f"{type(self.shape).__name__} has no `superlevel`, so outputs to examine it on "
                "are needed. Pass them: as_target(potential, outputs=...)."
            )
        if float(known.value(_output(output))) >= known.peak:
            raise TargetError(
                f"{self.describe()} asks for no change: it is already at its peak at "
                f"f(query) = {_words(output)}. Choose another potential."
            )
        return known

    def wanted(self, output: float) -> Intervals:
        """Return where the potential is at its peak."""
        return self.potential(output).target_set(0.0)

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the target set at the epsilon that the tolerance stands for."""
        return self.potential(output).target_set(self.epsilon(tolerance))

    def epsilon(self, tolerance: float) -> float:
        """Return the epsilon that a tolerance stands for; 0 for a plateau."""
        epsilon = tolerance_epsilon(tolerance)
        return 0.0 if isinstance(self.shape, Plateau) else epsilon

    def describe(self) -> str:
        """Return the target in words."""
        return f"the potential {self.shape!r}"

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types, for our own potentials."""
        shape = self.shape
        numbers: dict[str, Any]
        match shape:
            case AEP():
                numbers = {"origin": shape.origin, "width": shape.width, "side": shape.side}
            case SEP():
                numbers = {"origin": shape.origin, "width": shape.width}
            case Plateau():
                numbers = {
                    key: None if math.isinf(end) else end
                    for key, end in (("low", shape.low), ("high", shape.high))
                } | {"width": shape.width}
            case _:
                raise TargetError(
                    f"a potential of type {type(shape).__name__} can't be written as JSON. "
                    "Use AEP, SEP, or a target in words."
                )
        return {"kind": "potential", "family": type(shape).__name__, **numbers}
