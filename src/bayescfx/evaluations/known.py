"""What is known, as codes: every row with its output, found by its bytes.

Rows with the same codes are the same rows only if their odd cells are the same, too (see
`Schema.odd`): these are part of the key, as a mark.
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
            if self._older is None:
                X, y = self._X[places], self._y[places]
            else:
                X, y = np.empty((len(places), self._X.shape[1])), np.empty(len(places))
                own = places >= self._start
                mine = places[own] - self._start
                X[own], y[own] = self._X[mine], self._y[mine]
                X[~own], y[~own] = self._older.take(places[~own])
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


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What was known when a call began; what others learn meanwhile does not change its answers."""

    rows: Rows | None = None
    outputs: Array = field(default_factory=partial(np.empty, 0))  # (n,)
    run: int | None = None  # its id in the file
    seed: int | None = None  # drawn when it first began
    resumed: bool = False  # whether the file holds rows that were scored since it first began
    _known: dict[Schema, Known] = field(default_factory=dict)

    def __reduce__(self) -> Any:  # codes are made by each process itself
        return Snapshot, (self.rows, self.outputs, self.run, self.seed, self.resumed)

    def known(self, schema: Schema, *, faults: bool) -> Known | None:
        """Return it as codes, made once for all searches of a call; with `faults` or without."""
        found = self._known.get(schema)  # threads share it: what is found here stays this one's
        if found is None and self.rows is not None:
            found = _recalled(schema, self.rows, self.outputs, faults)
            self._known.clear()
            self._known[schema] = found
        return found


def _recalled(schema: Schema, rows: Rows, outputs: Array, faults: bool) -> Known:
    """Return what earlier calls have learnt; their `faults` only for who skips his own."""
    outputs = np.where(np.isfinite(outputs), outputs, np.nan)  # an infinite one is a fault, too
    if not faults:  # which may be gone
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


def mark(c: int, cell: object) -> bytes:
    """Return what an odd cell of column `c` adds to the key of its row."""
    return f"{c} {type(cell).__name__} {cell!r} ".encode()


def _exact_keys(schema: Schema, rows: Rows, codes: Array) -> list[bytes]:
    """Return the keys of known rows, with marks where cells are not those of their codes."""
    keys = row_keys(codes)
    if not keys:
        return keys
    cells, given = schema.cells(rows), Layout.of(rows).dtypes
    odd = schema.odd(cells, codes)
    for c, column in enumerate(schema.columns):
        if column.dtype.kind == "f" and given[c] != column.dtype:  # it may have been rounded
            raw = rows.iloc[:, c] if isinstance(rows, pd.DataFrame) else rows[:, c]
            exact = pd.Series(raw).to_numpy(np.float64, na_value=np.nan)
            kept = identical(pd.Series(cells[c]).to_numpy(np.float64, na_value=np.nan), exact)
            odd[c] = odd.get(c, False) | ~kept
    for c, other in odd.items():
        for i in np.flatnonzero(other).tolist():
            keys[i] += mark(c, cells[c][i])
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
