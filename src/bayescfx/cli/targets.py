"""Targets as text: ``">= 150"``, ``"+20%"``, ``"[140, 160]"`` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from bayescfx.errors import TargetError
from bayescfx.potentials.targets import (
    at_least,
    at_most,
    between,
    change,
    decrease,
    increase,
    reach,
)
from bayescfx.potentials.wishes import Target

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"

SYNTAX = "'>= 150', '<= 0.3', '+20%', '-15' (15 less), '±10%', '[140, 160]', '150' or '= -15'"

_Maker: TypeAlias = Callable[[re.Match[str]], Target]


def _shift(kind: Callable[..., Target]) -> _Maker:
    """Return what makes a relative target of an amount that may be in percent."""

    def make(match: re.Match[str]) -> Target:
        amount = float(match["amount"])
        return kind(percent=amount) if match["percent"] else kind(by=amount)

    return make


_AMOUNT = rf"\s*(?P<amount>{_PLAIN})\s*(?P<percent>%|percent)?"
_PAIR = rf"(?P<low>{_NUMBER})\s*%s\s*(?P<high>{_NUMBER})"


def _pair(match: re.Match[str]) -> Target:
    return between(float(match["low"]), float(match["high"]))


_PATTERNS: tuple[tuple[str, _Maker], ...] = (
    (rf"(?:>=|=>|≥|>|at least)\s*(?P<value>{_NUMBER})", lambda m: at_least(float(m["value"]))),
    (rf"(?:<=|=<|≤|<|at most)\s*(?P<value>{_NUMBER})", lambda m: at_most(float(m["value"]))),
    (rf"(?:±|\+/-|\+-)\s*{_AMOUNT}", _shift(change)),
    (rf"\+{_AMOUNT}", _shift(increase)),
    (rf"[-−]{_AMOUNT}", _shift(decrease)),
    (rf"\[\s*{_PAIR % '[,;:]'}\s*\]", _pair),
    (_PAIR % r"(?:\.\.|…|:|to)", _pair),
    (rf"between\s+{_PAIR % 'and'}", _pair),
    (rf"(?:==?|reach)\s*(?P<value>{_NUMBER})", lambda m: reach(float(m["value"]))),
    (rf"(?P<value>{_PLAIN})", lambda m: reach(float(m["value"]))),
)


def parse_target(text: str) -> Target:
    """Return the target that a text asks for.

    A sign makes a number relative to f(query): ``"-15"`` asks for 15 less. For an output of
    minus fifteen write ``"= -15"``.

    Parameters
    ----------
    text : str
        ``">= 150"``, ``"<= 0.3"``, ``"+20%"``, ``"-15"``, ``"±10%"``, ``"[140, 160]"``,
        ``"140..160"``, ``"150"`` or ``"= -15"``.

    Returns
    -------
    Target
        The target.

    Raises
    ------
    TargetError
        If the text is none of these.

    Examples
    --------
    >>> parse_target(">= 150"), parse_target("-15%"), parse_target("150")
    (Range(low=150.0, high=inf), Shift(kind='decrease', by=None, percent=15.0), Reach(value=150.0))
    """
    wish = " ".join(text.lower().split())
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, wish)
        if match:
            return make(match)
    raise TargetError(f"the target must be like {SYNTAX}; got {text!r}.")
