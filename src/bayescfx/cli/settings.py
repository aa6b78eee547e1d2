"""Everything a question needs, from the command line and a settings file (TOML).

A settings file holds options by their names, the table ``[features]`` that corrects what is
inferred from the data, and the table ``[space]`` with the verbs of `Space`. The command line goes
first for single values and adds to the space.
"""

from __future__ import annotations

import tomllib
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from bayescfx.errors import SettingsError as SettingsError
from bayescfx.errors import suggest


@dataclass(frozen=True)
class Settings:
    """The options of a command; see ``bayescfx explain --help``."""

    model: str | None = None
    data: str | None = None
    query: str | None = None
    queries: str | None = None
    target: str | None = None
    label: str | None = None
    output: str | None = None
    budget: int = 100
    n: int = 1
    tolerance: float = 0.05
    timeout: float | None = None
    seed: int = 0
    method: str = "bayes-cfx"
    on_fault: str = "raise"
    evaluations: str | None = None
    drop: tuple[str, ...] = ()
    batch: int = 1000
    http_timeout: float = 30.0
    retries: int = 4
    header: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    trust_pickle: bool = False
    features: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)

    def need(self, *names: str) -> None:
        """Raise unless these options are given."""
        for name in names:
            if getattr(self, name) is None:
                raise SettingsError(
                    f"--{name} must be given; got none. Add --{name}, or {name} = … to the "
                    "settings file."
                )


#: The verbs of a space: what each holds, in the order in which they are applied.
VERBS: dict[str, str] = {
    "groups": "table",
    "fix": "names",
    "allow": "names",
    "only_up": "names",
    "only_down": "names",
    "between": "table",
    "move": "table",
    "require": "texts",
    "derive": "table",
    "together": "lists",
    "max_changes": "number",
    "near_data": "switch",
    "cost": "table",
}

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "table": ((dict,), "a table"),
    "names": ((list,), "a list of names"),
    "texts": ((list,), "a list of texts"),
    "lists": ((list,), "a list of lists of names"),
    "number": ((int,), "a whole number"),
    "switch": ((bool, dict), "true or a table"),
    "str": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "tuple": ((list,), "a list"),
}

_PATHS = ("data", "queries", "evaluations")
_NOT_IN_FILES = {
    "trust": "it decides what code runs",
    "trust_pickle": "it decides what code runs",
}


def gather(given: Namespace) -> Settings:
    """Return the settings that the command line and its settings file give together.

    Raises
    ------
    SettingsError
        If the file can't be read, or has unknown names or wrong types.
    """
    options = vars(given)
    path = options.get("settings")
    settings = Settings() if path is None else read_settings(Path(path))
    known = {f.name for f in fields(Settings)} - {"features", "space"}
    said = {name: value for name, value in options.items() if name in known and value is not None}
    kinds = dict(_assignment("--kind", text) for text in options.get("kind") or ())
    said["features"] = {**settings.features, **kinds}
    said["space"] = _merged(settings.space, _said_of_space(options))
    return replace(settings, **said)


def read_settings(path: Path) -> Settings:
    """Return the settings in a TOML file; paths in it are relative to it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"the settings file {str(path)!r} can't be read: {error.strerror}. Correct the path."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the settings file {str(path)!r} must be TOML; got {error}. Correct that place."
        ) from error
    kinds = {f.name: str(f.type).split(" ")[0].partition("[")[0] for f in fields(Settings)}
    found: dict[str, Any] = {}
    for name, value in content.items():
        if name in _NOT_IN_FILES:
            raise SettingsError(
                f"{name!r} must not be in a settings file, because {_NOT_IN_FILES[name]}. Give it "
                "on the command line."
            )
        if name not in kinds:
            raise SettingsError(
                f"{str(path)!r} has an unknown name {name!r}.{suggest(name, kinds)} Known: "
                f"{', '.join(n for n in kinds if n not in _NOT_IN_FILES)}."
            )
        kind = "table" if name in ("features", "space") else kinds[name]
        _check(f"{name!r} in {str(path)!r}", kind, value)
        found[name] = tuple(value) if kind == "tuple" else value
    _check_space(found.get("space", {}), path)
    for name in _PATHS:
        if name in found:
            found[name] = str(path.parent / found[name])
    if "model" in found and (path.parent / found["model"]).is_file():
        found["model"] = str(path.parent / found["model"])
    return Settings(**found)


def _check(what: str, kind: str, value: object) -> None:
    types, words = _TYPES[kind]
    wrong_bool = isinstance(value, bool) and bool not in types
    if wrong_bool or not isinstance(value, types):
        raise SettingsError(f"{what} must be {words}; got {value!r}.")


def _check_space(space: Mapping[str, Any], path: Path) -> None:
    for verb, value in space.items():
        if verb not in VERBS:
            raise SettingsError(
                f"[space] in {str(path)!r} has an unknown name {verb!r}.{suggest(verb, VERBS)} "
                f"Known: {', '.join(VERBS)}."
            )
        _check(f"'space.{verb}' in {str(path)!r}", VERBS[verb], value)


def _said_of_space(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the command line says about the space, in the form of the file."""
    found: dict[str, Any] = {}
    for verb, kind in VERBS.items():
        value = options.get(verb)
        if value is None:
            continue
        if kind == "table":
            flag = f"--{verb.removesuffix('s')}"
            found[verb] = dict(_assignment(flag, text) for text in value)
        else:
            found[verb] = value
    return found


def _assignment(flag: str, text: str) -> tuple[str, str]:
    """Return name and value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise SettingsError(f"{flag} must be like name=value; got {text!r}.")
    return name.strip(), value.strip()


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return two descriptions of a space together: lists and tables grow, numbers are replaced."""
    merged = dict(first)
    for verb, value in second.items():
        old = merged.get(verb)
        if isinstance(old, list) and isinstance(value, list):
            merged[verb] = [*old, *value]
        elif isinstance(old, dict) and isinstance(value, dict):
            merged[verb] = {**old, **value}
        else:
            merged[verb] = value
    return merged
