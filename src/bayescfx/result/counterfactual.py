"""One counterfactual: a row, what the model says to it, and what was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayescfx.result import archive, wording
from bayescfx.tables import Layout, Row
from bayescfx.values import Plain, from_plain, to_plain


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

    @property
    def n_changes(self) -> int:
        """How many features were moved."""
        return len(self.changes)

    def to_plain(self, layout: Layout) -> Plain:
        """Return the counterfactual in JSON's own types."""
        return {
            "row": archive.write_row(self.row, layout),
            "output": to_plain(self.output),
            "potential": to_plain(self.potential),
            "changes": [
                [to_plain(name), to_plain(before), to_plain(after)]
                for name, (before, after) in self.changes.items()
            ],
            "cost": to_plain(self.cost),
            "valid": self.valid,
        }

    @classmethod
    def from_plain(cls, plain: Any, layout: Layout) -> Counterfactual:
        """Return the counterfactual that :meth:`to_plain` wrote."""
        return cls(
            row=archive.read_row(plain["row"], layout),
            output=from_plain(plain["output"]),
            potential=from_plain(plain["potential"]),
            changes={
                from_plain(name): (from_plain(before), from_plain(after))
                for name, before, after in plain["changes"]
            },
            cost=from_plain(plain["cost"]),
            valid=plain["valid"],
        )

    def __repr__(self) -> str:
        word = "valid" if self.valid else "not valid"
        return (
            f"Counterfactual({wording.moves(self.changes)}: prediction "
            f"{wording.number(self.output)}, {word}, cost {wording.number(self.cost)})"
        )
