"""`inspect`: features inferred from the data, and a settings file to correct them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.requests.console import Console
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.plain_values import json_fields
from bayescfx.requests.settings import Settings, gather_settings
from bayescfx.requests.subject import Subject, read_subject
from bayescfx.requests.texts import count_text, number_text
from bayescfx.requests.toml_text import toml_lines, toml_value

FACTS = ("kind", "levels", "low", "high", "step", "unit")
SAMPLE = 100  # rows that the model scores; set by judgement, 2026-11-18
FEW_ROWS = 20  # in a smaller table, distinct texts do not suggest an identifier
HELP = """\
Correct a kind with --kind "NAME=real|integer|categorical", an order, --kind "NAME=low < high", or
a date format, --kind "NAME=%d/%m/%Y".
Set what may change with --fix, --only-up, --between …, or write all this to a settings file with
--out space.toml and edit it; then use it with --settings space.toml."""

#: Constraints that a new settings file shows as comments.
EXAMPLES = {
    "fix": '["a", "b"]',
    "only_up": '["a"]',
    "between": "{ a = [18, 32] }",
    "move": "{ a = [-2, 2] }",
    "require": '["a <= b"]',
    "together": '[["a", "b"]]',
    "max_changes": "3",
}


def inspect(options: Namespace, console: Console) -> int:
    """Show the inferred features, and how to correct them."""
    settings = gather_settings(options)
    settings.require("data")
    subject = read_subject(settings, replace(console, is_quiet=True))
    outputs = subject.sample_outputs(settings.label, SAMPLE)
    for path in options.out:
        Path(path).write_text(settings_toml(subject, settings), encoding="utf-8")
    plain = _as_json(subject, outputs)
    lines = [f"{len(subject.data)} rows", str(subject.space), *_doubt_lines(subject)]
    lines += _model_lines(subject, settings.label, outputs, plain)
    console.write("\n".join([*lines, "", HELP]), plain)
    return 0


def _as_json(subject: Subject, outputs: Any) -> dict[str, Any]:
    """Return features, ignored columns, labels and outputs in JSON's own types."""
    features = {}
    for name, feature in subject.space.features.items():
        known = [fact for fact in FACTS if hasattr(feature, fact)]
        features[str(name)] = json_fields(feature, *known)
    plain: dict[str, Any] = {
        "features": features,
        "ignored": list(subject.ignored),
        "labels": [str(label) for label in subject.loaded.labels],
    }
    if outputs is not None:
        finite = outputs[np.isfinite(outputs)]
        plain["outputs"] = np.quantile(finite, (0, 0.5, 1)).tolist() if len(finite) else []
        plain["faults"] = len(outputs) - len(finite)
    return plain


def _doubt_lines(subject: Subject) -> list[str]:
    """Return what may be wrong with the columns, a line for each kind of doubt."""
    table = subject.data
    missing = [f"{name} ({n})" for name, n in table.isna().sum().items() if n]
    doubts = {
        "missing cells": missing,
        "not taken by the model": list(subject.ignored),
        "whole numbers only, so perhaps integer": _whole_columns(subject),
        "another text in every row, so perhaps --id or --drop": _distinct_columns(subject),
    }
    return [f"{words}: {', '.join(names)}" for words, names in doubts.items() if names]


def _whole_columns(subject: Subject) -> list[str]:
    """Return the continuous columns that have only whole numbers."""
    return [name for name, feature in _columns(subject) if _is_whole(feature, subject.data[name])]


def _columns(subject: Subject) -> list[tuple[str, Any]]:
    """Return the features that are one column, by name."""
    features = subject.space.features
    return [(str(name), features[name]) for name in features if name in subject.data]


def _is_whole(feature: Any, cells: pd.Series[Any]) -> bool:
    """Return whether a continuous feature has only whole numbers as cells."""
    if not feature.numeric or feature.code_step:
        return False
    return bool((cells.dropna() % 1 == 0).all())


def _distinct_columns(subject: Subject) -> list[str]:
    """Return the categorical columns with another level in every row."""
    n_rows = len(subject.data)
    if n_rows <= FEW_ROWS:
        return []
    categorical = [(name, each) for name, each in _columns(subject) if each.categorical]
    return [name for name, feature in categorical if len(feature.levels) == n_rows]


def _model_lines(
    subject: Subject, label: str | None, outputs: Any, plain: Mapping[str, Any]
) -> list[str]:
    """Return the labels of a classifier, and the range and the faults of the outputs."""
    lines = []
    labels = subject.loaded.labels
    which = ""
    if labels:
        which = f" for {labels[-1] if label is None else label}"
        lines.append(f"a classifier of {', '.join(plain['labels'])}: choose one with --label")
    if plain.get("outputs"):
        low, middle, high = map(number_text, plain["outputs"])
        n_finite = len(outputs) - plain["faults"]
        lines.append(f"outputs{which} on {n_finite} rows: {low} to {high}, median {middle}")
    if plain.get("faults"):
        first = outputs[~np.isfinite(outputs)][0]
        lines.append(
            f"no number{which} on {count_text(plain['faults'], 'row')}, but {first}: "
            "`explain --on-fault skip` passes over such rows"
        )
    return lines


def settings_toml(subject: Subject, settings: Settings) -> str:
    """Return a settings file with everything that was inferred, ready to be corrected."""
    lines = ["# What was inferred from the data. Correct it, and use it with --settings FILE."]
    lines += _option_lines(settings)
    lines += _feature_lines(subject)
    lines += ["", "[space]", *_constraint_lines(settings.space)]
    return "\n".join(lines) + "\n"


def _option_lines(settings: Settings) -> list[str]:
    """Return the options that name model and data, with absolute paths."""
    lines = []
    given = {
        "model": _absolute(settings.model),
        "data": _absolute(settings.data),
        "id": settings.id,
        "drop": settings.drop,
        "na": settings.na,
    }
    if settings.names_code:
        code = toml_value(given.pop("model"))
        lines.append(f"# give on the command line, since it is code: --model {code}")
    return lines + toml_lines({name: value for name, value in given.items() if value})


def _absolute(source: str) -> str:
    """Return an absolute path if there is such a file, else the text as it is."""
    return str(Path(source).resolve()) if os.path.exists(source) else source


def _feature_lines(subject: Subject) -> list[str]:
    """Return a table for each feature that is one column."""
    lines = []
    date_formats = subject.table_format.date_formats
    for name, feature in _columns(subject):
        names = ["levels"] if feature.has_levels else []
        if feature.numeric:
            names += ["low", "high", "step"]
        kind = feature.form or date_formats.get(name, feature.kind)
        table = toml_lines({"kind": kind, **{fact: getattr(feature, fact) for fact in names}})
        lines += ["", f"[features.{toml_value(name)}]", *table]
    return lines


def _constraint_lines(constraints: Mapping[str, Any]) -> list[str]:
    """Return the constraints, and comments with examples of others."""
    in_file = {name: value for name, value in constraints.items() if not VERBS[name].runs_code}
    code = [name for name in constraints if name not in in_file]
    others = [name for name in EXAMPLES if name not in constraints]
    return [
        *toml_lines(in_file),
        *(f"# {name}: give it on the command line, since it is code" for name in code),
        *(f"# {name} = {EXAMPLES[name]}  # {VERBS[name].help}" for name in others),
    ]
