"""Arithmetic over features, compared: ``a + 2*b <= 10``, ``start <= end``, ``w / h**2 <= 30``.

An expression is a tuple in postfix order: operands come before their operation, so that
``a + 2*b`` is ``(a, 2, b, mul, add)``. The same tuple is evaluated with columns of numbers, with
single numbers, or with coefficients, which gives the linear part of a rule.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import shown
from bayescfx.errors import SpaceError

# Numerical: an equality of continuous features holds up to rounding, or could never be met.
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
COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Named:
    """A feature in an expression."""

    feature: Hashable


Operation: TypeAlias = Callable[..., Any]
Columns: TypeAlias = Callable[[Hashable], Array]  # of a feature: its numbers, or its codes, (n,)
# Operands before their operation, so that a sum of thousands needs no recursion.
Expression: TypeAlias = tuple["np.float64 | Named | Operation", ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One comparison ``left op right`` of two arithmetic expressions over features.

    Parameters
    ----------
    left, right : Expression
        The sides, in postfix order.
    op : callable
        One of the functions in `COMPARE`.
    """

    left: Expression
    op: Operation
    right: Expression

    @property
    def features(self) -> set[Hashable]:
        """Features that occur in the comparison."""
        return {item.feature for item in (*self.left, *self.right) if isinstance(item, Named)}

    @property
    def equated(self) -> tuple[Hashable, float] | None:
        """The feature and the number of ``feature == number``, or ``!=``; None for others."""
        if self.op not in (operator.eq, operator.ne):
            return None
        for one, other in ((self.left, self.right), (self.right, self.left)):
            first = one[0]
            is_constant = not any(isinstance(item, Named) for item in other)
            if is_constant and len(one) == 1 and isinstance(first, Named):
                return first.feature, float(_evaluate(other, lambda _: None))
        return None

    def rises_with(self, names: set[Hashable]) -> bool:
        """Return whether the difference of the sides changes when all of some features rise."""
        if not names:
            return False
        difference = (*self.left, *self.right, operator.sub)
        before = {name: np.float64(k + 0.5) for k, name in enumerate(self.features)}
        after = {name: at + (name in names) for name, at in before.items()}
        with np.errstate(all="ignore"):
            gap_before = _evaluate(difference, before.__getitem__)
            gap_after = _evaluate(difference, after.__getitem__)
        return not math.isclose(gap_before, gap_after, rel_tol=1e-6, abs_tol=1e-6)

    def holds(self, numbers: Columns, codes: Columns) -> Mask:
        """Return where the comparison holds, shape (n,)."""
        with np.errstate(all="ignore"):  # 1/0 is inf or nan, and nan satisfies nothing
            left = _evaluate(self.left, numbers)
            right = _evaluate(self.right, numbers)
            if self.op not in (operator.eq, operator.ne):
                return np.asarray(self.op(left, right))
            gap = np.abs(left - right)
            size = np.maximum(np.abs(left), np.abs(right))
            close = operator.le if self.op is operator.eq else operator.gt
            return np.asarray(close(gap, EQUALITY_TOLERANCE * np.maximum(1.0, size)))

    def linear(self) -> list[tuple[dict[Hashable, float], float]] | None:
        """Return ``sum_j a_j x_j <= b`` as pairs (a, b), an equality as two; None if curved."""
        if self.op is operator.ne:
            return None
        with np.errstate(all="ignore"):
            both = (*self.left, *self.right, operator.sub)
            difference = _evaluate(both, lambda name: {name: 1.0}, _combine_coefficients)
        if difference is None or not all(map(math.isfinite, difference.values())):
            return None
        constant = float(difference.pop(None, 0.0))
        upper = ({k: float(v) for k, v in difference.items() if v != 0}, -constant)
        lower = ({k: -v for k, v in upper[0].items()}, constant)
        if self.op is operator.eq:
            return [upper, lower]
        return [upper] if self.op in (operator.le, operator.lt) else [lower]


def expression_of(tree: ast.expr, named: Callable[[str], Hashable], text: str) -> Expression:
    """Return an expression of numbers, known names and arithmetic; anything else is an error."""
    items: list[np.float64 | Named | Operation] = []
    todo = [tree]
    while todo:
        match todo.pop():
            case ast.Constant(value=value) if type(value) in (int, float):
                items.append(_number(value, text))
            case ast.Name(id=alias):
                items.append(Named(named(alias)))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _ARITHMETIC:
                items.append(_ARITHMETIC[type(op)])
                todo.append(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                items.append(_ARITHMETIC[type(op)])
                todo += [left, right]
            case _:
                raise refused("may hold numbers, features, + - * / ** and comparisons", text)
    expression = tuple(reversed(items))

    def check_constant(operation: Operation, *parts: np.float64 | None) -> np.float64 | None:
        return None if None in parts else _number(operation(*parts), text)

    with np.errstate(all="ignore"):
        _evaluate(expression, lambda _: None, check_constant)
    return expression


def _number(value: Any, text: str) -> np.float64:
    """Return a number of a rule, or a result of its constants; it must be finite."""
    with contextlib.suppress(OverflowError):
        number = np.float64(value)
        if np.isfinite(number):
            return number
    raise refused("must have finite numbers and finite results", text)


def refused(must: str, text: str) -> SpaceError:
    """Return the error for a text that is not a valid rule."""
    return SpaceError(
        f"a rule {must}; got {shown(text)}.",
        parameter="rule",
        advice="Pass a function for anything else.",
    )


def _evaluate(
    expression: Expression,
    named: Callable[[Hashable], Any],
    operate: Callable[..., Any] = lambda operation, *parts: operation(*parts),
) -> Any:
    """Return the value of an expression; `named` gives the values of features."""
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


#: Coefficients by feature; None stands for the constant.
Coefficients: TypeAlias = dict[Hashable | None, Any]


def _combine_coefficients(operation: Operation, *parts: Any) -> Coefficients | None:
    """Return an operation on linear expressions as coefficients; None if the result is curved."""
    lines: list[Any] = [{None: part} if isinstance(part, float) else part for part in parts]
    if None in lines:
        return None
    if all(_is_constant(line) for line in lines):
        return {None: operation(*(line[None] for line in lines))}
    return _combine_lines(operation, lines[0], lines[-1])


def _combine_lines(
    operation: Operation, left: Coefficients, right: Coefficients
) -> Coefficients | None:
    """Return an operation on two linear expressions, or on one of them given twice."""
    if operation in (operator.add, operator.sub):
        names = {**left, **right}
        return {name: operation(left.get(name, 0.0), right.get(name, 0.0)) for name in names}
    if operation in (operator.neg, operator.pos):
        return {name: operation(value) for name, value in left.items()}
    if operation is operator.mul and _is_constant(left):
        return _scaled(right, operation, left[None])
    if operation in (operator.mul, operator.truediv) and _is_constant(right):
        return _scaled(left, operation, right[None])
    return None


def _scaled(line: Coefficients, operation: Operation, factor: Any) -> Coefficients:
    """Return a linear expression times, or divided by, a constant."""
    return {name: operation(value, factor) for name, value in line.items()}


def _is_constant(line: Coefficients) -> bool:
    """Return whether a linear expression names no feature."""
    return set(line) <= {None}
