"""Separator, decimal sign and columns of a CSV text, judged by its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

SEPARATORS = ",;\t|"
SAMPLE = 200  # lines that are looked at; set by judgement, 2026-11-18


def csv_arguments(source: Callable[[], Any]) -> dict[str, Any]:
    """Return arguments of ``pandas.read_csv``, and under "columns" the names in the first line."""
    lines = _first_lines(source)
    separator = max(SEPARATORS, key=lambda sign: _fitness(lines, sign))
    names = pd.read_csv(source(), sep=separator, nrows=0, index_col=False).columns.map(str)
    titles, *body = _split(lines, separator)
    columns = [[cell for cell in column if cell] for column in zip(*body, strict=False)]
    return {
        "columns": names,
        "sep": separator,
        "usecols": _used_columns(titles, columns, len(names)),
        "decimal": _decimal_sign(columns, separator),
    }


def _first_lines(source: Callable[[], Any]) -> list[str]:
    """Return the first lines as they are written; pandas also opens compressed files."""
    plain: Any = {"quoting": csv.QUOTE_NONE, "dtype": str, "na_filter": False}
    raw = pd.read_csv(source(), header=None, sep="\x01", nrows=SAMPLE, **plain)
    return list(raw.iloc[:, 0])


def _split(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the fields of each line; the last of a full sample may be cut within quotes."""
    rows = list(csv.reader(lines, delimiter=separator))
    return rows[: SAMPLE - 1] if len(lines) == SAMPLE else rows


def _fitness(lines: Sequence[str], separator: str) -> tuple[bool, int]:
    """Return whether all lines have as many fields, more than one, and how many the first has."""
    widths = [len(row) for row in _split(lines, separator)]
    return min(widths) == max(widths) > 1, widths[0]


def _used_columns(
    titles: Sequence[str], columns: Sequence[Sequence[str]], n: int
) -> list[int] | None:
    """Return the positions of columns with a title or cells, or None if all `n` have some.

    A separator at the end of each line makes no column.
    """
    pairs = zip_longest(titles[:n], columns[:n])
    used = [k for k, (title, cells) in enumerate(pairs) if title or cells]
    return used if len(used) < n else None


def _decimal_sign(columns: Sequence[Sequence[str]], separator: str) -> str:
    """Return the decimal sign of the numbers in columns of cells."""
    if separator == "," or not any(map(_has_decimal_commas, columns)):
        return "."
    return "." if any(map(_has_decimal_points, columns)) else ","


def _has_decimal_points(cells: Iterable[str]) -> bool:
    """Return whether a cell is a number with a decimal point."""
    return any(re.fullmatch(r"[+-]?\d*\.\d+", cell) for cell in cells)


def _has_decimal_commas(cells: Iterable[str]) -> bool:
    """Return whether all cells are numbers, some with a comma that can't mean thousands."""
    matches = [re.fullmatch(r"[+-]?(\d+)(?:,(\d+))?(?:[eE][+-]?\d+)?", cell) for cell in cells]
    if None in matches:
        return False
    numbers = [match.groups() for match in matches if match is not None]
    return any(_has_fraction(whole, rest) for whole, rest in numbers)


def _has_fraction(whole: str, rest: str | None) -> bool:
    """Return whether the digits after a comma are a fraction: no thousands follow it."""
    if rest is None:
        return False
    is_thousands = len(rest) == 3 and 0 < len(whole.lstrip("0")) <= 3
    return not is_thousands
