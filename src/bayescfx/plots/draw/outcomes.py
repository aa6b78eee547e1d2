"""Convergence, and the potential over the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.plots import style
from bayescfx.plots.info.outcomes import ConvergenceInfo, PotentialInfo
from bayescfx.plots.style import ANSWER, BLUE, DOT, GREEN, GREY, INK, PAPER, QUERY
from bayescfx.result import wording


def draw_convergence(info: ConvergenceInfo, ax: style.Axes) -> None:
    """Draw the best potential after each row."""
    if info.scores is not None:
        dots: Any = {"color": DOT, "markersize": 3, "rasterized": len(info.rows) > 200}
        ax.plot(info.rows, info.scores, "o", label="each row", zorder=1, **dots)
    ax.step(info.rows, info.best, where="post", color=BLUE, label="best so far", zorder=3)
    if info.reached_at is not None:
        ax.axvline(info.reached_at, color=GREEN, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2)
        late = info.reached_at > 0.6 * len(info.rows)
        text = f"target reached\nafter {wording.count(info.reached_at, 'row')}"
        box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
        beside: Any = {"xytext": (-4 if late else 4, 0), "textcoords": "offset points"}
        beside |= {"ha": "right" if late else "left", "color": GREEN, "fontsize": 7, "bbox": box}
        ax.annotate(text, (info.reached_at, 0.27), **beside)
    ax.set_ylim(-0.04, 1.06)
    ax.set_xlim(0, max(2.0, 1.02 * len(info.rows)))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("rows sent to the model")
    ax.set_ylabel("potential (1 = as wanted)")
    style.legend(ax)


def draw_potential(info: PotentialInfo, ax: style.Axes) -> None:
    """Draw the potential over the output, with query, answer and what was seen."""
    ax.set_xlim(info.outputs[0], info.outputs[-1])
    style.band(info.accepted, ax, vertical=True)
    if info.share is not None:
        ax.plot(info.outputs, info.share, color=INK, linewidth=1.2, zorder=2)
    low, high = info.reachable  # below the potential
    ax.plot([low, high], [-0.14, -0.14], color=GREY, linewidth=4, solid_capstyle="butt")
    ax.text(0.5 * (low + high), -0.19, "outputs seen", ha="center", va="top", fontsize=6.5)
    share = np.zeros(len(info.outputs)) if info.share is None else info.share
    query, *answers = (share[abs(info.outputs - y).argmin()] for y in (info.query, *info.answers))
    ax.plot(info.query, query, **QUERY, label="query", zorder=4)
    for k, (output, height) in enumerate(zip(info.answers, answers, strict=True)):
        label = "answer" if k == 0 else None
        ax.plot(output, height, **ANSWER, label=label, zorder=5 - 0.01 * k)
    ax.set_ylim(-0.34, 1.12)
    ax.set_yticks([0, 0.5, 1])
    ax.set_xlabel(style.clip(info.name, 40))
    ax.set_ylabel("potential")
    style.legend(ax)
