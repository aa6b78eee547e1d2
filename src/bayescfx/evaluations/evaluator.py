"""Who may still ask the model, and what is known already.

An :class:`Evaluator` stands between searches and the model. It works on codes, asks only for rows
that nobody has asked for before, in one call per batch, and counts every row sent against the
budget of the question that asked, which has an :class:`Account`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask, row_keys, same_codes
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import EvaluationsError, OutOfTime, QueryError
from bayescfx.evaluations.data import Evaluations, Past
from bayescfx.model.model import Model
from bayescfx.space.region import Region
from bayescfx.space.schema import Own, Schema
from bayescfx.tables import Layout, Rows, identical, pick

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
    accounts: list[Account]
    payer: Indices  # (n,) positions in `accounts`

    def take(self, chosen: Indices) -> _Batch:
        keys = [self.keys[i] for i in chosen.tolist()]
        rows, payer = pick(self.rows, chosen), self.payer[chosen]
        return _Batch(self.X[chosen], keys, rows, self.accounts, payer)


class Known:
    """Codes ``(n, d)`` and outputs ``(n,)``, nan for a fault; `index` finds a place by its key.

    The first of them may be an `older` one's, which many share and which grows no more.
    """

    def __init__(self, d: int, older: Known | None = None) -> None:
        self._X, self._y = np.empty((64, d)), np.empty(64)
        self._older, self._start, self._n = older, 0 if older is None else len(older), 0
        self.index: dict[bytes, int] = {}
        self.older_index: dict[bytes, int] = {} if older is None else older.index
        # By place: the odd cells of a row, if it has any; and the keys of these rows without them.
        self.marks: dict[int, bytes] = {} if older is None else dict(older.marks)
        self._marked: set[bytes] = set() if older is None else set(older._marked)
        self._last: tuple[Indices, Array, Array] | None = None  # what was taken last

    def __len__(self) -> int:
        return self._start + self._n

    @property
    def outputs(self) -> Array:
        """All outputs ``(n,)``."""
        return np.concatenate([y for _, _, y in self.parts()])

    def parts(self, start: int = 0) -> Iterator[tuple[int, Array, Array]]:
        """Yield all from a place on: places where parts begin, their codes and outputs."""
        if self._older is not None and start < self._start:
            yield from self._older.parts(start)
        first = max(start - self._start, 0)
        yield self._start + first, self._X[first : self._n], self._y[first : self._n]

    def take(self, places: Indices) -> tuple[Array, Array]:
        """Return codes and outputs, not to be written to; gathered once for the same `places`."""
        last = self._last  # threads may share it
        if last is None or last[0] is not places:
            own = places >= self._start
            at = places[own] - self._start
            X, y = self._X[at], self._y[at]
            if self._older is not None and not own.all():
                both = np.empty((len(places), X.shape[1])), np.empty(len(places))
                for whole, mine, theirs in zip(
                    both, (X, y), self._older.take(places[~own]), strict=True
                ):
                    whole[own], whole[~own] = mine, theirs
                X, y = both
            X.flags.writeable = y.flags.writeable = False
            self._last = last = places, X, y
        return last[1], last[2]

    def find(self, keys: list[bytes]) -> Indices:
        """Return the places ``(n,)`` of rows by their keys, -1 where they are not known."""
        places = np.fromiter(map(self.index.get, keys, repeat(-1)), np.intp, len(keys))
        if self.older_index:
            for i in np.flatnonzero(places < 0).tolist():
                places[i] = self.older_index.get(keys[i], -1)
        return places

    def holds(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` were evaluated, with whatever odd cells."""
        keys = row_keys(X)
        found = self.find(keys) >= 0
        if self._marked:
            found |= np.fromiter(map(self._marked.__contains__, keys), np.bool_, len(keys))
        return found

    def extend(self, X: Array, y: Array, keys: list[bytes]) -> int:
        """Add rows that are new, each once, with their keys; return where the first one is."""
        begin, stop = self._n, self._n + len(y)
        if stop > len(self._y):
            more = max(stop, 2 * begin) - begin
            self._X = np.concatenate([self._X[:begin], np.empty((more, self._X.shape[1]))])
            self._y = np.concatenate([self._y[:begin], np.empty(more)])
        self._X[begin:stop], self._y[begin:stop], self._n = X, y, stop
        start = self._start + begin
        self.index.update(zip(keys, range(start, start + len(y)), strict=True))
        width = X.shape[1] * X.itemsize
        if max(map(len, keys), default=0) > width:
            self.marks |= {start + i: key[width:] for i, key in enumerate(keys) if key[width:]}
            self._marked |= {key[:width] for key in keys if key[width:]}
        return start


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
        older = past.recalled.get((schema, on_fault))
        if older is None and past.rows is not None:  # as codes once for all searches of a call
            older = _recalled(schema, past.rows, past.outputs, on_fault)
            past.recalled.clear()
            past.recalled[schema, on_fault] = older
        self.known = Known(len(schema.names), older)

    def evaluate_many(self, requests: Sequence[tuple[Account, Array]]) -> list[Scores]:
        """Score the rows of several questions, codes ``(n, d)`` each, in one model call.

        A row that two questions ask for is paid by the first. A question without budget for all
        its new rows gets the first of them, and ``stopped`` says so.
        """
        asked = []
        for account, X in requests:
            keys = row_keys(X)
            if account.odd:
                keys = [key + mark for key, mark in zip(keys, account.marks(X), strict=True)]
            asked.append((account, X, keys))
        # Once is enough unless a batch failed and its owner could not pay for a second look.
        while not self.deadline.passed and (batch := self._unknown(asked)) is not None:
            self._score(batch)
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
        new: dict[bytes, int] = {}  # by key, who pays
        accounts, places, parts, known = [], [], [], self.known
        for k, (account, X, keys) in enumerate(asked):
            chosen: list[int] = []
            left = account.left
            for i, key in enumerate(keys):
                if len(chosen) == left:
                    break
                if key not in known.index and key not in known.older_index and key not in new:
                    new[key] = k
                    chosen.append(i)
            accounts.append(account)
            places.append(account.place)
            parts.append(X[chosen])
        if not new:
            return None
        payer, X = np.fromiter(new.values(), np.intp, len(new)), np.concatenate(parts)
        whose = np.array(places)[payer]
        if self._own is None:
            self._own = Own.of_all(self._queries)
        return _Batch(X, list(new), self._schema.rows(X, self._own, whose), accounts, payer)

    def join(self, query: Own) -> int:
        """Let one more query ask, and return its number."""
        self._queries.append(query)
        self._own = None
        return len(self._queries) - 1

    def _score(self, batch: _Batch, *, apart: bool = False) -> None:
        """Send a batch to the model, keep what it says, and deal with faults.

        Rows that a file has got meanwhile, most often from this very run before it was cut short,
        are not sent, but all else is as if they were.
        """
        counts = np.bincount(batch.payer, minlength=len(batch.accounts)).tolist()
        for account, n in zip(batch.accounts, counts, strict=True):
            account.spent += n
        told = self._told(batch) if self._replays else {}
        if told and len(batch.payer) > 1 and any(again for *_, again in told.values()):
            self._skip(batch, None)  # the model failed for the batch before
            return
        try:
            y = self._rest(batch, told) if told else self.model.scores(batch.rows)
        except Exception as error:
            if isinstance(error, OutOfTime) and self.deadline.passed:
                return
            if self.on_fault == "raise":
                vars(error)["evaluations"] = self.evaluations
                raise
            self._skip(batch, error, apart=apart)
            return
        finite = np.isfinite(y)
        faults: list[str | None] = [None] * len(y)
        for i in np.flatnonzero(~finite).tolist():
            fault = self.model.fault(batch.rows, i, y[i])
            if self.on_fault == "raise":
                if finite.any():
                    self._record(batch.take(np.flatnonzero(finite)), y[finite])
                vars(fault)["evaluations"] = self.evaluations
                raise fault
            faults[i] = told[i][1] if i in told else str(fault)
            self.faults.append(str(faults[i]))
        self._record(
            batch, np.where(finite, y, np.nan), faults, apart=apart, new=len(told) < len(y)
        )

    def _rest(
        self, batch: _Batch, told: Mapping[int, tuple[float | None, str | None, bool]]
    ) -> Array:
        """Return outputs ``(n,)``; those that the file has not are the model's."""
        y = np.full(len(batch.payer), np.nan)
        y[list(told)] = np.array([output for output, *_ in told.values()], dtype=np.float64)
        new = np.setdiff1d(np.arange(len(y)), list(told))
        if len(new):
            y[new] = self.model.scores(pick(batch.rows, new))
        return y

    def _told(self, batch: _Batch) -> dict[int, tuple[float | None, str | None, bool]]:
        """Return what the file has of a batch, by position; the first time it may be doubted."""
        told = self.evaluations.told(batch.rows)
        if self.on_fault == "raise":  # a fault may be gone by now
            told = {i: (y, None, False) for i, (y, *_) in told.items() if y is not None}
        scored = [i for i, (y, *_) in told.items() if y is not None]
        if self._doubted and scored:
            self._doubted, i = False, scored[0]
            row, then = pick(batch.rows, np.array([i])), float(told[i][0] or 0.0)
            now = self.model.scores(row)[0]
            if not np.isclose(now, then, rtol=1e-4, atol=1e-12):
                more = (
                    "; if it never repeats itself, name it with Evaluations.open(path, model=...)"
                )
                raise not_its_own(now, then, self.model.describe(row, 0), more)
        return told

    def _skip(self, batch: _Batch, error: Exception | None, *, apart: bool = False) -> None:
        """Find out which rows of a failed batch fail; each is sent, and counted, once more."""
        if len(batch.payer) == 1:
            fault = f"{type(error).__name__}: {error}"
            self.faults.append(fault)
            self._record(batch, np.array([np.nan]), [fault], apart=apart)
            return
        for i, k in enumerate(batch.payer.tolist()):
            if batch.accounts[k].left > 0 and not self.deadline.passed:
                self._score(batch.take(np.array([i])), apart=True)

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
        try:
            if new:
                self.evaluations.keep(
                    batch.rows,
                    y,
                    scorer=self.model.origin,
                    faults=faults,
                    apart=apart,
                    until=self.deadline,
                )
        except Exception as error:
            vars(error)["evaluations"] = self.evaluations
            raise
        finally:
            start = self.known.extend(batch.X, y, batch.keys)
            for k in np.unique(batch.payer).tolist():
                batch.accounts[k].paid += (start + np.flatnonzero(batch.payer == k)).tolist()


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
        self.odd = region.schema.odd(region.own.cells, region.own.codes)  # see `Schema.odd`
        self.asked: list[Indices] = []  # where all are that it has asked for, request by request

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
        if self.odd or theirs:
            mine = zip(places.tolist(), self.marks(X), strict=True)
            found &= np.array([theirs.get(i, b"") == mark for i, mark in mine], dtype=np.bool_)
        return np.asarray(found)

    def marks(self, X: Array) -> list[bytes]:
        """Return the odd cells of this query's rows ``(n, d)``; see `Schema.odd`."""
        found, own = [b""] * len(X), self.region.own
        for c in self.odd:
            j = self.region.schema.feature_at[c]
            for i in np.flatnonzero(same_codes(X[:, j], own.codes[0, j])).tolist():
                found[i] += _mark(c, own.cells[c][0])
        return found


def _recalled(schema: Schema, rows: Rows, outputs: Array, on_fault: OnFault) -> Known:
    """Return what earlier calls have learnt, as codes."""
    outputs = np.where(np.isfinite(outputs), outputs, np.nan)  # an infinite one is a fault, too
    if on_fault == "raise":
        # A fault of an earlier call may be gone: only who skips faults takes them over.
        scored = np.flatnonzero(~np.isnan(outputs))
        rows, outputs = pick(rows, scored), outputs[scored]
    codes, fits = fitting_codes(schema, rows)
    # The first output of a row is kept: a model that answers twice is asked once.
    first: dict[bytes, int] = {}
    for i, key in enumerate(_exact_keys(schema, pick(rows, fits), codes)):
        first.setdefault(key, i)
    kept = np.array(list(first.values()), dtype=np.intp)
    known = Known(len(schema.names))
    known.extend(codes[kept], outputs[fits][kept], list(first))
    return known


def not_its_own(now: float, then: float, row: str, more: str = "") -> EvaluationsError:
    """Return the error for known outputs that another model gave."""
    return EvaluationsError(
        f"`evaluations` must hold outputs of this model; it gives {now:.6g} where they have "
        f"{then:.6g}, for {row}.",
        parameter="evaluations",
        advice="If the model has changed, use another store, or empty this one with "
        f"Evaluations.forget(){more}.",
    )


def _mark(c: int, cell: object) -> bytes:
    return f"{c} {type(cell).__name__} {cell!r} ".encode()


def _exact_keys(schema: Schema, rows: Rows, codes: Array) -> list[bytes]:
    """Return the keys of known rows, with marks where cells are not those of their codes."""
    keys = row_keys(codes)
    cells = schema.cells(rows) if keys else ()
    odd = schema.odd(cells, codes) if keys else {}
    given = Layout.of(rows).dtypes
    for c, column in enumerate(schema.columns):
        if keys and column.kind == "f" and given[c] != column.dtype:  # it may have been rounded
            raw = rows.iloc[:, c] if isinstance(rows, pd.DataFrame) else rows[:, c]
            exact = pd.Series(raw).to_numpy(np.float64, na_value=np.nan)
            kept = identical(pd.Series(cells[c]).to_numpy(np.float64, na_value=np.nan), exact)
            odd[c] = odd.get(c, False) | ~kept
    for c, other in odd.items():
        for i in np.flatnonzero(other).tolist():
            keys[i] += _mark(c, cells[c][i])
    return keys


def fitting_codes(schema: Schema, rows: Rows) -> tuple[Array, Indices]:
    """Return the codes ``(m, d)`` of rows that fit, and which; halving finds the few that don't."""
    try:
        return schema.encode(rows), np.arange(len(rows))
    except QueryError:
        if len(rows) == 1:
            return np.empty((0, len(schema.names))), np.arange(0)
    half = len(rows) // 2
    first, where_first = fitting_codes(schema, pick(rows, np.arange(half)))
    second, where_second = fitting_codes(schema, pick(rows, np.arange(half, len(rows))))
    return np.concatenate([first, second]), np.concatenate([where_first, where_second + half])
