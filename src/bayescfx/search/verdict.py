"""Can the target be reached at all? What the surrogate says, and what keeps the target away.

A verdict is a statement about the surrogate, never a proof. It leans towards "can be reached":
joint posterior samples are taken at the rows where the surrogate hopes most, they are widened
where the surrogate has been too sure of itself and by what learning its hyperparameters cost,
and any output between two reachable ones counts as reachable. Nothing is said of a region that can
hardly be sampled: what was not found there may still be there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Mask, not_among
from bayescfx.deadline import NEVER
from bayescfx.potentials.levels import Intervals
from bayescfx.search.binding import binding, miss
from bayescfx.search.frontier import frontier, probes
from bayescfx.search.question import Question
from bayescfx.search.surrogate import Surrogate, SurrogateSettings, learn, relevant
from bayescfx.space.region import Region
from bayescfx.space.sampling import WORTHWHILE, background_rows, sample

_PATHS = 256  # joint samples of the surrogate
_POINTS = 96  # rows at which they are taken
_FEW = 256  # regions with at most this many rows are looked at row by row
_OUTLIER = 3.0  # residuals count up to this many deviations: one jump says little of the rest
_WIDEST = 1.5  # the most by which few rows per hyperparameter widen the samples
_DRAWS = 256  # rows that show whether the rules leave anything of a region to find
_DOUBT = 0.2  # a probability below this calls for a probe ...
_DESPAIR = 0.1  # ... and below this, after the probe, the target counts as out of reach ...
_RECENT, _CHECKS = 0.2, 2  # ... both on average over the checks of so many rows, at least two
_HOPE = 0.4  # probability from which an earlier probe no longer counts
_CLOSE = 0.08  # nobody gives up with less than this share of the way to go ...
_CLIMBING, _AGAIN = 1 / 3, 2.0  # ... or with less than twice what the last third of rows brought
_LEAST = 8  # rows known in the region before the first check ...
_PER_FEATURE = 1.0  # ... and so many more for each free feature ...
_EARLIEST, _LATEST = 0.2, 0.3  # ... but at least and at most these shares of the budget
_PAUSE = 40  # there are at most this many checks per budget, none for less than two new rows
_PROBES = 8  # the most rows of a probe, and no more than this share of the budget, ...
_PROBE_SHARE, _ALL_PROBES = 0.13, 0.2  # ... nor than this share for all probes


@dataclass(frozen=True)
class Verdict:
    """What the surrogate says of a target that was not reached.

    Parameters
    ----------
    probability : float or None
        That the target can be reached within the limits; None if nothing can be said, because
        rules hide most of the region, or all outputs are the same.
    binding : tuple of str
        Limits and rules that keep the target away, most binding first.

    Examples
    --------
    >>> Verdict(0.01, ("limit on 'bmi' (at most 32)",)).binding
    ("limit on 'bmi' (at most 32)",)
    """

    probability: float | None
    binding: tuple[str, ...]


def judge(question: Question, surrogate: Surrogate | None = None) -> Verdict:
    """Return how likely the target can be reached, and what keeps it away.

    Parameters
    ----------
    question : Question
        After its search.
    surrogate : Surrogate, optional
        The surrogate; fitted here to what is known if not given.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> from bayescfx.evaluations.data import Evaluations
    >>> from bayescfx.evaluations.evaluator import Evaluator
    >>> from bayescfx.features import Real
    >>> from bayescfx.model.model import Model
    >>> from bayescfx.space.space import Space
    >>> from bayescfx.potentials.targets import reach
    >>> region = Space({"a": Real(0, 1), "b": Real(0, 1)}).around({"a": 0.5, "b": 0.5})
    >>> evaluator = Evaluator(Model(lambda rows: 3 * rows["a"]), region.schema, Evaluations())
    >>> account, rng = evaluator.account(region, budget=20), np.random.default_rng(0)
    >>> from bayescfx.space.sampling import sample
    >>> y = account.evaluate(np.vstack([region.query, sample(region, 15, rng)]))
    >>> verdict = judge(Question(account, y[0], reach(9.0), rng))
    >>> round(verdict.probability, 2), verdict.binding
    (0.0, ("the upper end of 'a' (1)",))
    """
    if question.reached:
        return Verdict(1.0, ())
    if surrogate is None:
        surrogate = _learnt(question)
    rng = np.random.default_rng(0)
    silent = hidden(question.region, rng) or (
        flat(question) and question.region.enumerate(_FEW) is None
    )
    probability = None if silent else probability_reachable(surrogate, question, rng)
    return Verdict(probability, binding(surrogate, question, rng))


def flat(question: Question) -> bool:
    """Return whether all outputs are the same: a surrogate of a constant knows of no jumps."""
    return bool(np.ptp(question.y) == 0.0)


def hidden(region: Region, rng: np.random.Generator) -> bool:
    """Return whether functions of the user forbid nearly all of a region, data rows included.

    Allowed rows of such a region are found by walking from one to the next. Rules given as text
    don't count: rows are projected onto them.
    """
    opaque = [rule for rule in region.rules if rule.opaque]
    if not opaque:
        return False
    open_ = region.without(*opaque)
    drawn = (sample(open_, _DRAWS, rng), background_rows(open_, _DRAWS, rng))
    return max(float(region.contains(X).mean()) for X in drawn if len(X)) < WORTHWHILE


def _learnt(question: Question) -> Surrogate:
    """Return a surrogate of everything known that matters to the question."""
    settings, known = SurrogateSettings(), question.account.evaluator
    best = np.argsort(-question.score(question.y), kind="stable")[:4]
    X, y = known.X, known.y
    chosen = relevant(question.region, X, settings.points, question.X[best])
    outputs = question.to_surrogate(y[chosen])
    return learn(settings, question.region, X[chosen], outputs, None, NEVER)


def probability_reachable(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> float:
    """Return the surrogate's probability that some allowed row reaches the target.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate, on the question's surrogate scale.
    question : Question
        Region, target, and what is known.
    rng : numpy.random.Generator
        Source of the joint samples.

    Returns
    -------
    float
        Between 0 and 1.
    """
    accepted = question.surrogate_acceptance
    if question.reached:
        return 1.0
    if not accepted:
        return 0.0
    region, known = question.region, question.X
    everything = region.enumerate(_FEW)
    if everything is not None:
        left = everything[not_among(everything, known)]
        if not len(left):
            return 0.0
        return float(_within(_paths(surrogate, left, rng), accepted).any(axis=1).mean())
    seen = question.to_surrogate(question.y)
    low, high = float(seen.min()), float(seen.max())
    sides = _sides(accepted, low, high)
    if 0 in sides:
        return 1.0  # known outputs lie on both sides of accepted ones
    X = np.vstack(
        [frontier(surrogate, region, known, side, rng, _POINTS // len(sides)) for side in sides]
    )
    paths = _paths(surrogate, X, rng)
    lowest, highest = np.minimum(paths.min(axis=1), low), np.maximum(paths.max(axis=1), high)
    met = [(highest >= first) & (lowest <= last) for first, last in accepted]
    return float(np.any(met, axis=0).mean())


def _sides(accepted: Intervals, low: float, high: float) -> list[int]:
    """Return where accepted values lie: above (1) or below (-1) known ones, or among them (0)."""
    return sorted({1 if first > high else -1 if last < low else 0 for first, last in accepted})


def _paths(surrogate: Surrogate, X: Array, rng: np.random.Generator) -> Array:
    """Return joint samples ``(paths, n)`` at codes ``(n, d)``, widened by past overconfidence."""
    Z = surrogate.coordinates(X)
    mean, _ = surrogate.process.predict(Z)
    wider = overconfidence(surrogate) * _learning(surrogate)
    return np.asarray(mean + wider * (surrogate.process.sample(Z, _PATHS, rng) - mean))


def _learning(surrogate: Surrogate) -> float:
    """Return by what factor deviations are too small after learning hyperparameters from few rows.

    As in regression: n rows that fixed k parameters leave n - k to judge the error by. There is one
    lengthscale per surrogate input, a scale and a noise.
    """
    rows, parameters = surrogate.rows, surrogate.coordinates.width + 2
    return min(_WIDEST, float(np.sqrt(rows / max(rows - parameters, 1))))


def overconfidence(surrogate: Surrogate) -> float:
    """Return by what factor the surrogate's deviations are too small, at least 1.

    The root mean square of the leave-one-out residuals in units of their deviations, outliers
    cut off.
    """
    residual, std = surrogate.process.leave_one_out()
    surprise = np.minimum(np.abs(residual / std), _OUTLIER)
    return max(1.0, float(np.sqrt(np.mean(surprise**2))))


def _within(u: Array, accepted: Intervals) -> Mask:
    return np.asarray(np.any([(u >= low) & (u <= high) for low, high in accepted], axis=0))


@dataclass
class Watch:
    """Notices during a search that its target is out of reach.

    A search that climbs one hill knows little of the rest of the region, and so does its
    surrogate. Before it gives up, the watch therefore wants a few rows from elsewhere evaluated.

    Parameters
    ----------
    question : Question
        Under search.
    """

    question: Question
    _found: list[tuple[int, float]] = field(default_factory=list, init=False)
    _pending: Array | None = field(default=None, init=False, repr=False)
    _probed: bool = field(default=False, init=False)
    _spent: int = field(default=0, init=False)
    _next: int = field(init=False)
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        budget = self.question.account.budget
        needed = _LEAST + _PER_FEATURE * len(self.question.region.free)
        needed = min(max(needed, _EARLIEST * budget), _LATEST * budget)
        self._next = max(_LEAST, round(needed))
        # A stream of its own: watching must not change what the search does.
        self._rng = np.random.default_rng(0)

    def out_of_reach(self, surrogate: Surrogate) -> bool:
        """Return whether the target has looked out of reach for some time.

        Most calls return at once: a check waits for enough evidence, then for new rows.

        Parameters
        ----------
        surrogate : Surrogate
            The surrogate of this round.

        Returns
        -------
        bool
        """
        known = len(self.question.y)
        if known < self._next or flat(self.question) or self._close() or self._hidden:
            return False
        self._next = known + max(2, self.question.account.budget // _PAUSE)
        probability = probability_reachable(surrogate, self.question, self._rng)
        self._found.append((known, probability))
        if probability >= _HOPE and self._allowance >= _CHECKS:
            self._probed = False
        # Over so many rows the surrogate has learnt its hyperparameters anew.
        recent = [p for rows, p in self._found if rows >= (1.0 - _RECENT) * known]
        recent = recent if len(recent) >= _CHECKS else [p for _, p in self._found[-_CHECKS:]]
        if len(recent) < _CHECKS:
            return False
        if self._probed:
            return float(np.mean(recent)) < _DESPAIR and not self._climbing()
        if float(np.mean(recent)) < _DOUBT:
            self._pending = self._rows(surrogate)
        return False

    @cached_property
    def _hidden(self) -> bool:
        return hidden(self.question.region, self._rng)

    def _misses(self) -> Array:
        """Return how far the outputs of all rows known, and f(query) last, are from the target."""
        question = self.question
        outputs = question.to_surrogate(np.append(question.y, question.output))
        return miss(outputs, question.surrogate_acceptance or ((np.inf, np.inf),))

    def _close(self) -> bool:
        """Whether so little is missing that the surrogate can't tell it from nothing."""
        misses = self._misses()
        return bool(misses.min() < _CLOSE * misses[-1])

    def _climbing(self) -> bool:
        """Whether the search would arrive if it went on as it has of late."""
        misses = self._misses()[:-1]
        before = misses[: len(misses) - int(_CLIMBING * len(misses))]
        return bool((1.0 + _AGAIN) * misses.min() < _AGAIN * before.min())

    def probe(self) -> Array:
        """Return rows ``(k, d)`` to evaluate before the watch decides; mostly none.

        Each is handed out once.
        """
        rows = self._pending
        if rows is None:
            return np.empty((0, len(self.question.region.query)))
        self._pending, self._probed = None, True
        self._spent += len(rows)
        self._found.clear()
        self._next = len(self.question.y) + len(rows)
        return rows

    def _rows(self, surrogate: Surrogate) -> Array:
        question = self.question
        seen = question.to_surrogate(question.y)
        sides = _sides(question.surrogate_acceptance, seen.min(), seen.max())
        side = next((side for side in sides if side), 1)
        return probes(surrogate, question.region, question.X, side, self._rng, self._allowance)

    @property
    def _allowance(self) -> int:
        """How many rows the next probe may have; the first has two at least."""
        budget = self.question.account.budget
        most = min(_PROBES, int(_PROBE_SHARE * budget), int(_ALL_PROBES * budget) - self._spent)
        return most if self._spent else max(2, most)
