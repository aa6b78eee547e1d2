"""Constraints from a command line, a settings file or the page, applied to a `Space`.

The verbs of a space describe themselves (`VERBS`): a new one has its option, its name in settings
files and its field in requests without a change here.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayescfx.errors import SettingsError, suggest
from bayescfx.models.loaders import import_name
from bayescfx.space.verbs import (
    VERBS,
    Verb,
    apply_verbs,
    intersect_verbs,
    load_functions,
    read_verbs,
)

if TYPE_CHECKING:  # help on the constraints needs neither
    import pandas as pd

    from bayescfx.space.space import Space

__all__ = [
    "VERBS",
    "Verb",
    "add_constraint_options",
    "apply_constraints",
    "check_constraints",
    "extend_constraints",
    "intersect_verbs",
    "read_verbs",
]


def add_constraint_options(parser: ArgumentParser) -> None:
    """Add a group of options to a parser, one for each verb."""
    group = parser.add_argument_group("what may change")
    for verb in VERBS.values():
        if verb.option:
            arguments: dict[str, Any] = {"action": "store_true", "default": None}
            if verb.parameter.takes_text:
                arguments = {"action": "append", "metavar": verb.example}
            suffix = "; repeatable" if verb.parameter.is_repeatable else ""
            help_text = f"{verb.help}{suffix}".replace("%", "%%")
            group.add_argument(verb.option, dest=verb.name, help=help_text, **arguments)


def extend_constraints(in_file: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constraints of a settings file with those of a command line added.

    `typed` has the texts of each option by the name of its verb.
    """
    constraints = dict(in_file)
    for name, verb in VERBS.items():
        texts = typed.get(name)
        if texts is not None:
            value = verb.parameter.from_texts(verb.option, texts)
            constraints[name] = verb.parameter.extend(in_file.get(name), value)
    return constraints


def check_constraints(constraints: Mapping[str, Any], file: str) -> None:
    """Raise unless every verb in a settings file is known and its value of the right type."""
    for name, value in constraints.items():
        if name not in VERBS:
            raise SettingsError(
                f"[space] in {file!r} has an unknown name {name!r}.{suggest(name, VERBS)} "
                f"Known: {', '.join(VERBS)}."
            )
        VERBS[name].parameter.check(f"'space.{name}' in {file!r}", value)


def apply_constraints(space: Space, constraints: Mapping[str, Any], data: pd.DataFrame) -> Space:
    """Return the space with constraints by verb, whose values may be texts.

    Constraints that combine, such as limits, are narrowed. `data` are the rows of the space.
    """
    return apply_verbs(space, load_functions(constraints, import_name), data)
