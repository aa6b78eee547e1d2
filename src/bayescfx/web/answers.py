"""Answers in JSON's own types, with all that the page draws."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from bayescfx.io.protocols import cell
from bayescfx.plots.info.changes import Change, change_info
from bayescfx.plots.info.view import View
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.search.nearby import relevant
from bayescfx.tables import cells_of
from bayescfx.web.ends import ends, finite, pair
from bayescfx.web.forms import AskForm
from bayescfx.web.relaxing import relaxed

Plain = dict[str, Any]


def seen(answer: Explanation, most: int = 1000) -> View:
    """Return the view of an answer by the rows that matter for it, so many at most."""
    whole = View.of(answer)
    kept = relevant(whole.region, whole.X, most, whole.answers[:4])
    return View(answer, whole.region, whole.X[kept], whole.y[kept])


def answer_as_plain(answer: Explanation, view: View, asked: AskForm) -> Plain:
    """Return an answer with what a change chart shows of each counterfactual."""
    return {
        "status": answer.status,
        "sentence": wording.sentence(answer),
        "verdict": answer.verdict,
        "output": answer.output,
        "wanted": ends(answer.wanted),
        "accepted": ends(answer.accepted),
        "reachable": pair(answer.reachable),
        "probability": answer.probability_reachable,
        "jump": pair(answer.jump),
        "binding": [relaxed(words, answer.space, asked.space) for words in answer.binding],
        "n_evaluations": answer.n_evaluations,
        "method": answer.method,
        "seed": answer.seed,
        "stopped": answer.stopped,
        "query": _cells(answer, list(answer.query)),
        "counterfactuals": [
            {
                "cells": _cells(answer, list(found.row)),
                "output": found.output,
                "output_text": wording.number(found.output),
                "valid": found.valid,
                "cost": finite(found.cost),
                "potential": found.potential,
                "usual": found.usual,
                "n_changes": found.n_changes,
                "sentence": wording.moves(found.changes),
                "changes": [
                    _change(change, found.changes) for change in change_info(view, k, 10**6).changes
                ],
            }
            for k, found in enumerate(answer.counterfactuals)
        ],
    }


def _change(change: Change, cells: Any) -> Plain:
    pairs: dict[str, tuple[Hashable, Hashable]] = {str(n): pair for n, pair in cells.items()}
    before, after = pairs.get(change.name, (change.before, change.after))
    told: Plain = change._asdict() | {"before_text": change.before, "after_text": change.after}
    return told | {"before": cell(before), "after": cell(after)}


def _cells(answer: Explanation, row: list[Any]) -> Plain:
    """Return a row by column."""
    line = cells_of(answer.layout.table([row]))[0]
    return {str(n): cell(value) for n, value in zip(answer.layout.names, line, strict=True)}
