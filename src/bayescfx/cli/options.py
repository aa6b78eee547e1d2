"""Everything a question needs, from the command line and a settings file (TOML).

A settings file holds options by their names, the table ``[features]`` that corrects what is
inferred from the data, and the table ``[space]`` with the verbs of `Space`.
"""

from __future__ import annotations

import os
import tomllib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayescfx.cli.arguments import COMMANDS, KINDS, OPTIONS, Option
from bayescfx.cli.reading import read_text
from bayescfx.cli.spaces import VERBS
from bayescfx.errors import SettingsError, suggest
from bayescfx.models.loaders import is_code


class Settings(Namespace):
    """The options of a command by their names in a settings file, and `space`: verbs and wishes."""

    def need(self, *names: str) -> None:
        """Raise unless these options are given."""
        for name in names:
            if getattr(self, name) is None:
                told = f"--{name} must be given; got none. Add --{name}, or {name} = … to the"
                raise SettingsError(f"{told} settings file.")


def settable() -> tuple[dict[str, Option], dict[str, Option]]:
    """Return what may be set, by its names: options, and verbs of the space."""
    own = [*COMMANDS["explain"].own, *COMMANDS["explain-many"].own]
    _, *options = [*OPTIONS["model and data"], *own, *OPTIONS["question and search"]]
    options += OPTIONS["reports"]
    verbs = {option.key: option for option in OPTIONS["what may change"]}
    only_in_files = {verb: Option(f"{verb}  table  -  -") for verb in VERBS}
    return {option.key: option for option in options}, {**only_in_files, **verbs}


def gather(given: Namespace) -> Settings:
    """Return the settings that the command line and its settings file give together."""
    said = vars(given)
    known, verbs = settable()
    settings: dict[str, Any] = {key: option.default for key, option in known.items()}
    settings |= read_settings(Path(said["settings"])) if said.get("settings") else {}
    settings |= _said(known, said, settings)
    wishes = settings.get("space", {})
    return Settings(**settings | {"space": wishes | _said(verbs, said, wishes)})


def _said(
    known: Mapping[str, Option], given: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the command line says; it adds to tables and to the lists of a space."""
    found: dict[str, Any] = {}
    for key, option in known.items():
        value, old = given.get(key), before.get(key)
        if value is None:
            continue
        if option.kind == "table":
            value = {**(old or {}), **dict(assignment(option.flag, text) for text in value)}
        elif option.kind in ("names", "texts", "lists"):
            value = [*(old or ()), *value]
        found[key] = value
    return found


def assignment(
    flag: str, text: str, *, empty: bool = False, sign: str = "=", like: str = "name=value"
) -> tuple[str, str]:
    """Return name and value of ``name=value``; the value may be `empty`."""
    name, found, value = (part.strip() for part in text.partition(sign))
    if not (found and name and (value or empty)):
        raise SettingsError(f"{flag} must be like {like}; got {text!r}.")
    return name, value


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file; paths in it are relative to it."""
    file = str(path)
    text = read_text(file, "the settings file")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # it is no TOML, or too deep
        told = f"the settings file {file!r} must be TOML; got {error}. Correct that place."
        raise SettingsError(told) from error
    known, verbs = settable()
    space, code = content.get("space"), is_code(str(content.get("model", "")))
    runs = ["model"] * code + ["space.derive"] * (isinstance(space, dict) and "derive" in space)
    for name in [*runs, *(name for name in ("trust", "trust_pickle") if name in content)]:
        told = f"{name!r} must not be in a settings file, because it decides what code runs."
        raise SettingsError(f"{told} Give it on the command line.")
    del known["trust"], known["trust_pickle"]
    _check(content, known | {"space": Option("space  table  -  -")}, file)
    _check(content.get("space", {}), verbs, file, "space.")
    for name, value in content.items():
        beside = path.parent / value if isinstance(value, str) else path
        there = name == "model" and os.path.isfile(beside)
        if there or (name in known and known[name].kind == "path"):
            content[name] = str(beside)
    return content


def _check(
    content: Mapping[str, Any], known: Mapping[str, Option], file: str, of: str = ""
) -> None:
    """Raise unless every name is known and its value of the type that its kind asks for."""
    for name, value in content.items():
        if name not in known:
            told = f"{'[space] in ' if of else ''}{file!r} has an unknown name {name!r}."
            raise SettingsError(f"{told}{suggest(name, known)} Known: {', '.join(known)}.")
        _, types, words = KINDS[known[name].kind]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise SettingsError(f"{of + name!r} in {file!r} must be {words}; got {value!r}.")
