"""`explain`, `explain-many`, `predict` and `report`: options and console in, exit code out."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import bayescfx as cfx
from bayescfx.cli.answers import (
    answer_json,
    exit_code,
    identifier_json,
    many_json,
    many_text,
    what_if_json,
)
from bayescfx.cli.asking import Request, ask_many, ask_one, query_name
from bayescfx.cli.streaming import stream
from bayescfx.errors import EvaluationsError, SettingsError
from bayescfx.requests.answer_files import Answers, try_to_write, write_all, write_answers
from bayescfx.requests.console import Console
from bayescfx.requests.messages import describe_error
from bayescfx.requests.option import about_parameter
from bayescfx.requests.query_rows import read_query
from bayescfx.requests.report_facts import naming_facts
from bayescfx.requests.settings import gather_settings, split_assignment
from bayescfx.requests.subject import Subject, identify_model, read_subject
from bayescfx.requests.table_files import read_chunks, read_text
from bayescfx.requests.texts import parse_target

MOST_IN_MEMORY = 1000  # queries; more are answered part by part into tables
QUICK_ENDINGS = (".json", ".csv", ".parquet")  # of files that are written after each batch


def explain(options: Namespace, console: Console) -> int:
    """Answer one question."""
    request = Request.read(options, "query", console)
    subject = request.subject
    cells, name = read_query(request.settings.query, subject.data, subject.table_format)
    with about_parameter("query"):
        answers = ask_one(request, subject.select_cells(cells), name)
    answer = answers.explanations[0]
    plain = {**identifier_json(answers.names, 0), **answer_json(answer)}
    code, _ = _write_results(answers, options.out, str(answer), plain, console)
    if answers.fault is None:
        return code
    message = (
        f"after {answer.n_evaluations} rows: {describe_error(answers.fault)} "
        "The answer is the best of the rows scored by then."
    )
    return _report_fault(answers.fault, message, console, code)


def predict(options: Namespace, console: Console) -> int:
    """Score a row changed by hand."""
    settings = gather_settings(options)
    settings.require("model", "data", "query")
    target = parse_target(settings.target) if settings.target else None
    subject = read_subject(settings, console)
    cells, _ = read_query(settings.query, subject.data, subject.table_format)
    model = identify_model(subject, settings, console)
    explainer = cfx.Explainer(model, subject.space, tolerance=settings.tolerance)
    with about_parameter("query"):
        query = subject.check_query(cells).cells
    with about_parameter("set"):
        found = explainer.what_if(query, _read_changes(options.set, subject), target)
    found = replace(found, about={**found.about, **naming_facts(settings)})
    console.write(str(found), what_if_json(found, subject.data.columns))
    return 3 if found.reached is False else 0


def _read_changes(texts: list[str], subject: Subject) -> dict[str, Any]:
    """Return the cells of ``NAME=VALUE`` texts; an empty value is a missing cell."""
    given: dict[str, Any] = {}
    for text in texts:
        name, value = split_assignment("--set", text, may_be_empty=True)
        given[name] = value or None
    changes, _ = subject.table_format.read_row(given)
    for name, value in changes.items():
        if isinstance(value, str):
            changes[name] = subject.parse_cell(name, value)
    return changes


def explain_many(options: Namespace, console: Console) -> int:
    """Answer one question for each row of a file; answers are written after each batch."""
    request = Request.read(options, "queries", console)
    subject = request.subject
    chunks = read_chunks(
        request.settings.queries, MOST_IN_MEMORY + 1, table_format=subject.table_format
    )
    with contextlib.closing(chunks):
        table = next(chunks)
    if len(table) > MOST_IN_MEMORY:
        return stream(request, options.out)
    quick = [path for path in options.out if path.endswith(QUICK_ENDINGS)]
    queries = subject.select_columns(table)
    answers = ask_many(request, queries, lambda so_far: try_to_write_some(so_far, quick))
    if not answers.explanations:
        _raise_without_answers(answers, request)
    answers, n_lost = _with_lost(answers, len(table))
    text = many_text(answers)
    code, where = _write_results(answers, options.out, text, many_json(answers), console)
    return _report_many(answers, n_lost, where, code, console)


def try_to_write_some(answers: Answers, paths: list[str]) -> None:
    """Write the answers so far to the files that can be written; the rest follows at the end."""
    if answers.explanations:
        try_to_write(answers, paths)


def _raise_without_answers(answers: Answers, request: Request) -> None:
    """Raise because no query can be explained; the first one says why."""
    first = min(answers.errors, default=0)
    name = "" if answers.names is None else f"; {query_name(first, answers.names)}"
    reason = answers.errors.get(first, "interrupted.")
    raise SettingsError(f"no row of {request.settings.queries!r} can be asked{name}: {reason}")


def _with_lost(answers: Answers, n_queries: int) -> tuple[Answers, int]:
    """Return the answers with an error for each query that was not asked, and their number."""
    reason = "interrupted" if answers.fault is None else "the model failed"
    known = {*answers.explanations, *answers.errors}
    lost = {i: f"not answered: {reason} before" for i in range(n_queries) if i not in known}
    return replace(answers, errors={**answers.errors, **lost}), len(lost)


def _report_many(answers: Answers, n_lost: int, where: str, code: int, console: Console) -> int:
    """Write why some queries have no answer; return the exit code."""
    n_answers = len(answers.explanations)
    n_queries = n_answers + len(answers.errors)
    if answers.fault is not None:
        message = (
            f"half-way: {describe_error(answers.fault)} {n_answers} of {n_queries} queries have "
            f"answers, the last ones from the rows scored by then.{where}"
        )
        return _report_fault(answers.fault, message, console, code or 2 * bool(answers.errors))
    if n_lost:
        console.error(f"interrupted: {n_answers} of {n_queries} queries have answers.{where}")
        return 130
    if answers.errors:
        _report_errors(answers, n_queries, where, console)
        return 2
    return code


def _report_errors(answers: Answers, n_queries: int, where: str, console: Console) -> None:
    """Write how many queries can't be explained, and why the first can't."""
    first = min(answers.errors)
    console.error(
        f"{len(answers.errors)} of {n_queries} queries can't be asked; the first is "
        f"{query_name(first, answers.names)}: {answers.errors[first]} "
        f"The others have answers.{where}"
    )


def _write_results(
    answers: Answers, paths: list[str], text: str, plain: Any, console: Console
) -> tuple[int, str]:
    """Write answers to files and to the console; return the exit code, and where they are."""
    failures = write_all(answers, paths) if paths else {}
    console.write(text, plain)
    for path, reason in failures.items():
        console.error(f"{path!r} can't be written: {reason}")
    written = [path for path in paths if path not in failures]
    where = f" They are in {', '.join(written)}." if written else ""
    code = exit_code(answer.status for answer in answers.explanations.values())
    return 2 if failures else code, where


def _report_fault(fault: BaseException, message: str, console: Console, code: int) -> int:
    """Write how the model or the file failed; without another problem it is a warning."""
    what = "model"
    again = "when the model answers"
    if isinstance(fault, EvaluationsError):
        what = "store"
        again = "when there is room"
    text = (
        f"the {what} failed {message} Run the command again {again}; with --evaluations FILE it "
        "goes on from there."
    )
    if code:
        console.error(text)
        return 2
    console.warning(text)
    return 0


def report(options: Namespace, console: Console) -> int:
    """Write an answer as a page, or in other forms."""
    paths = options.out or [str(Path(options.answer).with_suffix(".html"))]
    pairs = [split_assignment("--about", text) for text in options.about or ()]
    about = {**naming_facts(options), **dict(pairs)}
    answers = Answers.of(_read_answer(options.answer))
    explanations = {
        i: replace(answer, about={**answer.about, **about})
        for i, answer in answers.explanations.items()
    }
    answers = replace(answers, explanations=explanations)
    for path in paths:
        write_answers(answers, path)
    console.write("\n".join(paths), paths)
    return 0


def _read_answer(path: str) -> cfx.Explanation | cfx.Explanations:
    """Return the answers that `explain --out` wrote as JSON."""
    text = read_text(path, "the answer")
    if '"kind": "explanations"' in text[:200]:
        return cfx.Explanations.from_json(text)
    return cfx.Explanation.from_json(text)
