"""Rows and outputs in memory, and in little of it.

A search asks about many rows that differ in a cell or two: a column has few different values. So
many rows are packed, by column: the different cells, and which of them is where.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.data.tables import Cells, Layout, Rows, cells_in, join

_MANY = 65_536  # rows that are packed together


@dataclass(eq=False)
class InMemory:
    """Rows and outputs, in the order in which they were added."""

    _packed: list[Packed] = field(default_factory=list)
    _loose: list[tuple[Rows, Array]] = field(default_factory=list)  # the last ones
    _count: int = 0  # of their rows

    def __len__(self) -> int:
        return len(self.outputs)

    def parts(self, *, few: bool = False) -> list[tuple[Rows, Array]]:
        """Return rows and outputs, part by part; in `few` of them asking again costs little."""
        if few and len(self._loose) > 1:
            self._loose[:] = [joined(self._loose)]
        return [*map(attrgetter("rows", "y"), self._packed), *self._loose]

    @property
    def outputs(self) -> Array:
        """All outputs ``(n,)``."""
        packed, loose = [part.y for part in self._packed], [y for _, y in self._loose]
        return np.concatenate([np.empty(0), *packed, *loose])

    def add(self, rows: Rows, y: Array) -> None:
        """Add rows with outputs ``(n,)``."""
        self._loose.append((rows, y))
        self._count += len(y)
        if self._count >= _MANY:
            self._pack()

    def take(self, part: Packed) -> None:
        """Add rows that are packed already."""
        self._pack()
        self._packed.append(part)

    def _pack(self) -> None:
        if self._loose:
            self._packed.append(Packed.of(*joined(self._loose)))
            self._loose, self._count = [], 0

    def clear(self) -> None:
        """Forget everything."""
        self._packed, self._loose, self._count = [], [], 0


def joined(parts: list[tuple[Rows, Array]]) -> tuple[Rows, Array]:
    """Return the rows and outputs of one part or more as one."""
    rows, outputs = zip(*parts, strict=True)
    return join(rows), outputs[0] if len(outputs) == 1 else np.concatenate(outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Rows of one table, column by column, and outputs."""

    layout: Layout
    _names: Any  # the columns of a frame
    _columns: tuple[_Few | Cells, ...]
    _outputs: _Few | Cells

    @classmethod
    def of(cls, rows: Rows, y: Array) -> Packed:
        """Return rows with outputs ``(n,)`` in little memory."""
        if isinstance(rows, pd.DataFrame):
            names, columns = rows.columns, [cells_in(column) for _, column in rows.items()]
        else:
            names, columns = None, [*rows.T]
        return cls(Layout.of(rows), names, tuple(map(_held, columns)), _held(y))

    @property
    def rows(self) -> Rows:
        """The rows, numbered anew."""
        columns, kinds = [_cells(column) for column in self._columns], self.layout.dtypes
        if self._names is None:
            return np.column_stack(columns)
        cells = zip(columns, kinds, strict=True)
        series = [pd.Series(column, dtype=kind, copy=False) for column, kind in cells]
        frame = pd.DataFrame(dict(enumerate(series)), index=range(len(self.y)), copy=False)
        return frame.set_axis(self._names, axis=1)

    @property
    def y(self) -> Array:
        """The outputs ``(n,)``."""
        return np.asarray(_cells(self._outputs))


@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Cells of which few are different."""

    values: Cells  # the different ones
    places: bytes  # which of them each cell is, compressed

    @property
    def cells(self) -> Cells:
        places = np.frombuffer(zlib.decompress(self.places), np.min_scalar_type(len(self.values)))
        return self.values.take(places.astype(np.intp))


def _held(cells: Cells) -> _Few | Cells:
    """Return cells in less memory if few are different; a copy, so that nothing else is kept."""
    keys = _keys(cells)
    some = 1000
    if keys is None or len(pd.unique(keys[:some])) > 0.5 * len(keys[:some]):
        return cells.copy()
    places, values = pd.factorize(keys, use_na_sentinel=False)
    if len(values) > 0.25 * len(keys):
        return cells.copy()
    packed = zlib.compress(places.astype(np.min_scalar_type(len(values))).tobytes(), 1)
    return _Few(values if keys is cells else values.view(cells.dtype), packed)


def _keys(cells: Cells) -> Cells | None:
    """Return an array whose elements are equal only if the cells are identical, if there is one."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biufmM":
        size = cells.dtype.itemsize  # by their bits: zeros have signs
        return np.ascontiguousarray(cells).view(f"u{size}") if size <= 8 else None
    text = isinstance(cells.dtype, pd.StringDtype)
    text |= cells.dtype == object and pd.api.types.infer_dtype(cells, skipna=False) == "string"
    return cells if text else None


def _cells(held: _Few | Cells) -> Cells:
    return held.cells if isinstance(held, _Few) else held
