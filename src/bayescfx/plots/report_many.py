"""A report on many answers: which features move, and a list to filter and sort."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from html import escape
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from bayescfx import markup
from bayescfx.plots.info.changes import ALL_CHANGES, change_info
from bayescfx.plots.info.view import View
from bayescfx.plots.report_page import About, badge, change_table, folded, named, note
from bayescfx.result import answer_text, wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations

Labelled: TypeAlias = tuple[str, Explanation]  # the label of a query, and its answer


def many(answers: Explanations, about: About, most: int = 1000) -> Iterable[str]:
    """Yield the parts of a report on many answers; at most `most` answers are listed."""
    groups: dict[str, list[Labelled]] = defaultdict(list)
    for label, answer in zip(answers.index, answers, strict=True):
        groups[_group(answer)].append((wording.label(label), answer))
    changing = groups["changing"]
    yield about.head()
    yield _tiles(answers, len(groups["already"]))
    if changing:
        yield "<h2>What moves</h2>"
        yield _move_table(answers, len(changing))
        yield "<h2>The answers</h2>"
        yield _answer_list(changing[:most], answers.index_name, about)
    if len(changing) > most:
        yield note(f"… and {len(changing) - most} more, which only tables show.")
    yield _folded_answers("already reached", groups["already"], about)
    yield _folded_answers("for which no change comes closer", groups["stuck"], about)


def _group(answer: Explanation) -> str:
    """Return whether an answer is a change, is reached without one, or is stuck."""
    if answer.best.changes:
        return "changing"
    return "already" if answer.reached else "stuck"


def _tiles(answers: Explanations, n_already: int) -> str:
    """Return the numbers of answers by status."""
    n_by_status = Counter(answer.status for answer in answers)
    counts = {
        "asked": len(answers),
        "reached": n_by_status["reached"] - n_already,
        "already reached": n_already,
        "best guess": n_by_status["best_guess"],
        "out of reach": n_by_status["unreachable"],
    }
    tiles = ""
    for word, n in counts.items():
        if n or word in ("asked", "reached"):
            tiles += f"<div><b>{n}</b><span>{word}</span></div>"
    return f'<div class="tiles">{tiles}</div>'


def _move_table(answers: Explanations, n_changing: int) -> str:
    """Return how often and how far each feature moves, as a table with bars."""
    moves = answers.importance().query("times > 0")
    has_levels = bool((moves["transitions"] != "").any())
    lines = "".join(_move_line(line, has_levels) for line in moves.to_dict("records"))
    head = "".join(_head(text) for text in ("moves in", "up", "down", "median move"))
    if has_levels:
        head += _head("from → to", is_left=True)
    return (
        f'<div class="wide"><table class="moves"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        + note(f"Of the {wording.count(n_changing, 'answer')} that change anything.")
    )


def _move_line(importance: dict[Any, Any], has_levels: bool) -> str:
    """Return a line of the table of moves, from a line of `Explanations.importance`."""
    share = importance["share"]
    bar = f'<span class="bar"><i style="width:{100 * share:.0f}%"></i></span>'
    median = importance["median"]
    cells = [
        f"{bar}<b>{_percent(share)}</b>",
        _percent(importance["up"]),
        _percent(importance["down"]),
        "" if math.isnan(median) else wording.number(median),
    ]
    line = f'<th scope="row">{named(str(importance["feature"]))}</th>'
    line += "".join(f"<td>{cell}</td>" for cell in cells)
    if has_levels:
        line += f'<td class="left">{escape(importance["transitions"])}</td>'
    return f"<tr>{line}</tr>"


def _percent(share: float) -> str:
    """Return a share as text; empty for nan."""
    return "" if math.isnan(share) else f"{100 * share:.0f} %"


def _head(text: str, *, is_left: bool = False) -> str:
    """Return the head of a column."""
    kind = ' class="left"' if is_left else ""
    return f'<th scope="col"{kind}>{escape(text)}</th>'


def _answer_list(pairs: list[Labelled], name: str, about: About) -> str:
    """Return a line per answer, which opens to its changes."""
    has_targets = len({answer.wanted for _, answer in pairs}) > 1
    target_head = [_head("target")] if has_targets else []
    heads = [*map(_head, (name, "now", "then")), *target_head]
    heads += [_head("changes", is_left=True), _head("status", is_left=True)]
    number = _number_format([answer for _, answer in pairs])
    body = "".join(_answer_line(label, answer, has_targets, number) for label, answer in pairs)
    legend = f"now, then: {about.output}"
    if about.output.unit:
        legend += f" in {about.output.unit}"
    if not has_targets:
        legend += f", target {about.output.number(_common_target(pairs))}"
    return (
        f'<div class="wide"><table class="list"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note(f'{legend}.')}"
    )


def _common_target(pairs: list[Labelled]) -> str:
    """Return the target of all answers, told apart from outputs that miss it."""
    wanted = pairs[0][1].wanted
    misses = [answer.best.output for _, answer in pairs if not answer.reached]
    others = [*misses, *chain.from_iterable(wanted)]
    return wording.intervals(wanted, partial(wording.number_apart, others=others))


def _output_text(answer: Explanation, y: float, number: str) -> str:
    """Return an output in a common format, or told apart from the target if that is too short."""
    text = f"{y:{number}}"
    wanted = [f"{end:{number}}" for end in chain.from_iterable(answer.wanted)]
    if text not in wanted:
        return text
    return max(text, answer_text.compared(answer, answer.best)(y), key=len)


def _number_format(answers: list[Explanation]) -> str:
    """Return a format that shows four digits of the range of the outputs."""
    outputs = np.array([(answer.output, answer.best.output) for answer in answers])
    span = float(np.ptp(outputs))
    decimals = 3
    if span > 0:
        decimals = max(0, 3 - math.floor(math.log10(span)))
    return f".{decimals}f" if decimals <= 6 else ".8g"


def _answer_line(label: str, answer: Explanation, has_targets: bool, number: str) -> str:
    """Return a line of the list of answers; `number` is the format of outputs."""
    cells = ""
    for y in (answer.output, answer.best.output):
        cells += f'<td data-key="{y!r}">{_output_text(answer, y, number)}</td>'
    if has_targets:
        cells += f"<td>{escape(answer_text.wanted(answer))}</td>"
    table = change_table(change_info(View.bare(answer), most=ALL_CHANGES))
    changes = folded(wording.moves(answer.best.changes, answer.best.follows), table)
    return (
        f'<tr data-status="{answer.status.replace("_", " ")}"><th scope="row">{escape(label)}</th>'
        f'{cells}<td class="left" data-key="{answer.best.n_changes}">{changes}</td>'
        f'<td class="left">{badge(answer)}</td></tr>'
    )


def _folded_answers(title: str, pairs: list[Labelled], about: About) -> str:
    """Return answers without a change in one folded table; a reason for those not reached."""
    if not pairs:
        return ""
    heads = ["", about.output.label, "target"]
    lines = []
    for label, answer in pairs:
        write = answer_text.compared(answer, answer.best)
        line = [label, write(answer.output), answer_text.wanted(answer)]
        lines.append(line if answer.reached else [*line, answer.verdict])
    if len(lines[0]) > len(heads):
        heads.append("why")
    return folded(f"{len(pairs)} {title}", f'<div class="wide">{markup.table(heads, lines)}</div>')
