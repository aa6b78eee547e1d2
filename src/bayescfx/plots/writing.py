"""Reports as files: a page of HTML, or a PDF of pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayescfx.errors import SettingsError
from bayescfx.plots.draw import DRAWINGS
from bayescfx.plots.info.changes import ChangeInfo, MovementInfo, change_info, movement_info
from bayescfx.plots.info.outcomes import convergence_info, potential_info
from bayescfx.plots.info.view import View
from bayescfx.plots.many import many
from bayescfx.plots.page import About, one, page
from bayescfx.plots.style import COLUMN, GREY, broken, matplotlib, styled
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations


def report(
    answer: Explanation | Explanations,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    output: str | None = None,
    unit: str | None = None,
    about: dict[str, str] | None = None,
) -> None:
    """Write an answer, or several, as a file that needs nothing else; an old one goes.

    Parameters
    ----------
    answer : Explanation or Explanations
        What to report on.
    path : str or path
        A page ends in ``.html``, pictures on sheets of paper in ``.pdf``.
    title : str, optional
        What stands above it.
    output : str, optional
        What the model's output is called; by default "prediction".
    unit : str, optional
        The output's unit.
    about : dict of str to str, optional
        What else a reader should know, as ``{"model": "rates.onnx", "row": "4711"}``; it is added
        to the answer's own `about`. The date is today's; ``{"date": ""}`` leaves it out.
    """
    first = answer if isinstance(answer, Explanation) else next(iter(answer), None)
    known = {} if first is None else dict(first.about)
    if isinstance(answer, Explanations):
        known.pop("row", None)  # of the first answer
    told = About.of(known, title=title, output=output, unit=unit, about=about)
    answer = _named(answer, told.output)
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".pdf":
        _booklet(answer, told, path)
    elif ending in (".html", ".htm"):
        Path(path).write_text(as_html(answer, told), encoding="utf-8")
    else:
        raise SettingsError(f"`path` must end in .html or .pdf; got {os.fspath(path)!r}.")


def _named(answer: Explanation | Explanations, output: wording.Output) -> Any:
    """Return an answer, or several, whose words and pictures call the output so."""
    if isinstance(answer, Explanations):
        return Explanations([_named(each, output) for each in answer], answer.index)
    return replace(answer, about={**answer.about, "output": output.name, "unit": output.unit})


def as_html(answer: Explanation | Explanations, about: About | None = None) -> str:
    """Return the report as HTML."""
    about = About() if about is None else about
    if isinstance(answer, Explanation):
        return page(about, one(answer, about))
    return page(about, many(answer, about))


def _booklet(answer: Explanation | Explanations, about: About, path: Any) -> None:
    """Write pictures on sheets of A4, in two columns."""
    figure = matplotlib("matplotlib.figure").Figure
    backend = matplotlib("matplotlib.backends.backend_pdf").PdfPages
    wide, high, edge = 8.27, 11.69, 0.6  # inches
    with styled(), backend(path, metadata={"CreationDate": None, "Title": about.title}) as pdf:
        sheet = figure(figsize=(wide, high))
        facts = "   ".join(f"{name}: {text}" for name, text in about.facts.items() if text)
        head = [*broken(about.title, 70), *broken(facts, 110)]
        sheet.text(edge / wide, 1 - edge / high, head[0], fontsize=14, weight="bold", va="top")
        below = "\n".join(head[1:])
        sheet.text(edge / wide, 1 - (edge + 0.35) / high, below, color=GREY, va="top")
        top = edge + 0.75 + 0.15 * len(head)
        column, y = 0, top
        for words, info in _pictures(answer, about):
            draw, tall = DRAWINGS[type(info)]
            caption = broken(words, 58)[:4]
            height = min(tall(info), high - 3 * edge)
            if y + height + 0.15 * len(caption) + 0.35 > high - edge:
                column, y = column + 1, top
            if column == 2:
                pdf.savefig(sheet)
                sheet, column, top, y = figure(figsize=(wide, high)), 0, edge, edge
            x = edge + column * (wide - COLUMN - 2 * edge)
            below = "\n".join(caption)
            sheet.text(x / wide, 1 - y / high, below, va="top", fontsize=7.5, linespacing=1.2)
            y += 0.15 * len(caption) + 0.05
            left = {ChangeInfo: 0.0, MovementInfo: 1.35}.get(type(info), 0.55)
            foot = 0.0 if isinstance(info, ChangeInfo) else 0.4
            place, size = x + left, (COLUMN - left, height - foot - 0.15 * bool(foot))
            bottom = high - y - height + foot
            box = (place / wide, bottom / high, size[0] / wide, size[1] / high)
            draw(info, sheet.add_axes(box))
            y += height + 0.3
        pdf.savefig(sheet)


def _pictures(answer: Explanation | Explanations, about: About) -> Iterator[tuple[str, Any]]:
    """Yield captions, and pictures as numbers."""
    if isinstance(answer, Explanation):
        view = View.of(answer)
        for k, found in enumerate(answer.counterfactuals):
            yield f"{k + 1}. {wording.moves(found.changes)}", change_info(view, k)
        yield "How the search went", convergence_info(answer)
        yield f"What each {about.output} is worth", potential_info(answer)
        return
    yield f"{answer.counted()}. What moves:", movement_info(answer)
    for label, each in zip(answer.index, answer, strict=True):
        if each.best.changes:
            word = "" if each.reached else f" ({each.status.replace('_', ' ')})"
            yield f"{wording.label(label)}{word}", change_info(View.bare(each))
