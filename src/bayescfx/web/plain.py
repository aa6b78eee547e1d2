"""Site, rows, questions and answers in JSON's own types, as the page gets them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.features import Feature
from bayescfx.io.protocols import cell
from bayescfx.potentials import Intervals
from bayescfx.result import wording
from bayescfx.search.methods import METHODS
from bayescfx.space.rules.limits import limits_of
from bayescfx.version import VERSION
from bayescfx.web.ends import ends, finite, pair
from bayescfx.web.forms import MOST, AskForm
from bayescfx.web.questions import Desk, Ticket
from bayescfx.web.site import Site

Plain = dict[str, Any]


def site_as_plain(site: Site) -> Plain:
    """Return what the page has to know before it asks anything."""
    settings, space, labels = site.settings, site.space, site.subject.loaded.labels
    label = labels[-1] if labels and settings.label is None else settings.label
    asked = AskForm(cells={}, target="")
    defaults = {key: getattr(asked, key) for key in ("timeout", "seed", "tolerance", "n", "method")}
    counts, edges = np.histogram(site.outputs[np.isfinite(site.outputs)], bins=40)
    derived = {rule.derives for rule in space.rules}
    fixed = {name for name, said in limits_of(space).items() if said.fixed}
    missing = site.subject.data.isna().any()
    return {
        "title": settings.title or "What would have to change?",
        "version": VERSION,
        "output": {"name": settings.output_name or "prediction", "unit": settings.unit or ""},
        "rows": len(site.subject.data),
        "shown": len(site.outputs),
        "id": settings.id,
        "store": settings.evaluations is not None,
        "local": site.model.local,
        "classifier": None if label is None else str(label),
        "defaults": {"budget": 2000 if site.model.local else 100, **defaults},
        "most": MOST,
        "methods": ["auto", *(name for name in METHODS if name != "auto")],
        "predictions": {"edges": edges.tolist(), "counts": counts.tolist()},
        "rules": [rule.words.line for rule in space.rules if rule.words.line],
        "features": [
            {
                "name": str(name),
                **feature_as_plain(feature, space.background[:, j]),
                "unit": float(space.scale[j]),
                "fixed": name in fixed,
                "derived": name in derived,
                "missing": bool(missing.get(name, False)),
            }
            for j, (name, feature) in enumerate(space.features.items())
        ],
    }


def feature_as_plain(feature: Feature, codes: Array) -> Plain:
    """Return a feature, and how the codes ``(n,)`` of the data are distributed."""
    known = codes[~np.isnan(codes)]
    told: Plain = {
        "kind": feature.kind,
        "words": feature.words,
        "levels": [cell(level) for level in feature.levels] if feature.levelled else None,
        "ordered": feature.ordered,
        "cyclic": feature.period > 0,
        "low": None,
        "high": None,
        "step": None,
    }
    if feature.levelled:
        counts = np.bincount(known.astype(int), minlength=len(feature.levels))
        return told | {"histogram": {"counts": counts.tolist()}}
    low, high = feature.code_range
    told |= {"low": _end(feature, low), "high": _end(feature, high)}
    told |= {"step": feature.code_step or None if feature.numeric else None}
    counts, edges = np.histogram(known, bins=24, range=(low, high) if high > low else None)
    ends = edges.tolist() if feature.numeric else feature.say(*edges)
    return told | {"histogram": {"edges": ends, "counts": counts.tolist()}}


def _end(feature: Feature, code: float) -> Any:
    """Return an end of a feature: a number, or a text."""
    return finite(code) if feature.numeric else feature.say(code)[0]


def rows_as_plain(site: Site, chosen: Array, total: int) -> Plain:
    """Return some of the rows that are shown."""
    return {"total": total, "rows": [row_as_plain(site, int(i)) for i in chosen]}


def row_as_plain(site: Site, i: int) -> Plain:
    """Return one of the rows that are shown, with the model's output."""
    return {"label": site.labels[i], "cells": site.cells(i), "output": finite(site.outputs[i])}


def goal_as_plain(wanted: Intervals, accepted: Intervals, output: float) -> Plain:
    """Return what is wanted, and what is accepted."""
    met = any(low <= output <= high for low, high in wanted)
    told = {"words": wording.wish(wanted), "met": met}
    return told | {"wanted": ends(wanted), "accepted": ends(accepted)}


def question_as_plain(desk: Desk, question: Ticket, *, whole: bool = True) -> Plain:
    """Return a question and what became of it; without steps and answer in a list."""
    asked, answer = question.asked, question.answer
    wish = asked.target if answer is None else wording.wish(answer.wanted)
    label = asked.label or "edited row"
    told: Plain = {
        "id": question.id,
        "state": question.state,
        "place": desk.place(question),
        "asked": asked.model_dump() | {"space": asked.space.said()},
        "label": label,
        "words": f"{label}: {wish}",
        "status": None if answer is None else answer.status,
        "spent": question.spent,
        "seconds": round(question.seconds, 2),
        "error": question.error,
        "notes": question.notes.copy(),
        "bookmarks": list(question.bookmarks),
        "reachable": pair(question.reachable),
    }
    if not whole:
        return told
    steps = [step_as_plain(step) for step in question.steps.copy()]
    return told | {"steps": steps, "answer": question.told}


def step_as_plain(step: list[Any]) -> list[Any]:
    """Return a step without what JSON does not know."""
    return [finite(value) if isinstance(value, float) else value for value in step]
