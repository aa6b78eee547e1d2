"""A report as one HTML file: works offline, prints well, all text escaped, pictures inside."""

from __future__ import annotations

import base64
import datetime as dt
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from bayescfx.checks import check
from bayescfx.data.tables import cells_of
from bayescfx.data.values import same_cell
from bayescfx.plots.draw import drawn
from bayescfx.plots.info import changes as charts
from bayescfx.plots.info import outcomes
from bayescfx.plots.info.view import View
from bayescfx.plots.style import COLUMN, write
from bayescfx.result import markup, wording
from bayescfx.result.explanation import Explanation
from bayescfx.version import VERSION

_AXIS = '<path class="axis" d="M8 8H144"/>'


@dataclass(frozen=True)
class About:
    """What a report says of the question beside its answer."""

    title: str = "What would have to change?"
    output: wording.Output = wording.PREDICTION
    facts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Mapping[str, str], **given: Any) -> About:
        """Return what is known of an answer, with what is given instead."""
        further = given.pop("about") or {}
        texts = isinstance(further, Mapping) and all(isinstance(v, str) for v in further.values())
        check(texts, "about", "a dict of texts by name", further)
        for name, value in given.items():
            check(value is None or isinstance(value, str), name, "a text", value)
        facts = {**known, **further}
        if (column := facts.pop(wording.ID, None)) and "row" in facts:  # which names the rows
            facts = {column if name == "row" else name: text for name, text in facts.items()}
        named = {name: facts.pop(name) for name in ("title", "output", "unit") if name in facts}
        named |= {name: value for name, value in given.items() if value is not None}
        facts["date"] = facts.get("date", dt.date.today().isoformat())
        return cls(named.get("title", cls.title), wording.Output.of(named), facts)

    def head(self, mark: str = "") -> str:
        """Return the title, with a mark behind it, and what there is to know, as HTML."""
        told = {escape(str(name)): escape(text) for name, text in self.facts.items() if text}
        facts = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in told.items())
        return f'<h1>{escape(self.title)}{mark}</h1><dl class="facts">{facts}</dl>'


def page(about: About, parts: Iterable[str]) -> str:
    """Return a page of HTML; a list of answers can be filtered and sorted."""
    body, script = "\n".join(parts), f"<script>{_file('report.js')}</script>\n"
    return Template(_file("report.html")).substitute(
        title=escape(about.title),
        style=_file("report.css"),
        body=body,
        version=escape(VERSION),
        script=script if 'class="list"' in body else "",
    )


def _file(name: str) -> str:
    return files("bayescfx.plots").joinpath(name).read_text(encoding="utf-8")


def one(answer: Explanation, about: About) -> Iterable[str]:
    """Yield the parts of a report on one answer."""
    view = View.of(answer)
    infos = [charts.change_info(view, k, most=10**6) for k in range(len(answer.counterfactuals))]
    yield about.head(f" {badge(answer)}")
    yield from _lead(answer, infos[0].prediction, about)
    if answer.best.changes or len(infos) > 1:
        yield "<h2>What changes</h2>"
    for k, (info, found) in enumerate(zip(infos, answer.counterfactuals, strict=True)):
        if len(infos) > 1:
            missed = "" if found.valid else " (misses the target)"
            yield f"<h3>Answer {k + 1}{missed}</h3>"
        if found.changes:
            yield changes(info)
    if any(change.effect is not None for info in infos for change in info.changes):
        yield note(
            "The effect is what a change contributes, estimated from the rows that the model "
            f"scored. Effects add up to the change of the {about.output}. On the scales, the thick "
            "part is what was allowed."
        )
    yield _rest(answer)
    yield from _responses(view, about)
    yield _method(view)


def badge(answer: Explanation) -> str:
    """Return how an answer ended as a mark."""
    words = {"reached": "reached", "best_guess": "best guess", "unreachable": "out of reach"}
    kind = "already" if answer.reached and not answer.best.changes else answer.status
    return f'<span class="badge {kind}">{words.get(kind, "already as wanted")}</span>'


def _lead(answer: Explanation, found: charts.Prediction, about: About) -> Iterable[str]:
    now, then = (about.output.number(text) for text in found.texts)
    wish = about.output.number(wording.wish(answer.wanted))
    yield note(f"The {about.output} is {now}; wanted is {wish}.", "lead")
    if answer.best.changes:
        n = wording.count(answer.best.n_changes, "change")
        few = f": {wording.moves(answer.best.changes)}" if answer.best.n_changes <= 3 else ""
        yield note(f"With {n} it is {then}{few}.", "lead")
    yield markup.paragraph(answer.verdict)


def changes(info: charts.ChangeInfo) -> str:
    """Return what one answer changes as a table with scales and effects."""
    told, found = any(change.effect is not None for change in info.changes), info.prediction
    lines = ""
    for change in info.changes:
        effect, kind = change.effect_text, ""
        if change.derived:
            effect, kind = "follows", ' class="follows"'
        cells = change.before, change.after, *[effect] * told
        lines += f"<tr{kind}>{_line(named(change.name), _change(change), *cells)}</tr>"
    total, effects = [found.change] * told, '<th scope="col">effect</th>' * told
    foot = _line(escape(found.name), _prediction(found), *found.texts, *total)
    return (
        '<div class="wide"><table class="changes"><thead><tr><th></th><th scope="col">now</th>'
        f'<th scope="col">then</th><th class="scale"></th>{effects}'
        f"</tr></thead><tbody>{lines}</tbody><tfoot><tr>{foot}</tr></tfoot></table></div>"
    )


def _line(name: str, drawing: str, before: str, after: str, *effect: str) -> str:
    """Return a line of the table of changes; name and drawing are HTML."""
    first, second, *last = (f"<td>{escape(text)}</td>" for text in (before, after, *effect))
    scale = f'<td class="scale">{drawing}</td>'
    return f'<th scope="row">{name}</th>{first}{second}{scale}{"".join(last)}'


def _change(change: charts.Change) -> str:
    low, high = change.allowed
    may = f'<path class="may" d="M{_x(low)} 8H{_x(high)}"/>' * (change.ordered and high > low)
    levels = [f'<circle class="level" cx="{_x(at)}" cy="8" r="3"/>' for at in change.levels]
    return _scale([_AXIS, may, *levels], change.start, change.end, wraps=change.wraps)


def _prediction(found: charts.Prediction) -> str:
    band = '<rect class="band" x="{}" y="1" width="{:.1f}" height="14"/>'
    bands = [band.format(_x(low), max(136 * (high - low), 2)) for low, high in found.accepted]
    kind = ' class="hit"' if found.reached else ' class="missed"'
    return _scale([*bands, _AXIS], found.start, found.end, kind)


def _scale(
    parts: list[str], start: float, end: float, kind: str = "", *, wraps: bool = False
) -> str:
    """Return a scale with an arrow; the cells beside it say the same in words."""
    way = f"M{_x(start)} 8H{_x(end)}"
    if wraps:  # over the end of the circle and in at the other side
        ends = (2, 150) if start < end else (150, 2)
        way = f"M{_x(start)} 8H{ends[0]}M{ends[1]} 8H{_x(end)}"
    return (
        f'<svg{kind} width="152" height="16" aria-hidden="true">{"".join(parts)}'
        f'<path class="go" d="{way}"/><circle class="from" cx="{_x(start)}" cy="8" r="3.6"/>'
        f'<circle class="to" cx="{_x(end)}" cy="8" r="4.2"/></svg>'
    )


def _x(place: float) -> str:
    return f"{8 + 136 * place:.1f}"


def _rest(answer: Explanation) -> str:
    """Return what stays as it is, folded."""
    query = cells_of(answer.layout.table([list(answer.query)]))[0]
    others = cells_of(answer.rows)
    kept = [
        [str(name), wording.cell(query[j])]
        for j, name in enumerate(answer.layout.names)
        if all(same_cell(query[j], row[j]) for row in others)
    ]
    if not kept:
        return ""
    title = f"{wording.count(len(kept), 'column')} {'stay' if len(kept) > 1 else 'stays'} the same"
    return folded(title, f'<div class="wide">{markup.table(["", "value"], kept)}</div>')


def _responses(view: View, about: About) -> Iterable[str]:
    """Draw the prediction along the most effective changes."""
    names = [view.region.names[j] for j, _ in view.by_effect(0)[:3]]
    if not names or not outcomes.can_respond(view):
        return
    infos = [outcomes.response_info(view, name) for name in names]
    title = f"How the {about.output} responds"
    pictures = _pictures((info, f"The {about.output} over {info.name}") for info in infos)
    yield f'<section class="whole"><h2>{escape(title)}</h2>{pictures}</section>'
    yield note(
        "Estimated from the rows that the model scored (dots), all other features as they are now "
        "or as in the answer. The true value is expected inside the band."
    )


def _method(view: View) -> str:
    """Return how the answer was found, with the mathematics, folded."""
    answer = view.answer
    space = f"<h3>What was allowed</h3><pre>{escape(str(answer.space))}</pre>"
    infos: list[tuple[object, str]] = [
        (outcomes.convergence_info(answer), "Best potential after each row"),
        (outcomes.potential_info(answer), "Potential over the output"),
    ]
    if outcomes.can_respond(view) and len(view.region.free) > 1:
        surface = outcomes.surface_info(view)
        infos.append((surface, f"Map of the surrogate over {' and '.join(surface.names)}"))
    if len(answer.counterfactuals) > 1:
        infos.append((charts.alternatives_info(view), "The answers side by side"))
    words = note(
        "The potential says what an output is worth: 1 as wanted, 0 at worst. Between the rows "
        "that the model scored, a surrogate (a Gaussian process) stands in for it; bands are "
        "two of its standard deviations to either side. Effects are Shapley values: averages "
        "over the orders in which the changes can be made. In the map, lines enclose the "
        "target, and the cross is where a longer search would look next."
    )
    parts = [_facts(answer), space, "<h3>The search</h3>", _pictures(infos), words]
    return folded("How it was found, and the mathematics", "".join(parts))


def _facts(answer: Explanation) -> str:
    low, high = answer.reachable
    best = answer.best
    facts = {
        "rows that the model scored": str(answer.n_evaluations),
        "rows known of the model": str(len(answer.evaluations)),
        "outputs seen": f"{wording.number(low)} to {wording.number(high)}"
        if low <= high
        else "none",
        "accepted": wording.wish(answer.accepted),
        "distance of the answer": wording.number(best.cost),
        "method": answer.method,
        "seed": "none" if answer.seed is None else str(answer.seed),
        "ended because": wording.ENDINGS.get(answer.stopped, answer.stopped),
    }
    if best.plausibility is not None:
        facts["more usual than"] = f"{100 * best.plausibility:.0f} % of the data"
    return markup.table(["", ""], list(facts.items()))


def _pictures(infos: Iterable[tuple[object, str]]) -> str:
    """Return pictures beside each other, each with words for those who can't see it."""
    figures = ""
    for info, alt in infos:
        drawing: Any = drawn(info, detached=True).figure
        text = io.BytesIO()
        write(drawing, text, format="svg", dpi=200, metadata={"Date": None})
        source = base64.b64encode(text.getvalue()).decode("ascii")
        figures += (
            f'<figure><img width="{round(COLUMN * 140)}" alt="{escape(alt)}" '
            f'src="data:image/svg+xml;base64,{source}"></figure>'
        )
    return f'<div class="pair">{figures}</div>'


def named(name: str) -> str:
    """Return a feature's name, which may be broken at its underscores."""
    return escape(name).replace("_", "_<wbr>")


def folded(title: str, content: str) -> str:
    """Return a part of the page that opens on demand."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def note(text: str, kind: str = "note") -> str:
    """Return a paragraph, by default a remark in small type."""
    return f'<p class="{kind}">{escape(text)}</p>'
