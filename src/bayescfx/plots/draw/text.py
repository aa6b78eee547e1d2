"""Texts that must fit."""

from __future__ import annotations


def clip(text: str, most: int) -> str:
    """Return a text of at most `most` letters.

    Examples
    --------
    >>> clip("Married-civ-spouse", 12)
    'Married-civ…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"
