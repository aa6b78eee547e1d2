"""What must hold for several features at once, what is recomputed, and what moving costs.

A requirement is text (`TextRule`) or a function on raw rows (`FunctionRule`). Both see values in
the user's units, never codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError
from bayescfx.features import Feature, Integer, Moment, Real
from bayescfx.space.expressions import Comparison, parse_rule


@dataclass(frozen=True)
class TextRule:
    """A comparison of arithmetic expressions, such as ``"a + 2*b <= 10"``.

    Parameters
    ----------
    text : str
    label : str
        What the rule is called in messages.
    comparisons : tuple of Comparison

    Examples
    --------
    >>> features = {"a": Real(0, 1), "b": Real(0, 1)}
    >>> rule = TextRule.parse("a <= b", features)
    >>> rule.holds(np.array([[0.2, 0.1], [0.2, 0.3]]), features)
    array([False,  True])
    """

    text: str
    label: str
    comparisons: tuple[Comparison, ...] = field(repr=False)

    @classmethod
    def parse(
        cls, text: str, features: Mapping[Hashable, Feature], label: str | None = None
    ) -> TextRule:
        """Return the rule that `text` states about `features`."""
        comparisons = parse_rule(text, tuple(features))
        for comparison in comparisons:
            used = [features[name] for name in comparison.features]
            for name in comparison.features:
                _check_numeric(name, features[name], text)
            if len({f.unit for f in used if isinstance(f, Moment)}) > 1:
                raise SpaceError(f"rule {text!r} mixes times of different units. Use one unit.")
        return cls(text, label or text, comparisons)

    def holds(self, X: Array, features: Mapping[Hashable, Feature]) -> Mask:
        """Return which rows of codes satisfy the rule, shape (n,)."""
        positions = {name: j for j, name in enumerate(features)}

        def values(name: Hashable) -> Array:
            return raw_numbers(X[:, positions[name]], features[name])

        holds = np.ones(len(X), dtype=np.bool_)
        for comparison in self.comparisons:
            holds &= comparison.holds(values)
        return holds

    def halfspaces(self, features: Mapping[Hashable, Feature]) -> list[tuple[Array, float]]:
        """Return the linear parts of the rule over codes, as pairs (a, b) with ``a @ x <= b``."""
        found = []
        positions = {name: j for j, name in enumerate(features)}
        for comparison in self.comparisons:
            for coefficients, bound in comparison.linear() or ():
                a, b = np.zeros(len(features)), bound
                for name, coefficient in coefficients.items():
                    line = _line(features[name])
                    if line is None:
                        break
                    a[positions[name]] += coefficient * line[1]
                    b -= coefficient * line[0]
                else:
                    found.append((a, b))
        return found


def _called(function: Callable[[Any], Any], rows: Any, what: str) -> Any:
    """Return what a user's function says of rows; what it raises passes with a note."""
    try:
        return function(rows)
    except Exception as error:
        error.add_note(f"in {what}, for {len(rows)} rows")
        raise


@dataclass(frozen=True)
class FunctionRule:
    """A function of raw rows that says which of them are allowed."""

    function: Callable[[Any], Any] = field(repr=False)
    label: str

    def holds(self, rows: Any) -> Mask:
        """Return which raw rows satisfy the rule.

        Raises
        ------
        SpaceError
            If the function does not return one boolean per row.
        """
        found = np.asarray(_called(self.function, rows, f"rule {self.label!r}"))
        if found.shape != (len(rows),) or found.dtype != np.bool_:
            if found.shape == (len(rows),) and found.dtype == object:
                found = np.array([value is True or value is np.True_ for value in found])
                return found
            raise SpaceError(
                f"rule {self.label!r} must return one boolean per row; got shape {found.shape} "
                f"and dtype {found.dtype} for {len(rows)} rows. Compare whole columns."
            )
        return found


@dataclass(frozen=True)
class Derived:
    """A column that is recomputed from the others on every candidate."""

    name: Hashable
    function: Callable[[Any], Any] = field(repr=False)

    def values(self, rows: Any) -> Any:
        """Return the column for raw rows, as an array of shape (n,)."""
        found = np.asarray(_called(self.function, rows, f"derive({self.name!r})"))
        if found.shape != (len(rows),):
            raise SpaceError(
                f"the function of derive({self.name!r}) must return one value per row; got shape "
                f"{found.shape} for {len(rows)} rows."
            )
        return found


@dataclass(frozen=True)
class Cost:
    """What moving costs: the paper's lp regulariser.

    Parameters
    ----------
    weight : float
        How much a unit of distance counts against the potential; 0 switches the cost off.
    norm : float
        The p of the norm: 1, 2, any number from 1 on, or 0 to count changes.
    per_feature : dict of name to float
        Factors for single features; 1 where not given.

    Examples
    --------
    >>> Cost().weight
    0.1
    """

    weight: float = 0.1
    norm: float = 1.0
    per_feature: Mapping[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _is_number(self.weight) or self.weight < 0:
            raise SpaceError(f"`weight` must be a number >= 0; got {self.weight!r}.")
        if not _is_number(self.norm) or (self.norm != 0 and self.norm < 1):
            raise SpaceError(f"`norm` must be 0 or a number >= 1; got {self.norm!r}.")
        for name, value in self.per_feature.items():
            if not _is_number(value) or value < 0:
                raise SpaceError(f"`per_feature[{name!r}]` must be a number >= 0; got {value!r}.")


def raw_numbers(codes: Array, feature: Feature) -> Array:
    """Return the numbers that codes of a numeric feature stand for in text rules.

    Times count in their own unit since 1970. Levels must be numbers or booleans.
    """
    match feature:
        case Real() | Integer():
            return codes
        case Moment():
            counts = np.rint(codes * feature.microseconds) + feature.origin_microseconds
            return np.asarray(counts / feature.microseconds)
        case _:
            levels = np.array([*feature.levels, np.nan], dtype=np.float64)
            return levels[np.where(np.isnan(codes), -1, codes).astype(np.intp)]


def _line(feature: Feature) -> tuple[float, float] | None:
    """Return (offset, slope) if raw numbers are a linear function of the codes."""
    match feature:
        case Real() | Integer():
            return 0.0, 1.0
        case Moment():
            return feature.origin_microseconds / feature.microseconds, 1.0
        case _:
            levels = np.array(feature.levels, dtype=np.float64)
            slope = levels[1] - levels[0] if len(levels) > 1 else 0.0
            even = np.array_equal(levels, levels[0] + slope * np.arange(len(levels)))
            return (float(levels[0]), float(slope)) if even else None


def _check_numeric(name: Hashable, feature: Feature, text: str) -> None:
    if isinstance(feature, (Real, Integer, Moment)):
        return
    if not all(
        _is_number(level) or isinstance(level, (bool, np.bool_)) for level in feature.levels
    ):
        raise SpaceError(
            f"rule {text!r} needs numbers, but {name!r} has levels such as "
            f"{feature.levels[0]!r}. Pass a function, or use `between` for allowed levels."
        )


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
