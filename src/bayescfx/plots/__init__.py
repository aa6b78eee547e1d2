"""Pictures and reports of answers; needs matplotlib: ``pip install 'bayescfx[plots]'``.

Each function draws a picture of an `answer` into the axes `ax`, by default of a new figure, and
returns the axes; `which` is the position of the counterfactual, by default the best. The numbers of
the pictures come from `bayescfx.plots.info`. Effects, response curves and maps use a surrogate that
is fitted to the answer's evaluations; the model is never called.

>>> from bayescfx import plots
>>> plots.save(plots.change_chart(answer), "changes.png")  # doctest: +SKIP
>>> plots.report(answer, "answer.html")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

from bayescfx.plots.draw import drawn
from bayescfx.plots.info import outcomes
from bayescfx.plots.info.changes import alternatives_info, change_info, movement_info
from bayescfx.plots.info.view import View
from bayescfx.plots.report_file import report
from bayescfx.plots.style import Axes, Figure, write
from bayescfx.result.explanation import Explanation

__all__ = [
    "alternatives",
    "change_chart",
    "convergence",
    "movements",
    "potential",
    "report",
    "response",
    "save",
    "surface",
]


def change_chart(answer: Explanation, ax: Axes | None = None, *, which: int = 0) -> Axes:
    """Draw the changes: before and after for each feature, on its own scale.

    The most effective change comes first. The effect of a change is its contribution to the
    prediction: its Shapley value, an average over the orders in which the changes can be made. The
    surrogate replaces the model for rows that were not scored. Effects sum up to the whole change.
    Thick lines are the allowed values, thin lines the feature's range.
    """
    return drawn(change_info(View.of(answer), which), ax)


def alternatives(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw all counterfactuals of an answer as lines across the scales of the changed features.

    A parallel plot: one scale per feature, the most effective first, and the prediction last, with
    the target marked. The dashed line is the query.
    """
    return drawn(alternatives_info(View.of(answer)), ax)


def convergence(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the best potential after each row that the model scored."""
    return drawn(outcomes.convergence_info(answer), ax)


def potential(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the potential of each output, with query, answers and the outputs seen."""
    return drawn(outcomes.potential_info(answer), ax)


def response(
    answer: Explanation, ax: Axes | None = None, *, feature: Hashable | None = None, which: int = 0
) -> Axes:
    """Draw the surrogate's response to one feature, around the query and around the answer.

    Bands are two standard deviations of the surrogate on either side, widened if cross-validation
    shows it to be overconfident. Dots are rows that the model scored.

    Parameters
    ----------
    feature : name, optional
        By default the most effective of the changed features.
    """
    return drawn(outcomes.response_info(View.of(answer), feature, which), ax)


def surface(
    answer: Explanation,
    ax: Axes | None = None,
    *,
    features: Sequence[Hashable] | None = None,
    which: int = 0,
) -> Axes:
    """Draw the surrogate over two features through the answer, and the acquisition.

    Green lines enclose the accepted outputs, purple ones the best places to continue the search:
    where a lower cost is likely or, before the target is reached, where EI-CFX is high. White dots
    are rows that the model scored, whatever their other features.

    Parameters
    ----------
    features : two names, optional
        By default the two most effective features.
    """
    return drawn(outcomes.surface_info(View.of(answer), features, which), ax)


def movements(answers: Sequence[Explanation], ax: Axes | None = None) -> Axes:
    """Draw how often and how far each feature moves in the best answers to many queries."""
    return drawn(movement_info(answers), ax)


def save(picture: Axes | Figure, path: str | os.PathLike[str], *, dpi: int = 200) -> None:
    """Write a picture to a file in the format of its ending (``.png``, ``.svg``, ``.pdf``).

    The same picture gives the same bytes: no date is written.

    Parameters
    ----------
    picture : Axes or Figure
        The result of one of the functions here.
    path : str or path
        Where to write it.
    dpi : int, default 200
        Dots per inch of a ``.png``.
    """
    # Axes may be in a subfigure: its `figure` is the whole figure.
    figure: Any = picture if hasattr(picture, "savefig") else picture.figure.figure
    ending = os.path.splitext(os.fspath(path))[1].lower()
    date_keys = {".svg": "Date", ".pdf": "CreationDate"}
    metadata = {date_keys[ending]: None} if ending in date_keys else {}
    write(figure, path, dpi=dpi, metadata=metadata)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted(__all__)
