"""Covariances of the surrogate, as functions of scaled distances.

Notation
--------
=========  ==========  ==================================================================
``s``      (m, n)      squared distance, every feature divided by its lengthscale
``k(s)``   (m, n)      correlation: 1 at ``s = 0``, falling to 0
``k'(s)``  (m, n)      derivative of the correlation with respect to ``s``
``t``      (m, n)      city-block distance, every feature divided by its lengthscale · √d
=========  ==========  ==================================================================

The *tabular* kernel ``(1 - r) k(s) + r exp(-t)`` adds a process that jumps along the axes to a
smooth one: exp(-t), the Laplace kernel, is the limit of random axis-parallel partitions (Balog et
al. 2016, "The Mondrian kernel"), so it knows how trees look. The share r is learned.

An unordered feature contributes ``[a != b] / lengthscale**2`` to ``s`` (the exponentiated Hamming
kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices

Kernel: TypeAlias = Callable[[Array], tuple[Array, Array]]
Metric: TypeAlias = Literal["sqeuclidean", "cityblock"]


def rbf(s: Array) -> tuple[Array, Array]:
    """Return k = exp(-s/2) and its derivative with respect to s."""
    value = np.exp(-0.5 * s)
    return value, -0.5 * value


def matern52(s: Array) -> tuple[Array, Array]:
    """Return k = (1 + t + t²/3) exp(-t) with t = sqrt(5 s), and dk/ds = -(5/6)(1 + t) exp(-t)."""
    t = 5.0 * s
    np.sqrt(t, out=t)
    e = np.exp(-t)
    t += 1.0
    t *= e
    value = (5.0 / 3.0) * s
    value *= e
    value += t
    t *= -5.0 / 6.0
    return value, t


# The smooth part of each kernel; the tabular one has a part with steps besides. A new kernel is a
# function like those above and a line here.
KERNELS: dict[str, Kernel] = {"matern52": matern52, "rbf": rbf, "tabular": matern52}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """How rows differ: which of their columns are compared as numbers, which for equality."""

    numeric: Indices | slice  # positions of the ordered features
    unordered: Sequence[int]  # positions of the unordered features

    @classmethod
    def of(cls, width: int, categorical: Sequence[int]) -> Columns:
        """Return the columns of rows of a width."""
        numeric = np.setdiff1d(np.arange(width), categorical) if categorical else slice(None)
        return cls(numeric, categorical)

    def apart(self, A: Array, B: Array, lengthscales: Array, metric: Metric) -> Array:
        """Return distances ``(m, n)`` of rows ``A (m, d)`` and ``B``, over the lengthscales."""
        at = self.numeric
        found: Array = scipy.spatial.distance.cdist(A[:, at], B[:, at], metric)
        for j in self.unordered:
            found += (A[:, j, None] != B[:, j]) / lengthscales[j] ** (1 + (metric == "sqeuclidean"))
        return found
