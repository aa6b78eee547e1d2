"""The constraints of a query, and its region without some of them.

A fixed feature is a constraint like any other. A region is not widened in place: it is made again
from the rules that remain, since rules narrow the limits of features, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bayescfx.arrays import Array
from bayescfx.space.region import Region
from bayescfx.space.rule import Rule
from bayescfx.space.rules.limits import Limits


@dataclass(frozen=True, eq=False)
class Constraint:
    """A constraint of the user that can be left out.

    Parameters
    ----------
    words : str
        Its name, as ``"'year' being fixed"`` or ``"rule 'a <= b'"``.
    features : tuple of names
        The features that it limits alone or moves together; empty for other rules.
    rule : Rule
        The rule of the space.
    remainder : Rule or None
        What remains of the rule if the constraint is left out.
    detail : str
        Which limit it is: ``"between 18 and 32"``.
    """

    words: str
    features: tuple[Hashable, ...]
    rule: Rule
    remainder: Rule | None = None
    detail: str = ""

    @property
    def full_words(self) -> str:
        """Its name with the detail."""
        return f"{self.words} ({self.detail})" if self.detail else self.words


def constraints(region: Region) -> list[Constraint]:
    """Return the constraints of the space in which a query was asked about."""
    found: list[Constraint] = []
    for rule in region.of_space:
        if isinstance(rule, Limits):
            found += _of_feature(region, rule)
        elif rule.most_changes is not None:
            found.append(Constraint(changes_words(rule.most_changes), (), rule))
        elif rule.words.limit:
            found.append(Constraint(rule.words.limit, rule.block, rule))
    return found


def changes_words(bound: int) -> str:
    """Return the bound on changes in words."""
    return f"at most {bound} change{'' if bound == 1 else 's'}"


def _of_feature(region: Region, limits: Limits) -> list[Constraint]:
    """Return the constraint on one feature; none for one that identifies the rows."""
    name = limits.name
    if limits.identifies_rows:
        return []
    feature = region.schema.features[name]
    detail = limits.describe_feature(name, feature)
    if limits.fixed:
        words = f"{name!r} being fixed"
        found = [Constraint(words, (name,), limits, replace(limits, fixed=False))]
        if limits.is_strict:  # which bind the query's value, too
            detail = replace(limits, fixed=False).describe_feature(name, feature)
            free = Limits(name, fixed=True)
            found.append(Constraint(f"limit on {name!r}", (name,), limits, free, detail))
        return found
    remainder = _data_range(limits, feature.code_range)
    return [Constraint(f"limit on {name!r}", (name,), limits, remainder, detail)]


def _data_range(limits: Limits, data: tuple[float, float]) -> Limits | None:
    """Return the limits that keep a range beyond the `data`; None if there is none.

    Absolute limits may widen the range of a feature, too.
    """
    low = min(limits.between[0], data[0])
    high = max(limits.between[1], data[1])
    is_wider = np.isfinite([low, high]).all() and (low, high) != data
    return Limits(limits.name, between=(low, high)) if is_wider else None


def without(region: Region, left_out: Iterable[Constraint]) -> Region:
    """Return the region around the same query without some constraints of the space."""
    assert region.rebuild is not None  # every region is made from a space
    remainders = {id(each.rule): each.remainder for each in left_out}
    rules = [remainders.get(id(rule), rule) for rule in region.of_space]
    return region.rebuild([rule for rule in rules if rule is not None])


def relaxed_regions(region: Region) -> Iterator[tuple[Constraint, Region]]:
    """Yield each constraint that forbids rows, with the region without it."""
    for constraint in constraints(region):
        relaxed = without(region, [constraint])
        if _is_wider(relaxed, region, constraint):
            yield constraint, relaxed


def _is_wider(relaxed: Region, region: Region, constraint: Constraint) -> bool:
    """Return whether a region without a constraint may have more rows."""
    bound = constraint.rule.most_changes
    if bound is not None:
        return bound < len(region.free)
    has_fewer_rules = len(relaxed.rules) < len(region.rules)
    has_wider_limits = (relaxed.low < region.low) | (relaxed.high > region.high)
    if has_fewer_rules | has_wider_limits.any():
        return True
    return bool((_n_codes(relaxed) > _n_codes(region)).any())


def _n_codes(region: Region) -> Array:
    """Return how many codes each feature may have, shape (d,); infinite if they are not listed."""
    return np.array([np.inf if codes is None else len(codes) for codes in region.choices])
