"""The evaluator scores rows, counts them against budgets, and records them.

An :class:`Evaluator` stands between searches and the model. It works on codes, sends only rows that
have not been scored, in one model call, and counts every row against the budget of the question
that asked for it. To the evaluator a question is an :class:`Account`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys, same_codes
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import Rows, pick
from bayescfx.deadline import time_limit
from bayescfx.errors import EvaluationsError, OutOfTime, attach
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Known, Snapshot, mark
from bayescfx.evaluations.section import Kept
from bayescfx.models.identity import ModelIdentity
from bayescfx.models.model import Model
from bayescfx.space.region import Region

OnFault: TypeAlias = Literal["raise", "skip"]
#: Why a search has stopped.
Stopped: TypeAlias = Literal[
    "nothing nearer expected",
    "proven",
    "budget",
    "exhausted",
    "unreachable",
    "converged",
    "timeout",
    "interrupted",
    "fault",
    "already met",
]


class Stop(Exception):
    """The budget or the time does not suffice for all rows of a request.

    Parameters
    ----------
    stopped : str
        ``"budget"`` or ``"timeout"``.
    y : ndarray of shape (n,)
        The outputs; nan for rows that were not scored.
    """

    def __init__(self, stopped: Stopped, y: Array) -> None:
        super().__init__(f"stopped by the {stopped}")
        self.stopped: Stopped = stopped
        self.y = y


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The outputs for one question's request."""

    y: Array  # (n,), nan for a fault and for a row that was not scored
    stopped: Stopped | None  # "budget" or "timeout" if some rows were not scored


@dataclass(frozen=True, slots=True, eq=False)
class _NewRows:
    """Rows that have not been scored, with the account charged for each."""

    X: Array
    keys: list[bytes]
    rows: Rows
    payers: list[Account]

    def take(self, chosen: Sequence[int]) -> _NewRows:
        """Return some of the rows."""
        return _NewRows(
            X=self.X[chosen],
            keys=[self.keys[i] for i in chosen],
            rows=pick(self.rows, np.array(chosen)),
            payers=[self.payers[i] for i in chosen],
        )


class Evaluator:
    """Answer requests for outputs from the scored rows or from the model.

    Parameters
    ----------
    model : Model
        The model.
    schema : Schema
        The meaning of the codes.
    evaluations : Evaluations
        Where scored rows are recorded.
    snapshot : Snapshot, optional
        The evaluations that may be reused; by default all that `evaluations` holds. Rows that do
        not fit the schema are left out.
    on_fault : {"raise", "skip"}, default "raise"
        Where the model fails: raise its error with ``.evaluations`` attached, or record nan for
        the row, which is then never sent again.

    Attributes
    ----------
    faults : list of str
        The messages of skipped faults.
    known : Known
        All scored rows as codes.
    queries : list of Own
        The queries of all accounts.
    """

    def __init__(
        self,
        model: Model,
        schema: Schema,
        evaluations: Evaluations,
        snapshot: Snapshot | None = None,
        *,
        on_fault: OnFault = "raise",
    ) -> None:
        if snapshot is None:
            evaluations = evaluations.claim(tuple(schema.places), ModelIdentity(model.name))
            snapshot = evaluations.begin()
        self.model = model
        self.evaluations = evaluations
        self.on_fault: OnFault = on_fault
        self._is_required = False
        self.faults: list[str] = []
        self.known = Known(len(schema.names), snapshot.known(schema, faults=on_fault == "skip"))
        self.queries: list[Own] = []
        self._schema = schema
        self._all_queries: Own | None = None  # the queries as one table
        # Rows added to a file meanwhile are this model's if its name or content says so, or if the
        # run is resumed.
        self._reads_file = snapshot.resumed or evaluations.is_identified
        self._must_verify_file = not evaluations.is_identified

    def rows(self, X: Array, queries: Indices) -> Rows:
        """Return the user's rows for codes ``(n, d)``, with the cells of their queries ``(n,)``."""
        if self._all_queries is None or len(self._all_queries.codes) < len(self.queries):
            self._all_queries = Own.of_all(self.queries)
        return self._schema.rows(X, self._all_queries, queries)

    def evaluate_many(
        self, requests: Sequence[tuple[Account, Array]], *, is_required: bool = False
    ) -> list[Scores]:
        """Score the rows of several questions, codes ``(n, d)`` each, in one model call.

        A row that two questions ask for is charged to the first. A question without budget for all
        its new rows gets the first of them, and ``stopped`` gives the reason. No model call starts
        after the time limit. With `is_required`, a model call that the time limit has ended is an
        error.
        """
        self._is_required = is_required
        keyed_requests = [(account, X, account.keys(X)) for account, X in requests]
        # One call is enough unless it failed and an account could not pay for a retry.
        while not time_limit.get().passed:
            new = self._collect_new(keyed_requests)
            if new is None or self._score(new):
                break
        return [self._scores_of(account, keys) for account, _, keys in keyed_requests]

    def _scores_of(self, account: Account, keys: list[bytes]) -> Scores:
        """Return the outputs of rows, by their keys, and note that `account` asked for them."""
        places = self.known.find(keys)
        is_scored = places >= 0
        y = np.full(len(keys), np.nan)
        account.asked.append(places[is_scored])
        y[is_scored] = self.known.take(account.asked[-1])[1]
        if is_scored.all():
            return Scores(y, None)
        return Scores(y, "timeout" if account.left > 0 else "budget")

    def _collect_new(
        self, requests: Sequence[tuple[Account, Array, list[bytes]]]
    ) -> _NewRows | None:
        """Return the rows to be sent, as far as the budgets allow; None if there are none."""
        payers: dict[bytes, Account] = {}  # by key
        parts: list[Array] = []
        known = self.known.index
        older = self.known.older_index
        for account, X, keys in requests:
            first: dict[bytes, int] = {}  # positions of new rows by key
            for i, key in enumerate(keys):
                if key not in known and key not in older and key not in payers:
                    first.setdefault(key, i)
            chosen = dict(islice(first.items(), max(account.left, 0)))
            payers |= dict.fromkeys(chosen, account)
            parts.append(X[list(chosen.values())])
        if not payers:
            return None
        X = np.concatenate(parts)
        queries = np.array([account.query_number for account in payers.values()])
        return _NewRows(X, list(payers), self.rows(X, queries), list(payers.values()))

    def _score(self, new: _NewRows, *, is_retry: bool = False) -> bool:
        """Send rows to the model and record them; return whether all of them were scored."""
        for account, n_rows in Counter(new.payers).items():
            account.spent += n_rows
        # Rows that the file has by now, mostly from an earlier run of this call that was cut
        # short, are not sent; everything else is as if they were.
        kept = self._read_file(new.rows) if self._reads_file else {}
        if len(new.keys) > 1 and any(row.apart for row in kept.values()):
            return self._score_one_by_one(new)  # the model failed for these rows before
        try:
            y = self._outputs(new.rows, kept)
            is_finite = np.isfinite(y)
            if self.on_fault == "raise" and not is_finite.all():
                self._raise_fault(new, y)
        except Exception as error:
            return self._recover(new, error, is_retry)
        faults = {} if is_finite.all() else self._faults(new.rows, y, kept)
        y = np.where(is_finite, y, np.nan)
        self._record(new, y, faults, is_retry, is_new=len(kept) < len(y))
        return True

    def _faults(self, rows: Rows, y: Array, kept: Mapping[int, Kept]) -> dict[int, str]:
        """Return the messages of outputs ``(n,)`` that are not finite, by position."""
        return {
            i: str(kept[i].fault if i in kept else self.model.fault(rows, i, y[i]))
            for i in np.flatnonzero(~np.isfinite(y)).tolist()
        }

    def _recover(self, new: _NewRows, error: Exception, is_retry: bool) -> bool:
        """Raise the error of a model call, or find the rows to blame; return whether all have been.

        A model call that the time limit has ended is no error, unless its rows are required.
        """
        is_late = isinstance(error, OutOfTime) and time_limit.get().passed
        if is_late and not self._is_required:
            return False
        if self.on_fault == "raise":
            attach(error, evaluations=self.evaluations)
            raise error
        if len(new.keys) > 1:
            return self._score_one_by_one(new)
        self._record(new, np.array([np.nan]), {0: f"{type(error).__name__}: {error}"}, is_retry)
        return True

    def _raise_fault(self, new: _NewRows, y: Array) -> None:
        """Record the finite outputs, and raise the error of the first that is not finite."""
        is_finite = np.isfinite(y)
        if is_finite.any():
            self._record(new.take(np.flatnonzero(is_finite).tolist()), y[is_finite])
        first = int(np.argmin(is_finite))
        raise self.model.fault(new.rows, first, y[first])

    def _outputs(self, rows: Rows, kept: Mapping[int, Kept]) -> Array:
        """Return outputs ``(n,)``, from the model for all rows that the file does not have."""
        if not kept:
            return self.model.scores(rows)
        y = np.full(len(rows), np.nan)
        y[list(kept)] = np.array([row.output for row in kept.values()], dtype=np.float64)
        new = np.setdiff1d(np.arange(len(y)), list(kept))
        if len(new):
            y[new] = self.model.scores(pick(rows, new))
        return y

    def _read_file(self, rows: Rows) -> dict[int, Kept]:
        """Return what the file has of some rows, by position; verify one of them the first time."""
        kept = self.evaluations.find(rows)
        scored = {i: Kept(row.output) for i, row in kept.items() if row.output is not None}
        if self._must_verify_file and scored:
            self._must_verify_file = False
            self._verify(rows, scored)
        return scored if self.on_fault == "raise" else kept  # a fault may be gone by now

    def _verify(self, rows: Rows, scored: Mapping[int, Kept]) -> None:
        """Raise unless the model gives the output that the file has for the first scored row."""
        i = next(iter(scored))
        row = pick(rows, np.array([i]))
        then = float(scored[i].output or 0.0)
        now = self.model.scores(row)[0]
        if not np.isclose(now, then, rtol=1e-4, atol=1e-12):
            advice = "; if it is not deterministic, name it with Evaluations.open(path, model=...)"
            raise other_model_error(now, then, self.model.describe(row, 0), advice)

    def _score_one_by_one(self, new: _NewRows) -> bool:
        """Find the rows that fail, when some of them do; each is sent, and counted, once more."""
        for i, account in enumerate(new.payers):
            if account.left > 0 and not time_limit.get().passed:
                self._score(new.take([i]), is_retry=True)
        return False

    def _record(
        self,
        new: _NewRows,
        y: Array,
        faults: Mapping[int, str] = MappingProxyType({}),
        is_retry: bool = False,
        *,
        is_new: bool = True,
    ) -> None:
        """Record outputs ``(n,)``, in the file first; rows that cannot be written count as scored.

        `is_retry` marks rows that were sent alone because a model call failed as a whole.
        """
        self.faults += faults.values()
        messages = list(map(faults.get, range(len(y))))
        try:
            if is_new:
                self.evaluations.keep(new.rows, y, self.model.origin, messages, is_retry)
        except Exception as error:
            attach(error, evaluations=self.evaluations)
            raise
        finally:
            start = self.known.extend(new.X, y, new.keys)
            for place, account in enumerate(new.payers, start):
                account.paid.append(place)


class Account:
    """What the evaluator keeps for one question: its region, its budget and the rows it asked for.

    Parameters
    ----------
    evaluator : Evaluator
        Scores the rows.
    region : Region
        The rows that are allowed, and the query.
    budget : int
        The number of rows that may be sent to the model.

    Attributes
    ----------
    query_number : int
        The number of its query in the evaluator.
    n_known_before : int
        The number of rows in ``evaluator.known`` when the question was made.
    spent : int
        Rows that count against the budget so far: sent to the model, or replayed for this run.
    reserved : int
        Rows that are kept for later, and not part of the budget until then.
    paid : list of int
        Places in ``evaluator.known`` of the rows that were scored for this question.
    asked : list of ndarray
        Places of all rows that it asked for, request by request.
    after : callable or None
        Called after each model call of `evaluate`.
    """

    def __init__(self, evaluator: Evaluator, region: Region, budget: int) -> None:
        self.evaluator = evaluator
        self.region = region
        self.budget = budget
        self.query_number = len(evaluator.queries)
        evaluator.queries.append(region.own)
        self.n_known_before = len(evaluator.known)
        self.spent = 0
        self.reserved = 0
        self.paid: list[int] = []
        self.asked: list[Indices] = []
        self.after: Callable[[], object] | None = None
        self._odd_columns = region.schema.odd(region.own.cells, region.own.codes)

    @property
    def whole_budget(self) -> int:
        """The budget with the rows that are kept for later."""
        return self.budget + self.reserved

    @property
    def left(self) -> int:
        """The number of rows that may be sent now."""
        return self.budget - self.spent

    def evaluate(self, X: Array) -> Array:
        """Return outputs ``(n,)`` of codes ``(n, d)``; raise `Stop` if some can't be had."""
        spent_before = self.spent
        (scores,) = self.evaluator.evaluate_many([(self, X)])
        if self.after is not None and self.spent > spent_before:
            self.after()
        if scores.stopped is not None:
            raise Stop(scores.stopped, scores.y)
        return scores.y

    def scored(self, places: Indices, X: Array, y: Array) -> Mask:
        """Return which scored rows have an output, and the same odd cells as this query."""
        has_output = ~np.isnan(y)
        marks = self.evaluator.known.marks
        counts = has_output.copy()
        if marks:
            counts &= ~np.isin(places, np.fromiter(marks, np.intp, len(marks)))
        for i, own_mark in self.marks(X).items():
            counts[i] = has_output[i] and marks.get(int(places[i])) == own_mark
        return counts

    def keys(self, X: Array) -> list[bytes]:
        """Return the keys of this query's rows ``(n, d)``, with their odd cells."""
        keys = row_keys(X)
        for i, odd_cells in self.marks(X).items():
            keys[i] += odd_cells
        return keys

    def marks(self, X: Array) -> dict[int, bytes]:
        """Return the odd cells of this query's rows ``(n, d)`` by position; most have none."""
        found: dict[int, bytes] = {}
        own = self.region.own
        for column in self._odd_columns:
            j = self.region.schema.feature_at[column]
            for i in np.flatnonzero(same_codes(X[:, j], own.codes[0, j])).tolist():
                found[i] = found.get(i, b"") + mark(column, own.cells[column][0])
        return found


def other_model_error(now: float, then: float, row: str, advice: str = "") -> EvaluationsError:
    """Return the error for evaluations whose outputs another model gave."""
    return EvaluationsError(
        f"`evaluations` must hold outputs of this model; it gives {float(now)!r} where they "
        f"have {float(then)!r}, for {row}.",
        parameter="evaluations",
        advice="If the model has changed, use another store, or empty this one with "
        f"Evaluations.forget(){advice}.",
    )
