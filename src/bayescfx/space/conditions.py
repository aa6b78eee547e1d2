"""Rules written as text: comparisons, levels, and their combinations.

``"a + 2*b <= 10"``, ``"cut == 'Ideal' or price <= 500"``, ``"colour in ['D', 'E']"``,
``"smoker == 'yes' -> age >= 18"``. Text is parsed with :mod:`ast`; only numbers, feature names,
levels, arithmetic, comparisons, ``and``, ``or``, ``not`` and ``->`` are accepted, and Python itself
never evaluates a rule. A column whose name is not an identifier is written in backticks,
as in ``pandas.DataFrame.query``: ``"`hours-per-week` <= 40"``.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import shown
from bayescfx.data import Feature
from bayescfx.errors import SpaceError, suggest
from bayescfx.space.expressions import COMPARE, Columns, Comparison, Named, expression_of, refused


@dataclass(frozen=True, eq=False)
class Member:
    """A feature has one of some levels, or none of them; a missing cell satisfies neither."""

    feature: Hashable
    levels: tuple[float, ...]  # as codes
    among: bool = True

    def holds(self, numbers: Columns, codes: Columns) -> Mask:
        """Return where it holds, shape (n,)."""
        return self.allows(codes(self.feature))

    def allows(self, codes: Array) -> Mask:
        """Return which codes ``(n,)`` are such levels."""
        return np.asarray((np.isin(codes, self.levels) == self.among) & ~np.isnan(codes))


@dataclass(frozen=True, eq=False)
class Joined:
    """Several conditions: all of them, one of them, or (of a single one) its opposite."""

    parts: tuple[Condition, ...]
    how: Callable[..., Mask]  # logical_and, logical_or, logical_not

    def holds(self, numbers: Columns, codes: Columns) -> Mask:
        """Return where it holds, shape (n,)."""
        masks = [part.holds(numbers, codes) for part in self.parts]
        if self.how is np.logical_not:
            return np.asarray(~masks[0])
        return np.asarray(reduce(self.how, masks))


Condition: TypeAlias = Comparison | Member | Joined


def parse_rule(text: str, features: Mapping[Hashable, Feature]) -> tuple[Condition, ...]:
    """Return the conditions that `text` states; all must hold."""
    reader = _Reader(text, features)
    try:
        conditions = reader.read()
    except SpaceError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise refused("must be a comparison such as 'a + 2*b <= 10'", text) from error
    if not reader.names:
        raise refused("must name at least one feature", text)
    return conditions


# What a comparison becomes when its sides change places.
_MIRRORED = {le: ge, ge: le, lt: gt, gt: lt, eq: eq, ne: ne}


@dataclass
class _Reader:
    """Reads one rule."""

    text: str
    features: Mapping[Hashable, Feature]
    names: dict[str, str] = field(default_factory=dict)  # by alias: how features are written
    quoted: dict[str, str] = field(default_factory=dict)  # by alias: texts

    def read(self) -> tuple[Condition, ...]:
        """Return the conditions; ``a -> b`` is ``b or not a``."""
        source = self._aliased()
        trees = [ast.parse(part.strip(), mode="eval").body for part in source.split("->")]
        *premises, last = [self._condition(tree) for tree in trees]
        if premises:  # a -> b -> c is a -> (b -> c)
            negations = [Joined((premise,), np.logical_not) for premise in premises]
            last = Joined((*negations, last), np.logical_or)
        if isinstance(last, Joined) and last.how is np.logical_and:
            return last.parts
        return (last,)

    def _aliased(self) -> str:
        """Return the text with every name and every quoted text as ``_0_``, ``_1_`` and so on."""
        # Python's own parser would take look-alikes such as ``µ`` and ``μ`` for one name.
        pattern = r"`([^`]+)`|'[^']*'|\"[^\"]*\"|(?<![\w.])[^\W\d]\w*"
        source = re.sub(pattern, self._alias, self.text.strip())
        if not source.isascii():
            raise ValueError("letters outside of names")
        return source

    def _alias(self, match: re.Match[str]) -> str:
        """Return the alias of a name or a quoted text; keywords are returned as they are."""
        if keyword.iskeyword(match[0]):
            return match[0]
        new = f"_{len(self.names) + len(self.quoted)}_"
        if match[0][0] in "'\"":
            self.quoted[new] = match[0][1:-1]
        else:
            self.names[new] = match[1] or match[0]
        return f" {new} "  # blanks keep it apart from its neighbours

    def _condition(self, tree: ast.expr) -> Condition:
        """Return the condition of a syntax tree: a comparison, or several that are joined."""
        match tree:
            case ast.BoolOp(op=op, values=values):
                how = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return Joined(tuple(self._condition(value) for value in values), how)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._condition(operand)
                if isinstance(inner, Joined) and inner.how is np.logical_not:
                    return inner.parts[0]
                return Joined((inner,), np.logical_not)
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = zip((left, *others[:-1]), ops, others, strict=True)
                parts = tuple(self._compared(*side) for side in sides)
                return parts[0] if len(parts) == 1 else Joined(parts, np.logical_and)
        raise refused("must be a comparison such as 'a <= b'", self.text)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Condition:
        """Return one comparison, of numbers or of a feature with levels."""
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple):
            return self._listed(left, right.elts, among=isinstance(op, ast.In))
        if type(op) not in COMPARE:
            raise refused("must compare with <=, >=, <, >, ==, != or in [...]", self.text)
        compare = COMPARE[type(op)]
        level = self._level(right)
        if level is not None:
            return self._against(left, compare, level)
        level = self._level(left)
        if level is not None:
            return self._against(right, _MIRRORED[compare], level)
        return self._numeric(left, compare, right)

    def _numeric(self, left: ast.expr, compare: Callable[..., Any], right: ast.expr) -> Condition:
        """Return a comparison of numbers, or of a feature with a level that is a number."""
        comparison = Comparison(
            expression_of(left, self._feature, self.text),
            compare,
            expression_of(right, self._feature, self.text),
        )
        self._check_times(comparison)
        equated = comparison.equated
        if equated is None or not self.features[equated[0]].has_levels:
            return comparison
        column, number = equated
        code = self.features[column].code(int(number) if number.is_integer() else number, column)
        return Member(column, (code,), compare is eq)

    def _check_times(self, comparison: Comparison) -> None:
        """Raise if times of different units are mixed, or a point in time meets a number."""
        names = comparison.features
        units = {self.features[name].measure(name, self.text) for name in names}
        if len(units - {""}) > 1:
            raise SpaceError(f"rule {self.text!r} mixes times of different units. Use one unit.")
        times = {name for name in names if self.features[name].dated}
        if comparison.rises_with(times):
            raise SpaceError(
                f"rule {shown(self.text)} must compare {min(map(repr, times))}, a point in time, "
                "with another, or with one in quotes such as '2016-01-31'; got a number."
            )

    def _listed(self, name: ast.expr, values: list[ast.expr], *, among: bool) -> Condition:
        """Return ``name in [values]``, or its opposite."""
        if not values:
            raise refused("must list what is allowed, such as colour in ['D', 'E']", self.text)
        parts = [self._compared(name, ast.Eq() if among else ast.NotEq(), v) for v in values]
        members = [part for part in parts if isinstance(part, Member)]
        if len(members) == len(parts):
            levels = {level for member in members for level in member.levels}
            return Member(members[0].feature, tuple(levels), among)
        return Joined(tuple(parts), np.logical_or if among else np.logical_and)

    def _level(self, tree: ast.expr) -> str | bool | None:
        """Return the text, True or False that is written here, if one is."""
        match tree:
            case ast.Constant(value=bool(value)):
                return value
            case ast.Name(id=alias):
                return self.quoted.get(alias)
        return None

    def _against(self, tree: ast.expr, compare: Callable[..., Any], value: Any) -> Condition:
        """Return a feature compared with one of its levels, or with a time."""
        if not isinstance(tree, ast.Name) or tree.id not in self.names:
            raise refused("must compare a text with a feature, such as cut == 'Ideal'", self.text)
        name = self._feature(tree.id)
        feature = self.features[name]
        if not feature.has_levels:
            if isinstance(value, bool):
                raise refused(f"must compare {name!r} with numbers", self.text)
            number = feature.numbers(np.array([feature.code(value, name, "require")]))[0]
            return Comparison((Named(name),), compare, (np.float64(number),))
        return self._against_level(name, compare, feature.code(value, name, "require"))

    def _against_level(self, name: Hashable, compare: Callable[..., Any], code: float) -> Condition:
        """Return a feature compared with the code of one of its levels."""
        if compare in (eq, ne):
            return Member(name, (code,), compare is eq)
        feature = self.features[name]
        if not feature.ordered:
            raise SpaceError(
                f"rule {shown(self.text)} needs an order, but the levels of {name!r} have none.",
                parameter="order",
                advice="Compare with == or in [...], or make it an Ordinal.",
            )
        places = np.arange(len(feature.levels), dtype=np.float64)
        return Member(name, tuple(places[compare(places, code)].tolist()))

    def _feature(self, alias: str) -> Hashable:
        """Return the feature that is written so."""
        if alias in self.quoted:
            raise refused("may compare a text with a feature, and no more", self.text)
        name = self.names[alias]
        matches = [feature for feature in self.features if str(feature) == name]
        if len(matches) == 1:
            return matches[0]
        if matches:
            problem = f"may be {' or '.join(map(repr, matches))}. Rename a column."
        else:
            problem = (
                f"is no feature.{suggest(name, self.features)} Write texts in quotes, and names "
                "that are not identifiers in backticks."
            )
        raise SpaceError(f"rule {shown(self.text)} names {name!r}, which {problem}")
