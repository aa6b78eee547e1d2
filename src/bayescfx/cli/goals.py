"""Targets as text: ``">= 150"``, ``"+20%"``, ``"[140, 160]"`` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable

from bayescfx.cli.arguments import SYNTAX
from bayescfx.errors import TargetError
from bayescfx.potentials import Target, targets

#: What a text may look like; N is a number, P one without sign, A an amount, maybe in percent.
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


def parse_target(text: str) -> Target:
    """Return the target that a text asks for; a sign makes a number relative to f(query)."""
    make, numbers, named = parse_call(text)
    return make(*numbers, **named)


def parse_call(text: str) -> tuple[Callable[..., Target], list[float], dict[str, float]]:
    """Return the function that makes the target of a text, and its arguments."""
    plain = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
    parts = {
        " ": r"\s*",
        "N": f"([+-]?{plain})",
        "P": f"({plain})",
        "A": rf"({plain})\s*(%|percent)?",
    }
    for form, make in FORMS.items():
        pattern = "".join(parts.get(letter, letter) for letter in form)
        match = re.fullmatch(pattern, " ".join(text.lower().split()))
        if match and "A" in form:
            return make, [], {"percent" if match[2] else "by": float(match[1])}
        if match:
            return make, [*map(float, match.groups())], {}
    raise TargetError(f"the target must be like {SYNTAX}; got {text!r}.")
