"""Pictures and reports of answers; needs matplotlib: ``pip install 'bayescfx[plots]'``.

Every picture is drawn into the axes given, or into a new figure, and returns its axes. The numbers
behind it are in `bayescfx.plots.info`. What the surrogate says (effects, response curves, maps) is
learnt anew from the answer's evaluations; the model is never called.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bayescfx.plots.draw.changes import draw_changes
from bayescfx.plots.draw.changes import height as _height
from bayescfx.plots.info.changes import change_info
from bayescfx.plots.info.view import View
from bayescfx.plots.page import report
from bayescfx.plots.style import new_axes, styled
from bayescfx.result import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["change_chart", "report", "save"]


def change_chart(answer: Explanation, ax: Axes | None = None, *, which: int = 0) -> Axes:
    """Draw what changes: before and after per feature, each on its own scale.

    The most effective change comes first. An effect is what a change contributes to the
    prediction as the surrogate sees it (its Shapley value: an average over the orders in which
    the changes can be made). Thick lines are what was allowed, thin ones the feature's range.

    Parameters
    ----------
    answer : Explanation
        The answer.
    ax : Axes, optional
        Where to draw; a new figure by default.
    which : int, default 0
        Which of the answer's counterfactuals.

    Returns
    -------
    Axes
    """
    info = change_info(View.of(answer), which)
    with styled():
        ax = new_axes(_height(info)) if ax is None else ax
        draw_changes(info, ax)
    return ax


def save(picture: Axes | Figure, path: str | os.PathLike[str], *, dpi: int = 200) -> None:
    """Write a picture to a file; the ending says how (``.png``, ``.svg``, ``.pdf``).

    The same picture gives the same bytes: no date is written.

    Parameters
    ----------
    picture : Axes or Figure
        What one of the functions here returned.
    path : str or path
        Where to write it.
    dpi : int, default 200
        Dots per inch of a ``.png``.
    """
    figure: Any = picture if hasattr(picture, "savefig") else picture.get_figure(root=True)
    ending = os.path.splitext(os.fspath(path))[1].lower()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    with styled():
        figure.savefig(path, dpi=dpi, metadata=undated)
