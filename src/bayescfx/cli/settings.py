"""Everything a question needs, from the command line and a settings file (TOML).

A settings file holds options by their names, the table ``[features]`` that corrects what is
inferred from the data, and the table ``[space]`` with the verbs of `Space`. The command line goes
first for single values and adds to the space.
"""

from __future__ import annotations

import tomllib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayescfx.cli.arguments import COMMANDS, KINDS, OPTIONS, Option
from bayescfx.cli.spaces import VERBS
from bayescfx.errors import SettingsError, suggest


class Settings(Namespace):
    """The options of a command by their names in a settings file, and `space`: verbs and wishes."""

    def need(self, *names: str) -> None:
        """Raise unless these options are given."""
        for name in names:
            if getattr(self, name) is None:
                raise SettingsError(
                    f"--{name} must be given; got none. Add --{name}, or {name} = … to the "
                    "settings file."
                )


def _known() -> dict[str, Option]:
    """Return the options that are settings, by their names."""
    own = [*COMMANDS["explain"].own, *COMMANDS["explain-many"].own]
    options = [*OPTIONS["model and data"], *own, *OPTIONS["question and search"]]
    return {option.key: option for option in options if option.flag != "--settings"}


def _verbs() -> dict[str, Option]:
    """Return the options about the space, and what only a settings file may hold about it."""
    options = {option.key: option for option in OPTIONS["what may change"]}
    return {verb: options.get(verb, Option(verb, "table", "")) for verb in VERBS}


def gather(given: Namespace) -> Settings:
    """Return the settings that the command line and its settings file give together."""
    options = vars(given)
    path = options.get("settings")
    settings = {option.key: option.default for option in _known().values()} | {"space": {}}
    settings |= {} if path is None else read_settings(Path(path))
    settings |= _said(_known().values(), options, settings)
    settings["space"] |= _said(_verbs().values(), options, settings["space"])
    return Settings(**settings)


def _said(options: Any, given: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the command line says of some options.

    Tables grow, and so do the lists of a space; single values are replaced.
    """
    found: dict[str, Any] = {}
    for option in options:
        value, old = given.get(option.key), before.get(option.key)
        if option.kind == "table" and value is not None:
            value = {**(old or {}), **dict(_assignment(option.flag, text) for text in value)}
        elif isinstance(old, list) and option.kind in ("names", "texts", "lists") and value:
            value = [*old, *value]
        if value is not None:
            found[option.key] = value
    return found


def _assignment(flag: str, text: str) -> tuple[str, str]:
    """Return name and value of ``name=value``."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and value):
        raise SettingsError(f"{flag} must be like name=value; got {text!r}.")
    return name, value


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file; paths in it are relative to it."""
    file = str(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"the settings file {file!r} can't be read: {error.strerror}. Correct the path."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the settings file {file!r} must be TOML; got {error}. Correct that place."
        ) from error
    for name in ("trust", "trust_pickle"):
        if name in content:
            raise SettingsError(
                f"{name!r} must not be in a settings file, because it decides what code runs. "
                "Give it on the command line."
            )
    known = {key: option for key, option in _known().items() if not key.startswith("trust")}
    _check(content, known | {"space": Option("space", "table", "")}, file)
    _check(content.get("space", {}), _verbs(), file, "space.")
    for name, value in content.items():
        beside = path.parent / value if isinstance(value, str) else path
        if (name in known and known[name].kind == "path") or (name == "model" and beside.is_file()):
            content[name] = str(beside)
    return content


def _check(
    content: Mapping[str, Any], known: Mapping[str, Option], file: str, of: str = ""
) -> None:
    """Raise unless every name is known and its value of the type that its kind asks for."""
    for name, value in content.items():
        if name not in known:
            raise SettingsError(
                f"{'[space] in ' if of else ''}{file!r} has an unknown name {name!r}."
                f"{suggest(name, known)} Known: {', '.join(known)}."
            )
        _, types, words = KINDS[known[name].kind]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise SettingsError(f"{of + name!r} in {file!r} must be {words}; got {value!r}.")
