"""Settings files: TOML with options, kinds of features and constraints."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayescfx.errors import SettingsError, suggest
from bayescfx.models.loaders import is_code
from bayescfx.requests.constraints import VERBS, check_constraints
from bayescfx.requests.option import KINDS, Option

#: Options that decide which code runs: a shared file must not set them.
CODE_OPTIONS = ("trust", "trust_pickle")


def read_settings_file(path: Path, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the content of a settings file; paths in it are relative to its folder.

    `options` are those of `Settings`, by name.
    """
    content = _parse(path)
    _refuse_code(content)
    allowed = {name: each for name, each in options.items() if name not in CODE_OPTIONS}
    allowed["space"] = Option("space", "table", "")
    _check(content, allowed, str(path))
    check_constraints(content.get("space", {}), str(path))
    for name, value in content.items():
        if _is_path(allowed[name], value, path.parent):
            content[name] = str(path.parent / value)
    return content


def _parse(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    from bayescfx.requests.table_files import read_text  # it needs pandas; help does not

    text = read_text(str(path), "the settings file")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or nested too deeply
        raise SettingsError(
            f"the settings file {str(path)!r} must be TOML; got {error}. Correct that place."
        ) from error


def _refuse_code(content: Mapping[str, Any]) -> None:
    """Raise if a setting decides which code runs."""
    refused = _code_verbs(content.get("space"))
    refused += [name for name in CODE_OPTIONS if name in content]
    if is_code(str(content.get("model", ""))):
        refused.insert(0, "model")
    if refused:
        raise SettingsError(
            f"{refused[0]!r} must not be in a settings file, because it decides what code runs. "
            "Give it on the command line."
        )


def _code_verbs(space: Any) -> list[str]:
    """Return the verbs of a table of constraints that run code."""
    if not isinstance(space, dict):
        return []
    known = [VERBS[name] for name in space if name in VERBS]
    return [f"space.{verb.name}" for verb in known if verb.runs_code]


def _is_path(option: Option, value: object, folder: Path) -> bool:
    """Return whether a setting is a path; a model is one if there is such a file."""
    if option.name == "model":
        return os.path.isfile(folder / str(value))
    return option.kind == "path"


def _check(content: Mapping[str, Any], known: Mapping[str, Option], file: str) -> None:
    """Raise unless every name is known and its value has the type of its kind."""
    for name, value in content.items():
        if name not in known:
            raise SettingsError(
                f"{file!r} has an unknown name {name!r}.{suggest(name, known)} "
                f"Known: {', '.join(known)}."
            )
        kind = KINDS[known[name].kind]
        if type(value) not in kind.types:  # true and false are no whole numbers
            raise SettingsError(f"{name!r} in {file!r} must be {kind.words}; got {value!r}.")
