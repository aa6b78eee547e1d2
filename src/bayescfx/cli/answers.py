"""Answers as text, as JSON for scripts, and as files."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx
from bayescfx import Counterfactual, Explanation, Explanations, WhatIf
from bayescfx.cli.asking import Asked
from bayescfx.cli.console import describe
from bayescfx.data.tables import free_name
from bayescfx.models.protocols import cell
from bayescfx.result import wording
from bayescfx.result.explanations import lines


def exit_code(statuses: Iterable[str]) -> int:
    """Return 0 if all are reached, 3 if some are a best guess, 4 if some are out of reach."""
    found = set(statuses)
    return 3 if "best_guess" in found else 4 if "unreachable" in found else 0


def as_text(answer: Explanation) -> str:
    """Return the answer as a table and sentences: one line per feature, one column per answer."""
    n = len(answer.counterfactuals)
    heads = [f"answer {k + 1}" for k in range(n)] if n > 1 else ["then"]
    told = [["", "now", *heads], *wording.changed(answer)]
    table = "\n".join(f"  {line}" for line in _aligned(told, "<" + ">" * len(told[0])))
    return f"{table}\n\n{answer}"


def _aligned(lines: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return the lines of a table whose columns are aligned to the sides given, ``<`` or ``>``."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(f"{t:{s}{w}}" for t, s, w in zip(line, sides, widths, strict=False)).rstrip()
        for line in lines
    ]


def many_as_text(asked: Asked) -> str:
    """Return one line per query: how it ended and what the best answer is."""
    names = range(len(asked.answers) + len(asked.failures)) if asked.names is None else asked.names
    told = [[str(getattr(names, "name", "query")), "status", "now", "then", "changes"]]
    for i, answer in asked.answers.items():
        status, best = answer.status.replace("_", " "), answer.best
        outputs = wording.number(answer.output), wording.number(best.output)
        told.append([str(names[i]), status, *outputs, wording.best_moves(answer)])
    told += [[str(names[i]), "error", "", "", reason] for i, reason in asked.failures.items()]
    reached = sum(answer.reached for answer in asked.answers.values())
    rows = sum(answer.n_evaluations for answer in asked.answers.values())
    total = f"{reached} of {len(told) - 1} reached; {rows} rows of the model used."
    return "\n".join([*_aligned(told, ">>>><"), "", total])


def as_plain(answer: Explanation) -> dict[str, Any]:
    """Return the answer in JSON's own types, simple to read; the complete form is `to_json`."""
    return {
        **fields(answer, "status", "stopped", "output"),
        "target": str(answer.target),
        **fields(answer, "wanted"),
        "counterfactuals": [
            {
                **fields(found, "output"),
                "prediction": cell(found.output),  # as "output" was called; for one version
                **fields(found, "valid", "potential", "cost"),
                **_changes(found, answer.layout.names),
            }
            for found in answer.counterfactuals
        ],
        **fields(answer, "reachable", "probability_reachable", "n_evaluations", "seed"),
        "text": str(answer),
    }


def what_if_as_plain(found: WhatIf, names: Iterable[Any]) -> dict[str, Any]:
    """Return a row changed by hand in JSON's own types."""
    told = fields(found, "query_output", "output", "miss", "reached", "broken")
    return {**told, **_changes(found, names)}


def _changes(found: Counterfactual | WhatIf, names: Iterable[Any]) -> dict[str, Any]:
    """Return what was changed, and the row, in JSON's own types."""
    pairs = {str(name): (cell(old), cell(new)) for name, (old, new) in found.changes.items()}
    return {
        "changes": {name: {"from": old, "to": new} for name, (old, new) in pairs.items()},
        "row": {str(n): cell(v) for n, v in zip(names, list(found.row), strict=True)},
    }


def fields(thing: object, *names: str) -> dict[str, Any]:
    """Return some of what a thing has, in JSON's own types."""

    def plain(value: Any) -> Any:
        return [*map(plain, value)] if isinstance(value, tuple) else cell(value)

    return {name: plain(getattr(thing, name)) for name in names}


def many_as_plain(asked: Asked) -> dict[str, Any]:
    """Return the answers in JSON's own types, with the position of each query."""
    every = [*asked.answers, *asked.failures]
    who = {i: {"query": i, **named(asked.names, i)} for i in every}
    return {
        "answers": [{**who[i], **as_plain(a)} for i, a in asked.answers.items()],
        "failures": [{**who[i], "error": reason} for i, reason in asked.failures.items()],
    }


def named(names: pd.Index[Any] | None, i: int) -> dict[str, Any]:
    """Return what a query is called in JSON's own types, if it is."""
    return {} if names is None else {"id": cell(names[i])}


def write_all(found: Asked, paths: Iterable[str], rescue: bool = True) -> dict[str, str]:
    """Write answers to every file that can be; return why others can't, and where they are kept."""
    lost: dict[str, str] = {}
    for path in paths:
        try:
            write(found, path)
        except Exception as error:  # each library that writes has errors of its own
            lost[path] = describe(error)
    if lost and rescue:
        handle, spare = tempfile.mkstemp(".json", "bayescfx-")
        os.close(handle)
        write(found, spare)
        told = f" The complete answer is in {spare}; `bayescfx report` makes files of it."
        lost = {path: why + told for path, why in lost.items()}
    return lost


def write(asked: Asked, path: str) -> None:
    """Write an answer, or many, in the form that the file's name asks for."""
    kind, many = Path(path).suffix.lower(), not asked.single
    answer: Any = asked.found
    if kind in (".csv", ".parquet"):
        write_table(as_table(asked), path)
    elif kind == ".html" or (kind == ".pdf" and many):
        bayescfx.plots.report(answer, path)
    elif kind in (".png", ".svg", ".pdf"):
        draw = bayescfx.plots.movements if many else bayescfx.plots.change_chart
        bayescfx.plots.save(draw(answer), path)
    else:
        with _replacing(path) as part:
            if kind == ".xlsx":
                _write_sheets(asked, part)
            else:
                text = answer.to_json() if kind == ".json" else answer.to_markdown()
                Path(part).write_text(text, encoding="utf-8")


def write_table(table: pd.DataFrame, path: str) -> None:
    """Write a table as CSV or parquet."""
    with _replacing(path) as part:
        if path.lower().endswith(".csv"):
            _for_spreadsheets(table).to_csv(part, index=False)
        else:
            table.to_parquet(part)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Write a file so that there is always a whole one: the old or the new."""
    yield f"{path}.part"
    os.replace(f"{path}.part", path)


def _write_sheets(asked: Asked, path: str) -> None:
    """Write answers as a workbook; of many also how often and how far features move."""
    sheets, answer = {"answers": as_table(asked)}, asked.found
    if isinstance(answer, Explanations):
        sheets["features"] = answer.importance()
    with open(path, "wb") as file, pd.ExcelWriter(file, engine="openpyxl") as book:
        for name, table in sheets.items():
            for c, kind in enumerate(table.dtypes):
                if isinstance(kind, pd.DatetimeTZDtype):  # workbooks know no time zones
                    table.isetitem(c, table.iloc[:, c].astype(str).array)
            told = _for_spreadsheets(table)
            told.to_excel(book, sheet_name=name, index=False, freeze_panes=(1, 0))


def _for_spreadsheets(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of which no name and no text is taken for a formula."""
    safe = table.rename(columns=as_text_cell)
    for c, kind in enumerate(table.dtypes):
        if kind.kind not in "biufcmM":
            safe.isetitem(c, table.iloc[:, c].map(as_text_cell, na_action="ignore").array)
    return safe


def as_text_cell(value: Any) -> Any:
    """Return a cell; a text that would be a formula begins with ``'``."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", value)  # which workbooks can't hold
    number = re.fullmatch(r"[+-][\d.,]+(e[+-]?\d+)?%?", text, re.I)
    formula = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not number
    return f"'{text}" if formula else text


def as_table(asked: Asked) -> pd.DataFrame:
    """Return a line per answer: the query (number, name), how it ended, row and changes."""
    index = places(0, max([*asked.answers, *asked.failures]) + 1, asked.names)
    if asked.names is None and asked.single:  # the row of the data that was asked about
        index = pd.Index([asked.answers[0].about.get("row", 0)], name="query")
    space = asked.answers[min(asked.answers)].space
    return indexed(lines(space, index, asked.answers, asked.failures))


def places(first: int, n: int, names: pd.Index[Any] | None) -> pd.Index[Any]:
    """Return the numbers of `n` queries, with their names if they have some."""
    index = pd.RangeIndex(first, first + n, name="query")
    return index if names is None else pd.MultiIndex.from_arrays([index, names[:n]])


def indexed(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as first columns."""
    named = [free_name(str(name), table.columns) for name in table.index.names]
    return table.rename_axis(named).reset_index()
