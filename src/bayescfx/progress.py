"""A progress bar for notebooks and terminals; needs tqdm: ``pip install 'bayescfx[progress]'``."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TextIO

from bayescfx.errors import optional
from bayescfx.result import wording
from bayescfx.search.turns import Step

BLOCK = 64  # queries that are searched at the same time


@dataclass(eq=False)
class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A listener for `on_step` that shows each `Step` on a bar of tqdm; close it after use."""

    bar: Any  # a tqdm bar; None shows nothing
    n_queries: int = 1
    by_query: bool = False  # count finished queries, not rows: workers report no single rows
    output: wording.Output = wording.PREDICTION
    first: int = 0  # position of the first query of a call that gets only a part of them
    spent: dict[int, int] = field(default_factory=dict)  # rows sent to the model, by query
    _reached: set[int] = field(default_factory=set)
    _this_round: set[int] = field(default_factory=set)  # queries with a step in this round
    _last_round: set[int] = field(default_factory=set)

    @property
    def done(self) -> int:
        """Number of finished queries: those of a block that have no more steps."""
        if self.by_query:
            return len(self.spent)
        start = min(self._this_round, default=0) // BLOCK * BLOCK
        if not self._last_round:
            return start
        n_active = len(self._this_round | self._last_round)
        n_silent = min(BLOCK, self.n_queries - start) - n_active
        return start + max(n_silent, 0)

    def __call__(self, step: Step) -> None:
        """Show a step."""
        query = self.first + step.question
        self.spent[query] = step.n_evaluations
        if step.reached:
            self._reached.add(query)
        if step.bound is None:
            self._note_round(query)
        if self.by_query:
            self.show(len(self.spent), self.n_queries, self._state(step))
        else:
            self.show(sum(self.spent.values()), step.budget * self.n_queries, self._state(step))

    def _note_round(self, query: int) -> None:
        """Start a new round if the query had a step in this one, or is in another block."""
        is_repeated = query in self._this_round
        is_other_block = query // BLOCK != min(self._this_round, default=query) // BLOCK
        if is_repeated or is_other_block:
            self._last_round = self._this_round if is_repeated else set()
            self._this_round = set()
        self._this_round.add(query)

    def _state(self, step: Step) -> str:
        """Return the text beside the bar."""
        if self.n_queries > 1:
            return f"{self.done} of {self.n_queries} queries done, {len(self._reached)} reached"
        if step.bound is not None:
            return wording.proof_state(step.cost, step.bound, is_reached=step.reached)
        best = f"best {self.output} {self.output.number(wording.number(step.output))}"
        if step.reached:
            best += f", reached at cost {wording.number(step.cost, 3)}"
        return best

    def show(self, n: int, total: int, state: str) -> None:
        """Draw the bar at `n` of `total`."""
        if self.bar is not None:
            self.bar.total = total
            self.bar.set_postfix_str(state, refresh=False)
            self.bar.update(n - self.bar.n)

    def close(self) -> None:
        """End the bar where it is: a search may end before its budget is spent."""
        if self.bar is not None:
            if self.bar.total is not None:
                self.bar.total = self.bar.n
            self.bar.refresh()
            self.bar.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def progress_bar(
    n_queries: int = 1, by_query: bool = False, file: TextIO | None = None
) -> ProgressBar:
    """Return a listener for `on_step` that shows a bar in a notebook or a terminal, with tqdm.

    Parameters
    ----------
    n_queries : int, default 1
        Number of queries; the bar counts the rows sent to the model for all of them.
    by_query : bool, default False
        Count finished queries instead: for workers, which report when a query has ended.
    file : text stream, optional
        Where to show a bar that is removed at the end; by default it stays on stderr.

    Examples
    --------
    >>> with progress_bar() as bar:  # doctest: +SKIP
    ...     answer = explain(model, query, space, target, on_step=bar)
    """
    with warnings.catch_warnings():
        # Without ipywidgets a notebook gets a bar of text, which needs no warning.
        warnings.simplefilter("ignore")
        module = optional("tqdm.auto", "`progress` needs", "progress")
    unit = "query" if by_query else "row"
    stays = file is None
    bar = module.tqdm(
        total=None, unit=unit, miniters=1, dynamic_ncols=stays, file=file, leave=stays
    )
    return ProgressBar(bar, n_queries, by_query)
