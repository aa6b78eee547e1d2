"""Values and attributes in JSON's own types."""

from __future__ import annotations

from typing import Any

from bayescfx.models.protocols import cell


def json_value(value: Any) -> Any:
    """Return a cell, or a tuple of cells, in JSON's own types; None for what is not finite."""
    if isinstance(value, tuple):
        return [json_value(each) for each in value]
    return cell(value)


def json_fields(thing: object, *names: str) -> dict[str, Any]:
    """Return some attributes by name, in JSON's own types."""
    return {name: json_value(getattr(thing, name)) for name in names}
