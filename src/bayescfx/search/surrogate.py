"""What the search believes about the model: the surrogate, seen through a region's coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bayescfx.arrays import Array
from bayescfx.checks import check_whole
from bayescfx.deadline import NEVER, Deadline
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.process import GaussianProcess

TRENDS = 8  # rows below which only trends are learnt, no steps


@dataclass(frozen=True)
class SurrogateSettings:
    """How the surrogate is made.

    Parameters
    ----------
    kernel : {"tabular", "matern52", "rbf"}, default "tabular"
        "tabular" is Matérn 5/2 while rows are few, and then learns steps too, as trees have them;
        the paper uses the RBF.
    mean : {"standard", "zero"}, default "standard"
        The paper uses a zero mean.
    points : int, default 200
        The most rows it is fitted to: of more, those that matter to the question.
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

    coordinates: Coordinates  # from codes to surrogate inputs
    process: GaussianProcess  # fitted to what is known
    rows: int  # how many rows its hyperparameters were learnt from

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and deviation ``(n,)`` at codes ``(n, d)``."""
        return self.process.predict(self.coordinates(X))

    def predict_gradient(
        self, X: Array, Z: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """Return mean, deviation ``(n,)`` and their derivatives by each code ``(n, d)``."""
        Z = self.coordinates(X) if Z is None else Z
        mean, std, d_mean, d_std = self.process.predict_gradient(Z)
        mean_x, std_x = self.coordinates.pull_back(X, d_mean, d_std)
        return mean, std, mean_x, std_x


def surrogate_of(
    question: Question,
    settings: SurrogateSettings | None = None,
    before: Surrogate | None = None,
    values: Callable[[Array], Array] | None = None,
    *,
    everywhere: bool = False,
) -> Surrogate:
    """Return the surrogate of f, or of `values` of its outputs ``(n,)``, after all that matters."""
    settings = settings or SurrogateSettings()
    X, y = question.lessons(settings.points, everywhere=everywhere)
    outputs = (values or question.to_surrogate)(y)
    return learn(settings, question.region, X, outputs, before, question.deadline)


def learn(
    settings: SurrogateSettings,
    region: Region,
    X: Array,
    y: Array,
    before: Surrogate | None = None,
    deadline: Deadline = NEVER,
) -> Surrogate:
    """Return the surrogate after seeing outputs `y` ``(n,)`` of codes `X` ``(n, d)``."""
    suits = before is not None and before.coordinates.suit(X)
    coordinates = before.coordinates if before and suits else Coordinates(region, X)
    Z = coordinates(X)
    kernel = "matern52" if settings.kernel == "tabular" and len(X) < TRENDS else settings.kernel
    process = GaussianProcess(
        kernel=kernel,
        mean=settings.mean,  # type: ignore[arg-type]  # checked by the constructor
        categorical=coordinates.categorical_columns,
        # how much lengthscales differ, in logarithms, where steps are learnt
        alike=0.7 if kernel == "tabular" else None,
    )
    start = None
    if before and (before.coordinates.width, before.process.kernel) == (coordinates.width, kernel):
        start = before.process.hyperparameters
        # Learnt anew with every row up to 24, then each time they have grown by a quarter.
        if 24 < len(X) < 1.25 * before.rows:
            return Surrogate(coordinates, process.condition(Z, y, start), before.rows)
    return Surrogate(coordinates, process.fit(Z, y, start, deadline), len(X))
