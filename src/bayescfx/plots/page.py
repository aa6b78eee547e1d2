"""A report as one HTML file: works offline, prints well, all text escaped, pictures inside."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from bayescfx.plots.draw import drawn
from bayescfx.plots.info.changes import change_info, movement_info
from bayescfx.plots.info.outcomes import convergence_info, potential_info
from bayescfx.plots.info.responses import can_respond, response_info, surface_info
from bayescfx.plots.info.view import View
from bayescfx.plots.style import COLUMN, write
from bayescfx.result import markup, wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.tables import cells_of
from bayescfx.values import same_cell
from bayescfx.version import VERSION

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: #222; background: #fff; max-width: 60rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; padding-top: .8rem;
  border-top: 1px solid #dadde0; }
p { margin: .4rem 0; max-width: 46rem; }
.lead { font-size: 1.15rem; }
.note, figcaption, footer { color: #595959; font-size: .875rem; }
.badge { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-size: .85rem;
  font-weight: 600; border: 1.5px solid; vertical-align: .2em; margin-left: .5rem; }
.reached { color: #00664b; } .best_guess { color: #9c4400; } .unreachable { color: #9c4400; }
figure { margin: .8rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; display: block; }
.pair { display: flex; flex-wrap: wrap; gap: .5rem 2rem; align-items: flex-start; }
.pair figure { flex: 1 1 20rem; max-width: 30rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .93rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid #dadde0;
  vertical-align: top; }
th[scope=row], th:first-child { text-align: left; font-weight: 600; }
td { overflow-wrap: anywhere; }
.many td { white-space: nowrap; }
.many th:nth-child(2), .many td:nth-child(2), .many th:nth-child(6), .many td:nth-child(6) {
  text-align: left; }
.many td:nth-child(6) { white-space: normal; min-width: 14rem; }
tr { break-inside: avoid; }
pre { background: #f5f6f7; padding: .7rem 1rem; overflow-x: auto; font-size: .82rem;
  line-height: 1.4; border-radius: 4px; }
@media print {
  body { margin: 0; max-width: none; font-size: 10.5pt; }
  h2 { break-after: avoid; }
  .whole { break-inside: avoid; }
  table { font-size: 9pt; }
  th, td { padding-top: .1rem; padding-bottom: .1rem; }
  pre { white-space: pre-wrap; }
}
"""


def report(answer: Explanation | Explanations, path: str | os.PathLike[str]) -> None:
    """Write an answer, or several, as one HTML file that needs nothing else; an old one goes."""
    Path(path).write_text(page(answer), encoding="utf-8")


def page(answer: Explanation | Explanations) -> str:
    """Return the report as HTML."""
    body = _one(answer) if isinstance(answer, Explanation) else _many(answer)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>What would have to change?</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + '\n<footer><p class="note">This explains the model, not the world: whether the changes '
        "would have these consequences in reality is not known. Made by bayescfx "
        f"{escape(VERSION)}.</p></footer>\n</body>\n</html>\n"
    )


def _figure(info: object, alt: str, caption: str = "") -> str:
    """Return a picture as an element of the page; `alt` says it to those who can't see it."""
    drawing: Any = drawn(info, detached=True).figure
    text = io.BytesIO()
    write(drawing, text, format="svg", metadata={"Date": None})
    source = base64.b64encode(text.getvalue()).decode("ascii")
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><img width="{round(COLUMN * 140)}" alt="{escape(alt)}" '
        f'src="data:image/svg+xml;base64,{source}">{below}</figure>'
    )


def _one(answer: Explanation) -> Iterable[str]:
    view = View.of(answer)
    yield f"<h1>What would have to change?{_badge(answer)}</h1>"
    yield from _lead(answer)
    yield "<h2>What changes</h2>"
    several = len(answer.counterfactuals) > 1
    charts = [
        _figure(
            change_info(view, k), wording.moves(c.changes), f"Answer {k + 1}" if several else ""
        )
        for k, c in enumerate(answer.counterfactuals)
    ]
    yield _pair(charts)
    yield _p(
        "Each line is a feature on its own scale; the thick part is what was allowed. Effects are "
        "what each change contributes to the prediction, estimated from the rows that the model "
        "scored; they sum up to the whole change.",
        "note",
    )
    yield _rows(answer)
    yield from _responses(view)
    course = _figure(convergence_info(answer), "Best potential after each row")
    worth = _figure(potential_info(answer), "Potential over the prediction")
    yield _whole("How the search went", [course, worth])
    yield "<h2>What was allowed</h2>"
    yield f"<pre>{escape(str(answer.space))}</pre>"
    yield "<h2>How it was found</h2>"
    yield _facts(answer)


def _badge(answer: Explanation) -> str:
    words = {"reached": "reached", "best_guess": "best guess", "unreachable": "out of reach"}
    return f'<span class="badge {answer.status}">{words[answer.status]}</span>'


def _lead(answer: Explanation) -> Iterable[str]:
    best = answer.best
    wish = wording.wish(answer.wanted)
    yield _p(f"The model says {wording.number(answer.output)}; wanted is {wish}.", "lead")
    moved = wording.moves(best.changes)
    yield _p(f"{moved}: the model then says {wording.number(best.output)}.", "lead")
    yield _p(answer.verdict)


def _responses(view: View) -> Iterable[str]:
    """Draw the surrogate along the most effective changes, and over two of them."""
    if not can_respond(view):
        return
    names = [view.region.names[j] for j, _ in view.by_effect(0)[:3]]
    infos = [response_info(view, name) for name in names or [None]]
    parts = [_figure(info, f"Response of the prediction to {info.name}") for info in infos]
    if len(view.region.free) > 1:
        surface = surface_info(view)
        alt = f"Map of the prediction over {' and '.join(surface.names)}"
        parts.append(_figure(surface, alt))
    yield _whole("How the prediction responds", parts)
    yield _p(
        "Estimated from the rows that the model scored (dots), all other features as in the query "
        "or as in the answer. Bands are two standard deviations to either side. In the map, lines "
        "enclose the target, and the cross is where a longer search would look next.",
        "note",
    )


def _rows(answer: Explanation) -> str:
    """Return query and counterfactuals, whole rows, changed cells marked."""
    found = answer.counterfactuals
    query = cells_of(answer.layout.table([list(answer.query)]))[0]
    others = cells_of(answer.rows)
    titles = ["answer"] if len(found) == 1 else [f"answer {k + 1}" for k in range(len(found))]
    lines = [
        [str(name), wording.cell(query[j]), *(_cell(query[j], row[j]) for row in others)]
        for j, name in enumerate(answer.layout.names)
    ]
    lines.append(wording.changed(answer)[-1])
    lines.append(["valid", "", *("yes" if c.valid else "no" for c in found)])
    lines.append(["cost", "", *(wording.number(c.cost) for c in found)])
    return f'<div class="wide">{markup.table(["", "query", *titles], lines)}</div>'


def _cell(before: Any, after: Any) -> str:
    return "·" if same_cell(before, after) else wording.both(before, after)[1]


def _facts(answer: Explanation) -> str:
    low, high = answer.reachable
    facts = {
        "rows of the model used": str(answer.n_evaluations),
        "rows known of the model": str(len(answer.evaluations)),
        "outputs seen": f"{wording.number(low)} to {wording.number(high)}",
        "accepted": wording.wish(answer.accepted),
        "method": answer.method,
        "seed": "none" if answer.seed is None else str(answer.seed),
        "ended because": wording.ENDINGS.get(answer.stopped, answer.stopped),
    }
    return markup.table(["", ""], list(facts.items()))


def _many(answers: Explanations, most: int = 20) -> Iterable[str]:
    """Report on many answers, each of the first `most` in a section of its own."""
    reached = sum(answer.reached for answer in answers)
    yield f"<h1>{escape(wording.count(len(answers), 'answer'))}, {reached} reached</h1>"
    if len(answers):
        columns = ["status", "output", "wanted", "best_output", "changes"]
        lines = wording.lines(answers.summary()[[*columns, "n_evaluations"]])
        yield f'<div class="wide many">{markup.table(["query", *columns, "rows"], lines)}</div>'
        yield _figure(movement_info(answers), "Which features move how often and how far")
    for i, answer in enumerate(answers[:most]):
        yield f"<h2>Query {i}{_badge(answer)}</h2>"
        yield from _lead(answer)
        yield _figure(change_info(View.of(answer)), wording.moves(answer.best.changes))
    if len(answers) > most:
        yield _p(f"… and {len(answers) - most} more in the table above.", "note")


def _pair(parts: Iterable[str]) -> str:
    return f'<div class="pair">{"".join(parts)}</div>'


def _whole(title: str, parts: Iterable[str]) -> str:
    """Return a section that is printed on one page."""
    return f'<section class="whole"><h2>{escape(title)}</h2>{_pair(parts)}</section>'


def _p(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else markup.paragraph(text)
