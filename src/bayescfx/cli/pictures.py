"""The seam to pictures and reports, which are drawn elsewhere and only if they are wanted."""

from __future__ import annotations

import importlib
from typing import Any

from bayescfx.errors import MissingExtraError
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations


def write_picture(answer: Explanation, path: str) -> None:
    """Draw what changes, as ``.png``, ``.svg`` or ``.pdf``."""
    plots = _plots()
    plots.save(plots.change_chart(answer), path)


def write_report(answer: Explanation | Explanations, path: str) -> None:
    """Write a page that works offline."""
    _plots().report(answer, path)


def _plots() -> Any:
    try:
        return importlib.import_module("bayescfx.plots")
    except ImportError as error:
        raise MissingExtraError(
            "pictures and reports need matplotlib: pip install 'bayescfx[plots]'."
        ) from error
