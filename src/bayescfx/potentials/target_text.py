"""Targets as text: ``">= 150"``, ``"+20%"``, ``"[140, 160]"`` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable

from bayescfx.errors import TARGET_SYNTAX, TargetError
from bayescfx.potentials import Target, targets

#: The forms of a text; N is a number, P one without sign, A an amount, perhaps in percent.
FORMS: dict[str, Callable[..., Target]] = {
    r"(?:>=|=>|≥|>|at least) \+ A": targets.at_least,
    "(?:<=|=<|≤|<|at most) [-−] A": targets.at_most,
    "(?:>=|=>|≥|>|at least) =? N": targets.at_least,
    "(?:<=|=<|≤|<|at most) =? N": targets.at_most,
    r"(?:±|\+/-|\+-) A": targets.change,
    r"\+ A": targets.increase,
    "[-−] A": targets.decrease,
    r"\[ N [,;:] N \]": targets.between,
    r"N (?:\.\.|…|:|to) N": targets.between,
    r"between\s+N and N": targets.between,
    "(?:==?|reach) N": targets.reach,
    "P": targets.reach,
}

_UNSIGNED = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
#: What the letters of a form stand for, as regular expressions.
_LETTERS = {
    " ": r"\s*",
    "N": f"([+-]?{_UNSIGNED})",
    "P": f"({_UNSIGNED})",
    "A": rf"({_UNSIGNED})\s*(%|percent)?",
}


def parse_target(text: str) -> Target:
    """Return the target that a text describes; a sign makes a number relative to f(query)."""
    make, numbers, named = parse_call(text)
    return make(*numbers, **named)


def parse_call(text: str) -> tuple[Callable[..., Target], list[float], dict[str, float]]:
    """Return the function that makes the target of a text, and its arguments."""
    plain = " ".join(text.lower().split())
    for form, make in FORMS.items():
        pattern = "".join(_LETTERS.get(letter, letter) for letter in form)
        match = re.fullmatch(pattern, plain)
        if match is None:
            continue
        if "A" in form:
            unit = "percent" if match[2] else "by"
            return make, [], {unit: float(match[1])}
        return make, [float(number) for number in match.groups()], {}
    raise TargetError(f"the target must be like {TARGET_SYNTAX}; got {text!r}.")
