"""One counterfactual: a row, what the model says to it, and what was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayescfx.data.tables import Row
from bayescfx.result import wording


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
    plausibility : float, optional
        Share of the training rows that are less plausible than this row, from 0 to 1 (ties count
        one half). A row is less plausible if its values occur together less often. None if the
        space was made without data.

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
