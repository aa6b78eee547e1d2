"""The public Gaussian process: checks its arguments, learns, and predicts in the units of y."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.checks import (
    as_numbers,
    check,
    check_whole,
    is_a,
    is_number,
    is_several,
    shown,
)
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import SettingsError, suggest
from bayescfx.surrogate.evidence import Hyperparameters, LogPosterior, Priors, most_plausible
from bayescfx.surrogate.kernels import KERNELS
from bayescfx.surrogate.posterior import Posterior, Prior, condition, standardised

MeanName: TypeAlias = Literal["standard", "zero"]
#: Hyperparameters of larger data are learned on this number of rows: the cost grows as n³
#: (`python -m benchmarks surrogate`, 2026-11-15).
FIT_ROWS = 500
#: And on fewer if the squared differences, n² d / 2 numbers, would exceed this number (160 MB).
MAX_DIFFERENCES = 2e7


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcess:
    """Exact Gaussian process with one lengthscale per feature and learned hyperparameters.

    Rows should be near the unit cube: the prior of the lengthscales is meant for that scale.

    Parameters
    ----------
    kernel : {"matern52", "rbf", "tabular"}, default "matern52"
        Matérn 5/2 suits smooth models; "tabular" adds steps to it, as trees have them, in a
        share that it learns; the paper uses the RBF.
    categorical : sequence of int, default ()
        Columns with unordered levels: any two different levels are equally far apart.
    mean : {"standard", "zero"}, default "standard"
        Whether outputs are centred on their average, or the prior mean is zero as in the paper.
    noise : float or None, default None
        Noise variance relative to the outputs' variance; None learns it.
    output_scale : float or None, default None
        Prior variance relative to the outputs' variance; None learns it.
    dimensions : int or None, default None
        The d of the lengthscale prior; None means the number of columns that vary.
    alike : float or None, default None
        How much lengthscales differ from each other a priori, as a standard deviation of their
        logarithms; None leaves each to itself.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 8)[:, None]
    >>> gp = GaussianProcess().fit(X, np.sin(6.0 * X[:, 0]))
    >>> mean, std = gp.predict(np.array([[0.4]]))
    >>> bool(abs(mean[0] - np.sin(2.4)) < 2 * std[0])
    True
    """

    kernel: str = "matern52"
    categorical: Sequence[int] = ()
    mean: MeanName = "standard"
    noise: float | None = None
    output_scale: float | None = None
    dimensions: int | None = None
    alike: float | None = None
    _posterior: Posterior | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        kernel: object = self.kernel
        mean: object = self.mean
        if not isinstance(kernel, str) or kernel not in KERNELS:
            must = f"`kernel` must be one of {', '.join(map(repr, KERNELS))}; got {shown(kernel)}."
            raise SettingsError(must + suggest(kernel, KERNELS), parameter="kernel")
        is_mean = isinstance(mean, str) and mean in ("standard", "zero")
        check(is_mean, "mean", "'standard' or 'zero'", mean)
        is_noise = self.noise is None or is_number(self.noise, 0)
        check(is_noise, "noise", "None or a number >= 0", self.noise)
        _check_positive_or_none("output_scale", self.output_scale)
        _check_positive_or_none("alike", self.alike)
        is_dimension = self.dimensions is None or is_number(self.dimensions, 1)
        check(is_dimension, "dimensions", "None or at least 1", self.dimensions)
        if type(self.categorical) is not tuple:
            columns = self.categorical
            check(is_several(columns), "categorical", "numbers of columns", columns)
            self.categorical = tuple(columns)
        for column in self.categorical:
            check_whole("categorical", column, 0)

    def __repr__(self) -> str:
        state = "not fitted" if self._posterior is None else f"{len(self._posterior.X)} rows"
        return f"<GaussianProcess {self.kernel!r}, mean {self.mean!r}: {state}>"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        start: Hyperparameters | None = None,
        deadline: Deadline = NEVER,
    ) -> GaussianProcess:
        """Learn hyperparameters (their posterior mode), condition on the data, and return self.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, near the unit cube.
        y : array-like of shape (n,)
            Outputs, in any units.
        start : Hyperparameters or None
            Warm start from an earlier fit, several times faster than none.
        deadline : Deadline, default NEVER
            Checked at every step; raises :class:`~bayescfx.errors.OutOfTime`.
        """
        posterior = self.log_posterior(X, y, deadline)
        if start is not None:
            _check_columns(start, posterior.features)
        return self.condition(X, y, most_plausible(posterior, start))

    def condition(
        self, X: ArrayLike, y: ArrayLike, hyperparameters: Hyperparameters
    ) -> GaussianProcess:
        """Condition on data as in :meth:`fit`, with given hyperparameters; nothing is learned."""
        rows, outputs = self._data(X, y)
        _check_columns(hyperparameters, rows.shape[1])
        z, units = standardised(outputs, centred=self.mean == "standard")
        prior = Prior.of(hyperparameters, KERNELS[self.kernel], self.categorical)
        self._posterior = condition(prior, units, rows, z)
        return self

    def with_points(self, X: ArrayLike, y: ArrayLike) -> GaussianProcess:
        """Return a new process that is also conditioned on rows ``(m, d)`` and outputs ``(m,)``.

        Hyperparameters, offset and scale stay. The Cholesky factor grows by the new rows, at a cost
        of n² per point.
        """
        rows, outputs = self._data(X, y, columns=self.posterior.X.shape[1])
        twin = copy(self)
        twin._posterior = self.posterior.with_points(rows, outputs)
        return twin

    def log_posterior(self, X: ArrayLike, y: ArrayLike, deadline: Deadline = NEVER) -> LogPosterior:
        """Return the objective of :meth:`fit`: a function of log hyperparameters, with gradient.

        Of many rows, a fixed choice of some hundreds is used.
        """
        rows, outputs = self._data(X, y)
        z, _ = standardised(outputs, centred=self.mean == "standard")
        limit = min(FIT_ROWS, int((2.0 * MAX_DIFFERENCES / max(rows.shape[1], 1)) ** 0.5))
        if len(rows) > limit:
            # A fixed choice: the same data give the same fit.
            chosen = np.random.default_rng(0).permutation(len(rows))[:limit]
            rows = rows[chosen]
            z = z[chosen]
        varied = int(np.any(rows[0] != rows, axis=0).sum())
        return LogPosterior(
            rows,
            z,
            categorical=self.categorical,
            kernel=KERNELS[self.kernel],
            steps=self.kernel == "tabular",
            priors=Priors.for_dimensions(self.dimensions or varied, self.alike),
            noise=self.noise,
            output_scale=self.output_scale,
            deadline=deadline,
        )

    @property
    def posterior(self) -> Posterior:
        """The process conditioned on the data; its methods do not check their arguments."""
        if self._posterior is None:
            raise SettingsError("this GaussianProcess must be fitted first. Call `fit(X, y)`.")
        return self._posterior

    @property
    def rows(self) -> Array:
        """The rows ``(n, d)`` it is conditioned on."""
        return self.posterior.X

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The hyperparameters in use; pass them to :meth:`fit` as `start`."""
        return self.posterior.prior.h

    @property
    def log_marginal_likelihood(self) -> float:
        """The log evidence of the outputs, as densities in the units of y."""
        return self.posterior.log_evidence

    def predict(self, X: ArrayLike, *, noise: bool = False) -> tuple[Array, Array]:
        """Return posterior mean and standard deviation at each row.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows.
        noise : bool, default False
            Whether the deviation is that of a new output, noise included.

        Returns
        -------
        mean, std : ndarray of shape (m,)
            In the units of y.
        """
        check(isinstance(noise, bool), "noise", "True or False", noise)
        return self.posterior.predict(self._rows(X), noise=noise)

    def predict_gradient(
        self, X: ArrayLike, *, noise: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Return mean, standard deviation, and their gradients with respect to the rows.

        Returns
        -------
        mean, std : ndarray of shape (m,)
            As from :meth:`predict`.
        dmean, dstd : ndarray of shape (m, d)
            Their gradients; 0 in categorical columns.
        """
        check(isinstance(noise, bool), "noise", "True or False", noise)
        return self.posterior.predict_gradient(self._rows(X), noise=noise)

    def sample(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Return `n` joint samples ``(n, m)`` at rows ``(m, d)`` without noise."""
        check_whole("n", n, 0)
        check(is_a(rng, np.random.Generator), "rng", "a numpy Generator", rng)
        return self.posterior.sample(self._rows(X), n, rng)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return each output minus its prediction from all others, and that prediction's std.

        Both are ``(n,)``. Hyperparameters, offset and scale stay; the noise is included.
        """
        return self.posterior.leave_one_out()

    def _rows(self, X: ArrayLike) -> Array:
        """Return rows to predict as an array ``(m, d)``."""
        return _rows(X, self.posterior.X.shape[1])

    def _data(self, X: ArrayLike, y: ArrayLike, columns: int | None = None) -> tuple[Array, Array]:
        """Return rows and outputs as checked copies."""
        rows = _rows(X, columns).copy()
        outputs = as_numbers("y", y).copy()
        d = rows.shape[1]
        if not len(rows):
            raise SettingsError("`X` must have at least one row; got none.")
        if outputs.shape != (len(rows),):
            raise SettingsError(
                f"`y` must have shape ({len(rows)},), one output per row of `X`; "
                f"got {outputs.shape}."
            )
        if not np.isfinite(outputs).all():
            row = int(np.flatnonzero(~np.isfinite(outputs))[0])
            raise SettingsError(f"`y` must be finite; got {outputs[row]} in row {row}.")
        if self.categorical and not 0 <= min(self.categorical) <= max(self.categorical) < d:
            raise SettingsError(
                f"`categorical` must hold columns of `X`, 0 to {d - 1}; got {self.categorical}."
            )
        return rows, outputs


def _check_positive_or_none(name: str, value: float | None) -> None:
    """Raise unless a setting is None or a positive number."""
    is_good = value is None or (is_number(value) and value > 0)
    check(is_good, name, "None or a number > 0", value)


def _check_columns(h: Hyperparameters, columns: int) -> None:
    """Raise unless there is one lengthscale per column."""
    if h.lengthscales.shape != (columns,):
        raise SettingsError(
            f"hyperparameters must have {columns} lengthscales, one per column of `X`; "
            f"got {len(h.lengthscales)}."
        )


def _rows(X: ArrayLike, columns: int | None) -> Array:
    """Return `X` as an array of finite rows."""
    rows = as_numbers("X", X)
    if rows.ndim != 2:
        raise SettingsError(f"`X` must have shape (n, d); got {rows.shape}.")
    if columns is not None and rows.shape[1] != columns:
        raise SettingsError(
            f"`X` must have {columns} columns, as the data fitted; got {rows.shape[1]}."
        )
    # nan fails the comparison too; the limit keeps squared distances finite.
    if rows.size and not np.abs(rows).max() < 1e100:
        raise SettingsError("`X` must be finite, and near the unit cube; got nan, inf or >= 1e100.")
    return rows
