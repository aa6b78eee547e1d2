"""Which column each output of a transformer is computed from, and in which direction.

Only the structure is worked out here. The numbers come from the fitted transformers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Indices
from bayescfx.models.readers.sources import Columns, UnreadableModelError, join_columns

#: Takes a fitted transformer, the columns of its table and a sample of that table.
Tracer: TypeAlias = Callable[[Any, Columns, Any], Columns]

_RISING = {
    np.log,
    np.log2,
    np.log10,
    np.log1p,
    np.exp,
    np.exp2,
    np.expm1,
    np.sqrt,
    np.cbrt,
    np.arcsinh,
    np.sinh,
    np.tanh,
    np.arctan,
    np.floor,
    np.ceil,
    np.rint,
    np.positive,
}
_MIXING = {
    "PCA",
    "IncrementalPCA",
    "KernelPCA",
    "TruncatedSVD",
    "FastICA",
    "NMF",
    "PolynomialFeatures",
    "Normalizer",
    "KNNImputer",
    "IterativeImputer",
    "RBFSampler",
    "Nystroem",
    "LinearDiscriminantAnalysis",
    "KMeans",
}


def trace_columns(transformer: Any, columns: Columns, sample: Any) -> Columns:
    """Return the columns of the table that a fitted transformer returns.

    Parameters
    ----------
    transformer : object
        The fitted transformer, or ``"passthrough"``.
    columns : Columns
        The columns of the table that it gets.
    sample : DataFrame, array or sparse matrix of shape (n, columns)
        Some rows of that table.

    Raises
    ------
    UnreadableModelError
        If an output is computed from several columns, or the class is not known.
    """
    if passes_through(transformer):
        return columns
    traced = _find_tracer(type(transformer))(transformer, columns, sample)
    width = transformer.transform(sample).shape[1]
    if len(traced) != width:
        name = type(transformer).__name__
        raise UnreadableModelError(
            f"a {name} step returns {width} columns, but {len(traced)} were expected"
        )
    return traced


def passes_through(step: Any) -> bool:
    """Return whether a step of a pipeline does nothing: None or ``"passthrough"``."""
    return step is None or isinstance(step, str)


def _find_tracer(kind: type) -> Tracer:
    """Return the function that traces columns through a class of scikit-learn or a derived one."""
    for base in kind.__mro__:
        is_known = base.__module__.startswith("sklearn.")
        if is_known and base.__name__ in TRACERS:
            return TRACERS[base.__name__]
    if kind.__name__ in _MIXING:
        raise UnreadableModelError(f"a {kind.__name__} step mixes columns")
    raise UnreadableModelError(f"there is no reader for a {kind.__name__} step")


# ── steps that contain others ──


def _trace_pipeline(pipeline: Any, columns: Columns, sample: Any) -> Columns:
    for _, step in pipeline.steps:
        if passes_through(step):
            continue
        columns = trace_columns(step, columns, sample)
        sample = step.transform(sample)
    return columns


def _trace_union(union: Any, columns: Columns, sample: Any) -> Columns:
    parts = [part for _, part in union.transformer_list if part != "drop"]
    return join_columns([trace_columns(part, columns, sample) for part in parts])


def _trace_column_transformer(transformer: Any, columns: Columns, sample: Any) -> Columns:
    outputs = []
    for name, part, _ in transformer.transformers_:
        fitted = transformer._transformer_to_input_indices[name]
        if len(fitted) and not _is_dropped(part):
            places = _present_places(transformer, fitted, sample)
            outputs.append(trace_columns(part, columns.take(places), _selected(sample, places)))
    return join_columns(outputs)


def _is_dropped(part: Any) -> bool:
    """Return whether the columns of a part are left out."""
    return isinstance(part, str) and part == "drop"


def _present_places(transformer: Any, fitted: Any, sample: Any) -> list[int]:
    """Return the positions in a table of columns that are given by those in training."""
    if not isinstance(sample, pd.DataFrame) or not hasattr(transformer, "feature_names_in_"):
        return list(fitted)
    present = list(sample.columns)
    return [present.index(name) for name in transformer.feature_names_in_[fitted]]


def _selected(sample: Any, places: list[int]) -> Any:
    """Return some columns of a table."""
    return sample.iloc[:, places] if isinstance(sample, pd.DataFrame) else sample[:, places]


# ── steps that act on each column by itself ──


def _trace_rising(transformer: Any, columns: Columns, sample: Any) -> Columns:
    return columns


def _trace_codes(transformer: Any, columns: Columns, sample: Any) -> Columns:
    return columns.turn(0)


def _trace_selection(transformer: Any, columns: Columns, sample: Any) -> Columns:
    return columns.take(np.flatnonzero(transformer.get_support()))


def _trace_imputer(imputer: Any, columns: Columns, sample: Any) -> Columns:
    filled = columns.take(_imputed_places(imputer, len(columns)))
    if not _is_nan(imputer.missing_values) and imputer.missing_values is not None:
        filled = filled.turn(0)  # a number in the middle of the range counts as missing
    indicator = getattr(imputer, "indicator_", None)
    if indicator is None:
        return filled
    return join_columns([filled, _trace_indicator(indicator, columns, sample)])


def _imputed_places(imputer: Any, n_columns: int) -> Indices:
    """Return the columns that an imputer returns: some leave out those that were empty."""
    if getattr(imputer, "keep_empty_features", False) or imputer.strategy == "constant":
        return np.arange(n_columns)
    is_empty = [_is_nan(value) for value in imputer.statistics_]
    return np.flatnonzero(~np.array(is_empty))


def _trace_indicator(indicator: Any, columns: Columns, sample: Any) -> Columns:
    return columns.take(indicator.features_).turn(0)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


def _trace_one_hot(encoder: Any, columns: Columns, sample: Any) -> Columns:
    counts = [len(known) for known in encoder.categories_]
    rare = getattr(encoder, "infrequent_categories_", [None] * len(counts))
    dropped = encoder.drop_idx_ if encoder.drop_idx_ is not None else [None] * len(counts)
    for place in range(len(counts)):
        if rare[place] is not None:
            counts[place] -= len(rare[place]) - 1  # one column for all of them
        if dropped[place] is not None:
            counts[place] -= 1
    return _repeated(columns, counts).turn(0)


def _trace_target_encoder(encoder: Any, columns: Columns, sample: Any) -> Columns:
    n_each = len(encoder.classes_) if encoder.target_type_ == "multiclass" else 1
    return _repeated(columns, [n_each] * len(columns)).turn(0)


def _trace_bins(binning: Any, columns: Columns, sample: Any) -> Columns:
    if binning.encode == "ordinal":
        return columns
    return _repeated(columns, binning.n_bins_).turn(0)


def _trace_splines(splines: Any, columns: Columns, sample: Any) -> Columns:
    n_each = splines.n_features_out_ // len(columns)
    return _repeated(columns, [n_each] * len(columns)).turn(0)


def _repeated(columns: Columns, counts: Any) -> Columns:
    """Return each column as often as counted."""
    return columns.take(np.repeat(np.arange(len(columns)), counts))


def _trace_function(transformer: Any, columns: Columns, sample: Any) -> Columns:
    if transformer.func is None:
        return columns
    if not transformer.kw_args:
        if transformer.func in _RISING:
            return columns
        if transformer.func is np.negative:
            return columns.turn(-1)
    return columns.take(_numeric_sources(transformer, sample)).turn(0)


def _numeric_sources(transformer: Any, sample: Any) -> Indices:
    """Return the column that each output of a function changes with, found by shuffling."""
    before = _cells(transformer.transform(sample))
    source = np.zeros(before.shape[1], dtype=np.intp)
    is_taken = np.zeros(before.shape[1], dtype=bool)
    rng = np.random.default_rng(0)
    for place in range(sample.shape[1]):
        changed = sample.copy()
        order = rng.permutation(len(sample))
        if isinstance(sample, pd.DataFrame):
            changed.isetitem(place, sample.iloc[order, place].array)
        else:
            changed[:, place] = sample[order, place]
        after = _cells(transformer.transform(changed))
        is_same = (before == after) | (pd.isna(before) & pd.isna(after))
        moved = ~is_same.all(axis=0)
        if (moved & is_taken).any():
            raise UnreadableModelError("a FunctionTransformer step mixes columns")
        source[moved] = place
        is_taken |= moved
    return source


def _cells(table: Any) -> Any:
    """Return the cells of a table as an array."""
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table)


#: By the name of scikit-learn's class.
TRACERS: dict[str, Tracer] = {
    "Pipeline": _trace_pipeline,
    "FeatureUnion": _trace_union,
    "ColumnTransformer": _trace_column_transformer,
    "FunctionTransformer": _trace_function,
    "SimpleImputer": _trace_imputer,
    "MissingIndicator": _trace_indicator,
    "OneHotEncoder": _trace_one_hot,
    "OrdinalEncoder": _trace_codes,
    "TargetEncoder": _trace_target_encoder,
    "KBinsDiscretizer": _trace_bins,
    "SplineTransformer": _trace_splines,
    "StandardScaler": _trace_rising,
    "MinMaxScaler": _trace_rising,
    "MaxAbsScaler": _trace_rising,
    "RobustScaler": _trace_rising,
    "QuantileTransformer": _trace_rising,
    "PowerTransformer": _trace_rising,
    "Binarizer": _trace_rising,
    "SelectorMixin": _trace_selection,
}
