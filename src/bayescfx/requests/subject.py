"""`Subject`: the model, the data and the space that questions are about."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.data import Feature, infer
from bayescfx.data.values import as_number
from bayescfx.errors import SettingsError, suggest
from bayescfx.models.class_scores import class_target
from bayescfx.models.input_columns import has_level
from bayescfx.models.loaded import Loaded
from bayescfx.models.model import Model as Model
from bayescfx.models.model import as_model
from bayescfx.requests.console import Console
from bayescfx.requests.constraints import apply_constraints
from bayescfx.requests.option import about_parameter
from bayescfx.requests.query_rows import check_levels, row_cells
from bayescfx.requests.settings import Settings, split_assignment
from bayescfx.requests.table_files import TableFormat, check_numbers, mean_missing, read_table
from bayescfx.space.region import Region

PROBES = 5  # rows that show whether a model uses a column; set by judgement, 2026-11-18


class CheckedQuery(NamedTuple):
    """A query that can be explained: its cells by column, and the region around it."""

    cells: dict[str, Any]
    region: Region


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model, its data and the space of its questions.

    Parameters
    ----------
    loaded : Loaded
        The model and what it knows of its columns.
    data : DataFrame
        The columns that the model takes, in its order.
    ignored : tuple of str
        Columns of the data that the model does not take.
    dropped : tuple of str
        Columns that the settings leave out.
    space : Space
        What may change, with the constraints of the settings.
    table_format : TableFormat
        How the data was read, and queries are.
    """

    loaded: Loaded
    data: pd.DataFrame
    ignored: tuple[str, ...]
    dropped: tuple[str, ...]
    space: cfx.Space
    table_format: TableFormat

    def select_cells(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells of a query that the model takes.

        Raises if one of them is a level that the data does not have.
        """
        left_out = (*self.ignored, *self.dropped, self.table_format.id)
        cells = {name: value for name, value in row.items() if name not in left_out}
        check_levels(cells, self.space.features)
        return cells

    def check_query(self, row: Mapping[str, Any]) -> CheckedQuery:
        """Return a query with the cells that the model takes, or raise if it can't be explained."""
        cells = self.select_cells(row)
        with about_parameter("query"):
            return CheckedQuery(cells, self.space.around(cells))

    def check_row(self, row: pd.DataFrame) -> None:
        """Raise if a table of one row has a level that the data does not have."""
        check_levels(row_cells(row, 0), self.space.features)

    def select_columns(self, queries: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of queries that the model takes.

        Columns of numbers hold numbers, even beside other texts.
        """
        kept = queries.drop(columns=[*self.ignored, *self.dropped], errors="ignore")
        features = self.space.features
        for name in _text_columns(kept):
            if name in features and _has_numbers(features[name]):
                kept[name] = kept[name].astype(object).map(as_number)
        return kept

    def parse_cell(self, name: str, text: str) -> Any:
        """Return the value of a feature that a text stands for."""
        feature = self.space.features[self.space.name(name)]
        return feature.parse(text, name, "set")

    def sample_outputs(self, label: str | None, n: int) -> Array | None:
        """Return the model's outputs for up to `n` rows of the data, evenly chosen.

        None without a model, or if a classifier of more than two labels needs a `label`.
        """
        if self.loaded.model is None or self._needs_label(label):
            return None
        chosen = np.linspace(0, len(self.data) - 1, min(n, len(self.data))).astype(int)
        return as_model(self.loaded.scoring(label)).scores(self.data.iloc[chosen])

    def _needs_label(self, label: str | None) -> bool:
        """Return whether the model is a classifier of more than two labels, and none is given."""
        return label is None and len(self.loaded.labels) > 2


def _has_numbers(feature: Feature) -> bool:
    """Return whether no value of a feature is a text."""
    if not feature.has_levels:
        return feature.numeric
    return not any(isinstance(level, str) for level in feature.levels)


def read_subject(settings: Settings, console: Console) -> Subject:
    """Return the subject of the questions in the settings; without a model, of all columns."""
    loaded = _load(settings) if settings.model else Loaded(None)
    levels = {name: frozenset(known) for name, known in loaded.levels.items()}
    table_format = TableFormat(na=tuple(map(str, settings.na)), id=settings.id, levels=levels)
    data = _read_data(settings, table_format)
    loaded = loaded.renamed(list(data.columns))
    check_numbers(data, {*settings.features, *loaded.categorical, *loaded.levels}, settings.data)
    data = _with_fractions(data, settings.features)
    is_identified = settings.id == data.index.name
    if is_identified and settings.id in (loaded.columns or ()):
        loaded = _without_identifier(loaded, data, settings, console)
    columns = list(map(str, loaded.select(list(data.columns))))
    ignored = tuple(data.columns.drop(columns))
    if ignored:
        console.note(f"columns that the model does not take: {', '.join(ignored)}.")
    data = data[columns]
    kinds = {**_known_kinds(loaded, data, console), **settings.features}
    table_format = _with_dates(table_format, loaded, data, kinds, settings, console)
    data = table_format.parse_dates(data)
    return Subject(
        loaded=loaded,
        data=data,
        ignored=ignored,
        dropped=tuple(settings.drop),
        space=make_space(data, kinds, settings.space),
        table_format=replace(table_format, texts=frozenset(_text_columns(data))),
    )


def _text_columns(data: pd.DataFrame) -> list[str]:
    """Return the columns that hold text."""
    return [name for name in data.columns if is_string_dtype(data[name].dtype)]


def _load(settings: Settings) -> Loaded:
    """Return the model that the settings name."""
    headers = {}
    for line in settings.header:
        name, value = split_assignment(
            "--header", line, may_be_empty=True, sign=":", example="'Name: value'"
        )
        headers[name] = value
    return cfx.load_model(
        settings.model,
        trust=cfx.Trust(bool(settings.trust_pickle), tuple(settings.trust)),
        output=settings.output,
        headers=headers,
        patience=cfx.Patience(settings.http_timeout, settings.retries),
        batch=settings.batch,
    )


def _read_data(settings: Settings, table_format: TableFormat) -> pd.DataFrame:
    """Return the data without the columns to be ignored, indexed by the identifiers of rows."""
    data = read_table(settings.data, table_format=table_format)
    if settings.id not in (None, data.index.name) and not settings.queries:
        raise SettingsError(
            f"--id must be a column of the data; got {settings.id!r}."
            f"{suggest(settings.id, data.columns)}"
        )
    unknown = [name for name in settings.drop if name not in data.columns]
    if unknown:
        raise SettingsError(
            f"--drop must name columns of the data; got {unknown[0]!r}. "
            f"Columns: {', '.join(data.columns[:20])}."
        )
    return data.drop(columns=list(settings.drop))


def _with_fractions(data: pd.DataFrame, kinds: Mapping[str, Any]) -> pd.DataFrame:
    """Return data in which whole numbers of the kind "real" are floats."""
    for name in data.columns.intersection(list(kinds)):
        if _is_real(kinds[name]) and data[name].dtype.kind in "iu":
            data[name] = data[name].astype(np.float64)
    return data


def _is_real(given: Any) -> bool:
    """Return whether a correction in the settings says that a column is of the kind "real"."""
    return (given.get("kind") if isinstance(given, dict) else given) == "real"


def _known_kinds(loaded: Loaded, data: pd.DataFrame, console: Console) -> dict[str, Any]:
    """Return the kinds of columns that the model knows; warn of levels that it should know."""
    kinds: dict[str, Any] = {name: "categorical" for name in loaded.categorical if name in data}
    levelled = data[data.columns.intersection(list(loaded.levels))]
    # Integer codes have no values between levels.
    codes = [name for name in levelled.columns if levelled[name].dtype.kind in "iu"]
    kinds |= dict.fromkeys(codes, "categorical")
    for name in _text_columns(levelled):
        kinds[name] = "categorical"
        _warn_of_unknown_marks(name, data[name], loaded.levels[name], console)
    return kinds | _known_orders(loaded, data)


def _known_orders(loaded: Loaded, data: pd.DataFrame) -> dict[str, Any]:
    """Return the columns whose levels the user ordered for the model, as ordinal features."""
    kinds: dict[str, Any] = {}
    for name in data.columns.intersection(list(loaded.orders)):
        levels = loaded.orders[name]
        if set(data[name].dropna()) <= set(levels):
            kinds[name] = cfx.Ordinal(levels)
    return kinds


def _warn_of_unknown_marks(
    name: str, cells: pd.Series[Any], levels: tuple[Any, ...], console: Console
) -> None:
    """Warn if a column has a text that looks like a missing cell and is no level of the model."""
    texts = cells.dropna().drop_duplicates()
    unknown = [text for text in texts[mean_missing(texts)] if not has_level(levels, text)]
    if unknown:
        console.warning(
            f"column {name!r} has {unknown[0]!r}, which the model was not trained on. If it means "
            f"missing, pass --na {unknown[0]!r}."
        )


def _without_identifier(
    loaded: Loaded, data: pd.DataFrame, settings: Settings, console: Console
) -> Loaded:
    """Return a model that was trained with the identifiers of rows as one that needs none.

    Raises if its outputs depend on the identifiers.
    """
    column = str(settings.id)
    bare = loaded.without(column, data.index[0])
    positions = np.linspace(0, len(data) - 1, min(PROBES, len(data))).astype(int)
    some = data.iloc[positions]
    rows = some.reset_index()
    console.note(
        f"the model scores {2 * len(rows)} rows, beside the budget, to show whether it predicts "
        f"from {column!r}."
    )
    label = loaded.usual_label(settings.label)
    with_column = as_model(loaded.scoring(label))(rows[loaded.select([*rows.columns])])
    without = as_model(bare.scoring(label))(some[bare.select([*some.columns])])
    if not np.array_equal(with_column, without):
        raise SettingsError(
            f"--id must not be a column that the model predicts from; its outputs depend on "
            f"{column!r}. Leave --id out."
        )
    return bare


def _with_dates(
    table_format: TableFormat,
    loaded: Loaded,
    data: pd.DataFrame,
    kinds: Mapping[str, Any],
    settings: Settings,
    console: Console,
) -> TableFormat:
    """Return a format that reads dates as points in time, if the model takes only these.

    A model that was trained on points in time fails for texts.
    """
    date_formats = _date_formats(data, kinds)
    if not date_formats or _accepts(loaded, data, settings, console):
        return table_format
    dated = replace(table_format, date_formats=date_formats)
    is_accepted = _accepts(loaded, dated.parse_dates(data), settings, console)
    return dated if is_accepted else table_format


def _date_formats(data: pd.DataFrame, kinds: Mapping[str, Any]) -> dict[str, str]:
    """Return how the columns of text write points in time, where they do."""
    formats = {}
    for name in _text_columns(data):
        with about_parameter("kinds"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the space warns of the same
            kind, _ = _split_kind(kinds.get(name))
            formats[name] = infer(name, data[name], kind).form
    return {name: date_format for name, date_format in formats.items() if date_format}


def _accepts(loaded: Loaded, data: pd.DataFrame, settings: Settings, console: Console) -> bool:
    """Return whether a model that runs here scores a row of the data; endpoints take text."""
    if loaded.model is None or isinstance(loaded.model, cfx.Endpoint):
        return True
    console.note("the model scores one or two rows, beside the budget, to show how it takes dates.")
    try:
        as_model(loaded.scoring(loaded.usual_label(settings.label)))(data.iloc[:1])
    except Exception:  # a model may raise anything
        return False
    return True


def make_space(
    data: pd.DataFrame, kinds: Mapping[str, Any], constraints: Mapping[str, Any]
) -> cfx.Space:
    """Return the space of the data, which has exactly the columns that the model takes.

    `kinds` correct what is inferred: ``"integer"``, or ``{"kind": "real", "step": 0.5}``;
    `constraints` are those of the table ``[space]`` in a settings file.
    """
    with about_parameter("kinds"):
        corrected = {name: _corrected(name, data, given) for name, given in kinds.items()}
        space = cfx.Space.from_data(data, corrected)
    return apply_constraints(space, constraints, data)


def _corrected(name: str, data: pd.DataFrame, given: Any) -> Any:
    """Return a kind, or the feature that a table of facts describes, for `Space.from_data`."""
    kind, facts = _split_kind(given)
    if not facts or name not in data:
        return kind
    feature: Any = infer(name, data[name], kind)
    _check_facts(name, facts, [each.name for each in fields(feature)])
    return replace(feature, **facts)


def _check_facts(name: str, facts: Mapping[str, Any], known: list[str]) -> None:
    """Raise if a table of facts about a feature has an unknown name."""
    for key in facts:
        if key not in known:
            raise SettingsError(
                f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
                f"{suggest(key, known)}"
            )


def _split_kind(given: Any) -> tuple[Any, dict[str, Any]]:
    """Return the kind in a correction, or a feature with the levels in it, and other facts."""
    if not isinstance(given, dict):
        return given, {}
    facts = dict(given)
    kind = facts.pop("kind", "categorical" if "levels" in facts else None)
    if "levels" in facts and _has_levels(kind):
        kind = Feature.kinds[kind](facts.pop("levels"))  # type: ignore[call-arg]  # has levels
    return kind, facts


def _has_levels(kind: Any) -> bool:
    """Return whether a text names a kind of features with levels."""
    known = Feature.kinds.get(kind) if isinstance(kind, str) else None
    return known is not None and known.has_levels


def identify_model(subject: Subject, settings: Settings, console: Console) -> Model:
    """Return the model that is explained, identified by the content of its file."""
    loaded = subject.loaded
    names_label = settings.label is None and class_target(settings.target) is not None
    model = loaded.classifier() if names_label else as_model(loaded.scoring(settings.label))
    if loaded.labels and settings.label is None and not model.is_bare:
        console.note(
            f"the model is a classifier; its output is the {model.output or 'score'}. Choose "
            "another label with --label."
        )
    path = Path(settings.model)
    if not os.path.isfile(path):
        return model
    choice = repr((settings.label, settings.output)).encode()
    digest = hashlib.sha256(path.read_bytes() + choice).hexdigest()
    return replace(model, content=digest[:12])
