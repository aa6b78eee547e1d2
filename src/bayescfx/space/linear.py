"""Projection onto linear rules ``A x <= b``, for many rows at once.

Two plain algorithms on small problems: Dykstra's cyclic projections, which converge to the
nearest point of an intersection of half-spaces and a box, and single-coordinate corrections.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask


def violation(X: Array, A: Array, b: Array) -> Array:
    """Return how far each row is beyond each rule, shape (n, rules); 0 where it holds.

    Examples
    --------
    >>> violation(np.array([[3.0, 0.0]]), np.array([[1.0, 1.0]]), np.array([2.0]))
    array([[1.]])
    """
    return np.maximum(X @ A.T - b, 0.0)


def project_linear(
    X: Array,
    A: Array,
    b: Array,
    box: tuple[Array, Array],
    mobility: Array,
    *,
    rounds: int = 60,
) -> Array:
    """Return the nearest points of ``{A x <= b}`` within the box, coordinate by mobility.

    Distances are measured in units of `mobility`: a coordinate of mobility 0 stays.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    A, b : ndarray of shape (rules, d) and (rules,)
    box : pair of ndarray of shape (d,)
    mobility : ndarray of shape (n, d)
        Scale of each coordinate of each row; 0 where it must not move.

    Returns
    -------
    ndarray of shape (n, d)
        Within 1e-9 of the rules where that is possible; a little inside where they are not tight.
    """
    Z = X.copy()
    squared = mobility**2
    norms = squared @ (A**2).T  # (n, rules): length of each normal in the metric
    reachable = norms > 0
    steps = np.where(reachable, 1.0 / np.where(reachable, norms, 1.0), 0.0)
    size = 1e-12 * (1.0 + np.abs(b) + np.abs(A) @ np.abs(np.nan_to_num(X)).max(axis=0, initial=0.0))
    memory = np.zeros((len(A), *X.shape))
    boxed = np.zeros_like(X)
    moving = mobility > 0
    for _ in range(rounds):
        last = Z
        for r, (a, bound) in enumerate(zip(A, b, strict=True)):
            Y = Z + memory[r]
            over = np.maximum(Y @ a - (bound - size[r]), 0.0) * steps[:, r]
            Z = Y - over[:, None] * (a * squared)
            memory[r] = Y - Z
        Y = Z + boxed
        Z = np.where(moving, np.clip(Y, box[0], box[1]), X)
        boxed = np.where(moving, Y - Z, 0.0)
        # allowed is not yet nearest: go on while the rows still move
        still = (np.abs(Z - last) <= 1e-6 * mobility).all()
        if still and not (violation(Z, A, b) > 0).any():
            break
    return Z


def coordinate_corrections(
    X: Array, A: Array, b: Array, step: Array, moving: Mask
) -> tuple[Array, Indices]:
    """Return variants of rows, each with one coordinate moved to satisfy the row's worst rule.

    On a grid the coordinate moves by whole steps, so that the rule holds with the least slack.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    step : ndarray of shape (d,)
        Grid step; 0 where continuous.
    moving : ndarray of bool, shape (n, d)

    Returns
    -------
    variants : ndarray of shape (m, d)
    origin : ndarray of int, shape (m,)
        The row each variant came from.

    Examples
    --------
    >>> A, b = np.array([[1.0, 2.0]]), np.array([4.0])
    >>> X, moving = np.array([[3.0, 3.0]]), np.ones((1, 2), dtype=bool)
    >>> coordinate_corrections(X, A, b, np.ones(2), moving)[0]
    array([[-2.,  3.],
           [ 3.,  0.]])
    """
    over = X @ A.T - b
    worst = over.argmax(axis=1)
    most = over[np.arange(len(X)), worst]
    a = A[worst]
    origin, at = np.nonzero(moving & (a != 0) & (most > 0)[:, None])
    shift = -most[origin] / a[origin, at]
    on_grid = step[at] > 0
    size = np.where(on_grid, step[at], 1.0)
    whole = np.sign(shift) * np.ceil(np.abs(shift) / size - 1e-9) * size
    variants = X[origin]
    variants[np.arange(len(at)), at] += np.where(on_grid, whole, shift * (1 + 1e-12))
    return variants, origin
