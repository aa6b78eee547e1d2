"""Relaxing a binding constraint: the visitor's constraints without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bayescfx as cfx
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.texts import count_text, number_text

#: How far a range of the data is extended, as a share of it; the search for binding constraints
#: looks as far (`BindingTuning.relaxation`).
EXTENSION = 0.2

#: Verbs that limit where a feature may go.
LIMITS = ("only_up", "only_down", "between", "strict_between", "move")

#: Verbs that add no rule of their own.
WITHOUT_RULES = ("fix", "allow", "max_changes", "steps", "cost", *LIMITS)

Constraints = dict[str, Any]


@dataclass(frozen=True)
class Relaxation:
    """One way to relax the visitor's constraints.

    Parameters
    ----------
    start : str
        The beginning of the text of the constraint that it relaxes.
    action : str
        What it does, for a button.
    constraints : dict
        The visitor's constraints afterwards.
    """

    start: str
    action: str
    constraints: Constraints


def relax(
    binding: Sequence[cfx.BindingConstraint],
    given: Constraints,
    constrain: Callable[[Constraints], cfx.Space],
) -> list[dict[str, Any]]:
    """Return binding constraints, each with the relaxation of it if the visitor can relax it.

    Parameters
    ----------
    binding : sequence of BindingConstraint
        The binding constraints, from `Explanation.binding`.
    given : dict
        The visitor's constraints by verb.
    constrain : callable
        Returns the space with some constraints of the visitor.

    Returns
    -------
    list of dict
        With `text`, `action` and `relax`, the visitor's constraints afterwards.
    """
    relaxations = list(_relaxations(given, constrain)) if binding else []
    found = []
    for bound in binding:
        fitting = [each for each in relaxations if bound.words.startswith(each.start)]
        action = fitting[0].action if fitting else None
        constraints = fitting[0].constraints if fitting else None
        found.append({"text": str(bound), "action": action, "relax": constraints})
    return found


def _relaxations(
    given: Constraints, constrain: Callable[[Constraints], cfx.Space]
) -> Iterator[Relaxation]:
    """Yield all relaxations: of the number of changes, of features, of rules."""
    space = constrain(given)
    n_changes = given.get("max_changes")
    if n_changes is not None:
        start = f"at most {count_text(n_changes, 'change')}"
        action = f"allow {count_text(n_changes + 1, 'change')}"
        yield Relaxation(start, action, {**given, "max_changes": n_changes + 1})
    for name in map(str, space.features):
        yield from _of_feature(name, space, given)
    yield from _of_rules(space, given, constrain)


def _of_feature(name: str, space: cfx.Space, given: Constraints) -> Iterator[Relaxation]:
    """Yield the relaxations of one feature: free it, lift its limits, extend its data range."""
    is_fixed = f"{name!r} being fixed"
    if name in given.get("fix", ()):
        yield Relaxation(is_fixed, f"let {name} change", _without(given, name, "fix"))
    elif name not in given.get("allow", [name]):
        allowed = [*given["allow"], name]
        yield Relaxation(is_fixed, f"let {name} change", {**given, "allow": allowed})
    if any(name in given.get(verb, ()) for verb in LIMITS):
        remaining = _without(given, name, *LIMITS)
        yield Relaxation(f"limit on {name!r}", f"lift the limits on {name}", remaining)
    if space.features[name].numeric and name in space.inferred:
        yield from _beyond_data(name, space, given)


def _beyond_data(name: str, space: cfx.Space, given: Constraints) -> Iterator[Relaxation]:
    """Yield the extensions of a range that was inferred from the data, at either end."""
    feature = space.features[name]
    low, high = feature.code_range
    step = feature.code_step
    room = EXTENSION * (high - low)
    if step:
        room = max(step, round(room / step) * step)
    start = f"data range of {name!r}"
    for word, ends, end in (
        ("from", [low - room, high], low - room),
        ("up to", [low, high + room], high + room),
    ):
        between = {**given.get("between", {}), name: ends}
        action = f"let {name} go {word} {number_text(end)}"
        yield Relaxation(f"{start} ({word}", action, {**given, "between": between})


def _of_rules(
    space: cfx.Space, given: Constraints, constrain: Callable[[Constraints], cfx.Space]
) -> Iterator[Relaxation]:
    """Yield the relaxations of verbs that add rules: without an item, some rules are gone."""
    for constraints in _with_one_item_less(given):
        kept = {rule.words.limit for rule in constrain(constraints).rules}
        for rule in space.rules:
            start = rule.words.limit
            if start and start not in kept:
                yield Relaxation(start, f"drop {rule.words.label}", constraints)


def _with_one_item_less(given: Constraints) -> Iterator[Constraints]:
    """Yield the constraints without one item of a verb that adds rules."""
    for verb, value in given.items():
        if verb in WITHOUT_RULES:
            continue
        for _, remaining in VERBS[verb].parameter.relaxations(value):
            others = {name: each for name, each in given.items() if name != verb}
            yield others if remaining is None else {**others, verb: remaining}


def _without(given: Mapping[str, Any], name: str, *verbs: str) -> Constraints:
    """Return constraints that say nothing about a feature under some verbs."""
    remaining = dict(given)
    for verb in verbs:
        value = given.get(verb, [])
        if isinstance(value, dict):
            remaining[verb] = {key: item for key, item in value.items() if key != name}
        else:
            remaining[verb] = [item for item in value if item != name]
    return {verb: value for verb, value in remaining.items() if value}
