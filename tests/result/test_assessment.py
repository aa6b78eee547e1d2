"""Rows of other libraries, and rows changed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx

FRAME = pd.DataFrame(
    {
        "age": np.arange(20, 60),
        "bmi": np.linspace(18.0, 40.0, 40).round(1),
        "job": (["cook", "clerk", "nurse", "cook"] * 10),
    }
)
QUERY = FRAME.iloc[30]


def model(rows: pd.DataFrame) -> Any:
    return rows["bmi"] * 10.0 + rows["age"] + 50.0 * (rows["job"] == "nurse")


@pytest.fixture
def space() -> cfx.Space:
    return cfx.Space.from_data(FRAME).fix("age").between({"bmi": (20, 38)}).require("bmi <= age")


def test_a_row_changed_by_hand_has_the_models_output(space: cfx.Space) -> None:
    found = cfx.what_if(model, QUERY, {"bmi": 25.0, "job": "clerk"}, space, cfx.at_most(310))
    expected = FRAME.iloc[[30]].assign(bmi=25.0, job="clerk")
    assert found.output == float(model(expected).iloc[0])
    assert found.query_output == float(model(FRAME.iloc[[30]]).iloc[0])
    assert list(found.row) == list(expected.iloc[0])
    assert found.changes == {"bmi": (QUERY["bmi"], 25.0), "job": (QUERY["job"], "clerk")}
    assert (found.miss, found.reached) == (0.0, True)
    assert found.broken == ()
    assert "Target reached." in repr(found)
    assert found.cost is not None
    assert found.distance is not None
    assert found.n_changes == 2
    assert found.cost == pytest.approx(found.distance + 0.4)
    assert repr(found).endswith(
        f"\nCost {found.cost:.3g} (distance {found.distance:.3g}, 2 changes)."
    )


@pytest.mark.parametrize(
    ("bmi", "miss", "reached", "words"),
    [
        (30.0, 0.0, True, "Target reached."),
        (29.9, 1.0, True, "1 away from the target: reached, within the tolerance."),
        (29.0, 10.0, False, "10 away from the target: not reached."),
    ],
)
def test_a_miss_is_measured_without_the_tolerance(
    bmi: float, miss: float, reached: bool, words: str
) -> None:
    query = {"age": 50, "bmi": 25.0, "job": "clerk"}  # 300; wanted 350, 2.5 may be missed
    found = cfx.what_if(model, query, {"bmi": bmi}, target=350.0)
    assert found.miss == pytest.approx(miss)
    assert found.reached is reached
    assert repr(found).splitlines()[1] == words
    rows = pd.DataFrame([{**query, "bmi": bmi}])
    line = cfx.assess(model, query, rows, cfx.Space.from_data(FRAME), 350.0).loc[0]
    assert (line["miss"], line["hit"]) == (pytest.approx(miss), reached)


def test_rounding_that_the_target_forgives_is_no_miss() -> None:
    """0.1 * 9 + 0.3 is less than 0.1 * 1 + 0.3 + 0.8 in doubles."""
    found = cfx.what_if(lambda rows: 0.1 * rows["a"] + 0.3, {"a": 1.0}, {"a": 9.0}, None, "+0.8")
    assert found.output < found.query_output + 0.8
    assert (found.miss, found.reached) == (0.0, True)
    assert repr(found).endswith("Target reached.")


def test_a_change_that_is_not_allowed_is_scored_and_reported(space: cfx.Space) -> None:
    found = cfx.what_if(model, QUERY, {"bmi": 60, "age": 30}, space.max_changes(1), 900.0)
    assert found.broken == (
        "'age' is fixed",
        "the limits of 'bmi'",
        "more than 1 change",
        "bmi <= age",
    )
    assert found.output == float(model(FRAME.iloc[[30]].assign(bmi=60.0, age=30)).iloc[0])
    assert found.miss is not None
    assert found.miss > 0
    assert "Not allowed: 'age' is fixed." in repr(found)


def test_a_missing_cell_is_a_change_that_no_search_makes(space: cfx.Space) -> None:
    def known(rows: pd.DataFrame) -> Any:
        return rows["bmi"].fillna(99.0)

    found = cfx.what_if(known, QUERY, {"bmi": None, "job": float("nan")}, space)
    assert found.output == 99.0
    assert list(found.changes) == ["bmi", "job"]
    assert found.broken[:2] == ("'bmi' becomes missing", "'job' becomes missing")
    back = cfx.what_if(known, {**QUERY, "bmi": None}, {"bmi": 25.0}, space)
    assert list(back.changes) == ["bmi"]
    assert back.broken == ("'bmi' is missing in the query",)
    with pytest.raises(cfx.QueryError, match="'age' can't be missing"):
        cfx.what_if(known, QUERY, {"age": None}, space)


def test_derived_columns_follow_a_change() -> None:
    frame = FRAME.assign(double=2.0 * FRAME["bmi"])
    space = cfx.Space.from_data(frame).derive("double", lambda rows: 2.0 * rows["bmi"])
    found = cfx.what_if(lambda X: X["double"], frame.iloc[3], {"bmi": 30.0}, space)
    assert found.output == 60.0
    assert (found.miss, found.reached) == (None, None)


def test_a_one_hot_group_is_changed_by_its_name() -> None:
    frame = pd.DataFrame({"red": [1, 0, 0], "blue": [0, 1, 0], "green": [0, 0, 1]})
    space = cfx.Space.from_data(frame).group("colour", ["red", "blue", "green"])
    found = cfx.what_if(lambda X: X["green"] * 7.0, frame.iloc[0], {"colour": "green"}, space)
    assert found.output == 7.0
    assert list(found.row) == [0, 0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": "pilot"}, "'job' has no level 'pilot'"),
        ({"aeg": 3}, "aeg"),
        ({"age": 30.5}, "`changes` must fit the columns; 'age' can't hold 30.5"),
        (["bmi"], "`changes` must be a dict"),
        ({"bmi": "x"}, "must be numbers; got 'x'"),
    ],
)
def test_invalid_changes_are_refused(changes: Any, message: str, space: cfx.Space) -> None:
    with pytest.raises(cfx.BayesCFXError, match=message):
        cfx.what_if(model, QUERY, changes, space)


def test_an_array_is_changed_without_a_space() -> None:
    found = cfx.what_if(lambda X: X.sum(axis=1), np.array([1.0, 2.0]), {0: 5.0}, target=7.0)
    assert (found.output, found.miss, found.broken) == (7.0, 0.0, ())
    with pytest.raises(cfx.QueryError, match=r"'x0' can't hold 1\.5"):
        cfx.what_if(lambda X: X.sum(axis=1), np.array([1, 2]), {0: 1.5})


def test_rows_of_another_library_are_assessed(space: cfx.Space) -> None:
    rows = pd.DataFrame(
        {
            "age": [50, 50, 40, 50],
            "bmi": [25.0, 25.0, 25.0, 80.0],
            "job": [QUERY["job"], "clerk", QUERY["job"], QUERY["job"]],
            "income": [1, 2, 3, 4],  # as other libraries add the outcome
        },
        index=["a", "b", "c", "d"],
    )
    found = cfx.assess(model, QUERY, rows, space, cfx.at_most(360))
    assert found.index.tolist() == ["a", "b", "c", "d"]
    assert found["output"].tolist() == model(rows).tolist()
    assert found["hit"].tolist() == [True, True, True, False]
    assert found["miss"].tolist() == [0.0, 0.0, 0.0, 540.0]
    assert found["n_changes"].tolist() == [1, 2, 2, 1]
    assert found["cost"].to_numpy() == pytest.approx(found["distance"] + 0.2 * found["n_changes"])
    assert found["broken"].tolist() == ["", "", "'age' is fixed", "the limits of 'bmi'; bmi <= age"]
    assert found["needless"].tolist() == ["", "job", "age", ""]
    region = cfx.Space.from_data(FRAME).around(QUERY)  # with everything free
    codes = region.encode(rows.drop(columns="income"))
    np.testing.assert_allclose(found["distance"], region.distance(codes))
    # to the nearest row of the data, by hand
    scale = dict(zip(region.names, region.scale, strict=True))
    for i in range(4):
        apart = (FRAME["age"] - rows["age"].iloc[i]).abs() / scale["age"]
        apart += (FRAME["bmi"] - rows["bmi"].iloc[i]).abs() / scale["bmi"]
        apart += FRAME["job"] != rows["job"].iloc[i]
        assert found["to_data"].iloc[i] == pytest.approx(apart.min())


def test_a_change_that_keeps_a_rule_is_needed() -> None:
    space = cfx.Space.from_data(FRAME).require("bmi <= age")
    query = FRAME.iloc[0].copy()  # 20 years, 18
    rows = pd.DataFrame({"age": [35], "bmi": [30.0], "job": [query["job"]]})
    found = cfx.assess(lambda X: X["bmi"], query, rows, space, cfx.at_least(29))
    assert found["needless"].tolist() == [""]  # with the old age the rule would be broken


def test_own_answers_are_assessed_as_they_claim(space: cfx.Space) -> None:
    answer = cfx.explain(model, QUERY, space, cfx.at_most(310), n=3, rng=0)
    found = cfx.assess(model, QUERY, answer.rows, space, cfx.at_most(310))
    np.testing.assert_allclose(found["distance"], [c.distance for c in answer.counterfactuals])
    assert found["output"].tolist() == [c.output for c in answer.counterfactuals]
    assert found["hit"].all()
    assert (found["broken"] == "").all()
    assert (found["needless"] == "").all()
    assert found["plausibility"].tolist() == [c.plausibility for c in answer.counterfactuals]


def test_without_a_target_there_is_no_hit(space: cfx.Space) -> None:
    found = cfx.assess(model, QUERY, FRAME.head(2), space)
    assert not {"hit", "miss", "needless"} & set(found.columns)
    with pytest.raises(cfx.BayesCFXError, match="`rows` must be a table with the columns"):
        cfx.assess(model, QUERY, FRAME[["age", "bmi"]], space)


class Picky:
    """A model that accepts three jobs, as an encoder does."""

    def predict(self, rows: pd.DataFrame) -> Any:
        if not rows["job"].isin(["cook", "clerk", "nurse"]).all():
            raise ValueError("Found unknown categories ['pilot'] in column 0")
        return model(rows)


@pytest.mark.parametrize("target", [None, cfx.at_most(360)])
def test_one_bad_row_does_not_affect_the_others(space: cfx.Space, target: Any) -> None:
    good = pd.DataFrame({"age": [50, 50], "bmi": [25.0, 26.0], "job": [QUERY["job"], "clerk"]})
    expected = cfx.assess(Picky(), QUERY, good, space, target)
    rows = pd.DataFrame(
        {
            "age": [50, 50, 50.5, 50, 50],
            "bmi": [25.0, 25.0, 25.0, "much", 26.0],
            "job": [QUERY["job"], "pilot", "cook", "cook", "clerk"],
        },
        index=list("abcde"),
    )
    found = cfx.assess(Picky(), QUERY, rows, space, target)
    assert found.index.tolist() == list("abcde")
    pd.testing.assert_frame_equal(found.loc[["a", "e"]].set_axis([0, 1], axis=0), expected)
    lost = found.loc[["b", "c", "d"]]
    assert lost["output"].isna().all()
    assert target is None or not lost["hit"].any()
    assert lost["broken"].tolist() == [
        "'job' has no level 'pilot'; the model fails: Found unknown categories ['pilot'] in "
        "column 0",
        "`rows` must fit the dtypes of the space; got 50.5 in column 'age' of dtype int64. Correct "
        "the cell",
        "`rows` must fit the dtypes of the space; got 'much' in column 'bmi' of dtype float64. "
        "Correct the cell",
    ]
    assert lost["n_changes"].isna().tolist() == [False, True, True]
    assert lost["changes"].tolist() == ["bmi 34.9 → 25, job nurse → pilot", "", ""]


def test_a_row_without_an_output_is_reported(space: cfx.Space) -> None:
    rows = pd.DataFrame({"age": [50, 50], "bmi": [25.0, 30.0], "job": ["clerk", "clerk"]})

    def shy(rows: pd.DataFrame) -> Any:
        return model(rows).where(rows["bmi"] != 30.0)

    found = cfx.assess(shy, QUERY, rows, space, cfx.at_most(360))
    assert found["output"].isna().tolist() == [False, True]
    assert found["hit"].tolist() == [True, False]
    assert found["broken"][1].startswith("the model fails: `model` returned nan for {'age': 50")


def test_no_row_at_all_is_an_empty_table_and_a_model_that_always_fails_an_error(
    space: cfx.Space,
) -> None:
    assert len(cfx.assess(model, QUERY, FRAME.head(0), space, 300.0)) == 0
    with pytest.raises(ZeroDivisionError):
        cfx.assess(lambda rows: 1 / 0, QUERY, FRAME.head(2), space, 300.0)


def test_rows_of_an_array_are_assessed_one_by_one(space: cfx.Space) -> None:
    rows = np.array([[50, 25.0, "clerk"], [50, "x", "clerk"]], dtype=object)
    found = cfx.assess(model, QUERY, rows, space, cfx.at_most(360))
    assert found["hit"].tolist() == [True, False]
    with pytest.raises(cfx.BayesCFXError, match="`rows` must be a table with the columns"):
        cfx.assess(model, QUERY, rows[:, :2], space)
