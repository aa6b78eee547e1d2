"""Comparison of a form with the model that it was read from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask, is_single
from bayescfx.data.tables import Rows
from bayescfx.deadline import time_limit
from bayescfx.errors import OutOfTime
from bayescfx.models.model import Model
from bayescfx.models.readers.drawn_rows import DrawnRows, join_rows
from bayescfx.models.readers.forms import Form, Inputs, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.sources import UnreadableModelError

_MOST_ROWS = 128  # of each kind
_ROWS_IN_TIME = 64  # scored in one call if there is a time limit
_SINGLE_TOLERANCE = 1e-6  # of the spread of the outputs, for models that compute in float32
_DOUBLE_TOLERANCE = 1e-9  # for models that compute in float64
_MOST_SHUFFLES = 24  # to find out which columns a number depends on
_MONOTONE_TOLERANCE = 1e-12  # of the spread of a number
_MOST_THRESHOLD = 1e30  # those beyond stand for infinity
_SEED = 0


def largest_difference(form: Form, model: Model, rows: Rows) -> float:
    """Return the largest difference between the outputs of a form and of its model.

    It is at least the usual rounding error of a sum with as many terms.

    They are compared on the rows given, on rows with shuffled columns, on values between and
    beyond those of a column, and on values next to thresholds: at most 512 rows. They are scored
    in one call, unless the model refuses some of them.

    Parameters
    ----------
    form : TreeEnsemble, LinearModel or ReluNetwork
        What was read from the model.
    model : Model
        The model.
    rows : DataFrame or array of shape (n, columns)
        Rows as the model gets them.

    Raises
    ------
    UnreadableModelError
        If the outputs differ by more than rounding.
    OutOfTime
        If the time limit has passed before all rows were compared.
    """
    rng = np.random.default_rng(_SEED)
    sample = DrawnRows.of(rows).take(np.arange(min(len(rows), _MOST_ROWS)))
    batches = [sample, *_other_rows(form, DrawnRows.of(rows), rng)]
    compared = _accepted_rows(model, rows, batches)
    if compared is None:
        numeric = sample.numeric_places[:_MOST_SHUFFLES]
        batches[-1:] = [_beyond(DrawnRows.of(rows), [place], rng) for place in numeric]
        compared = _accepted_one_by_one(model, rows, batches)
    accepted, expected = compared
    return _check_close(form, expected, form.predict(accepted.table(rows)))


def _other_rows(form: Form, given: DrawnRows, rng: np.random.Generator) -> list[DrawnRows]:
    """Return batches of rows that are not among those given; numbers beyond the data are last."""
    batches = [_shuffled(given, rng)]
    if isinstance(form, TreeEnsemble) and len(form.tests):
        batches.append(_near_thresholds(form, given, rng))
    batches.append(_beyond(given, given.numeric_places, rng))
    return batches


def _accepted_rows(
    model: Model, like: Rows, batches: list[DrawnRows]
) -> tuple[DrawnRows, Array] | None:
    """Return all rows with their outputs; None if the model refuses some of them."""
    all_rows = join_rows(batches)
    outputs = _scores(model, all_rows.table(like))
    return None if outputs is None else (all_rows, outputs)


def _accepted_one_by_one(
    model: Model, like: Rows, batches: list[DrawnRows]
) -> tuple[DrawnRows, Array]:
    """Return the batches that the model accepts, the first one at least, with their outputs."""
    accepted = [batches[0]]
    outputs = [_scores_in_time(model, batches[0].table(like))]
    for batch in batches[1:]:
        found = _scores(model, batch.table(like))
        if found is not None:
            accepted.append(batch)
            outputs.append(found)
    return join_rows(accepted), np.concatenate(outputs)


def _scores(model: Model, rows: Rows) -> Array | None:
    """Return the outputs of rows ``(n,)``, or None if the model refuses some of them."""
    try:
        return _scores_in_time(model, rows)
    except OutOfTime:
        raise
    except Exception:  # about values that it was not trained on
        return None


def _scores_in_time(model: Model, rows: Rows) -> Array:
    """Return the outputs of rows ``(n,)``; with a time limit, a few rows at a time."""
    deadline = time_limit.get()
    n_at_once = _ROWS_IN_TIME if np.isfinite(deadline.at) else max(len(rows), 1)
    outputs = []
    for start in range(0, len(rows), n_at_once):
        deadline.check()
        outputs.append(model.scores(rows[start : start + n_at_once]))
    return np.concatenate(outputs)


def check_inputs(inputs: Inputs, rows: Rows) -> None:
    """Raise if a number changes with another column than its own, or in another direction.

    All rows are computed in one call: those given, some with shuffled columns, and the values of
    each column in rising order.
    """
    rng = np.random.default_rng(_SEED)
    given = DrawnRows.of(rows[:_MOST_ROWS])
    n_columns = len(given.cells)
    own = np.array([given.names.index(name) for name in inputs.columns], dtype=np.intp)
    moved = np.eye(n_columns, dtype=np.bool_)
    if n_columns > _MOST_SHUFFLES:
        moved = rng.random((_MOST_SHUFFLES, n_columns)) < 0.5
    directed = {int(own[k]) for k in np.flatnonzero(inputs.direction)}
    order = _shuffled_orders(given.n_rows, moved, rng)
    rising = np.repeat(np.arange(given.n_rows)[None, :, None], n_columns, axis=2)
    for place in directed:
        rising[0, :, place] = np.argsort(given.numbers(place), kind="stable")  # missing ones last
    order = np.concatenate([order, rising])
    changed_rows = given.take_each(order.reshape(-1, n_columns))
    numbers = inputs.compute(changed_rows.table(rows)).reshape(*order.shape[:2], len(own))
    _check_own_columns(inputs, numbers[0], numbers[1:-1], moved[:, own])
    _check_directions(inputs, numbers[-1], given, rising[0][:, own])


def _shuffled_orders(n_rows: int, moved: Mask, rng: np.random.Generator) -> Indices:
    """Return the order of the cells of each column: ``(1 + v, n_rows, columns)``.

    The first is the order of the rows; each of the others shuffles the columns `moved` ``(v, c)``.
    """
    order = np.repeat(np.arange(n_rows)[None, :, None], 1 + len(moved), axis=0)
    order = np.repeat(order, moved.shape[1], axis=2)
    for variant, place in np.argwhere(moved).tolist():
        order[1 + variant, :, place] = rng.permutation(n_rows)
    return order


def _check_own_columns(inputs: Inputs, before: Array, after: Array, moved: Mask) -> None:
    """Raise if a number ``(n, m)`` changes ``(v, n, m)`` though its column has not ``(v, m)``."""
    is_same = (before == after) | (np.isnan(before) & np.isnan(after))
    changed = np.argwhere(~is_same.all(axis=1) & ~moved)
    if len(changed):
        name = inputs.columns[changed[0, 1]]
        raise UnreadableModelError(f"a number computed from {name!r} changes with others too")


def _check_directions(inputs: Inputs, numbers: Array, given: DrawnRows, order: Indices) -> None:
    """Raise if a number falls where it must rise, or the reverse.

    `numbers` and `order` ``(n, m)`` are those of each number's column in rising order.
    """
    for k in np.flatnonzero(inputs.direction).tolist():
        values = given.numbers(given.names.index(inputs.columns[k]))[order[:, k]]
        present = numbers[~np.isnan(values) & ~np.isnan(numbers[:, k]), k]
        steps = np.diff(present) * inputs.direction[k]
        if steps.size and steps.min() < -_MONOTONE_TOLERANCE * np.ptp(present):
            raise UnreadableModelError(
                f"a number computed from {inputs.columns[k]!r} does not only rise or fall"
            )


def _check_close(form: Form, expected: Array, computed: Array) -> float:
    """Return the largest difference, or raise if it is more than rounding."""
    difference = np.abs(expected - computed)
    difference[(expected == computed) | (np.isnan(expected) & np.isnan(computed))] = 0.0
    largest = float(difference.max(initial=0.0))
    finite = expected[np.isfinite(expected)]
    spread = float(np.ptp(finite)) if finite.size else 0.0
    tolerance = _DOUBLE_TOLERANCE * spread + _summing_error(form, finite, np.float64)
    if is_single(expected) or is_single(1.0 - expected):  # the latter: of the first of two classes
        tolerance = _SINGLE_TOLERANCE * spread + _summing_error(form, finite, np.float32)
    if not largest <= tolerance:
        raise UnreadableModelError(
            f"the outputs of the form and of the model differ by {largest:.3g} "
            f"(rounding explains {tolerance:.3g})"
        )
    return max(largest, _summing_error(form, finite, np.float64))


def _summing_error(form: Form, outputs: Array, dtype: type) -> float:
    """Return the usual rounding error of a sum with as many terms as a form."""
    largest = float(np.abs(outputs).max(initial=0.0))
    return float(4.0 * np.sqrt(_n_terms(form) + 1.0) * np.finfo(dtype).eps * largest)


def _n_terms(form: Form) -> int:
    """Return the number of terms of the sums that a form adds up."""
    if isinstance(form, TreeEnsemble):
        return len(form.roots)
    if isinstance(form, ReluNetwork):
        return sum(layer.shape[1] for layer in form.weights)
    return len(form.weights)


def _shuffled(given: DrawnRows, rng: np.random.Generator) -> DrawnRows:
    """Return rows whose cells are drawn from each column on its own."""
    size = min(max(given.n_rows, 32), _MOST_ROWS)
    return given.take_each(rng.integers(given.n_rows, size=(size, len(given.cells))))


def _beyond(given: DrawnRows, places: list[int], rng: np.random.Generator) -> DrawnRows:
    """Return shuffled rows with new values in some columns, between and beyond those given."""
    mixed = _shuffled(given, rng)
    cells = list(mixed.cells)
    for place in places:
        values = mixed.numbers(place)
        low = np.nanmin(values, initial=np.inf)
        high = np.nanmax(values, initial=-np.inf)
        anywhere = low + rng.uniform(-0.25, 1.25, len(values)) * (high - low)
        between = values + rng.uniform(size=len(values)) * (rng.permutation(values) - values)
        new = np.where(rng.random(len(values)) < 0.5, anywhere, between)
        is_new = np.isfinite(new) & (rng.random(len(values)) < 0.5)
        cells[place] = _replaced(cells[place], np.flatnonzero(is_new), new[is_new])
    return replace(mixed, cells=cells)


def _near_thresholds(form: TreeEnsemble, given: DrawnRows, rng: np.random.Generator) -> DrawnRows:
    """Return shuffled rows in which one cell each is a threshold or a float step beside it."""
    mixed = _shuffled(given, rng)
    cells = list(mixed.cells)
    test = rng.integers(len(form.tests), size=mixed.n_rows)
    choice = rng.integers(5, size=mixed.n_rows)
    threshold = form.tests.threshold[test]
    new = _beside(threshold)[choice, np.arange(mixed.n_rows)]
    is_usable = ~form.tests.is_of_levels[test] & (np.abs(threshold) <= _MOST_THRESHOLD)
    columns = [given.names.index(name) for name in form.inputs.columns]
    tested = np.array(columns, dtype=np.intp)[form.tests.input[test]]
    for place in np.unique(tested[is_usable]).tolist():
        if cells[place].dtype.kind == "f":
            own = np.flatnonzero(is_usable & (tested == place))
            cells[place] = _replaced(cells[place], own, new[own])
    return replace(mixed, cells=cells)


def _beside(threshold: Array) -> Array:
    """Return thresholds ``(n,)`` and the next numbers in double and single precision, (5, n)."""
    with np.errstate(over="ignore", under="ignore"):
        single = threshold.astype(np.float32)
    return np.stack(
        [
            threshold,
            np.nextafter(threshold, np.inf),
            np.nextafter(threshold, -np.inf),
            np.nextafter(single, np.float32(np.inf)).astype(np.float64),
            np.nextafter(single, np.float32(-np.inf)).astype(np.float64),
        ]
    )


def _replaced(cells: Any, places: Indices, new: Array) -> Any:
    """Return the cells of a column with new values at some places, as its dtype can hold them."""
    dtype = cells.dtype
    if pd.api.types.is_integer_dtype(dtype):
        limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        new = np.clip(np.rint(new), limits.min, limits.max)
    found = cells.copy()
    with np.errstate(over="ignore"):
        found[places] = (
            pd.array(new).astype(dtype) if not isinstance(dtype, np.dtype) else new.astype(dtype)
        )
    return found
