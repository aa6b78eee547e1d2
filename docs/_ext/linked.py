"""Inline code that is a public name becomes a link to the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

import bayescfx


def public(code: str) -> str | None:
    """Return the public name that inline code is about, if it is surely one."""
    found = re.fullmatch(r"((?:bayes)?cfx\.)?((\w+)(?:\.\w+)*)(?:\(.*\))?", code)
    if found is None or found[3] not in bayescfx.__all__:
        return None
    return found[2] if found[1] or found[3] == "explain" or re.search("[A-Z_]", found[3]) else None


def _link(app: Any, tree: Any) -> None:
    """Make links of inline code that is a public name."""
    for code in list(tree.findall(nodes.literal)):
        name = public(code.astext())
        if name and isinstance(code.parent, nodes.paragraph | nodes.entry):
            where = {"refdomain": "py", "reftype": "obj", "reftarget": f"bayescfx.{name}"}
            link = pending_xref("", refdoc=app.env.docname, refexplicit=True, **where)
            code.replace_self(link)
            link += code


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx do so on every page."""
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
