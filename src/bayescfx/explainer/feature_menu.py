"""The menu of a question: every small set of features, searched exactly."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, check_whole
from bayescfx.data.schema import by_feature
from bayescfx.data.tables import rows_of
from bayescfx.errors import ModelError, SpaceError
from bayescfx.explainer.call_settings import PROOF_WORK
from bayescfx.models.class_scores import answering, predicted_label
from bayescfx.models.model import Model, as_model
from bayescfx.models.readers import LinearModel, ReluNetwork
from bayescfx.potentials import Intervals, contains
from bayescfx.potentials.targets import as_target
from bayescfx.result.menu import Menu, MenuItem
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.linear_menus import make_linear_menu
from bayescfx.search.exact.menus import MenuEntry, make_menu
from bayescfx.search.exact.prover import Prover, raw_intervals
from bayescfx.space.region import Region
from bayescfx.space.space import Space

#: The largest sets of a menu by default, and at most.
SIZE = 2
_LARGEST_SIZE = 4


def menu(
    model: Any,
    query: object,
    space: Space,
    target: object,
    *,
    size: int = SIZE,
    tolerance: float = 0.05,
) -> Menu:
    """Return which small sets of features can reach a target.

    Each set is searched exactly, all other features as in the query: the lowest cost, or a proof
    that the set can't reach the target. The work is limited, about as that of a proof.

    Parameters
    ----------
    model : object
        A fitted tree ensemble or linear model, also in a pipeline.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to start from.
    space : Space
        The features and what may change.
    target : Target, float or potential
        The wanted prediction.
    size : int, default 2
        The largest number of features of a set, 1 to 4.
    tolerance : float, default 0.05
        The share of the wanted change by which an exact target, such as ``reach(150)``, may be
        missed and still count as reached. No other target has a tolerance.

    Returns
    -------
    Menu

    Raises
    ------
    ModelError
        If the model can't be read, or is a network.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = pd.DataFrame({"a": [0, 1, 2, 3] * 2, "b": [0] * 4 + [1] * 4})
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, X.a + 4 * (X.b & (X.a > 1)))
    >>> found = menu(model, X.iloc[0], Space.from_data(X), ">= 3")
    >>> [(item.name, item.status) for item in found]
    [('a alone', 'reaches'), ('b alone', 'cannot'), ('a and b', 'reaches')]
    """
    check(isinstance(space, Space), "space", "a Space", space, SpaceError)
    checked = as_model(model, space.schema)
    region = space.around(query)
    predicted = partial(predicted_label, checked, region.rows(region.query[None]))
    chosen, asked = answering(checked, target, predicted)
    return menu_of_query(chosen, Prover(chosen), region, asked, size, tolerance)


def menu_of_query(
    model: Model, prover: Prover, region: Region, target: object, size: int, tolerance: float
) -> Menu:
    """Return the menu of a query; see :func:`menu`."""
    check_whole("size", size, 1)
    check(size <= _LARGEST_SIZE, "size", f"at most {_LARGEST_SIZE}", size)
    query = region.query[None]
    y = model.scores(region.rows(query))
    accepted = as_target(target, y.tolist()).acceptance(float(y[0]), tolerance)
    try:
        prover.form(region, query, y)
        return find_menu(model, prover, region, accepted, size, Work(PROOF_WORK))
    except NoProof as error:
        raise ModelError(
            f"`model` must be a tree ensemble or linear model that can be read; {error}. Use "
            "explain, which searches any model."
        ) from None


def find_menu(
    model: Model, prover: Prover, region: Region, accepted: Intervals, size: int, work: Work
) -> Menu:
    """Return the menu of a region; raise `NoProof` if the model can't be read or is a network.

    Parameters
    ----------
    model : Model
        The model, which scores each row that is returned.
    prover : Prover
        The model as it was read.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        The outputs that reach the target.
    size : int
        The largest number of features of a set.
    work : Work
        What limits the work.
    """
    reading = prover.reading(region)
    form = reading.form
    if form is None or isinstance(form, ReluNetwork):
        raise NoProof("it is a network" if form is not None else reading.reason)

    def reaches(X: Array) -> Mask:
        """Return which rows of codes ``(n, d)`` reach the target, by the model itself."""
        return contains(accepted, model.scores(region.rows(X)))

    sums = raw_intervals(form, accepted, reading.rounding)
    sizes = range(1, size + 1)
    if isinstance(form, LinearModel):
        entries = make_linear_menu(form, region, sums, work, sizes, reaches)
    else:
        table = prover.table(region, form)
        entries = make_menu(table, region, sums, work=work, sizes=sizes, reaches=reaches)
    return Menu(tuple(_as_items(model, region, entries)))


def _as_items(model: Model, region: Region, entries: list[MenuEntry]) -> Iterator[MenuItem]:
    """Yield entries in the user's values."""
    X = np.array([region.query, *(entry.codes(region.query) for entry in entries)])
    rows = region.rows(X)
    query, *cells = by_feature(region.schema, rows_of(rows))
    outputs = model.scores(rows)[1:].tolist()
    changed = region.changes(X)[1:]
    for entry, own, output, moved in zip(entries, cells, outputs, changed, strict=True):
        names = compress(region.names, moved)
        yield MenuItem(
            features=tuple(region.names[j] for j in entry.features),
            status=entry.status,
            cost=entry.lowest_cost,
            is_proven=entry.is_proven,
            changes={name: (query[name], own[name]) for name in names},
            output=output if moved.any() else None,
        )
