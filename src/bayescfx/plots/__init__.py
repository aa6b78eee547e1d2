"""Pictures and reports of answers; needs matplotlib: ``pip install 'bayescfx[plots]'``.

Each picture of an `answer` is drawn into the axes `ax`, by default of a new figure, and returns its
axes; `which` says which of the counterfactuals, by default the best. The numbers behind it are in
`bayescfx.plots.info`. What the surrogate says (effects, response curves, maps) is learnt anew from
the answer's evaluations; the model is never called.

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
    """Draw what changes: before and after per feature, each on its own scale.

    The most effective change comes first. An effect is what a change contributes to the
    prediction: its Shapley value, an average over the orders in which the changes can be made,
    with the surrogate in place of the model where the model was not asked. Effects sum up to the
    whole change. Thick lines are what was allowed, thin ones the feature's range.
    """
    return drawn(change_info(View.of(answer), which), ax)


def alternatives(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw all counterfactuals of an answer as lines across the scales of what they change.

    A parallel plot: a scale per feature, the most effective first, and the prediction last, with
    the target marked. The dashed line is the query.
    """
    return drawn(alternatives_info(View.of(answer)), ax)


def convergence(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the best potential after each row that the model scored."""
    return drawn(outcomes.convergence_info(answer), ax)


def potential(answer: Explanation, ax: Axes | None = None) -> Axes:
    """Draw what each output is worth, with query, answers and the outputs seen."""
    return drawn(outcomes.potential_info(answer), ax)


def response(
    answer: Explanation, ax: Axes | None = None, *, feature: Hashable | None = None, which: int = 0
) -> Axes:
    """Draw the surrogate's response to one feature, around the query and around the answer.

    Bands are two deviations of the surrogate on either side, widened where it was too sure of
    rows that it had not seen. Dots are rows that the model scored.

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

    Solid lines enclose what would be accepted, dashed ones where a search would look next: where
    the target may be met nearer to the query or, before it is met, where EI-CFX is high. White
    dots are rows that the model scored, whatever their other features.

    Parameters
    ----------
    features : two names, optional
        By default the two most effective features.
    """
    return drawn(outcomes.surface_info(View.of(answer), features, which), ax)


def movements(answers: Sequence[Explanation], ax: Axes | None = None) -> Axes:
    """Draw which features move, how often and how far, over the best answers to many questions."""
    return drawn(movement_info(answers), ax)


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
    # A part of a figure names the whole; every figure names itself.
    figure: Any = picture if hasattr(picture, "savefig") else picture.figure.figure
    ending = os.path.splitext(os.fspath(path))[1].lower()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    write(figure, path, dpi=dpi, metadata=undated)
