"""One question under search: a query, its target, its budget and the rows scored so far.

There may be a hundred thousand scored rows, from earlier calls and from other questions. One step
of a search uses a few hundred of them. They are chosen when the question begins, and again when as
many new rows have come, so that the cost of a step does not grow with the number of scored rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.deadline import time_limit
from bayescfx.errors import BayesCFXError, TargetError
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop
from bayescfx.evaluations.evaluator import Stopped as Stopped  # for searches
from bayescfx.evaluations.known import Known
from bayescfx.potentials import Intervals, LevelPotential, Linked, Logit, Target, contains
from bayescfx.potentials.class_targets import check_probability_target
from bayescfx.potentials.potential import misses as misses  # for searches
from bayescfx.potentials.targets import as_target
from bayescfx.search.exact.prover import Proof, Prover, ScoredCodes
from bayescfx.space.constraint import Constraint, relaxed_regions
from bayescfx.space.region import Region
from bayescfx.space.sampling import background, background_rows, sample
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate

if TYPE_CHECKING:
    from bayescfx.search.chosen_rows import ChosenRows

#: Rows on which a potential of the user's own is checked.
_ROWS_FOR_OWN_POTENTIAL = 4
#: A nearness up to this tells scores of 0 apart and leaves all others in order (numerical).
_LEAST_SCORE = 1e-9
#: Rows that give the cost of a typical move, and the rows of the data they are drawn from: a median
#: needs no more. Set by judgement, 2026-11-18.
_N_TYPICAL = 64
_N_DATA = 256

Rounds: TypeAlias = Generator[Array, Array, Stopped]

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
    #: Of many rows, this multiple of those to be kept is sorted; the others have worse scores.
    shortlist: int = 16
    #: One in so many rows kept is the best of its changed features; as many are near the query.
    part_one_in: int = 4
    #: The best rows near which others are relevant.
    n_centres: int = 4


TUNING = LearningTuning()


class Nearby:
    """Positions of scored rows that a question uses: its own, and a choice of other questions'."""

    def __init__(self, account: Account, most: int = TUNING.n_kept) -> None:
        self.account = account
        self.most = most
        self.is_own_only = False  # whether rows of other questions are left out from now on
        self.leaves_out_borrowed = False  # whether those of the same call are left out, all of them
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
        end = self.account.n_known_before if self.leaves_out_borrowed else len(known)
        if end > self._n_scored and not self.is_own_only:
            for first, X, y in known.parts(self._n_scored):
                n = min(len(y), end - first)
                self._add(counts, np.arange(first, first + n), X[:n], y[:n])
            self._n_scored = end
            if len(self._places) > TUNING.slack * self.most:
                self._drop_irrelevant(choose)
        return self._places

    def leave_out_borrowed(self) -> None:
        """Leave out rows of other questions of the same call, until `let_in_borrowed`."""
        self.leaves_out_borrowed = True
        self._places = self._places[~self.borrowed]
        self._n_scored = min(self._n_scored, self.account.n_known_before)

    def let_in_borrowed(self) -> None:
        """Look at rows of other questions of the same call from now on."""
        self.leaves_out_borrowed = False

    @property
    def own(self) -> Mask:
        """Which of the positions are those of rows that this question requested."""
        return np.isin(self._places, np.concatenate([self._places[:0], *self.account.asked]))

    @property
    def borrowed(self) -> Mask:
        """Which of the positions are those of rows scored for other questions of the same call."""
        return (self._places >= self.account.n_known_before) & ~self.own

    def _add_requested(self, counts: Callable[[Array], Mask]) -> None:
        """Add requested rows that were scored before."""
        asked = self.account.asked
        requested = np.concatenate(asked[self._n_requests :])
        self._n_requests = len(asked)
        if not self.is_own_only and not self.leaves_out_borrowed:
            # Rows that had been scored before and were not chosen then; later ones follow.
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


class Question(Account):
    """One query with its target, its budget and its scored rows, as a search sees it.

    A question exists before f(query) is known; `begin` turns its target into a potential.

    A surrogate may model the outputs on another scale (log-odds for a probability). The potential
    and the target set stay on the scale of the outputs and are mapped to that of the surrogate.

    Parameters
    ----------
    evaluator : Evaluator
        Scores codes.
    region : Region
        The rows that are allowed, and the query.
    budget : int
        The number of rows that may be sent to the model.
    rng : numpy.random.Generator
        The only source of randomness of the search.
    n : int, default 1
        The number of counterfactuals wanted.
    diverse : bool, default False
        Whether they are to change features as different as possible; else the nearest are wanted.
    tolerance : float, default 0.05
        The share of the wanted change by which an exact target may be missed.
    position : int, default 0
        The position of the query among all queries of the call.
    name : str, optional
        How messages refer to the query where there are several.

    Attributes
    ----------
    known : Known
        Every scored row, including failed rows and the rows of other questions.
    inside : Nearby
        The scored rows inside the region that the search looks at.
    alike : Nearby
        The scored rows that a surrogate is fitted to.
    output : float
        f(query).
    target : Target
        The target.
    wanted : Intervals
        The outputs asked for, without any tolerance.
    acceptance : Intervals
        Outputs that count as reached.
    surrogate_acceptance : Intervals
        The same on the surrogate's scale; ends at 0 and 1 become infinite.
    potential, surrogate_potential : LevelPotential
        The potential of the outputs, and the same as a function of what the surrogate models.
    already_met : bool
        Whether the query itself is an allowed row that reaches the target. Such a question is not
        searched for and has no potential.
    ran : list of str
        The methods that ran, where the method chooses between several.
    stopped : str or None
        Why the search has stopped; None while it runs.
    short_decimals : bool
        Whether the numbers of answers are rounded.
    prover : Prover or None
        The model as it was read; without it nothing is proven.
    proof_work : float
        The most work of a proof; see `search.exact.branching.Work`.
    proof_seconds : float
        The most seconds of a proof.
    proof : Proof
        What is proven about the best answer.
    is_closing : bool
        Whether what runs ends by itself when no row is left: a proof, or the rounding of answers.
    on_bound : callable or None
        Receives the proven lower bound now and then while a proof runs.
    proven_rows : list of ScoredCodes
        The best row and, if several answers are wanted, the best ones of other sets of features.
    chosen : ChosenRows or None
        The rows of the answers, once they are being rounded.
    error : BayesCFXError or None
        Why there is no allowed row, or which rule fails, if that is recorded.
    kept_rows : int
        Rows of the budget that may not be spent before the target is reached: they are kept to
        check constraints after a miss.
    """

    output: float
    target: Target
    wanted: Intervals
    acceptance: Intervals
    surrogate_acceptance: Intervals
    potential: LevelPotential
    surrogate_potential: LevelPotential

    def __init__(
        self,
        evaluator: Evaluator,
        region: Region,
        budget: int,
        rng: np.random.Generator,
        *,
        n: int = 1,
        diverse: bool = False,
        tolerance: float = 0.05,
        position: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(evaluator, region, budget)
        self.rng = rng
        self.n = n
        self.diverse = diverse
        self.tolerance = tolerance
        self.short_decimals = True
        self.position = position
        self.name = name
        self.prover: Prover | None = None
        self.proof_work = np.inf
        self.proof_seconds = np.inf
        self.proof = Proof(reason="`prove` is off")
        self.is_closing = False
        self.proven_rows: list[ScoredCodes] = []
        self.chosen: ChosenRows | None = None
        self.on_bound: Callable[[float], object] | None = None
        self.known: Known = evaluator.known
        self.inside = Nearby(self)
        self.alike = Nearby(self)
        self.already_met = False
        self.ran: list[str] = []
        self.stopped: Stopped | None = None
        self.error: BayesCFXError | None = None
        self.kept_rows = 0
        self._link = None if evaluator.model.link is None else Logit()

    def begin(self, target: object, output: float) -> None:
        """Turn what the user stated as the target into a potential, given f(query).

        A potential of the user's own is checked on the outputs of a few rows. A question whose
        target is the query's own output counts as met.
        """
        outputs = [output]
        if hasattr(target, "value") and hasattr(target, "slope"):
            outputs += self._some_outputs()
        self.output = output
        self.target = as_target(target, outputs)
        if self._link is not None:
            check_probability_target(self.target, output)
        self.acceptance = self.target.acceptance(output, self.tolerance)
        self.surrogate_acceptance = self.acceptance
        self.wanted = self.target.wanted(output)
        is_accepted = bool(self.accepted(np.array([output]))[0])
        # A query that reaches the target by breaking a rule is searched for.
        self.already_met = is_accepted and bool(self.region.contains(self.region.query[None])[0])
        if not self.already_met:
            self._set_potentials(is_accepted)

    def _set_potentials(self, is_accepted: bool) -> None:
        """Set the potential and what the surrogate sees of the target.

        `is_accepted` says whether the query's own output reaches the target.
        """
        try:
            self.potential = self.target.potential(self.output)
        except TargetError:
            if not is_accepted:
                raise
            self.already_met = True  # no other row has this output for certain
            return
        self.surrogate_potential = self.potential
        if self._link is not None:
            self.surrogate_potential = Linked(self.potential, self._link)
            self.surrogate_acceptance = self._link.intervals(self.acceptance)

    def _some_outputs(self) -> list[float]:
        """Return outputs of a few rows, if the budget allows."""
        rows = background_rows(self.region, _ROWS_FOR_OWN_POTENTIAL, self.rng)
        if self.left <= len(rows):
            return []
        try:
            y = self.evaluate(rows)
        except Stop as stop:  # skipped faults used up the budget
            y = stop.y
        return [output for output in y.tolist() if not np.isnan(output)]

    @property
    def left(self) -> int:
        """The number of rows that may still be sent; those kept only once the target is reached."""
        left = super().left
        if self.kept_rows == 0 or self.reached:
            return left
        return max(left - self.kept_rows, 0)

    @cached_property
    def relaxed(self) -> list[tuple[Constraint, Region]]:
        """Each constraint that forbids rows, with the region without it."""
        return list(relaxed_regions(self.region))

    def with_region(self, region: Region, budget: int) -> Question:
        """Return the same question in another region, which knows the rows asked for so far."""
        other = Question(self.evaluator, region, budget, self.rng, tolerance=self.tolerance)
        for name in ("output", "target", "wanted", "acceptance", "surrogate_acceptance"):
            setattr(other, name, getattr(self, name))
        other.potential = self.potential
        other.surrogate_potential = self.surrogate_potential
        other.asked = list(self.asked)
        other.inside.is_own_only = True
        return other

    def to_surrogate(self, y: Array) -> Array:
        """Return outputs ``(n,)`` on the surrogate's scale; always finite for finite outputs."""
        return y if self._link is None else self._link.forward(y)

    def accepted(self, y: Array) -> Mask:
        """Return which outputs ``(n,)`` reach the target; a fault does not."""
        return contains(self.acceptance, y)

    def score(self, y: Array) -> Array:
        """Return the potential of outputs ``(n,)`` relative to its peak, 0 to 1; 0 for a fault."""
        fault = np.isnan(y)
        if self.already_met:
            return np.where(fault, 0.0, 1.0)
        share = self.potential.value(np.where(fault, self.output, y)) / self.potential.peak
        return np.where(fault, 0.0, np.clip(share, 0.0, 1.0))

    @property
    def X(self) -> Array:
        """Codes ``(n, d)`` of what matters of all known in the region, not to be written to."""
        return self.known.take(self.inside.places(self.region.contains, self._best))[0]

    @property
    def y(self) -> Array:
        """Outputs ``(n,)`` of the rows of `X`."""
        return self.known.take(self.inside.places(self.region.contains, self._best))[1]

    @property
    def borrowed(self) -> Mask:
        """Which rows of `X` were scored for other questions of the same call."""
        self.inside.places(self.region.contains, self._best)
        return self.inside.borrowed

    def leave_out_borrowed(self) -> None:
        """Search as if the rows scored for other questions of the same call were not known."""
        self.inside.leave_out_borrowed()
        self.alike.leave_out_borrowed()

    def let_in_borrowed(self) -> None:
        """Use the rows scored for other questions of the same call from now on."""
        self.inside.let_in_borrowed()
        self.alike.let_in_borrowed()

    def hits_of_call(self) -> Array:
        """Return codes ``(k, d)`` that reach the target, of all rows scored in this call.

        Also those of other questions that are left out at present.
        """
        places = np.arange(self.n_known_before, len(self.known))
        X, y = self.known.take(places)
        hits = np.flatnonzero(self.accepted(y))
        counts = self.scored(places[hits], X[hits], y[hits]) & self.region.contains(X[hits])
        return np.asarray(X[hits[counts]])

    @property
    def reached(self) -> bool:
        """Whether any row of `X` reaches the target."""
        return bool(self.accepted(self.y).any())

    @property
    def best(self) -> int:
        """Position in `X` of the cheapest row that reaches the target, or of the nearest to it."""
        return int(best_first(self, self.X, self.y)[0])

    def _best(self, X: Array, y: Array, most: int) -> Indices:
        """Return which rows may be answers or lead to one: the best, and those near the query.

        Also the best of each set of changed features, and ends of what was seen.
        """
        cost, hit = self.region.cost(X), self.accepted(y)
        some = np.arange(len(y))
        n_sorted = TUNING.shortlist * most
        if len(y) > n_sorted:  # of many rows, those that may be among the best
            nearness = _LEAST_SCORE / (1.0 + misses(self.acceptance, y))
            worth = np.where(hit, 1.0 + 1.0 / (1.0 + cost), self.score(y) + nearness)
            some = np.sort(np.argpartition(-worth, n_sorted)[:n_sorted])
        order = some[best_first(self, X[some], y[some])]
        changed = self.region.clear_changes(X[order])
        n_part = most // TUNING.part_one_in
        first = firsts(changed)[:n_part]
        near = np.argpartition(cost, n_part)[:n_part]
        kept = [order[: most // 2], order[first], near]
        for low, high in ((y.min(), y.max()), *self.acceptance):
            outer = np.where(y <= low, y, -np.inf).argmax(), np.where(y >= high, y, np.inf).argmin()
            kept.append(np.array(outer))
        return np.unique(np.concatenate(kept))

    def _relevant(self, X: Array, y: Array, most: int, near: int | None = None) -> Indices:
        """Return which rows ``(n, d)`` tell most of the model where answers may be."""
        places = np.arange(len(self.y))
        own = np.flatnonzero(~self.borrowed)
        if self.region.price.weight > 0.0 and self.accepted(self.y[own]).any():
            places = own  # where other questions' rows hit may be far away
        best = places[best_first(self, self.X[places], self.y[places])[: TUNING.n_centres]]
        return relevant(self.region, X, most, self.X[best], near)

    def lessons(
        self,
        most: int | None = None,
        borrowed_below: float = np.inf,
        *,
        everywhere: bool = False,
    ) -> tuple[Array, Array]:
        """Return codes and outputs that a surrogate learns from, at most so many, own ones first.

        What a search forgot, it would try again. Where answers may be, or `everywhere`. Other
        questions' rows too, unless other cells are missing: a gap tells nothing. Rows scored for
        other questions of the same call count up to the cost `borrowed_below`.
        """
        X, y = self.known.take(self.alike.places(self.region.same_missing, self._relevant))
        own = self.alike.own
        if borrowed_below < np.inf:
            is_kept = ~self.alike.borrowed | (self.region.cost(X) <= borrowed_below)
            X = X[is_kept]
            y = y[is_kept]
            own = own[is_kept]
        if most is None or len(X) <= most:
            return X, y
        if everywhere:
            chosen = self._relevant(X, y, most)
            return X[chosen], y[chosen]
        mine, others = np.flatnonzero(own), np.flatnonzero(~own)
        room = max(most // 2, most - len(others))
        mine = mine[self._relevant(X[mine], y[mine], room, near=room)]
        others = others[self._relevant(X[others], y[others], most - len(mine))]
        chosen = np.union1d(mine, others)
        return X[chosen], y[chosen]

    @cached_property
    def weight(self) -> float:
        """What a unit of cost is worth, as a share of the potential's peak.

        The user's weight is that of a typical move: to a row of the data, or to a random one.
        """
        weight = self.region.price.weight
        if weight <= 0.0:
            return 0.0
        rows = background(self.region, self.region.data[:_N_DATA])[:_N_TYPICAL]
        if len(rows) < _N_TYPICAL:  # most data rows do not fit
            rows = background(self.region)[:_N_TYPICAL]
        if not len(rows):
            rows = sample(self.region, _N_TYPICAL, np.random.default_rng(0))
        typical = float(np.median(self.region.cost(rows)))
        return weight / typical if typical > 0.0 else weight


@runtime_checkable
class RoundSearch(Protocol):
    """A way to spend a budget of model calls that takes turns with other questions' searches."""

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        ...


class LoneSearch(Protocol):
    """A way to spend a budget of model calls on a single question."""

    def run(self, question: Question) -> Stopped:
        """Evaluate rows with ``question.evaluate`` until done; `Stop` may end it at any call."""
        ...


Search: TypeAlias = RoundSearch | LoneSearch


def best_first(question: Question, X: Array, y: Array) -> Indices:
    """Return an order of rows: hits by cost, then others by potential, miss of the target, cost."""
    hit = question.accepted(y)
    cost = question.region.cost(X)
    worth = np.where(hit, 0.0, question.score(y))
    miss = np.where(hit, 0.0, misses(question.acceptance, y))
    return np.lexsort((cost, miss, -worth, ~hit))


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
