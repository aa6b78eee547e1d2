"""Text and tables as self-contained HTML or Markdown, with all text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_STYLE = (
    ".bayescfx table{border-collapse:collapse;margin:.5em 0}"
    ".bayescfx td,.bayescfx th{padding:.2em .8em;text-align:right;border-bottom:1px solid #bbb}"
    ".bayescfx th[scope=row]{text-align:left}"
    ".bayescfx .last-left :is(td,th):last-child{text-align:left}"
    ".bayescfx .all-left :is(td,th){text-align:left}"
)


def paragraph(text: str) -> str:
    """Return a paragraph of HTML."""
    return f"<p>{escape(text)}</p>"


def table(
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    last_left: bool = False,
    all_left: bool = False,
) -> str:
    """Return a table of HTML; the first cell of a line is its heading.

    `last_left` aligns the last column to the left, for text; `all_left` aligns all of them so.
    """
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = ""
    for name, *texts in lines:
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
    kind = ' class="last-left"' if last_left else ""
    kind = ' class="all-left"' if all_left else kind
    return f"<table{kind}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def page(*parts: str) -> str:
    """Return parts of HTML as one block with its style."""
    return f'<div class="bayescfx"><style>{_STYLE}</style>{"".join(parts)}</div>'


def plain(text: str) -> str:
    """Return a text on one line with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", " ".join(text.split()))


def markdown(
    head: Sequence[str], lines: Sequence[Sequence[str]], *, last_left: bool = False
) -> str:
    """Return a table of Markdown; all columns but the first are aligned to the right.

    `last_left` aligns the last column to the left, for text.
    """
    sides = [":--", *["--:"] * (len(head) - 1)]
    if last_left:
        sides[-1] = ":--"
    escaped = [[plain(text) for text in line] for line in (head, *lines)]
    rows = [escaped[0], sides, *escaped[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
