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
al. 2016, "The Mondrian kernel"), so it suits trees. The share r is learned.

An unordered feature contributes ``[a != b] / lengthscale**2`` to ``s`` (the exponentiated Hamming
kernel).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array

#: From squared distances to correlations and their derivatives.
Kernel: TypeAlias = Callable[[Array], tuple[Array, Array]]


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


# The smooth part of each kernel; the tabular one also has a part with steps. A new kernel is a
# function like those above and a line here.
KERNELS: dict[str, Kernel] = {"matern52": matern52, "rbf": rbf, "tabular": matern52}
