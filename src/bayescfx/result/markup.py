"""An answer as HTML that needs nothing else: no script, no files, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = (
    ".bayescfx table{border-collapse:collapse;margin:.5em 0}"
    ".bayescfx td,.bayescfx th{padding:.2em .8em;text-align:right;border-bottom:1px solid #bbb}"
    ".bayescfx th[scope=row]{text-align:left}"
    ".bayescfx .last-left :is(td,th):last-child{text-align:left}"
)


def paragraph(text: str) -> str:
    """Return a paragraph of plain text.

    Examples
    --------
    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{escape(text)}</p>"


def table(head: Sequence[str], lines: Sequence[Sequence[str]], *, last_left: bool = False) -> str:
    """Return a table whose first column names its lines.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    lines : sequence of sequence of str
        One line each, as long as `head`.
    last_left : bool, default False
        The last column is text, from left to right.

    Examples
    --------
    >>> "&lt;i&gt;" in table(["", "now"], [["<i>", "1"]])
    True
    """
    titles = "".join(f'<th scope="col">{escape(t)}</th>' for t in head)
    body = "".join(_line(line) for line in lines)
    kind = ' class="last-left"' if last_left else ""
    return f"<table{kind}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _line(cells: Sequence[str]) -> str:
    name = f'<th scope="row">{escape(cells[0])}</th>'
    rest = "".join(f"<td>{escape(text)}</td>" for text in cells[1:])
    return f"<tr>{name}{rest}</tr>"


def page(*parts: str) -> str:
    """Return the parts as one block with its own style."""
    return f'<div class="bayescfx"><style>{_STYLE}</style>{"".join(parts)}</div>'
