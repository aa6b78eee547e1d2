"""Allowed rows of a region: draws, data rows, walks.

Draws satisfy limits, grid and the l0 bound by construction; rules then reject some. Where they
reject nearly everything, rejected draws are repaired or pulled towards an allowed row, and a walk
spreads the rows found. Where none was found, a walk first lowers the number of broken rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np
from numpy.random import Generator

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import time_limit
from bayescfx.errors import InfeasibleError
from bayescfx.space.conflict import find_conflict, in_words
from bayescfx.space.linear import violation
from bayescfx.space.region import Region
from bayescfx.space.repair import fill, pull, repair, trim

#: The share of allowed draws above which plain rejection goes on.
#: Set by judgement; benchmark `make quality` (2026-11-18).
WORTHWHILE = 0.05


@dataclass(frozen=True)
class SamplingTuning:
    """Numbers of the sampling.

    Evidence: `python -m benchmarks.tuning --only sampling` (samples of 200 rows from nine regions
    that forbid most draws, 2026-11-18). Half and double of each change the number of rows found by
    at most 0.3 %, and the mean distance of other allowed rows from the nearest of them by no more
    than the noise (2 %, or 4 % for the walk), unless stated.
    """

    # Limits of work, which only regions with hardly any allowed row reach.
    tries: int = 2048  # draws that are counted before a region is called infeasible
    # A rule that 1 draw in 10,000 satisfies is missed once in 28,000 times.
    insistent_rounds: int = 50
    # Draws before the share of allowed ones is judged; without it, samples of 20 rows lie 2 %
    # farther from other rows.
    first_draws: int = 256
    least_draws: int = 64  # per round
    walkers: int = 256  # rows that walk at once ...
    steps: int = 100  # ... and their steps per batch of rows
    # Rows that a walk collects for each that is wanted; with 1 they lie 1 to 2 % farther.
    walked: int = 4
    # Share of the steps that redraw a block; the others shift all features. Without redrawing, rows
    # lie 4 % farther; without shifts, in a slab of 0.6 % that a user's function allows, they spread
    # over a quarter of the length.
    redrawn: float = 0.5
    shortest_shift: float = -3.0  # powers of ten of a scale
    longest_shift: float = 0.5
    inside: float = 0.999  # numerical: share of the way to a linear rule that a step may go
    few_changes: int = 3  # of sparse draws
    named_rules: int = 6  # in the message of an infeasible region


TUNING = SamplingTuning()


def sample(region: Region, n: int, rng: Generator) -> Array:
    """Return at most `n` allowed rows other than the query."""
    found = np.empty((0, len(region.query)))
    if n < 1:
        return found
    if len(region.free) and not region.rules:
        X = draw(region, n, rng)
        found = X[_allowed_changes(region, X)]
    elif len(region.free):
        found = _ruled_sample(region, n, rng)
    if not len(found):
        every = region.enumerate(TUNING.tries)
        if every is not None:  # so small that draws may have missed its rows
            found = every[region.changes(every).any(axis=1)]
    if not len(found):
        raise no_row_error(region, rng)
    return found[:n]


def _allowed_changes(region: Region, X: Array) -> Mask:
    """Return which rows ``(n, d)`` are allowed and change something."""
    found = np.asarray(region.changes(X).any(axis=1))
    found[found] = region.contains(X[found])
    return found


def _ruled_sample(region: Region, n: int, rng: Generator) -> Array:
    """Return about `n` rows of a region with rules: by rejection while that is worthwhile."""
    found = np.empty((0, len(region.query)))
    n_tried = 0
    is_worthwhile = True
    while len(found) < n and is_worthwhile:
        n_draws = max(TUNING.least_draws, min(TUNING.tries, 2 * (n - len(found))))
        X = region.complete(draw(region, n_draws, rng))
        found = np.concatenate([found, X[_allowed_changes(region, X)]])
        n_tried += len(X)
        is_worthwhile = n_tried < TUNING.first_draws or len(found) >= WORTHWHILE * n_tried
    return found if len(found) >= n else _persist(region, n, rng, found)


def _persist(region: Region, n: int, rng: Generator, found: Array) -> Array:
    """Return the rows found, and more, where draws are rarely allowed.

    Rejected draws are repaired or pulled to allowed rows; data rows are added; a walk spreads them.
    """
    n_draws = max(TUNING.least_draws, min(TUNING.tries, 2 * n))
    X = draw(region, n_draws, rng)
    repaired, allowed = repair(region, X)
    seeds = np.concatenate([found, repaired[allowed], background_rows(region, n_draws, rng)])
    if not len(seeds):
        query = region.query[None, :]
        seeds = query if region.contains(query)[0] else _descend(region, rng)
    rejected = region.complete(X)[~allowed]
    more = _spread_out(region, seeds, rejected, n - len(found), rng)
    if not len(found) and not len(more):
        more = _spread_out(region, _insist(region, rng), rejected, n, rng)
    return np.concatenate([found, more])


def _spread_out(region: Region, seeds: Array, rejected: Array, n: int, rng: Generator) -> Array:
    """Return about `n` distinct rows around allowed `seeds` ``(s, d)``, in random order.

    Rows on the way to `rejected` ones ``(r, d)``, and those of a walk; only rows with a change.
    """
    if not len(seeds):
        return seeds
    pulled = pull(region, rejected, seeds, rng)
    walked = _walk(region, np.concatenate([seeds, pulled]), n, rng)
    X = _distinct(np.concatenate([seeds, pulled, walked]))
    X = X[_allowed_changes(region, X)]
    return X[rng.permutation(len(X))]


def _insist(region: Region, rng: Generator) -> Array:
    """Return the first allowed rows of many plain draws: the last resort."""
    for k in range(TUNING.insistent_rounds):
        X = draw(region, TUNING.tries, rng) if k % 2 else _draw_sparsely(region, rng)
        X = region.complete(X)
        X = X[region.contains(X)]
        if len(X):
            break
    return X


def _draw_sparsely(region: Region, rng: Generator) -> Array:
    """Return draws with few changes, which some rules demand; rules are not checked."""
    most = TUNING.few_changes if region.max_changes is None else region.max_changes
    return draw(replace(region, max_changes=min(most, TUNING.few_changes)), TUNING.tries, rng)


def no_row_error(region: Region, rng: Generator) -> InfeasibleError:
    """Return the error for a region without allowed rows: it names constraints that conflict."""
    conflict = find_conflict(region, partial(draw_candidates, rng=rng))
    words = () if conflict is None else conflict.words
    if not len(region.free):
        text = (
            "no feature may move for this query: every one is fixed, missing or at its limits. "
            "Free a feature or widen its limits."
        )
        if conflict is not None and conflict.has_rules:
            text += f" {in_words(conflict, TUNING.tries)}"
    else:
        text = "no point satisfies every rule for this query"
        if region.contains(region.query[None, :])[0]:
            text = "no point but the query itself satisfies every rule"
        text += f" (0 of {TUNING.tries} tried). "
        text += _tightest(region, rng) if conflict is None else in_words(conflict, TUNING.tries)
    error = InfeasibleError(text)
    error.constraints = words
    return error


def draw_candidates(region: Region, rng: Generator) -> Array:
    """Return rows ``(n, d)`` of a region that may be allowed, without much insistence."""
    draws = [draw(region, TUNING.tries, rng), _draw_sparsely(region, rng)]
    X = region.complete(np.concatenate(draws))
    X = X[region.contains(X)]
    if len(X):
        return X
    repaired, allowed = repair(region, draw(region, TUNING.walkers, rng))
    seeds = [repaired[allowed], background_rows(region, TUNING.walkers, rng)]
    found = np.concatenate(seeds)
    return found if len(found) else _descend(region, rng)


def _tightest(region: Region, rng: Generator) -> str:
    """Return the tightest rule with its count; for a region of which no conflict is known."""
    X = region.complete(draw(region, TUNING.tries, rng))
    passed = {rule.words.label: int(rule.holds(region, X).sum()) for rule in region.rules}
    if not passed:
        return "Widen the limits."
    tightest, *others = sorted(passed.items(), key=itemgetter(1))[: TUNING.named_rules]
    text = f"Tightest rule: {_counted(tightest, TUNING.tries)}."
    if others:
        text += f" Others: {', '.join(_counted(rule, TUNING.tries) for rule in others)}."
    return text


def _counted(rule: tuple[str, int], n_tried: int) -> str:
    """Return a rule's label with the number of draws that keep it."""
    label, n_kept = rule
    return f"{label!r} ({n_kept} of {n_tried})"


def draw(region: Region, n: int, rng: Generator) -> Array:
    """Return `n` draws within limits, grid, l0 bound and directions; rules are not checked.

    Uniform over the box without an l0 bound; with one, over random supports of random size.
    Derived columns are left as in the query.
    """
    X = np.repeat(region.query[None, :], n, axis=0)
    if not region.moving or not n:
        return X
    is_sparse = region.max_changes is not None
    chosen = _supports(region, n, rng) if is_sparse else None
    for block in region.moving:
        rows = np.arange(n) if chosen is None else np.flatnonzero(chosen[:, block[0]])
        if len(rows):
            _draw_block(region, X, rows, block, rng, moved=is_sparse)
    return X


def _supports(region: Region, n: int, rng: Generator, changes: int | None = None) -> Mask:
    """Return random features ``(n, d)``, whole blocks of them, at most the wanted number."""
    most = min(len(region.free), region.max_changes or len(region.free))
    wanted = rng.integers(1, most + 1, size=n) if changes is None else min(changes, most)
    order = np.argsort(rng.random((n, len(region.moving))), axis=1)
    return fill(region, np.broadcast_to(wanted, (n,)), order)


def _draw_block(
    region: Region, X: Array, rows: Indices, block: list[int], rng: Generator, *, moved: bool
) -> None:
    """Redraw one block of the given rows in place; `moved` leaves the query's values out."""
    axes = region.axes
    if len(block) == 1:
        X[rows, block[0]] = axes[block[0]].draw(len(rows), rng, moved=moved)
        return
    sides = [side for side in (-1, 1) if all(axes[j].room(side) for j in block)]
    options = np.array(sides if moved else [0, *sides])
    side = options[rng.integers(len(options), size=len(rows))]
    for j in block:
        X[rows, j] = region.query[j]
        for s in sides:
            these = rows[side == s]
            X[these, j] = axes[j].draw(len(these), rng, s, moved=True)


def background_rows(region: Region, n: int, rng: Generator, changes: int | None = None) -> Array:
    """Return at most `n` allowed rows with features copied from random data rows.

    With `changes`, only so many random features are copied; without, all free ones.
    """
    if not len(region.data) or not len(region.free) or n < 1:
        return np.empty((0, len(region.query)))
    X = region.data[rng.integers(len(region.data), size=n)]
    if changes is not None:
        X = np.where(_supports(region, n, rng, changes), X, region.query)
    return background(region, X)


def background(region: Region, data: Array | None = None) -> Array:
    """Return allowed rows with the query's fixed features and the free features of data rows.

    Parameters
    ----------
    data : array of shape (n, d), optional
        The rows to copy from; by default all data of the region.
    """
    copied = (region.data if data is None else data)[:, region.free]
    X = np.repeat(region.query[None, :], len(copied), axis=0)
    X[:, region.free] = np.where(np.isnan(copied), region.query[region.free], copied)
    X = trim(region, X)
    return X[_allowed_changes(region, X)]


def _walk(region: Region, seeds: Array, n: int, rng: Generator) -> Array:
    """Return at most `n` allowed rows reached by random steps from allowed `seeds` ``(s, d)``.

    Every step that leads to an allowed row is taken.
    """
    X = seeds[rng.integers(len(seeds), size=TUNING.walkers)]
    found = seeds[:0]
    for _ in range(TUNING.steps * -(-n // TUNING.walkers)):
        Y = _step(region, X, rng)
        allowed = region.contains(Y)
        is_new = allowed & (Y != X).any(axis=1) & region.changes(Y).any(axis=1)
        X = np.where(allowed[:, None], Y, X)
        found = np.concatenate([found, Y[is_new]])
        if len(found) >= TUNING.walked * n:
            break
    rows = _distinct(found)
    return rows[rng.permutation(len(rows))[:n]]


def _descend(region: Region, rng: Generator) -> Array:
    """Return allowed rows found by a walk that never raises the number of broken rules.

    It starts at random draws and at data rows, and ends with the first allowed rows, or none.
    """
    X = draw(region, TUNING.walkers, rng)
    if len(region.data):
        half = TUNING.walkers // 2
        copied = region.data[rng.integers(len(region.data), size=half)][:, region.free]
        X[:half, region.free] = np.where(np.isnan(copied), X[:half, region.free], copied)
    X = trim(region, X)
    score = _broken(region, X)
    for _ in range(TUNING.steps):
        is_allowed: Mask = score == 0
        if is_allowed.any():
            return X[is_allowed]
        Y = _step(region, X, rng)
        new = _broken(region, Y)
        is_better = new <= score
        X = np.where(is_better[:, None], Y, X)
        score = np.where(is_better, new, score)
    return np.empty((0, len(region.query)))


def _broken(region: Region, X: Array) -> Array:
    """Return the number of broken rules, linear ones by degree; 0 if the row is allowed."""
    broken = (~region.within(X)).astype(np.float64)
    for rule in region.rules:
        time_limit.get().check()
        broken += ~rule.holds(region, X)
    if len(region.A):
        size = np.abs(region.A) @ region.scale + np.finfo(float).tiny
        far = violation(np.nan_to_num(X), region.A, region.b) / size
        broken += (broken > 0) * (far / (1 + far)).sum(axis=1)
    return broken


def _step(region: Region, X: Array, rng: Generator) -> Array:
    """Return one move per row: half redraw a block, half shift all features."""
    Y = X.copy()
    is_redrawn = rng.random(len(X)) < TUNING.redrawn
    picked = rng.integers(len(region.moving), size=len(X))
    for at, block in enumerate(region.moving):
        rows = np.flatnonzero((picked == at) & is_redrawn)
        if len(rows):
            _draw_block(region, Y, rows, block, rng, moved=True)
    powers = rng.uniform(TUNING.shortest_shift, TUNING.longest_shift, size=(len(X), 1))
    reach = 10.0**powers
    shift = rng.standard_normal(X.shape) * reach * region.scale * region.sliding
    if region.max_changes is not None:
        shift *= region.changes(X)
    is_shifted = ~is_redrawn[:, None] & region.sliding
    Y = np.where(is_shifted, X + shift, Y)
    if len(region.A):
        Y = np.where(is_shifted, _slide(region, X, Y), Y)
    return region.complete(_swap(region, region.on_grid(Y), X, rng))


def _slide(region: Region, X: Array, Y: Array) -> Array:
    """Return `Y` pulled back along each move to where the linear rules still hold."""
    direction = np.nan_to_num(Y - X)
    speed = direction @ region.A.T
    slack = np.maximum(region.b - np.nan_to_num(X) @ region.A.T, 0.0)
    reach = np.where(speed > 0, slack / np.where(speed > 0, speed, 1.0), np.inf)
    t = np.minimum(1.0, TUNING.inside * reach.min(axis=1))
    # A rule that holds with equality can only be followed by projecting onto it, in repair.
    return np.where(np.isnan(X), X, X + t[:, None] * direction)


def _swap(region: Region, Y: Array, X: Array, rng: Generator) -> Array:
    """Return rows over the l0 bound with randomly chosen older changes taken back."""
    bound = region.max_changes
    if bound is None:
        return Y
    changed = region.changes(Y)
    excess = changed.sum(axis=1) - bound
    if (excess <= 0).all():
        return Y
    # The smallest random keys among old changes go back to the query.
    keys = np.where(changed & (Y == X), rng.random(Y.shape), np.inf)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    goes_back = (rank < excess[:, None]) & np.isfinite(keys)
    return np.where(goes_back, region.query, Y)


def _distinct(X: Array) -> Array:
    """Return the rows without repetitions, in order."""
    _, first = np.unique(np.nan_to_num(X), axis=0, return_index=True)
    return X[np.sort(first)]
