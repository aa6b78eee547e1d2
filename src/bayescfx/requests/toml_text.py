"""Values as TOML writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it.

    >>> toml_value({"bmi": [18, None, "x"][::2]})
    '{ "bmi" = [18, "x"] }'
    """
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, str | bool):  # as in JSON, except for DEL
        return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(plain, list | tuple):
        return f"[{', '.join(map(toml_value, plain))}]"
    if isinstance(plain, dict):
        pairs = [f"{toml_value(key)} = {toml_value(each)}" for key, each in plain.items()]
        return f"{{ {', '.join(pairs)} }}"
    return repr(plain)


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return a line for each name that has a value."""
    return [f"{name} = {toml_value(value)}" for name, value in table.items() if value is not None]
