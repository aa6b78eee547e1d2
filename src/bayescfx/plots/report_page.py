"""The parts of an HTML report: works offline, prints well, all text escaped, pictures inside."""

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
from bayescfx.plots.draw import drawn
from bayescfx.plots.info.changes import Change, ChangeInfo, Prediction
from bayescfx.plots.style import COLUMN, write
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.version import VERSION

_BADGES = {
    "reached": "reached",
    "best_guess": "best guess",
    "unreachable": "out of reach",
    "already": "already reached",
}
# A scale is an SVG image of 152 by 16 pixels: a line from LEFT to LEFT + WIDTH in the middle.
_LEFT = 8
_WIDTH = 136
_AXIS = f'<path class="axis" d="M{_LEFT} 8H{_LEFT + _WIDTH}"/>'

_NAMES: tuple[str, ...] = ("title", "output", "unit")  # facts that have their own place


@dataclass(frozen=True)
class About:
    """Title and facts of a report, and the name of the model's output."""

    title: str = "What would have to change?"
    output: wording.Output = wording.PREDICTION
    facts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        known: Mapping[str, str],
        about: Any = None,
        **given: Any,
    ) -> About:
        """Return the facts of a report.

        Parameters
        ----------
        known : dict of str to str
            `Explanation.about` of the answer.
        about : dict of str to str, optional
            Further facts.
        given : str, optional
            ``title``, ``output`` and ``unit``, in place of those in `known` and `about`.
        """
        about = {} if about is None else about
        _check_texts(about, given)
        facts = _with_id_column({**known, **about})
        names = {name: facts.pop(name) for name in _NAMES if name in facts}
        names |= {name: value for name, value in given.items() if value is not None}
        facts.setdefault("date", dt.date.today().isoformat())
        return cls(names.get("title", cls.title), wording.Output.of(names), facts)

    def head(self, mark: str = "") -> str:
        """Return title and facts as HTML; `mark` is HTML behind the title."""
        facts = ""
        for name, text in self.facts.items():
            if text:
                facts += f"<div><dt>{escape(str(name))}</dt><dd>{escape(text)}</dd></div>"
        return f'<h1>{escape(self.title)}{mark}</h1><dl class="facts">{facts}</dl>'


def _check_texts(about: Any, given: Mapping[str, Any]) -> None:
    """Raise unless all facts are texts; those that are `given` by name may be None."""
    good = isinstance(about, Mapping) and all(isinstance(v, str) for v in about.values())
    check(good, "about", "a dict of texts by name", about)
    for name, value in given.items():
        check(isinstance(value, str | None), name, "a text", value)


def _with_id_column(facts: dict[str, str]) -> dict[str, str]:
    """Return facts in which the row is named by the column that holds its label."""
    column = facts.pop(wording.ID, None)
    if not column or "row" not in facts:
        return facts
    return {column if name == "row" else name: text for name, text in facts.items()}


def page(about: About, parts: Iterable[str]) -> str:
    """Return a page of HTML; with a list of answers, it has a script to filter and sort it."""
    body = "\n".join(parts)
    has_list = 'class="list"' in body
    script = f"<script>{_file('report.js')}</script>\n" if has_list else ""
    return Template(_file("report.html")).substitute(
        title=escape(about.title),
        style=_file("report.css"),
        body=body,
        version=escape(VERSION),
        script=script,
    )


def _file(name: str) -> str:
    """Return the text of a file of this package."""
    return files("bayescfx.plots").joinpath(name).read_text(encoding="utf-8")


def badge(answer: Explanation) -> str:
    """Return the status of an answer as a mark."""
    kind: str = answer.status
    if answer.reached and not answer.best.changes:
        kind = "already"
    return f'<span class="badge {kind}">{_BADGES[kind]}</span>'


def change_table(info: ChangeInfo) -> str:
    """Return the changes of one counterfactual as a table with scales and effects."""
    has_effects = info.has_effects
    lines = ""
    for change in info.changes:
        kind = ' class="follows"' if change.derived else ""
        effect = "follows" if change.derived else change.effect_text
        cells = [change.before, change.after]
        name = named(change.name)
        if change.derived and not has_effects:
            name += " follows"
        line = _change_line(name, _change_scale(change), cells, effect, has_effects)
        lines += f"<tr{kind}>{line}</tr>"
    prediction = info.prediction
    scale = _prediction_scale(prediction)
    foot = _change_line(
        escape(prediction.name), scale, prediction.texts, prediction.change, has_effects
    )
    effect_head = '<th scope="col">effect</th>' if has_effects else ""
    return (
        '<div class="wide"><table class="changes"><thead><tr><th></th><th scope="col">now</th>'
        f'<th scope="col">then</th><th class="scale"></th>{effect_head}'
        f"</tr></thead><tbody>{lines}</tbody><tfoot><tr>{foot}</tr></tfoot></table></div>"
    )


def _change_line(
    name: str, scale: str, texts: Iterable[str], effect: str, has_effects: bool
) -> str:
    """Return the cells of a line; `name` and `scale` are HTML, `texts` are before and after."""
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    last = f"<td>{escape(effect)}</td>" if has_effects else ""
    return f'<th scope="row">{name}</th>{cells}<td class="scale">{scale}</td>{last}'


def _change_scale(change: Change) -> str:
    """Return the scale of a feature: the allowed range, its levels, and an arrow."""
    parts = [_AXIS]
    low, high = change.allowed
    if change.ordered and high > low:
        parts.append(f'<path class="may" d="M{_x(low)} 8H{_x(high)}"/>')
    for place in change.levels:
        parts.append(f'<circle class="level" cx="{_x(place)}" cy="8" r="3"/>')
    return _scale(parts, change.start, change.end, wraps=change.wraps)


def _prediction_scale(prediction: Prediction) -> str:
    """Return the scale of the output: the accepted outputs as bands, and an arrow."""
    parts = []
    for low, high in prediction.accepted:
        width = max(_WIDTH * (high - low), 2)
        parts.append(f'<rect class="band" x="{_x(low)}" y="1" width="{width:.1f}" height="14"/>')
    kind = ' class="hit"' if prediction.reached else ' class="missed"'
    return _scale([*parts, _AXIS], prediction.start, prediction.end, kind)


def _scale(
    parts: list[str], start: float, end: float, kind: str = "", *, wraps: bool = False
) -> str:
    """Return a scale with an arrow; hidden from screen readers, as the cells say the same."""
    path = f"M{_x(start)} 8H{_x(end)}"
    if wraps:  # over the end of the circle and in at the other side
        leave, enter = (2, 150) if start < end else (150, 2)
        path = f"M{_x(start)} 8H{leave}M{enter} 8H{_x(end)}"
    return (
        f'<svg{kind} width="152" height="16" aria-hidden="true">{"".join(parts)}'
        f'<path class="go" d="{path}"/><circle class="from" cx="{_x(start)}" cy="8" r="3.6"/>'
        f'<circle class="to" cx="{_x(end)}" cy="8" r="4.2"/></svg>'
    )


def _x(place: float) -> str:
    """Return the pixel of a place, 0 to 1, on a scale."""
    return f"{_LEFT + _WIDTH * place:.1f}"


def pictures(infos: Iterable[tuple[object, str]]) -> str:
    """Return pictures side by side; `infos` are their numbers and their alternative texts."""
    figures = ""
    for info, alt in infos:
        figure: Any = drawn(info, detached=True).figure
        content = io.BytesIO()
        write(figure, content, format="svg", dpi=200, metadata={"Date": None})
        source = base64.b64encode(content.getvalue()).decode("ascii")
        figures += (
            f'<figure><img width="{round(COLUMN * 140)}" alt="{escape(alt)}" '
            f'src="data:image/svg+xml;base64,{source}"></figure>'
        )
    return f'<div class="pair">{figures}</div>'


def named(name: str) -> str:
    """Return a feature's name as HTML that may break at its underscores."""
    return escape(name).replace("_", "_<wbr>")


def folded(title: str, content: str) -> str:
    """Return a part of the page that opens on demand; `content` is HTML."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def note(text: str, kind: str = "note") -> str:
    """Return a paragraph, by default a remark in small type."""
    return f'<p class="{kind}">{escape(text)}</p>'
