"""Answers on the console: as text, and as JSON for scripts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import pandas as pd

from bayescfx import Counterfactual, Explanation, Menu, WhatIf
from bayescfx.requests.answer_files import Answers
from bayescfx.requests.plain_values import json_fields, json_value
from bayescfx.requests.texts import aligned, pair_apart


def exit_code(statuses: Iterable[str]) -> int:
    """Return 0 if all are reached, 3 if some are a best guess, 4 if some are out of reach."""
    distinct = set(statuses)
    if "best_guess" in distinct:
        return 3
    return 4 if "unreachable" in distinct else 0


def many_text(answers: Answers) -> str:
    """Return one line per query with status and best answer, and a summary."""
    names = _query_names(answers)
    title = "query" if names.name is None else str(names.name)
    lines = [[title, "status", "now", "then", "changes"]]
    result: Any = answers.result
    changes = result.summary()["changes"]
    for (i, answer), text in zip(answers.explanations.items(), changes, strict=True):
        status = answer.status.replace("_", " ")
        before, after = pair_apart(answer.output, answer.best.output)
        lines.append([str(names[i]), status, before, after, text])
    for i, reason in answers.errors.items():
        lines.append([str(names[i]), "error", "", "", reason])
    n_reached = sum(answer.reached for answer in answers.explanations.values())
    n_rows = sum(answer.n_evaluations for answer in answers.explanations.values())
    summary = f"{n_reached} of {len(lines) - 1} reached. Scored {n_rows} rows."
    return "\n".join([*aligned(lines, ">>>><"), "", summary])


def _query_names(answers: Answers) -> pd.Index[Any]:
    """Return the identifiers of the queries, or their numbers."""
    if answers.names is not None:
        return answers.names
    return pd.RangeIndex(len(answers.explanations) + len(answers.errors))


def answer_json(answer: Explanation) -> dict[str, Any]:
    """Return the answer in JSON's own types, simple to read; `to_json` has everything."""
    counterfactuals = [
        {
            **json_fields(each, "output", "valid", "potential"),
            **json_fields(each, "cost", "distance", "n_changes", "proof"),
            **_changes_json(each, answer.layout.names),
            "valid_ranges": _ranges_json(each),
            **({"label": json_value(label)} if answer.labels else {}),
        }
        for each, label in zip_longest(answer.counterfactuals, answer.labels[1:])
    ]
    return {
        **json_fields(answer, "status", "stopped", "output"),
        "target": str(answer.target),
        **json_fields(answer, "wanted"),
        **({"label": json_value(answer.labels[0])} if answer.labels else {}),
        "counterfactuals": counterfactuals,
        **json_fields(answer, "proof", "bound", "proof_reason"),
        **json_fields(answer, "reachable", "probability_reachable", "n_evaluations", "seed"),
        "menu": None if answer.menu is None else _menu_json(answer.menu),
        "text": str(answer),
    }


def _ranges_json(found: Counterfactual) -> dict[str, Any] | None:
    """Return the valid ranges of a counterfactual in JSON's own types, if they are known."""
    if found.valid_ranges is None:
        return None
    fields = ("low", "high", "values", "is_lowest", "is_highest", "text")
    return {str(name): json_fields(each, *fields) for name, each in found.valid_ranges.items()}


def _menu_json(menu: Menu) -> list[dict[str, Any]]:
    """Return the sets of features of a menu in JSON's own types."""
    fields = ("features", "status", "cost", "is_proven", "output")
    return [json_fields(item, *fields) for item in menu]


def what_if_json(found: WhatIf, names: Iterable[Any]) -> dict[str, Any]:
    """Return a row changed by hand in JSON's own types."""
    fields = json_fields(found, "query_output", "output", "miss", "reached", "broken")
    fields |= json_fields(found, "cost", "distance", "n_changes")
    if found.labels:
        fields["labels"] = [json_value(label) for label in found.labels]
    return {**fields, **_changes_json(found, names)}


def _changes_json(found: Counterfactual | WhatIf, names: Iterable[Any]) -> dict[str, Any]:
    """Return the changes and the row, in JSON's own types."""
    changes: dict[str, dict[str, Any]] = {}
    for name, (before, after) in found.changes.items():
        changes[str(name)] = {"from": json_value(before), "to": json_value(after)}
        if name in found.follows:
            changes[str(name)]["follows"] = True
    cells = zip(names, list(found.row), strict=True)
    return {"changes": changes, "row": {str(name): json_value(cell) for name, cell in cells}}


def many_json(answers: Answers) -> dict[str, Any]:
    """Return the answers in JSON's own types, with number and identifier of each query."""
    names = answers.names
    return {
        "answers": [
            {"query": i, **identifier_json(names, i), **answer_json(answer)}
            for i, answer in answers.explanations.items()
        ],
        "failures": [
            {"query": i, **identifier_json(names, i), "error": reason}
            for i, reason in answers.errors.items()
        ],
    }


def identifier_json(names: pd.Index[Any] | None, i: int) -> dict[str, Any]:
    """Return the identifier of a query in JSON's own types, if it has one."""
    return {} if names is None else {"id": json_value(names[i])}
