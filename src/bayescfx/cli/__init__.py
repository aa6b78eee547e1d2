"""The command line: ``bayescfx demo``, ``explain``, ``explain-many``, ``inspect``, ``report``.

Help needs only `arguments`; what a command needs is imported when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import bayescfx
from bayescfx.cli.arguments import make_parser, parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 reached, 3 best guess, 4 unreachable, 2 bad input, 1 unexpected."""
    options = parse(sys.argv[1:] if argv is None else argv)
    if options.version:
        sys.stdout.write(f"bayescfx {bayescfx.__version__}\n")
        return 0
    if options.command is None:
        make_parser().print_help(sys.stderr)
        return 2
    from bayescfx.cli.console import run

    return run(options)
