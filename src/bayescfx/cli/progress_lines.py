"""Progress of a search on a console: a bar on a terminal, else a few plain lines."""

from __future__ import annotations

import contextlib
import pkgutil
import time
from typing import TextIO

from bayescfx.progress import ProgressBar
from bayescfx.requests.console import Console
from bayescfx.result.wording import PREDICTION, Output

LINES = 8  # for one query; set by judgement, 2026-11-18
SECONDS = 5.0  # between two lines for many queries; set by judgement, 2026-11-18


class ProgressLines(ProgressBar):
    """Writes eight plain lines for one query, or for many queries one every five seconds."""

    def __init__(self, stream: TextIO, n_queries: int, output: Output) -> None:
        super().__init__(None, n_queries, output=output)
        self._stream = stream
        self._shown = 0
        self._last = time.monotonic()

    def show(self, n: int, total: int, state: str) -> None:
        """Write a line if it is time for one."""
        now = time.monotonic()
        is_due = n - self._shown >= total / LINES
        if self.n_queries > 1:
            is_due = now - self._last >= SECONDS
        if is_due:
            self._shown = n
            self._last = now
            self._stream.write(f"  {n} of at most {total} rows: {state}\n")
            self._stream.flush()


def show_progress(console: Console, n_queries: int = 1, output: Output = PREDICTION) -> ProgressBar:
    """Return a listener that shows a bar on a terminal, else lines, or nothing if quiet."""
    if console.is_quiet:
        return ProgressBar(None, n_queries, output=output)
    if console.err.isatty():
        with contextlib.suppress(ImportError):
            tqdm = pkgutil.resolve_name("tqdm:tqdm")
            bar = tqdm(total=None, unit="row", file=console.err, leave=False)
            return ProgressBar(bar, n_queries, output=output)
    return ProgressLines(console.err, n_queries, output)
