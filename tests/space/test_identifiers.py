"""Text that identifies the rows: it never changes, and says nothing about plausibility."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.errors import SpaceWarning
from bayescfx.space.space import Space


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(50.0, 10.0, n).round(1)
    kinds = pd.Series(rng.choice(["x", "y", "z"], n))
    return pd.DataFrame({"a": a, "b": (a + rng.normal(0, 2.0, n)).round(1), "kind": kinds})


def with_names(data: pd.DataFrame) -> pd.DataFrame:
    return data.assign(customer=[f"C{i:05d}" for i in range(len(data))])


def silently(data: pd.DataFrame, **kinds: Any) -> Space:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaceWarning)
        return Space.from_data(data, kinds)


def model(rows: pd.DataFrame) -> Any:
    return rows["a"] + 3.0 * rows["b"]


def test_text_that_identifies_the_rows_is_fixed_with_a_warning() -> None:
    data = with_names(table())
    with pytest.warns(SpaceWarning) as caught:
        space = Space.from_data(data)
    assert [str(each.message) for each in caught] == [
        "column 'customer' identifies the rows: 200 different texts in 200 rows. It never changes. "
        "If it may, name its kind: 'categorical'."
    ]
    assert space.fixed == {"customer"}
    line = next(line for line in str(space).splitlines() if "customer" in line)
    assert line.endswith("fixed (identifies the rows)")
    again = Space.from_dict(space.to_dict())
    assert again.fixed == {"customer"}
    assert str(again) == str(space)


def test_a_kind_that_is_given_is_used_without_a_warning() -> None:
    space = Space.from_data(with_names(table()), {"customer": "categorical"})
    assert not space.fixed


@pytest.mark.parametrize("n_texts", [3, 100, 185])
def test_text_that_repeats_may_change(n_texts: int) -> None:
    data = table()
    data["text"] = [f"t{i % n_texts}" for i in range(len(data))]
    assert not Space.from_data(data).fixed


def test_few_rows_may_all_have_different_texts() -> None:
    assert not Space.from_data(with_names(table(29))).fixed
    with pytest.warns(SpaceWarning, match="'customer' identifies the rows"):
        Space.from_data(with_names(table(30)))


@pytest.mark.parametrize("kinds", [{}, {"customer": "categorical"}])
def test_names_of_rows_do_not_change_their_plausibility(kinds: dict[str, str]) -> None:
    data = table()
    plain = Space.from_data(data).sample.plausibility
    named = silently(with_names(data), **kinds)
    assert plain is not None
    assert named.sample.plausibility is not None
    rows = data.head(50).assign(a=lambda rows: rows["a"].iloc[::-1].to_numpy())
    expected = plain.share(Space.from_data(data).encode(rows))
    found = named.sample.plausibility.share(named.encode(with_names(rows)))
    np.testing.assert_array_equal(found, expected)


def test_texts_of_which_most_occur_once_do_not_change_plausibility() -> None:
    data = table()
    text = [f"t{i}" if i % 3 else "common" for i in range(len(data))]
    with_text = Space.from_data(data.assign(text=text))
    assert not with_text.fixed
    expected = Space.from_data(data).sample.plausibility
    found = with_text.sample.plausibility
    assert expected is not None
    assert found is not None
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_space_of_names_only_has_no_plausibility() -> None:
    data = pd.DataFrame({"one": [f"a{i}" for i in range(50)], "two": [f"b{i}" for i in range(50)]})
    space = silently(data, one="categorical", two="categorical")
    assert space.sample.plausibility is None
    near = space.near_data(data)
    region = near.around(data.iloc[0])
    assert region.contains(near.encode(data)).all()


def test_an_answer_keeps_the_name_of_its_row_and_a_new_name_is_no_warning() -> None:
    data = with_names(table())
    space = silently(data)
    query = data.iloc[[0]].assign(customer="somebody new")
    answer = cfx.explain(model, query, space, cfx.increase(percent=20), rng=0)
    assert answer.reached
    assert answer.best.row["customer"] == "somebody new"
    without = cfx.explain(
        model, table().iloc[[0]], Space.from_data(table()), cfx.increase(percent=20), rng=0
    )
    assert answer.best.plausibility == without.best.plausibility
