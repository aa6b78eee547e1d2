"""Data and queries from files and from text."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.errors import MissingExtraError, SettingsError, suggest
from bayescfx.features import Feature


def read_text(path: str, what: str) -> str:
    """Return the text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{what} {path!r} can't be read: {reason}.") from error


def read_table(path: str, what: str = "data") -> pd.DataFrame:
    """Return the rows of a ``.csv`` file, which may be compressed, or of a ``.parquet`` file."""
    return next(read_chunks(path, None, what))


def read_chunks(
    path: str, n: int | None, what: str = "queries"
) -> Generator[pd.DataFrame, None, None]:
    """Yield the rows of a table, `n` at a time and the rest at last; all at once if it is None."""
    file = f"the {what} file {path!r}"
    kind = "".join(Path(path).suffixes[-2:]).lower()
    if not kind.endswith(".parquet") and ".csv" not in kind:
        raise SettingsError(f"{file} must end in .csv or .parquet. Convert it.")
    if not Path(path).is_file():
        raise SettingsError(f"there is no {what} file {path!r}. Correct the path.")
    # Numbers exactly as written; later versions of pandas do that by themselves.
    exact: Any = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
    empty = True
    with _readable(file):
        if n is None:
            parquet = kind.endswith(".parquet")
            whole = (
                pd.read_parquet(path) if parquet else pd.read_csv(path, index_col=False, **exact)
            )
            chunks: Iterator[pd.DataFrame] = iter([whole])
        elif kind.endswith(".parquet"):
            chunks = _row_groups(path, n)
        else:
            chunks = _lines(path, n, exact)
        for table in chunks:
            empty &= not len(table)
            table.columns = table.columns.map(str)
            if len(table):
                yield table
    if empty:
        raise SettingsError(f"{file} has no rows below the column names. Add some.")


def _lines(path: str, n: int, how: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    """Yield the rows of a CSV file, `n` at a time."""
    with pd.read_csv(path, index_col=False, chunksize=n, **how) as chunks:
        yield from chunks


def _row_groups(path: str, n: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of a parquet file, `n` at a time, however it was written."""
    rest = pd.DataFrame()
    for batch in importlib.import_module("pyarrow.parquet").ParquetFile(path).iter_batches(n):
        rest = (
            pd.concat([rest, batch.to_pandas()], ignore_index=True)
            if len(rest)
            else batch.to_pandas()
        )
        while len(rest) >= n:
            yield rest.iloc[:n].copy()
            rest = rest.iloc[n:]
    yield rest.copy()


@contextlib.contextmanager
def _readable(file: str) -> Iterator[None]:
    """Say in our words why a table can't be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
            yield
    except ImportError as error:
        raise MissingExtraError(
            "parquet files need pyarrow: pip install pyarrow, or use a CSV file."
        ) from error
    except pd.errors.EmptyDataError as error:
        raise SettingsError(
            f"{file} is empty. It must have a line of column names and rows."
        ) from error
    except pd.errors.ParserWarning as error:
        raise SettingsError(
            f"{file} must have as many fields in each row as in its first line; got more. Add the "
            "missing column names."
        ) from error
    except Exception as error:  # each reader has errors of its own, without a common base
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise SettingsError(
            f"{file} can't be read: {reason}. Save it again as CSV or parquet."
        ) from error


def check_numbers(table: pd.DataFrame, declared: Mapping[str, Any], path: str) -> None:
    """Raise if a column of no declared kind is numbers except for a few cells: mistakes."""
    for name in table.columns:
        cells = table[name]
        if name in declared or not pd.api.types.is_string_dtype(cells.dtype):
            continue
        known = cells.notna().to_numpy()
        wrong = known & pd.to_numeric(cells, errors="coerce").isna().to_numpy()
        if 0 < wrong.sum() < 0.5 * known.sum():
            row = int(wrong.argmax())
            raise SettingsError(
                f"column {name!r} of {path!r} must hold numbers; got {cells.iloc[row]!r} in row "
                f'{row}. Correct the cell, or declare it with --kind "{name}=categorical".'
            )


def read_query(text: str, data: pd.DataFrame) -> dict[str, Any]:
    """Return one row by column: a row number of `data`, JSON, a file with one row, or ``-``."""
    text = sys.stdin.read() if text.strip() == "-" else text
    wish = text.strip()
    if re.fullmatch("-?[0-9]{1,18}", wish):
        if not 0 <= int(wish) < len(data):
            raise SettingsError(
                f"the query must be a row of the data, 0 to {len(data) - 1}; got {int(wish)}."
            )
        return cells_of(data, int(wish))
    if wish.startswith(("{", "[")):
        return _object(wish, "the query")
    if wish.lower().endswith(".json"):
        return _object(read_text(wish, "the query file"), f"the query file {wish!r}")
    if wish.lower().endswith((".csv", ".parquet", ".csv.gz")):
        table = read_table(wish, "query")
        if len(table) != 1:
            raise SettingsError(
                f"the query file {wish!r} must have one row; got {len(table)}. Use explain-many."
            )
        return cells_of(table, 0)
    raise SettingsError(
        f"the query must be a row number, a JSON object or a file; got {text!r}. "
        "For example --query 12."
    )


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
        raise SettingsError(
            f'{what} must be one JSON object like {{"age": 41}}; got {text[:80]!r}.'
        )
    return content


def check_levels(row: Mapping[str, Any], features: Mapping[Any, Feature]) -> None:
    """Raise if a cell is a level that the data does not have: the model may not know it."""
    for name, value in row.items():
        known: Any = features[name].levels if name in features and features[name].levelled else ()
        missing = pd.api.types.is_scalar(value) and pd.isna(value)
        if known and not missing and value not in known:
            shown = ", ".join(repr(level) for level in known[:12]) + ", …" * (len(known) > 12)
            raise SettingsError(
                f"the query has {value!r} in column {name!r}, which the data does not have."
                f"{suggest(value, known)} Known: {shown}."
            )
