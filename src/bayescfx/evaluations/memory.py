"""Rows and outputs in little memory.

A search scores many rows that differ in a cell or two, so that a column has few distinct values.
Many rows are packed by column: the distinct cells, and the position of each.
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
        """Return rows and outputs in parts; with `few`, loose parts are joined first."""
        if few and len(self._loose) > 1:
            self._loose[:] = [joined(self._loose)]
        return [*map(attrgetter("rows", "y"), self._packed), *self._loose]

    @property
    def outputs(self) -> Array:
        """All outputs ``(n,)``."""
        packed = [part.y for part in self._packed]
        loose = [y for _, y in self._loose]
        return np.concatenate([np.empty(0), *packed, *loose])

    def add(self, rows: Rows, y: Array) -> None:
        """Add rows with outputs ``(n,)``."""
        self._loose.append((rows, y))
        self._count += len(y)
        if self._count >= _MANY:
            self._pack()

    def take(self, part: Packed) -> None:
        """Add packed rows."""
        self._pack()
        self._packed.append(part)

    def _pack(self) -> None:
        if self._loose:
            self._packed.append(Packed.of(*joined(self._loose)))
            self._loose = []
            self._count = 0

    def clear(self) -> None:
        """Remove all rows."""
        self._packed = []
        self._loose = []
        self._count = 0


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
            names = rows.columns
            columns = [cells_in(column) for _, column in rows.items()]
        else:
            names = None
            columns = list(rows.T)
        return cls(Layout.of(rows), names, tuple(map(_held, columns)), _held(y))

    @property
    def rows(self) -> Rows:
        """The rows, numbered anew."""
        columns = [_cells(column) for column in self._columns]
        kinds = self.layout.dtypes
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
    """Cells with few distinct values."""

    values: Cells  # the distinct ones
    positions: bytes  # which of them each cell is, compressed

    @property
    def cells(self) -> Cells:
        positions = np.frombuffer(
            zlib.decompress(self.positions), np.min_scalar_type(len(self.values))
        )
        return self.values.take(positions.astype(np.intp))


def _held(cells: Cells) -> _Few | Cells:
    """Return a copy of cells, in less memory if few are distinct."""
    keys = _keys(cells)
    some = 1000  # cells that show whether packing is worth its time
    if keys is None or len(pd.unique(keys[:some])) > 0.5 * len(keys[:some]):
        return cells.copy()
    positions, values = pd.factorize(keys, use_na_sentinel=False)
    if len(values) > 0.25 * len(keys):
        return cells.copy()
    packed = zlib.compress(positions.astype(np.min_scalar_type(len(values))).tobytes(), 1)
    return _Few(values if keys is cells else values.view(cells.dtype), packed)


def _keys(cells: Cells) -> Cells | None:
    """Return an array whose elements are equal only if the cells are identical, if there is one."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biufmM":
        size = cells.dtype.itemsize  # by their bits: zeros have signs
        return np.ascontiguousarray(cells).view(f"u{size}") if size <= 8 else None
    return cells if _is_text_only(cells) else None


def _is_text_only(cells: Cells) -> bool:
    """Return whether all cells are text, or missing in a column of pandas' own texts."""
    if cells.dtype != object:
        return isinstance(cells.dtype, pd.StringDtype)
    return pd.api.types.infer_dtype(cells, skipna=False) == "string"


def _cells(held: _Few | Cells) -> Cells:
    return held.cells if isinstance(held, _Few) else held
