"""The OpenAPI description of a page: with the columns of its own rows."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from bayescfx.cli.arguments import SYNTAX
from bayescfx.features import Feature
from bayescfx.io.protocols import cell
from bayescfx.web.site import Site


def described(app: FastAPI, site: Site) -> dict[str, Any]:
    """Return the description, in which rows have the columns of the data, with an example."""
    content = FastAPI.openapi(app)
    names = [str(name) for name in site.space.features]
    row = {
        "type": "object",
        "properties": {name: _cell(site, name) for name in site.shown.columns},
        "required": list(site.shown.columns),
        "examples": [site.cells(0)],
    }
    for form in content["components"]["schemas"].values():
        known = form.get("properties", {})
        if "cells" in known:
            known["cells"] = row
        if "query" in known:
            known["query"] = {"anyOf": [row, {"type": "null"}]}
        if "feature" in known:
            known["feature"] = {"type": "string", "enum": names}
        for verb in {"fix", "allow", "only_up", "only_down"} & known.keys():
            known[verb]["items"] = {"type": "string", "enum": names}
        if "target" in known:
            known["target"] |= {"description": f"As in {SYNTAX}.", "examples": [">= +20%"]}
    return content


def _cell(site: Site, name: str) -> dict[str, Any]:
    """Return what a column holds; those of a group are numbers."""
    feature: Feature | None = site.space.features.get(name)
    if feature is None or feature.numeric:
        whole = feature is not None and feature.kind == "integer"
        return {"type": ["integer" if whole else "number", "null"]}
    if feature.levelled:
        return {"enum": [*map(cell, feature.levels), None]}
    return {"type": ["string", "null"]}
