"""Targets: the outputs that a user asks for.

Once f(query) is known, a target becomes a potential, and the tolerance a set of accepted outputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.checks import shown
from bayescfx.errors import TargetError, suggest
from bayescfx.potentials.ep_family import AEP, SEP, Valley
from bayescfx.potentials.plateau import Plateau
from bayescfx.potentials.potential import (
    Intervals,
    LevelPotential,
    Potential,
    check_potential,
    checked_number,
    checked_share,
)
from bayescfx.potentials.wrapped import Sampled, window

FAMILIES: dict[str, Callable[..., Potential]] = {
    "AEP": AEP,
    "SEP": SEP,
    "Plateau": Plateau,
    "Valley": Valley,
}
SIGNS = {"increase": "+", "decrease": "-", "change": "±"}
OPPOSITE = {
    "increase": " For the other direction use decrease.",
    "decrease": " For the other direction use increase.",
}
Kind = Literal["reach", "increase", "decrease", "change"]
#: Rounding that the bound of a one-sided change forgives, as a share of f(query) or the bound: 16
#: units in the last place. The bound is computed from f(query), and the model rounds both outputs
#: on its own. Linear models with 2 to 30 coefficients of one decimal: 25 % of the rows that are
#: exactly at the bound miss it if nothing is forgiven, 0.3 % with this (2026-11-19).
ROUNDING = 16.0 * 2.0**-52
#: Widths between the query's output and a plateau: there the potential has fallen to a tenth of
#: its peak, 1 / (1 + 3**2).
QUERY_DISTANCE = 3.0


class Target(ABC):
    """A target of the output: a potential and a target set, once f(query) is known."""

    __slots__ = ()
    has_tolerance: bool = True  # whether the wanted change may be missed by a share of it
    rounding: float = 0.0  # that the bound of a target without a tolerance forgives, as a share

    @abstractmethod
    def potential(self, output: float) -> LevelPotential:
        """Return the potential of this target for a query with the given output."""

    @abstractmethod
    def wanted(self, output: float) -> Intervals:
        """Return the outputs asked for, as intervals (a single value has equal ends)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types: its kind, then its numbers."""

    @abstractmethod
    def describe(self) -> str:
        """Return the target as text."""

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the outputs that count as reached.

        Those within `tolerance` of the wanted change or, without a tolerance, the wanted ones.
        """
        share = checked_share(tolerance, "tolerance")
        output = checked_number("output", "target", output)
        accepted = []
        for low, high in self.wanted(output):
            bound = high if math.isinf(low) else low
            slack = share * abs(bound - output)
            if not self.has_tolerance:
                slack = self.rounding * max(abs(bound), abs(output))
            accepted.append((low - slack, high + slack))
        return tuple(accepted)

    def __str__(self) -> str:
        return self.describe()


def tolerance_epsilon(tolerance: float) -> float:
    """Return the epsilon in [0, 1) whose EP target set stays within a relative miss.

    Near its peak the potential is ``(1 - 2 d**2) / e`` for a relative miss ``d`` of the wanted
    change, so 1 % on the potential is 7 % on the output. The EP family falls more slowly above
    its peak than below, hence the epsilon of ``z = 1 + d``.
    """
    d = checked_share(tolerance, "tolerance")
    return -math.expm1(2.0 * math.log1p(d) - d * (2.0 + d))


@dataclass(frozen=True, slots=True)
class Reach(Target):
    """Reach one value; made by :func:`reach`."""

    value: float

    def potential(self, output: float) -> LevelPotential:
        """Return the AEP with its peak at the value."""
        output = checked_number("output", "target", output)
        if self.value == output:
            raise TargetError(
                f"reach({self.value!r}) asks for no change: f(query) is already that. "
                "Choose another value."
            )
        return AEP(output, abs(self.value - output), 1 if self.value > output else -1)

    def wanted(self, output: float) -> Intervals:
        return ((self.value, self.value),)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "reach", "value": self.value}

    def describe(self) -> str:
        return f"exactly {self.value:.6g}"


@dataclass(frozen=True, slots=True)
class Range(Target):
    """Get into a range; made by :func:`between`, :func:`at_least`, :func:`at_most`."""

    low: float
    high: float
    has_tolerance = False

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise TargetError(
                f"between: `low` must not exceed `high`; got {self.low!r} and {self.high!r}. "
                "Swap them."
            )

    def potential(self, output: float) -> LevelPotential:
        """Return the plateau over the range; a third of the way to its end sets the width."""
        output = checked_number("output", "target", output)
        gap = abs(max(self.low - output, output - self.high))
        # A query inside the range may break a rule; its distance to the nearer end counts then.
        return Plateau(self.low, self.high, (gap or 0.1 * abs(output) or 1.0) / QUERY_DISTANCE)

    def wanted(self, output: float) -> Intervals:
        return ((self.low, self.high),)

    def to_dict(self) -> dict[str, Any]:
        if math.isinf(self.high):
            return {"kind": "at_least", "value": self.low}
        if math.isinf(self.low):
            return {"kind": "at_most", "value": self.high}
        return {"kind": "between", "low": self.low, "high": self.high}

    def describe(self) -> str:
        kind, *ends = self.to_dict().values()
        return f"{kind.replace('_', ' ')} {' and '.join(f'{end:.6g}' for end in ends)}"


@dataclass(frozen=True, slots=True)
class Shift(Target):
    """Change the output by at least an amount, or by exactly that.

    Made by :func:`increase`, :func:`decrease`, :func:`change` and :func:`reach`; for the last one
    the sign of the amount is its direction.
    """

    kind: Kind
    by: float | None = None  # in output units; either this one is given
    percent: float | None = None  # of |f(query)|; or this one
    rounding = ROUNDING

    def __post_init__(self) -> None:
        if (self.by is None) == (self.percent is None):
            got = "neither" if self.by is None else "both"
            raise TargetError(
                f"{self.kind}: give either `by` or `percent`; got {got}. "
                f"For example {self.kind}(percent=20)."
            )
        name = "by" if self.percent is None else "percent"
        amount = checked_number(name, self.kind, getattr(self, name))
        if amount == 0.0 or (amount < 0.0 and self.kind != "reach"):
            allowed = "not be 0" if self.kind == "reach" else "be positive"
            advice = OPPOSITE.get(self.kind, "") if amount < 0.0 else ""
            raise TargetError(f"{self.kind}: `{name}` must {allowed}; got {amount:g}.{advice}")
        object.__setattr__(self, name, amount)

    @property
    def has_tolerance(self) -> bool:  # type: ignore[override]  # targets are frozen
        return self.kind == "reach"

    def potential(self, output: float) -> LevelPotential:
        """Return the AEP of an exact change, the plateau of one side, or the valley of either."""
        amount = self._amount(output)
        if self.kind == "reach":
            return AEP(output, abs(amount), 1 if amount > 0.0 else -1)
        if self.kind == "change":
            return Valley(output, amount)
        return Plateau(*self.wanted(output)[0], amount / QUERY_DISTANCE)

    def wanted(self, output: float) -> Intervals:
        """Return the wanted value, or all beyond it, as intervals."""
        amount = self._amount(output)
        less = output - amount
        more = output + amount
        return {
            "reach": ((more, more),),
            "increase": ((more, math.inf),),
            "decrease": ((-math.inf, less),),
            "change": ((-math.inf, less), (more, math.inf)),
        }[self.kind]

    def to_dict(self) -> dict[str, Any]:
        if self.percent is None:
            return {"kind": self.kind, "by": self.by}
        return {"kind": self.kind, "percent": self.percent}

    def describe(self) -> str:
        number, unit = self.size
        if self.kind == "reach":
            return f"={number:+.6g}{unit}"
        return f"{SIGNS[self.kind]}{number:.6g}{unit}"

    @property
    def size(self) -> tuple[float, str]:
        """The number given, with the sign of `reach`, and its unit: ``" %"`` or nothing."""
        if self.percent is None:
            return cast(float, self.by), ""
        return self.percent, " %"

    def _amount(self, output: float) -> float:
        """Return the wanted change in output units, with the sign of `reach`."""
        output = checked_number("output", "target", output)
        if self.percent is None:
            amount = cast(float, self.by)
        elif output == 0.0:
            raise TargetError(
                f"{self.kind}(percent={self.percent:.6g}) needs f(query) different from 0; "
                f"got 0.0.",
                parameter="percent",
                advice=f"Use {self.kind}(by=...).",
            )
        else:
            amount = abs(output) * self.percent / 100.0
        if abs(amount) <= 2.0 * ROUNDING * (abs(output) + abs(amount)):
            raise TargetError(
                f"{self.describe()} is lost in rounding beside f(query) = {output!r}. "
                "Ask for a larger change."
            )
        return amount


@dataclass(frozen=True, slots=True)
class Shaped(Target):
    """A potential given by the user as a target; made by :func:`as_target`."""

    shape: Potential

    @property
    def has_tolerance(self) -> bool:  # type: ignore[override]  # targets are frozen
        return not isinstance(self.shape, Plateau | Valley)

    def potential(self, output: float) -> LevelPotential:
        """Return the potential itself."""
        if not isinstance(self.shape, LevelPotential):
            raise TargetError(
                f"{type(self.shape).__name__} has no `superlevel`, so outputs to sample it at "
                "are needed. Pass them: as_target(potential, outputs=...)."
            )
        shape: LevelPotential = self.shape
        if float(shape.value(checked_number("output", "target", output))) >= shape.peak:
            raise TargetError(
                f"{self.describe()} asks for no change: it is already at its peak at "
                f"f(query) = {output:.6g}. Choose another potential."
            )
        return shape

    def wanted(self, output: float) -> Intervals:
        return self.acceptance(output, 0.0)

    def acceptance(self, output: float, tolerance: float) -> Intervals:
        """Return the target set at the epsilon that the tolerance stands for."""
        potential = self.potential(output)
        epsilon = tolerance_epsilon(tolerance)
        return potential.target_set(epsilon if self.has_tolerance else 0.0)

    def describe(self) -> str:
        return f"the potential {self.shape!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return the target as plain JSON types, for our own potentials."""
        shape = self.shape.potential if isinstance(self.shape, Sampled) else self.shape
        family = type(shape).__name__
        if type(shape) is not FAMILIES.get(family):
            raise TargetError(
                f"a potential of type {family} can't be written as JSON. "
                "Use AEP, SEP, or a target such as cfx.reach(150)."
            )
        numbers = asdict(cast(Any, shape))  # JSON has no infinity
        plain = {key: None if math.isinf(x) else x for key, x in numbers.items()}
        return {"kind": "potential", "family": family, **plain}


def reach(
    value: float | None = None, *, by: float | None = None, percent: float | None = None
) -> Reach | Shift:
    """Ask for one output, or for exactly so much more or less, within the tolerance.

    Parameters
    ----------
    value : float, optional
        The wanted output.
    by, percent : float, optional
        Instead: the wanted change, in output units or in percent of ``|f(query)|``; negative for
        less.

    Examples
    --------
    >>> reach(150).potential(100.0)
    AEP(origin=100.0, width=50.0, side=1)
    >>> str(reach(percent=-20)), reach(percent=-20).acceptance(200.0, tolerance=0.05)
    ('=-20 %', ((158.0, 162.0),))
    """
    if value is None:
        return Shift("reach", by, percent)
    if by is not None or percent is not None:
        raise TargetError("reach: give one of `value`, `by` and `percent`; got more than one.")
    return Reach(checked_number("value", "reach", value))


def increase(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for an output that is larger by at least an amount.

    Parameters
    ----------
    by, percent : float, optional
        The least increase, in output units or in percent of ``|f(query)|``; one of the two.

    Examples
    --------
    >>> str(increase(percent=20)), increase(percent=20).wanted(-50.0)
    ('+20 %', ((-40.0, inf),))
    """
    return Shift("increase", by, percent)


def decrease(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for an output that is smaller by at least an amount.

    Parameters
    ----------
    by, percent : float, optional
        The least decrease, in output units or in percent of ``|f(query)|``; one of the two.

    Examples
    --------
    >>> str(decrease(by=20)), decrease(by=20).wanted(150.0)
    ('-20', ((-inf, 130.0),))
    """
    return Shift("decrease", by, percent)


def change(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for an output that differs by at least an amount, either way.

    Parameters
    ----------
    by, percent : float, optional
        The least difference, in output units or in percent of ``|f(query)|``; one of the two.

    Examples
    --------
    >>> change(by=3).wanted(10.0)
    ((-inf, 7.0), (13.0, inf))
    """
    return Shift("change", by, percent)


def between(low: float, high: float) -> Range:
    """Ask for an output within a range.

    Parameters
    ----------
    low, high : float
        The range, ends included.

    Examples
    --------
    >>> between(100, 150).acceptance(200.0, tolerance=0.05)
    ((100.0, 150.0),)
    """
    return Range(checked_number("low", "between", low), checked_number("high", "between", high))


def at_least(value: float) -> Range:
    """Ask for an output not below a value.

    Parameters
    ----------
    value : float
        The smallest output that will do.

    Examples
    --------
    >>> str(at_least(150)), at_least(150).wanted(100.0)
    ('at least 150', ((150.0, inf),))
    """
    return Range(checked_number("value", "at_least", value), math.inf)


def at_most(value: float) -> Range:
    """Ask for an output not above a value.

    Parameters
    ----------
    value : float
        The largest output that will do.
    """
    return Range(-math.inf, checked_number("value", "at_most", value))


def as_target(obj: object, outputs: ArrayLike | None = None) -> Target:
    """Return a target from a target, a number to reach, a text such as "+20%", or a potential.

    A potential of the user is checked on the `outputs` seen so far, and sampled between them if it
    has no `superlevel`.
    """
    if isinstance(obj, Target):
        return obj
    if isinstance(obj, str):
        return _parse(obj)
    if isinstance(obj, Real) and not isinstance(obj, bool):
        return Reach(checked_number("value", "reach", obj))
    if isinstance(obj, type) or not isinstance(obj, Potential):
        raise TargetError(
            "`target` must be a number, a target such as cfx.reach(150), a text such as '+20%', "
            f"or a potential with `value` and `slope`; got {shown(obj)}."
        )
    if outputs is None or type(obj) in FAMILIES.values():
        return Shaped(obj)
    seen = np.asarray(outputs, dtype=float)
    check_potential(obj, seen)
    known = isinstance(obj, LevelPotential)
    return Shaped(obj if known else Sampled(obj, *window(obj, seen)))


def _parse(text: str) -> Target:
    """Return the target of a text, with the table of forms, which refers to this module."""
    from bayescfx.potentials.target_text import parse_target

    return parse_target(text)


def target_from_dict(data: Mapping[str, Any]) -> Target:
    """Return the target that :meth:`Target.to_dict` wrote."""
    functions = (reach, increase, decrease, change, between, at_least, at_most)
    makers: dict[str, Callable[..., Target]] = {make.__name__: make for make in functions}
    makers["potential"] = _shaped
    makers |= _class_makers()
    rest = dict(data)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in makers:
        raise TargetError(
            f"`kind` must be one of {', '.join(makers)}; got {kind!r}.{suggest(kind, makers)}"
        )
    try:
        return makers[kind](**rest)
    except TypeError as error:
        raise TargetError(f"a target of kind {kind!r} can't be read from {rest!r}.") from error


def _class_makers() -> dict[str, Callable[..., Target]]:
    """Return what makes the targets of classifiers; their module refers to this one."""
    from bayescfx.potentials.class_targets import becomes_from_dict, flips_from_dict

    return {"becomes": becomes_from_dict, "flips": flips_from_dict}


def _shaped(family: str, **numbers: Any) -> Shaped:
    """Return the target of a potential of this package; None stands for infinity."""
    if family not in FAMILIES:
        raise TargetError(f"`family` must be one of {', '.join(FAMILIES)}; got {family!r}.")
    infinite = {"low": -math.inf, "high": math.inf}
    finite = {key: number for key, number in numbers.items() if number is not None}
    missing = {key: infinite[key] for key in numbers if key not in finite}
    return Shaped(FAMILIES[family](**finite, **missing))
