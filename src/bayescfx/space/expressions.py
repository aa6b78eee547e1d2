"""Rules written as text: ``"a + 2*b <= 10"``, ``"start <= end"``, ``"w / h**2 <= 30"``.

Text is parsed with :mod:`ast` and only numbers, feature names, arithmetic and comparisons are let
through; nothing is ever evaluated by Python itself. A column whose name is not an identifier is
written in backticks, as in ``pandas.DataFrame.query``: ``"`hours-per-week` <= 40"``.
"""

from __future__ import annotations

import ast
import contextlib
import keyword
import math
import operator
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import shown
from bayescfx.errors import SpaceError, suggest

# An equality of continuous features holds up to rounding, or it could never be met.
EQUALITY_TOLERANCE = 1e-9

_ARITHMETIC: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}


@dataclass(frozen=True)
class Named:
    """A feature in an expression."""

    feature: Hashable


Operation: TypeAlias = Callable[..., Any]
# Operands before their operation, so that a sum of thousands needs no recursion.
Expression: TypeAlias = tuple["np.float64 | Named | Operation", ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One comparison ``left op right`` of two arithmetic expressions over features."""

    left: Expression
    op: Operation
    right: Expression

    @property
    def features(self) -> set[Hashable]:
        """Features that occur in the comparison."""
        return {item.feature for item in (*self.left, *self.right) if isinstance(item, Named)}

    def holds(self, values: Callable[[Hashable], Array]) -> Mask:
        """Return where the comparison holds; `values` are a feature's raw values, shape (n,)."""
        with np.errstate(all="ignore"):  # 1/0 is inf or nan, and nan satisfies nothing
            left, right = _worked_out(self.left, values), _worked_out(self.right, values)
            if self.op is not operator.eq:
                return np.asarray(self.op(left, right))
            size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
            return np.asarray(np.abs(left - right) <= EQUALITY_TOLERANCE * size)

    def linear(self) -> list[tuple[dict[Hashable, float], float]] | None:
        """Return ``sum_j a_j x_j <= b`` as pairs (a, b), an equality as two; None if curved."""
        with np.errstate(all="ignore"):
            both = (*self.left, *self.right, operator.sub)
            difference = _worked_out(both, lambda name: {name: 1.0}, _combined)
        if difference is None or not all(map(math.isfinite, difference.values())):
            return None
        constant = float(difference.pop(None, 0.0))
        upper = ({k: float(v) for k, v in difference.items() if v != 0}, -constant)
        lower = ({k: -v for k, v in upper[0].items()}, constant)
        if self.op is operator.eq:
            return [upper, lower]
        return [upper] if self.op in (operator.le, operator.lt) else [lower]


def parse_rule(text: str, features: tuple[Hashable, ...]) -> tuple[Comparison, ...]:
    """Return the comparisons that `text` states, chained or joined by ``and``."""
    source, written = _aliased(text)
    try:
        tree = ast.parse(source if source.isascii() else "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused("must be a comparison such as 'a + 2*b <= 10'", text) from error
    parts = [tree]
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        parts = tree.values
    comparisons: list[Comparison] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            raise _refused("must be a comparison such as 'a <= b'", text)
        sides = [_expression(s, features, written, text) for s in (part.left, *part.comparators)]
        for op, left, right in zip(part.ops, sides[:-1], sides[1:], strict=True):
            if type(op) not in _COMPARE:
                raise _refused("must compare with <=, >=, <, > or ==", text)
            comparisons.append(Comparison(left, _COMPARE[type(op)], right))
    if not any(comparison.features for comparison in comparisons):
        raise _refused("must name at least one feature", text)
    return tuple(comparisons)


def _aliased(text: str) -> tuple[str, dict[str, str]]:
    """Return the text with every name as ``_0_``, ``_1_``, …, and how these are written."""
    # Python's own parser would take look-alikes such as ``µ`` and ``μ`` for one name.
    written: dict[str, str] = {}

    def alias(match: re.Match[str]) -> str:
        if keyword.iskeyword(match[0]):
            return match[0]
        written[new := f"_{len(written)}_"] = match[1] or match[0]
        return new

    return re.sub(r"`([^`]+)`|(?<![\w.])[^\W\d]\w*", alias, text.strip()), written


def _expression(
    tree: ast.expr, features: tuple[Hashable, ...], written: dict[str, str], text: str
) -> Expression:
    """Return an expression of only numbers, known names and arithmetic, or say what else it has."""
    items: list[np.float64 | Named | Operation] = []
    todo = [tree]
    while todo:
        match todo.pop():
            case ast.Constant(value=value) if type(value) in (int, float):
                items.append(_number(value, text))
            case ast.Name(id=alias):
                items.append(Named(_feature(written.get(alias, alias), features, text)))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _ARITHMETIC:
                items.append(_ARITHMETIC[type(op)])
                todo.append(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                items.append(_ARITHMETIC[type(op)])
                todo += [left, right]
            case _:
                raise _refused("may hold numbers, features, + - * / ** and comparisons", text)
    expression = tuple(reversed(items))

    def known(operation: Operation, *parts: np.float64 | None) -> np.float64 | None:
        return None if None in parts else _number(operation(*parts), text)

    with np.errstate(all="ignore"):
        _worked_out(expression, lambda _: None, known)
    return expression


def _feature(name: str, features: tuple[Hashable, ...], text: str) -> Hashable:
    """Return the feature that is written so."""
    found = [feature for feature in features if str(feature) == name]
    if len(found) == 1:
        return found[0]
    told = f"may be {' or '.join(map(repr, found))}. Rename a column, or pass a function."
    if not found:
        hint = suggest(name, features)
        told = f"is no feature.{hint} Write names that are not identifiers in backticks."
    raise SpaceError(f"rule {shown(text)} names {name!r}, which {told}")


def _number(value: Any, text: str) -> np.float64:
    """Return a number of a rule; it must be finite, and so must what is computed from it."""
    with contextlib.suppress(OverflowError):
        number = np.float64(value)
        if np.isfinite(number):
            return number
    raise _refused("must have finite numbers, and so must what is computed from them be", text)


def _refused(must: str, text: str) -> SpaceError:
    return SpaceError(f"a rule {must}; got {shown(text)}. Pass a function for anything else.")


def _worked_out(
    expression: Expression,
    named: Callable[[Hashable], Any],
    operate: Callable[..., Any] = lambda operation, *parts: operation(*parts),
) -> Any:
    """Return what an expression comes to, where `named` says what features are."""
    stack: list[Any] = []
    for item in expression:
        if isinstance(item, Named):
            stack.append(named(item.feature))
        elif isinstance(item, float):
            stack.append(item)
        else:
            count = 1 if item in (operator.neg, operator.pos) else 2
            stack[-count:] = [operate(item, *stack[-count:])]
    return stack[0]


def _combined(operation: Operation, *parts: Any) -> dict[Hashable | None, Any] | None:
    """Return an operation on coefficients by feature, None for the constant; None if curved."""
    lines = [{None: part} if isinstance(part, float) else part for part in parts]
    if None in lines:
        return None
    left, right = lines[0], lines[-1]
    fixed = [set(line) <= {None} for line in lines]
    if all(fixed):
        return {None: operation(*(line[None] for line in lines))}
    if operation in (operator.add, operator.sub):
        return {k: operation(left.get(k, 0.0), right.get(k, 0.0)) for k in {**left, **right}}
    if operation in (operator.neg, operator.pos):
        return {key: operation(value) for key, value in left.items()}
    if operation is operator.mul and fixed[0]:
        left, right = right, left
    elif operation not in (operator.mul, operator.truediv) or not fixed[1]:
        return None
    return {key: operation(value, right[None]) for key, value in left.items()}
