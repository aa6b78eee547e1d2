"""The query's values that a returned row keeps although they lie outside limits, in words."""

from __future__ import annotations

from collections.abc import Container, Hashable
from typing import TYPE_CHECKING

from bayescfx.space.queries import values_outside
from bayescfx.space.rules.limits import limits_of

if TYPE_CHECKING:
    from bayescfx.result.counterfactual import Counterfactual
    from bayescfx.result.explanation import Explanation


def kept_texts(answer: Explanation) -> list[str]:
    """Return a sentence for each counterfactual that keeps values outside limits."""
    outside = _values_outside(answer)
    texts = [_sentence(outside, found.changes) for found in answer.counterfactuals]
    if len(texts) > 1:
        texts = [f"Answer {k}: {text}" * bool(text) for k, text in enumerate(texts, start=1)]
    return list(filter(None, texts))


def kept_text(answer: Explanation, found: Counterfactual) -> str:
    """Return ``bmi stays at 36.6, outside its limits (at most 32).``; empty if nothing does."""
    return _sentence(_values_outside(answer), found.changes)


def _sentence(outside: dict[Hashable, str], moved: Container[Hashable]) -> str:
    """Return which values outside limits stay, given the features that move."""
    kept = [text for name, text in outside.items() if name not in moved]
    return f"{'; '.join(kept)}." if kept else ""


def _values_outside(answer: Explanation) -> dict[Hashable, str]:
    """Return in words, by feature, the query's values outside limits that are not strict."""
    space = answer.space
    if not any(limits.is_absolute for limits in limits_of(space).values()):
        return {}
    cells = space.schema.cells(answer.query_rows)
    schema, codes, _ = space.schema.covering(cells, "query")
    found = {}
    for name, limits, _ in values_outside(space, schema, codes):
        feature = schema.features[name]
        value = feature.display(float(codes[0, schema.positions[name]]))[0]
        words = limits.describe_values(feature)
        found[name] = f"{name} stays at {value}, outside its limits ({words})"
    return found
