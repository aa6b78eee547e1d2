"""Proposition 3.1 and Appendix B: EI-CFX in closed form, against quadrature.

The formula is the paper's own, written down here again; `bayescfx` is only compared with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import lambertw, ndtr

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.claims import Claim, exactly, fact
from experiments.drawing import BLACK, BLUE, GREY, VERMILION, figure
from experiments.runs import Settings

NAME = "closed_form"
AGREE = 1e-9  # largest difference between quadrature and formula
KNOWN = np.array([0.1, 0.5, 0.9])
OUTPUTS = np.array([0.2, 0.6, 1.6])
LENGTH = 0.3
NEAR = 1e-5  # distance to an observed point at which the slope is evaluated
NOISE = 1e-4  # variance


def run(settings: Settings) -> dict[str, Any]:
    """Compare the formula with quadrature, search for jumps, and count lost digits."""
    levels = np.array([0.01, 0.1, 0.2, 0.3, 0.36])
    means = np.linspace(-2.0, 2.0, settings.pick(17, 5))
    stds = np.geomspace(0.05, 2.0, 5)
    points = [(m, s, level) for m in means for s in stds for level in levels]
    x = np.linspace(0.0, 1.0, 401)
    return {
        "points": len(points),
        "formula_error": max(abs(formula(*point) - integral(*point)) for point in points),
        "library_error": max(abs(_library(*point) - integral(*point)) for point in points),
        "root_error": max(root_error(c) for c in -levels),
        "printed_limits_real": sum(_real(lambertw(level, k)) for level in levels for k in (0, -1)),
        "printed_limits": 2 * len(levels),
        "halving": {name: halving(name) for name in ("value", "slope")},
        "slopes": {
            "best point": slopes(0.5, 0.0),
            "other point": slopes(0.9, 0.0),
            "best point, noise": slopes(0.5, NOISE),
        },
        "late": late(),
        "curve": {"x": x, "exact": acquired(x, 0.0)[0], "noise": acquired(x, NOISE)[0]},
    }


def formula(mean: float, std: float, level: float) -> float:
    """Return EI-CFX of SEP for f(q) = 0 and w = 1, by Appendix B with limits W(−ρ*)."""
    low, high = (float(np.sqrt(-lambertw(-level, k).real)) for k in (0, -1))
    kappa = 1.0 + 2.0 * std**2
    a = 2.0 * mean**2 / kappa
    b = 2.0 * mean * std / kappa
    gamma = mean - b * std
    eta = std / np.sqrt(kappa)
    scale = np.exp(0.5 * kappa * (b**2 - a)) / np.sqrt(kappa)

    def antiderivative(tau: float) -> float:
        zeta = np.sqrt(kappa) * (b + tau)
        phi = np.exp(-0.5 * zeta**2) / np.sqrt(2.0 * np.pi)
        whole = (gamma**2 + eta**2) * ndtr(zeta) - 2.0 * eta * gamma * phi
        return float(whole - eta**2 * zeta * phi)

    total = 0.0
    for first, last in ((low, high), (-high, -low)):
        tau0 = (first - mean) / std
        tau1 = (last - mean) / std
        total += scale * (antiderivative(tau1) - antiderivative(tau0))
        total += level * (ndtr(tau0) - ndtr(tau1))
    return float(total)


def integral(mean: float, std: float, level: float) -> float:
    """Return the same by adaptive quadrature of Definition 3.1, on both sides of f(q)."""

    def gain(y: float) -> float:
        density = np.exp(-0.5 * ((y - mean) / std) ** 2) / (std * np.sqrt(2.0 * np.pi))
        return float(max(0.0, y**2 * np.exp(-(y**2)) - level) * density)

    roots = [float(np.sqrt(-lambertw(-level, k).real)) for k in (0, -1)]
    sides = (roots, [-root for root in roots[::-1]])
    parts = [quad(gain, low, high, epsabs=1e-13, limit=200)[0] for low, high in sides]
    return float(sum(parts))


def _library(mean: float, std: float, level: float) -> float:
    return float(cfx.ei_cfx([mean], [std], cfx.SEP(0.0, 1.0), level)[0])


def root_error(c: float) -> float:
    """Return the error of the four roots of Lemma B.1 in −x² exp(−x²) = c."""
    roots = [sign * 1j * np.sqrt(lambertw(c, k) + 0j) for k in (0, -1) for sign in (-1, 1)]
    misses = [abs(-(x.real**2) * np.exp(-(x.real**2)) - c) + abs(x.imag) for x in roots]
    return float(max(misses)) if len({round(x.real, 9) for x in roots}) == 4 else float("inf")


def _real(w: complex) -> bool:
    """Return whether ± i √W is real."""
    return bool(abs((1j * np.sqrt(w + 0j)).imag) < AGREE)


# -- Along a line: a surrogate of three points --


def acquired(x: Array, noise: float) -> tuple[Array, Array]:
    """Return EI-CFX and its derivative along x ``(n,)``; RBF kernel, zero mean."""
    inverse = np.linalg.inv(_kernel(KNOWN, KNOWN) + noise * np.eye(len(KNOWN)))
    k = _kernel(x, KNOWN)
    dk = -k * (x[:, None] - KNOWN) / LENGTH**2
    mean = k @ inverse @ OUTPUTS
    d_mean = dk @ inverse @ OUTPUTS
    std = np.sqrt(np.maximum(1.0 - ((k @ inverse) * k).sum(axis=1), 1e-300))
    d_std = -((dk @ inverse) * k).sum(axis=1) / std
    potential = cfx.AEP(0.0, 1.0)
    best = float(potential.value(OUTPUTS).max())
    by_mean, by_std = cfx.ei_cfx_gradient(mean, std, potential, best)
    return cfx.ei_cfx(mean, std, potential, best), by_mean * d_mean + by_std * d_std


def _kernel(a: Array, b: Array) -> Array:
    return np.asarray(np.exp(-0.5 * ((a[:, None] - b) / LENGTH) ** 2))


def halving(name: str) -> float:
    """Return the ratio of the largest changes with half the step and with the whole step."""
    changes = []
    for points in (2_001, 4_001):
        both = acquired(np.linspace(0.51, 0.89, points), 0.0)
        changes.append(float(np.abs(np.diff(both[name == "slope"])).max()))
    return changes[1] / changes[0]


def slopes(at: float, noise: float) -> list[float]:
    """Return the slope of EI-CFX just left and just right of a point."""
    found = acquired(np.array([at - NEAR, at + NEAR]), noise)[1]
    return [float(slope) for slope in found]


def late() -> dict[str, Any]:
    """Compare the formula with log EI-CFX late in a search, where the target set is thin."""
    rows = []
    for lack in 10.0 ** -np.arange(1, 7):
        for std in 10.0 ** -np.arange(1, 5):
            for mean in (0.5, 0.8, 0.9, 0.99, 1.2):
                level = (1.0 - lack) / np.e
                truth = float(cfx.log_ei_cfx([mean], [std], cfx.SEP(0.0, 1.0), level)[0])
                if truth > np.log(np.finfo(float).tiny):
                    with np.errstate(all="ignore"):
                        off = abs(formula(mean, std, level) / np.exp(truth) - 1.0)
                    rows.append([truth, off if np.isfinite(off) else 1.0])
    wrong = [truth for truth, off in rows if off > 0.01]
    return {"points": len(rows), "wrong": len(wrong), "highest_wrong": max(wrong), "rows": rows}


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw EI-CFX along the line, and the formula's relative error against log EI-CFX."""
    curve = result["curve"]
    truth = np.array(result["late"]["rows"])
    with figure(path, 13.0, 5.0) as canvas:
        left, right = canvas.subplots(1, 2)
        left.plot(curve["x"], curve["exact"], color=BLUE, label="no noise")
        left.plot(curve["x"], curve["noise"], "--", color=VERMILION, label=f"noise {NOISE:g}")
        for at in KNOWN:
            left.axvline(at, color=GREY, linewidth=1)
        left.annotate("best so far", (0.5, 0.0), xytext=(6, 4), textcoords="offset points")
        left.set(xlabel="x", ylabel="EI-CFX", title="Three observed points (grey)")
        left.legend()
        right.plot(truth[:, 0], np.maximum(truth[:, 1], 1e-17), "o", color=BLACK, markersize=5)
        right.axhline(0.01, color=VERMILION, linewidth=1)
        right.set(yscale="log", xlabel="log EI-CFX", ylabel="relative error of the formula")
        right.set_title("In double precision")


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Proposition 3.1 and Appendix B."""
    return [*_formula_claims(result), *_continuity_claims(result), _precision_claim(result)]


def _formula_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on the closed form and its limits of integration."""
    return [
        Claim(
            "closed-form.formula",
            "Definition 3.1, Proposition 3.1",
            "EI-CFX has a closed form",
            f"it differs from quadrature by at most {result['formula_error']:.0e} at "
            f"{result['points']} points",
            exactly(AGREE - result["formula_error"]),
            f"with two misprints corrected; equal up to {AGREE:.0e}",
        ),
        Claim(
            "closed-form.printed",
            "Appendix B",
            "the limits of integration are ± i w √Wₖ(ρ\\*)",
            f"{result['printed_limits_real']} of {result['printed_limits']} are real numbers",
            fact(result["printed_limits_real"] == result["printed_limits"]),
            "a misprint: Lemma B.1 needs W(−ρ\\*); likewise μ̃ is μ − f(q), not μ − ρ(q)",
        ),
        Claim(
            "closed-form.roots",
            "Lemma B.1",
            "four real roots by two branches of Lambert's W",
            f"four, to {result['root_error']:.0e}",
            exactly(AGREE - result["root_error"]),
            f"equal up to {AGREE:.0e}",
        ),
    ]


def _continuity_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on the continuity of EI-CFX and its gradient."""
    halves = result["halving"]
    at = result["slopes"]
    jump = abs(at["best point"][1] - at["best point"][0])
    noisy = abs(at["best point, noise"][1] - at["best point, noise"][0])
    return [
        Claim(
            "closed-form.continuous",
            "Proposition 3.1",
            "EI-CFX and ∇EI-CFX are continuous",
            f"between observed points half the step makes {halves['value']:.2f} of the largest "
            f"change of the value, {halves['slope']:.2f} of the gradient's",
            exactly(0.6 - max(halves.values())),
            "continuous: at most 0.6 of the change is left; a jump would leave all of it",
        ),
        Claim(
            "closed-form.at-data",
            "Proposition 3.1",
            "∇EI-CFX is continuous on all of 𝒳, for any n ≥ 1",
            f"at the best observed point it jumps from {at['best point'][0]:.2f} to "
            f"{at['best point'][1]:+.2f}; with noise in the surrogate by {noisy:.0e}",
            exactly(0.01 - jump),
            "√Kₙ has a kink where it is 0, and there ρ = ρ\\*ₙ; continuous: a jump below 0.01",
        ),
    ]


def _precision_claim(result: dict[str, Any]) -> Claim:
    """Return the claim on the precision of the formula late in a search."""
    thin = result["late"]
    wrong = thin["wrong"] / thin["points"]
    return Claim(
        "closed-form.precision",
        "Section 3, Appendix B",
        "closed-form expressions are well-behaved, evaluated efficiently",
        f"in double precision off by over 1 % at {wrong:.0%} of {thin['points']} points of a "
        "late search",
        exactly(0.05 - wrong),
        "differences of almost equal terms; well-behaved: at most 5 % of points; the library "
        "uses log EI-CFX",
    )


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    return f"""\
## Proposition 3.1: the closed form

The formula of Appendix B, written down again with its two misprints corrected, against adaptive
quadrature; `bayescfx.ei_cfx` differs from the same quadrature by at most
{result["library_error"]:.0e}. Along a line through three observed points (left) EI-CFX is smooth,
but not at the best of them unless the surrogate has noise. Late in a search, when ρ\\*ₙ is near
1/e, the formula loses its digits (right; the largest log EI-CFX at which it is off by over 1 % is
{result["late"]["highest_wrong"]:.0f}): that is why the library maximises log EI-CFX.

![Closed form](figures/closed_form.png)
"""
