"""Who may still ask the model, and what is known already.

The evaluator stands between a search and the model. It works on codes (``docs/architecture.md``),
asks the model only for rows that nobody has asked for before, in one call per batch, and counts
every row sent against the budget of the question that asked. Several questions to one model share
one :class:`Evaluator`, each with its own :class:`Account`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import QueryError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Known
from bayescfx.model.model import Model
from bayescfx.space.region import Region
from bayescfx.space.schema import Schema
from bayescfx.tables import Layout, Rows, join, pick

Reason: TypeAlias = Literal["budget", "timeout"]
OnFault: TypeAlias = Literal["raise", "skip"]
#: Why a search ended.
Stopped: TypeAlias = Literal[
    "nothing nearer expected",
    "budget",
    "timeout",
    "interrupted",
    "fault",
    "converged",
    "exhausted",
    "unreachable",
]


class Stop(Exception):
    """The budget or the time does not suffice for all the rows asked for.

    `reason` says which, and `y` has the outputs ``(n,)``, nan where there is none.
    """

    def __init__(self, reason: Reason, y: Array) -> None:
        super().__init__(f"stopped by the {reason}")
        self.reason = reason
        self.y = y


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The answer to one question's request."""

    y: Array  # (n,), nan for a fault and for a row not scored any more
    stopped: Reason | None  # why some rows were not scored


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Rows that nobody knows yet, with who pays for each."""

    keys: list[bytes]
    X: Array
    rows: Rows
    owners: list[Account]

    def take(self, chosen: Indices) -> _Batch:
        return _Batch(
            [self.keys[i] for i in chosen],
            self.X[chosen],
            pick(self.rows, chosen),
            [self.owners[i] for i in chosen],
        )


class Evaluator:
    """Answer requests for outputs from what is known or from the model.

    What `evaluations` holds already is known by its codes; rows that do not fit the schema are left
    alone. No model call starts after the `deadline`. Where the model fails, `on_fault` says to
    raise, with ``.evaluations`` attached to the error, or to skip: the row's output is nan, and it
    is never asked for again.
    """

    def __init__(
        self,
        model: Model,
        schema: Schema,
        evaluations: Evaluations,
        *,
        deadline: Deadline = NEVER,
        on_fault: OnFault = "raise",
    ) -> None:
        self.model = model
        self.evaluations = evaluations
        self.deadline = deadline
        self.on_fault: OnFault = on_fault
        self.faults: list[str] = []
        self.known = Known(len(schema.names))
        self._layout: Layout | None = None
        evaluations.claim(tuple(schema.places), model.name)
        if evaluations.layout is not None:
            self._recall(schema)

    def _recall(self, schema: Schema) -> None:
        """Take over what earlier calls have learnt, as codes."""
        rows, outputs = self.evaluations.rows, self.evaluations.outputs
        assert rows is not None
        if self.on_fault == "raise":
            # A fault of an earlier call may be gone: only who skips faults takes them over.
            scored = np.flatnonzero(np.isfinite(outputs))
            rows, outputs = pick(rows, scored), outputs[scored]
        codes, fits = _codes(schema, rows)
        # The first output of a row is kept: a model that answers twice is asked once.
        keys = row_keys(codes)
        first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
        kept = np.array(sorted(first.values()), dtype=np.intp)
        self.known.extend([keys[i] for i in kept], codes[kept], outputs[fits][kept])

    @property
    def X(self) -> Array:
        """Codes ``(n, d)`` of all rows with an output: the paper's D_n."""
        known = self.known
        return known.codes[~np.isnan(known.outputs)] if known.any_faults else known.codes

    @property
    def y(self) -> Array:
        """Outputs ``(n,)`` of the rows of `X`."""
        known = self.known
        return known.outputs[~np.isnan(known.outputs)] if known.any_faults else known.outputs

    def evaluate_many(self, requests: Sequence[tuple[Account, Array]]) -> list[Scores]:
        """Score the rows of several questions, codes ``(n, d)`` each, in one model call.

        A row that two questions ask for is paid by the first. A question without budget for all
        its new rows gets the first of them, and ``stopped`` says so.
        """
        asked = [(account, X, row_keys(X)) for account, X in requests]
        # Once is enough unless a batch failed and its owner could not pay for a second look.
        while not self.deadline.passed and (batch := self._unknown(asked)) is not None:
            self._score(batch)
        scores = []
        for account, _, keys in asked:
            places = np.fromiter(map(self.known.index.get, keys, repeat(-1)), np.intp, len(keys))
            found, y = places >= 0, np.full(len(keys), np.nan)
            y[found] = self.known.outputs[places[found]]
            why: Reason = "timeout" if account.left > 0 else "budget"
            scores.append(Scores(y, None if found.all() else why))
        return scores

    def _unknown(self, asked: Sequence[tuple[Account, Array, list[bytes]]]) -> _Batch | None:
        """Return the rows to be sent, as far as the accounts allow."""
        new: dict[bytes, Account] = {}
        parts, tables = [], []
        for account, X, keys in asked:
            chosen: list[int] = []
            left = account.left
            for i, key in enumerate(keys):
                if len(chosen) == left:
                    break
                if key not in new and key not in self.known.index:
                    new[key] = account
                    chosen.append(i)
            if chosen:
                parts.append(X[chosen])
                tables.append(account.region.rows(X[chosen]))
        if not parts:
            return None
        return _Batch(list(new), np.concatenate(parts), join(tables), list(new.values()))

    def _score(self, batch: _Batch) -> None:
        """Send a batch to the model, keep what it says, and deal with faults."""
        for owner in batch.owners:
            owner.spent += 1
        try:
            y = self.model.scores(batch.rows)
        except Exception as error:
            if self.on_fault == "raise":
                vars(error)["evaluations"] = self.evaluations
                raise
            self._skip(batch, error)
            return
        finite = np.isfinite(y)
        if finite.all():
            self._record(batch, y)
        elif self.on_fault == "skip":
            for i in np.flatnonzero(~finite).tolist():
                self.faults.append(str(self.model.fault(batch.rows, i, y[i])))
            self._record(batch, np.where(finite, y, np.nan))
        else:
            if finite.any():
                self._record(batch.take(np.flatnonzero(finite)), y[finite])
            bad = int(np.argmin(finite))
            fault = self.model.fault(batch.rows, bad, y[bad])
            vars(fault)["evaluations"] = self.evaluations
            raise fault

    def _skip(self, batch: _Batch, error: Exception) -> None:
        """Find out which rows of a failed batch fail; each is sent, and counted, once more."""
        if len(batch.keys) == 1:
            self.faults.append(f"{type(error).__name__}: {error}")
            self._record(batch, np.array([np.nan]))
            return
        for i, owner in enumerate(batch.owners):
            if owner.left > 0 and not self.deadline.passed:
                self._score(batch.take(np.array([i])))

    def _record(self, batch: _Batch, y: Array) -> None:
        if self._layout is None:
            self._layout = Layout.of(batch.rows)
        self.evaluations.append(batch.rows, y, layout=self._layout)
        places = self.known.extend(batch.keys, batch.X, y)
        for place, owner in zip(places, batch.owners, strict=True):
            owner.paid.append(place)


class Account:
    """One question's share of an `Evaluator`: where it may look, and how many rows it may send."""

    def __init__(self, evaluator: Evaluator, region: Region, budget: int) -> None:
        self.evaluator = evaluator
        self.region = region
        self.budget = budget
        self.spent = 0  # rows sent to the model so far
        self.paid: list[int] = []  # where in `evaluator.known` those scored for this question are
        self.after: Callable[[], object] | None = None  # called after each call of `evaluate`
        self._inside: Mask = np.empty(0, dtype=np.bool_)

    @property
    def left(self) -> int:
        """How many rows may still be sent."""
        return self.budget - self.spent

    def evaluate(self, X: Array) -> Array:
        """Return the outputs ``(n,)`` of codes ``(n, d)``; rows known already cost nothing.

        Raises `Stop` if budget or time does not suffice for all rows; those scored are kept.
        """
        spent = self.spent
        (scores,) = self.evaluator.evaluate_many([(self, X)])
        if self.after is not None and self.spent > spent:
            self.after()
        if scores.stopped is not None:
            raise Stop(scores.stopped, scores.y)
        return scores.y

    def inside(self) -> Mask:
        """Return which of ``evaluator.known`` lie in this question's region, faults excluded."""
        known, seen = self.evaluator.known, len(self._inside)
        if len(known.outputs) > seen:
            fresh = self.region.contains(known.codes[seen:]) & ~np.isnan(known.outputs[seen:])
            self._inside = np.concatenate([self._inside, fresh])
        return self._inside


def _codes(schema: Schema, rows: Rows) -> tuple[Array, Indices]:
    """Return the codes of the rows that fit, and which they are.

    Halving finds the few that do not fit without trying each row on its own.
    """
    try:
        return schema.encode(rows), np.arange(len(rows))
    except QueryError:
        if len(rows) == 1:
            return np.empty((0, len(schema.names))), np.arange(0)
    half = len(rows) // 2
    first, where_first = _codes(schema, pick(rows, np.arange(half)))
    second, where_second = _codes(schema, pick(rows, np.arange(half, len(rows))))
    return np.concatenate([first, second]), np.concatenate([where_first, where_second + half])
