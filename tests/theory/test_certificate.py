"""CFX-Potential-Localopt: certificates that hold, and witnesses of violations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.data import Real
from bayescfx.errors import SettingsError
from bayescfx.evaluations.evaluator import Stop
from bayescfx.potentials import AEP, at_least
from bayescfx.search.gradient import ProjectedGradient, localopt_residual
from bayescfx.space.linear import Polytope
from bayescfx.space.space import Space
from bayescfx.theory.certificate import (
    GradientViolation,
    Instance,
    LipschitzViolation,
    LocalOptimum,
    certify,
    gradient_violation,
    lipschitz_violation,
)
from tests.search.kinds import AB, SMOOTH, Kind, ask, smooth_slope
from tests.theory.runs import certify_run

SQUARE = Polytope(np.zeros(2), np.ones(2), np.empty((0, 2)), np.empty(0))
RHO = AEP(0.0, 1.0)  # |rho'| <= 0.64, |rho''| <= 2


def wave(Z: Array) -> Array:
    """sin(2a) + b/2: slope at most sqrt(4.25), curvature at most 4."""
    return np.sin(2.0 * Z[:, 0]) + 0.5 * Z[:, 1]


def wave_slope(Z: Array) -> Array:
    return np.stack([2.0 * np.cos(2.0 * Z[:, 0]), np.full(len(Z), 0.5)], axis=1)


WAVE = Instance(wave, wave_slope, RHO, SQUARE, eta=0.1, delta=1e-4, lipschitz=4.0)
ANYWHERE = np.random.default_rng(0).uniform(size=(40, 2))
SLOPE = np.array([0.3, 0.1])  # f = 0.61: neither flat nor the peak


@dataclass(frozen=True)
class Bent:
    """A potential with any given slope."""

    power: float
    stated: float

    def value(self, y: ArrayLike) -> Array:
        return np.asarray(np.abs(np.asarray(y, dtype=float)) ** self.power)

    def slope(self, y: ArrayLike) -> Array:
        y = np.asarray(y, dtype=float)
        return np.asarray(self.stated * np.sign(y) * np.abs(y) ** (self.power - 1.0))


# ── the certificate ──


def test_the_residual_is_the_length_of_the_projected_step() -> None:
    c, ascent = np.array([0.9, 0.5]), np.array([2.0, 0.3])
    # the first coordinate is stopped by the limit after 0.1
    assert localopt_residual(c, ascent, 0.5, SQUARE.project) == pytest.approx(np.hypot(0.1, 0.15))


def test_an_inner_optimum_is_certified() -> None:
    c = np.array([0.5 * np.arcsin(0.75), 0.5])  # f(c) is the peak
    found = certify(WAVE, c)
    assert isinstance(found, LocalOptimum)
    assert found.residual < 1e-12
    assert (found.point == c).all()
    assert found.delta == WAVE.delta


def test_an_optimum_at_the_limits_is_certified() -> None:
    high = replace(WAVE, potential=AEP(0.0, 10.0))  # the peak is out of reach
    corner = np.array([0.25 * np.pi, 1.0])
    assert isinstance(certify(high, corner), LocalOptimum)
    assert np.abs(high.ascent(corner)).max() > 1e-3


def test_a_slope_is_no_optimum() -> None:
    assert certify(WAVE, SLOPE, ANYWHERE) is None
    residual = localopt_residual(SLOPE, WAVE.ascent(SLOPE), WAVE.eta, SQUARE.project)
    assert residual > 100 * WAVE.delta


def test_the_tolerance_decides() -> None:
    assert certify(replace(WAVE, delta=0.5), SLOPE) is not None
    assert certify(replace(WAVE, delta=1e-3), SLOPE) is None


# ── Lipschitz witnesses ──


def test_a_jump_of_the_model_is_witnessed() -> None:
    steps = replace(
        WAVE, f=lambda Z: np.floor(5 * Z[:, 0]) + 0.5, gradient=lambda Z: np.ones_like(Z), eta=10.0
    )
    found = certify(steps, SLOPE, ANYWHERE)
    assert isinstance(found, LipschitzViolation)
    assert found.which == "f"
    rise = np.abs(np.diff(steps.f(np.stack([found.a, found.b]))))[0]
    assert rise / np.linalg.norm(found.a - found.b) == pytest.approx(found.ratio)
    assert found.ratio > 4.0


@pytest.mark.parametrize(
    ("change", "which"),
    [
        ({"f": lambda Z: 9.0 * wave(Z)}, "f"),
        ({"gradient": lambda Z: wave_slope(9.0 * Z)}, "gradient of f"),
        ({"potential": AEP(0.0, 0.1)}, "gradient of rho"),
        ({"potential": Bent(8.0, 0.0), "f": lambda Z: wave(Z) + 1.0}, "rho"),
    ],
)
def test_each_circuit_is_checked(change: dict[str, Any], which: str) -> None:
    broken = replace(WAVE, **change)
    found = lipschitz_violation(broken, ANYWHERE)
    assert found is not None
    assert found.which == which
    assert found.ratio > 4.0
    size = 2 if which.endswith("f") else 1
    assert found.a.shape == found.b.shape == (size,)


@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([1.0, 1e-3, 1e-7]),
)
@settings(max_examples=50, deadline=None)
def test_true_statements_have_no_witness(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    w, frequency, offset = rng.normal(size=2), rng.uniform(0.5, 3.0), rng.normal(scale=100.0)
    length = float(np.linalg.norm(w))

    def f(Z: Array) -> Array:
        return np.asarray(np.sin(frequency * Z @ w) + offset)

    def slope(Z: Array) -> Array:
        return np.asarray(frequency * np.cos(frequency * Z @ w)[:, None] * w)

    L = max(frequency * length, (frequency * length) ** 2, 2.0)
    honest = replace(WAVE, f=f, gradient=slope, potential=AEP(offset, 1.0), lipschitz=L)
    Z = np.clip(rng.uniform(size=2) + spread * rng.uniform(size=(8, 2)), 0.0, 1.0)
    assert lipschitz_violation(honest, Z) is None
    for difference in (1e-2, 1e-5, 1e-7):
        assert gradient_violation(honest, Z, difference) is None


# ── gradient witnesses ──


def test_a_wrong_gradient_is_witnessed() -> None:
    wrong = replace(WAVE, gradient=lambda Z: wave_slope(Z) + np.array([0.0, 0.01]))
    found = certify(wrong, SLOPE)
    assert isinstance(found, GradientViolation)
    assert found.which == "f"
    assert found.coordinate == 1
    assert (found.point == SLOPE).all()
    assert found.stated == pytest.approx(0.51)
    assert found.measured == pytest.approx(0.5)
    assert abs(found.measured - found.stated) > found.bound


def test_a_wrong_gradient_at_the_limits_is_witnessed_from_inside() -> None:
    corner = np.array([1.0, 1.0])
    seen: list[Array] = []

    def watched(Z: Array) -> Array:
        seen.append(Z)
        return wave(Z)

    wrong = replace(WAVE, f=watched, gradient=lambda Z: -wave_slope(Z))
    assert gradient_violation(wrong, corner[None, :]) is not None
    assert SQUARE.contains(np.vstack(seen)).all()


def test_a_wrong_slope_of_the_potential_is_witnessed() -> None:
    wrong = replace(WAVE, potential=Bent(2.0, stated=1.9))  # y² with the slope 1.9 y
    found = certify(wrong, SLOPE)
    assert isinstance(found, GradientViolation)
    assert found.which == "rho"
    assert found.point == pytest.approx(wave(SLOPE[None, :]))
    assert found.stated == pytest.approx(0.95 * found.measured, rel=1e-4)
    assert certify(replace(WAVE, potential=Bent(2.0, stated=2.0)), SLOPE) is None


def test_gradients_are_not_compared_without_a_difference() -> None:
    wrong = replace(WAVE, gradient=lambda Z: wave_slope(Z) + np.array([0.0, 0.01]))
    assert certify(wrong, SLOPE, difference=None) is None


def test_without_a_constant_no_violation_is_sought() -> None:
    silent = replace(WAVE, gradient=lambda Z: -wave_slope(Z), lipschitz=None)
    assert certify(silent, SLOPE, ANYWHERE) is None
    message = "`lipschitz` must be a positive number; got None. State the constant L."
    with pytest.raises(ValueError, match=message):
        lipschitz_violation(silent, ANYWHERE)
    with pytest.raises(ValueError, match=message):
        gradient_violation(silent, ANYWHERE)


# ── runs ──


@pytest.mark.parametrize("gradient", [None, smooth_slope])
def test_a_run_is_certified_from_what_it_evaluated(gradient: Any) -> None:
    question, _ = ask(SMOOTH, 200)
    search = ProjectedGradient(gradient=gradient)
    visits = list(search.visits(question))
    spent = question.spent
    found = certify_run(search, question, visits, lipschitz=100.0)
    assert isinstance(found, LocalOptimum)
    assert found.residual == visits[-1].residual <= search.tolerance
    np.testing.assert_allclose(found.point * [1.0, 10.0], visits[-1].point)
    assert question.spent == spent


def test_an_unfinished_run_is_not_certified_but_may_betray_the_model() -> None:
    question, _ = ask(SMOOTH, 200)
    search = ProjectedGradient(step=0.01, iterations=3, restarts=0)
    visits = list(search.visits(question))
    assert certify_run(search, question, visits, lipschitz=100.0) is None
    found = certify_run(search, question, visits, lipschitz=1.0)  # f = a² + ... is steeper
    assert isinstance(found, LipschitzViolation)


def test_a_run_with_a_wrong_gradient_betrays_it() -> None:
    question, _ = ask(SMOOTH, 200)
    search = ProjectedGradient(
        gradient=lambda rows: smooth_slope(rows) * 1.1, step=0.01, iterations=3, restarts=0
    )
    visits = list(search.visits(question))
    found = certify_run(search, question, visits, lipschitz=10.0)
    assert isinstance(found, GradientViolation)
    assert found.stated == pytest.approx(1.1 * found.measured, rel=1e-3)


def test_the_best_certified_visit_is_the_answer() -> None:
    question, _ = ask(replace(SMOOTH, model=lambda r: np.maximum(r["a"] - 1.5, 0.0)), 300)
    search = ProjectedGradient()
    visits = list(search.visits(question))
    assert visits[0].residual == 0.0  # flat at the query, certified trivially
    found = certify_run(search, question, visits)
    assert isinstance(found, LocalOptimum)
    assert found.point[0] > 3.0


def test_a_certificate_is_charged_for_rows_that_are_new() -> None:
    question, _ = ask(SMOOTH, 200)
    search = ProjectedGradient(gradient=smooth_slope, step=0.01, iterations=3, restarts=0)
    visits = list(search.visits(question))
    question.budget = question.spent
    with pytest.raises(Stop):
        certify_run(search, question, visits, lipschitz=100.0)


# ── what is not known is not certified ──


def first_visit(space: Space, query: dict[str, float], f: Any, **settings: Any) -> tuple[Any, ...]:
    kind = Kind(space, query, f, lambda r: r["a"] >= 0, at_least(3.0))
    question, _ = ask(kind, 100)
    search = ProjectedGradient(step=1.0, iterations=1, restarts=0, backtrack=False, **settings)
    return search, question, next(iter(search.visits(question)))


def test_an_equation_does_not_make_a_slope_flat() -> None:
    search, question, visit = first_visit(
        AB.require("a + b == 11"), {"a": 2.0, "b": 9.0}, lambda r: r["a"]
    )
    rho = float(question.potential.slope(2.0))
    # Along the equation, in units of the scales, b moves by a tenth of what a does.
    along = np.array([1.0, -0.1]) / np.hypot(1.0, 0.1)
    np.testing.assert_allclose(visit.slope, along[0] * along, rtol=1e-6)
    assert visit.residual == pytest.approx(rho * along[0], rel=1e-6)
    assert visit.residual > 0.03
    assert not isinstance(certify_run(search, question, [visit]), LocalOptimum)


def test_a_thin_band_does_not_make_a_slope_flat() -> None:
    band = AB.require("a + b <= 11.00001").require("a + b >= 11")
    search, question, visit = first_visit(band, {"a": 2.0, "b": 9.0}, lambda r: r["a"])
    assert visit.residual > 0.03
    assert not isinstance(certify_run(search, question, [visit]), LocalOptimum)


def test_nothing_is_certified_where_a_direction_cannot_be_tried() -> None:
    stuck = AB.require(lambda r: r["a"] + r["b"] == 11.0, label="a sum")
    search, question, visit = first_visit(stuck, {"a": 2.0, "b": 9.0}, lambda r: r["a"])
    assert not visit.known
    assert certify_run(search, question, [visit]) is None


def test_a_given_gradient_follows_derived_columns() -> None:
    space = Space({"a": Real(0, 4), "twice": Real(0, 8)}).derive("twice", lambda r: 2.0 * r["a"])

    def gradient(rows: Any) -> Any:
        return np.column_stack([np.zeros(len(rows)), np.ones(len(rows))])

    search, question, visit = first_visit(
        space, {"a": 0.5, "twice": 1.0}, lambda r: r["twice"], gradient=gradient
    )
    np.testing.assert_allclose(visit.slope, 2.0 * question.region.scale[:1], rtol=1e-9)
    assert not isinstance(certify_run(search, question, [visit]), LocalOptimum)


def test_a_point_outside_the_domain_and_a_negative_step_raise() -> None:
    with pytest.raises(SettingsError, match="`c` must be a point of the domain"):
        certify(WAVE, np.array([1.5, 0.5]))
    changes: list[dict[str, Any]] = [{"eta": -1.0}, {"delta": 0.0}, {"lipschitz": np.nan}]
    for change in changes:
        with pytest.raises(SettingsError, match=f"`{next(iter(change))}` must be"):
            replace(WAVE, **change)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_single_precision_is_no_violation(offset: float) -> None:
    def f(Z: Array) -> Array:
        return np.asarray(offset + wave(Z.astype(np.float32)), dtype=np.float32).astype(float)

    def slope(Z: Array) -> Array:
        return wave_slope(Z.astype(np.float32)).astype(np.float32).astype(float)

    single = replace(WAVE, f=f, gradient=slope)
    close = ANYWHERE[:5, None] + 1e-7 * np.random.default_rng(1).uniform(-1, 1, (5, 4, 2))
    Z = np.vstack([ANYWHERE, close.reshape(-1, 2)])
    assert lipschitz_violation(single, Z) is None
    assert gradient_violation(single, Z) is None
    doubled = replace(single, gradient=lambda Z: 2.0 * slope(Z))
    assert isinstance(gradient_violation(doubled, ANYWHERE), GradientViolation)


def test_noise_that_can_be_measured_is_no_violation() -> None:
    def f(Z: Array) -> Array:  # single precision inside, double outside
        return np.asarray(np.pi * wave(Z.astype(np.float32)).astype(np.float32), dtype=float)

    noisy = replace(WAVE, f=f, gradient=lambda Z: np.pi * wave_slope(Z), lipschitz=16.0)
    close = ANYWHERE[:5, None] + 1e-8 * np.random.default_rng(1).uniform(-1, 1, (5, 4, 2))
    Z = np.vstack([ANYWHERE, close.reshape(-1, 2)])
    assert lipschitz_violation(noisy, Z) is None
    assert gradient_violation(noisy, Z) is None


@pytest.mark.parametrize("offset", [1e3, 1e4, 1e5, 1e6])
def test_differences_that_rounding_hides_certify_nothing(offset: float) -> None:
    def f(rows: Any) -> Any:
        return np.float32(offset) + rows["a"].to_numpy().astype(np.float32)

    kind = Kind(AB, {"a": 1.0, "b": 1.0}, f, lambda r: r["a"] >= 0, at_least(offset + 3.0))
    question, _ = ask(kind, 200)
    search = ProjectedGradient(restarts=0)
    visits = list(search.visits(question))
    found = certify_run(search, question, visits)
    assert found is None or visits[-1].point[0] > 2.9

    def gradient(rows: Any) -> Any:
        return np.column_stack([np.ones(len(rows)), np.zeros(len(rows))])

    question, _ = ask(kind, 400)
    search = ProjectedGradient(restarts=0, step=0.01, iterations=3, gradient=gradient)
    visits = list(search.visits(question))
    assert not isinstance(
        certify_run(search, question, visits, lipschitz=5.0), GradientViolation | LipschitzViolation
    )
