"""The surrogate of a model over codes: coordinates of a region and a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

from bayescfx.arrays import Array
from bayescfx.checks import check_whole
from bayescfx.deadline import NEVER, Deadline
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.posterior import Posterior
from bayescfx.surrogate.process import GaussianProcess


@dataclass(frozen=True)
class FitTuning:
    """Tuned numbers of the fit.

    Evidence: `python -m benchmarks efficiency --only potential` (2026-11-15), where the tabular
    kernel was introduced, and `--only overhead` (2026-11-16) for the intervals between fits.
    """

    #: Prior deviation of the log lengthscales from each other, for the tabular kernel.
    lengthscale_deviation: float = 0.7
    #: Up to this number of rows, hyperparameters are learned with every new row (always: cost of
    #: answers -0.4 %, other seeds 3 %, `python -m benchmarks.tuning --only fit`, 2026-11-18) ...
    max_rows_fitted_each_time: int = 24
    #: ... and beyond it each time the rows have grown by this factor.
    growth_between_fits: float = 1.25


TUNING = FitTuning()


@dataclass(frozen=True)
class SurrogateSettings:
    """Settings of the surrogate.

    Parameters
    ----------
    kernel : {"tabular", "matern52", "rbf"}, default "tabular"
        "tabular" is Matérn 5/2 and steps, as trees have them, in a share that is learned; the
        paper uses the RBF.
    mean : {"standard", "zero"}, default "standard"
        The prior mean: the average output, or zero as in the paper.
    points : int, default 200
        The largest number of rows to fit; of more rows, the most relevant ones are chosen.
    """

    kernel: str = "tabular"
    mean: str = "standard"
    points: int = 200

    def __post_init__(self) -> None:
        GaussianProcess(kernel=self.kernel, mean=self.mean)  # type: ignore[arg-type]  # raises if wrong
        check_whole("points", self.points, 2)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A fitted surrogate of f over codes."""

    coordinates: Coordinates  # map from codes to the inputs of the process
    posterior: Posterior  # conditioned on the evaluations
    n_rows: int  # the number of rows from which its hyperparameters were learned

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and deviation ``(n,)`` at codes ``(n, d)``."""
        return self.posterior.predict(self.coordinates(X))

    def predict_gradient(
        self, X: Array, Z: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """Return mean, deviation ``(n,)`` and their derivatives by each code ``(n, d)``.

        `Z` are the coordinates of the codes, if they have been computed already.
        """
        Z = self.coordinates(X) if Z is None else Z
        mean, std, d_mean, d_std = self.posterior.predict_gradient(Z)
        mean_x, std_x = self.coordinates.pull_back(X, d_mean, d_std)
        return mean, std, mean_x, std_x


def fit_surrogate(
    settings: SurrogateSettings,
    region: Region,
    X: Array,
    y: Array,
    before: Surrogate | None = None,
    deadline: Deadline = NEVER,
) -> Surrogate:
    """Return the surrogate fitted to outputs `y` ``(n,)`` of codes `X` ``(n, d)``.

    The surrogate `before` is a warm start. Its coordinates are kept while they suit the rows, its
    hyperparameters while the rows have hardly grown.
    """
    if before is not None and before.coordinates.suit(X):
        coordinates = before.coordinates
    else:
        coordinates = Coordinates(region, X)
    Z = coordinates(X)
    process = _process(settings, coordinates)
    if before is None or before.coordinates.width != coordinates.width:
        process.fit(Z, y, None, deadline)
        return Surrogate(coordinates, process.posterior, len(X))
    start = before.posterior.prior.h
    is_large = len(X) > TUNING.max_rows_fitted_each_time
    if is_large and len(X) < TUNING.growth_between_fits * before.n_rows:
        process.condition(Z, y, start)
        return Surrogate(coordinates, process.posterior, before.n_rows)
    process.fit(Z, y, start, deadline)
    return Surrogate(coordinates, process.posterior, len(X))


def _process(settings: SurrogateSettings, coordinates: Coordinates) -> GaussianProcess:
    """Return the process, not fitted yet."""
    return GaussianProcess(
        kernel=settings.kernel,
        mean=settings.mean,  # type: ignore[arg-type]  # checked by the constructor
        categorical=coordinates.categorical_columns,
        alike=TUNING.lengthscale_deviation if settings.kernel == "tabular" else None,
    )
