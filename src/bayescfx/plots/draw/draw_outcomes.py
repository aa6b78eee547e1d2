"""Draw outputs: the search, the potential, the surrogate."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots import style
from bayescfx.plots.info import outcomes
from bayescfx.plots.style import BLUE, DOT, GREEN, GREY, INK, ORANGE, PALE, PAPER, PURPLE
from bayescfx.result import wording

_MANY_DOTS = 200  # more are drawn as pixels, to keep files small


def draw_convergence(info: outcomes.ConvergenceInfo, ax: style.Axes) -> None:
    """Draw the best potential after each row."""
    if info.scores is not None:
        dots: Any = {"color": DOT, "markersize": 3, "rasterized": len(info.rows) > _MANY_DOTS}
        ax.plot(info.rows, info.scores, "o", label="each row", zorder=1, **dots)
    ax.step(info.rows, info.best, where="post", color=BLUE, label="best so far", zorder=3)
    if info.reached_at is not None:
        _mark_reached(info.reached_at, len(info.rows), ax)
    ax.set_ylim(-0.04, 1.06)
    ax.set_xlim(0, max(2.0, 1.02 * len(info.rows)))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("rows sent to the model")
    ax.set_ylabel("potential (1 = on target)")
    style.legend(ax)


def _mark_reached(row: int, n_rows: int, ax: style.Axes) -> None:
    """Draw a line with a text at the row that reached the target."""
    ax.axvline(row, color=GREEN, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2)
    is_late = row > 0.6 * n_rows  # then the text is on the left
    text = f"target reached\nafter {wording.count(row, 'row')}"
    box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
    place: Any = {"xytext": (-4 if is_late else 4, 0), "textcoords": "offset points"}
    look: Any = {"ha": "right" if is_late else "left", "color": GREEN, "fontsize": 7, "bbox": box}
    ax.annotate(text, (row, 0.27), **place, **look)


def draw_potential(info: outcomes.PotentialInfo, ax: style.Axes) -> None:
    """Draw the potential over the output, with query, answers and the outputs seen."""
    ax.set_xlim(info.outputs[0], info.outputs[-1])
    style.band(info.accepted, ax, vertical=True)
    if info.share is not None:
        ax.plot(info.outputs, info.share, color=INK, linewidth=1.2, zorder=2)
    low, high = info.reachable
    if low <= high:
        ax.plot([low, high], [-0.14, -0.14], color=GREY, linewidth=4, solid_capstyle="butt")
        ax.text(0.5 * (low + high), -0.19, "outputs seen", ha="center", va="top", fontsize=6.5)
    ax.plot(info.query, _potential_at(info, info.query), **style.QUERY, label="query", zorder=4)
    for k, output in enumerate(info.answers):
        label = "answer" if k == 0 else None
        height = _potential_at(info, output)
        ax.plot(output, height, **style.ANSWER, label=label, zorder=5 - 0.01 * k)
    ax.set_ylim(-0.34, 1.12)
    ax.set_yticks([0, 0.5, 1])
    ax.set_xlabel(style.clip(info.name, 40))
    ax.set_ylabel("potential")
    style.legend(ax)


def _potential_at(info: outcomes.PotentialInfo, output: float) -> float:
    """Return the potential of an output relative to its peak; 0 if it is not known."""
    if info.share is None:
        return 0.0
    return float(info.share[abs(info.outputs - output).argmin()])


def draw_response(info: outcomes.ResponseInfo, ax: style.Axes) -> None:
    """Draw the surrogate along one feature, around query and answer."""
    curves = [(info.query, BLUE, "estimate")]
    if info.answer is not None:
        curves = [(info.query, BLUE, "from the query"), (info.answer, ORANGE, "from the answer")]
    for k, (curve, colour, label) in enumerate(curves):
        shift = 0.0
        if info.scale.ordered:
            ax.fill_between(info.codes, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
            ax.plot(info.codes, curve.mean, color=colour, label=label, zorder=3)
        else:  # levels have bars side by side
            shift = 0.16 * (k - 0.5 * (len(curves) - 1))
            reach = [curve.mean - curve.low, curve.high - curve.mean]
            bars: Any = {"color": colour, "fmt": "_", "markersize": 6, "elinewidth": 1.2}
            ax.errorbar(info.codes + shift, curve.mean, reach, label=label, zorder=3, **bars)
        codes, outputs = curve.seen
        dots: Any = {"markersize": 4, "zorder": 4, "rasterized": len(codes) > _MANY_DOTS}
        ax.plot(codes + shift, outputs, ".", color=colour, **dots)
    ax.plot(info.query.code, info.query.output, **style.QUERY, zorder=5)
    ax.plot(*info.place, **style.ANSWER, zorder=6)
    _set_limits(info, ax)
    style.band(info.accepted, ax, vertical=False)
    style.name_axis(info.scale, info.name, ax, x=True)
    ax.set_ylabel(style.clip(info.output, 30))
    style.legend(ax)


def _set_limits(info: outcomes.ResponseInfo, ax: style.Axes) -> None:
    """Make room for the curves and for the nearest of the accepted outputs."""
    curves = [curve for curve in (info.query, info.answer) if curve is not None]
    inside = [float(v) for c in curves for v in (c.low.min(), c.high.max(), c.output)]
    ends = outcomes.finite_ends(info.accepted)
    near = sorted(ends, key=lambda end: abs(end - info.query.output))[:2]
    shown_outputs = [*inside, info.place[1], *near]
    low = min(shown_outputs)
    high = max(shown_outputs)
    pad = 0.06 * ((high - low) or 1.0)
    ax.set_ylim(low - pad, high + pad)
    edge = 0.02 * (info.scale.high - info.scale.low) if info.scale.ordered else 0.5
    ax.set_xlim(info.scale.low - edge, info.scale.high + edge)


def draw_surface(info: outcomes.SurfaceInfo, ax: style.Axes) -> None:
    """Draw the surrogate over two features, the target set and the acquisition."""
    mean = np.ma.masked_array(info.mean, mask=~info.allowed)
    ax.set_facecolor(PALE)
    mesh = ax.pcolormesh(
        info.x_codes, info.y_codes, mean, cmap="cividis", shading="nearest", rasterized=True
    )
    _draw_target(info, ax)
    if info.acquisition is not None:
        row, column = divmod(int(np.argmax(info.acquisition)), len(info.x_codes))
        cross: Any = {"color": PURPLE, "mec": PAPER, "mew": 0.7, "markersize": 7, "zorder": 5}
        ax.plot(info.x_codes[column], info.y_codes[row], "X", label="next", **cross)
    xlim = ax.get_xlim()
    ylim = ax.get_ylim()
    _draw_seen(info, np.sort([xlim, ylim]), ax)
    ax.plot(*info.query, **style.QUERY, label="query", zorder=5, clip_on=False)
    ax.plot(*info.answer, **style.ANSWER, label="answer", zorder=6, clip_on=False)
    ax.set_xlim(xlim)
    ax.set_ylim(ylim)
    style.name_axis(info.scales[0], info.names[0], ax, x=True)
    style.name_axis(info.scales[1], info.names[1], ax, x=False)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.set_label(f"{style.clip(info.output, 30)} (surrogate)", fontsize=7)
    bar.outline.set_visible(False)
    style.legend(ax)


def _draw_seen(info: outcomes.SurfaceInfo, corners: Array, ax: style.Axes) -> None:
    """Draw the scored rows that lie within the corners ``(2, 2)``: low and high of each axis."""
    is_inside = ((info.seen >= corners[:, 0]) & (info.seen <= corners[:, 1])).all(axis=1)
    dots: Any = {"markeredgecolor": INK, "mew": 0.4, "markersize": 5}
    dots["rasterized"] = int(is_inside.sum()) > _MANY_DOTS
    ax.plot(*info.seen[is_inside].T, ".", color=PAPER, **dots)


def _draw_target(info: outcomes.SurfaceInfo, ax: style.Axes) -> None:
    """Draw the target set: contours over numbers, squares over levels."""
    if all(scale.feature.numeric for scale in info.scales) and min(info.mean.shape) > 5:
        _draw_contours(info, ax)
        return
    rows, columns = np.nonzero(info.target & info.allowed)
    if len(columns):
        x = info.x_codes[columns]
        y = info.y_codes[rows]
        ax.plot(x, y, "s", color=GREEN, ms=2.5, label="target")


def _draw_contours(info: outcomes.SurfaceInfo, ax: style.Axes) -> None:
    """Draw lines around the target and at shares of the acquisition."""
    x = info.x_codes
    y = info.y_codes
    levels = sorted(set(outcomes.finite_ends(info.accepted)))
    inside = [level for level in levels if info.mean.min() < level < info.mean.max()]
    if inside:
        ax.contour(x, y, info.mean, levels=inside, colors=GREEN, linewidths=1.6)
        ax.plot([], [], color=GREEN, linewidth=1.6, label="target")
    if info.acquisition is not None and np.ptp(info.acquisition) > 0:
        shares = (0.1, 0.5, 0.9)  # of the maximum
        ax.contour(x, y, info.acquisition, levels=shares, colors=PURPLE, linewidths=0.9)
