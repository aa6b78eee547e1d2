"""The evaluations that a question learns from, and the surrogate fitted to them.

There may be a hundred thousand scored rows, from earlier calls and from other questions. One step
of a search uses a few hundred of them. They are chosen when the question begins, and again when as
many new rows have come, so that the cost of a step does not grow with the number of scored rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import time_limit
from bayescfx.evaluations.evaluator import Account
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate

if TYPE_CHECKING:
    from bayescfx.search.question import Question

#: Returns the positions of at most k of the rows with codes (n, d) and outputs (n,).
Choice: TypeAlias = Callable[[Array, Array, int], Indices]


@dataclass(frozen=True)
class LearningTuning:
    """Tuned numbers of the choice of evaluations.

    Evidence: `python -m benchmarks scale` (2026-11-16): with 100,000 scored rows, 304 of 304
    targets are reached, at 0.96 to 1.00 of the median cost with 100 scored rows.
    """

    #: The number of rows of other questions that are kept at least.
    n_kept: int = 400
    #: Rows of other questions are chosen anew when they are more than this multiple of `n_kept`.
    slack: int = 2
    #: One in so many relevant rows is among the nearest to the query or to a centre.
    near_one_in: int = 4


TUNING = LearningTuning()


class Nearby:
    """Positions of scored rows that a question uses: its own, and a choice of other questions'."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.most = TUNING.n_kept  # rows of other questions that are kept at least
        self.is_own_only = False  # whether rows of other questions are left out from now on
        self._places: Indices = np.empty(0, dtype=np.intp)  # sorted
        self._n_requests = 0  # requests of the account that have been processed
        self._n_scored = 0  # scored rows that have been processed

    def places(self, counts: Callable[[Array], Mask], choose: Choice) -> Indices:
        """Return the positions, sorted, after adding the rows scored since the last call.

        Rows with an output are added where the mask `counts` of their codes ``(n, d)`` is true.
        `choose` selects among the rows of other questions when they have become too many.
        """
        known = self.account.evaluator.known
        if len(self.account.asked) > self._n_requests:
            self._add_requested(counts)
        if len(known) > self._n_scored and not self.is_own_only:
            for first, X, y in known.parts(self._n_scored):
                self._add(counts, np.arange(first, first + len(y)), X, y)
            self._n_scored = len(known)
            if len(self._places) > TUNING.slack * self.most:
                self._drop_irrelevant(choose)
        return self._places

    @property
    def own(self) -> Mask:
        """Which of the positions are those of rows that this question requested."""
        return np.isin(self._places, np.concatenate([self._places[:0], *self.account.asked]))

    def _add_requested(self, counts: Callable[[Array], Mask]) -> None:
        """Add requested rows that were scored before."""
        asked = self.account.asked
        requested = np.concatenate(asked[self._n_requests :])
        self._n_requests = len(asked)
        if not self.is_own_only:  # rows that had been scored before and were not chosen then
            requested = requested[requested < self._n_scored]
        if len(requested):
            requested = np.setdiff1d(requested, self._places)
        if len(requested):
            self._add(counts, requested, *self.account.evaluator.known.take(requested))

    def _drop_irrelevant(self, choose: Choice) -> None:
        """Keep only chosen rows of other questions if there are too many of them."""
        own = self.own
        others = self._places[~own]
        if len(others) > TUNING.slack * self.most:
            known = self.account.evaluator.known
            kept = others[choose(*known.take(others), self.most)]
            self._places = np.union1d(self._places[own], kept)

    def _add(self, counts: Callable[[Array], Mask], places: Indices, X: Array, y: Array) -> None:
        """Add the positions of scored rows for which `counts` is true."""
        counted = self.account.scored(places, X, y) & counts(X)
        new = places[counted]
        both = np.concatenate([self._places, new])
        is_sorted = not len(self._places) or not len(new) or new[0] > self._places[-1]
        self._places = both if is_sorted else np.unique(both)


def relevant(
    region: Region, X: Array, most: int, centres: Array, near: int | None = None
) -> Indices:
    """Return the positions of at most `most` relevant rows of codes `X` ``(n, d)``.

    The first `near` rows, a quarter by default, are the nearest to the query or to a centre. The
    others are spread evenly over all farther rows: without them a surrogate would know nothing
    about the outputs in between.
    """
    near = most // TUNING.near_one_in if near is None else near
    if len(X) <= most:
        return np.arange(len(X))
    coordinates = Coordinates(region, X)
    Z = coordinates(X)
    unordered = list(coordinates.categorical_columns)
    distance = np.full(len(X), np.inf)
    for hub in coordinates(np.vstack([region.query, centres])):
        gap = np.abs(Z - hub)
        gap[:, unordered] = gap[:, unordered] > 0
        np.minimum(distance, gap.sum(axis=1), out=distance)
    order = np.argsort(distance, kind="stable")
    even = np.linspace(near, len(X) - 1, most - near).astype(np.intp)
    return np.sort(np.concatenate([order[:near], order[even]]))


def surrogate_for(
    question: Question,
    settings: SurrogateSettings | None = None,
    before: Surrogate | None = None,
    values: Callable[[Array], Array] | None = None,
    *,
    everywhere: bool = False,
) -> Surrogate:
    """Return the surrogate of a question, fitted to its relevant evaluations.

    It models f on the question's surrogate scale, or `values` of the outputs ``(n,)``. Rows are
    chosen near possible answers, or `everywhere` in the region.
    """
    settings = settings or SurrogateSettings()
    X, y = question.lessons(settings.points, everywhere=everywhere)
    outputs = (values or question.to_surrogate)(y)
    return fit_surrogate(settings, question.region, X, outputs, before, time_limit.get())
