"""Where a command writes: the answer to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass
class Console:
    """The two streams of a command.

    Parameters
    ----------
    out : text stream
        For the answer and nothing else.
    err : text stream
        For notes, progress, warnings and errors.
    quiet : bool
        Whether notes and progress are left out.
    """

    out: TextIO
    err: TextIO
    quiet: bool = False
    _said: set[str] = field(default_factory=set)

    def answer(self, text: str) -> None:
        """Write the answer."""
        self.out.write(text if text.endswith("\n") else text + "\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """Say something about what is going on, once."""
        if not self.quiet:
            self._say("note", text)

    def warn(self, text: str) -> None:
        """Say that something may not be as meant, once."""
        self._say("warning", text)

    def error(self, text: str) -> None:
        """Say what is wrong."""
        self.err.write(f"error: {one_line(text)}\n")
        self.err.flush()

    def _say(self, kind: str, text: str) -> None:
        line = f"{kind}: {one_line(text)}\n"
        if line not in self._said:
            self._said.add(line)
            self.err.write(line)
            self.err.flush()

    @property
    def live(self) -> bool:
        """Whether someone watches stderr."""
        return not self.quiet and self.err.isatty()


def one_line(text: str) -> str:
    r"""Return a text on one line.

    Examples
    --------
    >>> one_line("a\n  b")
    'a b'
    """
    return " ".join(text.split())


@contextlib.contextmanager
def opened(quiet: bool) -> Iterator[Console]:
    """Yield the console of a command.

    Models and libraries may print. While a command runs, what they write to stdout, from Python
    or from compiled code, goes to stderr.
    """
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_own_stdout())
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        console = Console(out, sys.stderr, quiet)
        warnings.simplefilter("default")
        for noise in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", noise)

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            console.warn(str(message))

        warnings.showwarning = show
        yield console


@contextlib.contextmanager
def _own_stdout() -> Iterator[TextIO]:
    """Yield a stream to the real stdout while file descriptor 1 leads to stderr."""
    try:
        real = sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (AttributeError, OSError, io.UnsupportedOperation):
        real = False
    if not real:
        yield sys.stdout
        return
    copy = os.dup(1)
    os.dup2(2, 1)
    stream = open(copy, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  closed below, after stdout is back
    try:
        yield stream
    finally:
        with contextlib.suppress(BrokenPipeError):
            stream.close()
        os.dup2(copy, 1)
        os.close(copy)
