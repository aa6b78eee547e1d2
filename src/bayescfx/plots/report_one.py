"""A report on one answer."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from bayescfx import markup
from bayescfx.data.tables import cells_of
from bayescfx.data.values import same_cell
from bayescfx.plots.info import outcomes
from bayescfx.plots.info.changes import (
    ALL_CHANGES,
    ChangeInfo,
    alternatives_info,
    change_info,
)
from bayescfx.plots.info.view import View
from bayescfx.plots.report_page import About, badge, change_table, folded, note, pictures
from bayescfx.result import answer_text, wording
from bayescfx.result.answer_text import REASONS, valid_text
from bayescfx.result.explanation import Explanation
from bayescfx.result.kept_values import kept_text
from bayescfx.result.menu import MENU_HEAD

_MATHEMATICS = (
    "The potential rates an output: 1 on target, 0 at worst. Between the rows that the model "
    "scored, a surrogate (a Gaussian process) replaces it; bands are two of its standard "
    "deviations to either side. Effects are Shapley values: averages over the orders in which "
    "the changes can be made. In the map, lines enclose the target, and the cross is where a "
    "longer search would look next."
)
_N_RESPONSES = 3  # response curves in a report
_FEW_CHANGES = 3  # changes that the lead lists


def one(answer: Explanation, about: About) -> Iterable[str]:
    """Yield the parts of a report on one answer."""
    view = View.of(answer)
    infos = [change_info(view, k, ALL_CHANGES) for k in range(len(answer.counterfactuals))]
    yield about.head(f" {badge(answer)}")
    yield from _lead(answer, about)
    yield from _changes(answer, infos, about)
    yield from _menu(answer)
    yield _unchanged(answer)
    yield from _responses(view, about)
    yield _method(view)


def _lead(answer: Explanation, about: About) -> Iterable[str]:
    """Yield the current prediction, the target and the prediction after the changes."""
    outputs = (answer.output, answer.best.output)
    write = answer_text.compared(answer, answer.best)
    now, then = map(about.output.number, map(write, outputs))
    wanted = about.output.number(wording.intervals(answer.wanted, write))
    yield note(f"The {about.output} is {now}; the target is {wanted}.", "lead")
    if answer.best.changes:
        n_changes = wording.count(answer.best.n_changes, "change")
        listed = ""
        if answer.best.n_changes <= _FEW_CHANGES:
            listed = f": {answer_text.best_moves(answer)}"
        yield note(f"With {n_changes} it is {then}{listed}.", "lead")
    yield markup.paragraph(answer.verdict)


def _changes(answer: Explanation, infos: list[ChangeInfo], about: About) -> Iterable[str]:
    """Yield a table of changes for each counterfactual."""
    has_several = len(infos) > 1
    if answer.best.changes or has_several:
        yield "<h2>What changes</h2>"
    for k, (info, counterfactual) in enumerate(zip(infos, answer.counterfactuals, strict=True)):
        if has_several:
            suffix = "" if counterfactual.valid else " (misses the target)"
            yield f"<h3>Answer {k + 1}{suffix}</h3>"
        if counterfactual.changes:
            yield change_table(info)
        kept = kept_text(answer, counterfactual)
        if kept:
            yield note(kept)
        if counterfactual.valid_ranges:
            yield note(valid_text(counterfactual))
    if any(info.has_effects for info in infos):
        yield note(
            "The effect is what a change contributes, estimated from the rows that the model "
            f"scored. Effects add up to the change of the {about.output}. On the scales, the thick "
            "part is what was allowed."
        )


def _menu(answer: Explanation) -> Iterable[str]:
    """Yield which sets of features can reach the target, if it was asked for."""
    if answer.menu is None:
        return
    yield "<h2>Which features can reach the target</h2>"
    yield f'<div class="wide">{markup.table(MENU_HEAD, answer.menu.lines(), last_left=True)}</div>'
    yield from map(note, answer.menu.notes())


def _unchanged(answer: Explanation) -> str:
    """Return the columns that stay the same in all counterfactuals, folded."""
    query = cells_of(answer.query_rows)[0]
    others = cells_of(answer.rows)
    kept = []
    for j, name in enumerate(answer.layout.names):
        if all(same_cell(query[j], row[j]) for row in others):
            kept.append([str(name), wording.cell(query[j])])
    if not kept:
        return ""
    verb = "stay" if len(kept) > 1 else "stays"
    title = f"{wording.count(len(kept), 'column')} {verb} the same"
    return folded(title, f'<div class="wide">{markup.table(["", "value"], kept)}</div>')


def _responses(view: View, about: About) -> Iterable[str]:
    """Yield the response curves of the most effective changes."""
    names = [view.region.names[j] for j, _ in view.by_effect(0)[:_N_RESPONSES]]
    if not names or not outcomes.can_respond(view):
        return
    infos = [outcomes.response_info(view, name) for name in names]
    images = pictures((info, f"The {about.output} over {info.name}") for info in infos)
    title = escape(f"How the {about.output} responds")
    yield f'<section class="whole"><h2>{title}</h2>{images}</section>'
    yield note(
        "Estimated from the rows that the model scored (dots), all other features as they are now "
        "or as in the answer. The true value is expected inside the band."
    )


def _method(view: View) -> str:
    """Return how the answer was found, with the mathematics, folded."""
    answer = view.answer
    infos: list[tuple[object, str]] = [
        (outcomes.convergence_info(answer), "Best potential after each row"),
        (outcomes.potential_info(answer), "Potential over the output"),
    ]
    if outcomes.can_respond(view) and len(view.region.free) > 1:
        surface = outcomes.surface_info(view)
        infos.append((surface, f"Map of the surrogate over {' and '.join(surface.names)}"))
    if len(answer.counterfactuals) > 1:
        infos.append((alternatives_info(view), "The answers side by side"))
    parts = [
        _facts(answer),
        f"<h3>What was allowed</h3><pre>{escape(str(answer.space))}</pre>",
        "<h3>The search</h3>",
        pictures(infos),
        note(_MATHEMATICS),
    ]
    return folded("How it was found, and the mathematics", "".join(parts))


def _facts(answer: Explanation) -> str:
    """Return the figures of the search as a table."""
    low, high = answer.reachable
    outputs_seen = "none"
    if low <= high:
        outputs_seen = " to ".join(answer_text.seen(answer))
    best = answer.best
    facts = {
        "rows scored for this query": str(answer.n_evaluations),
        "rows scored in all": str(len(answer.evaluations)),
        "outputs seen": outputs_seen,
        "accepted outputs": wording.intervals(answer.accepted),
        "cost": wording.number(best.cost),
        "distance": wording.number(best.distance),
        "changes": str(best.n_changes),
        "method": answer.method,
        "seed": "none" if answer.seed is None else str(answer.seed),
        "the search stopped because": REASONS.get(answer.stopped, answer.stopped),
    }
    if best.plausibility is not None:
        facts["plausibility"] = wording.plausibility(best.plausibility)
    return markup.table(["", ""], list(facts.items()))
