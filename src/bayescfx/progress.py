"""A progress bar for notebooks and terminals; needs tqdm: ``pip install 'bayescfx[progress]'``."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from bayescfx.errors import optional
from bayescfx.result import wording
from bayescfx.search.turns import Step


@dataclass(eq=False)
class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Hears a `Step` after each model call, and shows it on a bar like tqdm's; to be closed."""

    bar: Any  # None shows nothing
    questions: int = 1
    whole: bool = False  # count questions, which are heard of when they have ended, not rows
    output: wording.Output = wording.PREDICTION
    first: int = 0  # the number of a call's first question, if it is about a part of them
    spent: dict[int, int] = field(default_factory=dict)  # rows sent to the model, by question
    _reached: set[int] = field(default_factory=set)
    _now: set[int] = field(default_factory=set)  # heard in this round
    _before: set[int] = field(default_factory=set)  # and in the one before

    @property
    def done(self) -> int:
        """How many questions have ended, as far as is heard: they fall silent."""
        if self.whole:
            return len(self.spent)
        start = min(self._now, default=0) // 64 * 64  # so many take turns
        silent = min(64, self.questions - start) - len(self._now | self._before)
        return start + max(silent, 0) if self._before else start

    def __call__(self, step: Step) -> None:
        """Show a step."""
        question = self.first + step.question
        self.spent[question] = step.n_evaluations
        if step.reached:
            self._reached.add(question)
        again = question in self._now
        if again or question // 64 != min(self._now, default=question) // 64:
            self._now, self._before = set(), self._now if again else set()
        self._now.add(question)
        state = f"best {self.output} {self.output.number(wording.number(step.output))}"
        if self.questions > 1:
            state = f"{self.done} of {self.questions} queries done, {len(self._reached)} reached"
        elif step.reached:
            state += f", reached at cost {wording.number(step.cost, 3)}"
        n = len(self.spent) if self.whole else sum(self.spent.values())
        self.show(n, (1 if self.whole else step.budget) * self.questions, state)

    def show(self, n: int, total: int, state: str) -> None:
        """Show how far the search is."""
        if self.bar is not None:
            self.bar.total = total
            self.bar.set_postfix_str(state, refresh=False)
            self.bar.update(n - self.bar.n)

    def close(self) -> None:
        """Leave the bar as it is; what was not spent is no longer expected."""
        if self.bar is not None:
            if self.bar.total is not None:
                self.bar.total = self.bar.n  # a search may end before its budget
            self.bar.refresh()
            self.bar.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def progress_bar(questions: int = 1, whole: bool = False) -> ProgressBar:
    """Return a listener for `on_step` that shows a bar, in a notebook or a terminal, with tqdm.

    Parameters
    ----------
    questions : int, default 1
        How many queries are asked about; the bar counts rows sent to the model for all of them.
    whole : bool, default False
        Count queries instead: for workers, which are heard of when a query has ended.

    Examples
    --------
    >>> with progress_bar() as bar:  # doctest: +SKIP
    ...     answer = explain(model, query, space, target, on_step=bar)
    """
    with warnings.catch_warnings():
        # Without ipywidgets a notebook gets a bar of text, which needs no warning.
        warnings.simplefilter("ignore")
        module = optional("tqdm.auto", "`progress` needs", "progress")
    bar = module.tqdm(total=None, unit="query" if whole else "row", miniters=1, dynamic_ncols=True)
    return ProgressBar(bar, questions, whole)
