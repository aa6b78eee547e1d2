"""The answer: counterfactuals, how sure we are, and everything needed to check them.

Numbers are rounded where they are shown and nowhere else; rows are exactly what the model scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from bayescfx import markup, wording
from bayescfx.arrays import Array
from bayescfx.evaluations import Evaluations
from bayescfx.tables import Layout, Row, Rows, as_frame, cells_of, free_name
from bayescfx.values import same_cell
from bayescfx.wording import Intervals

Status: TypeAlias = Literal["reached", "best_guess", "unreachable"]
Stopped: TypeAlias = Literal[
    "nothing nearer expected", "budget", "timeout", "interrupted", "exhausted", "unreachable"
]

N_META = 5  # columns that `to_frame` adds


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """One row that answers the question, or comes nearest to it.

    Parameters
    ----------
    row : Series or ndarray
        The row in the user's columns and units, exactly as the model scored it.
    output : float
        The model's output for it.
    potential : float
        How well the wish is met: 1 at the potential's peak, 0 at worst.
    changes : dict
        ``{name: (before, after)}`` for the features that were moved.
    cost : float
        The distance from the query.
    valid : bool
        Whether the output is accepted as reaching the target.
    """

    row: Row
    output: float
    potential: float
    changes: Mapping[Any, tuple[Any, Any]]
    cost: float
    valid: bool

    @property
    def n_changes(self) -> int:
        """How many features were moved."""
        return len(self.changes)

    def __repr__(self) -> str:
        word = "valid" if self.valid else "not valid"
        return (
            f"Counterfactual({wording.moves(self.changes)}: prediction "
            f"{wording.number(self.output)}, {word}, cost {wording.number(self.cost)})"
        )


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer to one question.

    Parameters
    ----------
    query : Series or ndarray
        The row asked about.
    output : float
        The model's output for it.
    target : object
        The wish, as it was given.
    wanted : tuple of (low, high)
        The outputs wished for.
    accepted : tuple of (low, high)
        The outputs that count as reached: the wish with its tolerance.
    status : {"reached", "best_guess", "unreachable"}
        Whether the target was reached; if not, whether budget or time ran out or the search is
        confident that it is out of reach.
    counterfactuals : tuple of Counterfactual
        Distinct, best first; at least one.
    stopped : str
        Why the search ended: ``"nothing nearer expected"``, ``"budget"``, ``"timeout"``,
        ``"interrupted"``, ``"exhausted"`` or ``"unreachable"``.
    reachable : (float, float)
        Lowest and highest output seen among the allowed rows.
    trace : ndarray of shape (n_evaluations,)
        The best potential, relative to its peak, after each row that the model scored.
    evaluations : Evaluations
        Everything known of the model; pass it on to the next question.
    n_evaluations : int
        Rows sent to the model for this question, the query's included.
    space : Space
        What was allowed.
    layout : Layout
        Columns and dtypes of the rows.
    tolerance : float
        How much of the wanted change may be missed.
    probability_reachable : float, optional
        The surrogate's probability that the target can be reached within the limits.
    binding : tuple of str
        Limits and rules that keep the target away, as the surrogate sees it.
    method : str
        The search that was used.
    seed : int, optional
        The seed, if the random state was given as one.
    """

    query: Row
    output: float
    target: Any
    wanted: Intervals
    accepted: Intervals
    status: Status
    counterfactuals: tuple[Counterfactual, ...]
    stopped: Stopped
    reachable: tuple[float, float]
    trace: Array
    evaluations: Evaluations
    n_evaluations: int
    space: Any
    layout: Layout
    tolerance: float = 0.05
    probability_reachable: float | None = None
    binding: tuple[str, ...] = ()
    method: str = "bayes-cfx"
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.counterfactuals:
            raise ValueError(
                "`counterfactuals` must hold at least one row; got none. Pass the best guess."
            )

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return self.status == "reached"

    @property
    def best(self) -> Counterfactual:
        """The best answer: the nearest that is valid, or the best guess."""
        return self.counterfactuals[0]

    @property
    def rows(self) -> Rows:
        """The counterfactual rows as one table of the user's columns and dtypes."""
        return self.layout.table([list(c.row) for c in self.counterfactuals])

    def to_frame(self, *, changes_only: bool = False) -> pd.DataFrame:
        """Return one line per counterfactual: its row, then what is known about it.

        Parameters
        ----------
        changes_only : bool, default False
            Show only the columns in which some counterfactual differs from the query, with ``"-"``
            where it does not. Otherwise all columns, with the dtypes of the data.

        Returns
        -------
        DataFrame
            The columns, then ``prediction``, ``valid``, ``potential``, ``cost`` and ``n_changes``
            (with ``_`` appended where a column of that name exists).
        """
        frame = as_frame(self.rows)
        columns = list(frame.columns)
        if changes_only:
            frame = self._changed_cells(frame)
        answers = self.counterfactuals
        meta: dict[str, list[float] | list[bool] | list[int]] = {
            "prediction": [c.output for c in answers],
            "valid": [c.valid for c in answers],
            "potential": [c.potential for c in answers],
            "cost": [c.cost for c in answers],
            "n_changes": [c.n_changes for c in answers],
        }
        for name, values in meta.items():
            frame[free_name(name, columns)] = values
        return frame

    def _changed_cells(self, frame: pd.DataFrame) -> pd.DataFrame:
        before = cells_of(self.layout.table([list(self.query)]))[0]
        after = cells_of(frame)
        shown: dict[Any, list[Any]] = {}
        for j, name in enumerate(frame.columns):
            kept = [same_cell(row[j], before[j]) for row in after]
            if not all(kept):
                shown[name] = ["-" if k else row[j] for k, row in zip(kept, after, strict=True)]
        return pd.DataFrame(shown, index=frame.index, dtype=object)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        best = self.best
        sentence = wording.sentence(best.changes, self.output, best.output, self.wanted)
        lines = [
            f"Wanted: prediction {wording.wish(self.wanted)} (now {wording.number(self.output)})",
            f"{'Answer' if self.reached else 'Best guess'}: {sentence}",
        ]
        for k, other in enumerate(self.counterfactuals[1:], start=2):
            tail = "" if other.valid else " (not valid)"
            moved = wording.moves(other.changes)
            lines.append(f"  {k}. {moved}: prediction {wording.number(other.output)}{tail}")
        lines.append(self.verdict)
        lines.append(f"{wording.count(self.n_evaluations, 'row')} of the model used.")
        return lines

    @property
    def verdict(self) -> str:
        """How the search ended, in words."""
        return wording.verdict(
            self.status,
            stopped=self.stopped,
            miss=wording.gap(self.best.output, self.accepted),
            reachable=self.reachable,
            probability=self.probability_reachable,
            binding=self.binding,
        )

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for c in self.counterfactuals for name in c.changes))
        before = {name: c.changes[name][0] for c in self.counterfactuals for name in c.changes}
        head = ["", "query", *(f"answer {k + 1}" for k in range(len(self.counterfactuals)))]
        lines = [
            [
                str(name),
                wording.cell(before[name]),
                *(
                    wording.cell(c.changes[name][1]) if name in c.changes else "-"
                    for c in self.counterfactuals
                ),
            ]
            for name in names
        ]
        outputs = [wording.number(c.output) for c in self.counterfactuals]
        marks = ["yes" if c.valid else "no" for c in self.counterfactuals]
        lines.append(["prediction", wording.number(self.output), *outputs])
        lines.append(["valid", "", *marks])
        text = self._lines()
        return markup.page(
            *(markup.paragraph(line) for line in text[:2]),
            markup.table(head, lines),
            *(markup.paragraph(line) for line in text[-2:]),
        )
