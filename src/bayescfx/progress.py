"""A progress bar for notebooks and terminals; needs tqdm: ``pip install 'bayescfx[progress]'``."""

from __future__ import annotations

import warnings
from typing import Any

from bayescfx.errors import optional
from bayescfx.result import wording
from bayescfx.search.turns import Step


class ProgressBar:
    """Hears a `Step` after each model call, and shows how far the search is.

    Close it when the search has ended, or use it as a context manager. `tqdm` is
    ``tqdm.auto.tqdm`` or one like it.
    """

    def __init__(self, tqdm: Any, questions: int = 1) -> None:
        self._questions = questions
        self._spent: dict[int, int] = {}
        self._reached: set[int] = set()
        self._bar: Any = tqdm(total=None, unit="row", miniters=1, dynamic_ncols=True)

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if self._bar.total is None:
            self._bar.total = step.budget * self._questions
        self._spent[step.question] = step.n_evaluations
        if step.reached:
            self._reached.add(step.question)
        state = f"best prediction {wording.number(step.output)}"
        if self._questions > 1:
            state = f"{len(self._reached)} of {self._questions} reached"
        elif step.reached:
            state += f", reached at cost {wording.number(step.cost, 3)}"
        self._bar.set_postfix_str(state, refresh=False)
        self._bar.update(sum(self._spent.values()) - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is; what was not spent is no longer expected."""
        if self._bar.total is not None:
            self._bar.total = self._bar.n  # a search may end before its budget
        self._bar.refresh()
        self._bar.close()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def progress_bar(questions: int = 1) -> ProgressBar:
    """Return a listener for `on_step` that shows a bar, in a notebook or a terminal.

    Parameters
    ----------
    questions : int, default 1
        How many queries are asked about; the bar counts rows sent to the model for all of them.

    Raises
    ------
    MissingExtraError
        If tqdm is not installed.

    Examples
    --------
    >>> with progress_bar() as bar:  # doctest: +SKIP
    ...     answer = explain(model, query, space, target, on_step=bar)
    """
    with warnings.catch_warnings():
        # Without ipywidgets a notebook gets a bar of text, which needs no warning.
        warnings.simplefilter("ignore")
        module = optional("tqdm.auto", "`progress` needs", "progress")
    return ProgressBar(module.tqdm, questions)
