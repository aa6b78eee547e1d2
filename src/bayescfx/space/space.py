"""`Space`: which features may change, and how.

Each verb returns a changed copy, and verbs combine. A verb is a function of a space that lives
beside its rule; it becomes a method of `Space` by one line, and known to the command line, settings
files and the page by its entry in `verbs.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, eq=False)
class Background:
    """A sample of the data, and the density model fitted to it."""

    rows: Array  # (m, d) at most 5,000 data rows, as codes
    features: tuple[Feature, ...]

    @cached_property
    def plausibility(self) -> Plausibility | None:
        """The density model; None without data, or if all features are independent."""
        if len(self.rows) < 2:
            return None
        model = Plausibility.fit(self.rows, self.features)
        return model if model.pairs else None


@dataclass(frozen=True, eq=False)
class SpaceFields:
    """The fields of a space.

    Parameters
    ----------
    schema : Schema
        Features and the user's columns.
    scale : array of shape (d,)
        One unit of change per feature.
    sample : Background
        Rows of the data.
    price : Cost
        What changes cost.
    rules : tuple of Rule
        The rules, in the order in which verbs added them.
    inferred : frozenset of names
        Features whose range was inferred from data.
    graded : frozenset of names
        Features whose step was inferred from data.
    unrestored : tuple of str
        Labels of rules that a file could not hold.
    """

    schema: Schema
    scale: Array
    sample: Background
    price: Cost = field(default_factory=Cost)
    rules: tuple[Rule, ...] = ()
    inferred: frozenset[Hashable] = frozenset()
    graded: frozenset[Hashable] = frozenset()
    unrestored: tuple[str, ...] = ()


class Space(SpaceFields):
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

    def __init__(self, features: Mapping[Any, Feature]) -> None:
        schema = inference.schema_by_hand(features)
        sample = Background(np.empty((0, len(features))), tuple(features.values()))
        super().__init__(schema, inference.scales(schema), sample)

    @classmethod
    def from_data(cls, X: object, kinds: Mapping[Any, str | Feature] | None = None) -> Space:
        """Return the space of the data: names, kinds, ranges, levels, dtypes, steps and scales.

        Numbers that all lie on a decimal grid, such as 0.1, move on it: the answers have as many
        decimals as the data. ``print(space)`` shows the steps, `steps` changes them. Text is
        categorical. A column with more than 20 dates, all written in the same way, is a `Moment`.
        Text that identifies the rows, such as names, never changes; a warning says so.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            A table of pandas, polars or Arrow; the model gets such rows, too.
        kinds : dict of column to kind, optional
            ``"real"``, ``"integer"``, ``"ordinal"``, ``"categorical"``, ``"moment"``, an order
            (``"low < high"``), a date format (``"%d/%m/%Y"``) or a feature, where the inferred
            kind is wrong; ``"real"`` has no step.

        Examples
        --------
        >>> import pandas as pd
        >>> space = Space.from_data(pd.DataFrame({"age": [20, 40], "bmi": [21.5, 30.0]}))
        >>> space.features["age"]
        Integer(low=20, high=40, step=1, cyclic=False)
        """
        frame, dtype = inference.as_table(X)
        is_valid = isinstance(kinds, Mapping | None)
        check(is_valid, "kinds", "a dict of column to kind", kinds, SpaceError)
        kinds = dict(kinds or {})
        schema = inference.infer_schema(frame, dtype, kinds)
        if dtype is None and frame is not X:
            schema = replace(schema, like=X[:0])  # type: ignore[index]  # polars or Arrow
        by_hand = {name for name, kind in kinds.items() if isinstance(kind, Feature)}
        rows = inference.background(frame, schema)
        space = cls._of(
            schema=schema,
            scale=inference.scales(schema, frame),
            sample=Background(rows, tuple(schema.features.values())),
            inferred=frozenset(schema.names) - by_hand,
            graded=inference.graded(schema.features, kinds),
        )
        names = inference.identifiers(frame, schema, kinds)
        return limits.fix_identifiers(space, names) if names else space

    @classmethod
    def _of(cls, **fields: Any) -> Space:
        """Return a space from its fields."""
        space = cls.__new__(cls)
        SpaceFields.__init__(space, **fields)
        return space

    @property
    def features(self) -> Mapping[Hashable, Feature]:
        """Features by name, in the order of the codes."""
        return self.schema.features

    @property
    def fixed(self) -> frozenset[Hashable]:
        """Features that never change."""
        by_name = limits.limits_of(self).items()
        return frozenset(name for name, limit in by_name if limit.fixed)

    # ── verbs ──

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

    # ── queries ──

    around = queries.around
    encode_queries = queries.encode_queries
    regions = queries.regions

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)

    def decode(self, codes: Array) -> Rows:
        """Return the user's rows for codes of shape (n, d)."""
        rows = as_numbers("codes", codes, SpaceError)
        d = len(self.schema.names)
        has_shape = rows.ndim == 2 and rows.shape[1] == d
        check(has_shape, "codes", f"of shape (n, {d})", codes, SpaceError)
        for j, feature in enumerate(self.features.values()):
            column = rows[:, j]
            fits = np.isnan(column) | np.isfinite(column)
            if feature.has_levels:
                fits = np.isnan(column) | np.isin(column, range(len(feature.levels)))
            check(bool(fits.all()), "codes", "finite, and positions of levels", codes, SpaceError)
        return self.schema.decode(rows)

    def including(self, rows: object) -> Space:
        """Return the space whose ranges and levels cover these rows; codes stay valid."""
        schema, _, _ = self.schema.covering(self.schema.cells(rows), "rows")
        return self.with_fields(schema=schema)

    # ── what verbs are made of ──

    def name(self, given: Hashable) -> Hashable:
        """Return the name of a feature; spaces of arrays also take column numbers."""
        return self.schema.names[self.schema.position(given)]

    def by_name(self, given: Mapping[Any, Any], parameter: str) -> dict[Hashable, Any]:
        """Return a dict by feature with the features' own names; raise if it is no dict."""
        is_dict = isinstance(given, Mapping)
        check(is_dict, parameter, "a dict of feature to value", given, SpaceError)
        return {self.name(name): value for name, value in given.items()}

    def with_rules(self, *rules: Rule, instead_of: Iterable[Rule] = ()) -> Space:
        """Return the space with more rules, some perhaps in place of others."""
        replaced = {id(rule) for rule in instead_of}
        kept = tuple(rule for rule in self.rules if id(rule) not in replaced)
        return self.with_fields(rules=(*kept, *rules))

    def with_data(self, rows: Array, *, schema: Schema, **fields: Any) -> Space:
        """Return a copy with other background rows ``(m, d)`` and other features."""
        sample = Background(rows, tuple(schema.features.values()))
        return self.with_fields(sample=sample, schema=schema, **fields)

    def with_fields(self, **fields: Any) -> Space:
        """Return a copy with some fields of `SpaceFields` replaced."""
        return self._of(**{**vars(self), **fields})

    # ── text and files ──

    __str__ = saved.describe
    _repr_html_ = saved.describe_html
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
            content = saved.read_space(plain)
            features = tuple(content["schema"].features.values())
            sample = Background(np.empty((0, len(features))), features)
            space = cls._of(sample=sample, **content)
            scale = space.scale
            is_valid = scale.shape == (len(features),) and bool((scale > 0).all())
            check(is_valid, "scale", "one positive number per feature", scale, SpaceError)
            # Parts that do not fit together fail here: in the description, or for the lowest row.
            str(space)
            lowest = np.array([[feature.code_range[0] for feature in features]])
            space.around(space.decode(lowest))
            return space
