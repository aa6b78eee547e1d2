"""Payloads of the page: site, rows, answers and curves in JSON's own types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import bayescfx as cfx
from bayescfx.plots.info.changes import Change, change_info
from bayescfx.plots.info.curves import ResponseCurve
from bayescfx.plots.info.view import View
from bayescfx.requests.plain_values import json_fields, json_value
from bayescfx.requests.query_rows import row_cells
from bayescfx.requests.settings import METHOD_NAMES
from bayescfx.requests.texts import (
    answer_sentence,
    changes_text,
    kept_text,
    output_writer,
    valid_text,
)
from bayescfx.web.relaxation import relax
from bayescfx.web.request_forms import MAXIMUM, QuestionForm, page_verbs
from bayescfx.web.site import Site

Payload = dict[str, Any]

N_BINS = 40  # of the histogram of predictions
N_FEATURE_BINS = 24  # of the histogram of a feature
MAX_CHANGES = 10**6  # all changes are shown

#: Attributes of an answer and of a counterfactual that the page shows as they are.
ANSWER_FIELDS = (
    "status",
    "verdict",
    "output",
    "n_evaluations",
    "method",
    "seed",
    "stopped",
    "proof",
    "bound",
    "proof_reason",
)
COUNTERFACTUAL_FIELDS = (
    "output",
    "valid",
    "potential",
    "plausibility",
    "cost",
    "distance",
    "n_changes",
    "proof",
)


def pair_payload(ends: tuple[float, float] | None) -> list[float | None] | None:
    """Return both ends of a range; None if there is no range."""
    return None if ends is None or np.isnan(ends[0]) else [json_value(end) for end in ends]


def intervals_payload(intervals: Sequence[tuple[float, float]]) -> list[list[float | None]]:
    """Return the ends of intervals; None for an unbounded one."""
    return [[json_value(end) for end in ends] for ends in intervals]


def site_payload(site: Site) -> Payload:
    """Return the description of the model and its data that the page is built from.

    Everything here is the same for all visitors, and is computed once.

    Returns
    -------
    dict
        `Site` in ``static/types.d.ts``.
    """
    settings = site.settings
    is_finite = np.isfinite(site.outputs)
    counts, edges = np.histogram(site.outputs[is_finite], bins=N_BINS)
    return {
        "title": settings.title or "What would have to change?",
        "version": cfx.__version__,
        "output": {
            "name": settings.output_name or site.model.output or "prediction",
            "unit": settings.unit or "",
        },
        "n_rows": len(site.subject.data),
        "n_listed": len(site.outputs),
        "id": settings.id,
        "store": settings.evaluations is not None,
        "local": site.model.local,
        "shares_evaluations": site.shares_evaluations,
        "classifier": _label(site),
        "defaults": _default_settings(site),
        "maximum": MAXIMUM,
        "methods": ["auto", *(name for name in METHOD_NAMES if name != "auto")],
        "predictions": {"edges": edges.tolist(), "counts": counts.tolist()},
        "rules": [rule.words.line for rule in site.space.rules if rule.words.line],
        "per_change": site.space.price.per_change,
        "verbs": _verbs_payload(),
        "features": _features_payload(site),
    }


def _label(site: Site) -> str | None:
    """Return the class whose score is explained; None for a regression model."""
    labels = site.subject.loaded.labels
    label = labels[-1] if labels and site.settings.label is None else site.settings.label
    return None if label is None else str(label)


def _default_settings(site: Site) -> Payload:
    """Return the settings of a question that has none."""
    form = QuestionForm(cells={}, target="")
    defaults = json_fields(form, "timeout", "seed", "tolerance", "n", "diverse", "method")
    return {"budget": 2000 if site.model.local else 100, **defaults}


def _verbs_payload() -> list[Payload]:
    """Return the verbs that a visitor may use, described as data."""
    return [
        {
            "name": verb.name,
            "help": verb.help,
            "kind": verb.parameter.kind,
            "example": verb.example.strip("'"),
            "takes_text": verb.parameter.takes_text,
            "is_repeatable": verb.parameter.is_repeatable,
            "schema": verb.parameter.schema(),
        }
        for verb in page_verbs()
    ]


def _features_payload(site: Site) -> list[Payload]:
    """Return all features with their distributions."""
    space = site.space
    derived = {rule.derives for rule in space.rules}
    has_missing = site.subject.data.isna().any()
    features = []
    for j, name in enumerate(space.features):
        features.append(
            {
                "name": str(name),
                **_feature_payload(space.features[name], space.sample.rows[:, j]),
                "unit": float(space.scale[j]),
                "fixed": name in space.fixed,
                "derived": name in derived,
                "missing": bool(has_missing.get(name, False)),
            }
        )
    return features


def _feature_payload(feature: Any, codes: npt.NDArray[np.float64]) -> Payload:
    """Return a feature, and the distribution of the codes ``(n,)`` of the data."""
    known = codes[~np.isnan(codes)]
    distribution = _levels_payload if feature.has_levels else _scale_payload
    return {
        "kind": feature.kind,
        "description": feature.words,
        "ordered": feature.ordered,
        "cyclic": feature.period > 0,
        **distribution(feature, known),
    }


def _levels_payload(feature: Any, codes: npt.NDArray[np.float64]) -> Payload:
    """Return the levels of a feature with their counts."""
    levels = [json_value(level) for level in feature.levels]
    counts = np.bincount(codes.astype(int), minlength=len(levels))
    ends = {"low": None, "high": None, "step": None}
    return {"levels": levels, **ends, "histogram": {"counts": counts.tolist()}}


def _scale_payload(feature: Any, codes: npt.NDArray[np.float64]) -> Payload:
    """Return the ends and the histogram of numbers or points in time.

    Points in time are texts, at the ends and at the edges of the histogram.
    """
    low, high = feature.code_range
    bounds = (low, high) if high > low else None
    counts, edges = np.histogram(codes, bins=N_FEATURE_BINS, range=bounds)
    ends = [json_value(low), json_value(high)]
    shown_edges = edges.tolist()
    if not feature.numeric:
        ends = feature.display(low, high)
        shown_edges = feature.display(*edges)
    return {
        "levels": None,
        "low": ends[0],
        "high": ends[1],
        "step": (feature.code_step or None) if feature.numeric else None,
        "histogram": {"edges": shown_edges, "counts": counts.tolist()},
    }


def row_payload(site: Site, i: int) -> Payload:
    """Return one of the listed rows, with the model's output."""
    return {
        "label": site.labels[i],
        "cells": site.listed_cells(i),
        "output": json_value(site.outputs[i]),
    }


def answer_payload(view: View, form: QuestionForm, site: Site) -> Payload:
    """Return an answer, with the numbers of a change chart for each counterfactual.

    Parameters
    ----------
    view : View
        The answer, with a surrogate for the effects of changes.
    form : QuestionForm
        The request, for the constraints that the visitor can relax.
    site : Site
        The operator's space.

    Returns
    -------
    dict
        `Answer` in ``static/types.d.ts``.
    """
    answer = view.answer
    given = form.space.given()
    return {
        **json_fields(answer, *ANSWER_FIELDS),
        "sentence": answer_sentence(answer),
        "wanted": intervals_payload(answer.wanted),
        "accepted": intervals_payload(answer.accepted),
        "reachable": pair_payload(answer.reachable),
        "probability": answer.probability_reachable,
        "jump": pair_payload(answer.jump),
        "binding": relax(answer.binding, given, site.constrain),
        "query": _cells_payload(answer, answer.query),
        "counterfactuals": [
            _counterfactual_payload(view, k) for k in range(len(answer.counterfactuals))
        ],
    }


def menu_payload(menu: cfx.Menu) -> Payload:
    """Return which sets of features can reach a target, as texts.

    Returns
    -------
    dict
        `Menu` in ``static/types.d.ts``.
    """
    return {"lines": menu.lines(), "notes": menu.notes()}


def _counterfactual_payload(view: View, k: int) -> Payload:
    """Return one counterfactual with its changes."""
    found = view.answer.counterfactuals[k]
    changes = change_info(view, k, MAX_CHANGES).changes
    return {
        **json_fields(found, *COUNTERFACTUAL_FIELDS),
        "cells": _cells_payload(view.answer, found.row),
        "output_text": output_writer(view.answer, found)(found.output),
        "sentence": changes_text(found.changes, found.follows),
        "changes": [_change_payload(change, found) for change in changes],
        "kept_text": kept_text(view.answer, found),
        "valid_text": valid_text(found),
    }


def _change_payload(change: Change, found: cfx.Counterfactual) -> Payload:
    """Return one change: exact values, and texts for reading."""
    exact = {str(name): cells for name, cells in found.changes.items()}
    before, after = exact.get(change.name, (change.before, change.after))
    return {
        **change._asdict(),
        "before": json_value(before),
        "after": json_value(after),
        "before_text": change.before,
        "after_text": change.after,
    }


def _cells_payload(answer: cfx.Explanation, row: Any) -> Payload:
    """Return a row of an answer by column."""
    cells = row_cells(pd.DataFrame(answer.layout.table([list(row)])), 0)
    return {name: json_value(value) for name, value in cells.items()}


def curve_payload(site: Site, curve: ResponseCurve, view: View | None, *, score: bool) -> Payload:
    """Return the outputs along a feature: the surrogate's, and the model's if `score`.

    Parameters
    ----------
    site : Site
        The model.
    curve : ResponseCurve
        The rows along the feature.
    view : View, optional
        The answer whose surrogate is shown.
    score : bool
        Whether the model scores the rows; of an expensive model only on demand.

    Returns
    -------
    dict
        `Curve` in ``static/types.d.ts``.
    """
    columns = [str(name) for name in site.subject.data.columns]
    return {
        **_surrogate_payload(curve, view),
        "feature": curve.feature,
        "at": curve.at,
        "values": [json_value(value) for value in curve.values(columns)],
        "texts": curve.texts,
        "x": curve.codes.tolist(),
        "numeric": curve.is_numeric,
        "model": [json_value(y) for y in site.model.scores(curve.rows)] if score else None,
        "n_rows": len(curve.codes) if score else 0,
    }


def _surrogate_payload(curve: ResponseCurve, view: View | None) -> Payload:
    """Return the surrogate of an answer along a curve, if it has one."""
    found = None if view is None else curve.surrogate(view)
    if found is None:
        return {"mean": None, "low": None, "high": None, "seen": []}
    mean, low, high, seen = found
    return {
        "mean": mean.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "seen": np.column_stack(seen).tolist(),
    }
