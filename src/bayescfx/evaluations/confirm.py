"""Are known rows this model's? Some are scored again before a search believes them all."""

from __future__ import annotations

import warnings

import numpy as np

from bayescfx.arrays import Array, is_single
from bayescfx.errors import BayesCFXWarning, EvaluationsError
from bayescfx.evaluations.evaluator import Account
from bayescfx.tables import Rows


def confirm(account: Account) -> None:
    """Score some known rows again, for which `account` pays: they must be this model's.

    One if this very object has scored them, else three; more where rows cost little. What differs
    is looked at twice: a model that does not agree with itself is told, and not refused.
    """
    known, model = account.evaluator.known, account.evaluator.model
    scorer, places = account.evaluator.evaluations.scorer, np.flatnonzero(account.scored())
    most = 1 if scorer is not None and scorer is model.origin else 3
    if model.local:  # it may have been fitted anew
        most = max(3, min(32, account.budget // 50))
    n = min(most, len(places), (account.left - 1) // 2)  # and a second look, and the query
    if n < 1:
        return
    places = places[np.unique(np.linspace(0, len(places) - 1, n).astype(np.intp))]
    rows, y = account.region.rows(known.codes[places]), known.outputs[places]
    close = _close(known.outputs[~np.isnan(known.outputs)], y)
    again = _again(account, rows)
    off = ~(np.abs(again - y) <= close)
    if not off.any():
        return
    third, at = _again(account, rows), int(np.argmax(off))
    same = (np.abs(third - again) <= close) | (np.isnan(third) & np.isnan(again))
    now, then, row = again[at], y[at], model.describe(rows, at)
    if same.all():
        raise EvaluationsError(
            f"`evaluations` must hold outputs of this model; it gives {now:.6g} where they have "
            f"{then:.6g}, for {row}.",
            parameter="evaluations",
            advice="If the model has changed, use another store, or empty this one with "
            "Evaluations.forget().",
        )
    warnings.warn(
        f"`model` gives {now:.6g} and {then:.6g} for one row, {row}: its outputs are not "
        "repeatable, and every answer is as uncertain as they are.",
        BayesCFXWarning,
        stacklevel=5,
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
