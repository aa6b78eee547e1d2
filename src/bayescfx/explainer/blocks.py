"""A block of queries, the unit of work: from rows to questions to answers, here or in a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline, waiting_until
from bayescfx.errors import BayesCFXError, ModelError, TargetError, hearing
from bayescfx.evaluations.confirm import Twice
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop, Stopped
from bayescfx.evaluations.known import Past
from bayescfx.evaluations.memory import Packed
from bayescfx.explainer.call import CallSettings, Wishes
from bayescfx.explainer.report import Posed, report
from bayescfx.models.model import Model
from bayescfx.potentials import contains
from bayescfx.potentials.targets import as_target
from bayescfx.result.explanation import Explanation
from bayescfx.search.question import Question
from bayescfx.search.turns import Halt, Listener, Turns
from bayescfx.space.region import Region
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.sampling import background_rows
from bayescfx.space.space import Space

#: Decides about a query that can't be asked: raises the error, or keeps it by position.
Refuse: TypeAlias = Callable[[int, BayesCFXError], None]


@dataclass(frozen=True, eq=False)
class Job:
    """What all blocks of one call have in common; to workers it travels once."""

    settings: CallSettings
    model: Model
    past: Past  # each block starts from what was known when the call began, whoever was faster
    store: Evaluations  # where what the model says goes
    refused: Callable[[BayesCFXError], str] | None = None  # words, if such queries stop nothing
    look: Callable[[Any], object] | None = None  # raises if a row must not be asked about
    keep: bool = True  # whether anybody wants to know what the model said
    parent: int | None = None  # the process that has sent it

    def for_workers(self) -> Job:
        """Return the job without what stays here: listeners, known rows, the clock, the origin.

        A store in a file goes along: workers who can reach it write to it themselves.
        """
        seed = self.settings.rng if isinstance(self.settings.rng, int | np.integer) else None
        settings = replace(
            self.settings, on_step=None, evaluations=None, progress=False, timeout=None, rng=seed
        )
        model, store = replace(self.model, origin=None), self.store
        store = Evaluations() if store.file is None else store
        return replace(self, settings=settings, model=model, store=store, parent=os.getpid())


@dataclass(eq=False)
class Block:
    """Some queries that share what they learn."""

    first: int  # position of its first query
    rows: Any  # DataFrame, array or list
    wishes: Wishes
    deadline: Deadline
    spent: int = 0  # rows that were sent for its first query before
    regions: Mapping[int, Region] | None = None  # around the queries, if any was remarkable

    def who(self, i: int) -> str:
        """Return which query that is: what a table or a Series calls it, or its position."""
        if isinstance(self.rows, pd.DataFrame):
            label = self.rows.index.tolist()[i - self.first]
        else:
            row = self.rows[i - self.first]
            label = row.name if isinstance(row, pd.Series) else None
        plain = label is None or (isinstance(label, int) and label == i)
        return f"at position {i}" if plain else repr(label)

    def refuse(self, many: bool, i: int, error: BayesCFXError) -> None:
        """Raise the error of a query that can't be asked, and say which if there are `many`."""
        if many and not isinstance(error, ModelError):  # which says it
            error.add_note(f"for the query {self.who(i)}")
        raise error

    def remarkable(self, space: Space) -> bool:
        """Return whether a query of a table may be refused or warned of."""
        if len(limits_of(space)) < len(space.rules):
            return True
        try:
            cells = space.schema.cells(self.rows, what="query")
            _, codes, notes = space.schema.covering(cells, "query")
        except BayesCFXError:
            return True
        return bool(notes) or bool(np.isnan(codes).any())

    def around(
        self, space: Space, refuse: Refuse, look: Callable[[Any], object] | None = None
    ) -> tuple[Mapping[int, Region], list[tuple[int, str]]]:
        """Return a region around each query, by position, and what is to be told about some.

        `look` raises if a row must not be asked about. Codes mean the same in all regions.
        """
        if self.regions is not None:
            return self.regions, []
        rows = self.rows
        if isinstance(rows, pd.DataFrame):
            rows = [rows.iloc[i : i + 1] for i in range(len(rows))]
        regions, said = dict[int, Region](), list[tuple[int, str]]()
        for i, row in enumerate(rows, self.first):
            told: list[str] = []
            with hearing(told.append):
                try:
                    if look is not None:
                        look(row)
                    regions[i] = space.around(row)
                except BayesCFXError as error:
                    refuse(i, error)
            said += zip(repeat(i), told)
        schema = space.schema  # one that covers all queries
        for region in regions.values():
            if region.schema is not space.schema:
                schema, _, _ = schema.covering(region.own.cells, "query")
        if schema is not space.schema and len(regions) > 1:
            with hearing(lambda _: None):  # it was told
                regions = {i: space.around(rows[i - self.first], schema=schema) for i in regions}
        return regions, said


@dataclass(eq=False)
class Done:
    """What came of a block, by position of the queries."""

    first: int
    answers: dict[int, Explanation] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)  # why a query can't be asked
    fault: Exception | None = None  # what ended it; there may be no answers then
    learnt: Packed | None = None  # rows and outputs that the store does not have yet
    twice: Twice | None = None  # what another process is to score once more


def work(
    job: Job, block: Block, store: Evaluations, halt: Halt, hear: Listener | None = None
) -> Done:
    """Answer the queries of a block; what the model says goes to `store` at once.

    A fault halts what would come after.
    """
    settings, done = job.settings, Done(block.first)
    posed, endings = list[Posed](), dict[int, Stopped]()

    def refuse(i: int, error: BayesCFXError) -> None:
        if job.refused is None:
            block.refuse(settings.many, i, error)
        else:
            done.refused[i] = job.refused(error)

    try:
        regions, _ = block.around(settings.space, refuse, job.look)
        if not regions:
            return done
        schema = next(iter(regions.values())).schema
        evaluator = Evaluator(job.model, schema, store, job.past, on_fault=settings.on_fault)
        posed += _posed(settings, evaluator, block, regions, refuse)
        questions = {p.label: p.question for p in posed if p.question is not None}
        Turns(settings.search, questions, evaluator, hear, halt, block.who, endings).run()
    except Exception as error:
        done.fault, halt.called = error, True
        if not hasattr(error, "evaluations"):  # not the model's own
            return done
    rest: Stopped = "interrupted" if done.fault is None else "fault"
    done.answers = report(settings, posed, endings, rest)
    return done


def _posed(
    settings: CallSettings,
    evaluator: Evaluator,
    block: Block,
    regions: Mapping[int, Region],
    refuse: Refuse,
) -> list[Posed]:
    """Ask for f(query) of each query, in one model call, and return the questions they pose."""
    budget, share = settings.rows(evaluator.model), settings.tolerance
    asked: list[tuple[Account, Array]] = []
    for region in regions.values():
        asked.append((Account(evaluator, region, budget), region.query[None]))
    asked[0][0].spent = block.spent
    # f(query) is needed for any answer, so that it is evaluated whatever the timeout; a server that
    # does not answer is waited for half a minute at least.
    with waiting_until(block.deadline, 30):
        scores = evaluator.evaluate_many(asked)
    posed: list[Posed] = []
    for i, (account, _), score in zip(regions, asked, scores, strict=True):
        output, (wish, rng) = float(score.y[0]), block.wishes[i]
        try:
            if np.isnan(output):
                raise _no_output(account, f" {block.who(i)}" if settings.many else "")
            own = hasattr(wish, "value") and hasattr(wish, "slope")
            target = as_target(wish, [output, *_some(account, rng)] if own else [output])
            met = contains(target.acceptance(output, share), [output])[0]
            question: Question | None = None
            try:  # what it has already, it may have by breaking a rule
                if not met or not account.region.contains(account.region.query[None])[0]:
                    how = block.deadline, settings.n, share
                    question = Question(account, output, target, rng, *how)
            except TargetError:
                if not met:
                    raise  # else that very output, which only the query has for sure
        except (TargetError, ModelError) as error:
            refuse(i, error)
        else:
            posed.append(Posed(i, account, target, output, question))
    evaluator.deadline = block.deadline
    return posed


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


def _some(account: Account, rng: np.random.Generator) -> Array:
    """Return outputs of a few rows, on which a user's own potential is checked."""
    rows = background_rows(account.region, 4, rng)
    if account.left <= len(rows):
        return np.empty(0)
    try:
        y = account.evaluate(rows)
    except Stop as stop:  # skipping faults took the rest of the budget
        y = stop.y
    return y[~np.isnan(y)]
