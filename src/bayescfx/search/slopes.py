"""The model's output and its gradient inside a region: as given, or by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, is_single
from bayescfx.errors import ModelError
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.space.slice import Slice


def difference_quotients(
    function: Callable[[Array], Array], region: Region, x: Array, moves: Array
) -> tuple[float, Array]:
    """Return a function at an allowed row ``(d,)``, and the rise over whole moves ``(k, d)``.

    Each is tried forwards and backwards, then ever shorter to a thousandth of it; the slope is nan
    where none is allowed, or the function is nan. All rows are asked for at once.
    """
    rows, share = np.repeat(x[None, :], len(moves), axis=0), np.full(len(moves), np.nan)
    largest = np.abs(moves).argmax(axis=1)
    for factor in (1.0, -1.0, 0.1, -0.1, 1e-2, -1e-2, 1e-3, -1e-3):
        left = np.flatnonzero(np.isnan(share))
        if not len(left):
            break
        rows[left] = region.snap(x + factor * moves[left])
        j = largest[left]
        by = (rows[left, j] - x[j]) / moves[left, j]
        good = by != 0.0
        good[good] = region.contains(rows[left[good]])
        share[left[good]] = by[good]
    known = ~np.isnan(share)
    values = function(np.vstack([x, rows[known]]))
    rise = values[1:] - values[0]
    if is_single(values):  # a rise within rounding, none included, tells nothing
        rise[np.abs(rise) < 16.0 * np.finfo(np.float32).eps * abs(values[0])] = np.nan
    share[known] = rise / share[known]
    return float(values[0]), share


def _slope(steps: Array, rises: Array, along: Array) -> Array:
    """Return the gradient ``(k,)`` in directions ``(m, k)``, nan where steps don't tell it."""
    known = ~np.isnan(rises)
    length = np.linalg.norm(steps[known], axis=1)
    units = steps[known] / length[:, None]
    _, sizes, basis = np.linalg.svd(units, full_matrices=False)
    basis = basis[sizes > 1e-3]
    slope = np.linalg.lstsq(units @ basis.T, rises[known] / length)[0] @ basis
    told = np.abs(basis.T @ basis - along.T @ along).max(axis=0) < 1e-6
    return np.where(told, slope, np.nan)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The model as a differentiable function of a slice's coordinates."""

    question: Question  # whose account pays for outputs
    part: Slice
    gradient: Callable[[Any], Any] | None  # rows to derivatives by their columns
    difference: float  # without `gradient`: width of differences, as a share of a feature's range

    def at(self, x: Array) -> tuple[float, Array] | None:
        """Return f and ∇f ``(k,)`` at a row of codes ``(d,)``; None if the model fails there.

        By finite differences it is the gradient inside what linear equations allow, and nan where
        some direction can't be tried.
        """
        part, evaluate = self.part, self.question.account.evaluate
        if self.gradient is not None:
            output = float(evaluate(x[None, :])[0])
            return None if np.isnan(output) else (output, self._stated(x[None, :])[0])
        region, along = part.region, part.polytope.directions
        width = self.difference * ((region.high - region.low)[part.features] / part.scale)
        steps = np.linalg.norm(along * width, axis=1)[:, None] * along
        output, rises = difference_quotients(evaluate, region, x, part.moves(steps))
        if np.isnan(output):
            return None
        for _ in range(3):  # steps that rounding hides are made longer
            if (blocked := np.isnan(rises)).any():
                wider = np.where(blocked[:, None], 10.0, 1.0) * steps
                again = difference_quotients(evaluate, region, x, part.moves(wider[blocked]))[1]
                steps, rises[blocked] = wider, again
        if (blocked := np.isnan(rises)).any():  # as at a vertex: slide along what stops it
            z, aims = part.coordinates(x), np.vstack([steps[blocked], -steps[blocked]])
            slides = np.array([part.project(z + step) - z for step in aims])
            slides = slides[np.linalg.norm(slides, axis=1) > 1e-3 * np.linalg.norm(aims, axis=1)]
            more = difference_quotients(evaluate, region, x, part.moves(slides))[1]
            steps, rises = np.vstack([steps, slides]), np.append(rises, more)
        return output, _slope(steps, rises, along)

    def outputs(self, Z: Array) -> Array:
        """Return f ``(n,)`` at coordinates ``(n, k)``."""
        return self.question.account.evaluate(self.part.codes(Z))

    def gradients(self, Z: Array) -> Array:
        """Return ∇f ``(n, k)`` at coordinates ``(n, k)``; nan where it is not known."""
        rows = self.part.codes(Z)
        if self.gradient is not None:
            return self._stated(rows)
        found = [self.at(x) for x in rows]
        return np.array([np.full(Z.shape[1], np.nan) if one is None else one[1] for one in found])

    def _stated(self, X: Array) -> Array:
        """Return the given gradient at rows of codes, by coordinates, shape (n, k), or explain."""
        assert self.gradient is not None  # the callers have looked
        region, at = self.part.region, self.part.features
        follow = np.flatnonzero(region.recomputed)  # they move with the others: the chain rule
        names = [region.names[j] for j in (*at, *follow)]
        every, kinds = [c.name for c in region.schema.columns], region.schema.features
        numeric = [c for c in every if c in kinds and kinds[c].numeric]
        if odd := [name for name in names[len(at) :] if name not in numeric]:
            raise ModelError(
                f"`gradient` needs derived columns that are numbers, for the chain rule; "
                f"{odd[0]!r} is none. Leave it out to use finite differences."
            )
        found = self.gradient(region.rows(X))
        if isinstance(found, pd.DataFrame):
            slope = found.reindex(columns=names).to_numpy(dtype=float)
        else:
            slope = np.asarray(found, dtype=float)
            given = [c for c in (every, numeric) if slope.shape == (len(X), len(c))]
            if not given:
                raise ModelError(
                    f"`gradient` must return shape ({len(X)}, {len(every)}), one derivative per "
                    f"column of the rows; got {slope.shape}."
                )
            slope = slope[:, [given[0].index(name) for name in names]]
        if not np.isfinite(slope).all():
            i, j = np.argwhere(~np.isfinite(slope))[0]
            raise ModelError(
                f"`gradient` must return finite numbers; got {slope[i, j]} for "
                f"{names[j]!r}. Leave it out to use finite differences."
            )
        own, others = slope[:, : len(at)], slope[:, len(at) :]
        if len(follow):
            own = own + (self._following(X, follow) * others[:, None]).sum(axis=-1)
        return own * self.part.scale

    def _following(self, X: Array, follow: Indices) -> Array:
        """Return by how much derived features ``(m,)`` move with the others, shape (n, k, m)."""
        region, at = self.part.region, self.part.features
        moves = np.eye(X.shape[1])[at] * (1e-4 * self.part.scale[:, None])
        ahead, back = (
            region.snap((X[:, None] + side * moves).reshape(-1, X.shape[1])).reshape(
                len(X), len(at), -1
            )
            for side in (1.0, -1.0)
        )
        moved = ahead - back
        return np.asarray(moved[:, :, follow] / moved[:, np.arange(len(at)), at, None])
