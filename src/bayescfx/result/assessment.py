"""Rows that somebody else has made: what the model says to them, and what they are worth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask, same_codes
from bayescfx.checks import check
from bayescfx.data.schema import Schema, by_feature
from bayescfx.data.tables import Row, Rows, as_pandas, pick, row_of, rows_of
from bayescfx.data.values import is_missing
from bayescfx.errors import QueryError, SpaceError, hearing, one_line
from bayescfx.models.model import Model, as_model
from bayescfx.potentials import Intervals, contains
from bayescfx.potentials.targets import as_target
from bayescfx.result import wording
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
        ``{name: (before, after)}`` for the features that differ.
    broken : tuple of str
        Limits and rules of the space that the row breaks, in words.
    miss : float, optional
        How far the output is from the target itself, whatever the tolerance; None without one.
    reached : bool, optional
        Whether that counts as reached, within the tolerance; None without a target.
    about : dict of str to str
        What the model's output is called (``output``), and its ``unit``.
    """

    row: Row
    query_output: float
    output: float
    changes: Mapping[Any, tuple[Any, Any]]
    broken: tuple[str, ...] = ()
    miss: float | None = None
    reached: bool | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        before, after = self.query_output, self.output
        outputs = wording.number(before) if before == after else wording.move(before, after)
        output = wording.Output.of(self.about)
        lines = [f"{wording.moves(self.changes)}: {output} {output.number(outputs)}"]
        if self.miss is not None:
            away = f"{output.number(wording.number(self.miss))} away from the target"
            counts = "reached, within the tolerance" if self.reached else "not reached"
            lines.append(f"{away}: {counts}." if self.miss else "The target is reached.")
        return "\n".join([*lines, *(f"Not allowed: {what}." for what in self.broken)])


def what_if(
    model: Any,
    query: object,
    changes: Mapping[Any, Any],
    space: Space | None = None,
    target: object = None,
    *,
    tolerance: float = 0.05,
) -> WhatIf:
    """Return what the model says to a row that you change by hand; two rows are scored.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to change.
    changes : dict of feature to value
        What is to be different; ``None`` for a missing cell.
    space : Space, optional
        What may change: what the row breaks is told, and derived columns are recomputed.
    target : Target, float or potential, optional
        The wish.
    tolerance : float, default 0.05
        How much of the wanted change may be missed and still be called reached.

    Examples
    --------
    >>> query = pd.Series({"a": 1.0, "b": 2.0})
    >>> what_if(lambda X: X["a"] + X["b"], query, {"a": 3.0}, target=6.0)
    a 1 → 3: prediction 3 → 5
    1 away from the target: not reached.
    """
    check(isinstance(changes, Mapping), "changes", "a dict of feature to value", changes)
    free = space is None
    if space is None:
        row: Any = pd.DataFrame([query]) if isinstance(query, pd.Series | Mapping) else query
        table = isinstance(as_pandas(row), pd.DataFrame)
        space = Space.from_data(row if table or np.ndim(row) != 1 else np.atleast_2d(row))
    check(isinstance(space, Space), "space", "a Space", space, SpaceError)
    region = around(space, query)
    X, schema = region.query[None].copy(), region.schema
    given = {space.name(key): value for key, value in changes.items()}
    for name, value in given.items():
        code = schema.features[name].code
        X[0, schema.positions[name]] = np.nan if is_missing(value) else code(value, name, "changes")
    X = region.complete(X)
    full = [j for c, j in zip(schema.columns, schema.feature_at, strict=True) if not c.optional]
    off = np.isnan(X[0]) & np.isin(np.arange(X.shape[1]), full)
    if not off.any():
        rows = region.rows(np.vstack([region.query, X]))
        off = ~same_codes(region.encode(rows)[1], X[0])
    if off.any():
        name = region.names[int(np.argmax(off))]
        value = given.get(name)
        told = "be missing" if is_missing(value) else f"hold {value!r}"
        raise QueryError(
            f"`changes` must fit the columns; {name!r} can't {told}. Choose another value."
        )
    query_output, output = as_model(model, schema)(rows).tolist()
    goal = _goal(target, query_output, tolerance)
    return WhatIf(
        row=row_of(rows, 1),
        query_output=query_output,
        output=output,
        changes=changes_of(region, X, rows)[0],
        broken=() if free else broken(space, region, X)[0],
        miss=None if goal is None else wording.gap(output, goal[0]),
        reached=None if goal is None else bool(contains(goal[1], [output])[0]),
    )


def assess(
    model: Any,
    query: object,
    rows: object,
    space: Space,
    target: object = None,
    *,
    tolerance: float = 0.05,
) -> pd.DataFrame:
    """Return what counterfactuals from anywhere are worth: from another library, or by hand.

    The model scores the query, every row, and every row with each of its changes taken back alone.
    A row that the space can't hold, or that the model fails for, loses only its own figures.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row that was asked about.
    rows : DataFrame or array of shape (n, columns)
        The counterfactuals. Columns that the space does not have are left out.
    space : Space
        What may change, and how distances are measured.
    target : Target, float or potential, optional
        The wish.
    tolerance : float, default 0.05
        How much of the wanted change may be missed and still be called reached.

    Returns
    -------
    DataFrame
        One line per row: its ``output``, whether it is a ``hit`` within the tolerance and how far
        from the target itself (``miss``), its ``distance`` from the query and number of changes,
        ``changes`` in words, the limits and rules it has ``broken``, or what else is wrong with
        it, the distance ``to_data`` (its nearest row) and how ``plausibility`` it is
        (which share of the data is less so), and ``needless``: changes that can be taken back alone
        with the target still reached, the rules still kept.

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
    wrong = _misfits(space, table)
    fits = [i for i in range(len(table)) if i not in wrong]
    found = _measured(model, query, table.iloc[fits], space, target, tolerance)
    found = found.set_axis(fits, axis=0).reindex(range(len(table)))
    for i, why in wrong.items():
        found.loc[i, "broken"] = why
    found = found.fillna({"changes": "", "needless": ""})
    if "hit" in found:
        found["hit"] = found["hit"].eq(True)
    return found.set_axis(table.index, axis=0)


def _as_table(space: Space, rows: object) -> pd.DataFrame:
    """Return rows from anywhere with the columns of the space, and only those."""
    names = [*space.schema.places]
    rows = as_pandas(rows)
    if not isinstance(rows, pd.DataFrame):
        # a list of cells of several types would become text
        block = np.asarray(rows, dtype=object if isinstance(rows, list | tuple) else None)
        block = block.reshape(1, -1) if block.ndim == 1 else block
        good = block.ndim == 2 and block.shape[1] == len(names)
        check(good, "rows", f"a table with the columns {names}", rows)
        return pd.DataFrame(block, columns=pd.Index(names, tupleize_cols=False))
    rows = rows[[name for name in rows.columns if name in space.schema.places]]
    check(len(rows.columns) == len(names), "rows", f"a table with the columns {names}", rows)
    return rows


def _misfits(space: Space, table: pd.DataFrame) -> dict[int, str]:
    """Return which rows can't be rows of the space at all, by position, and why."""
    wrong: dict[int, str] = {}
    try:
        space.including(table)
    except QueryError:
        for i in range(len(table)):
            try:
                space.including(table.iloc[[i]])
            except QueryError as error:
                wrong[i] = one_line(str(error)).rstrip(".")
    return wrong


def _measured(
    model: Any, query: object, rows: pd.DataFrame, space: Space, target: object, tolerance: float
) -> pd.DataFrame:
    """Return what rows are worth that the space can hold; see :func:`assess`."""
    wider = space.including(rows)
    region = around(space, query, schema=wider.schema)
    X, f = region.encode(rows), as_model(model, region.schema)
    goal = _goal(target, float(f(region.rows(region.query[None]))[0]), tolerance)
    output, faults = _scored(f, region.rows(X))
    free = wider.changed(rules=())
    changes = changes_of(region, X, region.rows(np.vstack([region.query, X])))
    found: dict[str, Any] = {"output": output}
    if goal is not None:
        wanted, accepted = goal
        found["hit"] = contains(accepted, output)
        found["miss"] = [wording.gap(y, wanted) for y in output.tolist()]
    found["distance"] = around(free, query).distance(X)
    found["n_changes"] = pd.array(list(map(len, changes)), dtype="Int64")
    found["changes"] = [wording.moves(each) for each in changes]
    said = broken(space, region, X)
    for i, fault in faults.items():
        said[i] += (f"the model fails: {one_line(str(fault)).rstrip('.')}",)
    found["broken"] = list(map("; ".join, said))
    if len(space.background):
        each = (row_of(region.rows(X), i) for i in range(len(X)))
        nearest = [around(free, row).distance(space.background) for row in each]
        found["to_data"] = [float(np.nanmin(d)) for d in nearest]
    if space.plausibility is not None:
        found["plausibility"] = space.plausibility.share(X)
    if goal is not None:
        found["needless"] = _needless(f, space, region, X, found["hit"], accepted)
    return pd.DataFrame(found)


def _scored(f: Model, rows: Rows) -> tuple[Array, dict[int, Exception]]:
    """Return outputs ``(n,)``, nan where the model fails, and why it does, by position."""
    if not len(rows):
        return np.empty(0), {}
    try:
        y = f.scores(rows)
    except Exception as error:  # whatever the model raises
        if len(rows) == 1:
            return np.array([np.nan]), {0: error}
        each = [_scored(f, pick(rows, np.array([i]))) for i in range(len(rows))]
        faults = {i: bad[0] for i, (_, bad) in enumerate(each) if bad}
        return np.concatenate([part for part, _ in each]), faults
    bad = np.flatnonzero(~np.isfinite(y)).tolist()
    return np.where(np.isfinite(y), y, np.nan), {i: f.fault(rows, i, y[i]) for i in bad}


def broken(space: Space, region: Region, X: Array) -> list[tuple[str, ...]]:
    """Return which limits and rules each row of codes ``(n, d)`` breaks, in words."""
    said: list[list[str]] = [[] for _ in X]
    for j, (name, axis) in enumerate(zip(region.names, region.axes, strict=True)):
        if region.recomputed[j]:
            continue
        codes, feature = X[:, j], region.schema.features[name]
        kept = axis.snap(codes) == codes if axis.free else same_codes(codes, axis.query)
        known = len(space.features[name].levels) if feature.levelled else np.inf
        for i in np.flatnonzero(~kept).tolist():
            told = f"the limits of {name!r}" if axis.free else f"{name!r} is fixed"
            if np.isnan(codes[i]):
                told = f"{name!r} becomes missing"
            elif np.isnan(axis.query):
                told = f"{name!r} is missing in the query"
            elif codes[i] >= known:
                told = f"{name!r} has no level {feature.say(codes[i])[0]}"
            said[i].append(told)
    most = len(X.T) if region.max_changes is None else region.max_changes
    few = (f"more than {wording.count(most, 'change')}", region.changes(X).sum(axis=1) <= most)
    for label, kept in (few, *((rule.words.label, rule.holds(region, X)) for rule in region.rules)):
        for i in np.flatnonzero(~kept).tolist():
            said[i].append(label)
    return [tuple(each) for each in said]


def _needless(
    f: Model, space: Space, region: Region, X: Array, hit: Mask, accepted: Intervals
) -> list[str]:
    """Return the changes that can be taken back alone, by row, in words."""
    at, j = np.nonzero(region.changes(X) & hit[:, None])
    back = X[at]
    back[np.arange(len(at)), j] = region.query[j]
    back = region.complete(back)
    still = contains(accepted, _scored(f, region.rows(back))[0])
    # what was broken before may stay so; nothing new may be
    before, after = broken(space, region, X[at]), broken(space, region, back)
    said: list[list[str]] = [[] for _ in X]
    for k in np.flatnonzero(still).tolist():
        if set(after[k]) <= set(before[k]):
            said[at[k]].append(str(region.names[j[k]]))
    return [", ".join(each) for each in said]


def around(space: Space, query: object, schema: Schema | None = None) -> Region:
    """Return the region around a row, without the warnings of a search."""
    with hearing(lambda _: None):
        return space.around(query, schema=schema)


def _goal(target: object, output: float, tolerance: float) -> tuple[Intervals, Intervals] | None:
    """Return the outputs that a target wants, and those that count as reached; None without one."""
    if target is None:
        return None
    wish = as_target(target, np.array([output]))
    return wish.wanted(output), wish.acceptance(output, tolerance)


def changes_of(region: Region, X: Array, rows: Rows) -> list[dict[Hashable, tuple[Any, Any]]]:
    """Return what codes ``(n, d)`` change, by feature; `rows` are the query and theirs."""
    before, *after = by_feature(region.schema, rows_of(rows))
    moved = region.changes(X) | ((np.isnan(region.query) != np.isnan(X)) & ~region.recomputed)
    return [
        {name: (before[name], cells[name]) for name in compress(region.names, moved[i])}
        for i, cells in enumerate(after)
    ]
