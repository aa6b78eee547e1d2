"""Tables of the user: their columns and dtypes, and their rows as lists of cells.

With a :class:`Layout`, lists of cells become the same rows again. A :class:`Column` takes cells of
its own dtype only: a cell that it can't hold exactly is an error.
"""

from __future__ import annotations

import base64
import contextlib
import re
import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionDtype

from bayescfx.arrays import Indices, Mask
from bayescfx.data.values import Plain, as_python, from_plain, same_cell, to_plain
from bayescfx.errors import BayesCFXError, CellError, MissingExtraError, QueryError, optional

Rows: TypeAlias = pd.DataFrame | NDArray[Any]
Row: TypeAlias = "pd.Series[Any] | NDArray[Any]"
Dtype: TypeAlias = "np.dtype[Any] | ExtensionDtype"
Cells: TypeAlias = Any  # a 1-D NumPy array or pandas ExtensionArray

# Types of single numbers that columns of NumPy floats and signed integers take, by their letter.
_NUMBERS: dict[str, tuple[type, ...]] = {
    "f": (float, int, np.floating, np.integer),
    "i": (int, np.signedinteger),
}


@dataclass(frozen=True)
class Layout:
    """The columns of a table and their dtypes.

    Parameters
    ----------
    names : tuple
        Labels of the columns; ``x0``, ``x1`` and so on for an array.
    dtypes : tuple
        One per column.
    is_frame : bool
        Whether it is a DataFrame, not an array of one dtype.
    """

    names: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    is_frame: bool

    @classmethod
    def of(cls, rows: Rows) -> Layout:
        """Return the layout of a table."""
        if isinstance(rows, pd.DataFrame):
            return cls(tuple(rows.columns), tuple(rows.dtypes), is_frame=True)
        width = rows.shape[1]
        return cls(tuple(f"x{j}" for j in range(width)), (rows.dtype,) * width, is_frame=False)

    @classmethod
    def from_plain(cls, plain: Any) -> Layout:
        """Return the layout that :meth:`to_plain` wrote."""
        names = tuple(from_plain(name) for name in plain["names"])
        return cls(names, tuple(dtype_from_plain(d) for d in plain["dtypes"]), plain["frame"])

    def to_plain(self) -> dict[str, Plain]:
        """Return the layout in JSON's own types."""
        return {
            "frame": self.is_frame,
            "names": [to_plain(name) for name in self.names],
            "dtypes": [dtype_to_plain(dtype) for dtype in self.dtypes],
        }

    def merge(self, other: Layout) -> Layout:
        """Return a layout that holds the rows of both; the columns must be the same."""
        dtypes = tuple(map(_common, self.dtypes, other.dtypes))
        return Layout(self.names, dtypes, self.is_frame)

    def table(self, cells: Sequence[Sequence[Any]]) -> Rows:
        """Return rows of cells, ``n`` lists of one cell per column, as a table."""
        if not self.is_frame:
            dtype = self.dtypes[0] if self.dtypes else np.float64
            return np.array(cells, dtype=dtype).reshape(len(cells), len(self.names))
        columns = list(zip(*cells, strict=True)) if cells else [()] * len(self.names)
        series: dict[int, pd.Series[Any]] = {}
        for c, (name, dtype) in enumerate(zip(self.names, self.dtypes, strict=True)):
            series[c] = _series(name, columns[c], dtype)
        frame = pd.DataFrame(series, index=range(len(cells)))
        return frame.set_axis(pd.Index(list(self.names)), axis=1) if series else frame


def _series(name: Hashable, cells: Sequence[Any], dtype: Any) -> pd.Series[Any]:
    """Return cells as a column of a dtype; lists are no cells of numbers and times."""
    has_lists = any(type(cell) in (list, tuple, dict) for cell in cells)
    if has_lists and getattr(dtype, "kind", "O") in "biufmM":
        raise CellError(f"column {name!r} of dtype {dtype} must not hold lists.")
    column: pd.Series[Any] = pd.Series(list(cells), dtype=dtype)
    return column


def dtype_to_plain(dtype: Any) -> Plain:
    """Return a dtype in JSON's own types; categories in full."""
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [to_plain(level) for level in dtype.categories.tolist()]
        kind = dtype_to_plain(dtype.categories.dtype)
        return {"levels": levels, "ordered": bool(dtype.ordered), "dtype": kind}
    if isinstance(dtype, pd.ArrowDtype):  # its name is not unique
        pa = optional("pyarrow", "columns of Arrow need", "models")
        schema = pa.schema([("", dtype.pyarrow_dtype)]).serialize().to_pybytes()
        return {"arrow": base64.b64encode(schema).decode()}
    return str(dtype)


def dtype_from_plain(plain: Any) -> Any:
    """Return the dtype that :func:`dtype_to_plain` wrote."""
    if not isinstance(plain, dict):
        return pd.api.types.pandas_dtype(plain)
    if "arrow" in plain:
        pa = optional("pyarrow", "columns of Arrow need", "models")
        buffer = pa.py_buffer(base64.b64decode(plain["arrow"]))
        return pd.ArrowDtype(pa.ipc.read_schema(buffer).field(0).type)
    levels = [from_plain(level) for level in plain["levels"]]
    index = pd.Index(levels, dtype=dtype_from_plain(plain["dtype"]))
    return pd.CategoricalDtype(index, ordered=plain["ordered"])


def _common(a: Any, b: Any) -> Any:
    """Return a dtype that holds the values of both."""
    if a == b:
        return a
    if all(isinstance(dtype, pd.CategoricalDtype) for dtype in (a, b)):
        levels = a.categories.append(b.categories.difference(a.categories, sort=False))
        return pd.CategoricalDtype(levels, ordered=bool(a.ordered) & bool(b.ordered))
    return pd.concat([pd.Series(dtype=a), pd.Series(dtype=b)]).dtype


def narrow_float(dtype: Any) -> type[np.floating[Any]] | None:
    """Return the float type of a column that holds fewer digits than a float64; else None."""
    kind: Any = getattr(dtype, "numpy_dtype", dtype)  # that of the numbers in a nullable column
    is_narrow = isinstance(kind, np.dtype) and kind.type in (np.float16, np.float32)
    return kind.type if is_narrow else None


def cells_of(rows: Rows) -> list[list[Any]]:
    """Return the rows of a table as lists of cells."""
    if not isinstance(rows, pd.DataFrame):
        cells: list[list[Any]] = rows.tolist()
        return cells
    columns = [column.tolist() for _, column in rows.items()]
    if not columns:
        return [[]] * len(rows)
    return [list(row) for row in zip(*columns, strict=True)]


def row_of(rows: Rows, i: int) -> Row:
    """Return one row as a Series (of an array: as an array) whose cells keep their types."""
    return rows_of(rows.iloc[[i]] if isinstance(rows, pd.DataFrame) else rows[[i]])[0]


def rows_of(rows: Rows) -> list[Row]:
    """Return all rows one by one, as :func:`row_of` does."""
    if not isinstance(rows, pd.DataFrame):
        return [line.copy() for line in rows]
    if len(set(rows.dtypes)) == 1:
        return [rows.iloc[i].rename(None) for i in range(len(rows))]
    return [pd.Series(line, index=rows.columns, dtype=object) for line in cells_of(rows)]


def join(tables: Sequence[Rows]) -> Rows:
    """Return the rows of several tables with the same columns as one table."""
    if len(tables) == 1:
        return tables[0]
    frames = [table for table in tables if isinstance(table, pd.DataFrame)]
    return pd.concat(frames, ignore_index=True) if frames else np.concatenate(tables)


def pick(rows: Rows, chosen: Indices) -> Rows:
    """Return some rows of a table, numbered anew."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[chosen].reset_index(drop=True)
    return rows[chosen]


def lent(rows: Rows) -> Rows:
    """Return a copy for a user's function, which may write to it."""
    if isinstance(rows, pd.DataFrame):
        copies_on_write = int(pd.__version__.partition(".")[0]) >= 3
        return rows.copy(deep=not copies_on_write)
    return rows.copy()


def returned(raw: Any, rows: Rows, what: str, error: type[BayesCFXError]) -> Any:
    """Return the result of a user's function in the order of the rows; masked cells are missing.

    Parameters
    ----------
    raw : Series, DataFrame, array or anything else
        The result. A Series or a DataFrame is aligned by its index.
    rows : DataFrame or array
        The rows that the function got.
    what : str
        The function, for the message about other labels.
    error : type
        The class of that error.
    """
    if isinstance(raw, np.ma.MaskedArray):
        return np.ma.filled(raw.astype(object), np.nan)
    if not isinstance(raw, pd.Series | pd.DataFrame) or len(raw) != len(rows):
        return raw
    index = rows.index if isinstance(rows, pd.DataFrame) else pd.RangeIndex(len(rows))
    return raw if raw.index.equals(index) else _align(raw, index, what, error)


def _align(raw: Any, index: pd.Index[Any], what: str, error: type[BayesCFXError]) -> Any:
    """Return a Series or a DataFrame in the order of an index, or raise if labels differ."""
    if not raw.index.is_unique or not index.isin(raw.index).all():
        labels = ", ".join(map(repr, raw.index[:5]))
        raise error(
            f"{what} must return one value for each row, by position or with the index of "
            f"the rows; got a {type(raw).__name__} with index {labels}, … Return it with "
            "to_numpy()."
        )
    return raw.reindex(index)


def as_pandas(given: Any) -> Any:
    """Return a table of polars, Arrow and the like as a DataFrame; anything else as it is."""
    if type(given).__name__ == "LazyFrame":
        given = given.collect()
    if isinstance(given, pd.DataFrame | pd.Series) or not hasattr(given, "to_pandas"):
        return given
    frame = _to_pandas(given)
    if isinstance(frame, pd.DataFrame):
        _restore_dtypes(frame, given)
    return frame


def _restore_dtypes(frame: pd.DataFrame, original: Any) -> None:
    """Restore, in place, dtypes that a conversion to pandas changed because cells are missing."""
    for name in frame.columns:
        dtype: Any = _nullable_dtype(original[name])
        if dtype is not None and frame[name].dtype.kind in "fO":
            frame[name] = frame[name].astype(dtype)


def _to_pandas(given: Any) -> Any:
    """Return a table of another library as its own conversion makes it."""
    library = type(given).__module__.partition(".")[0]
    options = {"date_as_object": False} if library == "pyarrow" else {}
    try:
        return given.to_pandas(**options)
    except ImportError as error:
        raise MissingExtraError(
            f"a {type(given).__name__} of {library} needs {error.name}: pip install {error.name}."
        ) from error


def _nullable_dtype(cells: Any) -> str | None:
    """Return the dtype of a column of polars or Arrow that pandas changes if cells are missing.

    Decimals become floats.
    """
    dtypes = {"int": "Int64", "uint": "UInt64", "bool": "boolean", "decimal": "float64"}
    original = str(getattr(cells, "type", getattr(cells, "dtype", ""))).lower()
    word = re.match("[a-z]+", original)
    return dtypes.get(word[0]) if word else None


def in_form_of(like: Any, rows: Rows) -> Any:
    """Return rows as a table of another library, with the types of an empty one."""
    if hasattr(like, "from_pandas"):  # Arrow
        return like.from_pandas(rows, schema=like.schema, preserve_index=False)
    polars = sys.modules[type(like).__module__.partition(".")[0]]
    return polars.from_pandas(rows).cast(dict(like.schema))


def as_frame(rows: Rows) -> pd.DataFrame:
    """Return a copy of a table as a DataFrame; an array's columns are ``x0``, ``x1`` and so on."""
    if isinstance(rows, pd.DataFrame):
        return rows.copy()
    return pd.DataFrame(rows.copy(), columns=list(Layout.of(rows).names))


def free_name(name: str, taken: Iterable[Any]) -> str:
    """Return `name`, with ``_`` appended as often as it takes to be free."""
    known = set(taken)
    while name in known:
        name += "_"
    return name


@dataclass(frozen=True, eq=False)
class Column:
    """Name and dtype of one column of the user's table."""

    name: Hashable
    dtype: Dtype

    @property
    def has_variants(self) -> bool:
        """Whether cells that differ may have the same code, such as 0.0 and -0.0."""
        return self.dtype == object or self.dtype.kind in "fmM"

    @property
    def optional(self) -> bool:
        """Whether a cell may be missing."""
        return not isinstance(self.dtype, np.dtype) or self.dtype.kind not in "biu"

    def strict(self, given: Any, what: str) -> Cells:
        """Return cells ``(n,)`` in the column's dtype; a `QueryError` names one it can't hold."""
        given = cells_in(given) if isinstance(given, pd.Series) else given
        if given.dtype == self.dtype:
            return given
        if given.dtype == object and self.dtype.kind == "f":  # any kind of missing is nan
            given = np.where(pd.isna(given), np.nan, given)
        cells = self._converted(given)
        if cells is None:
            raise self._unfit(given, what)
        return cells

    def _unfit(self, given: Any, what: str) -> QueryError:
        """Return the error about the first cell that the column can't hold."""
        invalid = [v for v in given if self._converted(_object_cell(v)) is None]
        cell = as_python(invalid[0] if invalid else given)
        listed = _first_levels(getattr(self.dtype, "categories", ()))
        may_mean_missing = isinstance(cell, str) and self.dtype.kind in "iuf"
        return QueryError(
            f"`{what}` must fit the dtypes of the space; got {cell!r} in column {self.name!r} of "
            f"dtype {self.dtype}{listed}.",
            parameter="na" if may_mean_missing else what,
            advice="Correct the cell.",
        )

    def _converted(self, given: Any) -> Cells | None:
        """Return the cells in the column's dtype; None if one of them can't be held."""
        if isinstance(self.dtype, pd.CategoricalDtype):
            return self._as_categories(given)
        if self.dtype.kind == "M" and any(map(day_or_month_first, given)):
            return None
        try:
            cells = pd.Series(given).astype(self.dtype).array
            is_unchanged = _unchanged(given, cells, self.dtype.kind)
        except (TypeError, ValueError, OverflowError):
            return None
        if not is_unchanged:
            return None
        return cells if isinstance(self.dtype, ExtensionDtype) else np.asarray(cells)

    def _as_categories(self, given: Any) -> Cells | None:
        """Return cells as categories; None if one of them is no category."""
        dtype: Any = self.dtype
        cells = pd.Index(np.asarray(given, dtype=object), dtype=object, tupleize_cols=False)
        codes = dtype.categories.astype(object).get_indexer(cells)
        is_known = (codes >= 0) | np.asarray(pd.isna(given))
        return pd.Categorical.from_codes(codes, dtype=dtype) if is_known.all() else None

    def strict_one(self, value: Any, what: str) -> Cells:
        """Return one cell as an array of length 1; see :meth:`strict`.

        Numbers and texts of the right type take a fast path.
        """
        if isinstance(self.dtype, pd.StringDtype) and isinstance(value, str):
            return pd.array([value], dtype=self.dtype)
        dtype: Any = self.dtype
        kind = dtype.kind if isinstance(dtype, np.dtype) else ""
        if isinstance(value, _NUMBERS.get(kind, ())):
            with contextlib.suppress(OverflowError):  # `strict` raises for it
                cell = np.array([value]).astype(dtype)
                if kind == "f" or cell[0] == value:
                    return cell
        return self.strict(_object_cell(value), what)


def identical(a: Cells, b: Cells) -> Mask:
    """Return where two columns of one dtype hold the same cell, its type and sign included."""
    if isinstance(a, np.ndarray) and a.dtype.kind in "biufmM":
        same: Mask = (a == b) | (pd.isna(a) & pd.isna(b))
        if a.dtype.kind == "f":
            same &= (np.signbit(a) == np.signbit(b)) | (a != b)
        return same
    pairs = zip(np.asarray(a, dtype=object), np.asarray(b, dtype=object), strict=True)
    alike = (_same_object(x, y) for x, y in pairs)
    return np.fromiter(alike, dtype=np.bool_, count=len(a))


def _same_object(x: Any, y: Any) -> bool:
    """Return whether two cells are the same; texts and whole numbers are compared directly."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    return bool(x == y) if type(x) in (str, int, bool) else same_cell(x, y)


def cells_in(column: pd.Series[Any]) -> Cells:
    """Return the cells of a column ``(n,)`` as an array of its dtype."""
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def day_or_month_first(value: object) -> bool:
    """Return whether a value is a date as text with the day or the month first: 03/04/2018."""
    pattern = r"\s*\d{1,2}([./-])\d{1,2}\1\d"
    return isinstance(value, str) and re.match(pattern, value) is not None


def _first_levels(levels: Sequence[Any]) -> str:
    """Return the first five levels in brackets for a message; nothing if there are none."""
    if not len(levels):
        return ""
    more = ", …" if len(levels) > 5 else ""
    return f" ({', '.join(map(repr, levels[:5]))}{more})"


def _object_cell(value: Any) -> NDArray[Any]:
    """Return a value as an array of one object."""
    cell = np.empty(1, dtype=object)
    cell[0] = value
    return cell


def _unchanged(before: Any, after: Any, kind: str) -> bool:
    """Return whether a conversion kept every cell; floats may round to a narrower float."""
    is_missing = np.asarray(pd.isna(before))
    if not np.array_equal(is_missing, np.asarray(pd.isna(after))):
        return False
    if kind in "mM":
        return True
    cells = np.asarray(before, dtype=object)[~is_missing]
    if kind == "f":
        return not any(map(_is_text, cells))
    pairs = zip(cells, after[~is_missing], strict=True)
    return all(a == b and _is_text(a) == _is_text(b) for a, b in pairs)


def _is_text(cell: object) -> bool:
    """Return whether a cell is text or bytes."""
    return isinstance(cell, str | bytes)
