"""New ideas, each written in one place: what `docs/architecture.md` promises, done.

Every section is what one new file would hold, and the one line that makes it known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import bayescfx as cfx
from bayescfx.acquisition import LogEI
from bayescfx.arrays import Array, Mask
from bayescfx.data import Feature
from bayescfx.data.tables import Cells, Dtype
from bayescfx.errors import SpaceError
from bayescfx.models import as_model
from bayescfx.models.readers import TreeEnsemble, read_model
from bayescfx.models.readers.registry import READERS
from bayescfx.models.readers.sources import Task, matrix
from bayescfx.models.readers.tree_parts import Tree, TreeSums
from bayescfx.potentials import Linked, Logit
from bayescfx.search.methods import METHODS
from bayescfx.search.question import Question, Rounds
from bayescfx.search.start import fresh_rows
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.rule import Rule, Words
from bayescfx.space.sampling import sample
from bayescfx.surrogate.kernels import KERNELS
from tests.conftest import Recorder

# ── a rule and its verb: space/rules/one_group.py ──


@dataclass(frozen=True)
class OneGroup(Rule):
    """Changes stay within one of several groups of features."""

    groups: tuple[tuple[Hashable, ...], ...]

    @property
    def words(self) -> Words:
        """The rule in words."""
        shown = " or ".join(" + ".join(map(str, group)) for group in self.groups)
        return Words(f"one_group({shown})", f"changes only {shown}", f"changing only {shown}")

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows change features of at most one group."""
        at = [[region.schema.positions[name] for name in group] for group in self.groups]
        changed = region.changes(X)
        return np.asarray(sum(changed[:, group].any(axis=1) for group in at) <= 1)


def one_group(space: cfx.Space, *groups: Iterable[Hashable]) -> cfx.Space:
    """Return the space in which changes stay within one of the groups."""
    return space.with_rules(OneGroup(tuple(tuple(map(space.name, group)) for group in groups)))


# ── its one line: `one_group = groups.one_group` in the body of `Space` ──


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cfx.Space, "one_group", one_group, raising=False)


def both(rows: Any) -> Any:
    return rows["pay"] + rows["hours"] + 2 * rows["age"]


@pytest.mark.usefixtures("verb")
def test_a_new_verb_is_one_rule_and_one_line() -> None:
    features: dict[Any, Feature] = {
        name: cfx.Real(0, 10) for name in ("pay", "hours", "age", "height")
    }
    plain: Any = cfx.Space(features)
    space = plain.max_changes(2).one_group(["pay", "hours"], ["age", "height"])
    query = dict.fromkeys(features, 1.0)

    # it is kept by every row that is drawn, and by the answer
    region = space.around(query)
    X = sample(region, 200, np.random.default_rng(0))
    assert len(X) == 200
    apart = region.changes(X)[:, :2].any(axis=1) & region.changes(X)[:, 2:].any(axis=1)
    assert not apart.any()
    answer = cfx.explain(both, query, space, cfx.reach(15), budget=60, rng=0)
    assert answer.reached
    assert set(answer.best.changes) <= {"pay", "hours"} or set(answer.best.changes) <= {"age"}
    assert answer.verify(both)

    # it binds: no group alone reaches 35, and the answer says so
    assert cfx.explain(both, query, plain.max_changes(3), cfx.reach(35), budget=60, rng=0).reached
    far = cfx.explain(both, query, space, cfx.reach(35), budget=60, rng=0)
    assert not far.reached

    # it is described, and it goes through a file
    assert "changes only pay + hours or age + height" in str(space)
    again = cfx.Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert str(again) == str(space)
    np.testing.assert_array_equal(again.around(query).contains(X), np.ones(200, dtype=bool))


@pytest.mark.usefixtures("verb")
def test_a_new_rule_is_named_where_nothing_can_satisfy_it() -> None:
    space: Any = cfx.Space({"a": cfx.Real(0, 1), "b": cfx.Real(0, 1)}).together("a", "b")
    region = space.one_group(["a"], ["b"]).around([0.5, 0.5])
    with pytest.raises(
        cfx.InfeasibleError,
        match=r"conflict.*: moving 'a' and 'b' together and changing only a or b\.",
    ):
        sample(region, 5, np.random.default_rng(0))


@dataclass(frozen=True)
class Total(Rule):
    """A column that is the sum of all others, at most so much."""

    derives: Hashable
    most: float = field(default=np.inf, repr=False)
    label = "total"

    def recompute(self, region: Region, X: Array, rows: Any) -> None:
        """Add the others up."""
        at = region.schema.positions[self.derives]
        X[:, at] = np.delete(X, at, axis=1).sum(axis=1)
        region.schema.write(rows, at, X[:, at], region.own)

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows have the right sum, and not too large a sum."""
        total = X[:, region.schema.positions[self.derives]]
        return np.asarray((region.complete(X) == X).all(axis=1) & (total <= self.most))


def test_a_new_rule_may_derive_a_column_and_hide_its_sources() -> None:
    plain = cfx.Space({name: cfx.Real(0, 10) for name in "abt"})
    space = plain.with_rules(Total("t", 6.0))
    for mine in (space, cfx.Space.from_dict(json.loads(json.dumps(space.to_dict())))):
        region = mine.around({"a": 1.0, "b": 1.0, "t": 2.0})
        X = region.snap(np.array([[2.0, 3.0, 2.0], [5.0, 3.0, 2.0]]))
        assert X[:, 2].tolist() == [5.0, 8.0]
        assert region.contains(X).tolist() == [True, False]


# ── a kind of feature: data/logarithms.py ──


@dataclass(frozen=True)
class Magnitude(Feature):
    """A positive number whose changes are measured in factors: its code is the logarithm."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise SpaceError(f"`0 < low <= high` must hold for Magnitude; got {self.low!r}.")

    @property
    def code_range(self) -> tuple[float, float]:
        """Logarithms of the limits."""
        return math.log10(self.low), math.log10(self.high)

    @property
    def code_step(self) -> float:
        """Continuous."""
        return 0.0

    def encode(self, cells: Cells) -> Array:
        """Return the logarithms."""
        return np.log10(np.asarray(cells, dtype=np.float64))

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        """Return the numbers."""
        return np.power(10.0, codes)

    def covering(self, values: pd.Series[Any]) -> Magnitude:
        """Grow the limits."""
        return replace(self, low=min(self.low, values.min()), high=max(self.high, values.max()))

    @property
    def dtype(self) -> Dtype:
        """Floats."""
        return np.dtype(np.float64)

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Magnitude:
        """Return the range of a column."""
        return cls(float(cells.min()), float(cells.max()))

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
        """Return the logarithm of a limit."""
        return math.log10(super().code(value, name, verb))

    def numbers(self, codes: Array) -> Array:
        """Return the numbers, for text rules."""
        return np.power(10.0, codes)

    @property
    def line(self) -> None:
        """Not on a line over the codes."""
        return

    @property
    def words(self) -> str:
        """Range."""
        return f"{self.low:g} … {self.high:g}"

    def display(self, *codes: float) -> list[str]:
        """Return the numbers."""
        return [f"{10.0**code:g}" for code in codes]


# ── its one line: an import in data/__init__.py ──


def dose_response(rows: Any) -> Any:
    return 10 * np.log10(rows["dose"]) + rows["age"] / 10


PATIENTS = pd.DataFrame(
    {
        "dose": 10.0 ** np.random.default_rng(0).uniform(-3, 3, 80),
        "age": np.random.default_rng(1).integers(20, 80, 80),
    }
)


def test_a_new_kind_is_one_class() -> None:
    by_hand = cfx.Space({"dose": Magnitude(1e-3, 1e3), "age": cfx.Integer(20, 80)})
    inferred = cfx.Space.from_data(PATIENTS, kinds={"dose": "magnitude"})
    given = cfx.Space.from_data(PATIENTS, kinds={"dose": Magnitude(1e-3, 1e3)})
    assert inferred.features["dose"] == Magnitude(PATIENTS.dose.min(), PATIENTS.dose.max())
    query = {"dose": 1.0, "age": 40}
    for space in (by_hand, inferred, given):
        # limits, rules and rows are in the user's units
        limited = space.between({"dose": (0.01, 100)}).require("dose * age <= 3000").only_up("dose")
        region = limited.around(query)
        rows = region.rows(sample(region, 100, np.random.default_rng(0)))
        assert isinstance(rows, pd.DataFrame)
        assert rows["dose"].between(1, 100.0001).all()
        assert (rows["dose"] * rows["age"] <= 3000.001).all()
        assert rows["dose"].median() < 20  # even over factors, not over numbers

        answer = cfx.explain(dose_response, query, limited, cfx.increase(by=10), budget=40, rng=0)
        assert answer.reached
        assert answer.best.row["dose"] > 5

        # it is described, and it goes through a file
        assert "magnitude" in str(limited)
        assert "only up, between 0.01 and 100" in str(limited)
        again = cfx.Space.from_dict(json.loads(json.dumps(limited.to_dict())))
        assert str(again) == str(limited)
        assert again.features == limited.features
    with pytest.warns(cfx.SpaceWarning, match=r"'dose' by the range 0.001 … 5000.0"):
        by_hand.around({"dose": 5000.0, "age": 40})


# ── a search: search/shrinking.py ──


@dataclass(frozen=True)
class Shrinking:
    """Look around the best row so far, nearer and nearer."""

    batch: int = 4
    shrink: float = 0.8

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        region, radius, others = question.region, 1.0, fresh_rows(question)
        while not (question.reached and question.weight == 0.0):
            centre = question.X[question.best] if len(question.y) else region.query
            drawn = sample(region, self.batch, question.rng)
            rows = project(region, centre + radius * (drawn - centre))
            rows = rows[~question.known.holds(rows)]
            if not len(rows):  # nothing new here
                rows = np.array(list(islice(others, self.batch)))
            if not len(rows):
                return "exhausted"
            yield rows
            radius *= self.shrink
        return "converged"


# ── its one line: in the table `METHODS` of search/methods.py ──


@pytest.fixture
def method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "shrinking", f"{__name__}:Shrinking")


def bowl(rows: Any) -> Any:
    return 3 * rows["a"] + rows["b"] ** 2 - rows["c"]


ABC = cfx.Space({name: cfx.Real(0, 1) for name in "abc"}).require("a + c <= 1.5")
HALF = dict.fromkeys("abc", 0.5)


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize("how", ["shrinking", Shrinking(batch=3, shrink=0.7)])
def test_a_new_search_is_one_class_with_rounds(how: Any) -> None:
    for budget in (1, 2, 7, 30):
        recorder = Recorder(bowl)
        answer = cfx.explain(
            recorder, HALF, ABC, cfx.increase(by=9), method=how, budget=budget, rng=0
        )
        assert recorder.n == answer.n_evaluations == budget  # 9 is out of reach: all is spent
        assert (recorder.rows["a"] + recorder.rows["c"] <= 1.5 + 1e-9).all()
    easy = [
        cfx.explain(bowl, HALF, ABC, cfx.increase(by=0.5), method=how, budget=60, rng=seed)
        for seed in (3, 3, 4)
    ]
    assert easy[0].reached
    pd.testing.assert_frame_equal(easy[0].to_frame(), easy[1].to_frame(), check_exact=True)
    assert str(easy[0]) != str(easy[2])
    assert easy[0].method == ("shrinking" if how == "shrinking" else "Shrinking")


@pytest.mark.usefixtures("method")
def test_a_new_search_takes_turns_with_itself() -> None:
    queries = pd.DataFrame(np.random.default_rng(0).uniform(0.2, 0.6, (5, 3)), columns=list("abc"))
    recorder = Recorder(bowl)
    answers = cfx.explain_many(
        recorder, queries, ABC, cfx.increase(by=0.5), method="shrinking", budget=40, rng=1
    )
    assert all(answer.reached for answer in answers)
    assert all(answer.n_evaluations <= 40 for answer in answers)
    assert recorder.n == sum(answer.n_evaluations for answer in answers)
    assert max(recorder.sizes) > 4  # one model call serves several queries
    again = cfx.explain_many(
        bowl, queries, ABC, cfx.increase(by=0.5), method="shrinking", budget=40, rng=1
    )
    pd.testing.assert_frame_equal(again.to_frame(), answers.to_frame(), check_exact=True)


# ── a family of potentials: potentials/hill.py ──


@dataclass(frozen=True)
class Hill:
    """A potential with a flat top, ``1 / (1 + z**4)`` with ``z = (y - centre) / width``."""

    centre: float
    width: float
    peak: float = 1.0

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""
        return 1.0 / (1.0 + self._z(y) ** 4)

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative at each output."""
        return -4.0 * self._z(y) ** 3 * np.square(self.value(y)) / self.width

    def superlevel(self, level: float) -> tuple[tuple[float, float], ...]:
        """Return where the potential is at least `level`."""
        if level > self.peak:
            return ()
        reach = self.width * ((1.0 - level) / level) ** 0.25 if level > 0.0 else math.inf
        return ((self.centre - reach, self.centre + reach),)

    def target_set(self, epsilon: float) -> tuple[tuple[float, float], ...]:
        """Return where the potential is at least ``(1 - epsilon) * peak``."""
        return self.superlevel((1.0 - epsilon) * self.peak)

    def knots(self) -> Array:
        """Return points between and beyond which the potential is smooth and monotone."""
        steps = np.array([0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1e3])
        return np.unique([self.centre - self.width * steps, self.centre + self.width * steps])

    def _z(self, y: ArrayLike) -> Array:
        return np.asarray((np.asarray(y, dtype=float) - self.centre) / self.width)


def exact_log_ei(hill: Hill, mean: float, std: float, best: float) -> list[float]:
    """Return log EI and its derivatives by mean and deviation, by quadrature with 30 digits."""
    with mp.workdps(30):
        m, s = mp.mpf(mean), mp.mpf(std)
        ((low, high),) = hill.superlevel(best) if best > 0.0 else ((-math.inf, math.inf),)
        ends = [max(low, mean - 30 * std), min(high, mean + 30 * std)]
        if ends[0] >= ends[1]:  # the density is far outside: its tail at the nearer end
            end, inwards = (low, 1) if mean < low else (high, -1)
            ends = sorted([end, end + inwards * 60 * std**2 / abs(end - mean)])
        inner = [hill.centre + k * hill.width / 2 for k in range(-8, 9)]
        inner += [mean + k * std for k in range(-10, 11)]
        cuts = sorted({mp.mpf(y) for y in (*inner, *ends) if ends[0] <= y <= ends[1]})

        def part(power: int) -> Any:
            def integrand(y: Any) -> Any:
                z, t = (y - hill.centre) / mp.mpf(hill.width), (y - m) / s
                return (1 / (1 + z**4) - mp.mpf(best)) * t**power * mp.exp(-t * t / 2)

            return mp.quad(integrand, cuts)

        total, first, second = part(0), part(1), part(2)
        value = mp.log(total / s / mp.sqrt(2 * mp.pi))
        return [float(x) for x in (value, first / total / s, (second / total - 1) / s)]


HILLS = [
    (0.0, 1.0, 0.2),
    (2.2, 0.01, 0.9),  # narrow, on the slope
    (2.0, 0.3, 0.95),
    (-1.0, 0.2, 0.3),  # far outside
    (9.0, 0.5, 0.05),
    (5.0, 20.0, 0.1),  # wide
    (1.0, 1.0, 0.0),
    (0.0, 0.7, -0.2),  # everything counts
]


def test_a_new_potential_is_one_class_and_its_log_ei_is_accurate() -> None:
    hill = Hill(2.0, 0.5)
    mean, std, best = (np.array(column) for column in zip(*HILLS, strict=True))
    exact = np.array([exact_log_ei(hill, *case) for case in HILLS]).T
    for k, (m, s, b) in enumerate(HILLS):
        shared = LogEI(hill, b).value_and_gradient([m], [s])
        np.testing.assert_allclose(np.ravel(shared), exact[:, k], rtol=1e-7, atol=1e-9)
    own = LogEI(hill, best).value_and_gradient(mean, std)
    np.testing.assert_allclose(np.array(own), exact, rtol=1e-7, atol=1e-9)


def test_a_new_potential_is_a_target() -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)})
    answer = cfx.explain(
        lambda rows: rows["a"] + 2 * rows["b"], [1.0, 1.0], space, Hill(15.0, 1.0), budget=30, rng=0
    )
    assert answer.reached
    assert answer.wanted == ((15.0, 15.0),)
    assert answer.best.potential > 0.99
    # on a probability, it is seen on the scale of the surrogate like any other
    linked = Linked(Hill(0.6, 0.05), Logit())
    u = np.linspace(-9.0, 9.0, 100_001)
    weight = np.exp(-0.5 * np.square(u - 1.0)) / math.sqrt(2.0 * math.pi) * (u[1] - u[0])
    plain = float(np.sum(np.maximum(linked.value(u) - 0.3, 0.0) * weight))
    assert float(cfx.ei_cfx([1.0], [1.0], linked, 0.3)[0]) == pytest.approx(plain, rel=1e-7)


# ── a kernel: a function in surrogate/kernels.py ──


def matern32(s: Array) -> tuple[Array, Array]:
    """Return k = (1 + t) exp(-t) with t = sqrt(3 s), and its derivative with respect to s."""
    t = np.sqrt(3.0 * s)
    fall = np.exp(-t)
    return (1.0 + t) * fall, -1.5 * fall


# ── its one line: in the table `KERNELS` there ──


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, "matern32", matern32)


@pytest.mark.usefixtures("kernel")
def test_a_new_kernel_is_one_function_and_one_line() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    process = cfx.GaussianProcess(kernel="matern32").fit(X, y)
    T, h = rng.random((7, 3)), 1e-6
    mean, std, d_mean, d_std = process.predict_gradient(T)
    for j in range(3):
        up, down = (process.predict(T + sign * h * np.eye(3)[j]) for sign in (1, -1))
        np.testing.assert_allclose(d_mean[:, j], (up[0] - down[0]) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(d_std[:, j], (up[1] - down[1]) / (2 * h), atol=1e-5)
    # the same process elsewhere
    found = process.hyperparameters
    peer = GaussianProcessRegressor(
        ConstantKernel(found.output_scale) * Matern(found.lengthscales, nu=1.5),
        alpha=found.noise,
        optimizer=None,
        normalize_y=True,
    ).fit(X, y)
    expected = peer.predict(T, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-4)


@pytest.mark.usefixtures("kernel")
def test_a_new_kernel_is_a_setting_of_the_search() -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)})
    method = cfx.BayesCFX(surrogate=cfx.SurrogateSettings(kernel="matern32"))
    answer = cfx.explain(
        lambda rows: rows["a"] * rows["b"], [1.0, 1.0], space, cfx.reach(30), method=method, rng=0
    )
    assert answer.reached


def test_a_kernel_without_its_line_is_not_known() -> None:
    with pytest.raises(ValueError, match="`kernel` must be one of 'matern52', 'rbf', 'tabular'"):
        cfx.GaussianProcess(kernel="matern32")


# ── a model reader: models/readers/step_trees.py ──


class StepModel:
    """A model of one's own: one number up to a threshold of the first column, another above."""

    n_features_in_ = 2

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def predict(self, rows: Any) -> Any:
        """Return 1 up to the threshold and 5 above."""
        return np.where(np.asarray(rows)[:, 0] <= self.threshold, 1.0, 5.0)


def read_steps(task: Task) -> TreeEnsemble:
    """Return the form of a StepModel: a tree with one test."""
    tree = Tree(
        input=np.array([0, -1, -1]),
        threshold=np.array([task.estimator.threshold, 0.0, 0.0]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        value=np.array([0.0, 1.0, 5.0]),
        if_missing=np.zeros(3, dtype=bool),
    )
    return TreeSums(task.source.inputs(matrix), [tree], np.zeros(1)).output()


# ── its one line: in the table `READERS` of models/readers/registry.py ──


def test_a_model_reader_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, "tests.StepModel", read_steps)
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    reading = read_model(as_model(StepModel(0.3)), rows)
    assert reading.form is not None
    np.testing.assert_array_equal(reading.form.predict(rows), StepModel(0.3).predict(rows))
