"""Further answers: the exact best of other sets of features, the cheapest first.

The next candidate is the cheapest row that reaches the target and does not change all features of
an earlier candidate: such rows cost more and change more. So it is the cheapest row that changes
only its features. It is an answer unless it is much the same as an earlier answer
(`search.finish.different`). Diverse answers change no feature of an earlier one as long as
there are any.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Self

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers import LinearModel, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.forms import Form
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import TUNING as BRANCHING
from bayescfx.search.exact.branching import Bound, Branching, Work, find_nearest
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.gain_columns import changes_all_of
from bayescfx.search.exact.linear_form import find_nearest_linear
from bayescfx.search.exact.network_search import find_nearest_network
from bayescfx.search.exact.pool import Boxes
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Prover, ScoredCodes, linear_work, raw_intervals
from bayescfx.search.finish import different
from bayescfx.search.question import Question
from bayescfx.space.region import Region

#: Sets of features that are searched for each answer that is wanted; set by judgement, 2026-11-18.
SETS_PER_ANSWER = 4


@dataclass(eq=False)
class OtherBranching(Branching):
    """Branch and bound over rows that do not change all features of given sets.

    Parameters
    ----------
    avoided : list of arrays of int
        The sets, by the places of their features in the problem.
    """

    avoided: list[Indices] = field(default_factory=list)

    def _is_wanted(self, boxes: Boxes) -> Mask:
        """Exclude boxes in which all features of an avoided set have moved."""
        is_open = super()._is_wanted(boxes)
        home = self.problem.home
        is_moved = (boxes.low > home) | (boxes.high < home)
        for places in self.avoided:
            is_open &= ~is_moved[:, places].all(axis=1)
        return is_open


def find_further(question: Question, prover: Prover, work: Work) -> Generator[Array, Array, None]:
    """Add up to ``n - 1`` further answers, each proven, to ``question.proven_rows``.

    Yields codes ``(k, d)`` to be evaluated and receives their outputs ``(k,)``.

    Parameters
    ----------
    question : Question
        A question whose best row is proven optimal.
    prover : Prover
        The model.
    work : Work
        What limits the search for all further answers together.
    """
    best = question.best
    answers = question.proven_rows
    answers[:] = [_scored(question, question.X[best], question.y[best])]
    if question.n == 1:
        return
    try:
        others = _OtherSearches.of(question, prover, work)
    except NoProof:  # the boxes of all costs are too many
        return
    sets = question.region.changes(answers[0].row[None])  # (m, d), of the features of candidates
    is_apart = question.diverse
    for _ in range(SETS_PER_ANSWER * question.n):
        if len(answers) == question.n:
            break
        avoided = _single_features(sets) if is_apart else sets
        found = yield from _next_best(question, others, avoided)
        if found is None and is_apart:  # from now on, features may come again
            is_apart = False
            continue
        if found is None:
            break
        sets = np.vstack([sets, question.region.changes(found.row[None])])
        earlier = np.array([answer.row for answer in answers])
        if different(question.region, found.row[None], earlier).all():
            answers.append(found)


def find_without(
    question: Question, prover: Prover, features: Mask, work: Work
) -> Generator[Array, Array, ScoredCodes | None]:
    """Return the cheapest row in which some features ``(d,)`` stay as they are, proven.

    None if there is no such row, or if the search was cut short. Yields codes ``(k, d)`` to be
    evaluated and receives their outputs ``(k,)``.
    """
    try:
        others = _OtherSearches.of(question, prover, work)
    except NoProof:  # the boxes of all costs are too many
        return None
    return (yield from _next_best(question, others, _single_features(features[None])))


def _single_features(sets: Mask) -> Mask:
    """Return the features of sets ``(m, d)``, each as a set of its own."""
    features = np.asarray(sets.any(axis=0))
    return np.asarray(np.eye(len(features), dtype=np.bool_)[features])


def _scored(question: Question, row: Array, output: float) -> ScoredCodes:
    """Return a row that the model has scored."""
    return ScoredCodes(row, float(output), float(question.region.cost(row[None])[0]))


@dataclass(frozen=True, eq=False)
class _OtherSearches:
    """Searches for the cheapest row that does not change all features of given sets.

    Parameters
    ----------
    form : Form
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target.
    work : Work
        What limits all searches together.
    problem : BoxProblem or None
        The boxes of a tree ensemble, whatever they cost.
    """

    form: Form
    region: Region
    accepted: Intervals
    work: Work
    problem: BoxProblem | None

    @classmethod
    def of(cls, question: Question, prover: Prover, work: Work) -> Self:
        """Return the searches of a question."""
        region = question.region
        reading = prover.reading(region)
        form = reading.form
        assert form is not None  # else nothing would be proven
        accepted = raw_intervals(form, question.acceptance, reading.rounding)
        problem = None
        if isinstance(form, TreeEnsemble):
            problem = BoxProblem(prover.table(region, form), region, accepted)
        elif isinstance(form, LinearModel):
            work = linear_work(work)
        return cls(form, region, accepted, work, problem)

    def search(self, sets: Mask, limit: float) -> Generator[Array, Mask, Bound]:
        """Return the search, for sets ``(m, d)`` and rows that cost less than a limit."""
        work = self.work
        if self.problem is not None:
            places = [np.flatnonzero(each[self.problem.features]) for each in sets]
            places = [each for each in places if len(each)]
            return find_nearest(
                OtherBranching(self.problem, limit, work, starts_near=False, avoided=places)
            )
        if isinstance(self.form, ReluNetwork):
            return find_nearest_network(
                self.form, self.region, self.accepted, limit, work, avoided=sets
            )
        assert isinstance(self.form, LinearModel)
        return find_nearest_linear(
            self.form, self.region, self.accepted, limit=limit, work=work, avoided=sets
        )


def _next_best(
    question: Question, others: _OtherSearches, sets: Mask
) -> Generator[Array, Array, ScoredCodes | None]:
    """Return the cheapest row that does not change all features of a set ``(m, d)``.

    None if there is no such row, or if the search was cut short.
    """
    found = _known_best(question, sets)
    limit = min((each.cost for each in found), default=np.inf) * (1.0 - BRANCHING.same_cost)
    search = others.search(sets, limit)
    try:
        rows = next(search)
        while True:
            outputs = yield rows
            is_hit = question.accepted(outputs)
            found += map(partial(_scored, question), rows[is_hit], outputs[is_hit])
            rows = search.send(is_hit)
    except StopIteration as end:
        best = min(found, key=attrgetter("cost"), default=None)
        return best if end.value.is_complete else None


def _known_best(question: Question, sets: Mask) -> list[ScoredCodes]:
    """Return the cheapest known answer, if any, that changes no set ``(m, d)`` wholly."""
    hits = np.flatnonzero(question.accepted(question.y))
    rows = question.X[hits]
    is_other = ~changes_all_of(question.region, rows, sets)
    hits = hits[is_other & question.region.changes(rows).any(axis=1)]
    order = np.argsort(question.region.cost(question.X[hits]), kind="stable")
    return [_scored(question, question.X[i], question.y[i]) for i in hits[order[:1]]]
