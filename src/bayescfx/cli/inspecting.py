"""`inspect`: what is inferred from the data, and a settings file to correct it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.models.loaders import is_code
from bayescfx.models.model import as_model
from bayescfx.requests.console import Console
from bayescfx.requests.json_values import json_fields
from bayescfx.requests.settings import Settings, gather_settings
from bayescfx.requests.subject import Subject, read_subject
from bayescfx.requests.toml_text import toml_lines, toml_value
from bayescfx.result import wording

FACTS = ("kind", "levels", "low", "high", "step", "unit")
HELP = """\
Correct a kind with --kind "NAME=real|integer|categorical", an order, --kind "NAME=low < high", or
how dates are written, --kind "NAME=%d/%m/%Y".
Say what may change with --fix, --only-up, --between …, or write all this to a settings file with
--out space.toml and edit it; then use it with --settings space.toml."""


def inspect(options: Namespace, console: Console) -> int:
    """Show what is inferred, and how to correct it."""
    settings = gather_settings(options)
    settings.require("data")
    subject = read_subject(settings, replace(console, is_quiet=True))
    loaded, table, label = subject.loaded, subject.data, settings.label
    outputs = None
    if loaded.model is not None and (label is not None or len(loaded.labels) <= 2):
        some = np.linspace(0, len(table) - 1, min(100, len(table))).astype(int)
        outputs = as_model(loaded.scoring(label)).scores(table.iloc[some])
    for path in options.out:
        Path(path).write_text(as_toml(subject, settings), encoding="utf-8")
    content: dict[str, Any] = {
        "features": {
            str(name): json_fields(feature, *(fact for fact in FACTS if hasattr(feature, fact)))
            for name, feature in subject.space.features.items()
        },
        "ignored": subject.ignored,
        "labels": [*map(str, loaded.labels)],
    }
    if outputs is not None:
        good = outputs[np.isfinite(outputs)]
        content["outputs"] = np.quantile(good, (0, 0.5, 1)).tolist() if len(good) else []
        content["faults"] = len(outputs) - len(good)
    console.write(_text(subject, label, outputs, content), content)
    return 0


def _text(subject: Subject, label: str | None, outputs: Any, content: Mapping[str, Any]) -> str:
    space, table, labels = subject.space, subject.data, subject.loaded.labels
    floats = [n for n, f in space.features.items() if f.numeric and not f.code_step and n in table]
    others = [n for n, f in space.features.items() if f.categorical and n in table]
    few = len(table) <= 20
    listed = {
        "missing cells": [f"{name} ({n})" for name, n in table.isna().sum().items() if n],
        "not taken by the model": subject.ignored,
        "whole numbers only, so perhaps integer": [
            str(n) for n in floats if (table[n].dropna() % 1 == 0).all()
        ],
        "another text in every row, so perhaps --id or --drop": [
            str(n) for n in others if len(space.features[n].levels) == len(table) and not few
        ],
    }
    lines = [f"{len(table)} rows", str(space)]
    lines += [f"{words}: {', '.join(found)}" for words, found in listed.items() if found]
    if labels:
        lines.append(f"a classifier of {', '.join(map(str, labels))}: choose one with --label")
    which = f" for {labels[-1] if label is None else label}" if labels else ""
    if content.get("outputs"):
        low, middle, high = map(wording.number, content["outputs"])
        some = len(outputs) - content["faults"]
        lines.append(f"outputs{which} on {some} rows: {low} to {high}, median {middle}")
    if content.get("faults"):
        rows, first = wording.count(content["faults"], "row"), outputs[~np.isfinite(outputs)][0]
        told = f"no number{which} on {rows}, but {first}"
        lines.append(f"{told}: `explain --on-fault skip` passes over such rows")
    return "\n".join([*lines, "", HELP])


def as_toml(subject: Subject, settings: Settings) -> str:
    """Return a settings file with everything that was inferred, ready to be corrected."""
    space, forms = subject.space, subject.table_format.date_formats
    lines = ["# What was inferred from the data. Correct it, and use it with --settings FILE."]
    given = {name: getattr(settings, name) for name in ("model", "data", "id", "drop", "na")}
    if is_code(given["model"]):
        code = toml_value(given.pop("model"))
        lines.append(f"# give on the command line, since it is code: --model {code}")
    for key, value in given.items():
        if key in ("model", "data") and os.path.exists(value):
            given[key] = str(Path(value).resolve())
    lines += toml_lines({key: value for key, value in given.items() if value})
    for name, feature in space.features.items():
        if name not in space.schema.groups:
            facts = ["levels"] * feature.has_levels + ["low", "high", "step"] * feature.numeric
            told = {"kind": feature.form or forms.get(str(name), feature.kind)}
            told |= {fact: getattr(feature, fact) for fact in facts}
            lines += ["", f"[features.{toml_value(str(name))}]", *toml_lines(told)]
    wishes = {verb: wish for verb, wish in settings.space.items() if verb != "derive"}
    lines += ["", "[space]", *toml_lines(wishes)]
    if wishes != settings.space:
        lines.append("# derive: give it on the command line, since it is code")
    examples = {
        "fix": '["a", "b"]           # never change',
        "only_up": '["a"]            # only rise; only_down: only fall',
        "between": "{ a = [18, 32] }  # absolute limits; levels for categories",
        "move": "{ a = [-2, 2] }      # limits relative to the query",
        "require": '["a <= b"]       # rules',
        "together": '[["a", "b"]]    # change the same way',
        "max_changes": "3",
    }
    lines += [f"# {verb} = {text}" for verb, text in examples.items() if verb not in settings.space]
    return "\n".join(lines) + "\n"
