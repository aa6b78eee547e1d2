"""One query from text: a row of the data, JSON, or a file with one row."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bayescfx.data import Feature
from bayescfx.data.values import is_missing
from bayescfx.errors import SettingsError, suggest
from bayescfx.requests.table_files import (
    TableFormat,
    csv_chunks,
    read_table,
    read_text,
    reading_errors,
)

TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")


def read_query(
    text: str, data: pd.DataFrame, table_format: TableFormat
) -> tuple[dict[str, Any], Any]:
    """Return one row by column, and its identifier if it has one.

    `text` is the number or the identifier of a row of `data`, JSON, a file with one row, or ``-``
    for any of these, or for the text of such a file, on standard input.
    """
    is_piped = text.strip() == "-"
    given = sys.stdin.read().strip() if is_piped else text.strip()
    if given.startswith(("{", "[")):
        return table_format.read_row(_parse_object(given, "the query"))
    if given.lower().endswith((".json", *TABLE_ENDINGS)):
        return _row_of_file(given, table_format)
    if is_piped and "\n" in given:
        return _piped_row(given, table_format)
    if table_format.id is not None:
        return _identified_row(given, data, table_format.id)
    return _numbered_row(given, data, text), None


def _row_of_file(path: str, table_format: TableFormat) -> tuple[dict[str, Any], Any]:
    """Return the only row of a file, and its identifier."""
    what = f"the query file {path!r}"
    if path.lower().endswith(".json"):
        content = read_text(path, "the query file")
        return table_format.read_row(_parse_object(content, what))
    return _only_row(read_table(path, "query", table_format), what, table_format)


def _piped_row(text: str, table_format: TableFormat) -> tuple[dict[str, Any], Any]:
    """Return the only row of a table that was piped as CSV."""
    with reading_errors("the query"):
        table = next(csv_chunks(lambda: io.StringIO(text), None, table_format))
    table = table_format.parse_dates(table_format.set_index(table))
    return _only_row(table, "the query", table_format)


def _only_row(
    table: pd.DataFrame, what: str, table_format: TableFormat
) -> tuple[dict[str, Any], Any]:
    """Return the only row of a table, and its identifier."""
    if len(table) != 1:
        raise SettingsError(f"{what} must have one row; got {len(table)}. Use explain-many.")
    is_identified = table_format.id is not None and table.index.name == table_format.id
    return row_cells(table, 0), table.index[0] if is_identified else None


def _identified_row(identifier: str, data: pd.DataFrame, column: str) -> tuple[dict[str, Any], Any]:
    """Return the only row of the data with an identifier, and this identifier."""
    names = data.index.map(str)
    places = (names == identifier).nonzero()[0].tolist()
    if len(places) != 1:
        got = f"{len(places)} rows with {identifier!r}."
        if not places:
            got = f"{identifier!r}.{suggest(identifier, names[:10_000])}"
        raise SettingsError(f"the query must be the {column!r} of one row of the data; got {got}")
    return row_cells(data, places[0]), data.index[places[0]]


def _numbered_row(number: str, data: pd.DataFrame, text: str) -> dict[str, Any]:
    """Return a row of the data by its position."""
    if not re.fullmatch("-?[0-9]{1,18}", number):
        raise SettingsError(
            f"the query must be a row number, a JSON object or a file; got {text!r}. "
            "For example --query 12."
        )
    if not 0 <= int(number) < len(data):
        raise SettingsError(
            f"the query must be a row of the data, 0 to {len(data) - 1}; got {int(number)}."
        )
    return row_cells(data, int(number))


def _parse_object(text: str, what: str) -> dict[str, Any]:
    """Return a JSON object, which may be the only one of a list."""
    content = _parse_json(text, what)
    rows = content if isinstance(content, list) else [content]
    if len(rows) != 1 or not isinstance(rows[0], dict):
        raise SettingsError(
            f'{what} must be one JSON object like {{"age": 41}}; got {text[:80]!r}.'
        )
    return dict(rows[0])


def _parse_json(text: str, what: str) -> Any:
    """Return the content of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{what} must be JSON; got {error}. Quote names and texts.") from error


def row_cells(table: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the cells of one row by column, each of its own type."""
    return {str(name): table[name].iloc[[row]].tolist()[0] for name in table.columns}


def check_levels(row: Mapping[str, Any], features: Mapping[Any, Feature]) -> None:
    """Raise if a cell is a level that the data does not have: the model may not know it."""
    for name in filter(features.__contains__, row):
        feature = features[name]
        if feature.has_levels and not _is_level(row[name], feature.levels):
            raise _unknown_level(name, row[name], feature.levels)


def _is_level(value: Any, levels: Sequence[Any]) -> bool:
    """Return whether a cell is missing or one of the levels; without levels, any cell is."""
    return not levels or value in levels or is_missing(value)


def _unknown_level(name: str, value: Any, levels: Sequence[Any]) -> SettingsError:
    """Return the error for a level that the data does not have."""
    shown = ", ".join(map(repr, levels[:12]))
    more = ", …" if len(levels) > 12 else ""
    return SettingsError(
        f"the query has {value!r} in column {name!r}, which the data does not have."
        f"{suggest(value, levels)} Known: {shown}{more}."
    )
