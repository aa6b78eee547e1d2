"""From data and settings to a `Space`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from bayescfx.cli.settings import SettingsError
from bayescfx.errors import SpaceError, suggest
from bayescfx.features import Feature
from bayescfx.io.loaders import import_name
from bayescfx.space.space import Space


def make_space(data: pd.DataFrame, features: Mapping[str, Any], wishes: Mapping[str, Any]) -> Space:
    """Return the space of the data with the corrections and verbs of the settings.

    Parameters
    ----------
    data : DataFrame
        Rows with exactly the columns that the model takes.
    features : dict of column to kind or table
        Corrections: ``"integer"``, or ``{"kind": "real", "low": 0, "step": 0.5}``.
    wishes : dict of verb to what it holds
        As in the table ``[space]`` of a settings file.

    Examples
    --------
    >>> data = pd.DataFrame({"age": [20, 40], "job": ["cook", "clerk"]})
    >>> print(make_space(data, {}, {"fix": ["job"], "between": {"age": "18:65"}}))
    Space of 2 features
      feature  kind         values           unit of change  limits
      age      integer      20 … 40          10              between 18 … 65
      job      categorical  'clerk', 'cook'  1               fixed
    cost: 0.1 × l1 distance
    """
    space = _with_features(data, features)
    for verb, apply in _VERBS.items():
        if verb in wishes:
            space = apply(space, wishes[verb], data)
    return space


def _with_features(data: pd.DataFrame, features: Mapping[str, Any]) -> Space:
    kinds = {name: _kind(name, wish, data.columns) for name, wish in features.items()}
    space = Space.from_data(data, {name: kind for name, kind in kinds.items() if kind})
    made: dict[Any, str | Feature] = {}
    for name, wish in features.items():
        rest = {} if isinstance(wish, str) else {k: v for k, v in wish.items() if k != "kind"}
        if rest:
            made[name] = _corrected(name, space.features[name], rest)
        elif kinds[name]:
            made[name] = str(kinds[name])
    return Space.from_data(data, made) if made else space


def _kind(name: str, wish: Any, columns: Iterable[Any]) -> str | None:
    """Return the kind that the settings give to a column; None if they leave it."""
    if name not in columns:
        raise SettingsError(
            f"the features name {name!r}, which is no column that the model takes."
            f"{suggest(name, columns)}"
        )
    if not isinstance(wish, str | dict):
        raise SettingsError(f"features.{name} must be a kind or a table; got {wish!r}.")
    kind = wish if isinstance(wish, str) else wish.get("kind")
    if kind == "moment":
        return None
    if kind is not None and kind not in Feature.kinds:
        raise SettingsError(
            f"the kind of {name!r} must be one of {', '.join(Feature.kinds)}; got {kind!r}."
            f"{suggest(kind, Feature.kinds)}"
        )
    if kind is None and isinstance(wish, dict) and "levels" in wish:
        return "categorical"
    return kind


def _corrected(name: str, feature: Feature, rest: Mapping[str, Any]) -> Feature:
    known = [f.name for f in fields(feature)]  # type: ignore[arg-type]  # kinds are dataclasses
    for key in rest:
        if key not in known:
            raise SettingsError(
                f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
                f"{suggest(key, known)}"
            )
    return replace(feature, **dict(rest))  # type: ignore[type-var]  # kinds are dataclasses


# ── verbs ──


def _named(verb: Callable[..., Space]) -> Callable[[Space, Any, pd.DataFrame], Space]:
    return lambda space, names, _: verb(space, *names)


def _between(space: Space, wishes: Mapping[str, Any], _: pd.DataFrame) -> Space:
    for name, wish in wishes.items():
        feature = space.features[space.schema.names[space.schema.position(name)]]
        space = space.between({name: limits(name, feature, wish)})
    return space


def _move(space: Space, wishes: Mapping[str, Any], _: pd.DataFrame) -> Space:
    for name, wish in wishes.items():
        space = space.move({name: _ends(name, wish) if isinstance(wish, str) else wish})
    return space


def _require(space: Space, rules: Iterable[Any], _: pd.DataFrame) -> Space:
    for rule in rules:
        space = space.require(rule)
    return space


def _derive(space: Space, wishes: Mapping[str, str], _: pd.DataFrame) -> Space:
    for name, source in wishes.items():
        function = import_name(source)
        if not callable(function):
            raise SettingsError(f"derive {name!r} must be a function of rows; got {source!r}.")
        space = space.derive(name, function)
    return space


def _groups(space: Space, wishes: Mapping[str, Any], _: pd.DataFrame) -> Space:
    for name, columns in wishes.items():
        listed = columns.split(",") if isinstance(columns, str) else columns
        space = space.group(name, [str(column).strip() for column in listed])
    return space


def _together(space: Space, blocks: Iterable[Any], _: pd.DataFrame) -> Space:
    for block in blocks:
        space = space.together(*block)
    return space


def _near(space: Space, wish: Any, data: pd.DataFrame) -> Space:
    if wish is False:
        return space
    try:
        return space.near_data(data, **(wish if isinstance(wish, dict) else {}))
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


_VERBS: dict[str, Callable[[Space, Any, pd.DataFrame], Space]] = {
    "groups": _groups,
    "fix": _named(Space.fix),
    "allow": _named(Space.allow),
    "only_up": _named(Space.only_up),
    "only_down": _named(Space.only_down),
    "between": _between,
    "move": _move,
    "require": _require,
    "derive": _derive,
    "together": _together,
    "max_changes": lambda space, k, _: space.max_changes(k),
    "near_data": _near,
    "cost": _cost,
}


def limits(name: str, feature: Feature, wish: Any) -> Any:
    """Return limits as `Space.between` takes them, from text or from a settings file.

    Examples
    --------
    >>> from bayescfx.features import Categorical, Real
    >>> limits("bmi", Real(15, 40), ":32"), limits("job", Categorical(["a", "b"]), "a|b")
    ((None, 32), ['a', 'b'])
    """
    if feature.levelled:
        wanted = [part.strip() for part in wish.split("|")] if isinstance(wish, str) else wish
        return [_level(name, feature.levels, level) for level in wanted]
    if isinstance(wish, str):
        low, high = _ends(name, wish, numbers=feature.numeric)
        return low, high
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
    glue = ".." if ".." in text else ":"
    parts = [part.strip() for part in text.split(glue)]
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
