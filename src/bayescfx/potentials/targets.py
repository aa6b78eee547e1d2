"""Targets: what is asked, in the user's words.

Each function returns a wish (:mod:`bayescfx.potentials.wishes`) that becomes a potential once
f(query) is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.errors import TargetError, suggest
from bayescfx.potentials.checking import check_potential
from bayescfx.potentials.family import AEP, SEP, Plateau, Potential
from bayescfx.potentials.wishes import Range, Reach, Shaped, Shift, Target, finite_number

_DOUBLINGS = 12  # of the range of outputs in which the peak of a user's potential is looked for
_NODES = 513
_RISE = 1e-6  # a rise towards the end of that range that counts, as a share of all variation


def reach(value: float) -> Reach:
    """Ask for one output.

    Parameters
    ----------
    value : float
        The wanted output.

    Returns
    -------
    Reach
        The target.

    Examples
    --------
    >>> reach(150).potential(100.0)
    AEP(origin=100.0, width=50.0, side=1)
    """
    return Reach(value)


def increase(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for a larger output.

    Parameters
    ----------
    by : float, optional
        The increase in output units.
    percent : float, optional
        The increase in percent of ``|f(query)|``.

    Returns
    -------
    Shift
        The target.

    Examples
    --------
    >>> str(increase(percent=20)), increase(percent=20).wanted(-50.0)
    ('+20 %', ((-40.0, -40.0),))
    """
    return Shift("increase", by, percent)


def decrease(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for a smaller output.

    Parameters
    ----------
    by : float, optional
        The decrease in output units.
    percent : float, optional
        The decrease in percent of ``|f(query)|``.

    Returns
    -------
    Shift
        The target.

    Examples
    --------
    >>> decrease(by=3).wanted(10.0)
    ((7.0, 7.0),)
    """
    return Shift("decrease", by, percent)


def change(*, by: float | None = None, percent: float | None = None) -> Shift:
    """Ask for an output that differs, either way.

    Parameters
    ----------
    by : float, optional
        The change in output units.
    percent : float, optional
        The change in percent of ``|f(query)|``.

    Returns
    -------
    Shift
        The target.

    Examples
    --------
    >>> change(by=3).potential(10.0)
    SEP(origin=10.0, width=3.0)
    """
    return Shift("change", by, percent)


def between(low: float, high: float) -> Range:
    """Ask for an output within a range.

    Parameters
    ----------
    low, high : float
        The range, ends included.

    Returns
    -------
    Range
        The target.

    Examples
    --------
    >>> between(100, 150).acceptance(200.0, tolerance=0.05)
    ((100.0, 150.0),)
    """
    return Range(finite_number("low", "between", low), finite_number("high", "between", high))


def at_least(value: float) -> Range:
    """Ask for an output not below a value.

    Parameters
    ----------
    value : float
        The smallest output that will do.

    Returns
    -------
    Range
        The target.

    Examples
    --------
    >>> str(at_least(150))
    'at least 150'
    """
    return Range(finite_number("value", "at_least", value), math.inf)


def at_most(value: float) -> Range:
    """Ask for an output not above a value.

    Parameters
    ----------
    value : float
        The largest output that will do.

    Returns
    -------
    Range
        The target.

    Examples
    --------
    >>> at_most(0.5).potential(0.8).superlevel(at_most(0.5).potential(0.8).peak)
    ((-inf, 0.5),)
    """
    return Range(-math.inf, finite_number("value", "at_most", value))


def as_target(obj: object, outputs: ArrayLike | None = None) -> Target:
    """Return what the user gave as a target.

    Parameters
    ----------
    obj : object
        A target, a number (meaning :func:`reach`), or a potential: any object with `value(y)`
        and `slope(y)`.
    outputs : array_like, optional
        Outputs of the model seen so far. A potential that is not ours is checked on them, and
        examined between them if it has no `superlevel`.

    Returns
    -------
    Target
        The target.

    Examples
    --------
    >>> as_target(150)
    Reach(value=150.0)
    """
    if isinstance(obj, Reach | Shift | Range | Shaped):
        return obj
    if isinstance(obj, int | float | np.number) and not isinstance(obj, bool | np.bool_):
        return Reach(float(obj))
    if isinstance(obj, Target) and not isinstance(obj, type):
        return obj
    if isinstance(obj, type) or not isinstance(obj, Potential):
        raise TargetError(
            "`target` must be a number, a target such as cfx.reach(150), or a potential with "
            f"`value` and `slope`; got {obj!r}."
        )
    if isinstance(obj, AEP | SEP | Plateau):
        return Shaped(obj)
    if outputs is None:
        return Shaped(obj)
    seen = np.asarray(outputs, dtype=float)
    check_potential(obj, seen)
    low, high = float(np.min(seen)), float(np.max(seen))
    room = 0.5 * (high - low) or 0.5 * max(abs(low), 1.0)
    return Shaped(obj, *_window(obj, low - room, high + room))


def _window(potential: Potential, low: float, high: float) -> tuple[float, float]:
    """Widen a range of outputs until a potential's peak lies inside, if it has one."""
    ends = low, high
    for _ in range(_DOUBLINGS):
        value = np.asarray(potential.value(np.linspace(*ends, _NODES)), dtype=float)
        if not np.all(np.isfinite(value)):
            break
        top, slack = float(np.max(value[1:-1])), _RISE * float(np.ptp(value))
        rising = value[0] > top + slack, value[-1] > top + slack
        if not any(rising):
            return ends
        span = ends[1] - ends[0]
        ends = ends[0] - span * rising[0], ends[1] + span * rising[1]
    return low, high  # it rises for ever: as far as has been seen


def target_from_dict(data: Mapping[str, Any]) -> Target:
    """Return the target that :meth:`Target.to_dict` wrote.

    Parameters
    ----------
    data : mapping
        Plain JSON types.

    Returns
    -------
    Target
        An equal target.

    Examples
    --------
    >>> target_from_dict(decrease(percent=20).to_dict()) == decrease(percent=20)
    True
    """
    rest = dict(data)
    kind = rest.pop("kind", None)
    makers: dict[str, Callable[..., Target]] = {
        "reach": reach,
        "increase": increase,
        "decrease": decrease,
        "change": change,
        "between": between,
        "at_least": at_least,
        "at_most": at_most,
        "potential": _shaped,
    }
    if not isinstance(kind, str) or kind not in makers:
        raise TargetError(
            f"`kind` must be one of {', '.join(makers)}; got {kind!r}.{suggest(kind, makers)}"
        )
    try:
        return makers[kind](**rest)
    except TypeError as error:
        raise TargetError(f"a target of kind {kind!r} can't be read from {rest!r}.") from error


def _shaped(family: str, **numbers: Any) -> Shaped:
    """Return one of our potentials as a target again."""
    if family == "Plateau":
        ends = {"low": -math.inf, "high": math.inf}
        numbers = {k: ends.get(k) if v is None else v for k, v in numbers.items()}
        return Shaped(Plateau(**numbers))
    families = {"AEP": AEP, "SEP": SEP}
    if family not in families:
        raise TargetError(f"`family` must be one of AEP, SEP, Plateau; got {family!r}.")
    return Shaped(families[family](**numbers))
