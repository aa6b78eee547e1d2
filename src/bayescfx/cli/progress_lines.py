"""Progress of a search on a console: a bar on a terminal, else a few plain lines."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import bayescfx as cfx
from bayescfx.requests.console import Console
from bayescfx.requests.texts import number_text, proof_state

LINES = 8  # for one query; set by judgement, 2026-11-18
SECONDS = 5.0  # between two lines for many queries; set by judgement, 2026-11-18


class ProgressLines:
    """Writes eight plain lines for one query, or for many queries one every five seconds.

    A long proof has a line every five seconds, too.

    Parameters
    ----------
    console : Console
        Where to write.
    n_queries : int
        The number of queries.
    output : str
        The name of the model's output.
    """

    def __init__(self, console: Console, n_queries: int, output: str) -> None:
        self._console = console
        self._n_queries = n_queries
        self._output = output
        self._rows: dict[int, int] = {}  # scored rows by query
        self._reached: set[int] = set()
        self._n_shown = 0
        self._last = time.monotonic()

    def __call__(self, step: cfx.Step) -> None:
        """Write a line if it is time for one."""
        self._rows[step.question] = step.n_evaluations
        if step.reached:
            self._reached.add(step.question)
        n_rows = sum(self._rows.values())
        if self._is_due(n_rows, step):
            self._n_shown = n_rows
            self._last = time.monotonic()
            most = step.budget * self._n_queries
            self._console.err.write(f"  {n_rows} of at most {most} rows: {self._state(step)}\n")
            self._console.err.flush()

    def _is_due(self, n_rows: int, step: cfx.Step) -> bool:
        """Return whether it is time for a line; a proof scores few rows, so that time counts."""
        if self._n_queries > 1 or step.bound is not None:
            return time.monotonic() - self._last >= SECONDS
        return n_rows - self._n_shown >= step.budget / LINES

    def _state(self, step: cfx.Step) -> str:
        """Return the state of the search in words."""
        if self._n_queries > 1:
            return f"{len(self._reached)} of {self._n_queries} queries reached"
        if step.bound is not None:
            return proof_state(step.cost, step.bound, is_reached=step.reached)
        state = f"best {self._output} {number_text(step.output)}"
        return f"{state}, reached at cost {number_text(step.cost, 3)}" if step.reached else state


@contextlib.contextmanager
def show_progress(
    console: Console, n_queries: int = 1, output: str | None = None
) -> Iterator[Callable[[cfx.Step], object]]:
    """Yield a listener that shows a bar on a terminal, else lines; nothing if quiet."""
    if console.is_quiet:
        yield lambda _: None
        return
    bar = _make_bar(console, n_queries) if console.err.isatty() else None
    if bar is None:
        yield ProgressLines(console, n_queries, output or "prediction")
        return
    with bar:
        yield bar


def _make_bar(console: Console, n_queries: int) -> Any:
    """Return a bar for a terminal, or None if it is not installed."""
    try:
        return cfx.progress_bar(n_queries, file=console.err)
    except cfx.MissingExtraError:
        return None
