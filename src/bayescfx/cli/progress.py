"""Progress on stderr: a bar if tqdm is installed and someone watches, else a few plain lines."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bayescfx.cli.console import Console
from bayescfx.result import wording
from bayescfx.search.turns import Step

_LINES = 8  # plain lines per question, at most


@dataclass
class Progress:
    """Hears a `Step` after each model call, and shows it.

    Parameters
    ----------
    console : Console
        Where to show it.
    total : int
        The most rows that may be sent to the model.
    questions : int
        How many queries there are.

    Attributes
    ----------
    spent : dict
        Rows sent so far, per query.
    """

    console: Console
    total: int
    questions: int = 1
    spent: dict[int, int] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    _bar: Any = None
    _shown: int = 0

    def __post_init__(self) -> None:
        if self.console.live:
            try:
                tqdm = importlib.import_module("tqdm").tqdm
            except ImportError:
                return
            self._bar = tqdm(total=self.total, unit="row", file=self.console.err, leave=False)

    def __call__(self, step: Step) -> None:
        """Show a step."""
        self.spent[step.question] = step.n_evaluations
        if step.reached:
            self.reached.add(step.question)
        done = sum(self.spent.values())
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
            self._bar.set_postfix_str(self._status(step))
        elif not self.console.quiet and done - self._shown >= self.total / _LINES:
            self._shown = done
            line = f"  {done} of at most {self.total} rows: {self._status(step)}\n"
            self.console.err.write(line)
            self.console.err.flush()

    def within(self, first: int) -> Callable[[Step], None]:
        """Return a listener for questions that are counted from `first` on."""
        return lambda step: self(replace(step, question=first + step.question))

    def _status(self, step: Step) -> str:
        if self.questions > 1:
            return f"{len(self.reached)} of {self.questions} reached"
        best = f"best prediction {wording.number(step.output)}"
        return f"{best}, reached" if step.reached else best

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
