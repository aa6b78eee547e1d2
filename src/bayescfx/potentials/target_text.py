"""Targets as text: ``"+20%"``, ``"=+20%"``, ``">= 150"``, ``"becomes good 0.7"`` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bayescfx.errors import TARGET_SYNTAX, TargetError
from bayescfx.potentials import Target, becomes, flips, targets

#: The forms of a text; P is a number without sign, N one that may be negative, A an amount, perhaps
#: in percent, and S one with a sign. A sign at the beginning, or after "=", means a change.
FORMS: dict[str, Callable[..., Target]] = {
    r"\+ A": targets.increase,
    "- A": targets.decrease,
    r"(?:±|\+/-|\+-) A": targets.change,
    "==? S": targets.reach,
    "(?:>=|=>|≥|>|at least) N": targets.at_least,
    "(?:<=|=<|≤|<|at most) N": targets.at_most,
    r"\[ N [,;:] N \]": targets.between,
    r"N (?:\.\.|…|:|to) N": targets.between,
    r"between\s+N and N": targets.between,
    "(?:reach|exactly) N": targets.reach,
    "(?:==?)? P": targets.reach,
}

_UNSIGNED = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_UNIT = r"\s*(?P<unit>%|percent)?"
#: What the letters of a form stand for, as regular expressions.
_LETTERS = {
    " ": r"\s*",
    "N": f"(-?{_UNSIGNED})",
    "P": f"({_UNSIGNED})",
    "A": f"({_UNSIGNED}){_UNIT}",
    "S": rf"([+-]\s*{_UNSIGNED}){_UNIT}",
}
#: A label, perhaps in quotes, and its least probability, which has a point or a per cent sign.
_BECOMES = re.compile(
    r"\s*becomes?\s+(?P<quote>['\"]?)(?P<label>\S.*?)(?P=quote)"
    r"(?:\s*(?:>=|with a probability of at least)\s*(?P<least>\d*\.?\d+\s*%?)"
    r"|\s+(?P<probability>\d*\.\d+|\d*\.?\d+\s*%))?\s*",
    re.IGNORECASE,
)
#: A comparison with a change, which is none: its side, and its amount.
_COMPARED_CHANGE = re.compile(
    r"(?P<side>(?P<least>>=|=>|≥|>|at least)|<=|=<|≤|<|at most)\s*(?P<sign>[+-]?)\s*"
    f"(?P<amount>{_UNSIGNED}{_UNIT})"
)


def parse_target(text: str) -> Target:
    """Return the target that a text describes; a sign makes a number relative to f(query)."""
    make, numbers, named = parse_call(text)
    return make(*numbers, **named)


def parse_call(text: str) -> tuple[Callable[..., Target], list[Any], dict[str, float]]:
    """Return the function that makes the target of a text, and its arguments."""
    if text.strip().lower() in ("flip", "flips"):
        return flips, [], {}
    match = _BECOMES.fullmatch(text)
    if match is not None:
        return becomes, [match["label"]], _named_probability(match)
    plain = " ".join(text.lower().replace("−", "-").split())
    for form, make in FORMS.items():
        pattern = "".join(_LETTERS.get(letter, letter) for letter in form)
        match = re.fullmatch(pattern, plain)
        if match is None:
            continue
        if "unit" in match.re.groupindex:
            unit = "percent" if match["unit"] else "by"
            return make, [], {unit: float(match[1].replace(" ", ""))}
        return make, [float(number) for number in match.groups()], {}
    raise TargetError(f"the target must be like {TARGET_SYNTAX}; got {text!r}.{_advice(plain)}")


def _named_probability(match: re.Match[str]) -> dict[str, float]:
    """Return the probability after a label as an argument, if there is one."""
    text = match["least"] or match["probability"]
    if text is None:
        return {}
    number = float(text.rstrip("% "))
    return {"probability": number / 100.0 if text.endswith("%") else number}


def _advice(plain: str) -> str:
    """Return how to write a comparison with a change, as in ``>= +20%``; empty for other texts."""
    match = _COMPARED_CHANGE.fullmatch(plain)
    if match is None:
        return ""
    sign = "+" if match["least"] else "-"
    if match["sign"] not in ("", sign):  # at most 20% more is no change that can be asked for
        return f" {match['side']!r} takes an output, not a change."
    way = {"+": "more", "-": "less"}[sign]
    return (
        f" {match['side']!r} takes an output, not a change: write '{sign}{match['amount']}' for at "
        f"least {match['amount']} {way}."
    )
