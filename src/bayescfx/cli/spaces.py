"""From data and settings to a `Space`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import pandas as pd

from bayescfx.cli.console import about
from bayescfx.cli.reading import as_number
from bayescfx.data import Feature
from bayescfx.errors import SettingsError, suggest
from bayescfx.models.loaders import import_name
from bayescfx.space.space import Space


def make_space(data: pd.DataFrame, features: Mapping[str, Any], wishes: Mapping[str, Any]) -> Space:
    """Return the space of the data, which has exactly the columns that the model takes.

    `features` corrects what is inferred: ``"integer"``, or ``{"kind": "real", "step": 0.5}``;
    `wishes` are verbs as in the table ``[space]`` of a settings file.
    """
    made: dict[Any, Any] = {}
    more: dict[str, dict[str, Any]] = {}
    with about("kinds"):
        for name, said in features.items():
            more[name] = table = dict(said) if isinstance(said, dict) else {"kind": said}
            made[name] = table.pop("kind", "categorical" if "levels" in table else None)
            kind = Feature.kinds.get(made[name]) if isinstance(made[name], str) else None
            if "levels" in table and kind is not None and kind.levelled:
                made[name] = kind(table.pop("levels"))  # type: ignore[call-arg]  # has levels
        space = Space.from_data(data, made)
    for name, table in more.items():
        feature: Any = space.features[name]
        known = [f.name for f in fields(feature)]
        for key in [key for key in table if key not in known]:
            told = f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
            raise SettingsError(told + suggest(key, known))
        made[name] = replace(feature, **table) if table else made[name]
    return with_wishes(Space.from_data(data, made), wishes, data)


def with_wishes(space: Space, wishes: Mapping[str, Any], data: pd.DataFrame) -> Space:
    """Return a space of the data in which more is wished for; what combines is narrowed."""
    for verb in [verb for verb in VERBS if verb in wishes]:
        with about(verb):
            said = as_values(space, {verb: wishes[verb]})
            space = VERBS[verb](space, said[verb], data)
    return space


def as_values(space: Space, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Return wishes in which no value is written as a text of the command line."""
    read: dict[str, Callable[[str, Any], Any]] = {
        "groups": lambda _, wish: _columns(wish),
        "between": lambda name, wish: limits(name, space.features[space.name(name)], wish),
        "move": lambda name, wish: _ends(name, wish, as_number),
        "steps": lambda _, wish: as_number(wish),
    }
    return {
        verb: {n: read[verb](n, w) for n, w in wish.items()} if verb in read else wish
        for verb, wish in wishes.items()
    }


def _columns(wish: Any) -> list[str]:
    return [str(name).strip() for name in (wish.split(",") if isinstance(wish, str) else wish)]


def _near(space: Space, wish: Any, data: pd.DataFrame) -> Space:
    if wish is False:
        return space
    known = {} if wish is True else _only(("quantile",), "near_data", wish)
    return space.near_data(data, **known)


def _only(known: tuple[str, ...], verb: str, wish: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a verb; raise if it has others than it knows."""
    if set(wish) - set(known):
        raise SettingsError(f"space.{verb} must have only {', '.join(known)}; got {wish!r}.")
    return wish


def _each(apply: Callable[..., Space]) -> Verb:
    """Return a verb that is applied to each line of a table."""
    return lambda space, table, _: reduce(lambda s, line: apply(s, *line), table.items(), space)


Verb: TypeAlias = Callable[[Space, Any, pd.DataFrame], Space]

#: What a settings file may hold in ``[space]``, in the order in which it is applied.
VERBS: dict[str, Verb] = {
    "groups": _each(Space.group),
    "fix": lambda space, names, _: space.fix(*names),
    "allow": lambda space, names, _: space.allow(*names),
    "only_up": lambda space, names, _: space.only_up(*names),
    "only_down": lambda space, names, _: space.only_down(*names),
    "between": lambda space, table, _: space.between(table),
    "move": lambda space, table, _: space.move(table),
    "require": lambda space, rules, _: reduce(Space.require, rules, space),
    "derive": _each(lambda space, name, source: space.derive(name, import_name(source))),
    "steps": lambda space, table, _: space.steps(table),
    "together": lambda space, sets, _: reduce(lambda s, names: s.together(*names), sets, space),
    "max_changes": lambda space, k, _: space.max_changes(k),
    "near_data": _near,
    "cost": lambda space, w, _: space.cost(**_only(("weight", "norm", "per_feature"), "cost", w)),
}


def limits(name: str, feature: Feature, wish: Any) -> Any:
    """Return limits as `Space.between` takes them, from text or from a settings file."""
    if feature.levelled and isinstance(wish, str | list):
        levels = [part.strip() for part in wish.split("|")] if isinstance(wish, str) else wish
        return [value_of(feature, level) for level in levels]
    return _ends(name, wish, partial(value_of, feature))


def value_of(feature: Feature, text: Any) -> Any:
    """Return a value of a feature from text: a level however it is spelt, a number, or the text."""
    listed, plain = feature.levels if feature.levelled else (), str(text).casefold()
    found = [level for level in listed if str(level) == str(text)]
    found += [level for level in listed if str(level).casefold() == plain]
    found += [v for v in listed if not isinstance(v, str) and v == as_number(text)]
    return found[0] if found else as_number(text) if feature.numeric else text


def _ends(name: str, wish: Any, read: Callable[[str], Any]) -> Any:
    """Return the two ends of ``low:high``, of which one left out is open; no text as it is."""
    if not isinstance(wish, str):
        return wish
    parts = [part.strip() for part in wish.split(".." if ".." in wish else ":")]
    if len(parts) != 2 or not any(parts):
        raise SettingsError(f"limits of {name!r} must be like low:high; got {wish!r}.")
    return tuple(read(part) if part else None for part in parts)
