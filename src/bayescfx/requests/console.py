"""The two streams of a command: results on one, messages on the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from bayescfx.errors import one_line

#: Characters that move a terminal's cursor, colour its text or turn its direction.
CONTROL_CHARACTERS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


def printable(text: str, escape: Callable[[re.Match[str]], str] = lambda _: "") -> str:
    """Return a text with its control characters removed, or escaped."""
    return re.sub(CONTROL_CHARACTERS, escape, text)


@dataclass
class Console:
    """Writes the result of a command to `out`, and everything else to `err`.

    Parameters
    ----------
    out, err : text stream
        For the result, and for notes, progress, warnings and errors.
    is_quiet : bool
        Whether notes and progress are left out.
    is_json : bool
        Whether results are written as JSON, for scripts.
    """

    out: TextIO
    err: TextIO
    is_quiet: bool = False
    is_json: bool = False
    _written: set[str] = field(default_factory=set)

    def write(self, text: str, plain: Any = None) -> None:
        """Write a result: as text, or `plain` as JSON if this is asked for."""
        if self.is_json and plain is not None:
            text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
            text = printable(text, lambda match: f"\\u{ord(match[0]):04x}")
        text = printable(text)
        self.out.write(text if text.endswith("\n") else text + "\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """Write a note, unless notes are left out."""
        if not self.is_quiet:
            self._write_once("note", text)

    def warning(self, text: str) -> None:
        """Write a warning."""
        self._write_once("warning", text)

    def error(self, text: str) -> None:
        """Write an error."""
        self._write_once("error", text)

    def _write_once(self, kind: str, text: str) -> None:
        """Write a message in one line, unless it was written before."""
        line = f"{kind}: {printable(one_line(text))}\n"
        if line not in self._written:
            self._written.add(line)
            self.err.write(line)
            self.err.flush()
