"""A report on many answers: how often what moves, and a list to filter and to sort."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from html import escape

from bayescfx.plots.info.changes import change_info
from bayescfx.plots.info.view import View
from bayescfx.plots.page import About, badge, changes, folded, named, note
from bayescfx.result import markup, wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations


def many(answers: Explanations, about: About, most: int = 1000) -> Iterable[str]:
    """Yield the parts of a report on many answers; of those that change, `most` are listed."""
    labelled = list(zip(map(wording.label, answers.index), answers, strict=True))
    moved = [pair for pair in labelled if pair[1].best.changes]
    still = [pair for pair in labelled if not pair[1].best.changes]
    met, stuck = ([pair for pair in still if pair[1].reached is hit] for hit in (True, False))
    yield about.head()
    yield _tiles(answers, len(met))
    if moved:
        yield "<h2>What moves</h2>"
        yield _moves(answers, len(moved))
        yield "<h2>The answers</h2>"
        yield _list(moved[:most], answers, about)
    if len(moved) > most:
        yield note(f"… and {len(moved) - most} more, which only tables hold.")
    yield _folded("already as wanted", met, about)
    yield _folded("for which no change comes nearer", stuck, about)


def _tiles(answers: Explanations, met: int) -> str:
    ended = Counter(answer.status for answer in answers)
    found = {"asked": len(answers), "reached": ended["reached"] - met, "already as wanted": met}
    found |= {"best guess": ended["best_guess"], "out of reach": ended["unreachable"]}
    shown = [(word, n) for word, n in found.items() if n or word in ("asked", "reached")]
    tiles = "".join(f"<div><b>{n}</b><span>{word}</span></div>" for word, n in shown)
    return f'<div class="tiles">{tiles}</div>'


def _moves(answers: Explanations, n: int) -> str:
    """Return how often and how far each feature moves, as a table with bars."""
    lines, moves = "", answers.importance().query("times > 0")
    levels = bool((moves["transitions"] != "").any())
    for told in moves.to_dict("records"):
        share = f'<span class="bar"><i style="width:{100 * told["share"]:.0f}%"></i></span>'
        cells = [f"{share}<b>{_share(told['share'])}</b>", *map(_share, (told["up"], told["down"]))]
        cells.append("" if math.isnan(told["median"]) else wording.number(told["median"]))
        lines += f'<tr><th scope="row">{named(str(told["feature"]))}</th>'
        lines += "".join(f"<td>{cell}</td>" for cell in cells)
        lines += f'<td class="left">{escape(told["transitions"])}</td>' * levels + "</tr>"
    heads = ("moves in", "up", "down", "median move")
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    head += '<th scope="col" class="left">from → to</th>' * levels
    return (
        f'<div class="wide"><table class="moves"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        + note(f"Of the {wording.count(n, 'answer')} that change anything.")
    )


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _list(pairs: list[tuple[str, Explanation]], answers: Explanations, about: About) -> str:
    """Return a line per answer, which opens to its changes."""
    name = "query" if answers.index.name is None else str(answers.index.name)
    wishes = {wording.wish(answer.wanted) for _, answer in pairs}
    heads = [name, "now", "then", *["wanted"] * (len(wishes) > 1), "changes", "status"]
    left = ("changes", "status")
    head = "".join(
        f'<th scope="col"{" class=left" * (text in left)}>{escape(text)}</th>' for text in heads
    )
    outputs = [y for _, answer in pairs for y in (answer.output, answer.best.output)]
    span = max(outputs) - min(outputs)
    decimals = max(0, 3 - math.floor(math.log10(span))) if span > 0 else 3  # four digits of it
    number = f".{decimals}f" if decimals <= 6 else ".8g"
    body = "".join(_line(label, a, len(wishes) > 1, number) for label, a in pairs)
    unit = about.output.unit
    wanted = "" if len(wishes) > 1 else f", wanted {about.output.number(wishes.pop())}"
    return (
        f'<div class="wide"><table class="list"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        + note(f"now, then: {about.output}{f' in {unit}' * bool(unit)}{wanted}.")
    )


def _line(label: str, answer: Explanation, wanted: bool, number: str) -> str:
    info = change_info(View.bare(answer), most=10**6)
    outputs = answer.output, answer.best.output
    cells = "".join(f'<td data-key="{y!r}">{y:{number}}</td>' for y in outputs)
    cells += f"<td>{escape(wording.wish(answer.wanted))}</td>" * wanted
    told = folded(wording.moves(answer.best.changes), changes(info))
    return (
        f'<tr data-status="{answer.status.replace("_", " ")}"><th scope="row">{escape(label)}</th>'
        f'{cells}<td class="left" data-key="{answer.best.n_changes}">{told}</td>'
        f'<td class="left">{badge(answer)}</td></tr>'
    )


def _folded(title: str, pairs: list[tuple[str, Explanation]], about: About) -> str:
    """Return answers without a change in one folded table."""
    if not pairs:
        return ""
    lines = [
        [label, wording.number(a.output), wording.wish(a.wanted), *[a.verdict] * (not a.reached)]
        for label, a in pairs
    ]
    heads = ["", about.output.label, "wanted", "why"][: len(lines[0])]
    return folded(f"{len(pairs)} {title}", f'<div class="wide">{markup.table(heads, lines)}</div>')
