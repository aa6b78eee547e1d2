"""Checks that the model gives the same outputs again, before a search and after it.

Before a search, some rows of earlier calls are scored again: they must be of this model. After a
search, two rows are scored again: a model that is not deterministic is reported in a warning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, is_single, row_keys
from bayescfx.data.tables import Rows
from bayescfx.errors import BayesCFXWarning, OutOfTime, attach, warn
from bayescfx.evaluations.evaluator import Account, other_model_error
from bayescfx.models.model import Model

#: Tolerances for outputs in double and in single precision. Sums in another order differ by
#: rounding, and outputs read from a log may have few digits. Set by judgement, 2026-11-18.
_SPAN_TOLERANCE = {False: 1e-5, True: 1e-4}  # relative to the span of most outputs
_OWN_TOLERANCE = {False: 1e-12, True: 1e-4}  # relative to the output itself
_SMALLEST_TOLERANCE = 1e-12

#: Rows scored again before a search. One if this very object scored them, else three. A local
#: model may have been refitted, and its rows cost little: a fiftieth of the budget, 32 at most.
_ROWS_BEFORE = 3
_MOST_ROWS_BEFORE = 32
_BUDGET_PER_ROW = 50

#: Without this many scored rows a search is too short to check the model after it.
LEAST_ROWS_AFTER = 12


@dataclass(frozen=True, eq=False)
class RepeatCheck:
    """Rows that the model has scored and is to score once more.

    Parameters
    ----------
    rows : DataFrame or ndarray
        The rows.
    y : ndarray of shape (n,)
        Their outputs, nan for a fault.
    allowance : ndarray of shape (n,)
        By how much the outputs may differ.
    """

    rows: Rows
    y: Array
    allowance: Array

    @classmethod
    def of(cls, account: Account, places: Indices) -> RepeatCheck:
        """Return the check of some scored rows, given by their places."""
        X, y = account.evaluator.known.take(places)
        outputs = account.evaluator.known.outputs
        outputs = outputs[~np.isnan(outputs)]
        single = is_single(outputs)
        low, high = np.quantile(outputs, [0.1, 0.9])
        with np.errstate(over="ignore"):
            of_span = float(high - low) * _SPAN_TOLERANCE[single] or _SMALLEST_TOLERANCE
        allowance = np.maximum(np.abs(y) * _OWN_TOLERANCE[single], of_span)
        return cls(account.region.rows(X), y, allowance)

    def differs(self, outputs: Array) -> Mask:
        """Return which outputs ``(n,)`` are not those of before."""
        return ~(np.abs(outputs - self.y) <= self.allowance) & ~np.isnan(self.y)

    def is_deterministic(self, model: Model, *, in_other_process: bool = False) -> bool:
        """Score the rows again, and warn if the model is not deterministic.

        A failure says nothing about rows that were scored in another process: the model may lack
        something here.
        """
        try:
            outputs = model.scores(self.rows)
        except Exception as error:
            if in_other_process or isinstance(error, OutOfTime):
                return True
            outputs = np.full(len(self.y), np.nan)  # the model answered for them before
        differs = self.differs(outputs)
        if differs.any():
            self.warn(model, outputs, int(np.argmax(differs)))
        return not differs.any()

    def warn(self, model: Model, outputs: Array, first: int) -> None:
        """Warn that the outputs ``(n,)`` are not those of before, from row `first` on."""
        row = model.describe(self.rows, first)
        again = float(outputs[first])
        before = float(self.y[first])
        warn(
            f"`model` is not deterministic: it returned {again!r} and {before!r} for the same row, "
            f"{row}. Every answer is as uncertain as its outputs.",
            BayesCFXWarning,
        )


def check_before(account: Account) -> None:
    """Score some rows of earlier calls again, at the expense of `account`.

    Raises an EvaluationsError if they are of another model. Rows that differ are scored a third
    time: a model that does not agree with itself is reported in a warning.
    """
    known = account.evaluator.known
    model = account.evaluator.model
    places = np.arange(len(known))
    places = places[account.scored(places, *known.take(places))]
    n = min(_rows_before(account), len(places), (account.left - 1) // 2)  # twice, and the query
    if n < 1:
        return
    evenly_spaced = np.unique(np.linspace(0, len(places) - 1, n).astype(np.intp))
    check = RepeatCheck.of(account, places[evenly_spaced])
    outputs = _score_again(account, check.rows)
    differs = check.differs(outputs)
    if not differs.any():
        return
    third = _score_again(account, check.rows)
    both_failed = np.isnan(third) & np.isnan(outputs)
    agrees = (np.abs(third - outputs) <= check.allowance) | both_failed
    first = int(np.argmax(differs))
    if agrees.all():
        row = model.describe(check.rows, first)
        raise other_model_error(outputs[first], check.y[first], row)
    check.warn(model, outputs, first)


def _rows_before(account: Account) -> int:
    """Return how many rows are scored again before a search."""
    model = account.evaluator.model
    if model.local:
        return max(_ROWS_BEFORE, min(_MOST_ROWS_BEFORE, account.budget // _BUDGET_PER_ROW))
    scorer = account.evaluator.evaluations.scorer
    return 1 if scorer is not None and scorer is model.origin else _ROWS_BEFORE


def plan_check_after(account: Account, best: Array) -> RepeatCheck | None:
    """Return the check of the `best` row ``(d,)`` and the oldest, at the expense of `account`.

    None if no rows are left of the budget: one for every fifty, two at most.
    """
    n = min(account.budget // _BUDGET_PER_ROW, account.left)
    best_place = int(account.evaluator.known.find(row_keys(best[None]))[0])
    candidates = dict.fromkeys((best_place, *account.paid[:1]))
    places = [place for place in candidates if place in account.paid][: max(n, 0)]
    if not places:
        return None
    account.spent += len(places)
    return RepeatCheck.of(account, np.array(places))


def _score_again(account: Account, rows: Rows) -> Array:
    """Return outputs ``(n,)`` of rows scored before; nan where faults are skipped."""
    evaluator = account.evaluator
    account.spent += len(rows)
    try:
        return evaluator.model.scores(rows)
    except Exception as error:
        if evaluator.on_fault == "skip":
            return np.full(len(rows), np.nan)
        attach(error, evaluations=evaluator.evaluations)
        raise
