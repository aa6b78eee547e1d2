"""Can the target be reached at all? What the surrogate says, and what keeps the target away.

A verdict is a statement about the surrogate, never a proof. It leans towards "can be reached":
joint posterior samples are taken at the rows where the surrogate hopes most, they are widened
where the surrogate has been too sure of itself and by what learning its hyperparameters cost,
and any output between two reachable ones counts as reachable. Nothing is said of a region that can
hardly be sampled: what was not found there may still be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, not_among
from bayescfx.potentials import Intervals
from bayescfx.propose import propose
from bayescfx.search.binding import binding
from bayescfx.search.objectives import confidence_bound
from bayescfx.search.question import Question, misses
from bayescfx.search.surrogate import Surrogate, surrogate_of
from bayescfx.space.region import Region
from bayescfx.space.sampling import WORTHWHILE, background_rows, sample

OPTIMISM = 2.0  # how many deviations are hoped for
FEW = 256  # regions with at most this many rows are looked at row by row
_DRAWS = 256  # rows that show whether the rules leave anything of a region to find


@dataclass(frozen=True)
class Verdict:
    """What the surrogate says of a target that was not reached."""

    # That the target can be reached within the limits; None if nothing can be said, because rules
    # hide most of the region, or all outputs are the same.
    probability: float | None
    binding: tuple[str, ...]  # limits and rules that keep it away, most binding first


def judge(question: Question) -> Verdict:
    """Return how likely the target can be reached after a search, and what keeps it away."""
    if question.reached:
        return Verdict(1.0, ())
    surrogate = surrogate_of(question)
    rng = np.random.default_rng(0)
    probability = None
    # A surrogate of a constant knows of no jumps.
    constant = np.ptp(question.y) == 0.0 and question.region.enumerate(FEW) is None
    if not (hidden(question.region, rng) or constant):
        probability = probability_reachable(surrogate, question, rng)
    return Verdict(probability, binding(surrogate, question, rng))


def hidden(region: Region, rng: np.random.Generator) -> bool:
    """Return whether functions of the user forbid nearly all of a region, data rows included."""
    opaque = [rule for rule in region.rules if rule.opaque]
    if not opaque:
        return False
    open_ = region.without(*opaque)
    drawn = (sample(open_, _DRAWS, rng), background_rows(open_, _DRAWS, rng))
    return max(float(region.contains(X).mean()) for X in drawn if len(X)) < WORTHWHILE


def probability_reachable(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> float:
    """Return the surrogate's probability, 0 to 1, that some allowed row reaches the target."""
    accepted = question.surrogate_acceptance
    if not accepted:
        return 0.0
    everything = question.region.enumerate(FEW)
    if everything is not None:
        left = everything[not_among(everything, question.X)]
        if not len(left):
            return 0.0
        paths = _paths(surrogate, left, rng)
        met = [((paths >= low) & (paths <= high)).any(axis=1) for low, high in accepted]
        return float(np.any(met, axis=0).mean())
    seen = question.to_surrogate(question.y)
    sides = _sides(accepted, seen)
    if 0 in sides:
        return 1.0  # known outputs lie on both sides of accepted ones
    most = 64 // len(sides)
    X = np.vstack([frontier(surrogate, question, side, rng, most) for side in sides])
    paths = _paths(surrogate, X, rng)
    lowest = np.minimum(paths.min(axis=1), seen.min())
    highest = np.maximum(paths.max(axis=1), seen.max())
    met = [(highest >= low) & (lowest <= high) for low, high in accepted]
    return float(np.any(met, axis=0).mean())


def frontier(
    surrogate: Surrogate, question: Question, side: int, rng: np.random.Generator, most: int = 96
) -> Array:
    """Return rows at which the surrogate may be highest (`side` 1) or lowest (-1), these first.

    At most `most` rows ``(m, d)`` of the region; rows that are known may be among them.
    """
    hope = confidence_bound(surrogate, side, OPTIMISM)
    starts = np.vstack([question.X, background_rows(question.region, 96, rng)])
    starts = starts[np.argsort(-hope.value(starts), kind="stable")]
    return propose(hope, question.region, rng, starts, k=most, effort="glance").points


def probes(
    surrogate: Surrogate, question: Question, side: int, rng: np.random.Generator, n: int
) -> Array:
    """Return rows that would show whether the surrogate knows the region or only a corner of it.

    Every other row is the most hopeful one, given that those chosen before come out as predicted;
    the rest are data rows as far as possible from everything known, by coordinates and not by what
    the surrogate takes to matter. At most `n` rows, none of them known.
    """
    hopeful = frontier(surrogate, question, side, rng)
    # Models vary most where their data are: corners of the box may all look alike.
    usual = background_rows(question.region, 192, rng)
    if not len(usual):
        usual = sample(question.region, 192, rng)
    pool = np.vstack([hopeful, usual])
    from_data = np.arange(len(pool)) >= len(hopeful)
    coordinates, process = surrogate.coordinates, surrogate.process
    Z = coordinates(pool)
    away = coordinates.distances(Z, coordinates(question.X)).min(axis=1)
    chosen: list[int] = []
    while len(chosen) < n and (away > 0.0).any():
        mean, std = process.predict(Z)
        worth = np.where(from_data, away, 0.0) if len(chosen) % 2 else side * mean + OPTIMISM * std
        at = int(np.argmax(np.where(away > 0.0, worth, -np.inf)))
        chosen.append(at)
        process = process.with_points(Z[[at]], mean[[at]])
        away = np.minimum(away, coordinates.distances(Z, Z[[at]])[:, 0])
        away[at] = 0.0
    return np.asarray(pool[chosen])


def _sides(accepted: Intervals, seen: Array) -> list[int]:
    """Return where accepted values lie: above (1) or below (-1) known ones, or among them (0)."""
    least, most = seen.min(), seen.max()
    return sorted({1 if low > most else -1 if high < least else 0 for low, high in accepted})


def _paths(surrogate: Surrogate, X: Array, rng: np.random.Generator) -> Array:
    """Return joint samples ``(256, n)`` at codes ``(n, d)``, widened by past overconfidence."""
    # And by what learning hyperparameters costs, as in regression: n rows that fixed k of them
    # (a lengthscale per input, a scale, a noise) leave n - k to judge the error by.
    rows, parameters = surrogate.rows, surrogate.coordinates.width + 2
    learning = min(1.5, float(np.sqrt(rows / max(rows - parameters, 1))))
    Z = surrogate.coordinates(X)
    mean, _ = surrogate.process.predict(Z)
    spread = surrogate.process.sample(Z, 256, rng) - mean
    return np.asarray(mean + overconfidence(surrogate) * learning * spread)


def overconfidence(surrogate: Surrogate) -> float:
    """Return by what factor the surrogate's deviations are too small, at least 1."""
    residual, std = surrogate.process.leave_one_out()
    # In units of deviations, cut off at three: one jump says little of the rest.
    surprise = np.minimum(np.abs(residual / std), 3.0)
    return max(1.0, float(np.sqrt(np.mean(surprise**2))))


class Watch:
    """Notices during a search that its target is out of reach.

    A search that climbs one hill knows little of the rest of the region, and so does its
    surrogate. Before it gives up, the watch therefore wants a few rows from elsewhere evaluated.
    """

    def __init__(self, question: Question) -> None:
        self.question, budget = question, question.account.budget
        # Eight rows and one per free feature before the first check, but no less than a fifth of
        # the budget and, beyond eight, no more than three tenths.
        needed = min(max(8 + len(question.region.free), 0.2 * budget), 0.3 * budget)
        self._next = max(8, round(needed))  # rows known before the next check
        self._found: list[tuple[int, float]] = []  # rows known and probability, of each check
        self.pending: Array | None = None  # a probe to be handed out
        self._probed, self._spent = False, 0
        # A stream of its own: watching must not change what the search does.
        self._rng = np.random.default_rng(0)

    def out_of_reach(self, surrogate: Surrogate) -> bool:
        """Return whether the target has looked out of reach for some time; mostly at once."""
        question, known = self.question, len(self.question.y)
        if known < self._next or np.ptp(question.y) == 0.0:
            return False
        outputs = question.to_surrogate(np.append(question.y, question.output))
        *missed, way = misses(question.surrogate_acceptance, outputs)
        # With less than a twelfth of the way to go the surrogate can't tell it from nothing.
        if min(missed) < 0.08 * way or self._hidden:
            return False
        self._next = known + max(2, question.account.budget // 40)
        probability = probability_reachable(surrogate, question, self._rng)
        self._found.append((known, probability))
        if probability >= 0.4 and self._allowance >= 2:
            self._probed = False  # there is hope again, and rows for another probe
        # The mean over the last fifth of the rows, in which the surrogate has learnt its
        # hyperparameters anew, and over two checks at least.
        recent = [p for rows, p in self._found if rows >= 0.8 * known]
        if len(recent) < 2:
            recent = [p for _, p in self._found[-2:]]
        if len(recent) < 2:
            return False
        if self._probed:
            # Would the search arrive with twice what the last third of its rows brought?
            before = min(missed[: known - int(1 / 3 * known)])
            climbing = 3.0 * min(missed) < 2.0 * before
            return float(np.mean(recent)) < 0.1 and not climbing
        if float(np.mean(recent)) < 0.2:
            seen = question.to_surrogate(question.y)
            sides = [side for side in _sides(question.surrogate_acceptance, seen) if side]
            side, n = sides[0] if sides else 1, self._allowance
            self.pending = probes(surrogate, question, side, self._rng, n)
        return False

    @cached_property
    def _hidden(self) -> bool:
        return hidden(self.question.region, self._rng)

    def probe(self) -> Array:
        """Return rows ``(k, d)`` to evaluate before the watch decides, if any, each once."""
        rows = np.empty((0, len(self.question.region.query)))
        if self.pending is None:
            return rows
        rows, self.pending, self._probed = self.pending, None, True
        self._spent += len(rows)
        self._found.clear()
        self._next = len(self.question.y) + len(rows)
        return rows

    @property
    def _allowance(self) -> int:
        """How many rows the next probe may have; the first has two at least."""
        budget = self.question.account.budget
        most = min(8, int(0.13 * budget), int(0.2 * budget) - self._spent)
        return most if self._spent else max(2, most)
