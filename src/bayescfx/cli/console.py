"""Run a command: the answer goes to stdout, everything else to stderr, each error in one line."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import re
import sys
import time
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from bayescfx.cli.arguments import COMMANDS, OPTIONS, Command
from bayescfx.errors import BayesCFXError, SettingsError, one_line, optional
from bayescfx.progress import ProgressBar
from bayescfx.result.wording import PREDICTION, Output


def run(options: Namespace) -> int:
    """Run the command that was asked for; return its exit code."""
    command = COMMANDS[options.command]
    with opened(bool(options.quiet), bool(vars(options).get("json"))) as console:
        try:
            if command.out:  # before any work
                _check_out(options.out, re.findall(r"\.\w+", command.out))
            code: int = pkgutil.resolve_name(command.function)(options, console)
            return code
        except SystemExit as stop:  # what runs here is to end by returning
            console.say("error", f"the model ended the program with {stop.code!r}.")
            return 2
        except BrokenPipeError:  # who reads the answer has seen enough
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), console.out.fileno())
            return 1
        except Exception as error:
            if options.debug:
                console.err.write(printable("".join(traceback.format_exception(error))))
            more = "" if options.debug else " See the traceback with --debug."
            text, code = describe(error, command), 2
            if not isinstance(error, BayesCFXError | OSError):
                if hasattr(error, "evaluations") or hasattr(error, "__notes__"):
                    text = f"the model failed: {text}{more}"
                elif isinstance(error, ValueError):
                    text = text.removeprefix("ValueError: ")
                else:
                    text, code = f"unexpected {text}{more}", 1
            console.say("error", text)
            return code


#: What files of a kind need: a library, in words, and the extra that has it.
NEEDED = {
    ".parquet": ("pyarrow", "parquet files need", "models"),
    ".xlsx": ("openpyxl", ".xlsx files need", "excel"),
    **dict.fromkeys(
        (".html", ".png", ".svg", ".pdf"), ("matplotlib", "pictures and reports need", "plots")
    ),
}


def _check_out(paths: list[str], kinds: list[str]) -> None:
    """Raise if an output can't be written."""
    for path in paths:
        kind, told = Path(path).suffix.lower(), f"--out {path!r} can't be written:"
        if kind not in kinds:
            raise SettingsError(f"--out must end in {', '.join(kinds)}; got {path!r}.")
        if not Path(path).resolve().parent.is_dir():
            raise SettingsError(f"{told} no such folder. Make it first.")
        part = Path(f"{path}.part")  # as it is called until it is whole
        try:
            if Path(path).is_dir():
                raise IsADirectoryError(None, "it is a folder")
            part.open("ab").close()
            part.unlink()
        except OSError as error:
            raise SettingsError(f"{told} {error.strerror}. Choose another.") from error
        if kind in NEEDED:
            optional(*NEEDED[kind])


#: What to do here about a parameter, where the library's advice is for Python.
ADVICE = {
    "columns": "Leave out those it was not trained on, with --drop.",
    "evaluations": "Use another file for each model; if it has changed, add --forget.",
    "model": "For a classifier pass --label LABEL.",
    "na": "Correct the cell, or say with --na which texts mean missing.",
    "identifiers": "Name the rows by it with --id, or leave it out with --drop.",
    "order": 'Give an order, from the lowest, with --kind "NAME=low < middle < high".',
    "percent": "Ask for an amount instead, such as '+5'.",
    "rule": "Write levels in quotes; join rules with `and`, `or` and `->`.",
    "output": "Choose one with --output: 0 is the first.",
    "on_fault": "Exclude that region with --require, or pass --on-fault skip.",
    "pickle": "If you trust who made it, pass --trust-pickle; better save it as .skops or .onnx.",
    "types": "If you trust who made it, add --trust {types} to the command.",
}


def describe(error: BaseException, command: Command | None = None) -> str:
    """Return an error in one sentence, in terms of options; advice names those of the `command`."""
    text = one_line(str(error))
    if isinstance(error, BayesCFXError) and error.parameter is not None:
        if error.advice and error.parameter in ADVICE:
            types = ",".join(getattr(error, "types", ()))
            advice = ADVICE[error.parameter].format(types=types)
            lacking = command is not None and set(re.findall("--[a-z-]+", advice)) - command.flags
            text = text.removesuffix(error.advice) + ("" if lacking else advice)
            text = text.rstrip()
        names = {option.key: option.flag for group in OPTIONS.values() for option in group}
        # The time-out of a question is checked before; what is left is that of an endpoint.
        names |= {"k": "--max-changes", "timeout": "--http-timeout", "kinds": "--kind"}
        names |= {"n_jobs": "--jobs", "changes": "--set"}
        names |= {"function": "--derive", "model": "the model", "query": "the query"}
        for name, words in names.items():
            text = text.replace(f"`{name}`", words)
    if isinstance(error, BayesCFXError | OSError) and text:  # says itself what it is about
        notes = [note for note in getattr(error, "__notes__", []) if note.startswith("for the que")]
        where = [f" That is {note}." for note in notes if " at position " not in note]
        return "".join([text if text.endswith((".", "?", "!")) else f"{text}.", *where])
    kind = type(error).__name__
    told = f"{kind}: {text.rstrip('.')}" if text else kind
    notes = [one_line(note) for note in getattr(error, "__notes__", [])]
    return f"{told} ({'; '.join(notes)})." if notes else f"{told}."


@contextlib.contextmanager
def about(parameter: str) -> Iterator[None]:
    """Say of an error which parameter it is about, unless it knows."""
    try:
        yield
    except BayesCFXError as error:
        error.parameter = error.parameter or parameter
        raise


def printable(text: str, write: Callable[[re.Match[str]], str] = lambda _: "") -> str:
    """Return a text without what moves a terminal's cursor, colours it or turns its direction."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", write, text)


@dataclass
class Console:
    """The two streams of a command."""

    out: TextIO  # for the answer and nothing else
    err: TextIO  # for notes, progress, warnings and errors
    quiet: bool = False  # no notes and no progress
    json: bool = False  # answers for scripts
    _said: set[str] = field(default_factory=set)

    def answer(self, text: str, plain: Any = None) -> None:
        """Write the answer: as text, or what is plain as JSON where that is asked for."""
        if self.json and plain is not None:
            text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
            text = printable(text, lambda match: f"\\u{ord(match[0]):04x}")
        text = printable(text)
        self.out.write(text if text.endswith("\n") else text + "\n")
        self.out.flush()

    def say(self, kind: str, text: str) -> None:
        """Say a "note" (unless quiet), a "warning" or an "error", in one line and once."""
        line = f"{kind}: {printable(one_line(text))}\n"
        if line not in self._said and not (self.quiet and kind == "note"):
            self._said.add(line)
            self.err.write(line)
            self.err.flush()


@contextlib.contextmanager
def opened(quiet: bool, plain: bool) -> Iterator[Console]:
    """Yield the console; what models write to stdout, even compiled ones, goes to stderr."""
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        out = sys.stdout
        with contextlib.suppress(AttributeError, OSError):  # streams that are no files
            if (sys.stdout.fileno(), sys.stderr.fileno()) == (1, 2):
                out = stack.enter_context(_own_stdout())
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        console = Console(out, sys.stderr, quiet, plain)
        warnings.simplefilter("default")
        for noise in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", noise)
        warnings.showwarning = lambda message, *_, **__: console.say("warning", str(message))
        yield console


@contextlib.contextmanager
def _own_stdout() -> Iterator[TextIO]:
    """Yield a stream to the real stdout while file descriptor 1 leads to stderr."""
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


class Lines(ProgressBar):
    """Progress for those who don't watch: eight plain lines, or of many questions one every 5 s."""

    def __init__(self, stream: TextIO, questions: int, output: Output) -> None:
        super().__init__(None, questions, output=output)
        self._stream, self._shown, self._last = stream, 0, time.monotonic()

    def show(self, n: int, total: int, state: str) -> None:
        """Write a line if it is time for one."""
        many = self.questions > 1
        if time.monotonic() - self._last >= 5 if many else n - self._shown >= total / 8:
            self._shown, self._last = n, time.monotonic()
            self._stream.write(f"  {n} of at most {total} rows: {state}\n")
            self._stream.flush()


def progress(console: Console, questions: int = 1, output: Output = PREDICTION) -> ProgressBar:
    """Return a listener that shows a bar if someone watches, else lines, or nothing if quiet."""
    if console.quiet:
        return ProgressBar(None, questions, output=output)
    if console.err.isatty():
        with contextlib.suppress(ImportError):
            tqdm = pkgutil.resolve_name("tqdm:tqdm")
            bar = tqdm(total=None, unit="row", file=console.err, leave=False)
            return ProgressBar(bar, questions, output=output)
    return Lines(console.err, questions, output)
