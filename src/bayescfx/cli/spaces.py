"""From data and settings to a `Space`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import reduce
from typing import Any, TypeAlias

import pandas as pd

from bayescfx.cli.console import about
from bayescfx.errors import SettingsError, SpaceError, suggest
from bayescfx.features import Feature
from bayescfx.io.loaders import import_name
from bayescfx.space.space import Space


def make_space(data: pd.DataFrame, features: Mapping[str, Any], wishes: Mapping[str, Any]) -> Space:
    """Return the space of the data, which has exactly the columns that the model takes.

    `features` corrects what is inferred: ``"integer"``, or ``{"kind": "real", "step": 0.5}``;
    `wishes` are verbs as in the table ``[space]`` of a settings file.

    >>> data = pd.DataFrame({"age": [20, 40], "job": ["cook", "clerk"]})
    >>> print(make_space(data, {}, {"fix": ["job"], "between": {"age": "18:65"}}))
    Space of 2 features
      feature  kind         values           unit of change  limits
      age      integer      20 … 40          10              between 18 … 65
      job      categorical  'clerk', 'cook'  1               fixed
    cost: 0.1 × l1 distance
    """
    space = _with_features(data, features)
    for verb, apply in VERBS.items():
        if verb in wishes:
            with about(verb):
                space = apply(space, wishes[verb], data)
    return space


def _with_features(data: pd.DataFrame, features: Mapping[str, Any]) -> Space:
    """Return the space with the kinds and the corrections that the settings give."""
    made: dict[Any, Any] = {}
    for name, wish in features.items():
        kind = _kind(name, wish, data.columns)
        if kind not in (None, "moment"):
            made[name] = kind
    space = Space.from_data(data, made)
    for name, wish in features.items():
        rest = {k: v for k, v in wish.items() if k != "kind"} if isinstance(wish, dict) else {}
        feature: Any = space.features[name]
        known = [f.name for f in fields(feature)]
        for key in rest:
            if key not in known:
                raise SettingsError(
                    f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
                    f"{suggest(key, known)}"
                )
        if rest:
            made[name] = replace(feature, **rest)
    return Space.from_data(data, made)


def _kind(name: str, wish: Any, columns: Iterable[Any]) -> Any:
    """Return the kind that the settings give to a column; None if they leave it."""
    if name not in columns:
        raise SettingsError(
            f"the features name {name!r}, which is no column that the model takes."
            f"{suggest(name, columns)}"
        )
    if not isinstance(wish, str | dict):
        raise SettingsError(f"features.{name} must be a kind or a table; got {wish!r}.")
    table = {"kind": wish} if isinstance(wish, str) else wish
    kind = table.get("kind", "categorical" if "levels" in table else None)
    if kind not in (None, *Feature.kinds):
        raise SettingsError(
            f"the kind of {name!r} must be one of {', '.join(Feature.kinds)}; got {kind!r}."
            f"{suggest(kind, Feature.kinds)}"
        )
    return kind


# ── verbs ──


def _between(space: Space, name: str, wish: Any) -> Space:
    return space.between({name: limits(name, space.features[space.name(name)], wish)})


def _move(space: Space, name: str, wish: Any) -> Space:
    return space.move({name: _ends(name, wish) if isinstance(wish, str) else wish})


def _group(space: Space, name: str, columns: Any) -> Space:
    listed = columns.split(",") if isinstance(columns, str) else columns
    return space.group(name, [str(column).strip() for column in listed])


def _derive(space: Space, name: str, source: str) -> Space:
    function = import_name(source)
    if not callable(function):
        raise SettingsError(f"derive {name!r} must be a function of rows; got {source!r}.")
    return space.derive(name, function)


def _near(space: Space, wish: Any, data: pd.DataFrame) -> Space:
    if wish is False:
        return space
    known = ("quantile", "neighbours")
    return space.near_data(data, **({} if wish is True else _only(known, "near_data", wish)))


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
    "groups": _each(_group),
    "fix": lambda space, names, _: space.fix(*names),
    "allow": lambda space, names, _: space.allow(*names),
    "only_up": lambda space, names, _: space.only_up(*names),
    "only_down": lambda space, names, _: space.only_down(*names),
    "between": _each(_between),
    "move": _each(_move),
    "require": lambda space, rules, _: reduce(Space.require, rules, space),
    "derive": _each(_derive),
    "together": lambda space, sets, _: reduce(lambda s, names: s.together(*names), sets, space),
    "max_changes": lambda space, k, _: space.max_changes(k),
    "near_data": _near,
    "cost": lambda space, w, _: space.cost(**_only(("weight", "norm", "per_feature"), "cost", w)),
}


def limits(name: str, feature: Feature, wish: Any) -> Any:
    """Return limits as `Space.between` takes them, from text or from a settings file.

    >>> from bayescfx.features import Categorical, Real
    >>> limits("bmi", Real(15, 40), ":32"), limits("job", Categorical(["a", "b"]), "a|b")
    ((None, 32), ['a', 'b'])
    """
    if feature.levelled:
        known = feature.levels
        # On the command line all levels are text.
        spelt = {str(level): level for level in known} | {level: level for level in known}
        wanted = [part.strip() for part in wish.split("|")] if isinstance(wish, str) else wish
        for level in wanted:
            if level not in spelt:
                raise SpaceError(
                    f"{name!r} has no level {level!r}.{suggest(level, known)} Levels: "
                    f"{', '.join(map(str, known[:12]))}."
                )
        return [spelt[level] for level in wanted]
    if isinstance(wish, str):
        return _ends(name, wish, numbers=feature.numeric)
    if not isinstance(wish, list | tuple) or len(wish) != 2:
        raise SettingsError(f"between for {name!r} must be [low, high]; got {wish!r}.")
    return tuple(None if isinstance(v, float) and math.isinf(v) else v for v in wish)


def _ends(name: str, text: str, *, numbers: bool = False) -> tuple[Any, Any]:
    """Return the two ends of ``low:high``; an end left out is open."""
    parts = [part.strip() for part in text.split(".." if ".." in text else ":")]
    if len(parts) != 2 or not any(parts):
        raise SettingsError(f"limits of {name!r} must be like low:high; got {text!r}.")
    ends: list[Any] = [part or None for part in parts]
    for i, part in enumerate(parts):
        try:
            value = float(part)
            ends[i] = int(value) if value.is_integer() and "." not in part else value
        except ValueError:
            if part and numbers:
                raise SettingsError(
                    f"limits of {name!r} must be numbers like 18:32; got {part!r}."
                ) from None
    return ends[0], ends[1]
