"""Data and queries from files and from text."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from bayescfx.data import Feature
from bayescfx.data.datetimes import times_of
from bayescfx.errors import MissingExtraError, SettingsError, suggest
from bayescfx.models.input_columns import knows, same_name


def read_text(path: str, what: str) -> str:
    """Return the text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{what} {path!r} can't be read: {reason}.") from error


@dataclass(frozen=True)
class Reading:
    """How tables are read: which texts stand for a missing cell, and which column names the rows.

    An empty cell is missing. A text that the model knows as a level of a column is one, whatever
    `na` says; so are numbers of a column of which it knows only texts.
    """

    na: tuple[str, ...] = ()
    id: str | None = None
    levels: Mapping[str, frozenset[Any]] = field(default_factory=dict)  # by column
    texts: frozenset[str] = frozenset()  # columns that are text even where all cells are digits
    forms: Mapping[str, str] = field(default_factory=dict)  # by column: of text that is a time

    def known(self, column: str) -> frozenset[Any]:
        """Return the levels of a column that the model knows, which may call it otherwise."""
        return self.levels.get(column) or self.levels.get(same_name(column), frozenset())

    def missing(self, column: str) -> list[str]:
        """Return the texts that stand for a missing cell of a column; of names there are none."""
        known = self.known(column)
        return [] if column == self.id else [t for t in ("", *self.na) if not knows(known, t)]

    def is_text(self, column: str) -> bool:
        """Return whether the cells of a column are text even where all of them are digits."""
        known = self.known(column)
        listed = bool(known) and all(isinstance(level, str) for level in known)
        return listed or column == self.id or column in self.texts

    def row(self, cells: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the cells of a row without what is missing and its name, and the name."""
        found = {
            n: None if isinstance(v, str) and v and v in self.missing(n) else v
            for n, v in cells.items()
        }
        for name, form in self.forms.items():
            if isinstance(found.get(name), str):
                [found[name]] = times_of(pd.Series([found[name]], dtype=object), form)
        return found, found.pop(self.id, None) if self.id is not None else None

    def timed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table in which texts that write points in time are such."""
        found = {n: times_of(table[n], form) for n, form in self.forms.items() if n in table}
        return table.assign(**found) if found else table

    def named(self, table: pd.DataFrame, file: str = "") -> pd.DataFrame:
        """Return a table with the names of its rows as index; in a `file` there must be some."""
        if self.id in table.columns:
            return table.set_index(self.id)
        if file and self.id is not None and self.id != table.index.name:
            hint = suggest(self.id, table.columns)
            raise SettingsError(f"{file} must have the column {self.id!r} of --id.{hint}")
        return table if self.id is not None else table.reset_index(drop=True)


def read_table(path: str, what: str = "data", how: Reading | None = None) -> pd.DataFrame:
    """Return the rows of a ``.csv`` or ``.tsv`` file, maybe compressed, or a ``.parquet`` file."""
    return next(read_chunks(path, None, what, how))


def read_chunks(
    path: str, n: int | None, what: str = "queries", how: Reading | None = None
) -> Generator[pd.DataFrame, None, None]:
    """Yield the rows of a table, `n` at a time and the rest at last; all at once if it is None."""
    file, how = f"the {what} file {path!r}", how or Reading()
    kind = "".join(Path(path).suffixes[-2:]).lower()
    if not kind.endswith(".parquet") and ".csv" not in kind and ".tsv" not in kind:
        raise SettingsError(f"{file} must end in .csv, .tsv or .parquet. Convert it.")
    if not os.path.isfile(path):
        raise SettingsError(f"there is no {what} file {path!r}. Correct the path.")
    empty = True
    with _readable(file):
        parquet = kind.endswith(".parquet")
        for table in _typed(path, n, how) if parquet else _lines(lambda: path, n, how):
            table.columns = table.columns.map(str)
            if len(table):
                empty = False
                yield how.timed(how.named(table, file if what == "queries" else ""))
    if empty:
        raise SettingsError(f"{file} has no rows below the column names. Add some.")


def _typed(path: str, n: int | None, how: Reading) -> Iterator[pd.DataFrame]:
    """Yield the rows of a parquet file; texts that stand for a missing cell are none."""
    for table in [pd.read_parquet(path)] if n is None else _row_groups(path, n):
        for name in table.columns if how.na else ():
            if is_string_dtype(table[name].dtype):
                table[name] = table[name].mask(table[name].isin(set(how.missing(name)) - {""}))
        yield table


def _row_groups(path: str, n: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of a parquet file, `n` at a time, however it was written."""
    rest = pd.DataFrame()
    for batch in importlib.import_module("pyarrow.parquet").ParquetFile(path).iter_batches(n):
        rest = pd.concat([rest, batch.to_pandas()]) if len(rest) else batch.to_pandas()
        while len(rest) >= n:
            yield rest.iloc[:n].copy()
            rest = rest.iloc[n:]
    yield rest.copy()


def _lines(source: Callable[[], Any], n: int | None, how: Reading) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table of text, which is a path or a stream, opened anew each time."""
    written = _written(source, how)
    # Numbers exactly as written; later versions of pandas do that by themselves.
    exact: Any = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
    found: Any = pd.read_csv(source(), index_col=False, chunksize=n, **written, **exact)
    with contextlib.nullcontext([found]) if n is None else found as chunks:
        yield from chunks


def _written(source: Callable[[], Any], how: Reading) -> dict[str, Any]:
    """Return how a table of text is written, in pandas' words, judged by its first lines."""
    plain: Any = {"quoting": csv.QUOTE_NONE, "dtype": str, "na_filter": False}
    raw = pd.read_csv(source(), header=None, sep="\x01", nrows=200, **plain)
    lines = raw.iloc[:, 0].tolist()

    def fields(mark: str) -> list[list[str]]:
        return [*csv.reader(lines, delimiter=mark)][: 199 if len(lines) == 200 else None]

    def fits(mark: str) -> tuple[bool, int]:
        widths = [len(row) for row in fields(mark)]
        return min(widths) == max(widths) > 1, widths[0]

    mark = max(",;\t|", key=fits)
    head = pd.read_csv(source(), sep=mark, nrows=0, index_col=False).columns.map(str)
    given, *body = fields(mark)
    columns = [[cell for cell in column if cell] for column in zip(*body, strict=False)]
    comma = mark != "," and any(map(_decimal_commas, columns))
    points = any(re.fullmatch(r"[+-]?\d*\.\d+", cell) for column in columns for cell in column)
    # A line may end in what stands between cells: that is no column.
    every = enumerate(zip_longest(given[: len(head)], columns[: len(head)]))
    kept = [k for k, (title, cells) in every if title or cells]
    return {
        "sep": mark,
        "usecols": kept if len(kept) < len(head) else None,
        "decimal": "," if comma and not points else ".",
        "keep_default_na": False,
        "na_values": {name: how.missing(name) for name in head},
        "dtype": {name: str for name in head if how.is_text(name)},
    }


def _decimal_commas(cells: Iterable[str]) -> bool:
    """Return whether cells are numbers with a decimal comma, and not surely with thousands."""
    numbers = [re.fullmatch(r"[+-]?(\d+)(?:,(\d+))?(?:[eE][+-]?\d+)?", cell) for cell in cells]
    parts = [match.groups() for match in numbers if match]
    fractions = [(whole, rest) for whole, rest in parts if rest is not None]
    alike = all(len(rest) == 3 and 0 < len(whole.lstrip("0")) <= 3 for whole, rest in fractions)
    return len(parts) == len(numbers) and bool(fractions) and not alike


@contextlib.contextmanager
def _readable(file: str) -> Iterator[None]:
    """Say in our words why a table can't be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
            yield
    except SettingsError:  # in our words
        raise
    except ImportError as error:
        told = "parquet files need pyarrow: pip install pyarrow, or use a CSV file."
        raise MissingExtraError(told) from error
    except Exception as error:  # each reader has errors of its own, without a common base
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        told = f"can't be read: {reason}. Save it again as CSV or parquet."
        if isinstance(error, pd.errors.EmptyDataError):
            told = "is empty. It must have a line of column names and rows."
        elif isinstance(error, pd.errors.ParserWarning):
            told = "must have as many fields in each row as in its first line; got more. Add the "
            told += "missing column names."
        raise SettingsError(f"{file} {told}") from error


def mean_missing(texts: pd.Series[Any]) -> pd.Series[bool]:
    """Return which texts are often written for a missing cell."""
    marks = ("na", "n/a", "nan", "null", "none", "nil", "?", "-", "--", ".", "missing")
    return texts.astype(str).str.strip().str.lower().isin(marks)


def check_numbers(table: pd.DataFrame, known: Iterable[str], path: str) -> None:
    """Raise if a column without known levels is numbers but for some texts, marks or commas."""
    for name in [name for name in table.columns if name not in set(known)]:
        cells = table[name].reset_index(drop=True).dropna()
        if not is_string_dtype(cells.dtype) or cells.empty:
            continue
        texts = cells[pd.to_numeric(cells, errors="coerce").isna()].astype(str)
        marked = mean_missing(texts)
        commas = bool(texts.str.fullmatch(r"[+-]?\d[\d.]*,\d[\d.,]*").all())
        few = len(texts) < 0.5 * len(cells) or (marked.all() and len(texts) < len(cells))
        if not len(texts) or not (few or commas):
            continue
        row = texts.index[int(marked.argmax())]
        named = table.index.name is not None
        where = f"{table.index.name} {table.index[row]}" if named else f"row {row}"
        told = f"column {name!r} of {path!r} must hold numbers; got {texts[row]!r} in {where}."
        cure = "Write it with a point" if commas else "Correct the cell"
        cure = f"If it means missing, pass --na {texts[row]!r}" if marked.any() else cure
        raise SettingsError(f'{told} {cure}, or declare it with --kind "{name}=categorical".')


def read_query(text: str, data: pd.DataFrame, how: Reading) -> tuple[dict[str, Any], Any]:
    """Return one row by column, and its name if it has one.

    It is given as a row number of `data` (or what names a row), JSON, a file with one row, or
    ``-``: any of these, or the text of such a file.
    """
    given = sys.stdin.read() if text.strip() == "-" else text
    wish = given.strip()
    if wish.startswith(("{", "[")):
        return how.row(_object(wish, "the query"))
    if wish.lower().endswith(".json"):
        return how.row(_object(read_text(wish, "the query file"), f"the query file {wish!r}"))
    if wish.lower().endswith((".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")):
        return _only_row(read_table(wish, "query", how), f"the query file {wish!r}", how)
    if given is not text and "\n" in wish:
        with _readable("the query"):
            table = next(_lines(lambda: io.StringIO(wish), None, how))
        return _only_row(how.timed(how.named(table)), "the query", how)
    if how.id is not None:
        return _row_named(wish, data, how.id)
    if not re.fullmatch("-?[0-9]{1,18}", wish):
        told = f"the query must be a row number, a JSON object or a file; got {text!r}."
        raise SettingsError(f"{told} For example --query 12.")
    if not 0 <= int(wish) < len(data):
        told = f"the query must be a row of the data, 0 to {len(data) - 1}; got {int(wish)}."
        raise SettingsError(told)
    return cells_of(data, int(wish)), None


def _only_row(table: pd.DataFrame, what: str, how: Reading) -> tuple[dict[str, Any], Any]:
    """Return the only row of a table, and its name."""
    if len(table) != 1:
        raise SettingsError(f"{what} must have one row; got {len(table)}. Use explain-many.")
    return cells_of(table, 0), table.index[0] if table.index.name == how.id is not None else None


def _row_named(wish: str, data: pd.DataFrame, column: str) -> tuple[dict[str, Any], Any]:
    """Return the row that the column of --id calls so, and its name."""
    names = data.index.map(str)
    places = (names == wish).nonzero()[0].tolist()
    if len(places) != 1:
        got = f"{len(places)} rows with {wish!r}." if places else f"{wish!r}."
        hint = "" if places else suggest(wish, names[:10_000])
        told = f"the query must be what one row of the data has as {column!r}; got {got}{hint}"
        raise SettingsError(told)
    return cells_of(data, places[0]), data.index[places[0]]


def as_number(cell: Any) -> Any:
    """Return the number that a text is, whole where it is written so, or else the cell itself."""
    if not isinstance(cell, str):
        return cell
    try:
        return int(cell) if re.fullmatch(r"\s*[+-]?\d+\s*", cell) else float(cell)
    except ValueError:
        return cell


def cells_of(table: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the cells of one row by column, each of its own type."""
    return {str(name): table[name].iloc[[row]].tolist()[0] for name in table.columns}


def _object(text: str, what: str) -> dict[str, Any]:
    """Return a JSON object, which may be the only one of a list."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{what} must be JSON; got {error}. Quote names and texts.") from error
    if isinstance(content, list) and len(content) == 1:
        content = content[0]
    if not isinstance(content, dict):
        told = f'{what} must be one JSON object like {{"age": 41}}; got {text[:80]!r}.'
        raise SettingsError(told)
    return content


def check_levels(row: Mapping[str, Any], features: Mapping[Any, Feature]) -> None:
    """Raise if a cell is a level that the data does not have: the model may not know it."""
    for name in [name for name in row if name in features and features[name].levelled]:
        value, known = row[name], features[name].levels
        missing = pd.api.types.is_scalar(value) and pd.isna(value)
        if known and not missing and value not in known:
            shown = ", ".join(repr(level) for level in known[:12]) + ", …" * (len(known) > 12)
            told = f"the query has {value!r} in column {name!r}, which the data does not have."
            raise SettingsError(f"{told}{suggest(value, known)} Known: {shown}.")
