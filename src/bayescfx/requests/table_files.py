"""Tables from CSV and parquet files, and the conventions by which their cells are read."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from bayescfx.data.datetimes import times_of
from bayescfx.errors import MissingExtraError, SettingsError, suggest
from bayescfx.models.input_columns import has_level, plain_name
from bayescfx.requests.csv_format import csv_arguments

#: Texts that are often written for a missing cell.
MISSING_MARKS = ("na", "n/a", "nan", "null", "none", "nil", "?", "-", "--", ".", "missing")

#: Arguments of ``pandas.read_csv`` for numbers exactly as written; later versions need none.
EXACT_NUMBERS: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}


def read_text(path: str, what: str) -> str:
    """Return the text of a file; `what` names it in an error."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{what} {path!r} can't be read: {reason}.") from error


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """How the cells of tables are read.

    An empty cell is missing. A text that the model knows as a level of a column is a level, even
    if `na` has it; the same goes for numbers in a column of which it knows only texts.

    Parameters
    ----------
    na : tuple of str
        Texts that mean a missing cell.
    id : str, optional
        The column that identifies rows.
    levels : dict of column to frozenset
        The levels that the model knows.
    texts : frozenset of str
        Columns that are text even where all cells are digits.
    date_formats : dict of column to str
        How texts write points in time.
    """

    na: tuple[str, ...] = ()
    id: str | None = None
    levels: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    date_formats: Mapping[str, str] = field(default_factory=dict)

    def known_levels(self, column: str) -> frozenset[Any]:
        """Return the levels of a column that the model knows, perhaps by a simpler name."""
        return self.levels.get(column) or self.levels.get(plain_name(column), frozenset())

    def missing_texts(self, column: str) -> list[str]:
        """Return the texts that mean a missing cell in a column; identifiers are never missing."""
        if column == self.id:
            return []
        levels = self.known_levels(column)
        return [text for text in ("", *self.na) if not has_level(levels, text)]

    def is_text(self, column: str) -> bool:
        """Return whether the cells of a column are text even where all of them are digits."""
        if column in (self.id, *self.texts):
            return True
        levels = self.known_levels(column)
        return bool(levels) and all(isinstance(level, str) for level in levels)

    def read_row(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the cells of a row by column, and the identifier of the row or None."""
        cells = {name: self._read_cell(name, value) for name, value in given.items()}
        identifier = None if self.id is None else cells.pop(self.id, None)
        return cells, identifier

    def _read_cell(self, name: str, value: Any) -> Any:
        """Return a cell: None for a text that means missing, a point in time for a date."""
        if not isinstance(value, str):
            return value
        if value in set(self.missing_texts(name)) - {""}:
            return None
        if name in self.date_formats:
            [value] = times_of(pd.Series([value], dtype=object), self.date_formats[name])
        return value

    def parse_dates(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table in which texts that write points in time are points in time."""
        dated = table.columns.intersection(list(self.date_formats))
        times = {name: times_of(table[name], self.date_formats[name]) for name in dated}
        return table.assign(**times) if times else table

    def set_index(self, table: pd.DataFrame, required_in: str = "") -> pd.DataFrame:
        """Return a table with the identifiers of its rows as index.

        `required_in` names a file that must have the column of identifiers.
        """
        if self.id is None:
            return table.reset_index(drop=True)
        if self.id in table.columns:
            return table.set_index(self.id)
        if required_in:
            _check_identified(table, self.id, required_in)
        return table


def _check_identified(table: pd.DataFrame, column: str, file: str) -> None:
    """Raise unless the index of a table has the identifiers of its rows."""
    if column != table.index.name:
        hint = suggest(column, table.columns)
        raise SettingsError(f"{file} must have the column {column!r} of --id.{hint}")


def read_table(
    path: str, what: str = "data", table_format: TableFormat | None = None
) -> pd.DataFrame:
    """Return the rows of a ``.csv`` or ``.tsv`` file, perhaps compressed, or of ``.parquet``."""
    return next(read_chunks(path, None, what, table_format))


def read_chunks(
    path: str, n: int | None, what: str = "queries", table_format: TableFormat | None = None
) -> Generator[pd.DataFrame, None, None]:
    """Yield the rows of a table, `n` at a time, or all at once if it is None."""
    file = f"the {what} file {path!r}"
    read = _reader_of(path, what)
    table_format = table_format or TableFormat()
    required_in = file if what == "queries" else ""
    is_empty = True
    with reading_errors(file):
        for table in read(path, n, table_format):
            table.columns = table.columns.map(str)
            if len(table):
                is_empty = False
                yield table_format.parse_dates(table_format.set_index(table, required_in))
    if is_empty:
        raise SettingsError(f"{file} has no rows below the column names. Add some.")


def _reader_of(path: str, what: str) -> Callable[..., Iterator[pd.DataFrame]]:
    """Return the function that reads a file, by its ending; raise if there is no such file."""
    kind = "".join(Path(path).suffixes[-2:]).lower()
    if not re.search(r"[.][ct]sv|[.]parquet$", kind):
        raise SettingsError(
            f"the {what} file {path!r} must end in .csv, .tsv or .parquet. Convert it."
        )
    if not os.path.isfile(path):
        raise SettingsError(f"there is no {what} file {path!r}. Correct the path.")
    return _parquet_chunks if kind.endswith(".parquet") else csv_chunks


def _parquet_chunks(path: str, n: int | None, table_format: TableFormat) -> Iterator[pd.DataFrame]:
    """Yield the rows of a parquet file; texts that mean missing become missing cells."""
    tables = [pd.read_parquet(path)] if n is None else _row_groups(path, n)
    for table in tables:
        if table_format.na:
            _mask_missing(table, table_format)
        yield table


def _mask_missing(table: pd.DataFrame, table_format: TableFormat) -> None:
    """Make cells missing whose texts mean that."""
    for name in table.columns:
        if is_string_dtype(table[name].dtype):
            missing = set(table_format.missing_texts(name)) - {""}
            table[name] = table[name].mask(table[name].isin(missing))


def _row_groups(path: str, n: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of a parquet file, `n` at a time, whatever the size of its row groups."""
    rest = pd.DataFrame()
    for batch in importlib.import_module("pyarrow.parquet").ParquetFile(path).iter_batches(n):
        table = batch.to_pandas()
        rest = pd.concat([rest, table]) if len(rest) else table
        while len(rest) >= n:
            yield rest.iloc[:n].copy()
            rest = rest.iloc[n:]
    yield rest.copy()


def csv_chunks(
    source: str | Callable[[], Any], n: int | None, table_format: TableFormat
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a CSV text; `source` is its path, or returns a new stream at each call."""
    open_source = source if callable(source) else lambda: source
    arguments = csv_arguments(open_source)
    columns = arguments.pop("columns")
    found: Any = pd.read_csv(
        open_source(),
        index_col=False,
        chunksize=n,
        keep_default_na=False,
        na_values={name: table_format.missing_texts(name) for name in columns},
        dtype={name: str for name in columns if table_format.is_text(name)},
        **arguments,
        **EXACT_NUMBERS,
    )
    if n is None:
        yield found
        return
    with found as chunks:
        yield from chunks


@contextlib.contextmanager
def reading_errors(file: str) -> Iterator[None]:
    """Turn the errors of table readers into a `SettingsError` that names the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
            yield
    except SettingsError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            "parquet files need pyarrow: pip install pyarrow, or use a CSV file."
        ) from error
    except Exception as error:  # each reader has errors of its own, without a common base
        raise SettingsError(f"{file} {_reading_problem(error)}") from error


def _reading_problem(error: Exception) -> str:
    """Return why a table can't be read, as the end of a sentence."""
    if isinstance(error, pd.errors.EmptyDataError):
        return "is empty. It must have a line of column names and rows."
    if isinstance(error, pd.errors.ParserWarning):
        return (
            "must have as many fields in each row as in its first line; got more. Add the "
            "missing column names."
        )
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return f"can't be read: {reason}. Save it again as CSV or parquet."


def mean_missing(texts: pd.Series[Any]) -> pd.Series[bool]:
    """Return which texts are often written for a missing cell."""
    return texts.astype(str).str.strip().str.lower().isin(MISSING_MARKS)


def check_numbers(table: pd.DataFrame, known: Iterable[str], path: str) -> None:
    """Raise if a column of numbers has some texts, such as missing marks or decimal commas.

    Columns in `known` have known levels and are not checked.
    """
    for name in table.columns.difference(list(known), sort=False):
        cells = table[name].reset_index(drop=True).dropna()
        if len(cells) and is_string_dtype(cells.dtype):
            _check_column(name, cells, table.index, path)


def _check_column(name: str, cells: pd.Series[Any], index: pd.Index[Any], path: str) -> None:
    """Raise if less than half of the cells are texts, or all texts are marks or have commas."""
    texts = cells[pd.to_numeric(cells, errors="coerce").isna()].astype(str)
    if texts.empty:
        return
    is_mark = mean_missing(texts)
    have_commas = bool(texts.str.fullmatch(r"[+-]?\d[\d.]*,\d[\d.,]*").all())
    are_few = len(texts) < 0.5 * len(cells)
    are_marks = bool(is_mark.all()) and len(texts) < len(cells)
    if any((are_few, are_marks, have_commas)):
        row = texts.index[int(is_mark.argmax())]
        where = _place_of_row(row, index)
        advice = _number_advice(texts[row], bool(is_mark.any()), have_commas)
        raise SettingsError(
            f"column {name!r} of {path!r} must hold numbers; got {texts[row]!r} in {where}. "
            f'{advice}, or declare it with --kind "{name}=categorical".'
        )


def _place_of_row(row: int, index: pd.Index[Any]) -> str:
    """Return how a message refers to a row: by its identifier, or by its number."""
    return f"row {row}" if index.name is None else f"{index.name} {index[row]}"


def _number_advice(text: str, is_mark: bool, has_comma: bool) -> str:
    """Return what to do about a text among numbers."""
    if is_mark:
        return f"If it means missing, pass --na {text!r}"
    return "Write it with a point" if has_comma else "Correct the cell"
