"""`inspect`: what is inferred from the data, and a settings file to correct it."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.cli.answers import check_out, dumps
from bayescfx.cli.asking import load, read_data, space_of
from bayescfx.cli.console import Console
from bayescfx.cli.settings import Settings, gather
from bayescfx.features import Feature
from bayescfx.io.loaded import Loaded
from bayescfx.model.model import as_model
from bayescfx.result import wording
from bayescfx.space.space import Space

_ROWS = 100  # rows for a look at the outputs

_ADVICE = """\
Correct a kind with --kind "NAME=real|integer|ordinal|categorical", say what may change with --fix,
--only-up, --between …, or write all this to a settings file with --out space.toml and edit it;
then use it with --settings space.toml."""


def inspect(options: Namespace, console: Console) -> int:
    """Show what is inferred, and how to correct it."""
    check_out(options.out, (".toml",))
    settings = gather(options)
    settings.need("data")
    data = read_data(settings)
    loaded = None if settings.model is None else load(settings)
    columns = list(data.columns) if loaded is None else loaded.select(list(data.columns))
    table = data[columns]
    space = space_of(settings, table, loaded)
    outputs = None if loaded is None else _outputs(loaded, settings.label, table)
    labels = () if loaded is None else loaded.labels
    ignored = [name for name in data.columns if name not in columns]
    for path in options.out:
        Path(path).write_text(as_toml(space, settings), encoding="utf-8")
    if options.json:
        console.answer(dumps(_plain(space, ignored, labels, outputs)))
    else:
        asked = labels[-1] if settings.label is None and labels else settings.label
        told = _said_of_outputs(labels, asked, outputs)
        console.answer("\n".join([*_text(space, table, ignored), *told, "", _ADVICE]))
    return 0


def _outputs(loaded: Loaded, label: str | None, table: pd.DataFrame) -> Any:
    """Return the outputs for some rows; None if it is not said which of several is meant."""
    if label is None and len(loaded.labels) > 2:
        return None
    rows = table.iloc[np.linspace(0, len(table) - 1, min(_ROWS, len(table))).astype(int)]
    return as_model(loaded.scoring(label))(rows)


def _said_of_outputs(labels: Sequence[Any], asked: Any, outputs: Any) -> list[str]:
    lines = []
    if labels:
        lines.append(f"a classifier of {', '.join(map(str, labels))}: choose one with --label")
    if outputs is not None:
        low, middle, high = (wording.number(q) for q in np.quantile(outputs, (0, 0.5, 1)))
        which = f" for {asked}" if labels else ""
        lines.append(f"outputs{which} on {len(outputs)} rows: {low} to {high}, median {middle}")
    return lines


def _text(space: Space, table: pd.DataFrame, ignored: list[str]) -> list[str]:
    lines = [f"{len(table)} rows", str(space)]
    missing = [f"{name} ({n})" for name, n in table.isna().sum().items() if n]
    if missing:
        lines.append(f"missing cells: {', '.join(missing)}")
    if ignored:
        lines.append(f"not taken by the model: {', '.join(ignored)}")
    whole = [
        str(n)
        for n, f in space.features.items()
        if f.numeric and not f.code_step and _whole(table, n)
    ]
    if whole:
        lines.append(f"whole numbers only, so perhaps integer: {', '.join(whole)}")
    return lines


def _whole(table: pd.DataFrame, name: Hashable) -> bool:
    """Tell whether a column of floats holds whole numbers only."""
    cells = table[name].dropna() if name in table.columns else pd.Series([0.5])
    return bool((cells % 1 == 0).all())


def _plain(space: Space, ignored: list[str], labels: Sequence[Any], outputs: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "features": {str(n): _as_options(f) for n, f in space.features.items()},
        "ignored": ignored,
        "labels": [str(label) for label in labels],
    }
    if outputs is not None:
        content["outputs"] = [float(q) for q in np.quantile(outputs, (0, 0.5, 1))]
    return content


def _as_options(feature: Feature) -> dict[str, Any]:
    """Return a feature with its kind as --kind takes it."""
    return {**feature.to_plain(), "kind": feature.kind}


def as_toml(space: Space, settings: Settings) -> str:
    """Return a settings file with everything that was inferred, ready to be corrected."""
    lines = ["# What was inferred from the data. Correct it, and use it with --settings FILE."]
    for option in ("model", "data"):
        value = getattr(settings, option)
        if value is not None:
            path = Path(value)
            text = str(path.resolve()) if path.exists() else value
            lines.append(f"{option} = {_quoted(text)}")
    if settings.drop:
        lines.append(f"drop = {_value(list(settings.drop))}")
    for name, feature in space.features.items():
        if name not in space.schema.groups:
            lines += ["", f"[features.{_quoted(str(name))}]", *_feature(feature)]
    lines += ["", "[space]", *_space(settings)]
    return "\n".join(lines) + "\n"


def _feature(feature: Feature) -> list[str]:
    lines = [f"kind = {_quoted(feature.kind)}"]
    if feature.levelled:
        return [*lines, f"levels = {_value(list(feature.levels))}"]
    if not feature.numeric:
        return lines
    lines += [f"low = {_value(feature.low)}", f"high = {_value(feature.high)}"]
    return lines + ([f"step = {_value(feature.step)}"] if feature.step is not None else [])


def _space(settings: Settings) -> list[str]:
    """Return what was said about the space, and the other verbs as comments."""
    said = settings.space
    lines = [f"{verb} = {_value(wish)}" for verb, wish in said.items()]
    examples = {
        "fix": '["a", "b"]           # never change',
        "only_up": '["a"]            # only rise; only_down: only fall',
        "between": "{ a = [18, 32] }  # absolute limits; levels for categories",
        "move": "{ a = [-2, 2] }      # limits relative to the query",
        "require": '["a <= b"]       # rules',
        "together": '[["a", "b"]]    # change the same way',
        "max_changes": "3",
    }
    return lines + [f"# {verb} = {text}" for verb, text in examples.items() if verb not in said]


def _value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_quoted(k)} = {_value(v)}' for k, v in value.items())} }}"
    return repr(value)


def _quoted(text: str) -> str:
    # A basic string of TOML is escaped like JSON's, except for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
