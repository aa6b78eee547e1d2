"""Run a command: the result goes to stdout, everything else to stderr, each error in one line."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import re
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from bayescfx.cli.arguments import COMMANDS
from bayescfx.errors import BayesCFXError, SettingsError, optional
from bayescfx.requests.console import Console, printable
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.messages import COMMAND_LINE, describe_error
from bayescfx.requests.settings import OPTIONS

#: The library that files with an ending need, in words, and the extra that installs it.
REQUIRED = {
    ".parquet": ("pyarrow", "parquet files need", "models"),
    ".xlsx": ("openpyxl", ".xlsx files need", "excel"),
    **dict.fromkeys(
        (".html", ".png", ".svg", ".pdf"), ("matplotlib", "pictures and reports need", "plots")
    ),
}


def run(options: Namespace, *, is_process: bool = False) -> int:
    """Run the command that is named in the options; return its exit code.

    `is_process` says that the process ends with the command.
    """
    command = COMMANDS[options.command]
    is_json = bool(vars(options).get("json"))
    with open_console(bool(options.quiet), is_json, is_process=is_process) as console:
        try:
            if command.out:  # before any work
                _check_outputs(options.out, re.findall(r"\.\w+", command.out))
            code: int = pkgutil.resolve_name(command.function)(options, console)
            return code
        except SystemExit as stop:  # only a model ends the program here
            console.error(f"the model ended the program with {stop.code!r}.")
            return 2
        except BrokenPipeError:  # the reader of the result has closed the pipe
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), console.out.fileno())
            return 1
        except Exception as error:
            return _report_error(error, options, console)


def _report_error(error: Exception, options: Namespace, console: Console) -> int:
    """Write an error in one line; return the exit code."""
    hint = " See the traceback with --debug."
    if options.debug:
        console.err.write(printable("".join(traceback.format_exception(error))))
        hint = ""
    text = describe_error(error, replace(COMMAND_LINE, flags=_flags(options)))
    if isinstance(error, BayesCFXError | OSError):
        console.error(text)
    elif hasattr(error, "evaluations") or hasattr(error, "__notes__"):
        console.error(f"the model failed: {text}{hint}")
    elif isinstance(error, ValueError):
        console.error(text.removeprefix("ValueError: "))
    else:
        console.error(f"unexpected {text}{hint}")
        return 1
    return 2


def _flags(options: Namespace) -> set[str]:
    """Return the options of settings and constraints that the command has."""
    flags = {name: option.flag for name, option in OPTIONS.items()}
    flags |= {name: verb.option for name, verb in VERBS.items()}
    return {flag for name, flag in flags.items() if name in vars(options)}


def _check_outputs(paths: list[str], endings: list[str]) -> None:
    """Raise if a file can't be written."""
    for path in paths:
        ending = Path(path).suffix.lower()
        if ending not in endings:
            raise SettingsError(f"--out must end in {', '.join(endings)}; got {path!r}.")
        _check_place(path)
        if ending in REQUIRED:
            optional(*REQUIRED[ending])


def _check_place(path: str) -> None:
    """Raise if there can't be a file of this name."""
    if not Path(path).resolve().parent.is_dir():
        raise SettingsError(f"--out {path!r} can't be written: no such folder. Make it first.")
    part = Path(f"{path}.part")  # the name of the file until it is whole
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(None, "it is a folder")
        part.open("ab").close()
        part.unlink()
    except OSError as error:
        raise SettingsError(
            f"--out {path!r} can't be written: {error.strerror}. Choose another."
        ) from error


@contextlib.contextmanager
def open_console(is_quiet: bool, is_json: bool, *, is_process: bool = False) -> Iterator[Console]:
    """Yield a console; models that write to stdout, even compiled ones, write to stderr."""
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        out = sys.stdout
        with contextlib.suppress(AttributeError, OSError):  # streams that are no files
            if (sys.stdout.fileno(), sys.stderr.fileno()) == (1, 2):
                out = stack.enter_context(_separate_stdout(is_process=is_process))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        console = Console(out, sys.stderr, is_quiet, is_json)
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = lambda message, *_, **__: console.warning(str(message))
        yield console


@contextlib.contextmanager
def _separate_stdout(*, is_process: bool) -> Iterator[TextIO]:
    """Yield a stream to the real stdout while file descriptor 1 leads to stderr.

    In a process of its own it leads there until the end: compiled code may have lines left in the
    buffer of C, which are written when the process ends.
    """
    copy = os.dup(1)
    os.dup2(2, 1)
    stream = open(copy, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  closed below, after stdout is back
    try:
        yield stream
    finally:
        with contextlib.suppress(BrokenPipeError):
            stream.close()
        if not is_process:
            os.dup2(copy, 1)
        os.close(copy)
