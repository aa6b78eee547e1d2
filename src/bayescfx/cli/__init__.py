"""The command line: ``bayescfx demo``, ``explain``, ``explain-many``, ``inspect``, ``report``.

Help needs only `arguments`; what a command needs is imported when it runs.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import TracebackType


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 reached, 3 best guess, 4 unreachable, 2 bad input, 1 unexpected."""
    before, sys.unraisablehook = sys.unraisablehook, _unraisable
    if argv is None:
        sys.excepthook = _uncaught
    try:  # imports take a while, too
        from bayescfx.cli.arguments import make_parser, parse

        options = parse(sys.argv[1:] if argv is None else argv)
        if options.version:
            from bayescfx.version import VERSION

            sys.stdout.write(f"bayescfx {VERSION}\n")
            return 0
        if options.command is None:
            make_parser().print_help(sys.stderr)
            return 2
        from bayescfx.cli.console import run

        return run(options)
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted.\n")
        return 130
    finally:
        if argv is None:  # the program ends: nobody who presses once more need be told
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.unraisablehook = before


def _uncaught(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Say nothing of Ctrl-C pressed when all is said."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, at)


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Press Ctrl-C once more, a little later, if Python has lost it where nothing can be raised."""
    if lost.exc_type is KeyboardInterrupt:
        import _thread
        import threading

        threading.Timer(0.02, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)
