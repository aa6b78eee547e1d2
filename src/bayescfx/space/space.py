"""`Space`: what may move, and how. Every verb returns a changed copy; all of them combine.

A verb is a function of a space that lives beside its rule, and a method of `Space` by one line.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, reading
from bayescfx.data import Feature
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Rows
from bayescfx.errors import SpaceError
from bayescfx.space import columns, inference, queries, saved
from bayescfx.space import cost as costs
from bayescfx.space.cost import Cost
from bayescfx.space.plausibility import Plausibility
from bayescfx.space.rule import Rule
from bayescfx.space.rules import derived, limits, near, sparsity
from bayescfx.space.rules import require as requirements


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space:
    """Named features and the rules a counterfactual must keep.

    Parameters
    ----------
    features : dict of name to feature
        `Real`, `Integer`, `Ordinal`, `Categorical` or `Moment` per column, in the model's order.

    Examples
    --------
    >>> from bayescfx.data import Categorical, Integer
    >>> space = Space({"age": Integer(17, 90), "sex": Categorical(["f", "m"])})
    >>> region = space.fix("sex").only_up("age").around({"age": 30, "sex": "f"})
    >>> region.low, region.high
    (array([30.,  0.]), array([90.,  0.]))
    """

    schema: Schema  # features and the user's columns
    scale: Array  # (d,) one unit of change per feature
    background: Array  # (m, d) at most 5,000 data rows, as codes
    price: Cost  # what moving costs
    rules: tuple[Rule, ...] = ()  # what was said, in order
    inferred: frozenset[Hashable] = frozenset()  # features whose range came from data
    graded: frozenset[Hashable] = frozenset()  # features whose step did
    unrestored: tuple[str, ...] = ()  # rules that were lost on the way through a file

    def __init__(self, features: Mapping[Any, Feature]) -> None:
        schema = inference.schema_by_hand(features)
        nothing, scale = np.empty((0, len(features))), inference.scales(schema)
        vars(self).update(schema=schema, scale=scale, background=nothing, price=Cost())

    @classmethod
    def from_data(cls, X: object, kinds: Mapping[Any, str | Feature] | None = None) -> Space:
        """Return the space of the data: names, kinds, ranges, levels, dtypes, steps and scales.

        Numbers that all lie on a decimal grid, such as 0.1, move on it: the answers have as many
        decimals as the data. ``print(space)`` shows the steps, `steps` changes them. Text is
        categorical, unless it writes more than 20 dates, all one way: they are points in time.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            A table of pandas, polars or Arrow; the model gets such rows, too.
        kinds : dict of column to kind, optional
            ``"real"``, ``"integer"``, ``"ordinal"``, ``"categorical"``, ``"moment"``, an order
            (``"low < high"``), how dates are written (``"%d/%m/%Y"``) or a feature, where the
            inferred kind is not what is meant; ``"real"`` has no step.

        Examples
        --------
        >>> import pandas as pd
        >>> space = Space.from_data(pd.DataFrame({"age": [20, 40], "bmi": [21.5, 30.0]}))
        >>> space.features["age"]
        Integer(low=20, high=40, step=1, cyclic=False)
        """
        frame, dtype = inference.as_table(X)
        good = isinstance(kinds, Mapping | None)
        check(good, "kinds", "a dict of column to kind", kinds, SpaceError)
        kinds = dict(kinds or {})
        schema = inference.infer_schema(frame, dtype, kinds)
        if dtype is None and frame is not X:
            schema = replace(schema, like=X[:0])  # type: ignore[index]  # polars or Arrow
        given = {name for name, wish in kinds.items() if isinstance(wish, Feature)}
        return cls._made(
            schema=schema,
            scale=inference.scales(schema, frame),
            background=inference.background(frame, schema),
            price=Cost(),
            inferred=frozenset(schema.names) - given,
            graded=inference.graded(schema.features, kinds),
        )

    @classmethod
    def _made(cls, **fields: Any) -> Space:
        self = cls.__new__(cls)
        vars(self).update(fields)
        return self

    @cached_property
    def plausibility(self) -> Plausibility | None:
        """The density model of the data; None without data or if all features are independent."""
        if len(self.background) < 2:
            return None
        found = Plausibility.fit(self.background, self.features.values())
        return found if found.pairs else None

    @property
    def features(self) -> Mapping[Hashable, Feature]:
        """Features by name, in the order of the codes."""
        return self.schema.features

    fix = limits.fix
    allow = limits.allow
    only_up = limits.only_up
    only_down = limits.only_down
    between = limits.between
    move = limits.move
    require = requirements.require
    together = sparsity.together
    max_changes = sparsity.max_changes
    derive = derived.derive
    near_data = near.near_data
    cost = costs.cost
    group = columns.group
    steps = columns.steps
    around = queries.around
    encode_queries = queries.encode_queries
    regions = queries.regions

    @property
    def fixed(self) -> frozenset[Hashable]:
        """The names of the features that never change."""
        found = limits.limits_of(self).items()
        return frozenset(name for name, each in found if each.fixed)

    def name(self, given: Hashable) -> Hashable:
        """Return the name of a feature; spaces of arrays also take column numbers."""
        return self.schema.names[self.schema.position(given)]

    def wishes(self, given: Mapping[Any, Any], what: str) -> dict[Hashable, Any]:
        """Return what is said by feature, with the features' own names; it must be a dict."""
        must = "a dict of feature to what is said of it"
        check(isinstance(given, Mapping), what, must, given, SpaceError)
        return {self.name(name): wish for name, wish in given.items()}

    def adding(self, *rules: Rule, instead_of: Iterable[Rule] = ()) -> Space:
        """Return the space with more rules, some perhaps in place of others."""
        gone = {id(rule) for rule in instead_of}
        kept = tuple(rule for rule in self.rules if id(rule) not in gone)
        return self.changed(rules=(*kept, *rules))

    def changed(self, **fields: Any) -> Space:
        """Return a copy with some fields replaced."""
        other = copy.copy(self)
        if "background" in fields:
            vars(other).pop("plausibility", None)
        vars(other).update(fields)
        return other

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)

    def decode(self, codes: Array) -> Rows:
        """Return the user's rows for codes of shape (n, d)."""
        rows, d = as_numbers("codes", codes, SpaceError), len(self.schema.names)
        good = rows.ndim == 2 and rows.shape[1] == d
        check(good, "codes", f"of shape (n, {d})", codes, SpaceError)
        for j, feature in enumerate(self.features.values()):
            known = np.isin(rows[:, j], range(len(feature.levels))) if feature.levelled else True
            fits = np.isnan(rows[:, j]) | (known & np.isfinite(rows[:, j]))
            check(bool(fits.all()), "codes", "finite, and positions of levels", codes, SpaceError)
        return self.schema.decode(rows)

    def including(self, rows: object) -> Space:
        """Return the space whose ranges and levels cover these rows; codes stay valid."""
        schema, _, _ = self.schema.covering(self.schema.cells(rows), "rows")
        return self.changed(schema=schema)

    __str__ = saved.describe
    to_dict = saved.to_dict

    def __repr__(self) -> str:
        return f"Space({', '.join(str(name) for name in self.schema.names)})"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Space:
        """Return the space that :meth:`to_dict` wrote."""
        with (
            reading("the saved space", SpaceError, "Pass what to_dict returned."),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            made = cls._made(**saved.read_space(plain))
            good = made.scale.shape == (len(made.features),) and bool((made.scale > 0).all())
            check(good, "scale", "one positive number per feature", made.scale, SpaceError)
            str(made)  # whose parts fit together can describe itself, and its own lowest row
            lowest = np.array([[feature.code_range[0] for feature in made.features.values()]])
            made.around(made.decode(lowest))
            return made
