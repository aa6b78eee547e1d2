"""Rules written as text: ``"a + 2*b <= 10"``, ``"start <= end"``, ``"w / h**2 <= 30"``.

Text is parsed with :mod:`ast` and only numbers, feature names, arithmetic and comparisons are let
through; nothing is ever evaluated by Python itself. A column whose name is not an identifier is
written in backticks, as in ``pandas.DataFrame.query``: ``"`hours-per-week` <= 40"``.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError, suggest

# An equality of continuous features holds up to rounding, or it could never be met.
EQUALITY_TOLERANCE = 1e-9

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE = {ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.Eq: "=="}


@dataclass(frozen=True, eq=False)
class Comparison:
    """One comparison ``left op right`` of two arithmetic expressions over features."""

    left: ast.expr
    op: str
    right: ast.expr
    names: Mapping[str, Hashable]  # identifiers in the tree -> features

    @property
    def features(self) -> set[Hashable]:
        """Features that occur in the comparison."""
        found = (*ast.walk(self.left), *ast.walk(self.right))
        return {self.names[node.id] for node in found if isinstance(node, ast.Name)}

    def holds(self, values: Callable[[Hashable], Array]) -> Mask:
        """Return where the comparison holds; `values` are a feature's raw values, shape (n,)."""
        with np.errstate(all="ignore"):  # 1/0 is inf or nan, and nan satisfies nothing
            left = _value(self.left, self.names, values)
            right = _value(self.right, self.names, values)
            match self.op:
                case "<=":
                    return np.asarray(left <= right)
                case ">=":
                    return np.asarray(left >= right)
                case "<":
                    return np.asarray(left < right)
                case ">":
                    return np.asarray(left > right)
            size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
            return np.asarray(np.abs(left - right) <= EQUALITY_TOLERANCE * size)

    def linear(self) -> list[tuple[dict[Hashable, float], float]] | None:
        """Return ``sum_j a_j x_j <= b`` as pairs (a, b); None if the comparison is not linear.

        Strict comparisons give the same half-space; an equality gives two.
        """
        left, right = _linear(self.left, self.names), _linear(self.right, self.names)
        if left is None or right is None:
            return None
        difference = _combine(left, right, -1.0)
        constant = difference.pop(None, 0.0)
        upper = ({k: v for k, v in difference.items() if v != 0}, -constant)
        lower = ({k: -v for k, v in upper[0].items()}, constant)
        return {"<=": [upper], "<": [upper], "==": [upper, lower]}.get(self.op, [lower])


def parse_rule(text: str, features: tuple[Hashable, ...]) -> tuple[Comparison, ...]:
    """Return the comparisons that `text` states, chained or joined by ``and``."""
    source, names = _quoted(text, features)
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpaceError(
            f"a rule must be a comparison such as 'a + 2*b <= 10'; got {text!r}."
        ) from error
    parts = [tree]
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        parts = tree.values
    comparisons: list[Comparison] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            raise SpaceError(f"a rule must be a comparison such as 'a <= b'; got {text!r}.")
        sides = [part.left, *part.comparators]
        for op, left, right in zip(part.ops, sides[:-1], sides[1:], strict=True):
            if type(op) not in _COMPARE:
                raise SpaceError(f"a rule must compare with <=, >=, <, > or ==; got {text!r}.")
            comparisons.append(Comparison(left, _COMPARE[type(op)], right, names))
    for comparison in comparisons:
        _check(comparison.left, names, text)
        _check(comparison.right, names, text)
    if not any(comparison.features for comparison in comparisons):
        raise SpaceError(f"a rule must name at least one feature; got {text!r}.")
    return tuple(comparisons)


def _quoted(text: str, features: tuple[Hashable, ...]) -> tuple[str, dict[str, Hashable]]:
    """Replace names in backticks by identifiers."""
    known = {str(name): name for name in features}
    names: dict[str, Hashable] = dict(known)

    def identifier(match: re.Match[str]) -> str:
        quoted = match.group(1)
        if quoted not in known:
            raise SpaceError(
                f"rule {text!r} names {quoted!r}, which is no feature.{suggest(quoted, known)}"
            )
        alias = f"quoted_{len(names)}_"
        names[alias] = known[quoted]
        return alias

    return re.sub(r"`([^`]+)`", identifier, text), names


def _check(node: ast.expr, names: Mapping[str, Hashable], text: str) -> None:
    """Raise unless the tree holds only numbers, known names and arithmetic."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return
        case ast.Name(id=name) if name in names:
            return
        case ast.Name(id=name):
            raise SpaceError(
                f"rule {text!r} names {name!r}, which is no feature.{suggest(name, names)} "
                "Write names that are not identifiers in backticks."
            )
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, names, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            _check(left, names, text)
            _check(right, names, text)
        case _:
            raise SpaceError(
                f"a rule may hold numbers, features, + - * / ** and comparisons; got "
                f"{ast.unparse(node)!r} in {text!r}. Pass a function for anything else."
            )


def _value(
    node: ast.expr, names: Mapping[str, Hashable], values: Callable[[Hashable], Array]
) -> Any:
    match node:
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]  # checked to be a number
        case ast.Name(id=name):
            return values(names[name])
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, names, values)
            return -inner if isinstance(op, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_value(left, names, values), _value(right, names, values))
    raise AssertionError("the tree was checked when it was parsed")


_Linear = dict[Hashable | None, float]  # coefficient per feature; None holds the constant


def _linear(node: ast.expr, names: Mapping[str, Hashable]) -> _Linear | None:
    match node:
        case ast.Constant(value=value):
            return {None: float(value)}  # type: ignore[arg-type]  # checked to be a number
        case ast.Name(id=name):
            return {names[name]: 1.0}
        case ast.UnaryOp(op=op, operand=operand):
            inner = _linear(operand, names)
            return inner if inner is None or isinstance(op, ast.UAdd) else _combine({}, inner, -1.0)
        case ast.BinOp(left=left, op=op, right=right):
            return _linear_operation(op, _linear(left, names), _linear(right, names))
    return None


def _linear_operation(
    op: ast.operator, left: _Linear | None, right: _Linear | None
) -> _Linear | None:
    if left is None or right is None:
        return None
    match op:
        case ast.Add():
            return _combine(left, right, 1.0)
        case ast.Sub():
            return _combine(left, right, -1.0)
        case ast.Mult() if set(right) <= {None}:
            return _combine({}, left, right.get(None, 0.0))
        case ast.Mult() if set(left) <= {None}:
            return _combine({}, right, left.get(None, 0.0))
        case ast.Div() if set(right) == {None} and right[None] != 0:
            return _combine({}, left, 1.0 / right[None])
        case ast.Pow() if set(left) <= {None} and set(right) <= {None}:
            return {None: float(left.get(None, 0.0) ** right.get(None, 0.0))}
    return None


def _combine(left: _Linear, right: _Linear, factor: float) -> _Linear:
    keys = {**left, **right}
    return {key: left.get(key, 0.0) + factor * right.get(key, 0.0) for key in keys}
