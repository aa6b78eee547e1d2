"""Response curves and two-feature maps of the surrogate."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.plots import style
from bayescfx.plots.info.outcomes import finite_ends
from bayescfx.plots.info.responses import Curve, ResponseInfo, SurfaceInfo
from bayescfx.plots.style import ANSWER, BLUE, GREEN, INK, ORANGE, PALE, PAPER, PURPLE, QUERY


def draw_response(info: ResponseInfo, ax: style.Axes) -> None:
    """Draw the surrogate along one feature, around query and answer."""
    curves = [(info.query, BLUE, "estimate")]
    if info.answer is not None:
        curves = [(info.query, BLUE, "from the query"), (info.answer, ORANGE, "from the answer")]
    for k, (curve, colour, label) in enumerate(curves):
        shift = 0.0 if info.scale.ordered else 0.16 * (k - 0.5 * (len(curves) - 1))
        if info.scale.ordered:
            ax.fill_between(info.codes, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
            ax.plot(info.codes, curve.mean, color=colour, label=label, zorder=3)
        else:
            reach = [curve.mean - curve.low, curve.high - curve.mean]
            bars: Any = {"color": colour, "fmt": "_", "markersize": 6, "elinewidth": 1.2}
            ax.errorbar(info.codes + shift, curve.mean, reach, label=label, zorder=3, **bars)
        many = len(curve.seen[0]) > 200
        places = curve.seen[0] + shift, curve.seen[1]
        ax.plot(*places, ".", color=colour, markersize=4, zorder=4, rasterized=many)
    ax.plot(info.query.code, info.query.output, **QUERY, zorder=5)
    ax.plot(*info.place, **ANSWER, zorder=6)
    _limits(info, [curve for curve, _, _ in curves], ax)
    style.band(info.accepted, ax, vertical=False)
    style.name_axis(info.scale, info.name, ax, x=True)
    ax.set_ylabel(style.clip(info.output, 30))
    style.legend(ax)


def _limits(info: ResponseInfo, curves: list[Curve], ax: style.Axes) -> None:
    """Make room for the curves and for the nearest of the accepted outputs."""
    inside = [float(v) for c in curves for v in (c.low.min(), c.high.max(), c.output)]
    inside.append(info.place[1])
    near = sorted(finite_ends(info.accepted), key=lambda end: abs(end - info.query.output))[:2]
    low, high = min(inside + near), max(inside + near)
    pad = 0.06 * ((high - low) or 1.0)
    ax.set_ylim(low - pad, high + pad)
    edge = 0.02 * (info.scale.high - info.scale.low) if info.scale.ordered else 0.5
    ax.set_xlim(info.scale.low - edge, info.scale.high + edge)


def draw_surface(info: SurfaceInfo, ax: style.Axes) -> None:
    """Draw the surrogate over two features, the target set and the acquisition."""
    mean = np.ma.masked_array(info.mean, mask=~info.allowed)
    ax.set_facecolor(PALE)
    mesh = ax.pcolormesh(
        info.x_codes, info.y_codes, mean, cmap="cividis", shading="nearest", rasterized=True
    )
    if all(scale.feature.numeric for scale in info.scales) and min(info.mean.shape) > 5:
        _contours(info, ax)
    else:
        y, x = np.nonzero(info.target & info.allowed)
        if len(x):
            ax.plot(info.x_codes[x], info.y_codes[y], "s", color=GREEN, ms=2.5, label="target")
    if info.acquisition is not None:
        row, column = divmod(int(np.argmax(info.acquisition)), len(info.x_codes))
        place = info.x_codes[column], info.y_codes[row]
        ax.plot(*place, "X", color=PURPLE, mec=PAPER, mew=0.7, markersize=7, label="next", zorder=5)
    xlim, ylim = ax.get_xlim(), ax.get_ylim()
    corners = np.sort([xlim, ylim])
    inside = ((info.seen >= corners[:, 0]) & (info.seen <= corners[:, 1])).all(axis=1)
    dots: Any = {"markeredgecolor": INK, "mew": 0.4, "markersize": 5}
    dots["rasterized"] = int(inside.sum()) > 200
    ax.plot(*info.seen[inside].T, ".", color=PAPER, **dots)
    ax.plot(*info.query, **QUERY, label="query", zorder=5, clip_on=False)
    ax.plot(*info.answer, **ANSWER, label="answer", zorder=6, clip_on=False)
    ax.set_xlim(xlim)
    ax.set_ylim(ylim)
    style.name_axis(info.scales[0], info.names[0], ax, x=True)
    style.name_axis(info.scales[1], info.names[1], ax, x=False)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.set_label(f"{style.clip(info.output, 30)} (surrogate)", fontsize=7)
    bar.outline.set_visible(False)
    style.legend(ax)


def _contours(info: SurfaceInfo, ax: style.Axes) -> None:
    x, y = info.x_codes, info.y_codes
    levels = sorted(set(finite_ends(info.accepted)))
    inside = [level for level in levels if info.mean.min() < level < info.mean.max()]
    if inside:
        ax.contour(x, y, info.mean, levels=inside, colors=GREEN, linewidths=1.6)
        ax.plot([], [], color=GREEN, linewidth=1.6, label="target")
    if info.acquisition is not None and np.ptp(info.acquisition) > 0:
        shares = (0.1, 0.5, 0.9)  # of the maximum
        ax.contour(x, y, info.acquisition, levels=shares, colors=PURPLE, linewidths=0.9)
