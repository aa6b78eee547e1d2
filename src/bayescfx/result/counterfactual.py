"""One counterfactual: a row, the model's output for it, and its changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayescfx import markup
from bayescfx.data.tables import Row
from bayescfx.result import wording
from bayescfx.result.valid_range import ValidRange

#: What is proven about a row whose numbers were rounded to short decimals, and so cost a little
#: more than the optimum.
OPTIMAL_BEFORE_ROUNDING = "optimal before rounding"


@dataclass(frozen=True, eq=False, slots=True)
class Counterfactual:
    """One row that reaches the target, or comes closest to it.

    Parameters
    ----------
    row : Series or ndarray
        The row in the user's columns and units, exactly as the model scored it.
    output : float
        The model's output for the row.
    potential : float
        The potential of the output: 1 at its peak, 0 at worst.
    changes : dict
        ``{name: (before, after)}`` for each feature that differs from the query, derived ones
        included: applied to the query, they give the row.
    cost : float
        What the search minimises: ``distance`` plus the price of a change times ``n_changes``; see
        `Space.cost`.
    valid : bool
        Whether the output counts as reaching the target.
    plausibility : float, optional
        Share of the training rows that are less plausible than this row, from 0 to 1 (ties count
        one half). A row is less plausible if its values occur together less often. None if the
        space was made without data.
    distance : float
        The distance from the query, in units of change; the part of the cost that grows with the
        size of the changes.
    valid_ranges : dict of name to ValidRange, optional
        For each changed feature the values with which the row reaches the target, its other cells
        unchanged. Known for models that can be read, whose answers are proven, fully or within
        a gap; else None.
    proof : str, optional
        ``"optimal"`` if no cheaper row reaches the target: for the best answer no row at all, for
        a further one no row that changes only features that it changes. ``"optimal before
        rounding"`` if that was so until its numbers became short decimals, which adds at most one
        per cent to the cost, and changes too small to notice were replaced, which may add more. The
        best answer may be proven ``"within 3 %"`` only. None if nothing is proven.
    output_name : str, default "prediction"
        What the output is called, such as "probability of good".
    follows : dict
        The part of ``changes`` that follows from the others: derived features. They are not
        counted in ``n_changes``, and have no cost.

    Examples
    --------
    >>> import pandas as pd
    >>> Counterfactual(pd.Series({"bmi": 27.4}), 171.0, 1.0, {"bmi": (32.1, 27.4)}, 1.2, True)
    Counterfactual(bmi 32.1 → 27.4: prediction 171, valid, cost 1.2)
    """

    row: Row
    output: float
    potential: float
    changes: Mapping[Any, tuple[Any, Any]]
    cost: float
    valid: bool
    plausibility: float | None = None
    distance: float = 0.0
    valid_ranges: Mapping[Any, ValidRange] | None = None
    proof: str | None = None
    output_name: str = wording.PREDICTION.name
    follows: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[Any, tuple[Any, Any]]:
        """The changes that have to be made: those of ``changes`` that follow from no other."""
        return {name: pair for name, pair in self.changes.items() if name not in self.follows}

    @property
    def n_changes(self) -> int:
        """The number of chosen changes, each of which has its price in the cost."""
        return len(self.changes) - len(self.follows)

    def __repr__(self) -> str:
        return f"Counterfactual({wording.moves(self.changes, self.follows)}: {self._figures})"

    def _repr_html_(self) -> str:
        lines = [
            [wording.name_of(name, self.follows), *wording.both(*pair)]
            for name, pair in self.changes.items()
        ]
        table = markup.table(["", "before", "after"], lines) if lines else ""
        figures = self._figures if lines else f"No change: {self._figures}"
        return markup.page(table, markup.paragraph(f"{figures[:1].upper()}{figures[1:]}."))

    @property
    def _figures(self) -> str:
        """Return ``prediction 171, valid, cost 1.2``."""
        output = wording.number(self.output)
        validity = "valid" if self.valid else "not valid"
        return f"{self.output_name} {output}, {validity}, cost {wording.number(self.cost)}"
