"""Data and queries from files and from text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.errors import BayesCFXError, MissingExtraError, suggest

_MOSTLY = 0.5  # share of cells that are numbers from which on the others are mistakes


class TableError(BayesCFXError, ValueError):
    """A file of rows, or a query, is not usable."""


def read_table(path: str, what: str = "data") -> pd.DataFrame:
    """Return the rows of a ``.csv`` or ``.parquet`` file.

    Parameters
    ----------
    path : str
        The file; a CSV file may be compressed.
    what : str
        How to call it in messages.

    Raises
    ------
    TableError
        If there is no such file, or it is empty, damaged or of another kind.
    """
    file = Path(path)
    kind = "".join(file.suffixes[-2:]).lower()
    read: Callable[[Path], pd.DataFrame]
    if kind.endswith(".parquet"):
        read = _read_parquet
    elif ".csv" in kind:
        read = _read_csv
    else:
        raise TableError(f"the {what} file {path!r} must end in .csv or .parquet. Convert it.")
    if not file.is_file():
        raise TableError(f"there is no {what} file {path!r}. Correct the path.")
    try:
        table = read(file)
    except MissingExtraError:
        raise
    except pd.errors.EmptyDataError as error:
        raise TableError(
            f"the {what} file {path!r} is empty. It must have a line of column names and rows."
        ) from error
    except Exception as error:  # each reader has errors of its own, without a common base
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableError(
            f"the {what} file {path!r} can't be read: {reason}. Save it again as CSV or parquet."
        ) from error
    if not len(table):
        raise TableError(f"the {what} file {path!r} has no rows below the column names. Add some.")
    table.columns = table.columns.map(str)
    return table


def _read_csv(file: Path) -> pd.DataFrame:
    # Numbers exactly as written; later versions of pandas do that by themselves.
    exact: Any = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
    table: pd.DataFrame = pd.read_csv(file, **exact)
    return table


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(file)
    except ImportError as error:
        raise MissingExtraError(
            "parquet files need pyarrow: pip install pyarrow, or use a CSV file."
        ) from error


def check_numbers(table: pd.DataFrame, declared: Mapping[str, Any], path: str) -> None:
    """Raise if a column is numbers except for a few cells: those are mistakes.

    Parameters
    ----------
    declared : dict
        Columns whose kind the user has given are left alone.

    Examples
    --------
    >>> check_numbers(pd.DataFrame({"bmi": ["21", "x", "25"]}), {}, "X.csv")
    Traceback (most recent call last):
    ...
    bayescfx.cli.tables.TableError: column 'bmi' of 'X.csv' must hold numbers; got 'x' in row 1. \
Correct the cell, or declare it with --kind "bmi=categorical".
    """
    for name in table.columns:
        cells = table[name]
        if name in declared or not pd.api.types.is_string_dtype(cells.dtype):
            continue
        known = cells.notna().to_numpy()
        wrong = known & pd.to_numeric(cells, errors="coerce").isna().to_numpy()
        if wrong.any() and wrong.sum() < _MOSTLY * known.sum():
            row = int(wrong.argmax())
            raise TableError(
                f"column {name!r} of {path!r} must hold numbers; got {cells.iloc[row]!r} in row "
                f'{row}. Correct the cell, or declare it with --kind "{name}=categorical".'
            )


def read_query(text: str, data: pd.DataFrame) -> dict[str, Any]:
    """Return one row, with the cells of all its columns.

    Parameters
    ----------
    text : str
        A row number of `data`, a JSON object, a file with one row, or ``-`` for JSON on stdin.
    data : DataFrame
        All columns of the data file.

    Raises
    ------
    TableError
        If it is none of these.

    Examples
    --------
    >>> read_query("1", pd.DataFrame({"age": [30, 40]}))
    {'age': 40}
    """
    text = sys.stdin.read() if text.strip() == "-" else text
    wish = text.strip()
    if wish.removeprefix("-").isdigit():
        return _row(int(wish), data)
    if wish.startswith(("{", "[")):
        return _object(wish, "the query")
    if wish.lower().endswith(".json"):
        return _object(_text(wish), f"the query file {wish!r}")
    if wish.lower().endswith((".csv", ".parquet", ".csv.gz")):
        table = read_table(wish, "query")
        if len(table) != 1:
            raise TableError(
                f"the query file {wish!r} must have one row; got {len(table)}. Use explain-many."
            )
        return cells_of(table, 0)
    raise TableError(
        f"the query must be a row number, a JSON object or a file; got {text!r}. "
        "For example --query 12."
    )


def cells_of(table: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the cells of one row by column, each of its own type."""
    return {str(name): table[name].iloc[[row]].tolist()[0] for name in table.columns}


def _row(number: int, data: pd.DataFrame) -> dict[str, Any]:
    if not 0 <= number < len(data):
        raise TableError(
            f"the query must be a row of the data, 0 to {len(data) - 1}; got {number}."
        )
    return cells_of(data, number)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"the query file {path!r} can't be read: {error}.") from error


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise TableError(f"{what} must be JSON; got {error}. Quote names and texts.") from error
    if isinstance(content, list) and len(content) == 1:
        content = content[0]
    if not isinstance(content, dict):
        raise TableError(f'{what} must be one JSON object like {{"age": 41}}; got {text[:80]!r}.')
    return {str(name): value for name, value in content.items()}


def fit_query(row: Mapping[str, Any], wanted: list[str], known: list[str]) -> dict[str, Any]:
    """Return the cells that the model takes.

    Parameters
    ----------
    row : dict
        The query.
    wanted : list of str
        The columns the model takes.
    known : list of str
        All columns of the data: those not wanted may be in the query too.
    """
    missing = [name for name in wanted if name not in row]
    extra = [name for name in row if name not in known]
    if missing:
        unknown = f" It has {', '.join(extra[:12])}, which the data does not." if extra else ""
        raise TableError(
            f"the query must have every column that the model takes; missing: "
            f"{', '.join(missing[:12])}.{suggest(missing[0], extra)}{unknown} Rename or add it."
        )
    if extra:
        raise TableError(
            f"the query must have only columns of the data; unknown: {', '.join(extra[:12])}."
            f"{suggest(extra[0], known)} Rename it or leave it out."
        )
    return {name: row[name] for name in wanted}


def check_levels(row: Mapping[str, Any], levels: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise if a cell is a level that the data does not have: the model may not know it."""
    for name, known in levels.items():
        value = row[name]
        missing = value is None or bool(pd.isna(value))
        if not missing and value not in known:
            shown = ", ".join(repr(level) for level in known[:12])
            more = ", …" if len(known) > 12 else ""
            raise TableError(
                f"the query has {value!r} in column {name!r}, which the data does not have."
                f"{suggest(value, known)} Known: {shown}{more}."
            )
