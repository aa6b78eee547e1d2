"""Scored rows as codes: every row with its output, found by its bytes.

Rows with the same codes are the same rows only if their odd cells are the same (see `Schema.odd`):
the odd cells are part of the key, as a mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Layout, Rows, identical, pick
from bayescfx.errors import QueryError


class Known:
    """Codes ``(n, d)`` and outputs ``(n,)`` of scored rows; the output of a fault is nan.

    A place is a position among the rows; `index` finds the place of a key.

    Parameters
    ----------
    d : int
        The number of features.
    older : Known, optional
        Rows of earlier calls that come first. They are shared by all blocks and do not change.
    """

    def __init__(self, d: int, older: Known | None = None) -> None:
        self._X = np.empty((64, d))
        self._y = np.empty(64)
        self._older = older
        self._start = 0
        self._n = 0
        self.index: dict[bytes, int] = {}
        self.older_index: dict[bytes, int] = {}
        # The odd cells of a row by its place, and the keys of such rows without them.
        self.marks: dict[int, bytes] = {}
        self._marked: set[bytes] = set()
        self._last: tuple[Indices, Array, Array] | None = None  # the last result of `take`
        if older is not None:
            self._start = len(older)
            self.older_index = older.index
            self.marks |= older.marks
            self._marked |= older._marked

    def __len__(self) -> int:
        return self._start + self._n

    @property
    def outputs(self) -> Array:
        """All outputs ``(n,)``."""
        return np.concatenate([y for _, _, y in self.parts()])

    def parts(self, start: int = 0) -> Iterator[tuple[int, Array, Array]]:
        """Yield the rows from a place on, in parts: the first place, the codes, the outputs."""
        if self._older is not None and start < self._start:
            yield from self._older.parts(start)
        first = max(start - self._start, 0)
        yield self._start + first, self._X[first : self._n], self._y[first : self._n]

    def take(self, places: Indices) -> tuple[Array, Array]:
        """Return codes and outputs, read-only; the last result is cached by its `places`."""
        last = self._last  # threads may share it
        if last is None or last[0] is not places:
            if self._older is None:
                X = self._X[places]
                y = self._y[places]
            else:
                X = np.empty((len(places), self._X.shape[1]))
                y = np.empty(len(places))
                own = places >= self._start
                mine = places[own] - self._start
                X[own] = self._X[mine]
                y[own] = self._y[mine]
                X[~own], y[~own] = self._older.take(places[~own])
            X.flags.writeable = False
            y.flags.writeable = False
            last = (places, X, y)
            self._last = last
        return last[1], last[2]

    def find(self, keys: list[bytes]) -> Indices:
        """Return the places ``(n,)`` of rows by their keys, -1 for rows that were not scored."""
        places = np.fromiter(map(self.index.get, keys, repeat(-1)), np.intp, len(keys))
        if self.older_index:
            for i in np.flatnonzero(places < 0).tolist():
                places[i] = self.older_index.get(keys[i], -1)
        return places

    def holds(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` were scored, whatever their odd cells."""
        keys = row_keys(X)
        found = self.find(keys) >= 0
        if self._marked:
            found |= np.fromiter(map(self._marked.__contains__, keys), np.bool_, len(keys))
        return found

    def extend(self, X: Array, y: Array, keys: list[bytes]) -> int:
        """Add new rows with their keys; return the place of the first."""
        begin = self._n
        stop = begin + len(y)
        if stop > len(self._y):
            more = max(stop, 2 * begin) - begin
            self._X = np.concatenate([self._X[:begin], np.empty((more, self._X.shape[1]))])
            self._y = np.concatenate([self._y[:begin], np.empty(more)])
        self._X[begin:stop] = X
        self._y[begin:stop] = y
        self._n = stop
        start = self._start + begin
        self.index.update(zip(keys, range(start, start + len(y)), strict=True))
        width = X.shape[1] * X.itemsize
        if max(map(len, keys), default=0) > width:
            self.marks |= {start + i: key[width:] for i, key in enumerate(keys) if key[width:]}
            self._marked |= {key[:width] for key in keys if key[width:]}
        return start


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The evaluations known when a call began; rows scored meanwhile do not change its answers.

    Parameters
    ----------
    rows : DataFrame or ndarray, optional
        The rows.
    outputs : ndarray of shape (n,)
        Their outputs.
    run : int, optional
        The id of the run in the file.
    seed : int, optional
        The seed that was drawn when the run first began.
    resumed : bool
        Whether the file holds rows that were scored since the run first began.
    """

    rows: Rows | None = None
    outputs: Array = field(default_factory=partial(np.empty, 0))
    run: int | None = None
    seed: int | None = None
    resumed: bool = False
    _known: dict[Schema, Known] = field(default_factory=dict)

    def __reduce__(self) -> Any:  # codes are made by each process itself
        return Snapshot, (self.rows, self.outputs, self.run, self.seed, self.resumed)

    def known(self, schema: Schema, *, faults: bool) -> Known | None:
        """Return the rows as codes, with faults or without; made once for all blocks of a call."""
        found = self._known.get(schema)  # another thread may clear the cache
        if found is None and self.rows is not None:
            found = _as_known(schema, self.rows, self.outputs, faults)
            self._known.clear()
            self._known[schema] = found
        return found


def _as_known(schema: Schema, rows: Rows, outputs: Array, faults: bool) -> Known:
    """Return rows as codes; their faults only where the call skips faults."""
    outputs = np.where(np.isfinite(outputs), outputs, np.nan)  # an infinite output is a fault
    if not faults:  # they may be gone by now
        scored = np.flatnonzero(~np.isnan(outputs))
        rows = pick(rows, scored)
        outputs = outputs[scored]
    codes, fits = fitting_codes(schema, rows)
    # The first output of a row counts.
    first: dict[bytes, int] = {}
    for i, key in enumerate(_exact_keys(schema, pick(rows, fits), codes)):
        first.setdefault(key, i)
    kept = np.array(list(first.values()), dtype=np.intp)
    known = Known(len(schema.names))
    known.extend(codes[kept], outputs[fits][kept], list(first))
    return known


def mark(c: int, cell: object) -> bytes:
    """Return the mark of an odd cell of column `c`, which is added to the key of its row."""
    return f"{c} {type(cell).__name__} {cell!r} ".encode()


def _exact_keys(schema: Schema, rows: Rows, codes: Array) -> list[bytes]:
    """Return the keys of known rows, with marks where cells are not those of their codes."""
    keys = row_keys(codes)
    if not keys:
        return keys
    cells = schema.cells(rows)
    odd = schema.odd(cells, codes)
    given = Layout.of(rows).dtypes
    for c, column in enumerate(schema.columns):
        if column.dtype.kind == "f" and given[c] != column.dtype:  # it may have been rounded
            odd[c] = odd.get(c, False) | _is_rounded(rows, c, cells[c])
    for c, other in odd.items():
        for i in np.flatnonzero(other).tolist():
            keys[i] += mark(c, cells[c][i])
    return keys


def _is_rounded(rows: Rows, c: int, cells: Any) -> Mask:
    """Return which cells ``(n,)`` differ from the numbers in column `c` of the rows."""
    raw = rows.iloc[:, c] if isinstance(rows, pd.DataFrame) else rows[:, c]
    exact = pd.Series(raw).to_numpy(np.float64, na_value=np.nan)
    return ~identical(pd.Series(cells).to_numpy(np.float64, na_value=np.nan), exact)


def fitting_codes(schema: Schema, rows: Rows) -> tuple[Array, Indices]:
    """Return the codes ``(m, d)`` of rows that fit the schema, and their positions.

    The few rows that do not fit are found by bisection.
    """
    try:
        return schema.encode(rows), np.arange(len(rows))
    except QueryError:
        if len(rows) == 1:
            return np.empty((0, len(schema.names))), np.arange(0)
    half = len(rows) // 2
    first, where_first = fitting_codes(schema, pick(rows, np.arange(half)))
    second, where_second = fitting_codes(schema, pick(rows, np.arange(half, len(rows))))
    return np.concatenate([first, second]), np.concatenate([where_first, where_second + half])
