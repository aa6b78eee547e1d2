"""Does a model say the same again? Some rows are scored twice, before a search and after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, is_single, row_keys
from bayescfx.data.tables import Rows
from bayescfx.errors import BayesCFXWarning, OutOfTime, warn
from bayescfx.evaluations.evaluator import Account, not_its_own
from bayescfx.models.model import Model


@dataclass(frozen=True, eq=False)
class Twice:
    """Rows that the model has scored, and is to score once more."""

    rows: Rows
    y: Array  # (n,) its outputs, nan for a fault
    close: Array  # (n,) by how much they may differ

    @classmethod
    def of(cls, account: Account, places: Indices) -> Twice:
        """Return known rows.

        Outputs may differ by sums in another order, or a log with few digits: compared with what
        most outputs span, and with their own size by the precision that all of them may have.
        """
        X, y = account.evaluator.known.take(places)
        known = account.evaluator.known.outputs
        known = known[~np.isnan(known)]
        single = is_single(known)
        low, high = np.quantile(known, [0.1, 0.9])
        with np.errstate(over="ignore"):
            span = float(high - low) * (1e-4 if single else 1e-5) or 1e-12
        close = np.maximum(np.abs(y) * (1e-4 if single else 1e-12), span)
        return cls(account.region.rows(X), y, close)

    def off(self, found: Array) -> Mask:
        """Return which outputs ``(n,)`` are others than before."""
        return ~(np.abs(found - self.y) <= self.close) & ~np.isnan(self.y)

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
        return self.told(model, found)

    def told(self, model: Model, found: Array) -> bool:
        """Return whether outputs are others than before, and tell."""
        off = self.off(found)
        if off.any():
            at = int(np.argmax(off))
            row = model.describe(self.rows, at)
            warn(
                f"`model` gives {found[at]:.6g} and {self.y[at]:.6g} for one row, {row}: its "
                "outputs are not repeatable, and every answer is as uncertain as they are.",
                BayesCFXWarning,
            )
        return bool(off.any())


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
    twice = Twice.of(account, places[np.unique(np.linspace(0, len(places) - 1, n).astype(np.intp))])
    found = _again(account, twice.rows)
    off = twice.off(found)
    if not off.any():
        return
    third = _again(account, twice.rows)
    same = (np.abs(third - found) <= twice.close) | (np.isnan(third) & np.isnan(found))
    if same.all():
        at = int(np.argmax(off))
        raise not_its_own(found[at], twice.y[at], model.describe(twice.rows, at))
    twice.told(model, found)


def again(account: Account, best: Array, most: int) -> Twice | None:
    """Return the `best` row ``(d,)`` and the oldest, to be scored once more; `account` pays."""
    place = int(account.evaluator.known.find(row_keys(best[None]))[0])
    places = [*filter(account.paid.__contains__, dict.fromkeys((place, account.paid[0])))]
    places = places[:most]
    if not places or account.evaluator.deadline.passed:
        return None
    account.spent += len(places)
    return Twice.of(account, np.array(places))


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
