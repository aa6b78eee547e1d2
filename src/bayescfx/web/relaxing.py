"""What one click does about a limit that keeps the target away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bayescfx.result import wording
from bayescfx.space.rules.near import NearData
from bayescfx.space.rules.require import TextRule
from bayescfx.space.space import Space
from bayescfx.web.forms import Wishes

#: How a limit of the page is called, what lifting it does, and the wishes that are left.
Way = tuple[str, str, dict[str, Any]]

BEYOND = 0.2  # how far the range of the data is left, as a share of it


def relaxed(words: str, space: Space, said: Wishes) -> dict[str, Any]:
    """Return a limit in words, the wishes without it, and what that does; None if others set it."""
    for limit, does, left in _ways(space, said.said()):
        if words.startswith(limit):
            return {"text": words, "relax": left, "action": does}
    return {"text": words, "relax": None, "action": None}


def _ways(space: Space, wishes: dict[str, Any]) -> Iterator[Way]:
    most = wishes.get("max_changes")
    if most is not None:
        words, more = (wording.count(k, "change") for k in (most, most + 1))
        yield f"at most {words}", f"allow {more}", {**wishes, "max_changes": most + 1}
    for rule in space.rules:
        words, block = rule.words.limit, [str(name) for name in rule.block]
        if block in wishes.get("together", ()):
            yield words, f"let {', '.join(block)} move apart", _less(wishes, block, "together")
        elif isinstance(rule, TextRule) and rule.text in wishes.get("require", ()):
            yield words, f"drop the rule {rule.text}", _less(wishes, rule.text, "require")
        elif isinstance(rule, NearData) and wishes.get("near_data"):
            left = {verb: wish for verb, wish in wishes.items() if verb != "near_data"}
            yield words, "go farther from the data", left
    for name in map(str, space.features):
        yield from _of_feature(name, space, wishes)


def _of_feature(name: str, space: Space, wishes: dict[str, Any]) -> Iterator[Way]:
    feature = space.features[name]
    fixed = f"{name!r} being fixed", f"let {name} move"
    if name in wishes.get("fix", ()):
        yield *fixed, _less(wishes, name, "fix")
    elif name not in wishes.get("allow", [name]):
        yield *fixed, {**wishes, "allow": [*wishes["allow"], name]}
    verbs = ("only_up", "only_down", "between", "move")
    if any(name in wishes.get(verb, ()) for verb in verbs):
        left = _less(wishes, name, *verbs)
        yield f"limit on {name!r} (", f"lift the limits on {name}", left
    if feature.numeric and name in space.inferred:
        low, high = feature.code_range
        room, step = BEYOND * (high - low), feature.code_step
        room = max(step, round(room / step) * step) if step else room
        for word, ends in (("from", [low - room, high]), ("up to", [low, high + room])):
            does = f"let {name} go {word} {wording.number(ends[word == 'up to'])}"
            wider = {**wishes.get("between", {}), name: ends}
            limit = f"the data's own range of {name!r} ({word}"
            yield limit, does, {**wishes, "between": wider}


def _less(wishes: dict[str, Any], what: Any, *verbs: str) -> dict[str, Any]:
    """Return wishes that say nothing of one thing under some verbs."""
    left = dict(wishes)
    for verb in verbs:
        wish = wishes.get(verb, [])
        kept = [one for one in wish if one != what]
        left[verb] = {name: wish[name] for name in kept} if isinstance(wish, dict) else kept
    return {verb: wish for verb, wish in left.items() if wish}
