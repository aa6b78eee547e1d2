"""A block of queries, the unit of work: from rows to answers, here or in a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayescfx.deadline import Deadline
from bayescfx.errors import BayesCFXError
from bayescfx.evaluations.confirm import Twice
from bayescfx.evaluations.data import Evaluations, Past
from bayescfx.evaluations.evaluator import Evaluator, Stopped
from bayescfx.evaluations.memory import Packed
from bayescfx.explainer.posing import called, pose, refuse_at_once, regions_around
from bayescfx.explainer.report import report
from bayescfx.explainer.settings import CallSettings
from bayescfx.model.model import Model
from bayescfx.result.explanation import Explanation
from bayescfx.search.turns import Halt, Listener, Turns
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class Job:
    """What all blocks of one call have in common; to workers it travels once."""

    settings: CallSettings
    model: Model
    past: Past  # each block starts from what was known when the call began, whoever was faster
    refused: Callable[[BayesCFXError], str] | None = None  # words, if such queries stop nothing
    look: Callable[[Any], object] | None = None  # raises if a row must not be asked about
    keep: bool = True  # whether anybody wants to know what the model said
    store: Evaluations | None = None  # in a file: workers who can reach it write to it themselves
    parent: int | None = None  # the process that has sent it

    def for_workers(self) -> Job:
        """Return the job without what stays here: listeners, the store, the clock, the origin."""
        seed = self.settings.rng if isinstance(self.settings.rng, int | np.integer) else None
        settings = replace(
            self.settings, on_step=None, evaluations=None, progress=False, timeout=None, rng=seed
        )
        model = replace(self.model, origin=None)
        return replace(self, settings=settings, model=model, parent=os.getpid())


@dataclass(eq=False)
class Block:
    """Some queries that share what they learn."""

    first: int  # position of its first query
    rows: Any  # DataFrame, array or list
    wishes: Mapping[int, tuple[object, np.random.Generator]]  # by position: target, random state
    deadline: Deadline
    spent: int = 0  # rows that were sent for its first query before
    regions: Mapping[int, Region] | None = None  # around the queries, if any was remarkable

    def who(self, i: int) -> str:
        """Return which of all queries that is, in words."""
        return called(self.rows, self.first, i)


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

    def refuse(i: int, error: BayesCFXError) -> None:
        if job.refused is None:
            refuse_at_once(i, error, block.who if settings.many else None)
        else:
            done.refused[i] = job.refused(error)

    try:
        regions = block.regions
        if regions is None:
            regions, _ = regions_around(settings.space, block.rows, block.first, refuse, job.look)
        if not regions:
            return done
        schema = next(iter(regions.values())).schema
        evaluator = Evaluator(job.model, schema, store, job.past, on_fault=settings.on_fault)
        posed, questions = pose(
            settings,
            evaluator,
            regions,
            block.wishes,
            block.deadline,
            refuse,
            block.who,
            block.spent,
        )
    except Exception as error:
        done.fault, halt.called = error, True
        return done
    turns = Turns(settings.search, questions, evaluator, hear, halt, block.who)
    try:
        turns.run()
    except Exception as error:
        done.fault, halt.called = error, True
        if not hasattr(error, "evaluations"):  # not the model's own
            return done
    rest: Stopped = "interrupted" if done.fault is None else "fault"
    for p in posed:
        done.answers[p.label] = report(settings, p, turns.endings.get(p.label, rest))
    return done
