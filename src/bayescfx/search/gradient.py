"""Projected gradient ascent of the potential (Section 2.1).

The paper's recurrence is ``x <- Π[x + η ∇ρ(f(x))]``. It works on the continuous features, each in
units of its own scale (:mod:`bayescfx.space.slice`), and ends at a point for which the certificate
of CFX-Potential-Localopt holds (:mod:`bayescfx.theory.certificate`). The gradient of the model is
given by the user, or found by finite differences (:class:`Slopes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, is_single
from bayescfx.checks import check_positive, check_whole
from bayescfx.data.schema import Schema
from bayescfx.deadline import time_limit
from bayescfx.errors import ModelError, SpaceError
from bayescfx.search.question import Question, Stopped
from bayescfx.search.start import fresh_rows
from bayescfx.space.region import Region
from bayescfx.space.slice import Slice


@dataclass(frozen=True)
class GradientTuning:
    """Numbers of the ascent and its finite differences.

    Numerical: set from what double and single precision allow, and textbook values of the line
    search. The certificates of `tests/theory/test_certificate.py` and `experiments/circuits.py`
    hold with them (2026-11-16).
    """

    #: Moves are tried forwards and backwards, then ever shorter, by these factors.
    move_factors: tuple[float, ...] = (1.0, -1.0, 0.1, -0.1, 1e-2, -1e-2, 1e-3, -1e-3)
    #: Rises of single-precision outputs below this number of roundings are unknown.
    n_roundings: float = 16.0
    #: Steps that rounding hides are made longer by this factor, so often.
    longer: float = 10.0
    n_longer: int = 3
    #: Slides along a constraint shorter than this share of the step are left out.
    min_slide: float = 1e-3
    #: Smallest singular value of directions that count as independent.
    min_singular_value: float = 1e-3
    #: Largest error of a projection onto the directions known.
    max_projection_error: float = 1e-6
    #: Width of differences by which derived features follow the others, in scales.
    derived_difference: float = 1e-4
    #: Pushes of a start off a flat potential, each by this share of the way.
    n_pushes: int = 4
    push: float = 0.5
    #: Trials of a step length, and the share of the promised rise that is enough (Armijo).
    n_trials: int = 24
    min_rise: float = 0.25
    #: Factors by which a length may shrink at once, at least and at most.
    shrink_least: float = 0.5
    shrink_most: float = 0.1
    #: The largest growth of a length is half of the inverse.
    min_curvature: float = 0.1
    #: Moves below this share of the tolerance end the trials.
    min_move: float = 1e-3
    #: Halvings of the way back from a row inside the target: a thousandth of it is left.
    n_halvings: int = 10
    #: Points at which the curvature of the potential is measured.
    n_curvature: int = 257


TUNING = GradientTuning()


def difference_quotients(
    function: Callable[[Array], Array], region: Region, x: Array, moves: Array
) -> tuple[float, Array]:
    """Return a function at an allowed row ``(d,)``, and the rise over whole moves ``(k, d)``.

    Each move is tried forwards and backwards, then ever shorter to a thousandth of it. The rise is
    nan where no move is allowed, or the function is nan. All rows are evaluated in one call.
    """
    rows, share = _allowed_moves(region, x, moves)
    is_known = ~np.isnan(share)
    values = function(np.vstack([x, rows[is_known]]))
    rise = values[1:] - values[0]
    if is_single(values):
        rounding = np.finfo(np.float32).eps * abs(values[0])
        rise[np.abs(rise) < TUNING.n_roundings * rounding] = np.nan
    share[is_known] = rise / share[is_known]
    return float(values[0]), share


def _allowed_moves(region: Region, x: Array, moves: Array) -> tuple[Array, Array]:
    """Return rows after moves ``(k, d)`` from `x`, and the share of each move; nan if none."""
    rows = np.repeat(x[None, :], len(moves), axis=0)
    share = np.full(len(moves), np.nan)
    largest = np.abs(moves).argmax(axis=1)
    for factor in TUNING.move_factors:
        left = np.flatnonzero(np.isnan(share))
        if not len(left):
            break
        rows[left] = region.snap(x + factor * moves[left])
        j = largest[left]
        by = (rows[left, j] - x[j]) / moves[left, j]
        is_good = by != 0.0
        is_good[is_good] = region.contains(rows[left[is_good]])
        share[left[is_good]] = by[is_good]
    return rows, share


def _slope(steps: Array, rises: Array, along: Array) -> Array:
    """Return the gradient ``(k,)`` from rises over steps ``(s, k)``, nan where it is unknown.

    The directions `along` ``(m, k)`` are those that linear equations allow.
    """
    is_known = ~np.isnan(rises)
    length = np.linalg.norm(steps[is_known], axis=1)
    units = steps[is_known] / length[:, None]
    _, sizes, basis = np.linalg.svd(units, full_matrices=False)
    basis = basis[sizes > TUNING.min_singular_value]
    slope = np.linalg.lstsq(units @ basis.T, rises[is_known] / length)[0] @ basis
    error = np.abs(basis.T @ basis - along.T @ along).max(axis=0)
    return np.where(error < TUNING.max_projection_error, slope, np.nan)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The model as a differentiable function of a slice's coordinates."""

    question: Question  # its account is charged for outputs
    part: Slice
    gradient: Callable[[Any], Any] | None  # from rows to derivatives by their columns
    difference: float  # without `gradient`: width of differences, as a share of a feature's range

    def at(self, x: Array) -> tuple[float, Array] | None:
        """Return f and ∇f ``(k,)`` at a row of codes ``(d,)``; None if the model fails there.

        By finite differences it is the gradient inside what linear equations allow, and nan where
        some direction can't be tried.
        """
        if self.gradient is None:
            return self._by_differences(x)
        output = float(self.question.evaluate(x[None, :])[0])
        if np.isnan(output):
            return None
        return output, self._stated(x[None, :])[0]

    def _by_differences(self, x: Array) -> tuple[float, Array] | None:
        """Return f and ∇f by finite differences; None if the model fails at `x`."""
        part = self.part
        region = part.region
        evaluate = self.question.evaluate
        along = part.polytope.directions
        width = self.difference * ((region.high - region.low)[part.features] / part.scale)
        steps = np.linalg.norm(along * width, axis=1)[:, None] * along
        output, rises = difference_quotients(evaluate, region, x, part.moves(steps))
        if np.isnan(output):
            return None
        for _ in range(TUNING.n_longer):  # rounding may hide short steps
            is_blocked = np.isnan(rises)
            if is_blocked.any():
                steps = np.where(is_blocked[:, None], TUNING.longer, 1.0) * steps
                moves = part.moves(steps[is_blocked])
                rises[is_blocked] = difference_quotients(evaluate, region, x, moves)[1]
        is_blocked = np.isnan(rises)
        if is_blocked.any():
            slides = self._slides(x, steps[is_blocked])
            more = difference_quotients(evaluate, region, x, part.moves(slides))[1]
            steps = np.vstack([steps, slides])
            rises = np.append(rises, more)
        return output, _slope(steps, rises, along)

    def _slides(self, x: Array, steps: Array) -> Array:
        """Return blocked steps ``(s, k)``, as at a vertex, projected onto the constraints."""
        part = self.part
        z = part.coordinates(x)
        aims = np.vstack([steps, -steps])
        slides = np.array([part.project(z + aim) - z for aim in aims])
        length = np.linalg.norm(slides, axis=1)
        return np.asarray(slides[length > TUNING.min_slide * np.linalg.norm(aims, axis=1)])

    def outputs(self, Z: Array) -> Array:
        """Return f ``(n,)`` at coordinates ``(n, k)``."""
        return self.question.evaluate(self.part.codes(Z))

    def gradients(self, Z: Array) -> Array:
        """Return ∇f ``(n, k)`` at coordinates ``(n, k)``; nan where it is not known."""
        rows = self.part.codes(Z)
        if self.gradient is not None:
            return self._stated(rows)
        slopes = np.full(Z.shape, np.nan)
        for slope, x in zip(slopes, rows, strict=True):
            result = self.at(x)
            if result is not None:
                slope[:] = result[1]
        return slopes

    def _stated(self, X: Array) -> Array:
        """Return the given gradient ``(n, k)`` by coordinates at rows of codes ``(n, d)``."""
        region = self.part.region
        features = self.part.features
        derived = np.flatnonzero(region.recomputed)  # they move with the others: the chain rule
        names = [region.names[j] for j in (*features, *derived)]
        slope = self._stated_columns(X, names, len(features))
        if not np.isfinite(slope).all():
            i, j = np.argwhere(~np.isfinite(slope))[0]
            raise ModelError(
                f"`gradient` must return finite numbers; got {slope[i, j]} for "
                f"{names[j]!r}. Leave it out to use finite differences."
            )
        own = slope[:, : len(features)]
        if len(derived):
            others = slope[:, None, len(features) :]
            own = own + (self._following(X, derived) * others).sum(axis=-1)
        return own * self.part.scale

    def _stated_columns(self, X: Array, names: list[str], n_moving: int) -> Array:
        """Return the given derivatives at codes ``(n, d)``, one column per name.

        The first `n_moving` names are those of features that move, the others of derived ones.
        """
        assert self.gradient is not None  # the callers have checked
        schema = self.part.region.schema
        columns = [column.name for column in schema.columns]
        numeric = [name for name in columns if _is_numeric(schema, name)]
        _check_derived(names[n_moving:], numeric)
        returned = self.gradient(self.part.region.rows(X))
        if isinstance(returned, pd.DataFrame):
            return returned.reindex(columns=names).to_numpy(dtype=float)
        slope = np.asarray(returned, dtype=float)
        for given in (columns, numeric):
            if slope.shape == (len(X), len(given)):
                return slope[:, list(map(given.index, names))]
        raise _gradient_shape_error(slope.shape, len(X), len(columns))

    def _following(self, X: Array, derived: Indices) -> Array:
        """Return by how much derived features ``(m,)`` move with the others, shape (n, k, m)."""
        features = self.part.features
        width = TUNING.derived_difference * self.part.scale[:, None]
        moves = np.eye(X.shape[1])[features] * width
        moved = self._snapped(X[:, None] + moves) - self._snapped(X[:, None] - moves)
        own = moved[:, np.arange(len(features)), features, None]
        return np.asarray(moved[:, :, derived] / own)

    def _snapped(self, X: Array) -> Array:
        """Return rows of codes ``(n, k, d)`` moved to the grid of the region."""
        return self.part.region.snap(X.reshape(-1, X.shape[-1])).reshape(X.shape)


def _is_numeric(schema: Schema, name: Any) -> bool:
    """Return whether a column is a feature that holds numbers."""
    return name in schema.features and schema.features[name].numeric


def _gradient_shape_error(shape: tuple[int, ...], n_rows: int, n_columns: int) -> ModelError:
    """Return the error for derivatives of another shape than the rows."""
    return ModelError(
        f"`gradient` must return shape ({n_rows}, {n_columns}), one derivative per "
        f"column of the rows; got {shape}."
    )


def _check_derived(derived: list[Any], numeric: list[Any]) -> None:
    """Raise if a derived column, of which the chain rule needs the derivative, has none."""
    for name in derived:
        if name not in numeric:
            raise ModelError(
                f"`gradient` needs derived columns that are numbers, for the chain rule; "
                f"{name!r} is none. Leave it out to use finite differences."
            )


@dataclass(frozen=True, eq=False)
class Visit:
    """One point of the recurrence."""

    point: Array  # codes (d,)
    output: float  # f(point)
    slope: Array  # ∇f(point), shape (k,), in units of the features' scales; 0 if not known
    gradient: Array  # ∇ρ(f(point)), shape (k,), in the same units
    step: float  # the η of the certificate
    residual: float  # ‖x − Π[x + η ∇ρ(f(x))]‖₂ in the same units
    known: bool = True  # the slope in every direction; without it a residual certifies nothing


@dataclass(frozen=True)
class ProjectedGradient:
    """Follow the gradient of the potential, projected onto the region.

    Only continuous features move; the others keep the value of the start. Numbers whose step was
    inferred from the data count as continuous, so that answers may have more decimals than the
    data. Steps and residuals are Euclidean in units of the features' scales. Limits and linear
    rules are projected onto exactly. Other rules and the bound on changes are met by the region's
    own repair; where that allows no step upwards, the ascent ends without a certificate.

    The query is a stationary point of every EP potential. Where the potential is flat at a start
    that does not reach the target, the start is therefore first pushed along the gradient of f,
    halfway to the wanted output.

    One-sided targets and ranges are flat inside, where a last step may lead far beyond the bound.
    The line from there to the query is therefore halved until the nearest row on it is known.

    Parameters
    ----------
    step : float, optional
        The step size η. By default one over the curvature of the potential seen through the
        model's slope at the start, see :func:`natural_step`.
    tolerance : float, default 1e-3
        The δ of the certificate.
    gradient : callable, optional
        Takes rows, as the model gets them, and returns the derivatives of the model's output: one
        column per column of the rows, or per numeric one, or a frame with their names. By default
        finite differences, one model row per continuous feature.
    difference : float, default 1e-4
        Width of finite differences, as a share of each feature's range.
    backtrack : bool, default True
        Whether to shorten steps that don't raise the potential, and lengthen those that do. The
        certificate always uses η. Without backtracking, every step is the plain recurrence.
    restarts : int, default 8
        Further starts, at random rows, while the target is not reached.
    iterations : int, default 500
        The most steps from one start.

    Examples
    --------
    >>> ProjectedGradient(step=0.1, backtrack=False).tolerance
    0.001
    """

    continuous: ClassVar[bool] = True  # steps that were inferred from data are lifted for it

    step: float | None = None
    tolerance: float = 1e-3
    gradient: Callable[[Any], Any] | None = field(default=None, repr=False)
    difference: float = 1e-4
    backtrack: bool = True
    restarts: int = 8
    iterations: int = 500

    def __post_init__(self) -> None:
        if self.step is not None:
            check_positive("step", self.step)
        check_positive("tolerance", self.tolerance)
        check_positive("difference", self.difference)
        check_whole("restarts", self.restarts, 0)
        check_whole("iterations", self.iterations, 1)

    def run(self, question: Question) -> Stopped:
        """Follow the recurrence from the query, then from random rows."""
        for _ in self.visits(question):
            pass
        return "converged"

    def visits(self, question: Question) -> Iterator[Visit]:
        """Yield the points of the recurrence, start after start, until a certified one hits."""
        if not len(Slice(question.region, question.region.query).features):
            raise SpaceError(
                "`ProjectedGradient` needs a continuous feature that may move; this query has "
                "none. Use another method, such as 'bayes-cfx'."
            )
        for slopes, start in self._starts(question):
            for visit in self._climb(slopes, start):
                yield visit
                is_certified = visit.residual <= self.tolerance
                if is_certified and question.accepted(np.array([visit.output]))[0]:
                    if not question.target.has_tolerance:
                        _walk_back(slopes, visit)
                    return

    def slopes(self, question: Question, row: Array) -> Slopes:
        """Return the model's slopes on the slice through a row ``(d,)``."""
        part = Slice(question.region, row)
        return Slopes(question, part, self.gradient, self.difference)

    def _visit(self, slopes: Slopes, x: Array, eta: float | None = None) -> Visit | None:
        """Return a visit to a row, with its own η if none is given; None if the model fails."""
        result = slopes.at(x)
        if result is None:
            return None
        output, slope = result
        question = slopes.question
        is_known = not np.isnan(slope).any()
        slope = np.nan_to_num(slope, nan=0.0)
        eta = eta or self.step or natural_step(question, slope)
        gradient = np.asarray(float(question.potential.slope(output)) * slope)
        z = slopes.part.coordinates(x)
        residual = localopt_residual(z, gradient, eta, slopes.part.project)
        return Visit(x, output, slope, gradient, eta, residual, is_known)

    def _starts(self, question: Question) -> Iterator[tuple[Slopes, Visit]]:
        """Yield the starts: the query, or one push away from it to each wanted side."""
        query = question.region.query
        first = [query] if question.region.contains(query[None, :])[0] else []
        for row in chain(first, islice(fresh_rows(question), self.restarts)):
            slopes = self.slopes(question, row)
            visit = self._visit(slopes, row)
            if visit is not None:
                for start in self._off_flat(slopes, visit, is_query=row is query):
                    yield slopes, start

    def _off_flat(self, slopes: Slopes, visit: Visit, *, is_query: bool) -> Iterator[Visit]:
        """Yield a visit or, where the potential is flat, points towards the wanted outputs."""
        aims = _aims(slopes.question, visit.output)
        if not aims or not self._is_flat(slopes.question, visit):
            yield visit
            return
        if not is_query:  # the nearer side is enough
            aims = [min(aims, key=lambda aim: abs(aim - visit.output))]
        for aim in aims:
            yield self._pushed(slopes, visit, aim)

    def _is_flat(self, question: Question, visit: Visit) -> bool:
        """Return whether the certificate holds, trivially, where the target is missed."""
        is_hit = question.accepted(np.array([visit.output]))[0]
        return not is_hit and visit.residual <= self.tolerance

    def _pushed(self, slopes: Slopes, visit: Visit, aim: float) -> Visit:
        """Return a point where the potential is not flat, by pushing the output towards `aim`."""
        part = slopes.part
        for _ in range(TUNING.n_pushes):
            steepness = float(visit.slope @ visit.slope)
            if steepness == 0.0 or not self._is_flat(slopes.question, visit):
                break
            length = TUNING.push * (aim - visit.output) / steepness
            z = part.coordinates(visit.point)
            landed = part.land(part.project(z + length * visit.slope))
            pushed = self._visit_landed(slopes, landed)
            if pushed is None or (pushed.point == visit.point).all():
                break
            visit = pushed
        return visit

    def _visit_landed(
        self, slopes: Slopes, landed: Array | None, eta: float | None = None
    ) -> Visit | None:
        """Return a visit to the row where a step has landed; None if there is no such row."""
        return None if landed is None else self._visit(slopes, landed, eta)

    def _climb(self, slopes: Slopes, visit: Visit) -> Iterator[Visit]:
        """Yield the points of the recurrence from one start."""
        length = visit.step
        for _ in range(self.iterations):
            time_limit.get().check()
            yield visit
            if visit.residual <= self.tolerance:
                return
            landed: Array | None
            if self.backtrack:
                landed, length = self._ascent(slopes, visit, length)
            else:  # even if the potential falls
                landed = slopes.part.land(_step(slopes.part, visit, length))
            moved = self._visit_landed(slopes, landed, visit.step)
            if moved is None:
                return
            visit = moved

    def _ascent(self, slopes: Slopes, visit: Visit, t: float) -> tuple[Array | None, float]:
        """Return a row that raises the potential enough, or None, and the length to try next."""
        rho = slopes.question.potential
        part = slopes.part
        z = part.coordinates(visit.point)
        value = float(rho.value(visit.output))
        for _ in range(TUNING.n_trials):
            landed = part.land(_step(part, visit, t))
            if landed is None:
                t *= TUNING.shrink_least
                continue
            gap = float(np.linalg.norm(part.coordinates(landed) - z))
            if gap <= TUNING.min_move * self.tolerance:
                break
            output = float(slopes.question.evaluate(landed[None, :])[0])
            # The gain relative to what the slope promises, by Armijo's rule along the projection
            # arc; it is 1 - t / (2 t*) where t* leads to the top of a parabola.
            share = (float(rho.value(output)) - value) * t / gap**2
            best = _best_length(share, t)
            if share >= TUNING.min_rise:
                return landed, max(best, TUNING.shrink_least * t)
            t = min(max(best, TUNING.shrink_most * t), TUNING.shrink_least * t)
        return None, t


def _walk_back(slopes: Slopes, visit: Visit) -> None:
    """Score rows between the query and a row inside the target, down to the nearest inside.

    Inside a target without a tolerance the potential is flat: the last step may have led far in.
    """
    part = slopes.part
    question = slopes.question
    query = part.coordinates(question.region.query)
    way = part.coordinates(visit.point) - query
    missed = 0.0  # shares of the way
    reached = 1.0
    for _ in range(TUNING.n_halvings):
        time_limit.get().check()
        share = 0.5 * (missed + reached)
        landed = part.land(part.project(query + share * way))
        if landed is not None and question.accepted(question.evaluate(landed[None, :]))[0]:
            reached = share
        else:
            missed = share


def _best_length(share: float, t: float) -> float:
    """Return the length t* to the top of a parabola, given the `share` gained with length `t`."""
    if not np.isfinite(share):
        return 0.0
    return t / (2.0 * max(1.0 - share, TUNING.min_curvature))


def localopt_residual(
    c: Array, gradient: Array, eta: float, projection: Callable[[Array], Array]
) -> float:
    """Return ‖c − Π[c + η ∇ρ(f(c))]‖₂ at a point ``(k,)`` with gradient ∇ρ(f(c)) ``(k,)``."""
    return float(np.linalg.norm(c - projection(c + eta * gradient)))


def natural_step(question: Question, slope: Array) -> float:
    """Return ``1 / (L ‖∇f‖²)``, with ``L`` the largest curvature of the potential on the way."""
    # From f(query) to the wanted outputs and as far beyond. With this step the recurrence
    # overshoots a local optimum of a linear model by no more than it was short.
    steepness = float(slope @ slope)
    ends = [question.output, *_aims(question, question.output)]
    reach = max(ends) - min(ends)
    if steepness == 0.0 or reach == 0.0:
        return 1.0
    y = np.linspace(min(ends) - reach, max(ends) + reach, TUNING.n_curvature)
    curvature = float(np.abs(np.diff(question.potential.slope(y)) / np.diff(y)).max())
    return 1.0 / (curvature * steepness) if curvature > 0.0 else 1.0


def _aims(question: Question, output: float) -> list[float]:
    """Return the nearest output of each wanted interval that does not hold `output`."""
    nearest = [min(max(output, low), high) for low, high in question.wanted]
    return [aim for aim in nearest if aim != output]


def _step(part: Slice, visit: Visit, length: float) -> Array:
    """Return Π[z + t ∇ρ(f(z))], shape (k,)."""
    return part.project(part.coordinates(visit.point) + length * visit.gradient)
