"""From rows to questions: a region around each query, f(query), a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline, waiting
from bayescfx.errors import BayesCFXError, ModelError, SpaceWarning, TargetError, hearing, warn
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop
from bayescfx.explainer.report import Posed
from bayescfx.explainer.settings import CallSettings
from bayescfx.potentials import Target, contains
from bayescfx.potentials.targets import as_target
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.sampling import background_rows
from bayescfx.space.space import Space

#: Decides about a query that can't be asked: raises the error, or keeps it by position.
Refuse: TypeAlias = Callable[[int, BayesCFXError], None]


def called(rows: Any, first: int, i: int) -> str:
    """Return which query `i` is, in words: what a table or a Series calls it, or its position.

    `first` is the position of the first of the rows.
    """
    if isinstance(rows, pd.DataFrame):
        label = rows.index.tolist()[i - first]
    else:
        label = rows[i - first].name if isinstance(rows[i - first], pd.Series) else None
    plain = label is None or (isinstance(label, int) and label == i)
    return f"at position {i}" if plain else repr(label)


def refuse_at_once(i: int, error: BayesCFXError, who: Callable[[int], str] | None) -> None:
    """Raise the error of a query that can't be asked, and say which it is if there are several."""
    if who is not None and not isinstance(error, ModelError):  # which says it
        error.add_note(f"for the query {who(i)}")
    raise error


def regions_around(
    space: Space, rows: Any, first: int, refuse: Refuse, look: Callable[[Any], object] | None = None
) -> tuple[dict[int, Region], list[tuple[int, str]]]:
    """Return a region around each query, by position, and what is to be told about some.

    `first` is the position of the first row; `look` raises if a row must not be asked about. Codes
    mean the same in all regions.
    """
    regions: dict[int, Region] = {}
    said: list[tuple[int, str]] = []
    rows = (
        [rows.iloc[i : i + 1] for i in range(len(rows))] if isinstance(rows, pd.DataFrame) else rows
    )
    for i, row in enumerate(rows, first):
        told: list[str] = []
        with hearing(told.append):
            try:
                if look is not None:
                    look(row)
                regions[i] = space.around(row)
            except BayesCFXError as error:
                refuse(i, error)
        said += [(i, text) for text in told]
    schema = space.schema  # one that covers all queries
    for region in regions.values():
        if region.schema is not space.schema:
            schema, _, _ = schema.covering(region.own.cells, "query")
    if schema is space.schema or len(regions) == 1:
        return regions, said
    with hearing(lambda _: None):  # it was told
        return {i: space.around(rows[i - first], schema=schema) for i in regions}, said


def unremarkable(space: Space, rows: Any) -> bool:
    """Return whether no query of a table can be refused or warned of, so that regions can wait."""
    if not isinstance(rows, pd.DataFrame) or len(limits_of(space)) < len(space.rules):
        return False
    try:
        _, codes, notes = space.schema.covering(space.schema.cells(rows, what="query"), "query")
    except BayesCFXError:
        return False
    return not notes and not np.isnan(codes).any()


def pose(
    settings: CallSettings,
    evaluator: Evaluator,
    regions: Mapping[int, Region],
    wishes: Mapping[int, tuple[object, np.random.Generator]],  # target and random state
    deadline: Deadline,
    refuse: Refuse,
    who: Callable[[int], str],
    spent: int = 0,  # rows that were sent for the first query before
) -> tuple[list[Posed], dict[int, Question]]:
    """Ask for f(query) of each query, in one model call, and return the questions they pose.

    A query that has what is wanted poses none.
    """
    budget = settings.rows(evaluator.model)
    asked: list[tuple[Account, Array]] = []
    for region in regions.values():
        asked.append((Account(evaluator, region, budget), region.query[None]))
    asked[0][0].spent = spent
    # f(query) is needed for any answer, so that it is evaluated whatever the timeout; a server that
    # does not answer is waited for half a minute at least.
    before = waiting.set(deadline.at_least(30))
    try:
        scores = evaluator.evaluate_many(asked)
    finally:
        waiting.reset(before)
    posed: list[Posed] = []
    questions: dict[int, Question] = {}
    for i, (account, _), score in zip(regions, asked, scores, strict=True):
        output = float(score.y[0])
        try:
            if np.isnan(output):
                raise _no_output(account, f" {who(i)}" if settings.many else "")
            target, question = _question(settings, account, output, *wishes[i], deadline)
        except (TargetError, ModelError) as error:
            refuse(i, error)
        else:
            posed.append(Posed(i, account, target, output, question))
            if question is not None:
                questions[i] = question
    evaluator.deadline = deadline
    return posed, questions


def _question(
    settings: CallSettings,
    account: Account,
    output: float,
    wish: object,
    rng: np.random.Generator,
    deadline: Deadline,
) -> tuple[Target, Question | None]:
    """Return the wish as a target, and the question; None if it is met."""
    target = wish if isinstance(wish, Target) else _target(wish, output, account, rng)
    try:
        return target, Question(
            account, output, target, rng, deadline, settings.n, settings.tolerance
        )
    except TargetError:
        if not contains(target.acceptance(output, settings.tolerance), [output])[0]:
            raise
        return target, None


def _no_output(account: Account, which: str) -> ModelError:
    """Return the error for a query without an output, where faults are skipped."""
    evaluator, region = account.evaluator, account.region
    row = evaluator.model.describe(region.rows(region.query[None]), 0)
    error = ModelError(
        f"`model` must have an output for the query{which}; it fails for {row}. "
        "Correct the query or the model."
    )
    for fault in evaluator.faults:
        error.add_note(fault)
    vars(error)["evaluations"] = evaluator.evaluations
    return error


def _target(wish: Any, output: float, account: Account, rng: np.random.Generator) -> Target:
    """Return the wish as a target; a user's own potential is checked on a few outputs first."""
    seen = [output]
    if hasattr(wish, "value") and hasattr(wish, "slope"):
        rows = background_rows(account.region, 4, rng)
        if account.left > len(rows):
            try:
                seen.extend(account.evaluate(rows))
            except Stop as stop:  # skipping faults took the rest of the budget
                seen.extend(stop.y)
    return as_target(wish, np.array(seen)[~np.isnan(seen)])


def tell(said: Sequence[tuple[str, str]], many: bool) -> None:
    """Warn about the space of a query, which is named; of several, about the first."""
    others = len(dict(said)) - 1
    for who, text in said[: 1 if many else None]:
        more = f" (and {others} more)" if others else ""
        where = f"for the query {who}{more}: " if many else ""
        warn(where + text, SpaceWarning)
