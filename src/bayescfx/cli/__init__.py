"""The command line: ``bayescfx demo``, ``explain``, ``explain-many``, ``inspect``, ``report``.

Help needs only `arguments`; a command loads the rest when it runs.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import TracebackType


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 reached, 3 best guess, 4 unreachable, 2 bad input, 1 unexpected.

    Without `argv`, the arguments are those of the process, which ends with the command.
    """
    previous_hook = sys.unraisablehook
    sys.unraisablehook = _repeat_interrupt
    is_process = argv is None
    if is_process:
        sys.excepthook = _ignore_interrupt
    try:
        return _run(sys.argv[1:] if argv is None else argv, is_process=is_process)
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted.\n")
        return 130
    finally:
        if is_process:  # Ctrl-C pressed once more changes nothing
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.unraisablehook = previous_hook


def _run(argv: Sequence[str], *, is_process: bool) -> int:
    """Run a command; its modules are imported here, so that Ctrl-C is caught meanwhile."""
    from bayescfx.cli.arguments import make_parser, parse

    options = parse(argv)
    if options.version:
        from bayescfx.version import VERSION

        sys.stdout.write(f"bayescfx {VERSION}\n")
        return 0
    if options.command is None:
        make_parser().print_help(sys.stderr)
        return 2
    from bayescfx.cli.running import run

    return run(options, is_process=is_process)


def _ignore_interrupt(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report an uncaught error, but not Ctrl-C pressed while the process ends."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)


def _repeat_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C again a little later if Python lost it where nothing can be raised."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import _thread
    import threading

    threading.Timer(0.02, _thread.interrupt_main).start()
