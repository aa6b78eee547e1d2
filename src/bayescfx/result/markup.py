"""An answer as HTML or Markdown that needs nothing else, all text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_STYLE = (
    ".bayescfx table{border-collapse:collapse;margin:.5em 0}"
    ".bayescfx td,.bayescfx th{padding:.2em .8em;text-align:right;border-bottom:1px solid #bbb}"
    ".bayescfx th[scope=row]{text-align:left}"
    ".bayescfx .last-left :is(td,th):last-child{text-align:left}"
)


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def table(head: Sequence[str], lines: Sequence[Sequence[str]], *, last_left: bool = False) -> str:
    """Return a table whose first column names its lines; the last may be text, left-aligned."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = ""
    for name, *cells in lines:
        rest = "".join(f"<td>{escape(text)}</td>" for text in cells)
        body += f'<tr><th scope="row">{escape(name)}</th>{rest}</tr>'
    kind = ' class="last-left"' if last_left else ""
    return f"<table{kind}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def page(*parts: str) -> str:
    """Return the parts as one block with its own style."""
    return f'<div class="bayescfx"><style>{_STYLE}</style>{"".join(parts)}</div>'


def plain(text: str) -> str:
    """Return a text of which Markdown takes nothing for its own."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", " ".join(text.split()))


def markdown(
    head: Sequence[str], lines: Sequence[Sequence[str]], *, last_left: bool = False
) -> str:
    """Return a table in Markdown: names on the left, the rest right but perhaps the last column."""
    sides = [":--", *["--:"] * (len(head) - 1)]
    if last_left:
        sides[-1] = ":--"
    rows = [map(plain, head), sides, *(map(plain, line) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
