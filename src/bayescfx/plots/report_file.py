"""Write a report to a file: an HTML page, or a PDF of pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bayescfx.errors import SettingsError
from bayescfx.plots.draw import DRAWINGS
from bayescfx.plots.info.changes import ChangeInfo, MovementInfo, change_info, movement_info
from bayescfx.plots.info.outcomes import convergence_info, potential_info
from bayescfx.plots.info.view import View
from bayescfx.plots.report_many import many
from bayescfx.plots.report_one import one
from bayescfx.plots.report_page import About, page
from bayescfx.plots.style import COLUMN, GREY, broken, matplotlib, styled
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations

# A sheet of A4, in inches.
_WIDE = 8.27
_HIGH = 11.69
_EDGE = 0.6
_LINE = 0.15  # height of a line of a caption


def report(
    answer: Explanation | Explanations,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    output: str | None = None,
    unit: str | None = None,
    about: dict[str, str] | None = None,
) -> None:
    """Write an answer, or several, as a self-contained file; an existing file is replaced.

    Parameters
    ----------
    answer : Explanation or Explanations
        What to report on.
    path : str or path
        Ends in ``.html`` for a page, in ``.pdf`` for pictures on sheets of paper.
    title : str, optional
        The title of the report.
    output : str, optional
        The name of the model's output; by default "prediction".
    unit : str, optional
        The unit of the output.
    about : dict of str to str, optional
        Further facts for the reader, as ``{"model": "rates.onnx", "row": "4711"}``; they are added
        to the answer's own `about`. The date is today's; ``{"date": ""}`` leaves it out.
    """
    first = answer if isinstance(answer, Explanation) else next(iter(answer), None)
    known = {} if first is None else dict(answer.about)
    if isinstance(answer, Explanations):
        known.pop("row", None)  # that of the first answer only
    facts = About.of(known, about, title=title, output=output, unit=unit)
    answer = _with_output(answer, facts.output)
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".pdf":
        _write_pdf(answer, facts, path)
    elif ending in (".html", ".htm"):
        Path(path).write_text(as_html(answer, facts), encoding="utf-8")
    else:
        raise SettingsError(f"`path` must end in .html or .pdf; got {os.fspath(path)!r}.")


def _with_output(answer: Explanation | Explanations, output: wording.Output) -> Any:
    """Return one or several answers whose texts and pictures use this name of the output."""
    if isinstance(answer, Explanations):
        return Explanations([_with_output(each, output) for each in answer], answer.index)
    return replace(answer, about={**answer.about, "output": output.name, "unit": output.unit})


def as_html(answer: Explanation | Explanations, about: About | None = None) -> str:
    """Return the report as HTML."""
    about = About() if about is None else about
    if isinstance(answer, Explanation):
        return page(about, one(answer, about))
    return page(about, many(answer, about))


def _write_pdf(answer: Explanation | Explanations, about: About, path: Any) -> None:
    """Write pictures on sheets of A4, in two columns."""
    backend = matplotlib("matplotlib.backends.backend_pdf").PdfPages
    with styled(), backend(path, metadata={"CreationDate": None, "Title": about.title}) as pdf:
        booklet = _Booklet(pdf)
        booklet.add_head(about)
        for caption, info in _pictures(answer, about):
            booklet.add_picture(caption, info)
        booklet.close()


@dataclass(eq=False)
class _Booklet:
    """Sheets of a PDF that are filled from top to bottom, in two columns."""

    pdf: Any
    sheet: Any = field(init=False)
    top: float = field(init=False)  # where columns begin, in inches from above
    column: int = field(init=False)  # 0 or 1
    y: float = field(init=False)  # where the next picture begins

    def __post_init__(self) -> None:
        self._start_sheet()

    def _start_sheet(self) -> None:
        """Begin a new sheet."""
        figure = matplotlib("matplotlib.figure").Figure
        self.sheet = figure(figsize=(_WIDE, _HIGH))
        self.column = 0
        self.top = _EDGE
        self.y = _EDGE

    def close(self) -> None:
        """Write the last sheet."""
        self.pdf.savefig(self.sheet)

    def add_head(self, about: About) -> None:
        """Write title and facts above the columns."""
        facts = "   ".join(f"{name}: {text}" for name, text in about.facts.items() if text)
        first, *rest = [*broken(about.title, 70), *broken(facts, 110)]
        self._text(_EDGE, _EDGE, first, fontsize=14, weight="bold")
        self._text(_EDGE, _EDGE + 0.35, "\n".join(rest), color=GREY)
        self.top = _EDGE + 0.75 + _LINE * (1 + len(rest))
        self.y = self.top

    def add_picture(self, caption: str, info: object) -> None:
        """Draw a picture with its caption in the next free place."""
        draw, height_of = DRAWINGS[type(info)]
        lines = broken(caption, 58)[:4]
        height = min(height_of(info), _HIGH - 3 * _EDGE)
        self._make_room(height + _LINE * len(lines) + 0.35)
        x = _EDGE + self.column * (_WIDE - COLUMN - 2 * _EDGE)
        self._text(x, self.y, "\n".join(lines), fontsize=7.5, linespacing=1.2)
        self.y += _LINE * len(lines) + 0.05
        draw(info, self.sheet.add_axes(self._box(info, x, height)))
        self.y += height + 0.3

    def _make_room(self, height: float) -> None:
        """Go on in the next column, or on a new sheet, if there is less room."""
        if self.y + height > _HIGH - _EDGE:
            self.column += 1
            self.y = self.top
        if self.column == 2:
            self.pdf.savefig(self.sheet)
            self._start_sheet()

    def _box(self, info: object, x: float, height: float) -> tuple[float, float, float, float]:
        """Return the place of the axes as shares of the sheet, with room for their labels."""
        left = {ChangeInfo: 0.0, MovementInfo: 1.35}.get(type(info), 0.55)
        has_foot = not isinstance(info, ChangeInfo)
        foot = 0.4 if has_foot else 0.0
        inner_height = height - foot - (_LINE if has_foot else 0.0)
        bottom = _HIGH - self.y - height + foot
        return (
            (x + left) / _WIDE,
            bottom / _HIGH,
            (COLUMN - left) / _WIDE,
            inner_height / _HIGH,
        )

    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a text at inches from the left and from above."""
        self.sheet.text(x / _WIDE, 1 - y / _HIGH, text, va="top", **style)


def _pictures(answer: Explanation | Explanations, about: About) -> Iterator[tuple[str, object]]:
    """Yield captions, and the numbers of pictures."""
    if isinstance(answer, Explanation):
        view = View.of(answer)
        for k, counterfactual in enumerate(answer.counterfactuals):
            yield (
                f"{k + 1}. {wording.moves(counterfactual.changes, counterfactual.follows)}",
                change_info(view, k),
            )
        yield "How the search went", convergence_info(answer)
        yield f"Potential of each {about.output}", potential_info(answer)
        return
    yield f"{answer.counted()}. What moves:", movement_info(answer)
    for label, each in zip(answer.index, answer, strict=True):
        if each.best.changes:
            status = "" if each.reached else f" ({each.status.replace('_', ' ')})"
            yield f"{wording.label(label)}{status}", change_info(View.bare(each))
