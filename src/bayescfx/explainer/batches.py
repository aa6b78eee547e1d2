"""The answers to one block of queries: from rows to questions to answers, here or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.deadline import limited_to
from bayescfx.errors import BayesCFXError, ModelError, SpaceError, TargetError, attach
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, Stopped
from bayescfx.evaluations.memory import Packed
from bayescfx.evaluations.repeatability import LEAST_ROWS_AFTER, RepeatCheck, plan_check_after
from bayescfx.explainer.block import Block
from bayescfx.explainer.report import report
from bayescfx.models.class_scores import answering, predicted_label
from bayescfx.models.model import Model
from bayescfx.result.explanation import Explanation
from bayescfx.result.flat_table import flat_table
from bayescfx.search.auto import Auto
from bayescfx.search.exact.prover import Proof, Prover
from bayescfx.search.question import Question, Search
from bayescfx.search.relaxation_checks import RelaxationChecks, needs_checks, rows_to_keep
from bayescfx.search.rounding import AnswerRounding, needs_rounding, rows_for_rounding
from bayescfx.search.turns import Interrupt, Listener, run_searches
from bayescfx.space.region import Region
from bayescfx.space.space import Space

#: Seconds for which a server is given time to answer f(query), whatever the timeout.
LEAST_WAIT = 30


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
    block: Block,
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
    if block.by_label:
        return _answer_groups(block, interrupt, on_step)
    questions: list[Question] = []
    errors: dict[int, BayesCFXError] = {}
    fault: Exception | None = None
    unfinished: Stopped = "interrupted"
    records_errors = block.on_error == "record"
    check: RepeatCheck | None = None
    try:
        _pose(block, evaluations, questions, errors)
        open_questions = [question for question in questions if not question.already_met]
        run_searches(
            block.settings.search,
            open_questions,
            block.deadline,
            interrupt,
            on_step,
            records_errors=records_errors,
        )
        run_after = partial(_run_after, block, interrupt, on_step)
        if isinstance(block.settings.search, Auto):
            _check_constraints(open_questions, run_after)
        unrounded = [each for each in open_questions if needs_rounding(each)]
        run_after(AnswerRounding(), unrounded, records_errors=records_errors)
        if checks_model and not interrupt.is_requested and not block.deadline.passed:
            check = _plan_repeat_check(open_questions)
    except Exception as error:
        fault = error
        unfinished = "fault"
        interrupt.end_after_fault()
        questions = _questions_after_fault(questions, fault)
        attach(fault, evaluations=evaluations)
    errors |= {q.position: q.error for q in questions if q.error is not None}
    return Batch(
        first=block.first,
        index=block.index,
        answers=report(block, questions, unfinished, interrupt),
        errors=errors,
        fault=fault,
        repeat_check=check,
    )


def _answer_groups(block: Block, interrupt: Interrupt, on_step: Listener | None) -> Batch:
    """Answer the queries of a block in groups, each about one output of a classifier."""
    whole = Batch(first=block.first, index=block.index)
    made = block.make_regions()
    answers: dict[int, Explanation] = {}
    errors = dict(made.errors)
    try:
        parts = _blocks_by_output(block, made.regions, errors)
    except Exception as error:
        interrupt.end_after_fault()
        attach(error, evaluations=block.evaluations)
        return replace(whole, errors=errors, fault=error)
    fault: Exception | None = None
    for part in parts:
        if not interrupt.is_requested:
            found = answer_block(part, part.evaluations, interrupt, on_step, checks_model=False)
            answers |= found.answers
            errors |= found.errors
            fault = fault or found.fault
    return replace(whole, answers=dict(sorted(answers.items())), errors=errors, fault=fault)


def _blocks_by_output(
    block: Block, regions: Mapping[int, Region], errors: dict[int, BayesCFXError]
) -> list[Block]:
    """Return a block for each output of a classifier that the targets are about.

    Scored rows are kept in a file only.
    """
    targets = list(block.targets)
    models: dict[str, Model] = {}
    own: dict[str, dict[int, Region]] = {}
    for position, region in regions.items():
        k = position - block.first
        try:
            model, targets[k] = _output_of_query(block, region, targets[k])
        except (TargetError, ModelError) as error:
            if block.on_error == "raise":
                raise block.name_query(position, error) from None
            errors[position] = error
            continue
        name = str(model.name)
        models.setdefault(name, model)
        own.setdefault(name, {})[position] = region
    columns = tuple(block.space.schema.places)
    parts: list[Block] = []
    for name, model in models.items():
        store = Evaluations()
        if block.evaluations.file is not None:
            store = block.evaluations.claim(columns, model.identity())
        parts.append(
            replace(
                block,
                model=model,
                prover=block.provers.setdefault(name, Prover(model)),
                evaluations=store,
                snapshot=store.begin(),
                targets=targets,
                regions=own[name],
                by_label=False,
            )
        )
    return parts


def _output_of_query(block: Block, region: Region, target: object) -> tuple[Model, Any]:
    """Return the output of a classifier that a target is about for one query, and its target."""
    row = region.rows(region.query[None])
    try:
        return answering(block.model, target, partial(predicted_label, block.model, row))
    except BayesCFXError:
        raise
    except Exception as error:  # a model of the user may raise anything
        if block.settings.on_fault == "raise":
            raise
        raise ModelError(
            f"`model` must predict a label for the query; it fails for "
            f"{block.model.describe(row, 0)}: {error}. Correct the query or the model."
        ) from error


def _run_after(
    block: Block,
    interrupt: Interrupt,
    on_step: Listener | None,
    search: Search,
    questions: Sequence[Question],
    *,
    records_errors: bool,
) -> None:
    """Run what follows the searches of some questions, if there is time.

    It may spend the rows kept for it, and leaves the reason why a search has stopped as it is.
    """
    if interrupt.is_requested or block.deadline.passed:
        return
    reasons = {question: question.stopped for question in questions}
    for question in questions:
        question.is_closing = True
    try:
        run_searches(
            search, questions, block.deadline, interrupt, on_step, records_errors=records_errors
        )
    finally:
        for question, stopped in reasons.items():
            question.stopped = stopped


def _check_constraints(questions: Sequence[Question], run_after: Callable[..., None]) -> None:
    """Ask the model what constraints keep the target away, for the questions that have missed.

    The model may fail for rows that constraints forbid, which is no fault: the checks end.
    """
    missed = [question for question in questions if needs_checks(question)]
    try:
        run_after(RelaxationChecks(), missed, records_errors=True)
    except Exception as error:  # a model of the user may raise anything
        if not hasattr(error, "evaluations"):  # which failed model calls have
            raise
    finally:
        for question in missed:
            question.error = None  # a rule that fails outside the region is no error of the query


def _questions_after_fault(questions: list[Question], fault: Exception) -> list[Question]:
    """Return the questions that are answered after a fault: those of a failed model call."""
    if not hasattr(fault, "evaluations"):  # nothing that was scored is worth an answer
        return []
    for question in questions:  # a failed model call may have rows that no search received
        question.inside.is_own_only = False
    return questions


def _pose(
    block: Block,
    evaluations: Evaluations,
    questions: list[Question],
    errors: dict[int, BayesCFXError],
) -> None:
    """Score f(query) of each query in one model call, and add the questions they pose."""
    found = block.make_regions()
    regions = found.regions
    errors |= found.errors
    if not regions:
        return
    schema = next(iter(regions.values())).schema
    evaluator = Evaluator(
        block.model, schema, evaluations, block.snapshot, on_fault=block.settings.on_fault
    )
    asked = _make_questions(block, evaluator, regions)
    asked[0].spent = block.n_spent
    # f(query) is needed for any answer, so that it is scored whatever the timeout.
    with limited_to(block.deadline, LEAST_WAIT):
        queries = [(each, each.region.query[None]) for each in asked]
        scores = evaluator.evaluate_many(queries, is_required=True)
    for question, score in zip(asked, scores, strict=True):
        position = question.position
        try:
            if np.isnan(score.y[0]):
                raise _missing_output(question)
            question.begin(block.targets[position - block.first], float(score.y[0]))
            if isinstance(block.settings.search, Auto):
                question.kept_rows = rows_to_keep(question.region, question.budget)
            question.reserved = rows_for_rounding(question)
            question.budget -= question.reserved
            questions.append(question)
        except (TargetError, ModelError, SpaceError) as error:
            if block.on_error == "raise":
                raise block.name_query(position, error) from None
            errors[position] = error


def _make_questions(
    block: Block, evaluator: Evaluator, regions: Mapping[int, Region]
) -> list[Question]:
    """Return the questions of a block, without targets, given the regions by position."""
    settings = block.settings
    questions: list[Question] = []
    for position, region in regions.items():
        question = Question(
            evaluator,
            region,
            settings.rows_per_query(block.model),
            block.generators[position - block.first],
            n=int(settings.n),
            diverse=settings.diverse,
            tolerance=float(settings.tolerance),
            position=position,
            name=block.name(position) if block.names_queries else None,
        )
        question.short_decimals = settings.short_decimals and bool(region.fine.any())
        if settings.prove is not False:
            question.prover = block.prover
            question.proof = Proof()
            question.proof_work = settings.proof_work(len(regions))
            question.proof_seconds = settings.proof_seconds
        questions.append(question)
    return questions


def _missing_output(question: Question) -> ModelError:
    """Return the error for a query without an output, where faults are skipped."""
    evaluator = question.evaluator
    region = question.region
    row = evaluator.model.describe(region.rows(region.query[None]), 0)
    which = "" if question.name is None else f" {question.name}"
    error = ModelError(
        f"`model` must have an output for the query{which}; it fails for {row}. "
        "Correct the query or the model."
    )
    for fault in evaluator.faults:
        error.add_note(fault)
    attach(error, evaluations=evaluator.evaluations)
    return error


def _plan_repeat_check(questions: Sequence[Question]) -> RepeatCheck | None:
    """Return rows to be scored again, at the expense of the first question that has rows left."""
    for question in questions:
        if question.left > 0 and len(question.known) >= LEAST_ROWS_AFTER and len(question.y) > 0:
            check = plan_check_after(question, question.X[question.best])
            if check is not None:
                return check
    return None
