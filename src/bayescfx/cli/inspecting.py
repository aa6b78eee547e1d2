"""`inspect`: what is inferred from the data, and a settings file to correct it."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.cli.asking import Subject, make_subject
from bayescfx.cli.console import Console
from bayescfx.cli.settings import Settings, gather
from bayescfx.features import Feature
from bayescfx.io.loaders import is_code
from bayescfx.io.protocols import cell
from bayescfx.model.model import as_model
from bayescfx.result import wording


def inspect(options: Namespace, console: Console) -> int:
    """Show what is inferred, and how to correct it."""
    settings = gather(options)
    settings.need("data")
    subject = make_subject(settings, replace(console, quiet=True))
    space = subject.space
    outputs = _outputs(subject, settings.label)
    for path in options.out:
        Path(path).write_text(as_toml(subject, settings), encoding="utf-8")
    content: dict[str, Any] = {
        "features": {
            str(name): {"kind": feature.kind, **_facts(feature)}
            for name, feature in space.features.items()
        },
        "ignored": subject.ignored,
        "labels": [str(label) for label in subject.loaded.labels],
    }
    if outputs is not None:
        content["outputs"] = _spread(outputs)
        content["faults"] = int((~np.isfinite(outputs)).sum())
    console.answer(_text(subject, settings.label, outputs), content)
    return 0


def _facts(feature: Feature) -> dict[str, Any]:
    """Return what describes a feature, in JSON's own types."""
    names = ["levels"] if feature.levelled else ["low", "high", "step", "unit"]
    told = {name: getattr(feature, name) for name in names if hasattr(feature, name)}
    return {n: list(map(cell, v)) if isinstance(v, tuple) else cell(v) for n, v in told.items()}


def _outputs(subject: Subject, label: str | None) -> Any:
    """Return the outputs for some rows; None if it is not said which of several is meant."""
    loaded, table = subject.loaded, subject.data
    if loaded.model is None or (label is None and len(loaded.labels) > 2):
        return None
    rows = table.iloc[np.linspace(0, len(table) - 1, min(100, len(table))).astype(int)]
    return as_model(loaded.scoring(label)).scores(rows)


def _text(subject: Subject, label: str | None, outputs: Any) -> str:
    space, table, labels = subject.space, subject.data, subject.loaded.labels
    lines = [f"{len(table)} rows", str(space)]
    missing = [f"{name} ({n})" for name, n in table.isna().sum().items() if n]
    if missing:
        lines.append(f"missing cells: {', '.join(missing)}")
    if subject.ignored:
        lines.append(f"not taken by the model: {', '.join(subject.ignored)}")
    floats = [n for n, f in space.features.items() if f.numeric and not f.code_step]
    whole = [str(n) for n in floats if n in table.columns and (table[n].dropna() % 1 == 0).all()]
    if whole:
        lines.append(f"whole numbers only, so perhaps integer: {', '.join(whole)}")
    names = [str(n) for n, f in space.features.items() if _names_rows(f, table, n)]
    if names:
        lines.append(f"another text in every row, so perhaps --id or --drop: {', '.join(names)}")
    if labels:
        lines.append(f"a classifier of {', '.join(map(str, labels))}: choose one with --label")
    if outputs is not None:
        lines += _told(outputs, f" for {labels[-1] if label is None else label}" if labels else "")
    return (
        "\n".join(lines)
        + """

Correct a kind with --kind "NAME=real|integer|categorical", an order, --kind "NAME=low < high", or
how dates are written, --kind "NAME=%d/%m/%Y".
Say what may change with --fix, --only-up, --between …, or write all this to a settings file with
--out space.toml and edit it; then use it with --settings space.toml."""
    )


def _spread(outputs: Any) -> list[float]:
    """Return the least, the median and the largest of the outputs that are numbers."""
    finite = outputs[np.isfinite(outputs)]
    found: list[float] = np.quantile(finite, (0, 0.5, 1)).tolist() if len(finite) else []
    return found


def _told(outputs: Any, which: str) -> list[str]:
    """Return lines about outputs, and about rows without one."""
    lines, bad = [], np.flatnonzero(~np.isfinite(outputs))
    if len(bad) < len(outputs):
        low, middle, high = map(wording.number, _spread(outputs))
        some = len(outputs) - len(bad)
        lines.append(f"outputs{which} on {some} rows: {low} to {high}, median {middle}")
    if len(bad):
        told = f"no number{which} on {wording.count(len(bad), 'row')}, but {outputs[bad[0]]}"
        lines.append(f"{told}: `explain --on-fault skip` passes over such rows")
    return lines


def _names_rows(feature: Feature, table: Any, name: Any) -> bool:
    """Return whether a feature looks like the name of a row."""
    return feature.categorical and name in table and 20 < len(feature.levels) == len(table)


def as_toml(subject: Subject, settings: Settings) -> str:
    """Return a settings file with everything that was inferred, ready to be corrected."""
    space, forms = subject.space, subject.reading.forms
    lines = ["# What was inferred from the data. Correct it, and use it with --settings FILE."]
    for option in ("model", "data"):
        value = getattr(settings, option)
        if option == "model" and value is not None and is_code(value):
            lines.append(
                f"# give on the command line, since it is code: --model {toml_value(value)}"
            )
        elif value is not None:
            there = Path(value).exists()
            lines.append(f"{option} = {toml_value(str(Path(value).resolve()) if there else value)}")
    for option in ("id", "drop", "na"):
        if getattr(settings, option):
            lines.append(f"{option} = {toml_value(getattr(settings, option))}")
    for name, feature in space.features.items():
        if name not in space.schema.groups:
            kind = feature.form or forms.get(str(name), feature.kind)
            lines += ["", f"[features.{toml_value(str(name))}]", f"kind = {toml_value(kind)}"]
            facts = ["levels"] * feature.levelled + ["low", "high", "step"] * feature.numeric
            told = [(fact, getattr(feature, fact)) for fact in facts]
            lines += [f"{fact} = {toml_value(v)}" for fact, v in told if v is not None]
    lines += ["", "[space]"]
    wishes = {verb: wish for verb, wish in settings.space.items() if verb != "derive"}
    lines += [f"{verb} = {toml_value(wish)}" for verb, wish in wishes.items()]
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


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # a basic string of TOML is escaped like JSON's, except for DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_value(k)} = {toml_value(v)}' for k, v in value.items())} }}"
    return repr(value)
