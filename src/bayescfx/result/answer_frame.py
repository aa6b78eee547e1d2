"""An answer as a table: one line per counterfactual, with its row, the query's and its figures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayescfx.data.tables import as_frame, free_name
from bayescfx.result import answer_text, wording
from bayescfx.space.rules.limits import limits_of

if TYPE_CHECKING:
    from bayescfx.result.counterfactual import Counterfactual
    from bayescfx.result.explanation import Explanation
    from bayescfx.space.space import Space

#: The columns before the row.
HEAD = ("status", "query_output")
#: The columns after the row and the query's own cells.
TAIL = (
    "output",
    "valid",
    "potential",
    "cost",
    "distance",
    "n_changes",
    "plausibility",
    "changes",
    "n_evaluations",
    "stopped",
)


def answer_frame(answer: Explanation) -> pd.DataFrame:
    """Return one line per counterfactual; the dtypes of the row are those of the data."""
    rows = as_frame(answer.rows)
    names = list(rows.columns)
    figures = [figures_of(answer, found) for found in answer.counterfactuals]
    tail = [name for name in TAIL if name != "plausibility" or answer.best.plausibility is not None]
    head = list(HEAD)
    if answer.labels:
        before_label, *after = answer.labels
        for line, label in zip(figures, after, strict=True):
            line |= {"query_label": before_label, "label": label}
        head.append("query_label")
        tail.insert(1, "label")
    before = as_frame(answer.query_rows).iloc[[0] * len(rows), movable_columns(answer.space)]
    before = before.reset_index(drop=True)
    before.columns = pd.Index(names_before(before.columns, names))
    taken = [*names, *before.columns]
    parts = [_figure_columns(figures, head, taken), rows, before]
    return pd.concat([*parts, _figure_columns(figures, tail, taken)], axis=1)


def _figure_columns(
    figures: list[dict[str, Any]], chosen: Iterable[str], taken: list[Hashable]
) -> pd.DataFrame:
    """Return some figures as columns whose names are free."""
    columns = {free_name(name, taken): [line[name] for line in figures] for name in chosen}
    return pd.DataFrame(columns)


def figures_of(answer: Explanation, found: Counterfactual) -> dict[str, Any]:
    """Return what a line of a table says about a counterfactual, by the names of its columns."""
    changes = answer_text.best_moves(answer)
    if found.changes:
        changes = wording.moves(found.changes, found.follows)
    return {
        "status": answer.status,
        "query_output": answer.output,
        "output": found.output,
        "valid": found.valid,
        "potential": found.potential,
        "cost": found.cost,
        "distance": found.distance,
        "n_changes": found.n_changes,
        "plausibility": found.plausibility,
        "changes": changes,
        "n_evaluations": answer.n_evaluations,
        "stopped": answer.stopped,
    }


def movable_columns(space: Space) -> list[int]:
    """Return the positions of the columns that may change: the query's own cells are kept too."""
    schema = space.schema
    fixed = {schema.positions[name] for name, limits in limits_of(space).items() if limits.fixed}
    return [c for c, feature in enumerate(schema.feature_at) if feature not in fixed]


def names_before(names: Iterable[Hashable], taken: Iterable[Hashable]) -> list[str]:
    """Return the names of the columns with the query's own cells, such as ``bmi_before``."""
    taken = list(taken)
    found: list[str] = []
    for name in names:
        found.append(free_name(f"{name}_before", [*taken, *found]))
    return found
