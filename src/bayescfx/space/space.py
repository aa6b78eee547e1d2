"""`Space`: what may move, and how. Every verb returns a changed copy; all of them combine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import SpaceError
from bayescfx.features import FEATURES, Categorical, Feature
from bayescfx.space import inference, saved
from bayescfx.space.around import make_region
from bayescfx.space.description import describe
from bayescfx.space.groups import regroup
from bayescfx.space.limits import Limits, is_ordered
from bayescfx.space.near import MOST_ROWS, NearData
from bayescfx.space.region import Region
from bayescfx.space.rules import Cost, Derived, FunctionRule, TextRule
from bayescfx.space.schema import Rows, Schema
from bayescfx.space.terms import Terms
from bayescfx.values import Plain


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space(Terms):
    """Named features and the rules a counterfactual must keep.

    Parameters
    ----------
    features : dict of name to feature
        `Real`, `Integer`, `Ordinal`, `Categorical` or `Moment` per column, in the model's order.

    Examples
    --------
    >>> from bayescfx.features import Integer
    >>> space = Space({"age": Integer(17, 90), "sex": Categorical(["f", "m"])})
    >>> region = space.fix("sex").only_up("age").around({"age": 30, "sex": "f"})
    >>> region.low, region.high
    (array([30.,  0.]), array([90.,  0.]))
    """

    def __init__(self, features: Mapping[Any, Feature]) -> None:
        schema = inference.schema_by_hand(features)
        background = np.empty((0, len(schema.names)))
        self._set(schema, inference.default_scales(schema), background, frozenset())

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
            "near": (),
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
        >>> import pandas as pd
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

    def _changed(self, **changes: Any) -> Space:
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        return other

    def _name(self, name: Hashable) -> Hashable:
        return self.schema.names[self.schema.position(name)]

    def _limited(self, changed: Mapping[Hashable, Limits]) -> Space:
        return self._changed(limits={**self.limits, **changed})

    # ── single features ──

    def fix(self, *names: Hashable) -> Space:
        """Return the space in which these features never move."""
        found = [self._name(name) for name in names]
        return self._limited({n: replace(self.limits_of(n), fixed=True) for n in found})

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
            changed[name] = self.limits_of(name).with_side(side)
        return self._limited(changed)

    def _check_ordered(self, name: Hashable, verb: str) -> None:
        feature = self.features[name]
        if not is_ordered(feature):
            kind = "Categorical" if isinstance(feature, Categorical) else "cyclic"
            raise SpaceError(
                f"`{verb}` needs an order, but {name!r} is {kind}. Use `between` or `move`, or "
                "make it Ordinal."
            )

    def between(self, limits: Mapping[Any, Any]) -> Space:
        """Return the space with absolute limits for the features named.

        Parameters
        ----------
        limits : dict of name to (low, high) or to a list of levels
            ``None`` leaves an end open. Limits may exceed the data. A query beyond the limits
            may stay where it is.
        """
        space = self
        for name, wish in limits.items():
            found = self._name(name)
            new = space.limits_of(found).with_between(found, self.features[found], wish)
            space = space._limited({found: new})
        return space

    def move(self, limits: Mapping[Any, Any]) -> Space:
        """Return the space with limits relative to the query for the features named.

        Parameters
        ----------
        limits : dict of name to (low, high)
            Changes in the feature's units: levels of an `Ordinal`, time units of a `Moment`
            (or durations such as ``"2D"``). ``None`` leaves an end open.
        """
        space = self
        for name, wish in limits.items():
            found = self._name(name)
            new = space.limits_of(found).with_move(found, self.features[found], wish)
            space = space._limited({found: new})
        return space

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
        name = label or str(getattr(rule, "__name__", repr(rule)))
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
        given: object = k
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
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
        if found in self.schema.groups:
            raise SpaceError(f"{found!r} can't be derived: it stands for one-hot columns.")
        if not callable(function):
            raise SpaceError(f"`function` must be a function of rows; got {function!r}.")
        if any(found in block for block in self.blocks):
            raise SpaceError(f"{found!r} can't be derived: it moves together with others.")
        kept = tuple(rule for rule in self.derived if rule.name != found)
        return self._changed(derived=(*kept, Derived(found, function)))

    def _check_not_derived(self, name: Hashable, verb: str) -> None:
        if self.is_derived(name):
            raise SpaceError(f"`{verb}` can't name {name!r}: it is derived from other columns.")

    def near_data(self, X: object, quantile: float = 0.95, neighbours: int = 5) -> Space:
        """Return the space in which counterfactuals stay close to data.

        Parameters
        ----------
        X : DataFrame or array
            Rows of this space; at most 100,000 of them are kept.
        quantile : float, default 0.95
            Share of the data that is itself close enough.
        neighbours : int, default 5
            A row is as far from the data as from its `neighbours`-th nearest row.
        """
        frame, _ = inference.as_frame(X)
        codes = inference.background(frame, self.schema, MOST_ROWS)
        near = NearData.fit(codes, self.features, self.scale, quantile, neighbours)
        return self._changed(near=(*self.near, near))

    def group(self, name: Hashable, columns: Iterable[Hashable]) -> Space:
        """Return the space in which one-hot columns are one feature with the columns as levels.

        Group columns before saying anything else about them.

        Parameters
        ----------
        name : hashable
            Name of the new feature.
        columns : iterable of column names
        """
        members = tuple(self._name(column) for column in columns)
        return self._changed(**regroup(self, name, members))

    # ── rows and codes ──

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)

    def decode(self, codes: Array) -> Rows:
        """Return the user's rows for codes of shape (n, d)."""
        return self.schema.rows(np.asarray(codes, dtype=np.float64))

    def including(self, rows: object) -> Space:
        """Return the space whose ranges and levels cover these rows; codes stay valid."""
        schema, _, _ = self.schema.covering(self.schema.cells(rows), "rows")
        return self._changed(schema=schema)

    def around(self, query: object, *, schema: Schema | None = None) -> Region:
        """Return the space as seen from one query.

        Parameters
        ----------
        query : Series, dict, one-row DataFrame, or array of shape (columns,)
        schema : Schema, optional
            One that covers other queries too, for regions whose codes are to mean the same. It
            does not widen the region.

        Warns
        -----
        SpaceWarning
            If the query lies outside the ranges, which then grow for it, or has a missing value
            in a feature that may move, which then stays.
        """
        return make_region(self, query, schema)

    # ── text and files ──

    def __str__(self) -> str:
        return describe(self)

    def __repr__(self) -> str:
        return f"Space({', '.join(str(name) for name in self.schema.names)})"

    def to_dict(self) -> dict[str, Plain]:
        """Return the space in JSON's own types, without background.

        Functions and data can't be written: their labels are, and a space read back lists them
        in `unrestored`.
        """
        return saved.write_space(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Space:
        """Return the space that :meth:`to_dict` wrote."""
        self = cls.__new__(cls)
        for name, value in saved.read_space(plain).items():
            object.__setattr__(self, name, value)
        return self
