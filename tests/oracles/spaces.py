"""Random spaces with a check of their own.

A `Case` is a table, a query and rules, each of which knows how to tell a `Space` about itself and
how to check raw rows without any of the library's code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Feature, Integer, Moment, Real
from bayescfx.data.values import same_cell
from bayescfx.space.space import Space
from tests.oracles.plausibility import Counted

Checker = Callable[[pd.DataFrame, pd.DataFrame], "np.ndarray[Any, np.dtype[np.bool_]]"]

#: Random queries may lie outside limits, and differ from what a column derives.
noted = pytest.mark.filterwarnings("ignore:derive|the query lies outside its limits")


@dataclass(frozen=True)
class Constraint:
    """One verb: what to tell the space, and how to check raw rows against the query's row."""

    name: str
    tell: Callable[[Space], Space]
    check: Checker


@dataclass(frozen=True)
class Case:
    """A space with rules, a query and an independent check."""

    frame: pd.DataFrame
    space: Space
    query: pd.DataFrame  # one row
    constraints: tuple[Constraint, ...]
    derived: frozenset[str]

    def broken(self, rows: pd.DataFrame) -> list[str]:
        """Return what the rows break, by name; empty if everything holds."""
        found = [w.name for w in self.constraints if not w.check(rows, self.query).all()]
        if not rows.dtypes.equals(self.frame.dtypes) or list(rows) != list(self.frame):
            found.append("columns and dtypes")
        return found

    def changed(self, rows: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which cells differ from the query's, shape (n, columns), by value."""
        own = {c: self.query[c].iloc[0] for c in rows}
        moved = [[not _same_value(rows[c].iloc[i], own[c]) for c in rows] for i in range(len(rows))]
        return np.array(moved).reshape(len(rows), rows.shape[1])

    def foreign(self, rows: pd.DataFrame) -> list[str]:
        """Return columns in which a cell equals the query's by value, but not in type and bits."""
        return [
            str(c)
            for c in rows
            for i in range(len(rows))
            if _same_value(value := rows[c].iloc[i], own := self.query[c].iloc[0])
            and not same_cell(value, own)
        ]


def random_case(seed: int) -> Case:
    """Return a random table, space and query; the query itself satisfies every rule."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 12, 40], p=[0.05, 0.05, 0.3, 0.6]))
    makers = rng.choice(len(_MAKERS), size=rng.integers(2, 9), p=_ODDS)
    columns: dict[str, Any] = {}
    kinds: dict[str, Feature | str] = {}
    for k, maker in enumerate(makers):
        name = f"c{k}" if rng.random() < 0.8 else f"column-{k}"
        columns[name], kind = _MAKERS[maker](rng, n)
        if kind is not None:
            kinds[name] = kind
    frame = pd.DataFrame(columns)
    query = frame.iloc[[int(rng.integers(n))]].reset_index(drop=True)
    table = _Table(rng, frame, query, kinds)
    constraints, derived = _constraints(table)
    space = Space.from_data(frame, kinds=kinds)
    for constraint in constraints:
        space = constraint.tell(space)
    return Case(frame, space, query, tuple(constraints), derived)


def _same_value(a: Any, b: Any) -> bool:
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    return bool(a == b)


# ── columns ──


def _real(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return rng.normal(rng.normal() * 10, 10 ** rng.uniform(-3, 4), n), None


def _single(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return rng.normal(0.1, 3, n).astype(np.float32), None


def _stepped(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    step = float(rng.choice([0.1, 0.25, 5.0]))
    values = np.round(rng.integers(0, 12, n) * step, 2)
    return values, Real(0.0, float(np.round(12 * step, 2)), step=step)


def _off_grid(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return rng.uniform(0, 10, n), Real(0.0, 10.0, step=0.5)


def _whole(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    dtype = str(rng.choice(["int64", "int8", "uint16"]))
    return rng.integers(0, 90, n).astype(dtype), None


def _wide(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return rng.integers(-100_000, 100_000, n), None


def _nullable(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return pd.array(rng.integers(0, 9, n), dtype="Int64"), None


def _nullable_real(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return pd.array(rng.normal(0, 2, n), dtype="Float64"), None


def _weekday(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return rng.integers(0, 7, n), Integer(0, 6, cyclic=True)


def _flag(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    dtype: Any = str(rng.choice(["bool", "boolean"]))
    return pd.Series(rng.random(n) < 0.5).astype(dtype).array, None


def _text(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    words = ["red", "green", "blue", 'it\'s "odd"', "µ"]
    cells = pd.Series(rng.choice(words, n))
    dtype: Any = str(rng.choice(["str", "object"]))
    return cells.astype(dtype).array, None


def _objects(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    pool = [("a", 1), "a", 2, 3.5]
    cells = np.empty(n, dtype=object)
    for i in range(n):
        cells[i] = pool[int(rng.integers(len(pool)))]
    return cells, None


def _category(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    levels = ["low", "mid", "high", "top"]
    ordered = bool(rng.random() < 0.5)
    return pd.Categorical(rng.choice(levels, n), categories=levels, ordered=ordered), None


def _times(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    start = pd.Timestamp("2016-01-01", tz="Europe/Berlin" if rng.random() < 0.3 else None)
    if rng.random() < 0.5:
        return pd.Series(start + pd.to_timedelta(rng.integers(0, 60, n), "D")).array, None
    cells = pd.Series(start + pd.to_timedelta(rng.integers(0, 10**7, n), "s"))
    return cells.array, Moment(cells.min(), cells.max(), unit="D")


def _missing(rng: np.random.Generator, n: int) -> tuple[Any, Feature | str | None]:
    return np.full(n, np.nan), None


_MAKERS = (
    _real,
    _single,
    _stepped,
    _off_grid,
    _whole,
    _wide,
    _nullable,
    _nullable_real,
    _weekday,
    _flag,
    _text,
    _objects,
    _category,
    _times,
    _missing,
)
_ODDS = np.array([4, 1, 1, 1, 3, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0.5])
_ODDS /= _ODDS.sum()


# ── rules ──


@dataclass(frozen=True)
class _Table:
    """What the makers of rules look at."""

    rng: np.random.Generator
    frame: pd.DataFrame
    query: pd.DataFrame
    kinds: dict[str, Feature | str]

    def number(self, name: str) -> bool:
        """Whether the column holds numbers that are no flags."""
        return self.frame[name].dtype.kind in "iuf" and not self.frame[name].isna().any()

    def directed(self, name: str) -> bool:
        """Whether up and down mean something."""
        kind = self.kinds.get(name)
        dtype = self.frame[name].dtype
        if (isinstance(kind, Integer) and kind.cyclic) or self.frame[name].isna().any():
            return False
        if isinstance(dtype, pd.CategoricalDtype):
            return bool(dtype.ordered)
        return dtype.kind in "iufM"

    def has_levels(self, name: str) -> bool:
        """Whether the column has levels."""
        return self.frame[name].dtype.kind in "Ob" and not self.frame[name].isna().any()

    def own(self, name: str) -> Any:
        """Return the query's cell."""
        return self.query[name].iloc[0]


def rank(cells: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Return cells as numbers that keep their order."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.cat.codes.to_numpy(np.float64)
    if cells.dtype.kind == "M":
        return cells.astype("int64").to_numpy()
    return cells.to_numpy(np.float64)


def _constraints(table: _Table) -> tuple[list[Constraint], frozenset[str]]:
    rng, names = table.rng, [str(name) for name in table.frame]
    constraints = [_stays_in_range(table)]
    derived = _derive(table) if rng.random() < 0.25 else None
    hands_off = {derived[1]} if derived else set()
    missing = [c for c in names if table.frame[c].isna().any()]
    if missing:
        constraints.append(_fix(missing))
    for name in names:
        if name not in hands_off and rng.random() < 0.45:
            constraints += _about(table, name)
    free = [name for name in names if name not in hands_off]
    for make in (_order, _function, _together):
        if rng.random() < 0.3 and (constraint := make(table, free)) is not None:
            constraints.append(constraint)
    if derived:
        constraints.append(derived[0])
    if rng.random() < 0.4:
        constraints.append(_at_most(table, int(rng.integers(1, 4)), hands_off))
    if (
        rng.random() < 0.15
        and len(table.frame) > 5
        and not derived
        and (constraint := _near(table))
    ):
        constraints.append(constraint)
    return constraints, frozenset(hands_off)


def _stays_in_range(table: _Table) -> Constraint:
    """Without a word, cells stay in the range, on the grid and among the levels of the data."""

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        good = np.ones(len(rows), dtype=bool)
        for name in rows:
            if not table.number(str(name)) and not table.has_levels(str(name)):
                continue
            own = np.array([_same_value(v, query[name].iloc[0]) for v in rows[name]])
            good &= own | _natural(table, str(name), rows[name])
        return good

    return Constraint("range, grid and levels", lambda space: space, check)


def _natural(table: _Table, name: str, cells: pd.Series[Any]) -> Any:
    kind = table.kinds.get(name)
    if table.has_levels(name):
        dtype = cells.dtype
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
            return np.ones(len(cells), dtype=bool)
        known = {False, True} if cells.dtype.kind == "b" else set(table.frame[name])
        return np.array([value in known for value in cells])
    values = cells.to_numpy(np.float64)
    if isinstance(kind, Real) and kind.step:
        steps = (values - kind.low) / kind.step
        return np.abs(steps - np.rint(steps)) < 1e-9
    if cells.dtype.kind in "iu":
        return values == np.rint(values)
    return np.isfinite(values)


def _fix(names: list[str]) -> Constraint:
    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        return np.array(
            [
                all(same_cell(rows[c].iloc[i], query[c].iloc[0]) for c in names)
                for i in range(len(rows))
            ]
        )

    return Constraint(f"fix {names}", lambda space: space.fix(*names), check)


def _about(table: _Table, name: str) -> list[Constraint]:
    """Return a rule for one column."""
    options: list[Callable[[_Table, str], Constraint]] = [lambda t, c: _fix([c])]
    if table.directed(name):
        options += [_up, _down, _moves]
    if table.number(name):
        options += [_between]
    if table.has_levels(name):
        options += [_levels]
    kind = table.kinds.get(name)
    if isinstance(kind, Integer) and kind.cyclic:
        options = [_wraps]
    return [options[int(table.rng.integers(len(options)))](table, name)]


def _up(table: _Table, name: str) -> Constraint:
    return Constraint(
        f"only_up {name}",
        lambda space: space.only_up(name),
        lambda rows, query: rank(rows[name]) >= rank(query[name]),
    )


def _down(table: _Table, name: str) -> Constraint:
    return Constraint(
        f"only_down {name}",
        lambda space: space.only_down(name),
        lambda rows, query: rank(rows[name]) <= rank(query[name]),
    )


def _between(table: _Table, name: str) -> Constraint:
    values = table.frame[name].to_numpy(np.float64)
    a, b = np.sort(table.rng.choice(values, 2)) + np.array([-0.3, 0.3])
    own = float(table.own(name))

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        found = rows[name].to_numpy(np.float64)
        return ((found >= a) & (found <= b)) | (found == own)

    return Constraint(f"between {name}", lambda space: space.between({name: (a, b)}), check)


def _levels(table: _Table, name: str) -> Constraint:
    pool = list(dict.fromkeys(table.frame[name]))
    kept = [level for level in pool if table.rng.random() < 0.6] or pool[:1]
    own = table.own(name)
    return Constraint(
        f"between {name}",
        lambda space: space.between({name: kept}),
        lambda rows, query: np.array([v in kept or v == own for v in rows[name]]),
    )


def _moves(table: _Table, name: str) -> Constraint:
    low, high = -float(table.rng.integers(0, 4)), float(table.rng.integers(1, 5))
    times = table.frame[name].dtype.kind == "M"
    pair: Any = (f"{low:g}D", f"{high:g}D") if times else (low, high)

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        if times:
            delta = (rows[name] - query[name].iloc[0]) / pd.Timedelta("1D")
            return (delta >= low).to_numpy() & (delta <= high).to_numpy()
        delta = rank(rows[name]) - rank(query[name])
        # the limit is query + low, rounded once
        slack = 1e-12 * np.abs(rank(query[name]))
        return (delta >= low - slack) & (delta <= high + slack)

    return Constraint(f"move {name}", lambda space: space.move({name: pair}), check)


def _wraps(table: _Table, name: str) -> Constraint:
    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        ahead = np.mod(rows[name].to_numpy() - query[name].iloc[0], 7)
        return (ahead <= 1) | (ahead >= 5)

    return Constraint(f"move {name}", lambda space: space.move({name: (-2, 1)}), check)


def _order(table: _Table, free: list[str]) -> Constraint | None:
    """Return a linear rule that the query satisfies, with slack or without."""
    numbers = [name for name in free if table.number(name)]
    if len(numbers) < 2:
        return None
    a, b = (str(c) for c in table.rng.choice(numbers, 2, replace=False))
    factor = float(table.rng.choice([1.0, 2.0, -1.0]))
    spread = float(np.std(table.frame[a].to_numpy(np.float64))) + 0.1
    slack = spread * float(table.rng.choice([0.0, 0.1, 1.0]))
    bound = float(table.own(a)) + factor * float(table.own(b)) + slack
    text = f"`{a}` + {factor!r} * `{b}` <= {bound!r}"

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        return rows[a].to_numpy(np.float64) + factor * rows[b].to_numpy(np.float64) <= bound

    return Constraint(text, lambda space: space.require(text), check)


def _function(table: _Table, free: list[str]) -> Constraint | None:
    """Return a nonlinear rule that few rows satisfy, the query among them."""
    numbers = [name for name in free if table.number(name)]
    if len(numbers) < 2:
        return None
    a, b = (str(c) for c in table.rng.choice(numbers, 2, replace=False))
    u, v = float(table.own(a)), float(table.own(b))
    su = float(np.std(table.frame[a].to_numpy(np.float64))) + 0.1
    sv = float(np.std(table.frame[b].to_numpy(np.float64))) + 0.1
    radius = float(table.rng.choice([0.05, 0.5, 2.0]))

    def inside(rows: pd.DataFrame) -> Any:
        x = (rows[a].astype(float) - u) / su
        y = (rows[b].astype(float) - v) / sv
        return x**2 + y**2 <= radius**2

    return Constraint(
        f"near the query in {a}, {b}",
        lambda space: space.require(inside, "a small ball"),
        lambda rows, query: inside(rows).to_numpy(),
    )


def _together(table: _Table, free: list[str]) -> Constraint | None:
    names = [name for name in free if table.directed(name)]
    if len(names) < 2:
        return None
    size = int(table.rng.integers(2, min(3, len(names)) + 1))
    block = [str(c) for c in table.rng.choice(names, size, replace=False)]

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        signs = np.array([np.sign(rank(rows[c]) - rank(query[c])) for c in block])
        return (signs == signs[0]).all(axis=0)

    return Constraint(f"together {block}", lambda space: space.together(*block), check)


def _derive(table: _Table) -> tuple[Constraint, str] | None:
    """Return a column that follows from another; the query's own cell need not."""
    numbers = [str(c) for c in table.frame if table.number(str(c))]
    target = [c for c in numbers if table.frame[c].dtype == np.float64 and c not in table.kinds]
    if not target or len(numbers) < 2:
        return None
    name = str(table.rng.choice(target))
    source = str(table.rng.choice([c for c in numbers if c != name]))

    def compute(rows: pd.DataFrame) -> Any:
        return rows[source].astype(float) ** 2 + 1.0

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        fresh, base = compute(rows).to_numpy(), float(compute(query).iloc[0])
        expected = np.where(fresh == base, float(query[name].iloc[0]), fresh)
        return rows[name].to_numpy() == expected

    return Constraint(f"derive {name}", lambda space: space.derive(name, compute), check), name


def _at_most(table: _Table, k: int, hands_off: set[str]) -> Constraint:
    counted = [name for name in table.frame if name not in hands_off]

    def check(rows: pd.DataFrame, query: pd.DataFrame) -> Any:
        moved = [[not _same_value(v, query[c].iloc[0]) for v in rows[c]] for c in counted]
        return np.array(moved, dtype=int).sum(axis=0) <= k

    return Constraint(f"max_changes {k}", lambda space: space.max_changes(k), check)


def _near(table: _Table) -> Constraint | None:
    """Return a rule to stay near data, for tables of plain numbers."""
    names = [str(name) for name in table.frame]
    if not all(table.number(c) and table.frame[c].dtype.kind in "if" for c in names):
        return None
    if any(isinstance(kind, Integer) and kind.cyclic for kind in table.kinds.values()):
        return None
    counted = Counted(table.frame.to_numpy(np.float64), [False] * len(names))
    query = counted.score(table.query.to_numpy(np.float64)[0])
    least = min(np.quantile(counted.own, 1.0 - 0.9, method="lower"), query)
    return Constraint(
        "near data",
        lambda space: space.near_data(table.frame, quantile=0.9),
        lambda rows, query: np.array(
            [counted.score(row) >= least - 1e-6 for row in rows.to_numpy(np.float64)], dtype=bool
        ),
    )
