"""Score rows that were changed by hand or by another library: `what_if` and `assess`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask, same_codes
from bayescfx.checks import check
from bayescfx.data.schema import Schema, by_feature
from bayescfx.data.tables import Row, Rows, as_pandas, pick, row_of, rows_of
from bayescfx.data.values import is_missing
from bayescfx.errors import QueryError, SpaceError, one_line
from bayescfx.models.class_scores import scoring
from bayescfx.models.model import Model, as_model
from bayescfx.potentials import Intervals, contains
from bayescfx.potentials.class_targets import check_probability_target
from bayescfx.potentials.targets import as_target
from bayescfx.result import wording
from bayescfx.result.answer_text import cost_text, miss
from bayescfx.space.region import Region
from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """A row changed by hand; made by :func:`what_if`.

    Parameters
    ----------
    row : Series or ndarray
        The changed row, derived columns recomputed, exactly as the model scored it.
    query_output, output : float
        The model's outputs before and after.
    changes : dict
        ``{name: (before, after)}`` for the features that differ, derived ones included.
    broken : tuple of str
        Limits and rules of the space that the row breaks, in words.
    miss : float, optional
        The distance of the output from the target, tolerance aside; None without a target.
    reached : bool, optional
        Whether the output reaches the target, within the tolerance; None without a target.
    cost, distance : float, optional
        What a search would minimise, and its part that grows with the size of the changes, as of
        a `Counterfactual`; None without a space, or if a cell becomes missing.
    labels : tuple of two labels, optional
        The labels predicted before and after, by a classifier that runs in this process.
    about : dict of str to str
        Name (``output``) and ``unit`` of the model's output.
    follows : dict
        The part of ``changes`` that follows from the others: derived features.
    """

    row: Row
    query_output: float
    output: float
    changes: Mapping[Any, tuple[Any, Any]]
    broken: tuple[str, ...] = ()
    miss: float | None = None
    reached: bool | None = None
    cost: float | None = None
    distance: float | None = None
    labels: tuple[Any, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    follows: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def n_changes(self) -> int:
        """The number of changed features, those that follow from others not counted."""
        return len(self.changes) - len(self.follows)

    def __repr__(self) -> str:
        output = wording.Output.of(self.about)
        outputs = wording.number(self.output)
        if self.output != self.query_output:
            outputs = " → ".join(wording.pair_apart(self.query_output, self.output))
        changes = wording.moves(self.changes, self.follows)
        lines = [f"{changes}: {output} {output.number(outputs)}"]
        if self.labels:
            lines.append(f"{wording.LABEL_LINE} {wording.labels_move(*self.labels)}")
        if self.miss is not None:
            lines.append(self._verdict(output))
        if self.changes and self.cost is not None and self.distance is not None:
            lines.append(cost_text(wording.number(self.cost, 3), self.distance, self.n_changes))
        lines += [f"Not allowed: {constraint}." for constraint in self.broken]
        return "\n".join(lines)

    def _verdict(self, output: wording.Output) -> str:
        """Return how far the output is from the target, in words."""
        if not self.miss:
            return "Target reached."
        distance = output.number(wording.number(self.miss))
        verdict = "reached, within the tolerance" if self.reached else "not reached"
        return f"{distance} away from the target: {verdict}."


class TargetOutputs(NamedTuple):
    """The outputs that a target wants, and those that count as reached."""

    wanted: Intervals
    accepted: Intervals
    has_tolerance: bool

    @classmethod
    def of(
        cls, target: object, output: float, tolerance: float, model: Model
    ) -> TargetOutputs | None:
        """Return the goal of a query with this output of a model; None without a target."""
        if target is None:
            return None
        found = as_target(target, np.array([output]))
        if model.link is not None:
            check_probability_target(found, output)
        accepted = found.acceptance(output, tolerance)
        return cls(found.wanted(output), accepted, found.has_tolerance)

    def miss(self, output: float) -> float:
        """Return the distance of an output from the target; rounding that is forgiven is none."""
        is_reached = bool(contains(self.accepted, output))
        return 0.0 if is_reached and not self.has_tolerance else miss(output, self.wanted)


def what_if(
    model: Any,
    query: object,
    changes: Mapping[Any, Any],
    space: Space | None = None,
    target: object = None,
    *,
    tolerance: float = 0.05,
) -> WhatIf:
    """Score a row that you change by hand. The model scores two rows: before and after.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to change.
    changes : dict of feature to value
        The new values; ``None`` for a missing cell.
    space : Space, optional
        The constraints to check; derived columns are recomputed.
    target : Target, float or potential, optional
        The target to compare the output with.
    tolerance : float, default 0.05
        Share of the wanted change by which an exact target may be missed.

    Examples
    --------
    >>> query = pd.Series({"a": 1.0, "b": 2.0})
    >>> what_if(lambda X: X["a"] + X["b"], query, {"a": 3.0}, target=6.0)
    a 1 → 3: prediction 3 → 5
    1 away from the target: not reached.
    """
    check(isinstance(changes, Mapping), "changes", "a dict of feature to value", changes)
    is_constrained = space is not None
    space = _space_of_row(query) if space is None else space
    check(isinstance(space, Space), "space", "a Space", space, SpaceError)
    region = around(space, query)
    X = _changed_codes(space, region, changes)
    rows = region.rows(np.vstack([region.query, X]))
    scored, asked = scoring(as_model(model, region.schema), target, rows[:1])
    query_output, output = scored(rows).tolist()
    goal = TargetOutputs.of(asked, query_output, tolerance, scored)
    cost, distance = _cost(space, query, X) if is_constrained else (None, None)
    changed = changes_of(region, X, rows)[0]
    broken = (*broken_constraints(space, region, X)[0], *_overruled(space, region, X[0], changes))
    return WhatIf(
        row=row_of(rows, 1),
        query_output=query_output,
        output=output,
        changes=changed,
        follows=derived_part(region, changed),
        broken=broken if is_constrained else (),
        miss=None if goal is None else goal.miss(output),
        reached=None if goal is None else bool(contains(goal.accepted, [output])[0]),
        cost=cost,
        distance=distance,
        labels=scored.predicted_labels(rows),
        about=scored.about,
    )


def _overruled(
    space: Space, region: Region, row: Array, changes: Mapping[Any, Any]
) -> Iterator[str]:
    """Yield the derived features whose given values differ from those that follow, in words."""
    for given, value in changes.items():
        name = space.name(given)
        j = region.schema.positions[name]
        if is_missing(value) or not region.recomputed[j]:
            continue
        feature = region.schema.features[name]
        code = feature.code(value, name, "changes")
        if code not in (row[j], region.query[j]):
            actual, other = feature.display(float(row[j]), code)
            yield f"{name!r} follows from other features: it is {actual}, not {other}"


def _cost(space: Space, query: object, X: Array) -> tuple[float | None, float | None]:
    """Return cost and distance of codes ``(1, d)``; None if a cell becomes missing."""
    region = around(unrestricted(space), query)
    cost = float(region.cost(X)[0])
    return (None, None) if np.isnan(cost) else (cost, float(region.distance(X)[0]))


def _space_of_row(query: Any) -> Space:
    """Return a space with the columns of one row."""
    if isinstance(query, pd.Series | Mapping):
        return Space.from_data(pd.DataFrame([query]))
    is_array_row = not isinstance(as_pandas(query), pd.DataFrame) and np.ndim(query) == 1
    return Space.from_data(np.atleast_2d(query) if is_array_row else query)


def _changed_codes(space: Space, region: Region, changes: Mapping[Any, Any]) -> Array:
    """Return the codes ``(1, d)`` of the query with some values changed; derived ones follow."""
    schema = region.schema
    values = {space.name(key): value for key, value in changes.items()}
    X = region.query[None].copy()
    for name, value in values.items():
        j = schema.positions[name]
        X[0, j] = np.nan
        if not is_missing(value):
            X[0, j] = schema.features[name].code(value, name, "changes")
            # 3.9 in a column of single precision is the number that is printed as 3.9.
            rounded = region.axes[j].round(X[:, j])
            X[:, j] = np.where(np.isfinite(rounded), rounded, X[:, j])
    X = region.complete(X)
    misfits = _misfitting_codes(region, X)
    if misfits.any():
        name = region.names[int(np.argmax(misfits))]
        value = values.get(name)
        wrong = "be missing" if is_missing(value) else f"hold {value!r}"
        raise QueryError(
            f"`changes` must fit the columns; {name!r} can't {wrong}. Choose another value."
        )
    return X


def _misfitting_codes(region: Region, X: Array) -> Mask:
    """Return which codes ``(d,)`` of one row ``(1, d)`` the columns can't hold."""
    schema = region.schema
    pairs = zip(schema.columns, schema.feature_at, strict=True)
    required = [j for column, j in pairs if not column.optional]
    is_required = np.isin(np.arange(X.shape[1]), required)
    misfits = np.isnan(X[0]) & is_required
    if misfits.any():
        return np.asarray(misfits)
    rows = region.rows(np.vstack([region.query, X]))
    return ~same_codes(region.encode(rows)[1], X[0])


def assess(
    model: Any,
    query: object,
    rows: object,
    space: Space,
    target: object = None,
    *,
    tolerance: float = 0.05,
) -> pd.DataFrame:
    """Evaluate counterfactuals from any source: another library, or your own.

    The model scores the query, every row, and every row with each of its changes undone alone. A
    row that the space can't hold, or that the model fails for, loses only its own figures.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row that the counterfactuals belong to.
    rows : DataFrame or array of shape (n, columns)
        The counterfactuals. Columns that the space does not have are ignored.
    space : Space
        The constraints, and how distances are measured.
    target : Target, float or potential, optional
        The target.
    tolerance : float, default 0.05
        Share of the wanted change by which an exact target may be missed.

    Returns
    -------
    DataFrame
        One line per row: its ``output``; whether it is a ``hit`` within the tolerance, and its
        distance from the target (``miss``); its ``cost``, ``distance`` from the query and number of
        changes (``n_changes``), as of a `Counterfactual`;
        ``changes`` as text; the limits and rules it has ``broken``, or what else is wrong; its
        distance ``to_data`` (the nearest training row) and ``plausibility`` (the share of training
        rows that are less plausible); and ``needless``, the changes that can be undone alone with
        the target still reached and the rules still kept.

    Examples
    --------
    >>> space = Space.from_data(pd.DataFrame({"a": [0.0, 4.0], "b": [0.0, 4.0]})).fix("b")
    >>> rows = pd.DataFrame({"a": [3.0, 3.0], "b": [0.0, 1.0]})
    >>> found = assess(lambda X: X["a"], {"a": 0.0, "b": 0.0}, rows, space, 3.0)
    >>> found[["output", "hit", "broken", "needless"]].loc[1].to_dict()
    {'output': 3.0, 'hit': True, 'broken': "'b' is fixed", 'needless': 'b'}
    """
    check(isinstance(space, Space), "space", "a Space", space, SpaceError)
    table = _as_table(space, rows)
    refused = _refused_rows(space, table)
    kept = [i for i in range(len(table)) if i not in refused]
    figures = _figures(model, query, table.iloc[kept], space, target, tolerance)
    figures = figures.set_axis(kept, axis=0).reindex(range(len(table)))
    for i, reason in refused.items():
        figures.loc[i, "broken"] = reason
    figures = figures.fillna({"changes": "", "needless": ""})
    if "hit" in figures:
        figures["hit"] = figures["hit"].eq(True)
    return figures.set_axis(table.index, axis=0)


def _as_table(space: Space, rows: object) -> pd.DataFrame:
    """Return rows as a table with the columns of the space, and only those."""
    names = [*space.schema.places]
    required = f"a table with the columns {names}"
    rows = as_pandas(rows)
    if isinstance(rows, pd.DataFrame):
        rows = rows[[name for name in rows.columns if name in space.schema.places]]
        check(len(rows.columns) == len(names), "rows", required, rows)
        return rows
    # As objects, because NumPy would turn a list of mixed cells into text.
    block = np.asarray(rows, dtype=object if isinstance(rows, list | tuple) else None)
    if block.ndim == 1:
        block = block.reshape(1, -1)
    check(block.shape[1:] == (len(names),), "rows", required, rows)
    return pd.DataFrame(block, columns=pd.Index(names, tupleize_cols=False))


def _refused_rows(space: Space, table: pd.DataFrame) -> dict[int, str]:
    """Return the rows that the space can't hold: position to reason."""
    refused: dict[int, str] = {}
    try:
        space.including(table)
    except QueryError:
        for i in range(len(table)):
            try:
                space.including(table.iloc[[i]])
            except QueryError as error:
                refused[i] = one_line(str(error)).rstrip(".")
    return refused


def _figures(
    model: Any, query: object, rows: pd.DataFrame, space: Space, target: object, tolerance: float
) -> pd.DataFrame:
    """Return the columns of :func:`assess` for rows that the space can hold."""
    wider = space.including(rows)
    region = around(space, query, schema=wider.schema)
    X = region.encode(rows)
    query_row = region.rows(region.query[None])
    f, asked = scoring(as_model(model, region.schema), target, query_row)
    query_output = float(f(query_row)[0])
    goal = TargetOutputs.of(asked, query_output, tolerance, f)
    output, faults = _scores(f, region.rows(X))
    changes = changes_of(region, X, region.rows(np.vstack([region.query, X])))
    unruled = wider.with_fields(rules=())
    figures: dict[str, Any] = {"output": output}
    if goal is not None:
        figures["hit"] = contains(goal.accepted, output)
        figures["miss"] = [goal.miss(y) for y in output.tolist()]
    measure = around(unrestricted(wider), query)
    figures["cost"] = measure.cost(X)
    figures["distance"] = measure.distance(X)
    follows = [derived_part(region, each) for each in changes]
    sizes = [len(each) - len(part) for each, part in zip(changes, follows, strict=True)]
    figures["n_changes"] = pd.array(sizes, dtype="Int64")
    pairs = zip(changes, follows, strict=True)
    figures["changes"] = [wording.moves(each, part) for each, part in pairs]
    figures["broken"] = _broken_texts(broken_constraints(space, region, X), faults)
    figures |= _figures_of_data(space, unruled, region, X)
    if goal is not None:
        hits = figures["hit"]
        figures["needless"] = _needless_changes(f, space, region, X, hits, goal.accepted)
    return pd.DataFrame(figures)


def _figures_of_data(space: Space, unruled: Space, region: Region, X: Array) -> dict[str, Any]:
    """Return how far codes ``(n, d)`` are from the data and how plausible, if there are data."""
    figures: dict[str, Any] = {}
    if len(space.sample.rows):
        figures["to_data"] = _distances_to_data(unruled, region.rows(X), space.sample.rows)
    if space.sample.plausibility is not None:
        figures["plausibility"] = space.sample.plausibility.share(X)
    return figures


def _broken_texts(broken: list[tuple[str, ...]], faults: dict[int, Exception]) -> list[str]:
    """Return one text per row: the constraints it breaks, and why the model fails for it."""
    texts = []
    for i, constraints in enumerate(broken):
        parts = list(constraints)
        if i in faults:
            parts.append(f"the model fails: {one_line(str(faults[i])).rstrip('.')}")
        texts.append("; ".join(parts))
    return texts


def _distances_to_data(space: Space, rows: Rows, background: Array) -> list[float]:
    """Return the distance of each row to the nearest training row, codes ``(m, d)``."""
    distances = []
    for i in range(len(rows)):
        region = around(space, row_of(rows, i))
        distances.append(float(np.nanmin(region.distance(background))))
    return distances


def _scores(f: Model, rows: Rows) -> tuple[Array, dict[int, Exception]]:
    """Return outputs ``(n,)``, nan where the model fails, and its errors by position."""
    if not len(rows):
        return np.empty(0), {}
    try:
        y = f.scores(rows)
    except Exception as error:  # a model may raise anything
        if len(rows) == 1:
            return np.array([np.nan]), {0: error}
        return _scores_one_by_one(f, rows)
    is_finite = np.isfinite(y)
    bad = np.flatnonzero(~is_finite).tolist()
    faults: dict[int, Exception] = {i: f.fault(rows, i, y[i]) for i in bad}
    return np.where(is_finite, y, np.nan), faults


def _scores_one_by_one(f: Model, rows: Rows) -> tuple[Array, dict[int, Exception]]:
    """Return outputs and errors as :func:`_scores`, calling the model once for each row."""
    outputs = np.empty(len(rows))
    faults: dict[int, Exception] = {}
    for i in range(len(rows)):
        y, errors = _scores(f, pick(rows, np.array([i])))
        outputs[i] = y[0]
        if errors:
            faults[i] = errors[0]
    return outputs, faults


def broken_constraints(space: Space, region: Region, X: Array) -> list[tuple[str, ...]]:
    """Return the limits and rules that each row of codes ``(n, d)`` breaks, in words."""
    broken: list[list[str]] = [[] for _ in X]
    for j in np.flatnonzero(~region.recomputed).tolist():
        for i, text in _broken_limits(space, region, X[:, j], j):
            broken[i].append(text)
    for label, holds in _constraints(region, X):
        for i in np.flatnonzero(~holds).tolist():
            if label not in broken[i]:  # strict limits
                broken[i].append(label)
    return list(map(tuple, broken))


def _constraints(region: Region, X: Array) -> Iterator[tuple[str, Mask]]:
    """Yield the number of changes and the rules, and which codes ``(n, d)`` satisfy each."""
    if region.max_changes is not None:
        label = f"more than {wording.count(region.max_changes, 'change')}"
        yield label, region.changes(X).sum(axis=1) <= region.max_changes
    for rule in region.rules:
        yield rule.words.label, rule.holds(region, X)


def _broken_limits(space: Space, region: Region, codes: Array, j: int) -> list[tuple[int, str]]:
    """Return where codes ``(n,)`` of feature `j` break its limits, and the limit in words."""
    axis = region.axes[j]
    kept = axis.snap(codes) == codes if axis.free else same_codes(codes, axis.query)
    feature = space.features[region.names[j]]
    n_levels = len(feature.levels) if feature.has_levels else np.inf
    broken = np.flatnonzero(~kept).tolist()
    return [(i, _broken_limit(region, codes[i], j, n_levels)) for i in broken]


def _broken_limit(region: Region, code: float, j: int, n_levels: float) -> str:
    """Return in words why feature `j`, with so many levels, can't have a code."""
    name = region.names[j]
    if np.isnan(code):
        return f"{name!r} becomes missing"
    if np.isnan(region.axes[j].query):
        return f"{name!r} is missing in the query"
    if code >= n_levels:
        return f"{name!r} has no level {region.schema.features[name].display(code)[0]}"
    return f"the limits of {name!r}" if region.axes[j].free else f"{name!r} is fixed"


def _needless_changes(
    f: Model, space: Space, region: Region, X: Array, hits: Mask, accepted: Intervals
) -> list[str]:
    """Return for each row the changes that can be undone alone, as a list of names."""
    rows, features = np.nonzero(region.changes(X) & hits[:, None])
    undone = X[rows]
    undone[np.arange(len(rows)), features] = region.query[features]
    undone = region.complete(undone)
    outputs, _ = _scores(f, region.rows(undone))
    still_hits = contains(accepted, outputs)
    # A constraint that was broken before may stay broken; no other may be.
    before = broken_constraints(space, region, X[rows])
    after = broken_constraints(space, region, undone)
    names: list[list[str]] = [[] for _ in X]
    for k in np.flatnonzero(still_hits).tolist():
        if set(after[k]) <= set(before[k]):
            names[rows[k]].append(str(region.names[features[k]]))
    return [", ".join(each) for each in names]


def unrestricted(space: Space) -> Space:
    """Return the space in which every feature may change, and derived columns follow."""
    return space.with_fields(rules=tuple(rule for rule in space.rules if rule.derives is not None))


def around(space: Space, query: object, schema: Schema | None = None) -> Region:
    """Return the region around a row, without the warnings of a search."""
    found = space.regions([query], schema=schema)
    for error in found.errors.values():
        raise error
    return found.regions[0]


def changes_of(region: Region, X: Array, rows: Rows) -> list[dict[Hashable, tuple[Any, Any]]]:
    """Return the changes of codes ``(n, d)``: ``{name: (before, after)}`` for each row.

    `rows` are the same rows in the user's columns, after the query's.
    """
    before, *after = by_feature(region.schema, rows_of(rows))
    differs = ~same_codes(X, region.query)
    changes = []
    for i, cells in enumerate(after):
        names = compress(region.names, differs[i])
        changes.append({name: (before[name], cells[name]) for name in names})
    return changes


def derived_part(
    region: Region, changes: Mapping[Hashable, tuple[Any, Any]]
) -> dict[Hashable, tuple[Any, Any]]:
    """Return the part of some changes that follows from the others: derived features."""
    places = region.schema.positions
    return {name: pair for name, pair in changes.items() if region.recomputed[places[name]]}
