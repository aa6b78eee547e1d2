"""`main`: options in, exit code out, each error one line."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence

import bayescfx
from bayescfx.cli import commands
from bayescfx.cli.arguments import make_parser, parse
from bayescfx.cli.console import Console, opened
from bayescfx.cli.demo import demo
from bayescfx.cli.inspecting import inspect
from bayescfx.errors import BayesCFXError

BAD_INPUT = 2
UNEXPECTED = 1
INTERRUPTED = 130

_COMMANDS: dict[str, Callable[[Namespace, Console], int]] = {
    "demo": demo,
    "explain": commands.explain,
    "explain-many": commands.explain_many,
    "inspect": inspect,
    "report": commands.report,
    "reproduce": commands.reproduce,
}

#: How advice for Python reads on the command line.
_WORDS = (
    (r"\s*Use `space\.including\(rows\)` to add them\.", ""),
    (r"`?space\.require`?", "--require"),
    (r"pass on_fault='skip'", "pass --on-fault skip"),
    (r"bayescfx\.probability\(model, label\)", "--label LABEL"),
    (r"Evaluations\.open\(path, model=\.\.\.\)", "another --evaluations file"),
    (r"`timeout` must be seconds > 0", "--http-timeout must be seconds > 0"),
    (r"`(budget|tolerance|timeout|method|retries|batch|between|move|together)`", r"--\1"),
    (r"`k`", "--max-changes"),
    (r"`n`", "-n"),
    (r"`(query|queries)`", r"the \1"),
    (r"`space` has no feature", "there is no feature"),
    (r" or a Search; got", "; got"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        0 reached, 3 best guess, 4 unreachable, 2 bad input, 1 unexpected.
    """
    options = parse(sys.argv[1:] if argv is None else argv)
    if options.version:
        sys.stdout.write(f"bayescfx {bayescfx.__version__}\n")
        return 0
    if options.command is None:
        make_parser().print_help(sys.stderr)
        return BAD_INPUT
    with opened(options.quiet) as console:
        try:
            return _COMMANDS[options.command](options, console)
        except KeyboardInterrupt:
            console.error("interrupted.")
            return INTERRUPTED
        except BrokenPipeError:  # who reads the answer has seen enough
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), console.out.fileno())
            return UNEXPECTED
        except Exception as error:
            if options.debug:
                traceback.print_exception(error, file=console.err)
            return _said(error, console, options.debug)


def _said(error: Exception, console: Console, debug: bool) -> int:
    """Say what is wrong in one line, and return the exit code."""
    ours = isinstance(error, BayesCFXError | OSError)
    models = hasattr(error, "evaluations") or getattr(error, "__notes__", None)
    text = commands.describe(error)
    more = "" if debug else " See the traceback with --debug."
    if ours:
        console.error(in_options(text))
        return BAD_INPUT
    if models:
        console.error(f"the model failed: {text}{more}")
        return BAD_INPUT
    if isinstance(error, ValueError):
        console.error(in_options(text.removeprefix("ValueError: ")))
        return BAD_INPUT
    console.error(f"unexpected {text}{more}")
    return UNEXPECTED


def in_options(text: str) -> str:
    """Return a message whose advice is in terms of the command line.

    Examples
    --------
    >>> in_options("Exclude it with space.require.")
    'Exclude it with --require.'
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text
