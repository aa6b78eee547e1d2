"""Run a command: errors are one line in the words of the command line, and an exit code."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import traceback
from argparse import Namespace

from bayescfx.cli.arguments import COMMANDS
from bayescfx.cli.console import Console, describe, opened
from bayescfx.errors import BayesCFXError


def run(options: Namespace) -> int:
    """Run the command that was asked for; return its exit code."""
    with opened(bool(options.quiet)) as console:
        try:
            command = pkgutil.resolve_name(COMMANDS[options.command].function)
            code: int = command(options, console)
            return code
        except KeyboardInterrupt:
            console.error("interrupted.")
            return 130
        except BrokenPipeError:  # who reads the answer has seen enough
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), console.out.fileno())
            return 1
        except Exception as error:
            if options.debug:
                traceback.print_exception(error, file=console.err)
            return _said(
                error, console, "" if options.debug else " See the traceback with --debug."
            )


def _said(error: Exception, console: Console, more: str) -> int:
    """Say what is wrong in one line, and return the exit code."""
    text = describe(error)
    if isinstance(error, BayesCFXError | OSError):
        console.error(text)
    elif hasattr(error, "evaluations") or hasattr(error, "__notes__"):  # by the model
        console.error(f"the model failed: {text}{more}")
    elif isinstance(error, ValueError):
        console.error(text.removeprefix("ValueError: "))
    else:
        console.error(f"unexpected {text}{more}")
        return 1
    return 2
