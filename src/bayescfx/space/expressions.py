"""Arithmetic over features, compared: ``a + 2*b <= 10``, ``start <= end``, ``w / h**2 <= 30``."""

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
    """One comparison ``left op right`` of two arithmetic expressions over features."""

    left: Expression
    op: Operation
    right: Expression

    @property
    def features(self) -> set[Hashable]:
        """Features that occur in the comparison."""
        return {item.feature for item in (*self.left, *self.right) if isinstance(item, Named)}

    @property
    def equated(self) -> tuple[Hashable, float] | None:
        """The feature and the number of ``feature == number``, or ``!=``; None if it is no such."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            first, numbers = one[0], not any(isinstance(item, Named) for item in other)
            alone = len(one) == 1 and self.op in (operator.eq, operator.ne)
            if alone and numbers and isinstance(first, Named):
                return first.feature, float(_worked_out(other, lambda _: None))
        return None

    def rises_with(self, names: set[Hashable]) -> bool:
        """Return whether the sides draw apart when all of some features rise by one."""
        if not names:
            return False
        both = (*self.left, *self.right, operator.sub)
        before = {name: np.float64(k + 0.5) for k, name in enumerate(self.features)}
        after = {name: at + (name in names) for name, at in before.items()}
        with np.errstate(all="ignore"):
            gaps = [_worked_out(both, places.__getitem__) for places in (before, after)]
        return not math.isclose(*gaps, rel_tol=1e-6, abs_tol=1e-6)

    def holds(self, numbers: Columns, codes: Columns) -> Mask:
        """Return where the comparison holds, shape (n,)."""
        with np.errstate(all="ignore"):  # 1/0 is inf or nan, and nan satisfies nothing
            left, right = _worked_out(self.left, numbers), _worked_out(self.right, numbers)
            if self.op not in (operator.eq, operator.ne):
                return np.asarray(self.op(left, right))
            gap, size = np.abs(left - right), np.maximum(np.abs(left), np.abs(right))
            close = operator.le if self.op is operator.eq else operator.gt
            return np.asarray(close(gap, EQUALITY_TOLERANCE * np.maximum(1.0, size)))

    def linear(self) -> list[tuple[dict[Hashable, float], float]] | None:
        """Return ``sum_j a_j x_j <= b`` as pairs (a, b), an equality as two; None if curved."""
        if self.op is operator.ne:
            return None
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


def expression_of(tree: ast.expr, named: Callable[[str], Hashable], text: str) -> Expression:
    """Return an expression of only numbers, known names and arithmetic, or say what else it has."""
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

    def known(operation: Operation, *parts: np.float64 | None) -> np.float64 | None:
        return None if None in parts else _number(operation(*parts), text)

    with np.errstate(all="ignore"):
        _worked_out(expression, lambda _: None, known)
    return expression


def _number(value: Any, text: str) -> np.float64:
    """Return a number of a rule; it must be finite, and so must what is computed from it."""
    with contextlib.suppress(OverflowError):
        number = np.float64(value)
        if np.isfinite(number):
            return number
    raise refused("must have finite numbers, and so must what is computed from them be", text)


def refused(must: str, text: str) -> SpaceError:
    """Return the error for a text that is no rule."""
    return SpaceError(
        f"a rule {must}; got {shown(text)}.",
        parameter="rule",
        advice="Pass a function for anything else.",
    )


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
