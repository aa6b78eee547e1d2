"""Ask about queries, and keep the answers if the model fails or the user interrupts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

import bayescfx as cfx
from bayescfx.cli.progress_lines import show_progress
from bayescfx.errors import SettingsError
from bayescfx.requests.answer_files import Answers
from bayescfx.requests.console import Console
from bayescfx.requests.explaining import make_explainer
from bayescfx.requests.messages import describe_query_error
from bayescfx.requests.report_facts import report_facts
from bayescfx.requests.settings import Settings, gather_settings
from bayescfx.requests.subject import Subject, read_subject
from bayescfx.requests.texts import output_name, parse_target


@dataclass(frozen=True, kw_only=True)
class Request:
    """A question about the queries of a command, read and checked.

    Parameters
    ----------
    settings : Settings
        The settings of the command.
    target : Target
        The wanted prediction.
    subject : Subject
        The model, the data and the space.
    console : Console
        Where to write.
    """

    settings: Settings
    target: Any
    subject: Subject
    console: Console

    @classmethod
    def read(cls, options: Namespace, queries: str, console: Console) -> Request:
        """Return the request of a command line; `queries` names the option with the queries."""
        settings = gather_settings(options)
        settings.require("model", "data", queries, "target")
        if settings.timeout is not None and not settings.timeout >= 0:
            raise SettingsError(f"--timeout must be seconds >= 0; got {settings.timeout!r}.")
        if settings.seed < 0:
            raise SettingsError(f"--seed must be a whole number >= 0; got {settings.seed!r}.")
        return cls(
            settings=settings,
            target=parse_target(settings.target),
            subject=read_subject(settings, console),
            console=console,
        )


def ask_one(request: Request, cells: Mapping[str, Any], name: object) -> Answers:
    """Return the answer to one query; if the model fails half-way, the best so far.

    `name` is the identifier of the query, or None.
    """
    names = None if name is None else pd.Index([name], name=request.settings.id)
    answers = Answers(names=names, is_single=True)
    queries: Any = [cells]
    if name is not None:  # errors of the model name it
        queries = [pd.Series(cells, dtype=object, name=name)]
    how = {"names_queries": name is not None}
    return _ask(request, queries, answers, lambda _: None, **how)


def ask_many(
    request: Request, queries: pd.DataFrame, on_batch: Callable[[Answers], object]
) -> Answers:
    """Return the answers to a table of queries; `on_batch` gets those so far after each batch."""
    names = None if request.settings.id is None else queries.index
    how = {"on_error": "record", "check_row": request.subject.check_row}
    return _ask(request, queries, Answers(names=names), on_batch, **how)


def _ask(
    request: Request,
    queries: Any,
    answers: Answers,
    on_batch: Callable[[Answers], object],
    **how: Any,
) -> Answers:
    """Return answers to which those of the queries are added; an error before any is raised."""
    settings = request.settings
    explainer = make_explainer(request.subject, settings, request.console)
    output = settings.output_name or output_name(explainer.model, request.target)
    progress = show_progress(request.console, len(queries), output)
    n_scored: dict[int, int] = {}  # rows that the model has answered, by query
    with progress as show, explainer:

        def on_step(step: cfx.Step) -> None:
            n_scored[step.question] = step.n_evaluations
            show(step)

        for batch in explainer.ask(queries, request.target, on_step=on_step, **how):
            answers = _add(answers, batch, settings, n_scored)
            if answers.fault is not None and not answers.explanations:
                raise answers.fault
            on_batch(answers)
    return answers


def _add(
    answers: Answers, batch: cfx.Batch, settings: Settings, n_scored: Mapping[int, int]
) -> Answers:
    """Return the answers with those of one more batch.

    After a fault, the rows that the model has not answered do not count.
    """
    explanations = dict(answers.explanations)
    for position, answer in batch.answers.items():
        n_rows = answer.n_evaluations
        if batch.fault is not None:
            n_rows = n_scored.get(position, n_rows)
        about = {**answer.about, **_query_facts(settings, position, answers.names)}
        explanations[position] = replace(
            answer, n_evaluations=n_rows, seed=settings.seed, about=about
        )
    errors = {position: describe_query_error(error) for position, error in batch.errors.items()}
    return replace(
        answers,
        explanations=explanations,
        errors={**answers.errors, **errors},
        fault=batch.fault,
    )


def _query_facts(settings: Settings, position: int, names: pd.Index[Any] | None) -> dict[str, str]:
    """Return the facts about a query that readers of a report need."""
    if names is not None:
        return report_facts(settings, str(names[position]), is_identified=True)
    row = settings.query or str(position)
    is_text = row.strip().startswith(("{", "[", "-"))  # JSON or standard input
    return report_facts(settings, "" if is_text else row, is_identified=False)


def query_name(position: int, names: pd.Index[Any] | None) -> str:
    """Return how messages refer to a query: by its identifier, or by its row."""
    return f"row {position}" if names is None else f"{names.name} {names[position]}"
