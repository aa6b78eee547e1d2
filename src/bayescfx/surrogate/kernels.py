"""Covariances of the surrogate, as functions of scaled distances.

Notation
--------
=========  ==========  ==================================================================
``s``      (m, n)      squared distance, every feature divided by its lengthscale
``k(s)``   (m, n)      correlation: 1 at ``s = 0``, falling to 0
``k'(s)``  (m, n)      derivative of the correlation with respect to ``s``
``t``      (m, n)      city-block distance, every feature divided by its lengthscale · √d
``Z``      (n, D)      embedded rows: numeric features centred, unordered ones one-hot
=========  ==========  ==================================================================

The *tabular* kernel ``(1 - r) k(s) + r exp(-t)`` adds a process that jumps along the axes to a
smooth one: exp(-t), the Laplace kernel, is the limit of random axis-parallel partitions (Balog et
al. 2016, "The Mondrian kernel"), so it knows how trees look. The share r is learned.

An unordered feature contributes ``[a != b] / lengthscale**2`` to ``s`` (the exponentiated Hamming
kernel). That is the squared distance of one-hot blocks divided by sqrt(2), so numeric and
unordered features share one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices

Kernel: TypeAlias = Callable[[Array], tuple[Array, Array]]


def rbf(s: Array) -> tuple[Array, Array]:
    """Return k = exp(-s/2) and its derivative with respect to s."""
    value = np.exp(-0.5 * s)
    return value, -0.5 * value


def matern52(s: Array) -> tuple[Array, Array]:
    """Return k = (1 + t + t²/3) exp(-t) with t = sqrt(5 s), and dk/ds = -(5/6)(1 + t) exp(-t)."""
    t = np.sqrt(5.0 * s)
    e = np.exp(-t)
    slope = (1.0 + t) * e
    value = slope + (5.0 / 3.0) * s * e
    slope *= -5.0 / 6.0
    return value, slope


# The smooth part of each kernel; the tabular one has a part with steps besides. A new kernel is a
# function like those above and a line here.
KERNELS: dict[str, Kernel] = {"matern52": matern52, "rbf": rbf, "tabular": matern52}


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """Rows as points whose scaled Euclidean distance is the distance of the kernel."""

    numeric: Indices  # positions of the ordered features (p,)
    unordered: Indices  # positions of the unordered features (q,)
    centre: Array  # subtracted from the ordered ones, so that squared norms do not cancel (p,)
    levels: tuple[Array, ...]  # of each unordered feature; others are at distance 1 from all
    feature: Indices  # that each embedded column belongs to (D,)

    @classmethod
    def of(cls, X: Array, categorical: Sequence[int]) -> Embedding:
        """Return the embedding that knows the centre and the levels of the rows `X`."""
        unordered = np.array(sorted(categorical), dtype=np.intp)
        numeric = np.setdiff1d(np.arange(X.shape[1], dtype=np.intp), unordered)
        levels = tuple(map(np.unique, X.T[unordered]))
        sizes = np.array(list(map(len, levels)), dtype=np.intp)
        feature = np.concatenate([numeric, np.repeat(unordered, sizes)])
        low, high = X[:, numeric].min(axis=0), X[:, numeric].max(axis=0)
        return cls(numeric, unordered, 0.5 * low + 0.5 * high, levels, feature)

    def scaled(self, X: Array, lengthscales: Array) -> tuple[Array, Array]:
        """Return embedded rows over lengthscales, of shape (n, D), and their squared norms."""
        if len(self.unordered):
            blocks = [X[:, self.numeric] - self.centre]
            for j, levels in zip(self.unordered, self.levels, strict=True):
                blocks.append((X[:, j, None] == levels) * np.sqrt(0.5))
            A = np.concatenate(blocks, axis=1)
        else:
            A = X - self.centre
        A /= lengthscales[self.feature]
        p = len(self.numeric)
        norms: Array = np.einsum("ij,ij->i", A[:, :p], A[:, :p])
        if len(self.unordered):  # also for a level without a column: it is as far as any other
            norms += 0.5 * float(np.sum(lengthscales[self.unordered] ** -2.0))
        return A, norms

    def steps(self, X: Array, Y: Array, lengthscales: Array) -> Array:
        """Return exp(-t) ``(m, n)`` for the city-block distances of rows ``X (m, d)`` and ``Y``."""
        scale = lengthscales * np.sqrt(X.shape[1])
        A, B = X / scale, Y / scale
        t, gap = np.zeros((len(X), len(Y))), np.empty((len(X), len(Y)))
        for j in self.numeric:
            np.subtract(A[:, j, None], B[:, j], out=gap)
            t += np.abs(gap, out=gap)
        for j in self.unordered:
            t += (X[:, j, None] != Y[:, j]) / scale[j]
        np.negative(t, out=t)
        return np.exp(t, out=t)

    def knows(self, X: Array) -> bool:
        """Return whether every unordered level of the rows has a column."""
        pairs = zip(self.unordered, self.levels, strict=True)
        return all(bool(np.isin(X[:, j], levels).all()) for j, levels in pairs)


def squared_distances(A: Array, a: Array, B: Array, b: Array) -> Array:
    """Return |A_i - B_j|² from rows and their squared norms, as [-2A, |A|², 1] · [B, 1, |B|²]."""
    D = A.shape[1]
    left, right = np.empty((len(A), D + 2)), np.empty((len(B), D + 2))
    np.multiply(A, -2.0, out=left[:, :D])
    left[:, D], left[:, D + 1] = a, 1.0
    right[:, :D], right[:, D], right[:, D + 1] = B, 1.0, b
    s: Array = left @ right.T
    np.maximum(s, 0.0, out=s)
    return s
