"""How an option is written on a command line and in a settings file."""

from __future__ import annotations

import contextlib
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bayescfx.errors import BayesCFXError


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated text.

    >>> split_names("age, bmi,")
    ['age', 'bmi']
    """
    names = [name.strip() for name in text.split(",")]
    return [name for name in names if name]


@dataclass(frozen=True)
class ValueKind:
    """The values that an option takes.

    Parameters
    ----------
    argparse : dict
        Arguments of ``add_argument`` that read the value from a command line.
    types : tuple of type
        The types that the value may have in a settings file.
    words : str
        These types in words.
    """

    argparse: dict[str, Any]
    types: tuple[type, ...]
    words: str


KINDS = {
    "text": ValueKind({"type": str}, (str,), "a text"),
    "path": ValueKind({"type": str}, (str,), "a text"),  # relative to the settings file
    "integer": ValueKind({"type": int}, (int,), "a whole number"),
    "number": ValueKind({"type": float}, (int, float), "a number"),
    "names": ValueKind({"type": split_names}, (list,), "a list"),
    "lines": ValueKind({"action": "append"}, (list,), "a list"),
    "table": ValueKind({"action": "append"}, (dict,), "a table"),
    "switch": ValueKind({"action": "store_true", "default": None}, (bool,), "true or false"),
}


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Parameters
    ----------
    name : str
        Its name in a settings file and in `Settings`.
    kind : str
        A key of `KINDS`.
    help : str
        One line for help and for the reference.
    typed_as : str, optional
        Its name on a command line; ``--name`` by default.
    metavar : str, optional
        A placeholder for the value in help.
    choices : tuple of str
        The texts that are accepted; any if empty.
    """

    name: str
    kind: str
    help: str
    typed_as: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = field(default=())

    @property
    def flag(self) -> str:
        """The option's name on a command line."""
        return self.typed_as or f"--{self.name.replace('_', '-')}"

    def add_to(self, parser: ArgumentParser | Any) -> None:
        """Add the option to a parser, or to a group of its options."""
        arguments = dict(KINDS[self.kind].argparse)
        if self.metavar is not None:
            arguments["metavar"] = self.metavar
        if self.choices:
            arguments["choices"] = self.choices
        help_text = self.help.replace("%", "%%")
        parser.add_argument(self.flag, dest=self.name, help=help_text, **arguments)


@contextlib.contextmanager
def about_parameter(name: str) -> Iterator[None]:
    """Give an error the name of the parameter it is about, unless it has one."""
    try:
        yield
    except BayesCFXError as error:
        error.parameter = error.parameter or name
        raise
