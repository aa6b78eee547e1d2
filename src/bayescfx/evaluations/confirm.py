"""Does a model say the same again? Some rows are scored twice, before a search and after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, is_single, row_keys
from bayescfx.errors import BayesCFXWarning, OutOfTime, warn
from bayescfx.evaluations.evaluator import Account, not_its_own
from bayescfx.model.model import Model
from bayescfx.tables import Rows


def confirm(account: Account) -> None:
    """Score some known rows again, for which `account` pays: they must be this model's.

    One if this very object has scored them, else three; more where rows cost little. What differs
    is looked at twice: a model that does not agree with itself is told, and not refused.
    """
    known, model = account.evaluator.known, account.evaluator.model
    scorer = account.evaluator.evaluations.scorer
    places = np.arange(len(known))
    places = places[account.scored(places, *known.take(places))]
    most = 1 if scorer is not None and scorer is model.origin else 3
    if model.local:  # it may have been fitted anew
        most = max(3, min(32, account.budget // 50))
    n = min(most, len(places), (account.left - 1) // 2)  # and a second look, and the query
    if n < 1:
        return
    places = places[np.unique(np.linspace(0, len(places) - 1, n).astype(np.intp))]
    X, y = known.take(places)
    rows, outputs = account.region.rows(X), known.outputs
    close = _close(outputs[~np.isnan(outputs)], y)
    again = _again(account, rows)
    off = ~(np.abs(again - y) <= close)
    if not off.any():
        return
    third, at = _again(account, rows), int(np.argmax(off))
    same = (np.abs(third - again) <= close) | (np.isnan(third) & np.isnan(again))
    now, then, row = again[at], y[at], model.describe(rows, at)
    if same.all():
        raise not_its_own(now, then, row)
    _warn(now, then, row)


@dataclass(frozen=True, eq=False)
class Twice:
    """Rows that the model has scored, and is to score once more."""

    rows: Rows
    y: Array  # (n,) its outputs, nan for a fault
    close: Array  # (n,) by how much they may differ

    def differs(self, model: Model, *, elsewhere: bool = False) -> bool:
        """Return whether the model says something else now, and tell.

        That it fails says nothing if it is asked `elsewhere`: it may lack what it needs there.
        """
        try:
            found = model.scores(self.rows)
        except Exception as error:
            if elsewhere or isinstance(error, OutOfTime):
                return False
            found = np.full(len(self.y), np.nan)  # it has answered before
        off = ~(np.abs(found - self.y) <= self.close) & ~np.isnan(self.y)
        if not off.any():
            return False
        at = int(np.argmax(off))
        _warn(found[at], self.y[at], model.describe(self.rows, at))
        return True


def again(account: Account, best: Array) -> Twice | None:
    """Return the `best` row ``(d,)`` and the oldest, to be scored once more; `account` pays.

    Only if rows are left of the budget: one for every fifty that it has, two at most. No answer
    changes by it.
    """
    known = account.evaluator.known
    place = int(known.find(row_keys(best[None]))[0])
    places = [i for i in dict.fromkeys((place, account.paid[0])) if i in account.paid]
    places = places[: min(account.budget // 50, account.left)]
    if not places or account.evaluator.deadline.passed:
        return None
    X, y = known.take(np.array(places))
    outputs = known.outputs
    account.spent += len(places)
    return Twice(account.region.rows(X), y, _close(outputs[~np.isnan(outputs)], y))


def _warn(now: float, then: float, row: str) -> None:
    """Tell the caller of `explain` that a model does not repeat itself."""
    warn(
        f"`model` gives {now:.6g} and {then:.6g} for one row, {row}: its outputs are not "
        "repeatable, and every answer is as uncertain as they are.",
        BayesCFXWarning,
    )


def _again(account: Account, rows: Rows) -> Array:
    """Return outputs of known rows, asked for once more; nan where faults are skipped."""
    evaluator = account.evaluator
    account.spent += len(rows)
    try:
        return evaluator.model.scores(rows)
    except Exception as error:
        if evaluator.on_fault == "skip":
            return np.full(len(rows), np.nan)
        vars(error)["evaluations"] = evaluator.evaluations
        raise


def _close(known: Array, y: Array) -> Array:
    """Return by how much outputs `y` ``(n,)`` of one model may differ from call to call.

    By sums in another order, or a log with few digits: compared with what most `known` outputs
    span, and with their own size by the precision that all of them may have.
    """
    single = is_single(known)
    low, high = np.quantile(known, [0.1, 0.9])
    with np.errstate(over="ignore"):
        span = float(high - low) * (1e-4 if single else 1e-5) or 1e-12
    return np.maximum(np.abs(y) * (1e-4 if single else 1e-12), span)
