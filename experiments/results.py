"""Results as JSON, in a form in which equal results are equal bytes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
FIGURES = ROOT / "docs" / "figures"
REPORT = ROOT / "docs" / "reproduction.md"

_NUMBERS = re.compile(r"\[[^\[\]{}\"]*\]")
_DIGITS = 6  # further digits depend on the machine's arithmetic


def plain(value: Any) -> Any:
    """Return a value in the types of JSON, with floats rounded to six significant digits."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | np.ndarray():
            return [plain(item) for item in value]
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _round(float(value))
        case None | str():
            return value
    raise TypeError(f"{type(value).__name__} does not belong into a result: {value!r}")


def _round(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}") + 0.0


def dumps(result: dict[str, Any]) -> str:
    """Return the JSON text of a result, lists of numbers on one line."""
    text = json.dumps(plain(result), indent=1, ensure_ascii=False)
    return _NUMBERS.sub(lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def save(name: str, result: dict[str, Any], folder: Path = RESULTS) -> dict[str, Any]:
    """Write ``<name>.json`` and return its content as read back."""
    folder.mkdir(parents=True, exist_ok=True)
    text = dumps(result)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read
