"""A space in words: what was inferred and what was said, one line per feature and rule."""

from __future__ import annotations

import math

from bayescfx.features import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.features.datetimes import times
from bayescfx.space.limits import Limits
from bayescfx.space.terms import Terms

MOST_LINES = 60


def describe(space: Terms) -> str:
    """Return a table of features and a list of rules.

    Examples
    --------
    >>> from bayescfx.space.space import Space
    >>> print(Space({"age": Integer(17, 90), "sex": Categorical(["f", "m"])}).fix("sex"))
    Space of 2 features
      feature  kind         values    unit of change  limits
      age      integer      17 … 90   18.2
      sex      categorical  'f', 'm'  1               fixed
    cost: 0.1 × l1 distance
    """
    lines = [("feature", "kind", "values", "unit of change", "limits")]
    for j, (name, feature) in enumerate(space.schema.features.items()):
        said = _limits_text(space.limits_of(name), feature)
        said = ", ".join(filter(None, ["derived" if space.is_derived(name) else "", said]))
        lines.append((str(name), kind(feature), values_text(feature), _short(space.scale[j]), said))
    hidden = max(0, len(lines) - 1 - MOST_LINES)
    lines = lines[: MOST_LINES + 1]
    widths = [max(len(line[c]) for line in lines) for c in range(5)]
    table = [
        "  " + "  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)) for line in lines
    ]
    more = [f"  … and {hidden} more"] if hidden else []
    head = f"Space of {len(space.schema.features)} features"
    return "\n".join([head, *(line.rstrip() for line in table), *more, *_rules_text(space)])


def _short(number: float) -> str:
    """Return three digits, with an exponent only where a person would write one."""
    return f"{float(f'{number:.3g}'):g}"


def kind(feature: Feature) -> str:
    """Return the kind of a feature as `kinds` of `from_data` names it."""
    return type(feature).__name__.lower()


def values_text(feature: Feature) -> str:
    """Return range, step or levels of a feature, short."""
    match feature:
        case Real():
            step = f" by {feature.step:g}" if feature.step else ""
            return f"{feature.low:.6g} … {feature.high:.6g}{step}"
        case Integer():
            step = f" by {feature.step}" if feature.step != 1 else ""
            return f"{feature.low} … {feature.high}{step}" + (" cyclic" if feature.cyclic else "")
        case Moment():
            low, high = _ends(feature.low_code, feature.high_code, feature)
            return f"{low} … {high} by {feature.unit}"
        case Ordinal() | Categorical():
            glue = " < " if isinstance(feature, Ordinal) else ", "
            shown = glue.join(repr(level) for level in feature.levels[:3])
            more = len(feature.levels) - 3
            return shown + (f"{glue}… ({len(feature.levels)} levels)" if more > 0 else "")


def _limits_text(limits: Limits, feature: Feature) -> str:
    parts = []
    if limits.fixed:
        return "fixed"
    if limits.side:
        parts.append("only up" if limits.side > 0 else "only down")
    if limits.between is not None and any(map(math.isfinite, limits.between)):
        parts.append(_pair(limits.between, feature))
    if limits.levels is not None and isinstance(feature, (Ordinal, Categorical)):
        shown = ", ".join(repr(feature.levels[int(c)]) for c in limits.levels[:5])
        parts.append(f"only {shown}{', …' if len(limits.levels) > 5 else ''}")
    if limits.move is not None:
        parts.append(f"moves {limits.move[0]:+g} … {limits.move[1]:+g}")
    return ", ".join(parts)


def _pair(pair: tuple[float, float], feature: Feature) -> str:
    """Return absolute limits; an end that is open is not told."""
    low, high = _ends(*pair, feature)
    if math.isfinite(pair[0]) and math.isfinite(pair[1]):
        return f"between {low} … {high}"
    return f"at least {low}" if math.isfinite(pair[0]) else f"at most {high}"


def _ends(low: float, high: float, feature: Feature) -> list[str]:
    """Return two codes of a feature for reading."""
    if not isinstance(feature, Moment):
        return [f"{low:g}", f"{high:g}"]
    ends = [feature.time(code) if math.isfinite(code) else feature.origin for code in (low, high)]
    return [str(end) for end in ends] if feature.duration else times(*ends)


def _rules_text(space: Terms) -> list[str]:
    lines = [f"rule: {rule.label}" for rule in space.rules]
    lines += [f"together: {', '.join(str(name) for name in block)}" for block in space.blocks]
    lines += [f"rule: {rule.label}" for rule in space.near]
    if space.most_changes is not None:
        lines.append(f"at most {space.most_changes} changes")
    lines += [f"not restored: {label}" for label in space.unrestored]
    price = space.price
    if price.weight == 0:
        return [*lines, "cost: none"]
    factors = ", ".join(f"{name} × {factor:g}" for name, factor in price.per_feature.items())
    cost = f"cost: {price.weight:g} × l{price.norm:g} distance"
    return [*lines, cost + (f" ({factors})" if factors else "")]
