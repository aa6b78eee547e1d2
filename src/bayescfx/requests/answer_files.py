"""Answers as files: tables, workbooks, JSON, Markdown, reports and pictures."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.data.tables import free_name
from bayescfx.requests.messages import describe_error
from bayescfx.result.flat_table import flat_table
from bayescfx.result.wording import ID

TABLES = (".csv", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers to the queries of one request.

    Parameters
    ----------
    explanations : dict of position to Explanation
        The answers, in the order of the queries.
    errors : dict of position to str
        Why other queries have no answer.
    fault : exception, optional
        The error of the model, or of the file of evaluations, that ended the search.
    names : Index, optional
        The identifiers of all queries.
    is_single : bool
        Whether the request is about one query.
    """

    explanations: Mapping[int, cfx.Explanation] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    fault: BaseException | None = None
    names: pd.Index[Any] | None = None
    is_single: bool = False

    @classmethod
    def of(cls, result: cfx.Explanation | cfx.Explanations) -> Answers:
        """Return an explanation, or several, with the identifiers of their queries."""
        if isinstance(result, cfx.Explanation):
            column = result.about.get(ID)
            names = None
            if column is not None:
                names = pd.Index([result.about.get("row", "")], name=column)
            return cls(explanations={0: result}, names=names, is_single=True)
        return cls(explanations=dict(enumerate(result)), names=_identifiers(result.index))

    @property
    def result(self) -> cfx.Explanation | cfx.Explanations:
        """The only answer, or all of them with the identifiers of their queries."""
        if self.is_single:
            return self.explanations[0]
        index = None if self.names is None else self.names[[*self.explanations]]
        return cfx.Explanations([*self.explanations.values()], index)

    def to_frame(self) -> pd.DataFrame:
        """Return a line for each answer: number and identifier of its query, status, row."""
        n = max([*self.explanations, *self.errors]) + 1
        index = query_index(0, n, self.names)
        if self.names is None and self.is_single:  # the number of the row in the data
            index = pd.Index([self.explanations[0].about.get("row", 0)], name="query")
        space = self.explanations[min(self.explanations)].space
        return index_as_columns(flat_table(space, index, self.explanations, self.errors))


def _identifiers(index: pd.Index[Any]) -> pd.Index[Any] | None:
    """Return the index of answers, or None if it has nothing but their numbers."""
    if index.name is None and index.equals(pd.RangeIndex(len(index))):
        return None
    return index.to_flat_index().rename("id") if None in index.names else index


def query_index(first: int, n: int, names: pd.Index[Any] | None) -> pd.Index[Any]:
    """Return the numbers of `n` queries from `first` on, with their identifiers if there are."""
    index = pd.RangeIndex(first, first + n, name="query")
    return index if names is None else pd.MultiIndex.from_arrays([index, names[:n]])


def index_as_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as first columns."""
    names = [free_name(str(name), table.columns) for name in table.index.names]
    return table.rename_axis(names).reset_index()


def write_all(answers: Answers, paths: Iterable[str]) -> dict[str, str]:
    """Write answers to several files; return why some can't be written, by path.

    If one can't, the complete answers are saved in a temporary file that the reason names.
    """
    failures = try_to_write(answers, paths)
    if not failures:
        return {}
    handle, spare = tempfile.mkstemp(".json", "bayescfx-")
    os.close(handle)
    write_answers(answers, spare)
    advice = f"The complete answer is in {spare}; `bayescfx report` makes files of it."
    return {path: f"{reason} {advice}" for path, reason in failures.items()}


def try_to_write(answers: Answers, paths: Iterable[str]) -> dict[str, str]:
    """Write answers to the files that can be written; return why others can't, by path."""
    failures = {}
    for path in paths:
        try:
            write_answers(answers, path)
        except Exception as error:  # each library that writes has errors of its own
            failures[path] = describe_error(error)
    return failures


def write_answers(answers: Answers, path: str) -> None:
    """Write answers in the form that the ending of the path asks for."""
    ending = Path(path).suffix.lower()
    reports = (".html",) if answers.is_single else (".html", ".pdf")
    if ending in TABLES:
        write_table(answers.to_frame(), path)
    elif ending in reports:
        cfx.plots.report(answers.result, path)
    elif ending in PICTURES:
        _write_picture(answers, path)
    else:
        with _replacing(path) as part:
            _write_text(answers, ending, part)


def _write_picture(answers: Answers, path: str) -> None:
    """Write a chart: the changes of one answer, or the movements of many."""
    result: Any = answers.result
    draw = cfx.plots.change_chart if answers.is_single else cfx.plots.movements
    cfx.plots.save(draw(result), path)


def _write_text(answers: Answers, ending: str, path: str) -> None:
    """Write a workbook, JSON or Markdown."""
    if ending == ".xlsx":
        _write_workbook(answers, path)
        return
    result = answers.result
    text = result.to_json() if ending == ".json" else result.to_markdown()
    Path(path).write_text(text, encoding="utf-8")


def write_table(table: pd.DataFrame, path: str) -> None:
    """Write a table as CSV or parquet."""
    with _replacing(path) as part:
        if path.lower().endswith(".csv"):
            _without_formulas(table).to_csv(part, index=False)
        else:
            table.to_parquet(part)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Yield a path to write to, which then replaces the file: there is always a whole one."""
    yield f"{path}.part"
    os.replace(f"{path}.part", path)


def _write_workbook(answers: Answers, path: str) -> None:
    """Write answers as a workbook; for many, a second sheet shows how often features change."""
    sheets = {"answers": answers.to_frame()}
    result = answers.result
    if isinstance(result, cfx.Explanations):
        sheets["features"] = result.importance()
    with open(path, "wb") as file, pd.ExcelWriter(file, engine="openpyxl") as book:
        for name, table in sheets.items():
            plain = _without_formulas(_without_time_zones(table))
            plain.to_excel(book, sheet_name=name, index=False, freeze_panes=(1, 0))


def _without_time_zones(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose times with a zone are texts: workbooks have no time zones."""
    for c, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.DatetimeTZDtype):
            table.isetitem(c, table.iloc[:, c].astype(str).array)
    return table


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no title and no text is a formula for a spreadsheet."""
    safe = table.rename(columns=as_text_cell)
    for c, dtype in enumerate(table.dtypes):
        if dtype.kind not in "biufcmM":
            safe.isetitem(c, table.iloc[:, c].map(as_text_cell, na_action="ignore").array)
    return safe


def as_text_cell(value: Any) -> Any:
    """Return a cell; a text that a spreadsheet would take for a formula begins with ``'``."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", value)  # which workbooks can't hold
    is_number = re.fullmatch(r"[+-][\d.,]+(e[+-]?\d+)?%?", text, re.I)
    is_formula = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not is_number
    return f"'{text}" if is_formula else text
