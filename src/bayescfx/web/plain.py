"""Site, rows, answers and curves in JSON's own types, as the page gets them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data import Feature
from bayescfx.data.tables import cells_of
from bayescfx.models.protocols import cell
from bayescfx.plots.info.changes import Change, change_info
from bayescfx.plots.info.view import Scale, View, along
from bayescfx.potentials import Intervals
from bayescfx.result import wording
from bayescfx.result.answer_text import sentence
from bayescfx.result.assessment import around
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation
from bayescfx.search.methods import METHODS
from bayescfx.space.rules.limits import limits_of
from bayescfx.version import VERSION
from bayescfx.web.forms import MOST, AskForm
from bayescfx.web.relaxing import relaxed
from bayescfx.web.site import Site

Plain = dict[str, Any]

POINTS = 41  # values along a feature that has more


def pair(ends: tuple[float, float] | None) -> list[float | None] | None:
    """Return two numbers; nothing where there are none."""
    return None if ends is None or np.isnan(ends[0]) else list(map(cell, ends))


def intervals(given: Intervals) -> list[list[float | None]]:
    """Return the ends of intervals; nothing where there is none."""
    return [list(map(cell, ends)) for ends in given]


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
        "n_rows": len(site.subject.data),
        "n_listed": len(site.outputs),
        "id": settings.id,
        "store": settings.evaluations is not None,
        "local": site.model.local,
        "classifier": None if label is None else str(label),
        "defaults": {"budget": 2000 if site.model.local else 100, **defaults},
        "maximum": MOST,
        "methods": ["auto", *(name for name in METHODS if name != "auto")],
        "predictions": {"edges": edges.tolist(), "counts": counts.tolist()},
        "rules": [rule.words.line for rule in space.rules if rule.words.line],
        "features": [
            {
                "name": str(name),
                **_feature(feature, space.background[:, j]),
                "unit": float(space.scale[j]),
                "fixed": name in fixed,
                "derived": name in derived,
                "missing": bool(missing.get(name, False)),
            }
            for j, (name, feature) in enumerate(space.features.items())
        ],
    }


def _feature(feature: Feature, codes: Array) -> Plain:
    """Return a feature, and how the codes ``(n,)`` of the data are distributed."""
    known, numeric = codes[~np.isnan(codes)], feature.numeric
    ends: list[Any] = [None, None]
    step, levels, histogram = None, None, {}
    if feature.levelled:
        levels = [cell(level) for level in feature.levels]
        counts = np.bincount(known.astype(int), minlength=len(levels))
    else:
        low, high = feature.code_range
        ends = [cell(end) if numeric else feature.say(end)[0] for end in (low, high)]
        step = feature.code_step or None if numeric else None
        counts, edges = np.histogram(known, bins=24, range=(low, high) if high > low else None)
        histogram = {"edges": edges.tolist() if numeric else feature.say(*edges)}
    return {
        "kind": feature.kind,
        "description": feature.words,
        "levels": levels,
        "ordered": feature.ordered,
        "cyclic": feature.period > 0,
        "low": ends[0],
        "high": ends[1],
        "step": step,
        "histogram": {**histogram, "counts": counts.tolist()},
    }


def row_as_plain(site: Site, i: int) -> Plain:
    """Return one of the rows that are shown, with the model's output."""
    return {"label": site.labels[i], "cells": site.cells(i), "output": cell(site.outputs[i])}


def answer_as_plain(answer: Explanation, view: View, asked: AskForm) -> Plain:
    """Return an answer with what a change chart shows of each counterfactual."""
    same = ("status", "verdict", "output", "n_evaluations", "method", "seed", "stopped")
    each = ("output", "valid", "potential", "plausibility", "n_changes")
    return {
        **{name: getattr(answer, name) for name in same},
        "sentence": sentence(answer),
        "wanted": intervals(answer.wanted),
        "accepted": intervals(answer.accepted),
        "reachable": pair(answer.reachable),
        "probability": answer.probability_reachable,
        "jump": pair(answer.jump),
        "binding": [relaxed(words, answer.space, asked.space) for words in answer.binding],
        "query": _cells(answer, answer.query),
        "counterfactuals": [
            {
                **{name: getattr(found, name) for name in each},
                "cells": _cells(answer, found.row),
                "output_text": wording.number(found.output),
                "cost": cell(found.cost),
                "sentence": wording.moves(found.changes),
                "changes": [_change(c, found) for c in change_info(view, k, 10**6).changes],
            }
            for k, found in enumerate(answer.counterfactuals)
        ],
    }


def _change(change: Change, found: Counterfactual) -> Plain:
    pairs = {str(name): cells for name, cells in found.changes.items()}
    before, after = map(cell, pairs.get(change.name, (change.before, change.after)))
    texts = {"before_text": change.before, "after_text": change.after}
    return {**change._asdict(), **texts, "before": before, "after": after}


def _cells(answer: Explanation, row: Any) -> Plain:
    """Return a row by column."""
    line = cells_of(answer.layout.table([list(row)]))[0]
    return {str(n): cell(value) for n, value in zip(answer.layout.names, line, strict=True)}


def curve_as_plain(
    site: Site, cells: dict[str, Any], feature: str, view: View | None, *, score: bool
) -> Plain:
    """Return the outputs along a feature, the rest as in a row; the model's only if `score`."""
    region = around(site.space, site.row(cells))
    j = region.schema.position(feature)
    scale, query = Scale.of(region, j), region.query[j]
    codes = _codes(scale, query)
    rows = region.rows(along(region, j, codes, region.query))
    found: Plain = {"mean": None, "low": None, "high": None, "seen": []}
    if view is not None and view.surrogate is not None:
        X = view.region.encode(rows)
        if view.region.same_missing(X).all():  # of gaps elsewhere the surrogate knows nothing
            mean, low, high, seen = view.line(X, j)
            found |= {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
            found["seen"] = np.column_stack(seen).tolist()
    texts, places = [scale.label(code) for code in codes.tolist()], [*region.schema.places]
    values = texts  # of a group
    if feature in places:
        values = [cell(line[places.index(feature)]) for line in cells_of(rows)]
    return found | {
        "feature": feature,
        "at": None if np.isnan(query) else int(np.argmin(np.abs(codes - query))),
        "values": values,
        "texts": texts,
        "x": codes.tolist(),
        "numeric": scale.feature.numeric,
        "model": list(map(cell, site.model.scores(rows))) if score else None,
        "n_rows": len(rows) if score else 0,
    }


def _codes(scale: Scale, query: float) -> Array:
    """Return codes along the whole range of a feature, the row's own among them."""
    feature = scale.feature
    step = 1.0 if feature.levelled or feature.period else feature.code_step
    codes = np.linspace(scale.low, scale.high, POINTS)
    if step and (scale.high - scale.low) / step < 4 * POINTS:
        codes = np.arange(scale.low, scale.high + step / 2, step)
    elif step:
        codes = scale.low + np.round((codes - scale.low) / step) * step
    return np.unique(codes if np.isnan(query) else np.append(codes, query))
