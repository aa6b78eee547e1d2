"""A run-length encoded array as a field of a dataclass."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array


class RunLengths:
    """Descriptor for a dataclass field: a 1-D array, stored as its distinct runs.

    A trace of a thousand rows has about ten different values. Many answers are kept in memory at
    once, so each stores the last value of every run and the length of the run.
    """

    _key: str

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_{name}_runs"

    def __get__(self, instance: Any, owner: type | None = None) -> Array:
        if instance is None:
            raise AttributeError("the field has no default")  # what `dataclass` expects
        values, lengths = instance.__dict__[self._key]
        return np.repeat(values, lengths)

    def __set__(self, instance: Any, array: Array) -> None:
        values = np.asarray(array, dtype=np.float64)
        ends_run = np.append(values[1:] != values[:-1], True)[: len(values)]
        lengths = np.diff(np.flatnonzero(ends_run), prepend=-1)
        instance.__dict__[self._key] = (values[ends_run], lengths)
