"""Directions and steps that keep linear rules, for many rows at once."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask


class Halfspaces:
    """Linear rules ``A x <= b`` in units of the ranges, for rows `X` that move in own `columns`."""

    def __init__(self, A: Array, b: Array, columns: Indices, span: Array, X: Array) -> None:
        moving = A.T[columns].transpose(0, 2, 1) * span[:, None, :]
        norm = np.sqrt((moving * moving).sum(axis=2))
        norm = np.where(norm > 0, norm, 1.0)
        self.A = moving / norm[:, :, None]  # (m, r, c) over the columns that each row may move
        self.whole = A / norm[:, :, None]  # (m, r, d) over all coordinates, in their own units
        # A hair inside the rules, so that rounding errors never add up to a violation.
        self.b = np.maximum(b / norm - 1e-9, _products(self.whole, X))  # (m, r)

    def slack(self, rows: Indices, X: Array) -> Array:
        """Return the room ``(n, r)`` that each rule leaves to each row."""
        return self.b[rows] - _products(self.whole[rows], X)

    def along(
        self, rows: Indices, X: Array, x: Array, g: Array, H: Array, low: Array, high: Array
    ) -> tuple[Array, Mask]:
        """Return directions along the active rules, in the metric of `H`, and what stays."""
        A = self.A[rows]
        floor, ceiling = x <= low, x >= high
        active = self.slack(rows, X) <= 1e-7
        pull = np.zeros(active.shape)
        outward = low >= high
        # each round drops the rule that pulls inwards most, and holds what would leave its box
        for _ in range(12):  # more changes of the active set are hardly ever needed
            rest = g - np.einsum("mr,mrc->mc", pull, A)
            stuck = outward | (floor & (rest <= 0)) | (ceiling & (rest >= 0))
            move = np.where(stuck[:, :, None] | stuck[:, None, :], 0.0, H)
            AH = (A @ move) * active[:, :, None]
            pull = _multipliers(AH @ A.transpose(0, 2, 1), (AH @ g[:, :, None])[:, :, 0], active)
            p = (move @ g[:, :, None])[:, :, 0] - np.einsum("mr,mrc->mc", pull, AH)
            leaving = ((floor & (p < 0)) | (ceiling & (p > 0))) & ~stuck
            inward = (pull < -1e-12) & (pull == pull.min(axis=1, keepdims=True))
            if not (leaving.any() or inward.any()):
                break
            outward = outward | leaving
            active = active & ~inward
        return np.where(leaving, 0.0, p), stuck

    def shortened(
        self, rows: Indices, X: Array, x: Array, p: Array, span: Array, low: Array, high: Array
    ) -> Array:
        """Cut steps `p` where a rule begins, after clipping to the box where that leaves room."""
        slack = np.maximum(self.slack(rows, X), 0.0)
        A = self.A[rows]
        clipped = (np.minimum(np.maximum(x + p * span, low), high) - x) / span
        share = _share(slack, (A @ clipped[:, :, None])[:, :, 0])
        whole = _share(slack, (A @ p[:, :, None])[:, :, 0])
        room = np.where(p > 0, high - x, low - x) / span
        whole = np.minimum(whole, _share(np.abs(room), np.abs(p)))
        use = (share >= 0.05)[:, None]
        return np.where(use, clipped * share[:, None], p * whole[:, None])


def _products(A: Array, X: Array) -> Array:
    """Return ``A x`` of each row; missing cells, which no rule uses, count as 0."""
    return np.asarray((A @ np.nan_to_num(X)[:, :, None])[:, :, 0])


def _multipliers(gram: Array, rise: Array, active: Mask) -> Array:
    """Solve ``gram z = rise`` over the active rules of each row; 0 elsewhere."""
    r = active.shape[1]
    gram = gram * active[:, None, :]
    size = np.maximum(np.einsum("mrr->m", gram), 1e-300)[:, None, None] / r
    regular = gram / size + np.eye(r) * np.where(active, 1e-10, 1.0)[:, :, None]
    wanted = rise[:, :, None] / size
    pull = np.linalg.solve(regular, wanted)
    pull += np.linalg.solve(regular, wanted - gram / size @ pull)  # undo what the ridge did
    return np.asarray(pull[:, :, 0] * active)


def _share(slack: Array, rise: Array) -> Array:
    """Return the largest share of a step, at most 1, whose `rise` stays within `slack`."""
    rising = rise > 1e-13
    share = np.where(rising, slack / np.where(rising, rise, 1.0), np.inf)
    return np.asarray(np.minimum(1.0, share.min(axis=1, initial=np.inf)))
