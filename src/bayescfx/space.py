"""`Space`: what may move, and how. Every verb returns a changed copy; all of them combine."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx import inference
from bayescfx.arrays import Array, Mask
from bayescfx.cells import Column
from bayescfx.errors import QueryError, SpaceError, SpaceWarning
from bayescfx.features import (
    FEATURES,
    Categorical,
    Feature,
    Integer,
    Moment,
    Ordinal,
    Real,
    is_cyclic,
)
from bayescfx.grid import Grid
from bayescfx.limits import Limits, axis
from bayescfx.region import Region
from bayescfx.rules import Cost, Derived, FunctionRule, TextRule
from bayescfx.schema import Own, Rows, Schema


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space:
    """Named features and the rules a counterfactual must keep.

    Parameters
    ----------
    features : dict of name to feature
        `Real`, `Integer`, `Ordinal`, `Categorical` or `Moment` per column, in the model's order.

    Examples
    --------
    >>> space = Space({"age": Integer(17, 90), "sex": Categorical(["f", "m"])})
    >>> region = space.fix("sex").only_up("age").around({"age": 30, "sex": "f"})
    >>> region.low, region.high
    (array([30.,  0.]), array([90.,  0.]))
    """

    schema: Schema
    scale: Array
    background: Array
    limits: Mapping[Hashable, Limits]
    rules: tuple[TextRule | FunctionRule, ...]
    derived: tuple[Derived, ...]
    blocks: tuple[tuple[Hashable, ...], ...]
    most_changes: int | None
    price: Cost
    inferred: frozenset[Hashable]
    unrestored: tuple[str, ...]

    def __init__(self, features: Mapping[Any, Feature]) -> None:
        if not isinstance(features, Mapping) or not features:
            raise SpaceError(f"`features` must be a dict of name to feature; got {features!r}.")
        for name, feature in features.items():
            if not isinstance(feature, FEATURES):
                raise SpaceError(
                    f"feature {name!r} must be Real, Integer, Ordinal, Categorical or Moment; got "
                    f"{feature!r}."
                )
        columns = tuple(Column(name, _natural_dtype(f)) for name, f in features.items())
        schema = Schema(dict(features), columns, None, {})
        self._set(
            schema, inference.default_scales(schema), np.empty((0, len(columns))), frozenset()
        )

    def _set(
        self, schema: Schema, scale: Array, background: Array, inferred: frozenset[Hashable]
    ) -> None:
        values: dict[str, Any] = {
            "schema": schema,
            "scale": scale,
            "background": background,
            "limits": {},
            "rules": (),
            "derived": (),
            "blocks": (),
            "most_changes": None,
            "price": Cost(),
            "inferred": inferred,
            "unrestored": (),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_data(cls, X: object, kinds: Mapping[Any, str | Feature] | None = None) -> Space:
        """Return the space of the data: names, kinds, ranges, levels, dtypes and scales.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
        kinds : dict of column to kind, optional
            ``"real"``, ``"integer"``, ``"ordinal"``, ``"categorical"`` or a feature, where the
            inferred kind is not what is meant.

        Examples
        --------
        >>> space = Space.from_data(pd.DataFrame({"age": [20, 40], "bmi": [21.5, 30.0]}))
        >>> space.features["age"]
        Integer(low=20, high=40, step=1, cyclic=False)
        """
        frame, dtype = inference.as_frame(X)
        schema = inference.infer_schema(frame, dtype, kinds)
        given = {name for name, wish in (kinds or {}).items() if isinstance(wish, FEATURES)}
        self = cls.__new__(cls)
        self._set(
            schema,
            inference.scales(frame, schema),
            inference.background(frame, schema),
            frozenset(schema.names) - given,
        )
        return self

    @property
    def features(self) -> Mapping[Hashable, Feature]:
        """Features by name, in the order of the codes."""
        return self.schema.features

    def _changed(self, **changes: Any) -> Space:
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        return other

    def _name(self, name: Hashable) -> Hashable:
        return self.schema.names[self.schema.position(name)]

    def _limited(self, changed: Mapping[Hashable, Limits]) -> Space:
        return self._changed(limits={**self.limits, **changed})

    def _limits(self, name: Hashable) -> Limits:
        return self.limits.get(name, Limits())

    # ── single features ──

    def fix(self, *names: Hashable) -> Space:
        """Return the space in which these features never move."""
        found = [self._name(name) for name in names]
        return self._limited({n: replace(self._limits(n), fixed=True) for n in found})

    def allow(self, *names: Hashable) -> Space:
        """Return the space in which only these features may move."""
        allowed = {self._name(name) for name in names}
        return self.fix(*(name for name in self.schema.names if name not in allowed))

    def only_up(self, *names: Hashable) -> Space:
        """Return the space in which these features may only rise."""
        return self._directed(names, 1, "only_up")

    def only_down(self, *names: Hashable) -> Space:
        """Return the space in which these features may only fall."""
        return self._directed(names, -1, "only_down")

    def _directed(self, names: Iterable[Hashable], side: int, verb: str) -> Space:
        changed = {}
        for name in map(self._name, names):
            self._check_ordered(name, verb)
            changed[name] = self._limits(name).with_side(side)
        return self._limited(changed)

    def _check_ordered(self, name: Hashable, verb: str) -> None:
        feature = self.features[name]
        if isinstance(feature, Categorical) or is_cyclic(feature):
            kind = "cyclic" if is_cyclic(feature) else "Categorical"
            raise SpaceError(
                f"`{verb}` needs an order, but {name!r} is {kind}. Use `between` or `move`, or "
                "make it Ordinal."
            )

    def between(self, limits: Mapping[Any, Any]) -> Space:
        """Return the space with absolute limits for the features named.

        Parameters
        ----------
        limits : dict of name to (low, high) or to a list of levels
            ``None`` leaves an end open. A query beyond the limits may stay where it is.
        """
        changed: dict[Hashable, Limits] = {}
        for given, pair in limits.items():
            name = self._name(given)
            feature = self.features[name]
            old = changed.get(name, self._limits(name))
            if isinstance(feature, (Ordinal, Categorical)):
                changed[name] = old.with_levels(_level_codes(name, feature, pair), name)
            else:
                low, high = _pair("between", name, pair)
                changed[name] = old.with_between(
                    -np.inf if low is None else _code("between", name, feature, low),
                    np.inf if high is None else _code("between", name, feature, high),
                    name,
                )
        return self._limited(changed)

    def move(self, limits: Mapping[Any, Any]) -> Space:
        """Return the space with limits relative to the query for the features named.

        Parameters
        ----------
        limits : dict of name to (low, high)
            Changes in the feature's units: levels of an `Ordinal`, time units of a `Moment`
            (or durations such as ``"2D"``). ``None`` leaves an end open.
        """
        changed: dict[Hashable, Limits] = {}
        for given, pair in limits.items():
            name = self._name(given)
            feature = self.features[name]
            if isinstance(feature, Categorical):
                raise SpaceError(
                    f"`move` needs an order, but {name!r} is Categorical. Use `between`."
                )
            low, high = _pair("move", name, pair)
            old = changed.get(name, self._limits(name))
            changed[name] = old.with_move(
                -np.inf if low is None else _shift(name, feature, low),
                np.inf if high is None else _shift(name, feature, high),
                name,
            )
        return self._limited(changed)

    # ── several features ──

    def require(self, rule: str | Callable[[Any], Any], label: str | None = None) -> Space:
        """Return the space with a rule every counterfactual must satisfy.

        Parameters
        ----------
        rule : str or callable
            Text such as ``"a + 2*b <= 10"``, or a function of raw rows that returns one boolean
            per row.
        label : str, optional
            What to call the rule in messages.
        """
        if isinstance(rule, str):
            return self._changed(rules=(*self.rules, TextRule.parse(rule, self.features, label)))
        if not callable(rule):
            raise SpaceError(f"`rule` must be text or a function of rows; got {rule!r}.")
        name = label or getattr(rule, "__name__", repr(rule))
        return self._changed(rules=(*self.rules, FunctionRule(rule, name)))

    def together(self, *names: Hashable) -> Space:
        """Return the space in which these features all rise, all fall, or all stay."""
        found = tuple(dict.fromkeys(self._name(name) for name in names))
        if len(found) < 2:
            raise SpaceError(f"`together` needs at least two features; got {names!r}.")
        for name in found:
            self._check_ordered(name, "together")
            self._check_not_derived(name, "together")
        merged = set(found)
        apart = []
        for block in self.blocks:
            if merged & set(block):
                merged |= set(block)
            else:
                apart.append(block)
        block = tuple(name for name in self.schema.names if name in merged)
        return self._changed(blocks=(*apart, block))

    def max_changes(self, k: int) -> Space:
        """Return the space in which at most `k` features change (the paper's l0 bound)."""
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise SpaceError(f"`k` must be a whole number >= 1; got {k!r}.")
        bound = int(k) if self.most_changes is None else min(int(k), self.most_changes)
        return self._changed(most_changes=bound)

    def cost(
        self,
        *,
        weight: float | None = None,
        norm: float | None = None,
        per_feature: Mapping[Any, float] | None = None,
    ) -> Space:
        """Return the space with another cost of moving; what is not given stays.

        Parameters
        ----------
        weight : float
            How much the distance counts; 0 switches the cost off.
        norm : float
            The p of the norm: 0 counts changes, 1 is the default.
        per_feature : dict of name to float
            Factors for single features.
        """
        old = self.price
        factors = {self._name(name): value for name, value in (per_feature or {}).items()}
        price = Cost(
            old.weight if weight is None else weight,
            old.norm if norm is None else norm,
            {**old.per_feature, **factors},
        )
        return self._changed(price=price)

    def derive(self, name: Hashable, function: Callable[[Any], Any]) -> Space:
        """Return the space in which a column is recomputed on every candidate.

        Parameters
        ----------
        name : feature
        function : callable
            Raw rows to the values of the column, shape (n,).
        """
        found = self._name(name)
        if not callable(function):
            raise SpaceError(f"`function` must be a function of rows; got {function!r}.")
        if any(found in block for block in self.blocks):
            raise SpaceError(f"{found!r} can't be derived: it moves together with others.")
        kept = tuple(rule for rule in self.derived if rule.name != found)
        return self._changed(derived=(*kept, Derived(found, function)))

    def _check_not_derived(self, name: Hashable, verb: str) -> None:
        if any(rule.name == name for rule in self.derived):
            raise SpaceError(f"`{verb}` can't name {name!r}: it is derived from other columns.")

    # ── rows and codes ──

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)

    def decode(self, codes: Array) -> Rows:
        """Return the user's rows for codes of shape (n, d)."""
        return self.schema.rows(np.asarray(codes, dtype=np.float64))

    def including(self, rows: object) -> Space:
        """Return the space whose ranges and levels cover these rows; codes stay valid."""
        schema, _ = self.schema.covering(self.schema.table(rows, what="rows"))
        return self._changed(schema=schema)

    def around(self, query: object) -> Region:
        """Return the space as seen from one query.

        Parameters
        ----------
        query : Series, dict, one-row DataFrame, or array of shape (columns,)

        Warns
        -----
        SpaceWarning
            If the query lies outside the ranges, which then grow for it, or has a missing value
            in a feature that may move, which then stays.
        """
        table = self.schema.table(query)
        if len(table) != 1:
            raise QueryError(f"`query` must be one row; got {len(table)}.")
        schema, notes = self.schema.covering(table)
        if notes:
            warnings.warn(
                f"the query lies outside the data; for it {'; '.join(notes)} was included.",
                SpaceWarning,
                stacklevel=2,
            )
        codes = schema.encode(table, what="query")[0]
        return self._region(schema, Own(codes, table))

    def _region(self, schema: Schema, own: Own) -> Region:
        derived = np.zeros(len(schema.names), dtype=np.bool_)
        for rule in self.derived:
            derived[schema.positions[rule.name]] = True
        self._warn_missing(own.codes, derived)
        axes = [self._axis(schema, name, own.codes, derived) for name in schema.names]
        blocks = tuple(tuple(schema.positions[n] for n in block) for block in self.blocks)
        for block in blocks:
            stuck = not all(axes[j].free for j in block)
            if stuck or not any(all(axes[j].room(s) for j in block) for s in (-1, 1)):
                for j in block:
                    axes[j] = replace(axes[j], movable=False)
        weight = np.array([float(self.price.per_feature.get(name, 1.0)) for name in schema.names])
        grid = Grid(
            tuple(axes), self.scale, weight, float(self.price.norm), self.most_changes, derived
        )
        bounds = [
            (int(j), *self._limits(schema.names[j]).interval(own.codes[j]))
            for j in np.flatnonzero(derived)
            if self._limits(schema.names[j]).said
        ]
        return Region(
            grid,
            schema,
            own,
            self.price,
            rules=self.rules,
            derived=self.derived,
            blocks=blocks,
            bounds=tuple(bounds),
            data=self.background,
        )

    def _axis(self, schema: Schema, name: Hashable, codes: Array, derived: Mask) -> Any:
        j = schema.positions[name]
        limits = self._limits(name)
        if derived[j]:
            limits = Limits(fixed=True)
        dtype = next((c.dtype for c in schema.columns if c.name == name), np.dtype(np.float64))
        return axis(
            schema.features[name], limits, float(codes[j]), dtype, inferred=name in self.inferred
        )

    def _warn_missing(self, codes: Array, derived: Mask) -> None:
        missing = [
            repr(name)
            for j, name in enumerate(self.schema.names)
            if np.isnan(codes[j]) and not derived[j] and not self._limits(name).fixed
        ]
        if missing:
            warnings.warn(
                f"the query has no value for {', '.join(missing)}; treated as fixed.",
                SpaceWarning,
                stacklevel=4,
            )


def _natural_dtype(feature: Feature) -> Any:
    """Return the dtype of a column made by hand."""
    match feature:
        case Real():
            return np.dtype(np.float64)
        case Integer():
            return np.dtype(np.int64)
        case Moment():
            return pd.Series([feature.low, feature.high]).dtype
        case _:
            return pd.Series(list(feature.levels)).dtype


def _pair(verb: str, name: Hashable, pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise SpaceError(f"`{verb}` for {name!r} must be a pair (low, high); got {pair!r}.")
    low, high = pair
    return low, high


def _code(verb: str, name: Hashable, feature: Feature, value: Any) -> float:
    if isinstance(feature, Moment):
        return feature.code(value)
    if isinstance(value, (str, bytes)) or not np.isscalar(value) or value != value:
        raise SpaceError(f"`{verb}` for {name!r} must be numbers; got {value!r}.")
    return float(value)  # type: ignore[arg-type]  # a scalar that is no text


def _shift(name: Hashable, feature: Feature, value: Any) -> float:
    if isinstance(feature, Moment) and not isinstance(value, (int, float, np.number)):
        return float(pd.Timedelta(value) / pd.Timedelta(feature.microseconds, "us"))
    return _code("move", name, feature if not isinstance(feature, Moment) else Real(0, 0), value)


def _level_codes(name: Hashable, feature: Ordinal | Categorical, levels: Any) -> tuple[float, ...]:
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
        raise SpaceError(f"`between` for {name!r} must be a list of levels; got {levels!r}.")
    positions = {level: float(c) for c, level in enumerate(feature.levels)}
    codes = []
    for level in levels:
        if level not in positions:
            raise SpaceError(f"{name!r} has no level {level!r}. Levels: {feature.levels!r}.")
        codes.append(positions[level])
    return tuple(codes)
