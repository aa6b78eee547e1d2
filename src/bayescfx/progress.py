"""A progress bar for notebooks and terminals; needs tqdm: ``pip install 'bayescfx[progress]'``."""

from __future__ import annotations

import warnings
from typing import Any

from bayescfx.errors import optional
from bayescfx.result import wording
from bayescfx.search.turns import Step


class ProgressBar:
    """Hears a `Step` after each model call, and shows it on a bar like tqdm's; to be closed."""

    def __init__(
        self,
        bar: Any,
        questions: int = 1,
        whole: bool = False,
        output: wording.Output = wording.PREDICTION,
    ) -> None:
        self._output = output
        self._whole = whole  # count questions, which are heard of when they have ended, not rows
        self.spent: dict[int, int] = {}  # rows sent to the model so far, by question
        self.first = 0  # the number of a call's first question, if it is about a part of them
        self._questions, self._bar = questions, bar  # None shows nothing
        self._reached: set[int] = set()
        self._heard: tuple[set[int], set[int]] = set(), set()  # in this round, and the one before

    @property
    def done(self) -> int:
        """How many questions have ended, as far as is heard: they fall silent."""
        if self._whole:
            return len(self.spent)
        now, before = self._heard
        start = min(now, default=0) // 64 * 64  # so many take turns
        silent = min(64, self._questions - start) - len(now | before)
        return start + max(silent, 0) if before else start

    def __call__(self, step: Step) -> None:
        """Show a step."""
        question = self.first + step.question
        self.spent[question] = step.n_evaluations
        if step.reached:
            self._reached.add(question)
        now, before = self._heard
        if question in now or question // 64 != min(now, default=question) // 64:
            now, before = set(), now if question in now else set()
        self._heard = now | {question}, before
        if self._bar is None:
            return
        if self._bar.total is None:
            self._bar.total = (1 if self._whole else step.budget) * self._questions
        state = f"best {self._output} {self._output.number(wording.number(step.output))}"
        if self._questions > 1:
            state = f"{self.done} of {self._questions} queries done, {len(self._reached)} reached"
        elif step.reached:
            state += f", reached at cost {wording.number(step.cost, 3)}"
        self._bar.set_postfix_str(state, refresh=False)
        spent = len(self.spent) if self._whole else sum(self.spent.values())
        self._bar.update(spent - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is; what was not spent is no longer expected."""
        if self._bar is not None:
            if self._bar.total is not None:
                self._bar.total = self._bar.n  # a search may end before its budget
            self._bar.refresh()
            self._bar.close()

    def __enter__(self) -> ProgressBar:
        return self

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
