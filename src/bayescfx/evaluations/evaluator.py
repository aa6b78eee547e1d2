"""Who may still ask the model, and what is known already.

The evaluator stands between a search and the model. It works on codes (``docs/architecture.md``),
asks the model only for rows that nobody has asked for before, in one call per batch, and counts
every row sent against the budget of the question that asked. Several questions to one model share
one :class:`Evaluator`, each with its own :class:`Account`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


class Stop(Exception):
    """The budget or the time does not suffice for all the rows asked for.

    Parameters
    ----------
    reason : {"budget", "timeout"}
        Which of the two.
    y : ndarray of shape (n,)
        Outputs of the rows asked for; nan where there is none.
    """

    def __init__(self, reason: Reason, y: Array) -> None:
        super().__init__(f"stopped by the {reason}")
        self.reason = reason
        self.y = y


@dataclass(frozen=True, slots=True)
class Scores:
    """The answer to one question's request.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Outputs of the rows asked for; nan for a fault and for a row not scored any more.
    stopped : {"budget", "timeout"}, optional
        Why some rows were not scored.
    """

    y: Array
    stopped: Reason | None


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows that nobody knows yet, with who pays for each."""

    keys: list[bytes]
    X: Array
    rows: Rows
    owners: list[Account]

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, chosen: Indices) -> _Batch:
        """Return some of the rows."""
        return _Batch(
            [self.keys[i] for i in chosen],
            self.X[chosen],
            pick(self.rows, chosen),
            [self.owners[i] for i in chosen],
        )


class Evaluator:
    """Answer requests for outputs from what is known or from the model.

    Parameters
    ----------
    model : Model
        The model.
    schema : Schema
        The user's table: what `evaluations` holds already is known by its codes.
    evaluations : Evaluations
        Where everything scored is kept; rows that do not fit the schema are left alone.
    deadline : Deadline, optional
        No model call starts after it.
    on_fault : {"raise", "skip"}, default "raise"
        What to do with rows for which the model fails: raise, with ``.evaluations`` attached to
        the error, or give them the output nan, and never ask for them again.

    Examples
    --------
    >>> from bayescfx.features import Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1)}).around({"a": 0.5})
    >>> model = Model(lambda rows: 2 * rows["a"])
    >>> account = Evaluator(model, region.schema, Evaluations()).account(region, budget=10)
    >>> account.evaluate(np.array([[0.5], [0.25], [0.5]])), account.spent
    (array([1. , 0.5, 1. ]), 2)
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
        self.rows_sent = 0
        self.faults: list[str] = []
        self.known = Known(len(schema.names))
        self._layout: Layout | None = None
        evaluations.claim(tuple(column.name for column in schema.columns), model.name)
        self._recall(schema)

    def _recall(self, schema: Schema) -> None:
        """Take over what earlier calls have learnt, as codes."""
        rows, outputs = self.evaluations.rows, self.evaluations.outputs
        if rows is None:
            return
        if self.on_fault == "raise":
            # A fault of an earlier call may be gone: only who skips faults takes them over.
            scored = np.flatnonzero(np.isfinite(outputs))
            rows, outputs = pick(rows, scored), outputs[scored]
        codes, fits = _codes(schema, rows)
        # The first output of a row is kept: a model that answers twice is asked once.
        first = {key: i for i, key in reversed(list(enumerate(row_keys(codes))))}
        kept = np.array(sorted(first.values()), dtype=np.intp)
        self.known.extend(row_keys(codes[kept]), codes[kept], outputs[fits][kept])

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

    def account(self, region: Region, budget: int) -> Account:
        """Open a question's account."""
        return Account(self, region, budget)

    def evaluate_many(self, requests: Sequence[tuple[Account, Array]]) -> list[Scores]:
        """Score the rows of several questions in one model call.

        A row that two questions ask for is paid by the first. A question without budget for all
        its new rows gets the first of them, and ``stopped`` says so.

        Parameters
        ----------
        requests : sequence of (Account, ndarray of shape (n, d))
            Who asks, and for which codes.

        Returns
        -------
        list of Scores
            One per request, in order.
        """
        asked = [(account, X, row_keys(X)) for account, X in requests]
        # Once is enough unless a batch failed and its owner could not pay for a second look.
        while not self.deadline.passed and (batch := self._unknown(asked)) is not None:
            self._score(batch)
        return [account.receive(keys) for account, _, keys in asked]

    def _unknown(self, asked: Sequence[tuple[Account, Array, list[bytes]]]) -> _Batch | None:
        """Return the rows to be sent, as far as the accounts allow."""
        new: dict[bytes, Account] = {}
        parts: list[tuple[Account, Array]] = []
        for account, X, keys in asked:
            chosen: list[int] = []
            for i, key in enumerate(keys):
                if len(chosen) == account.left:
                    break
                if key not in new and self.known.find(key) is None:
                    new[key] = account
                    chosen.append(i)
            if chosen:
                parts.append((account, X[chosen]))
        if not parts:
            return None
        rows = join([account.region.rows(X) for account, X in parts])
        return _Batch(list(new), np.concatenate([X for _, X in parts]), rows, list(new.values()))

    def _score(self, batch: _Batch) -> None:
        """Send a batch to the model, and deal with faults."""
        try:
            y = self._ask(batch)
        except Exception as error:
            if self.on_fault == "raise":
                vars(error)["evaluations"] = self.evaluations
                raise
            self._score_singly(batch)
            return
        finite = np.isfinite(y)
        if self.on_fault == "skip" or finite.all():
            self._record(batch, y)
            return
        self._record(batch.take(np.flatnonzero(finite)), y[finite])
        bad = int(np.argmin(finite))
        fault = self.model.fault(batch.rows, bad, y[bad])
        vars(fault)["evaluations"] = self.evaluations
        raise fault

    def _score_singly(self, batch: _Batch) -> None:
        """Find out which rows of a failed batch fail; each is sent, and counted, once more."""
        for i, owner in enumerate(batch.owners):
            if owner.left > 0 and not self.deadline.passed:
                one = batch.take(np.array([i]))
                self._record(one, self._ask(one))

    def _ask(self, batch: _Batch) -> Array:
        """Return the model's outputs; where faults are skipped, those of faulty rows are nan."""
        self.rows_sent += len(batch)
        for owner in batch.owners:
            owner.spent += 1
        skip = self.on_fault == "skip"
        try:
            y = self.model.scores(batch.rows)
        except Exception as error:
            if not skip or len(batch) > 1:
                raise
            self.faults.append(f"{type(error).__name__}: {error}")
            return np.array([np.nan])
        if skip:
            for i in np.flatnonzero(~np.isfinite(y)):
                self.faults.append(str(self.model.fault(batch.rows, int(i), y[i])))
                y[i] = np.nan
        return y

    def _record(self, batch: _Batch, y: Array) -> None:
        if len(batch) == 0:
            return
        if self._layout is None:
            self._layout = Layout.of(batch.rows)
        self.evaluations.append(batch.rows, y, layout=self._layout)
        places = self.known.extend(batch.keys, batch.X, y)
        for place, owner in zip(places, batch.owners, strict=True):
            owner.paid.append(place)


class Account:
    """One question's share of an :class:`Evaluator`.

    Parameters
    ----------
    evaluator : Evaluator
        What is known, and the model.
    region : Region
        Where this question may look.
    budget : int
        How many single rows it may send to the model.

    Attributes
    ----------
    spent : int
        Rows sent to the model so far.
    paid : list of int
        Positions, in ``evaluator.known``, of the rows scored for this question, in order.
    after : callable, optional
        Called after each model call of `evaluate`.
    """

    def __init__(self, evaluator: Evaluator, region: Region, budget: int) -> None:
        self.evaluator = evaluator
        self.region = region
        self.budget = budget
        self.spent = 0
        self.paid: list[int] = []
        self.after: Callable[[], object] | None = None
        self._inside: Mask = np.empty(0, dtype=np.bool_)

    @property
    def left(self) -> int:
        """How many rows may still be sent."""
        return self.budget - self.spent

    def evaluate(self, X: Array) -> Array:
        """Return the outputs of codes; rows known already cost nothing.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Codes.

        Returns
        -------
        ndarray of shape (n,)
            Outputs; nan for a fault that was skipped.

        Raises
        ------
        Stop
            If budget or time does not suffice for all rows; those scored are kept.
        """
        spent = self.spent
        (scores,) = self.evaluator.evaluate_many([(self, X)])
        if self.after is not None and self.spent > spent:
            self.after()
        if scores.stopped is not None:
            raise Stop(scores.stopped, scores.y)
        return scores.y

    def receive(self, keys: Sequence[bytes]) -> Scores:
        """Return what is known of the rows asked for."""
        known = self.evaluator.known
        found = [known.find(key) for key in keys]
        y = np.array([np.nan if i is None else known.outputs[i] for i in found])
        if None not in found:
            return Scores(y, None)
        return Scores(y, "timeout" if self.left > 0 else "budget")

    def inside(self) -> Mask:
        """Return which of ``evaluator.known`` lie in this question's region, faults excluded."""
        known, seen = self.evaluator.known, len(self._inside)
        if len(known) > seen:
            fresh = self.region.contains(known.codes[seen:]) & ~np.isnan(known.outputs[seen:])
            self._inside = np.concatenate([self._inside, fresh])
        return self._inside

    @property
    def X(self) -> Array:
        """Codes ``(n, d)`` of everything known inside the region, whoever asked for it."""
        return self.evaluator.known.codes[self.inside()]

    @property
    def y(self) -> Array:
        """Outputs ``(n,)`` of the rows of `X`."""
        return self.evaluator.known.outputs[self.inside()]


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
