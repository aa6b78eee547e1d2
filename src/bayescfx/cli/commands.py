"""The commands: each takes its options and the console, and returns the exit code."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.cli import answers
from bayescfx.cli.asking import ask, who
from bayescfx.cli.streaming import stream
from bayescfx.errors import BayesCFXError, EvaluationsError, SettingsError, SpaceWarning
from bayescfx.potentials import Target
from bayescfx.requests.answer_files import Answers, try_to_write, write_all, write_answers
from bayescfx.requests.console import Console
from bayescfx.requests.messages import describe_error
from bayescfx.requests.option import about_parameter
from bayescfx.requests.query_rows import read_query, row_cells
from bayescfx.requests.report_facts import naming_facts
from bayescfx.requests.settings import Settings, gather_settings, split_assignment
from bayescfx.requests.subject import Subject, identify_model, read_subject
from bayescfx.requests.table_files import read_chunks, read_text
from bayescfx.requests.target_text import parse_target
from bayescfx.result import wording


def explain(options: Namespace, console: Console) -> int:
    """Answer one question."""
    settings, target, subject = _question(options, "query", console)
    cells, name = read_query(settings.query, subject.data, subject.table_format)
    names = None if name is None else pd.Index([name], name=settings.id)
    asked = Answers(names=names, is_single=True)
    asked = ask(subject, {0: subject.check_query(cells)}, target, settings, console, asked)
    answer = asked.explanations[0]
    plain = {**answers.identifier_json(names, 0), **answers.answer_json(answer)}
    code, _ = _handed_out(asked, options.out, answers.answer_text(answer), plain, console)
    if asked.fault is None:
        return code
    told = f"after {answer.n_evaluations} rows: {describe_error(asked.fault)}"
    told += " The answer is the best of what was known by then."
    return _failed(asked.fault, told, console, code)


def predict(options: Namespace, console: Console) -> int:
    """Score a row changed by hand."""
    settings = gather_settings(options)
    settings.require("model", "data", "query")
    target = None if not settings.target else parse_target(settings.target)
    subject = read_subject(settings, console)
    cells, _ = read_query(settings.query, subject.data, subject.table_format)
    space, query, model = (
        subject.space,
        subject.check_query(cells),
        identify_model(subject, settings, console),
    )
    said = dict(split_assignment("--set", text, may_be_empty=True) for text in options.set)
    changes, _ = subject.table_format.read_row({name: text or None for name, text in said.items()})
    with about_parameter("set"):
        for name in [name for name, value in changes.items() if isinstance(value, str)]:
            feature = space.features[space.name(name)]
            changes[name] = feature.parse(changes[name], name, "set")
        found = cfx.what_if(model, query, changes, space, target, tolerance=settings.tolerance)
    found = replace(found, about=naming_facts(settings))
    console.write(str(found), answers.what_if_json(found, space.schema.places))
    return 3 if found.reached is False else 0


def explain_many(options: Namespace, console: Console) -> int:
    """Answer one question for each row of a file; what is answered is written at once."""
    settings, target, subject = _question(options, "queries", console)
    with contextlib.closing(
        read_chunks(settings.queries, 1001, table_format=subject.table_format)
    ) as chunks:
        table = next(chunks)
    if len(table) > 1000 or settings.jobs is not None:
        return stream(subject, target, settings, options.out, console)
    names = None if settings.id is None else table.index
    counted = f"of {len(table)} queries"
    queries, refused = _queries(subject, subject.as_numbers(table), settings, console)

    def keep(asked: Answers) -> None:
        quick = [path for path in options.out if path.endswith((".json", ".csv", ".parquet"))]
        try_to_write(asked, quick)

    asked = ask(
        subject, queries, target, settings, console, Answers(errors=refused, names=names), keep
    )
    lost = [i for i in queries if i not in asked.explanations]
    why = "interrupted" if asked.fault is None else "the model failed"
    failures = refused | dict.fromkeys(lost, f"not answered: {why} before")
    asked = replace(asked, errors=failures)
    text, plain = answers.many_text(asked), answers.many_json(asked)
    code, where = _handed_out(asked, options.out, text, plain, console)
    if asked.fault is not None:
        told = f"half-way: {describe_error(asked.fault)} {len(asked.explanations)} {counted}"
        told += f" have answers, the last ones from what was known by then.{where}"
        return _failed(asked.fault, told, console, code or 2 * bool(failures))
    if lost:
        told = f"interrupted: {len(asked.explanations)} {counted} have answers."
        console.error(told + where)
        return 130
    if failures:
        first = min(failures)
        told = f"{len(failures)} {counted} can't be asked; the first is {who(first, names)}:"
        console.error(f"{told} {failures[first]} The others have answers.{where}")
    return 2 if failures else code


def _question(options: Namespace, what: str, console: Console) -> tuple[Settings, Target, Subject]:
    settings = gather_settings(options)
    settings.require("model", "data", what, "target")
    if settings.timeout is not None and not settings.timeout >= 0:
        raise SettingsError(f"--timeout must be seconds >= 0; got {settings.timeout!r}.")
    if settings.seed < 0:
        raise SettingsError(f"--seed must be a whole number >= 0; got {settings.seed!r}.")
    return settings, parse_target(settings.target), read_subject(settings, console)


def _handed_out(
    asked: Answers, paths: list[str], text: str, plain: Any, console: Console
) -> tuple[int, str]:
    """Write answers to files and to the console; return the exit code, and where they are."""
    lost = write_all(asked, paths)
    console.write(text, plain)
    for path, why in lost.items():
        console.error(f"{path!r} can't be written: {why}")
    written = [path for path in paths if path not in lost]
    where = f" They are in {', '.join(written)}." if written else ""
    code = answers.exit_code(answer.status for answer in asked.explanations.values())
    return 2 if lost else code, where


def _failed(fault: BaseException, told: str, console: Console, code: int) -> int:
    """Say how the model or the store failed; what was reached before is an answer all the same."""
    what = "store" if isinstance(fault, EvaluationsError) else "model"
    again = "when there is room" if what == "store" else "when the model answers"
    told = f"the {what} failed {told} Run the command again {again};"
    tell = console.error if code else console.warning
    tell(f"{told} with --evaluations FILE it goes on from there.")
    return 2 * bool(code)


def _queries(
    subject: Subject, table: pd.DataFrame, settings: Settings, console: Console
) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """Return the rows of the file by position, and why others can't be asked."""
    names = None if settings.id is None else table.index
    rows, refused, said = dict[int, dict[str, Any]](), dict[int, str](), dict[int, str]()
    for i in range(len(table)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SpaceWarning)
            try:
                rows[i] = subject.check_query(row_cells(table, i))
            except BayesCFXError as error:
                refused[i] = describe_error(error)
        if caught:
            said[i] = str(caught[0].message)
    if said:
        first = min(said)
        others = f" (and {len(said) - 1} more rows)" if len(said) > 1 else ""
        console.warning(f"{who(first, names)} of the queries{others}: {said[first]}")
    if not rows:
        which = "" if names is None else f"; {who(0, names)}"
        raise SettingsError(f"no row of {settings.queries!r} can be asked{which}: {refused[0]}")
    return rows, refused


def report(options: Namespace, console: Console) -> int:
    """Write an answer as a page, or in other forms."""
    paths = options.out or [str(Path(options.answer).with_suffix(".html"))]
    told = naming_facts(options) | dict(
        split_assignment("--about", text) for text in options.about or ()
    )
    text = read_text(options.answer, "the answer")
    many = '"kind": "explanations"' in text[:200]
    found: Any = cfx.Explanations.from_json(text) if many else cfx.Explanation.from_json(text)
    each = [replace(a, about={**a.about, **told}) for a in (found if many else [found])]
    asked = Answers(explanations=dict(enumerate(each)), names=_names(found), is_single=not many)
    for path in paths:
        write_answers(asked, path)
    console.write("\n".join(paths), paths)
    return 0


def _names(found: cfx.Explanation | cfx.Explanations) -> pd.Index[Any] | None:
    """Return what queries are called, if it is more than their numbers."""
    if isinstance(found, cfx.Explanation):
        column = found.about.get(wording.ID)
        return None if column is None else pd.Index([found.about.get("row", "")], name=column)
    index = found.index
    if index.equals(pd.RangeIndex(len(index))) and index.name is None:
        return None
    return index.to_flat_index().rename("id") if None in index.names else index


def reproduce(options: Namespace, console: Console) -> int:
    """Run the paper's experiments, which live beside the package in its repository."""
    places = (Path.cwd(), Path(cfx.__file__).resolve().parents[2])
    root = next((p for p in places if (p / "experiments" / "__main__.py").is_file()), None)
    if root is None:
        told = "the paper's experiments are in the repository, not in the package. Clone it, and"
        raise SettingsError(f"{told} run `bayescfx reproduce` or `make reproduce` there.")
    words = ["--quick"] if options.quick else []
    words += ["--only", *options.experiments] if options.experiments else []
    for flag, folder in (("--out", options.out), ("--data", options.data)):
        words += [] if folder is None else [flag, str(Path(folder).resolve())]
    console.note(f"running the experiments in {root}.")
    done = subprocess.run([sys.executable, "-m", "experiments", *words], cwd=root, check=False)
    return done.returncode
