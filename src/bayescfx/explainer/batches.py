"""A block of queries, the unit of work: from rows to questions to answers, here or in a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.deadline import NEVER, Deadline, waiting_until
from bayescfx.errors import BayesCFXError, ModelError, TargetError, attach
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop
from bayescfx.evaluations.known import Snapshot
from bayescfx.evaluations.memory import Packed
from bayescfx.evaluations.repeatability import LEAST_ROWS_AFTER, RepeatCheck, plan_check_after
from bayescfx.explainer.call_settings import CallSettings
from bayescfx.explainer.regions import CheckRow, Queries, encode_block
from bayescfx.explainer.report import report
from bayescfx.models.model import Model
from bayescfx.potentials import Target, contains
from bayescfx.potentials.targets import as_target
from bayescfx.result.explanation import Explanation
from bayescfx.result.flat_table import flat_table
from bayescfx.search.question import Question
from bayescfx.search.turns import Interrupt, Listener, run_searches
from bayescfx.space.region import Region
from bayescfx.space.sampling import background_rows
from bayescfx.space.space import Space

OnError: TypeAlias = Literal["raise", "record"]

#: Seconds for which a server is given time to answer f(query), whatever the timeout.
LEAST_WAIT = 30
#: Rows on which a potential of the user's own is checked.
_ROWS_FOR_OWN_POTENTIAL = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Call:
    """What all blocks of one call have in common; it is sent to workers once.

    Parameters
    ----------
    settings : CallSettings
        How the questions are answered.
    space : Space
        The features and what may change.
    model : Model
        The model.
    evaluations : Evaluations
        Where scored rows are recorded.
    snapshot : Snapshot
        The evaluations known when the call began. Each block starts from it, so that answers do
        not depend on the order in which blocks finish.
    deadline : Deadline
        When the call ends.
    names_queries : bool
        Whether messages name the query.
    on_error : {"raise", "record"}
        What happens to a query that can't be asked: raise its error, or record it and go on.
    check_row : callable or None
        A further check of each row.
    keeps_rows : bool
        Whether scored rows outlive their block.
    parent : int or None
        The process that sent the call to a worker.
    """

    settings: CallSettings
    space: Space
    model: Model
    evaluations: Evaluations
    snapshot: Snapshot
    deadline: Deadline = NEVER
    names_queries: bool = True
    on_error: OnError = "raise"
    check_row: CheckRow | None = None
    keeps_rows: bool = True
    parent: int | None = None

    def for_workers(self) -> Call:
        """Return the call without listeners, rows in memory and the user's model object.

        A store in a file is sent along: workers that can reach it write to it themselves.
        """
        settings = replace(
            self.settings,
            on_step=None,
            progress=False,
            timeout=None,
            rng=self.settings.seed,
        )
        store = Evaluations() if self.evaluations.file is None else self.evaluations
        return replace(
            self,
            settings=settings,
            model=replace(self.model, origin=None),
            evaluations=store,
            parent=os.getpid(),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """The answers to one block of queries.

    Parameters
    ----------
    first : int
        The position of the block's first query.
    index : Index
        The labels of its queries.
    answers : dict of int to Explanation
        The answers by position.
    errors : dict of int to BayesCFXError
        Why a query can't be asked, by position, where errors are recorded.
    fault : Exception or None
        The error that ended the block; there may be answers from before it.
    scored : Packed or None
        Rows and outputs that a worker sends back.
    repeat_check : RepeatCheck or None
        Rows of a worker that the sending process scores again.
    """

    first: int
    index: pd.Index[Any]
    answers: Mapping[int, Explanation] = field(default_factory=dict)
    errors: Mapping[int, BayesCFXError] = field(default_factory=dict)
    fault: Exception | None = None
    scored: Packed | None = None
    repeat_check: RepeatCheck | None = None

    def to_frame(
        self, space: Space, describe: Callable[[BayesCFXError], str] = str
    ) -> pd.DataFrame:
        """Return one line per counterfactual, and one per query that can't be asked, in order.

        Columns and dtypes depend on the space alone. `describe` gives the text of an error.
        """
        answers = {position - self.first: answer for position, answer in self.answers.items()}
        errors = {position - self.first: describe(error) for position, error in self.errors.items()}
        return flat_table(space, self.index, answers, errors)


def answer_block(
    call: Call,
    queries: Queries,
    evaluations: Evaluations,
    interrupt: Interrupt,
    on_step: Listener | None = None,
    *,
    checks_model: bool = True,
) -> Batch:
    """Answer the queries of a block; scored rows go to `evaluations` at once.

    A fault requests the end of the whole call. With `checks_model`, some rows are set aside to be
    scored again.
    """
    questions: list[Question] = []
    errors: dict[int, BayesCFXError] = {}
    fault: Exception | None = None
    check: RepeatCheck | None = None
    try:
        regions, errors = make_regions(call, queries)
        if regions:
            schema = next(iter(regions.values())).schema
            evaluator = Evaluator(
                call.model, schema, evaluations, call.snapshot, on_fault=call.settings.on_fault
            )
            _pose(call, queries, regions, evaluator, questions, errors)
            open_questions = {q.position: q for q in questions if not q.already_met}
            run_searches(call.settings.search, open_questions, evaluator, interrupt, on_step)
            errors |= {q.position: q.error for q in questions if q.error is not None}
            questions = [question for question in questions if question.error is None]
            has_rows = len(evaluator.known) >= LEAST_ROWS_AFTER
            if checks_model and has_rows and not interrupt.is_requested:
                check = _plan_repeat_check(open_questions)
    except Exception as error:
        fault = error
        interrupt.is_requested = True
        for question in questions:  # a failed batch may have rows that no search received
            question.inside.is_own_only = False
    is_of_model = fault is None or hasattr(fault, "evaluations")
    if not is_of_model:  # nothing that was scored is worth an answer
        questions = []
    unfinished: Any = "interrupted" if fault is None else "fault"
    return Batch(
        first=queries.first,
        index=queries.index,
        answers=report(call.settings, call.space, questions, unfinished),
        errors=errors,
        fault=fault,
        repeat_check=check,
    )


def make_regions(
    call: Call, queries: Queries
) -> tuple[Mapping[int, Region], dict[int, BayesCFXError]]:
    """Return the region around each query, by position, and the errors of the others."""
    if queries.regions is not None:
        return queries.regions, {}
    encoded = queries.encoded or encode_block(call.space, queries, call.check_row)
    found = call.space.regions(encoded)
    if call.on_error == "raise":
        for position, error in found.errors.items():
            raise name_query(call, queries, position, error)
    return found.regions, found.errors


def name_query(call: Call, queries: Queries, position: int, error: BayesCFXError) -> BayesCFXError:
    """Return the error of a query, with a note that names the query if there are several."""
    if call.names_queries and not isinstance(error, ModelError):  # which has the row itself
        error.add_note(f"for the query {queries.name(position)}")
    return error


def _pose(
    call: Call,
    queries: Queries,
    regions: Mapping[int, Region],
    evaluator: Evaluator,
    questions: list[Question],
    errors: dict[int, BayesCFXError],
) -> None:
    """Score f(query) of each query in one model call, and add the questions they pose."""
    budget = call.settings.rows_per_query(call.model)
    accounts = {i: Account(evaluator, region, budget) for i, region in regions.items()}
    accounts[next(iter(accounts))].spent = queries.n_spent
    # f(query) is needed for any answer, so that it is scored whatever the timeout.
    with waiting_until(call.deadline, LEAST_WAIT):
        scores = evaluator.evaluate_many(
            [(account, account.region.query[None]) for account in accounts.values()]
        )
    evaluator.deadline = call.deadline
    for (position, account), score in zip(accounts.items(), scores, strict=True):
        try:
            output = float(score.y[0])
            questions.append(_question(call, queries, position, account, output))
        except (TargetError, ModelError) as error:
            if call.on_error == "raise":
                raise name_query(call, queries, position, error) from None
            errors[position] = error


def _question(
    call: Call, queries: Queries, position: int, account: Account, output: float
) -> Question:
    """Return the question of one query, whose f(query) is `output`."""
    settings = call.settings
    name = queries.name(position) if call.names_queries else None
    if np.isnan(output):
        raise _missing_output(account, name)
    rng = queries.generators[position - queries.first]
    stated = queries.targets[position - queries.first]
    target = _as_target(stated, account, output, rng)
    is_accepted = contains(target.acceptance(output, settings.tolerance), [output])[0]
    # A query that reaches the target by breaking a rule is searched for.
    is_met = is_accepted and account.region.contains(account.region.query[None])[0]
    question = _make_question(call, account, output, target, rng, bool(is_met), bool(is_accepted))
    question.position = position
    question.name = name
    question.records_error = call.on_error == "record"
    return question


def _make_question(
    call: Call,
    account: Account,
    output: float,
    target: Target,
    rng: np.random.Generator,
    is_met: bool,
    is_accepted: bool,
) -> Question:
    """Return a question; one whose target is the query's own output counts as met."""
    settings = call.settings
    make = partial(
        Question,
        account,
        output,
        target,
        rng,
        deadline=call.deadline,
        n=int(settings.n),
        tolerance=float(settings.tolerance),
    )
    try:
        return make(already_met=is_met)
    except TargetError:
        if not is_accepted:
            raise
        return make(already_met=True)  # no other row has this output for certain


def _as_target(stated: Any, account: Account, output: float, rng: np.random.Generator) -> Target:
    """Return what the user stated as a target; an own potential is checked on a few outputs."""
    outputs = [output]
    is_own_potential = hasattr(stated, "value") and hasattr(stated, "slope")
    if is_own_potential:
        outputs += _some_outputs(account, rng).tolist()
    return as_target(stated, outputs)


def _some_outputs(account: Account, rng: np.random.Generator) -> Array:
    """Return outputs of a few rows."""
    rows = background_rows(account.region, _ROWS_FOR_OWN_POTENTIAL, rng)
    if account.left <= len(rows):
        return np.empty(0)
    try:
        y = account.evaluate(rows)
    except Stop as stop:  # skipped faults used up the budget
        y = stop.y
    return y[~np.isnan(y)]


def _missing_output(account: Account, name: str | None) -> ModelError:
    """Return the error for a query without an output, where faults are skipped."""
    evaluator = account.evaluator
    region = account.region
    row = evaluator.model.describe(region.rows(region.query[None]), 0)
    which = "" if name is None else f" {name}"
    error = ModelError(
        f"`model` must have an output for the query{which}; it fails for {row}. "
        "Correct the query or the model."
    )
    for fault in evaluator.faults:
        error.add_note(fault)
    attach(error, evaluations=evaluator.evaluations)
    return error


def _plan_repeat_check(questions: Mapping[int, Question]) -> RepeatCheck | None:
    """Return rows to be scored again, at the expense of the first question that has rows left."""
    for question in questions.values():
        has_rows = len(question.y) > 0 and question.account.paid and question.left > 0
        if has_rows and question.budget >= 50:
            return plan_check_after(question.account, question.X[question.best])
    return None
