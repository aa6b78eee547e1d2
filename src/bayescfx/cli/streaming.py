"""More queries than fit in memory: read, answered and written part by part, and gone on with.

Each table that is written has a folder beside it while the work lasts, with a file for every 1,024
queries. The same command, given again after whatever ended it, leaves those alone that are there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from bayescfx.cli import answers
from bayescfx.cli.asking import SAID, command_key, stored
from bayescfx.errors import BayesCFXError, SettingsError, optional
from bayescfx.explainer import Batch, Explainer
from bayescfx.potentials import Target
from bayescfx.requests.answer_files import index_as_columns, query_index, write_table
from bayescfx.requests.console import Console
from bayescfx.requests.messages import describe_error
from bayescfx.requests.settings import Settings
from bayescfx.requests.subject import Subject, identify_model
from bayescfx.requests.table_files import read_chunks, read_table

PART = 1024  # queries in a file of answers, whole blocks


def stream(
    subject: Subject, target: Target, settings: Settings, out: list[str], console: Console
) -> int:
    """Answer the queries of a file into tables, and return the exit code."""
    wrong = [path for path in out if Path(path).suffix.lower() not in (".csv", ".parquet")]
    if wrong or not out:
        told = "many queries are answered into tables, --out FILE.csv or FILE.parquet; got"
        got = repr(wrong[0] if wrong else "none")
        raise SettingsError(f"{told} {got}. A report can be made of fewer than 1,000.")
    model = identify_model(subject, settings, console)
    key = command_key(settings, model.content)
    tables = [_Table(path, key) for path in out]
    done = set.intersection(*({int(part.stem) for part in table.parts} for table in tables))
    if done:
        console.note(f"{len(done)} parts of {PART} queries were answered before.")
    heard: Counter[str] = Counter()
    with contextlib.closing(stored(model, settings, console)) as store:
        try:
            options: Any = {k: getattr(settings, k) for k in (*SAID, "timeout", "run")}
            explainer = Explainer(
                model,
                subject.space,
                None if settings.evaluations is None else store,
                **options,
                rng=settings.seed,
                n_jobs=settings.jobs,
            )
            frames = _queries(subject, settings, done)
            batches = explainer.ask(frames, target, on_error="record", check_row=subject.check_row)
            passed = _told(_tables(batches, subject), heard, console)
            for number, found in groupby(passed, lambda t: t.index.get_level_values(0)[0] // PART):
                part = index_as_columns(pd.concat([*found]))
                for table in tables:
                    write_table(part, f"{table.folder / f'{number:08d}'}{table.kind}")
        except Exception as error:
            if isinstance(error, BayesCFXError) and not hasattr(error, "evaluations"):
                raise
            where = ", ".join(str(table.folder) for table in tables)
            told = f"after {heard['queries']} queries: {describe_error(error)} Their answers are in"
            console.error(f"{told} {where}; the same command goes on there.")
            return 2
    return _summed_up(tables, out, console, named=settings.id is not None)


def _queries(
    subject: Subject, settings: Settings, done: set[int]
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield what is still to be answered, each table with the position of its first row."""
    for k, frame in enumerate(
        read_chunks(settings.queries, PART, table_format=subject.table_format)
    ):
        if k not in done:
            names = None if settings.id is None else frame.index
            frame.index = query_index(k * PART, len(frame), names)
            gone = [*subject.ignored, *subject.dropped]
            yield k * PART, subject.as_numbers(frame.drop(columns=gone, errors="ignore"))


def _tables(batches: Iterator[Batch], subject: Subject) -> Iterator[pd.DataFrame]:
    """Yield the answers of each batch as a table."""
    for batch in batches:
        if batch.fault is not None:
            raise batch.fault
        if any(answer.stopped == "interrupted" for answer in batch.answers.values()):
            raise KeyboardInterrupt
        yield batch.to_frame(subject.space, describe_error)


def _told(
    parts: Iterable[pd.DataFrame], heard: Counter[str], console: Console
) -> Iterator[pd.DataFrame]:
    """Pass answers on, and say every few seconds how many there are."""
    last = time.monotonic()
    for part in parts:
        heard["queries"] += len(part.index.unique())
        if time.monotonic() - last > 5 and not console.is_quiet:
            last = time.monotonic()
            console.err.write(f"  {heard['queries']} queries done\n")
            console.err.flush()
        yield part


class _Table:
    """A table of answers that grows by parts, in a folder beside it."""

    def __init__(self, path: str, key: str) -> None:
        self.path, self.folder = Path(path), Path(f"{path}.parts")
        self.kind = self.path.suffix.lower()
        manifest, mine = self.folder / "manifest.json", json.dumps({"key": key})
        if manifest.is_file() and manifest.read_text() == mine:
            return
        if self.parts:
            told = f"{str(self.folder)!r} holds answers of another command, which was cut short."
            raise SettingsError(f"{told} Run that again, or remove the folder.")
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest.write_text(mine)

    @property
    def parts(self) -> list[Path]:
        """The files that are there, in their order."""
        return sorted(self.folder.glob(f"*{self.kind}"))

    def finish(self) -> None:
        """Put the parts together, one after the other, and remove them."""
        whole, parts = Path(f"{self.path}.part"), self.parts
        if self.kind == ".parquet":
            parquet: Any = optional("pyarrow.parquet", "parquet files need", "models")
            schema = parquet.read_schema(parts[0])
            with parquet.ParquetWriter(whole, schema) as writer:
                for part in parts:
                    writer.write_table(parquet.read_table(part).cast(schema))
        else:
            with whole.open("wb") as target:
                for part in parts:
                    with part.open("rb") as source:
                        if part != parts[0]:
                            source.readline()  # the names of the columns
                        shutil.copyfileobj(source, target)
        os.replace(whole, self.path)
        shutil.rmtree(self.folder)


def _summed_up(tables: list[_Table], out: list[str], console: Console, named: bool) -> int:
    """Put the tables together, say how the queries have ended, and return the exit code."""
    counts: Counter[str] = Counter()
    rows, reasons = 0, list[str]()
    for part in tables[0].parts:
        # A query has a line for each answer; first in each are its number, its name if it has one,
        # and its status, last but two the rows it took.
        lines = read_table(str(part))
        lines = lines.drop_duplicates(subset=lines.columns[0])
        status = lines.iloc[:, 2 if named else 1]
        counts.update(status.tolist())
        rows += int(pd.to_numeric(lines.iloc[:, -3]).fillna(0).sum())
        at, what = (1, lines.columns[1]) if named else (0, "row")
        wrong = lines[status == "error"].iloc[:1, [at, -1]].to_numpy()
        reasons += [f"{what} {query}: {why}" for query, why in wrong]
    for table in tables:
        table.finish()
    total, failed = sum(counts.values()), counts.pop("error", 0)
    where = ", ".join(out)
    text = f"{counts['reached']} of {total} reached. Scored {rows} rows. "
    plain = {"queries": total, **counts, "error": failed, "rows": rows, "files": out}
    console.write(f"{text}Answers: {where}.", plain)
    if failed:
        told = f"{failed} of {total} queries can't be asked; the first is {reasons[0]}"
        console.error(f"{told} The others have answers.")
        return 2
    return answers.exit_code(counts)
