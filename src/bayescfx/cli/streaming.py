"""More queries than fit in memory: read, answered and written part by part.

The same command, given again after an interruption, goes on with the parts that are missing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.cli.answers import exit_code
from bayescfx.cli.asking import Request
from bayescfx.cli.growing_table import GrowingTable
from bayescfx.cli.progress_lines import SECONDS
from bayescfx.errors import BayesCFXError, SettingsError
from bayescfx.requests.answer_files import TABLES, index_as_columns, query_index
from bayescfx.requests.console import Console
from bayescfx.requests.explaining import make_explainer
from bayescfx.requests.messages import describe_error, describe_query_error
from bayescfx.requests.settings import Settings
from bayescfx.requests.table_files import read_chunks

PART = 1024  # queries in a part: 16 blocks, so that parts do not change the answers

#: Settings that do not change the answers.
WITHOUT_EFFECT = ("timeout", "jobs", "forget", "title", "output_name", "unit", "about")


def stream(request: Request, out: list[str]) -> int:
    """Answer the queries of a file into tables; return the exit code."""
    _check_outputs(out)
    console = request.console
    with make_explainer(request.subject, request.settings, console) as explainer:
        key = request_key(request.settings, explainer.model.content)
        tables = [GrowingTable(path, key) for path in out]
        done = set.intersection(*(set(table.summaries()) for table in tables))
        if done:
            console.note(f"{len(done)} parts of {PART} queries were answered before.")
        progress = _Progress(console)
        try:
            for number, batches in _answer(request, explainer, done, progress):
                _write_part(number, batches, tables, request)
        except Exception as error:
            if _is_request_error(error):
                raise
            folders = ", ".join(str(table.folder) for table in tables)
            console.error(
                f"after {progress.n_queries} queries: {describe_error(error)} Their answers are "
                f"in {folders}; the same command goes on there."
            )
            return 2
    return _finish(tables, out, console)


def _is_request_error(error: Exception) -> bool:
    """Return whether an error is about the request, not about the model."""
    return isinstance(error, BayesCFXError) and not hasattr(error, "evaluations")


def _write_part(
    number: int, batches: list[cfx.Batch], tables: list[GrowingTable], request: Request
) -> None:
    """Write the answers of one part, and its summary, to all tables."""
    space = request.subject.space
    frames = [batch.to_frame(space, describe_query_error) for batch in batches]
    part = index_as_columns(pd.concat(frames))
    summary = _summarize(batches, request.settings.id)
    for table in tables:
        table.write_part(number, part, summary)


def _check_outputs(out: list[str]) -> None:
    """Raise unless all outputs are tables."""
    wrong = [repr(path) for path in out if Path(path).suffix.lower() not in TABLES]
    if wrong or not out:
        got = ", ".join(wrong[:1]) or "none"
        raise SettingsError(
            f"many queries are answered into tables, --out FILE.csv or FILE.parquet; got {got}. "
            "A report can be made of up to 1,000."
        )


def _answer(
    request: Request, explainer: cfx.Explainer, done: set[int], progress: _Progress
) -> Iterator[tuple[int, list[cfx.Batch]]]:
    """Yield number and answers of each part that is not done; a fault is raised."""
    batches = explainer.ask(
        _queries(request, done),
        request.target,
        on_error="record",
        check_row=request.subject.check_row,
    )
    for number, part in groupby(batches, lambda batch: batch.first // PART):
        answered = []
        for batch in part:
            if batch.fault is not None:
                raise batch.fault
            answered.append(batch)
            progress.add(len(batch.index))
        yield number, answered


def _queries(request: Request, done: set[int]) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield the queries of the parts that are not done, with the position of the first."""
    subject = request.subject
    is_identified = request.settings.id is not None
    chunks = read_chunks(request.settings.queries, PART, table_format=subject.table_format)
    for number, table in enumerate(chunks):
        if number not in done:
            queries = subject.select_columns(table)
            names = table.index if is_identified else None
            queries.index = query_index(number * PART, len(table), names)
            yield number * PART, queries


class _Progress:
    """Counts answered queries, and writes every few seconds how many there are."""

    def __init__(self, console: Console) -> None:
        self.n_queries = 0
        self._console = console
        self._last = time.monotonic()

    def add(self, n: int) -> None:
        """Count more queries."""
        self.n_queries += n
        now = time.monotonic()
        if now - self._last > SECONDS and not self._console.is_quiet:
            self._last = now
            self._console.err.write(f"  {self.n_queries} queries done\n")
            self._console.err.flush()


def _summarize(batches: list[cfx.Batch], column: str | None) -> dict[str, Any]:
    """Return statuses, scored rows and the first error of some batches.

    `column` identifies queries, if there is one.
    """
    answers = [answer for batch in batches for answer in batch.answers.values()]
    errors = [text for batch in batches for text in _error_texts(batch, column)]
    statuses: Counter[str] = Counter(answer.status for answer in answers)
    if errors:
        statuses["error"] = len(errors)
    n_rows = sum(answer.n_evaluations for answer in answers)
    first_error = errors[0] if errors else None
    return {"statuses": statuses, "n_rows": n_rows, "first_error": first_error}


def _error_texts(batch: cfx.Batch, column: str | None) -> Iterator[str]:
    """Yield why queries of a batch have no answer, with their names."""
    for position, error in batch.errors.items():
        name = f"row {position}"
        if column is not None:
            name = f"{column} {batch.index[position - batch.first][1]}"
        yield f"{name}: {describe_query_error(error)}"


def _finish(tables: list[GrowingTable], out: list[str], console: Console) -> int:
    """Put the tables together, write how the queries ended, and return the exit code."""
    summaries = list(tables[0].summaries().values())
    statuses: Counter[str] = Counter()
    for summary in summaries:
        statuses.update(summary["statuses"])
    n_rows = sum(summary["n_rows"] for summary in summaries)
    for table in tables:
        table.finish()
    n_queries = statuses.total()
    n_errors = statuses.pop("error", 0)
    console.write(
        f"{statuses['reached']} of {n_queries} reached. Scored {n_rows} rows. "
        f"Answers: {', '.join(out)}.",
        {"queries": n_queries, **statuses, "error": n_errors, "rows": n_rows, "files": out},
    )
    if n_errors:
        first_error = next(filter(None, (summary["first_error"] for summary in summaries)))
        console.error(
            f"{n_errors} of {n_queries} queries can't be asked; the first is {first_error} "
            "The others have answers."
        )
        return 2
    return exit_code(statuses)


def request_key(settings: Settings, model: str | None) -> str:
    """Return what identifies a request: version, settings, model and the content of its files."""
    names = [each.name for each in fields(settings) if each.name not in WITHOUT_EFFECT]
    values = [(name, getattr(settings, name)) for name in names]
    key = hashlib.sha256(repr((cfx.__version__, values, model)).encode())
    for path in (settings.queries, settings.data):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                key.update(hashlib.file_digest(file, "sha256").digest())
    return key.hexdigest()
