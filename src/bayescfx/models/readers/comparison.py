"""Comparison of a form with the model that it was read from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask, is_single
from bayescfx.data.tables import Rows
from bayescfx.models.model import Model
from bayescfx.models.readers.forms import Form, Inputs, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.sources import UnreadableModelError

_MOST_ROWS = 128  # of each kind
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
    beyond those of a column, and on values next to thresholds.

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
    """
    rng = np.random.default_rng(_SEED)
    given = rows[:_MOST_ROWS]
    expected = [model.scores(given)]
    computed = [form.predict(given)]
    for batch in _other_rows(form, model, rows, rng):
        outputs = _scores(model, batch)
        if outputs is not None:
            expected.append(outputs)
            computed.append(form.predict(batch))
    return _check_close(form, np.concatenate(expected), np.concatenate(computed))


def _other_rows(form: Form, model: Model, rows: Rows, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield batches of rows that are not among those given."""
    yield _shuffled(rows, rng)
    if isinstance(form, TreeEnsemble):
        yield _near_thresholds(form, rows, rng)
    numeric = [place for place in range(rows.shape[1]) if _is_numeric(_cells(rows, place))]
    everywhere = _beyond(rows, numeric, rng)
    yield everywhere
    if _scores(model, everywhere) is None:  # numbers of some columns may stand for levels
        for place in numeric[:_MOST_SHUFFLES]:
            yield _beyond(rows, [place], rng)


def _scores(model: Model, rows: Rows) -> Array | None:
    """Return the outputs of rows ``(n,)``, or None if the model refuses some of them."""
    try:
        return model.scores(rows)
    except Exception:  # about values that it was not trained on
        return None


def check_inputs(inputs: Inputs, rows: Rows) -> None:
    """Raise if a number changes with another column than its own, or in another direction."""
    rng = np.random.default_rng(_SEED)
    given = rows[:_MOST_ROWS]
    names = _names(rows)
    before = inputs.compute(given)
    own = np.array([names.index(name) for name in inputs.columns], dtype=np.intp)
    singles = np.eye(len(names), dtype=bool)
    halves = rng.random((_MOST_SHUFFLES, len(names))) < 0.5
    for moved in singles if len(names) <= _MOST_SHUFFLES else halves:
        after = inputs.compute(_with_shuffled(given, moved, rng))
        is_same = (before == after) | (np.isnan(before) & np.isnan(after))
        changed = np.flatnonzero(~is_same.all(axis=0) & ~moved[own])
        if changed.size:
            name = inputs.columns[changed[0]]
            raise UnreadableModelError(f"a number computed from {name!r} changes with others too")
    _check_directions(inputs, given)


def _with_shuffled(rows: Rows, moved: Mask, rng: np.random.Generator) -> Rows:
    """Return rows in which the cells of some columns have changed places."""
    columns = [_cells(rows, place) for place in range(len(moved))]
    for place in np.flatnonzero(moved).tolist():
        order = rng.permutation(len(rows))
        columns[place] = columns[place].iloc[order].set_axis(columns[place].index)
    return _table(rows, columns)


def _check_directions(inputs: Inputs, rows: Rows) -> None:
    """Raise if a number falls where it must rise, or the reverse."""
    names = _names(rows)
    directed = np.flatnonzero(inputs.direction).tolist()
    columns = [_cells(rows, place) for place in range(len(names))]
    for place in {names.index(inputs.columns[k]) for k in directed}:
        columns[place] = _sorted_cells(columns[place])
    numbers = inputs.compute(_table(rows, columns))
    for k in directed:
        is_present = columns[names.index(inputs.columns[k])].notna().to_numpy()
        present = numbers[is_present & ~np.isnan(numbers[:, k]), k]
        steps = np.diff(present) * inputs.direction[k]
        if steps.size and steps.min() < -_MONOTONE_TOLERANCE * np.ptp(present):
            raise UnreadableModelError(
                f"a number computed from {inputs.columns[k]!r} does not only rise or fall"
            )


def _sorted_cells(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of numbers in rising order, with the labels of before."""
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    order = np.argsort(values, kind="stable")  # missing cells are the last
    return cells.iloc[order].set_axis(cells.index)


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


def _shuffled(rows: Rows, rng: np.random.Generator) -> Rows:
    """Return rows whose cells are drawn from each column on its own."""
    size = min(max(len(rows), 32), _MOST_ROWS)
    draws = rng.integers(len(rows), size=(size, rows.shape[1]))
    columns = [_cells(rows, place).iloc[draws[:, place]] for place in range(rows.shape[1])]
    return _table(rows, [column.reset_index(drop=True) for column in columns])


def _beyond(rows: Rows, places: list[int], rng: np.random.Generator) -> Rows:
    """Return shuffled rows with new values in some columns, between and beyond those given."""
    mixed = _shuffled(rows, rng)
    columns = [_cells(mixed, place) for place in range(mixed.shape[1])]
    for place in places:
        cells = columns[place]
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        low = np.nanmin(values, initial=np.inf)
        high = np.nanmax(values, initial=-np.inf)
        anywhere = low + rng.uniform(-0.25, 1.25, len(values)) * (high - low)
        between = values + rng.uniform(size=len(values)) * (rng.permutation(values) - values)
        new = np.where(rng.random(len(values)) < 0.5, anywhere, between)
        is_new = np.isfinite(new) & (rng.random(len(values)) < 0.5)
        columns[place] = _replaced(cells, is_new, new)
    return _table(rows, columns)


def _near_thresholds(form: TreeEnsemble, rows: Rows, rng: np.random.Generator) -> Rows:
    """Return shuffled rows in which one cell each is a threshold or a float step beside it."""
    mixed = _shuffled(rows, rng)
    columns = [_cells(mixed, place) for place in range(mixed.shape[1])]
    names = _names(rows)
    for row in range(len(mixed) if len(form.tests) else 0):
        test = int(rng.integers(len(form.tests)))
        place = names.index(form.inputs.columns[form.tests.input[test]])
        cells = columns[place]
        threshold = form.tests.threshold[test]
        is_float = cells.dtype.kind == "f"
        if test in form.tests.levels or not is_float or abs(threshold) > _MOST_THRESHOLD:
            continue
        new = np.full(len(cells), _beside(threshold)[rng.integers(5)])
        columns[place] = _replaced(cells, np.arange(len(cells)) == row, new)
    return _table(rows, columns)


def _beside(threshold: float) -> list[float]:
    """Return a threshold, and the next numbers in double and in single precision."""
    return [
        threshold,
        np.nextafter(threshold, np.inf),
        np.nextafter(threshold, -np.inf),
        float(np.nextafter(np.float32(threshold), np.float32(np.inf))),
        float(np.nextafter(np.float32(threshold), np.float32(-np.inf))),
    ]


def _names(rows: Rows) -> list[Any]:
    """Return the names of columns, or their positions in an array."""
    return list(rows.columns) if isinstance(rows, pd.DataFrame) else list(range(rows.shape[1]))


def _cells(rows: Rows, place: int) -> pd.Series[Any]:
    """Return a column by its position."""
    return rows.iloc[:, place] if isinstance(rows, pd.DataFrame) else pd.Series(rows[:, place])


def _is_numeric(cells: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, booleans not counted."""
    dtype = cells.dtype
    return bool(pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype))


def _replaced(cells: pd.Series[Any], is_new: Any, new: Array) -> pd.Series[Any]:
    """Return a column with some new values, as far as its dtype can hold them."""
    if pd.api.types.is_integer_dtype(cells.dtype):
        limits = np.iinfo(getattr(cells.dtype, "numpy_dtype", cells.dtype))
        new = np.clip(np.rint(np.where(is_new, new, 0.0)), limits.min, limits.max)
    typed = pd.Series(np.where(is_new, new, 0.0), index=cells.index).astype(cells.dtype)
    return cells.where(~pd.Series(is_new, index=cells.index), typed)


def _table(like: Rows, columns: list[pd.Series[Any]]) -> Rows:
    """Return columns as rows of the same kind as others."""
    if not isinstance(like, pd.DataFrame):
        return np.stack([column.to_numpy() for column in columns], axis=1).astype(like.dtype)
    frame = pd.concat(columns, axis=1)
    frame.columns = like.columns
    return frame
