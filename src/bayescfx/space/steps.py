"""How finely numbers move."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bayescfx.features import Feature

if TYPE_CHECKING:
    from bayescfx.space.space import Space


def steps(space: Space, steps: Mapping[Any, float | None]) -> Space:
    """Return the space in which the features named move by other steps.

    Parameters
    ----------
    steps : dict of name to float or None
        Values are then multiples of it. ``None`` allows every number, or every whole number of an
        `Integer`.

    Examples
    --------
    >>> from bayescfx import Real, Space
    >>> print(Space({"bmi": Real(18.2, 42)}).steps({"bmi": 0.5}).features["bmi"])
    Real(low=18.0, high=42.0, step=0.5)
    """
    features, named = dict(space.features), space.wishes(steps, "steps")
    for name, step in named.items():
        features[name] = features[name].stepped(name, step)
    schema = replace(space.schema, features=features)
    return space.changed(schema=schema, graded=space.graded - named.keys())


def graded(features: Mapping[Hashable, Feature], given: Container[Hashable]) -> frozenset[Hashable]:
    """Return the features, but for those given, that could move more finely than they do."""
    free = ((name, f) for name, f in features.items() if f.numeric and name not in given)
    return frozenset(name for name, f in free if f.stepped(name, None) != f)
