"""Queries become codes in one place, which returns its notes and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.errors import QueryError, SpaceError, SpaceWarning
from bayescfx.space.region import Region

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, 40),
        "bmi": RNG.uniform(18, 40, 40),
        "job": RNG.choice(["clerk", "cook"], 40),
        "day": pd.Timestamp("2016-01-01") + pd.to_timedelta(RNG.integers(0, 90, 40), "D"),
    }
)
SPACE = cfx.Space.from_data(DATA)
ODD = pd.DataFrame(
    {
        "age": [30, 70, 40, 30],
        "bmi": [20.0, 50.0, np.nan, 30.0],
        "job": ["clerk", "smith", "baker", "cook"],
        "day": pd.to_datetime(["2016-01-05", "2016-02-05", "2017-01-05", "2016-01-06"]),
    }
)


def as_rows(table: pd.DataFrame, how: str) -> Any:
    """Return a table, or its rows in another form."""
    if how == "table":
        return table
    if how == "dicts":
        return [{name: table[name].tolist()[i] for name in table} for i in range(len(table))]
    if how == "series":
        return [pd.Series(row) for row in as_rows(table, "dicts")]
    return [table.iloc[[i]] for i in range(len(table))]


def same(one: Region, other: Region) -> None:
    """Assert that two regions allow the same, up to the codes of levels."""
    for name in ("low", "high", "step"):
        is_number = np.array([not feature.has_levels for feature in one.schema.features.values()])
        values = getattr(one, name)[is_number]
        np.testing.assert_array_equal(values, getattr(other, name)[is_number])
    pd.testing.assert_frame_equal(
        pd.DataFrame(one.rows(one.query[None])), pd.DataFrame(other.rows(other.query[None]))
    )
    for a, b in zip(one.axes, other.axes, strict=True):
        if a.feature.has_levels:
            assert a.choices is not None
            assert b.choices is not None
            allowed = [a.feature.levels[int(code)] for code in a.choices]
            assert allowed == [b.feature.levels[int(code)] for code in b.choices]


@pytest.mark.parametrize("how", ["table", "dicts", "series", "frames"])
def test_queries_share_one_schema_and_each_has_its_own_limits(how: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # notes are returned
        found = SPACE.regions(as_rows(ODD, how))
    assert not found.errors
    assert list(found.regions) == [0, 1, 2, 3]
    assert set(found.notes) == {1, 2}
    assert "which grew for it: 'age' by the range" in found.notes[1][0]
    assert "'job' by the level 'smith'" in found.notes[1][0]
    assert found.notes[2][1] == "the query has no value for 'bmi'; treated as fixed."
    schemas = {id(region.schema) for region in found.regions.values()}
    assert len(schemas) == 1
    levels = found.regions[0].schema.features["job"].levels
    assert levels == ("clerk", "cook", "smith", "baker")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, row in enumerate(as_rows(ODD, "dicts")):
            same(found.regions[i], SPACE.around(row))


def test_inside_the_space_the_schema_stays_the_same() -> None:
    queries = SPACE.encode_queries(DATA)
    assert queries.schema is SPACE.schema
    assert not queries.notes
    assert not queries.extended
    np.testing.assert_array_equal(queries.own.codes, SPACE.encode(DATA))
    found = SPACE.regions(queries)
    assert len(found.regions) == len(DATA)


def test_an_invalid_query_does_not_stop_the_others() -> None:
    space = cfx.Space({"size": Ordinal(["s", "m"]), "hour": Integer(0, 23, cyclic=True)})
    rows = [
        {"size": "s", "hour": 3},
        {"size": "xl", "hour": 3},
        {"size": "m", "hour": 24},
        {"size": "m"},
        {"size": "m", "hour": 5},
        pd.DataFrame({"size": ["s", "m"], "hour": [1, 2]}),
    ]
    found = space.regions(rows)
    assert list(found.regions) == [0, 4]
    assert {i: type(error) for i, error in found.errors.items()} == dict.fromkeys(
        [1, 2, 3, 5], QueryError
    )
    assert "'xl' is not one of the levels" in str(found.errors[1])
    assert "must lie on the circle" in str(found.errors[2])
    assert "missing: 'hour'" in str(found.errors[3])
    assert "must be one row; got 2" in str(found.errors[5])
    assert found.regions[4].query.tolist() == [1, 5]
    with pytest.raises(QueryError, match="must lie on the circle"):
        space.around(rows[2])


def test_of_a_table_the_wrong_row_is_found() -> None:
    space = cfx.Space.from_data(
        pd.DataFrame({"red": [0, 1, 0], "blue": [1, 0, 1], "a": [1.0, 2.0, 3.0]})
    ).group("colour", ["red", "blue"])
    table = pd.DataFrame({"red": [0, 1, 1], "blue": [1, 1, 0], "a": [1.0, 2.0, 3.0]})
    found = space.regions(table)
    assert list(found.regions) == [0, 2]
    assert "exactly one 1 in the group 'colour'" in str(found.errors[1])


def test_an_error_of_a_rule_is_the_querys() -> None:
    space = cfx.Space({"a": Real(0, 9), "b": Real(0, 9)})
    space = space.derive("b", lambda rows: rows["a"].iloc[: len(rows) * int(rows["a"].iloc[0] < 5)])
    found = space.regions([{"a": 1.0, "b": 1.0}, {"a": 7.0, "b": 1.0}])
    assert list(found.regions) == [0]
    assert isinstance(found.errors[1], SpaceError)


def test_no_queries_have_no_regions() -> None:
    nothing: list[Any] = [[], DATA.iloc[:0]]
    for rows in nothing:
        found = SPACE.regions(rows)
        assert (found.regions, found.notes, found.errors) == ({}, {}, {})


def test_one_query_warns() -> None:
    with pytest.warns(SpaceWarning) as caught:
        SPACE.around(ODD.iloc[[2]])
    assert [str(one.message)[:22] for one in caught] == [
        "the query lies outside",
        "the query has no value",
    ]


def test_fixed_and_derived_features_may_be_missing() -> None:
    space = SPACE.fix("bmi").derive("age", lambda rows: rows["bmi"])
    query = {**as_rows(DATA, "dicts")[0], "bmi": np.nan}
    assert not space.encode_queries([query]).notes
    assert SPACE.encode_queries([query]).notes == {
        0: ["the query has no value for 'bmi'; treated as fixed."]
    }


def test_an_array_is_a_table() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    space = cfx.Space.from_data(X)
    found = space.regions(X[:5])
    for i in range(5):
        np.testing.assert_array_equal(found.regions[i].query, X[i])
        np.testing.assert_array_equal(space.around(X[i]).query, X[i])


def test_levels_of_another_schema_keep_their_codes() -> None:
    space = cfx.Space({"job": Categorical(["clerk", "cook"])})
    wider = space.including(pd.DataFrame({"job": ["baker"]}))
    region = space.regions([{"job": "cook"}], schema=wider.schema).regions[0]
    assert region.schema.features["job"].levels == ("clerk", "cook", "baker")
    assert region.high.tolist() == [1]  # the other level is not allowed
