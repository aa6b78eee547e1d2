"""Who may still ask the model.

An :class:`Evaluator` stands between searches and the model. It works on codes, asks only for rows
that nobody has asked for before, in one call per batch, and counts every row sent against the
budget of the question that asked, which has an :class:`Account`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys, same_codes
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import Rows, pick
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import EvaluationsError, OutOfTime
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Known, Past, mark
from bayescfx.evaluations.section import Kept
from bayescfx.models.model import Model
from bayescfx.space.region import Region

Reason: TypeAlias = Literal["budget", "timeout"]
OnFault: TypeAlias = Literal["raise", "skip"]
#: How a search may end by itself, and why one has ended.
Ending: TypeAlias = Literal[
    "nothing nearer expected", "budget", "exhausted", "unreachable", "converged"
]
Stopped: TypeAlias = Literal[Ending, "timeout", "interrupted", "fault", "already met"]


class Stop(Exception):
    """Budget or time, the `reason`, do not suffice for all rows; `y` ``(n,)`` is nan for some."""

    def __init__(self, reason: Reason, y: Array) -> None:
        super().__init__(f"stopped by the {reason}")
        self.reason, self.y = reason, y


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The answer to one question's request."""

    y: Array  # (n,), nan for a fault and for a row not scored any more
    stopped: Reason | None  # why some rows were not scored


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Rows that nobody knows yet, with who pays for each."""

    X: Array
    keys: list[bytes]
    rows: Rows
    payers: list[Account]

    def take(self, chosen: Sequence[int]) -> _Batch:
        keys, payers = [self.keys[i] for i in chosen], [self.payers[i] for i in chosen]
        return _Batch(self.X[chosen], keys, pick(self.rows, np.array(chosen)), payers)


class Evaluator:
    """Answer requests for outputs from what is known or from the model.

    What is scored goes to `evaluations`. The `past`, by default all they hold already, is known by
    its codes; rows that do not fit the schema are left alone. No model call starts after the
    `deadline`. Where the model fails, `on_fault` says to raise, with ``.evaluations`` attached to
    the error, or to skip: the row's output is nan, and it is never asked for again.
    """

    def __init__(
        self,
        model: Model,
        schema: Schema,
        evaluations: Evaluations,
        past: Past | None = None,
        *,
        on_fault: OnFault = "raise",
    ) -> None:
        self.model, self.evaluations, self.on_fault = model, evaluations, on_fault
        self.deadline: Deadline = NEVER
        self.faults: list[str] = []
        self._schema = schema
        self._queries: list[Own] = []  # who may ask
        self._own: Own | None = None  # all of them together
        if past is None:
            self.evaluations = evaluations.claim(tuple(schema.places), model.name)
            past = self.evaluations.begin()
        # What a file gets meanwhile is this model's if its name says so, or if the run is resumed.
        self._replays = past.resumed or self.evaluations.sure
        self._doubted = not self.evaluations.sure
        self.known = Known(len(schema.names), past.known(schema, faults=on_fault == "skip"))

    def join(self, query: Own) -> int:
        """Let one more query ask, and return its number."""
        self._queries.append(query)
        self._own = None
        return len(self._queries) - 1

    def rows(self, X: Array, whose: Indices) -> Rows:
        """Return the user's rows for codes ``(n, d)``, each with the cells of query `whose`."""
        if self._own is None:
            self._own = Own.of_all(self._queries)
        return self._schema.rows(X, self._own, whose)

    def evaluate_many(self, requests: Sequence[tuple[Account, Array]]) -> list[Scores]:
        """Score the rows of several questions, codes ``(n, d)`` each, in one model call.

        A row that two questions ask for is paid by the first. A question without budget for all
        its new rows gets the first of them, and ``stopped`` says so.
        """
        asked = []
        for account, X in requests:
            keys = row_keys(X)
            for i, odd in account.marks(X).items():
                keys[i] += odd
            asked.append((account, X, keys))
        # Once is enough unless a batch failed and its owner could not pay for a second look.
        while not self.deadline.passed and (batch := self._unknown(asked)) is not None:
            if self._score(batch):
                break
        scores = []
        for account, _, keys in asked:
            places = self.known.find(keys)
            found, y = places >= 0, np.full(len(keys), np.nan)
            account.asked.append(places[found])
            y[found] = self.known.take(account.asked[-1])[1]
            why: Reason = "timeout" if account.left > 0 else "budget"
            scores.append(Scores(y, None if found.all() else why))
        return scores

    def _unknown(self, asked: Sequence[tuple[Account, Array, list[bytes]]]) -> _Batch | None:
        """Return the rows to be sent, as far as the accounts allow."""
        new: dict[bytes, Account] = {}  # by key, who pays
        parts, known, older = [], self.known.index, self.known.older_index
        for account, X, keys in asked:
            chosen: list[int] = []
            left = account.left
            for i, key in enumerate(keys):
                if len(chosen) == left:
                    break
                if key not in known and key not in older and key not in new:
                    new[key] = account
                    chosen.append(i)
            parts.append(X[chosen])
        if not new:
            return None
        X, payers = np.concatenate(parts), list(new.values())
        whose = np.array([account.place for account in payers])
        return _Batch(X, list(new), self.rows(X, whose), payers)

    def _score(self, batch: _Batch, *, apart: bool = False) -> bool:
        """Send a batch to the model, keep what it says; return whether all of it is known then."""
        for account in batch.payers:
            account.spent += 1
        # Rows that a file has got meanwhile, most often from this very run before it was cut short,
        # are not sent, but all else is as if they were.
        told = self._told(batch.rows) if self._replays else {}
        if len(batch.keys) > 1 and any(row.apart for row in told.values()):
            return self._skip(batch, None)  # the model failed for the batch before
        try:
            y = self._outputs(batch.rows, told)
            finite = np.isfinite(y)
            if self.on_fault == "raise" and not finite.all():
                if finite.any():
                    self._record(batch.take(np.flatnonzero(finite).tolist()), y[finite])
                i = int(np.argmin(finite))
                raise self.model.fault(batch.rows, i, y[i])
        except Exception as error:
            if isinstance(error, OutOfTime) and self.deadline.passed:
                return False
            if self.on_fault == "skip":
                return self._skip(batch, error, apart=apart)
            vars(error)["evaluations"] = self.evaluations
            raise
        faults: list[str | None] = [None] * len(y)
        for i in np.flatnonzero(~finite).tolist():
            fault = str(told[i].fault if i in told else self.model.fault(batch.rows, i, y[i]))
            faults[i] = fault
            self.faults.append(fault)
        y = np.where(finite, y, np.nan)
        self._record(batch, y, faults, apart=apart, new=len(told) < len(y))
        return True

    def _outputs(self, rows: Rows, told: Mapping[int, Kept]) -> Array:
        """Return outputs ``(n,)``; those that the file has not are the model's."""
        if not told:
            return self.model.scores(rows)
        y = np.full(len(rows), np.nan)
        y[list(told)] = np.array([row.output for row in told.values()], dtype=np.float64)
        new = np.setdiff1d(np.arange(len(y)), list(told))
        if len(new):
            y[new] = self.model.scores(pick(rows, new))
        return y

    def _told(self, rows: Rows) -> dict[int, Kept]:
        """Return what the file has of a batch, by position; the first time it may be doubted."""
        told = self.evaluations.told(rows)
        scored = {i: Kept(row.output) for i, row in told.items() if row.output is not None}
        if self._doubted and scored:
            self._doubted, i = False, next(iter(scored))
            row, then = pick(rows, np.array([i])), float(scored[i].output or 0.0)
            now = self.model.scores(row)[0]
            if not np.isclose(now, then, rtol=1e-4, atol=1e-12):
                more = (
                    "; if it never repeats itself, name it with Evaluations.open(path, model=...)"
                )
                raise not_its_own(now, then, self.model.describe(row, 0), more)
        return scored if self.on_fault == "raise" else told  # a fault may be gone by now

    def _skip(self, batch: _Batch, error: Exception | None, *, apart: bool = False) -> bool:
        """Find out which rows of a failed batch fail; each is sent, and counted, once more."""
        if len(batch.keys) == 1:
            fault = f"{type(error).__name__}: {error}"
            self.faults.append(fault)
            self._record(batch, np.array([np.nan]), [fault], apart=apart)
            return True
        for i, account in enumerate(batch.payers):
            if account.left > 0 and not self.deadline.passed:
                self._score(batch.take([i]), apart=True)
        return False

    def _record(
        self,
        batch: _Batch,
        y: Array,
        faults: Sequence[str | None] | None = None,
        *,
        apart: bool = False,
        new: bool = True,
    ) -> None:
        """Keep what was scored, on disk first; what can't be written is known all the same."""
        scorer, until = self.model.origin, self.deadline
        try:
            if new:
                self.evaluations.keep(batch.rows, y, scorer, faults, apart, until)
        except Exception as error:
            vars(error)["evaluations"] = self.evaluations
            raise
        finally:
            start = self.known.extend(batch.X, y, batch.keys)
            for place, account in enumerate(batch.payers, start):
                account.paid.append(place)


class Account:
    """One question's share of an `Evaluator`: where it may look, and how many rows it may send."""

    def __init__(self, evaluator: Evaluator, region: Region, budget: int) -> None:
        self.evaluator = evaluator
        self.region = region
        self.place = evaluator.join(region.own)  # of its query among all of them
        self.budget = budget
        self.spent = 0  # rows sent to the model so far
        self.paid: list[int] = []  # where in `evaluator.known` those scored for this question are
        self.after: Callable[[], object] | None = None  # called after each call of `evaluate`
        self.asked: list[Indices] = []  # where all are that it has asked for, request by request
        self._odd = region.schema.odd(region.own.cells, region.own.codes)  # see `Schema.odd`

    @property
    def left(self) -> int:
        """How many rows may still be sent."""
        return self.budget - self.spent

    def evaluate(self, X: Array) -> Array:
        """Return outputs ``(n,)`` of codes ``(n, d)``, or raise `Stop` if they can't all be had."""
        spent = self.spent
        (scores,) = self.evaluator.evaluate_many([(self, X)])
        if self.after is not None and self.spent > spent:
            self.after()
        if scores.stopped is not None:
            raise Stop(scores.stopped, scores.y)
        return scores.y

    def scored(self, places: Indices, X: Array, y: Array) -> Mask:
        """Return which of the known rows at places have an output, and this query's odd cells."""
        found, theirs = ~np.isnan(y), self.evaluator.known.marks
        if theirs:
            found &= ~np.isin(places, np.fromiter(theirs, np.intp, len(theirs)))
        for i, mine in self.marks(X).items():
            found[i] = theirs.get(int(places[i])) == mine and not np.isnan(y[i])
        return found

    def marks(self, X: Array) -> dict[int, bytes]:
        """Return the odd cells of this query's rows ``(n, d)``, by position; most have none."""
        found, own = dict[int, bytes](), self.region.own
        for c in self._odd:
            j = self.region.schema.feature_at[c]
            for i in np.flatnonzero(same_codes(X[:, j], own.codes[0, j])).tolist():
                found[i] = found.get(i, b"") + mark(c, own.cells[c][0])
        return found


def not_its_own(now: float, then: float, row: str, more: str = "") -> EvaluationsError:
    """Return the error for known outputs that another model gave."""
    return EvaluationsError(
        f"`evaluations` must hold outputs of this model; it gives {now:.6g} where they have "
        f"{then:.6g}, for {row}.",
        parameter="evaluations",
        advice="If the model has changed, use another store, or empty this one with "
        f"Evaluations.forget(){more}.",
    )
