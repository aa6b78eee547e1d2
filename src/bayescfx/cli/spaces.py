"""From data and settings to a `Space`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from bayescfx.cli.console import about
from bayescfx.errors import SettingsError, SpaceError, suggest
from bayescfx.features import Feature
from bayescfx.io.loaders import import_name
from bayescfx.space.description import kind as kind_of
from bayescfx.space.inference import KINDS
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
                for arguments in _calls(verb, wishes[verb], data):
                    space = apply(space, *arguments)
    return space


def _calls(verb: str, wish: Any, data: pd.DataFrame) -> Iterable[Any]:
    """Return the arguments of each call of a verb."""
    if verb in ("near_data", "cost"):
        return [(wish, data)]
    if isinstance(wish, dict):
        return wish.items()
    if verb == "together":
        return list(wish)
    if verb == "require":
        return [(rule,) for rule in wish]
    return [wish] if isinstance(wish, list) else [(wish,)]


# ── features ──


def _with_features(data: pd.DataFrame, features: Mapping[str, Any]) -> Space:
    kinds = {name: _kind(name, wish, data.columns) for name, wish in features.items()}
    made: dict[Any, str | Feature] = {name: kind for name, kind in kinds.items() if kind}
    space = Space.from_data(data, made)
    rests = {
        name: {k: v for k, v in wish.items() if k != "kind"}
        for name, wish in features.items()
        if isinstance(wish, dict)
    }
    for name, rest in rests.items():
        if rest:
            made[name] = _corrected(name, space.features[name], rest)
    return Space.from_data(data, made) if any(rests.values()) else space


def _kind(name: str, wish: Any, columns: Iterable[Any]) -> str | None:
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
    if kind not in (None, "moment", *KINDS):
        raise SettingsError(
            f"the kind of {name!r} must be one of {', '.join(KINDS)}, moment; got {kind!r}."
            f"{suggest(kind, KINDS)}"
        )
    return None if kind == "moment" else kind


def _corrected(name: str, feature: Feature, rest: Mapping[str, Any]) -> Feature:
    known = [f.name for f in fields(feature)]
    for key in rest:
        if key not in known:
            raise SettingsError(
                f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
                f"{suggest(key, known)}"
            )
    return replace(feature, **dict(rest))


# ── verbs ──


def _between(space: Space, name: str, wish: Any) -> Space:
    feature = space.features[space.schema.names[space.schema.position(name)]]
    return space.between({name: limits(name, feature, wish)})


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
    try:
        return (
            space.near_data(data, **(wish if isinstance(wish, dict) else {}))
            if wish is not False
            else space
        )
    except TypeError as error:
        raise SettingsError(
            f"space.near_data must have only quantile and neighbours; got {wish!r}."
        ) from error


def _cost(space: Space, wish: Any, _: pd.DataFrame) -> Space:
    try:
        return space.cost(**wish)
    except TypeError as error:
        raise SettingsError(
            f"space.cost must have only weight, norm and per_feature; got {wish!r}."
        ) from error


#: What a settings file may hold in ``[space]``, in the order in which it is applied.
VERBS: dict[str, Callable[..., Space]] = {
    "groups": _group,
    "fix": Space.fix,
    "allow": Space.allow,
    "only_up": Space.only_up,
    "only_down": Space.only_down,
    "between": _between,
    "move": _move,
    "require": Space.require,
    "derive": _derive,
    "together": Space.together,
    "max_changes": Space.max_changes,
    "near_data": _near,
    "cost": _cost,
}


def limits(name: str, feature: Feature, wish: Any) -> Any:
    """Return limits as `Space.between` takes them, from text or from a settings file.

    >>> from bayescfx.features import Categorical, Real
    >>> limits("bmi", Real(15, 40), ":32"), limits("job", Categorical(["a", "b"]), "a|b")
    ((None, 32), ['a', 'b'])
    """
    known = getattr(feature, "levels", None)
    if known is not None:
        wanted = [part.strip() for part in wish.split("|")] if isinstance(wish, str) else wish
        return [_level(name, known, level) for level in wanted]
    if isinstance(wish, str):
        return _ends(name, wish, numbers=kind_of(feature) != "moment")
    if not isinstance(wish, list | tuple) or len(wish) != 2:
        raise SettingsError(f"between for {name!r} must be [low, high]; got {wish!r}.")
    return tuple(None if isinstance(v, float) and math.isinf(v) else v for v in wish)


def _level(name: str, known: tuple[Any, ...], level: Any) -> Any:
    """Return the level that is meant; on the command line all of them are text."""
    for own in known:
        if own == level or str(own) == level:
            return own
    raise SpaceError(
        f"{name!r} has no level {level!r}.{suggest(level, known)} Levels: "
        f"{', '.join(map(str, known[:12]))}."
    )


def _ends(name: str, text: str, *, numbers: bool = False) -> tuple[Any, Any]:
    """Return the two ends of ``low:high``; an end left out is open."""
    parts = [part.strip() for part in text.split(".." if ".." in text else ":")]
    if len(parts) != 2 or not any(parts):
        raise SettingsError(f"limits of {name!r} must be like low:high; got {text!r}.")
    low, high = (_end(name, part, numbers) if part else None for part in parts)
    return low, high


def _end(name: str, text: str, numbers: bool) -> Any:
    try:
        value = float(text)
    except ValueError:
        if numbers:
            raise SettingsError(
                f"limits of {name!r} must be numbers like 18:32; got {text!r}."
            ) from None
        return text
    return int(value) if value.is_integer() and "." not in text else value
